"""Write the table of what torch and Triton print of their failures, ``aotidoctor/logs/printed.bin``.

    python scripts/printed.py --torch DIR... --triton DIR --everyday PLACE...   packages; none is imported
    python scripts/printed.py --list DIR                                    their messages, one JSON object a line

A message is what a ``raise``, an ``assert``, ``torch._check*`` or ``unimplemented`` of the Python sources shows, and
what the strings of the libraries show that read like one. Only words that follow each other without a hole count, five
in a row (``aotidoctor.logs.origins``). Left out is what other packages, and libraries such as libc and Python's own,
print as well (``--everyday``), so that the words alone tell whose they are. The table has numbers made of these words,
and the names of the files.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from aotidoctor.logs.origins import MESSAGE_TABLE, packed_runs, word_runs

# What a hole of such a name holds where a message is listed; the first that fits.
_VALUES = (
    (r"dtype|scalar_type", "torch.float16"),
    (r"device", "cuda:0"),
    (r"stride", "(3, 1)"),
    (r"shape|sizes?\b(?!\()|\.size\(\)", "torch.Size([2, 3])"),
    (r"symbol|\bsym|expr|unbacked", "s0"),
    (r"type\(|__class__|cls|typ\b", "<class 'list'>"),
    (r"\bop\b|op_?name|target|func|overload|qualname", "aten.foo.default"),
    (r"path|file|dir\b|\blib\b", "data/model.bin"),
    (r"len\(|dim|index|idx|num|count|\bn\b|\bi\b|size|rank|min|max|expected|actual|world", "3"),
    (r"\be\b|err|exc|reason|msg|message|detail", "it went wrong"),
)
_FILLED = tuple((re.compile(regex), value) for regex, value in _VALUES)
_HOLE = "\0"
# Who makes an exception of a message, by the end of its name.
_CHECKS = {
    "_check": "RuntimeError", "_check_with": "RuntimeError", "_check_value": "ValueError", "_check_type": "TypeError",
    "_check_index": "IndexError", "_check_not_implemented": "NotImplementedError", "torch_check": "RuntimeError",
}  # fmt: skip
_PLACED = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[srdifxg]|\{[^{}]*\}")
_LEFT_OUT = re.compile(r"(?:^|/)(?:testing|_vendor|contrib|hub\.py|test|tests)(?:/|$)")
# A string of a library that reads like a message: words, one of which tells of a failure.
_STRING = re.compile(rb"[\x20-\x7e]{20,400}")
_TELLING = re.compile(
    r"(?i)\b(?:expect\w*|must|should|can(?:not|'t| not)|unsupported|invalid|fail\w*|unable|unexpected|mismatch|only|not"
    r"|illegal|unknown|missing|do(?:es)?n't|require\w*|error|out of|exceed\w*|wrong|incorrect|attempt\w*|trying|tried"
    r"|but got|ha(?:s|ve) to|need\w*|too (?:many|few|large|small|big)|without)\b"
)
_LETTERS, _WORDS = 0.75, 3
# What is said at the end of a message of any kind.
_ADVICE = re.compile(
    r"(?i)https?:|\b(?:please|report|issue|github|bug|suppress|fall(?:ing|s)? back|you can|you may|for more info\w*)\b"
)
# What else is linked into libtorch: oneDNN's and MKL's tables, ONNX's manual, protobuf.
_NOT_TORCH = re.compile(
    r"oneMKL|%[sd],|\broutine\b|^Constrain |opset|\bFFTW?\d?\b|protobuf|CHECK failed|\bipar\b|\bONNX\b|``"
)


def message_of(node: ast.AST) -> str | None:
    """The text that an expression makes, its holes between zeros; None where it has none of its own."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_part(part) for part in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [message_of(part) for part in (left, right)]
            if parts == [None, None]:
                return None
            return "".join(
                _hole(node) if part is None else part for part, node in zip(parts, (left, right), strict=True)
            )
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return _placed(left, right.elts if isinstance(right, ast.Tuple) else [right])
        case _:
            return _called(node)


def _called(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr="format", value=value), args=args):
            return _placed(value, args)
        case ast.Call(func=ast.Attribute(attr="join", value=ast.Constant()), args=[ast.List(elts=parts)]):
            return "\n".join(message_of(part) or _HOLE * 2 for part in parts)
        case ast.Call(func=ast.Name(id="dedent" | "wrap_message" | "str"), args=[inner, *_]):
            return message_of(inner)
        case ast.Call(func=ast.Attribute(attr="dedent" | "strip"), args=[inner]) | ast.Lambda(body=inner):
            return message_of(inner)
        case ast.IfExp(body=inner):
            return message_of(inner)
        case _:
            return None


def _part(part: ast.AST) -> str:
    if isinstance(part, ast.FormattedValue):
        return _hole(part.value)
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _hole(node: ast.AST) -> str:
    return f"{_HOLE}{ast.unparse(node)}{_HOLE}"


def _placed(template: ast.AST, holes: Sequence[ast.AST]) -> str | None:
    text, left = message_of(template), iter(holes)
    return None if text is None else _PLACED.sub(lambda _: _hole(next(left, ast.Constant(""))), text)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def templates(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, type and message of each failure that the text of a file may tell of."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Raise(exc=ast.Call(func=func, args=args, keywords=keywords)) if _name(func)[:1].isupper():
                said = [text for one in (*args, *(key.value for key in keywords)) if (text := message_of(one))]
                if said:
                    yield node.lineno, _name(func), max(said, key=len)
            case ast.Assert(msg=ast.AST() as told):
                yield node.lineno, "AssertionError", message_of(told) or ""
            case ast.Call(func=func, args=args, keywords=keywords):
                own = {key.arg: message_of(key.value) or "" for key in keywords}
                if own.get("gb_type"):
                    yield node.lineno, "Unsupported", f"{own['gb_type']}\n  Explanation: {own.get('explanation', '')}"
                elif _name(func) in _CHECKS:
                    said = [text for one in args[1:] if (text := message_of(one))]
                    yield node.lineno, _CHECKS[_name(func)], max(said, key=len, default="")
            case _:
                pass


def messages(root: Path) -> Iterator[tuple[str, int, str, str]]:
    """File, line, type and message, for all Python files below ``root``."""
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root.parent).as_posix()
        if _LEFT_OUT.search(name) is not None:
            continue
        try:
            own = list(templates(path.read_text(encoding="utf-8", errors="replace")))
        except (SyntaxError, ValueError):
            # Of another release of Python, or no source at all.
            continue
        yield from ((name, *one) for one in own)


def strings(library: Path) -> Iterator[str]:
    """The strings of a library that read like messages."""
    for found in _STRING.finditer(library.read_bytes()):
        text = found[0].decode()
        letters = sum(letter.isalpha() or letter == " " for letter in text)
        is_text = text.count(" ") >= _WORDS and letters >= _LETTERS * len(text) and text.count("::") < _WORDS
        if _NOT_TORCH.search(text) is None and is_text and _TELLING.search(text) is not None:
            yield text


def keys_of(text: str) -> set[int]:
    """The numbers of a message with holes: of every second run, so that six words of it in a row have one."""
    parts = (line for part in text.split(_HOLE)[::2] for line in part.split("\n") if _ADVICE.search(line) is None)
    return {key for line in parts for key in word_runs(line)[::2]}


def table(roots: Iterable[Path], libraries: Iterable[Path], everyday: Iterable[Path]) -> dict[int, str]:
    """Number and place of each run of words that one place has."""
    found: dict[int, set[str]] = defaultdict(set)
    for root in roots:
        for name, _, _, text in messages(root):
            for key in keys_of(text):
                found[key].add(name)
    for library in libraries:
        for text in strings(library):
            for key in keys_of(text):
                found[key].add(library.name.partition(".")[0])
    everyone = (text for place in everyday for text in _said(place))
    other = {key for text in everyone for part in text.split(_HOLE)[::2] for key in word_runs(part)}
    return {key: _place(places) for key, places in found.items() if key not in other}


def _said(place: Path) -> Iterator[str]:
    """What a package, or a library of any language, prints."""
    yield from strings(place) if place.is_file() else (text for _, _, _, text in messages(place))


def _place(places: set[str]) -> str:
    """The file; of several their folder."""
    if len(places) == 1:
        return places.pop()
    parts = [place.split("/")[:-1] or [place] for place in sorted(places)]
    common = 0
    while all(len(part) > common and part[common] == parts[0][common] for part in parts):
        common += 1
    return "/".join(parts[0][:common]) + "/" if common else "torch/"


def filled(text: str) -> str:
    """A message as somebody may paste it."""
    parts = text.split(_HOLE)
    values = [next((value for regex, value in _FILLED if regex.search(name)), "foo") for name in parts[1::2]]
    return "".join(part for pair in zip(parts[::2], [*values, ""], strict=True) for part in pair)


def main() -> None:
    """Write the table, or list messages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", type=Path, nargs="+")
    parser.add_argument("--triton", type=Path)
    parser.add_argument("--everyday", type=Path, nargs="*", default=[])
    parser.add_argument("--list", type=Path)
    given = parser.parse_args()
    if given.list is not None:
        for name, line, kind, text in messages(given.list):
            record = {"text": f"{kind}: {filled(text)}", "file": name, "line": line}
            sys.stdout.write(f"{json.dumps(record)}\n")
        return
    names = [f"lib{name}.so" for name in ("torch_cpu", "torch_python", "c10")]
    libraries = [path for root in given.torch for name in names if (path := root / "lib" / name).exists()]
    made = table([*given.torch, given.triton], libraries, given.everyday)
    MESSAGE_TABLE.write_bytes(packed_runs(made))
    sys.stdout.write(f"{MESSAGE_TABLE}: {len(made):,} runs of words, {MESSAGE_TABLE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
