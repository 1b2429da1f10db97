"""The call spec as Triton's backend parses it (26.05 and later), with the names it makes of it.

The backend knows tuples, lists and dicts; whatever has no type is a tensor to it, also None and numbers. It stops at
the first thing it does not know; here parsing goes on, so that all of them can be told at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.record import record

_KINDS = {"builtins.dict": "dict", "builtins.list": "list", "builtins.tuple": "tuple"}
_DEEPEST = 200


@record
class SpecNode:
    """A node. ``kind`` is ``dict``, ``list``, ``tuple``, ``tensor`` or ``other`` (a type the backend does not know).

    ``path`` is the user's. ``number`` counts tensors in flattening order, None for containers. ``type`` is the type's
    serialised name.
    """

    kind: str
    path: str
    type: str | None = None
    keys: tuple[str, ...] = ()
    children: tuple[SpecNode, ...] = ()
    number: int | None = None


@record
class SpecFailure:
    """Why the backend does not parse the spec. ``rule`` is its id, ``detail`` the words of the server's log.

    ``path`` is the user's path of what it stops at and ``found`` what is there.
    """

    rule: str
    detail: str
    path: str
    found: str


@record
class ParsedSpec:
    """A spec. ``root`` is None where the text is no spec at all. The backend stops at the first of ``failures``."""

    root: SpecNode | None
    failures: tuple[SpecFailure, ...] = ()


@record
class SpecName:
    """A name the backend makes, with the place that it stands for: a tensor, or a container that it takes for one."""

    name: str
    node: SpecNode


def parse_inputs(text: str) -> ParsedSpec:
    """The spec of the inputs: a tuple of args and kwargs."""
    parsed = _parse(text, "inputs")
    root = parsed.root
    if root is None or parsed.failures:
        return parsed
    problem = None
    if root.kind != "tuple":
        problem = f'Unexpected input call specification type "{_shown(root)}". Expected type is "builtins_tuple".'
    elif len(root.children) != 2:
        problem = (
            "Unexpected number of children in input call specification. Expected structure to contain two children, "
            f"but got {len(root.children)}."
        )
    elif (root.children[0].kind, root.children[1].kind) != ("tuple", "dict"):
        kinds = ", ".join(_shown(child) for child in root.children)
        problem = f"Unexpected input call specification structure. Expected tuple[tuple, dict], got [{kinds}]."
    if problem is None:
        return parsed
    return ParsedSpec(root=root, failures=(SpecFailure(rule="R9", detail=problem, path=root.path, found=_shown(root)),))


def parse_outputs(text: str) -> ParsedSpec:
    """The spec of what the model returns."""
    return _parse(text, "result")


def input_names(root: SpecNode) -> tuple[SpecName, ...]:
    """The names of the inputs in the order of their ordinals: ``ARGS[1][a]``, ``KWARGSmask``.

    A keyword is written without brackets, and what is inside of it is not looked at.
    """
    args, kwargs = root.children
    positional = [SpecName(name=f"ARGS{suffix}", node=node) for suffix, node in _suffixes(args)]
    keywords = [
        SpecName(name=f"KWARGS{key}", node=kwargs.children[at] if at < len(kwargs.children) else kwargs)
        for at, key in enumerate(kwargs.keys)
    ]
    return (*positional, *keywords)


def output_names(root: SpecNode) -> tuple[SpecName, ...]:
    """The names of the outputs: ``RESULT`` for what is no container, else ``RESULT[0]``, ``RESULT[a]``."""
    if not root.children:
        return (SpecName(name="RESULT", node=root),)
    return tuple(SpecName(name=f"RESULT{suffix}", node=node) for suffix, node in _suffixes(root))


def walk(node: SpecNode) -> Iterator[SpecNode]:
    """The node and all below it, in order."""
    yield node
    for child in node.children:
        yield from walk(child)


def _suffixes(node: SpecNode) -> list[tuple[str, SpecNode]]:
    """Names below ``node``. A child without names of its own, an empty dict among them, counts as one tensor."""
    if node.kind == "tensor":
        return []
    if node.kind == "dict" and len(node.keys) != len(node.children):
        return []
    labels = node.keys if node.kind == "dict" else [str(at) for at in range(len(node.children))]
    found: list[tuple[str, SpecNode]] = []
    for label, child in zip(labels, node.children, strict=True):
        below = _suffixes(child)
        found.extend((f"[{label}]{suffix}", item) for suffix, item in below or [("", child)])
    return found


def _shown(node: SpecNode) -> str:
    return node.type or "tensor" if node.kind == "other" else node.kind


def _parse(text: str, root: str) -> ParsedSpec:
    try:
        document = _document(text)
        reader = _Reader()
        top = reader.read(document, root, 0)
    except (ValueError, RecursionError) as error:
        return ParsedSpec(root=None, failures=(SpecFailure(rule="R9", detail=str(error), path=root, found="no spec"),))
    return ParsedSpec(root=top, failures=tuple(reader.failures))


def _document(text: str) -> JsonValue:
    """The second of ``[version, spec]``, whatever it is. Raises ValueError; the version is not looked at."""
    document = _json(text)
    if not isinstance(document, list) or len(document) != 2:
        raise ValueError("Expected [version, spec] array.")
    return document[1]


def _json(text: str) -> JsonValue:
    """JSON as RapidJSON reads it. Raises ValueError.

    A member that is given twice counts the first time, and half of a surrogate pair is no text.
    """
    value: JsonValue = json.loads(text, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


class _Reader:
    def __init__(self) -> None:
        self.failures: list[SpecFailure] = []
        self._tensors = 0

    def read(self, node: JsonValue, path: str, depth: int) -> SpecNode:
        """The node at ``path``. Raises ValueError for one that is no object."""
        if not isinstance(node, dict) or depth > _DEEPEST:
            raise ValueError("a node is not an object" if depth <= _DEEPEST else "nested too deeply to be followed")
        kind = node.get("type")
        if not isinstance(kind, str):
            self._tensors += 1
            return SpecNode(kind="tensor", path=path, number=self._tensors - 1)
        known = _KINDS.get(kind, "other")
        if known == "other":
            self._fail("R9", f"Value of `type` property ('{kind}') is unsupported.", path, kind)
        before = len(self.failures)
        keys = self._keys(node.get("context"), known, path)
        children = node.get("children_spec")
        below = children if isinstance(children, list) else []
        if len(self.failures) == before:
            self._count(known, keys, children, path)
        labels = [repr(key) for key in keys] if len(keys) == len(below) else [str(at) for at in range(len(below))]
        return SpecNode(
            kind=known,
            path=path,
            type=kind,
            keys=tuple(key for key in keys if isinstance(key, str)),
            children=tuple(
                self._child(child, at, _place(path, root=not depth, label=label, at=at), depth)
                for at, (child, label) in enumerate(zip(below, labels, strict=True))
            ),
        )

    def _child(self, child: JsonValue, at: int, path: str, depth: int) -> SpecNode:
        if not isinstance(child, dict):
            self._fail("R9", f"Child spec at index {at} is not an object.", path, "no spec")
            return SpecNode(kind="other", path=path)
        return self.read(child, path, depth + 1)

    def _keys(self, context: JsonValue, kind: str, path: str) -> list[JsonValue]:
        """The context as a list; that of a type the backend does not know only where it is one."""
        try:
            value = _json(context) if isinstance(context, str) and context != "null" else context
        except ValueError:
            value = None
        if not isinstance(value, list):
            wrong = kind != "other" and isinstance(context, str) and context != "null"
            if wrong:
                self._fail("R9", "Failed to parse 'context' property string as JSON array.", path, kind)
            return []
        for at, key in enumerate(value) if kind != "other" else ():
            if not isinstance(key, str):
                self._fail("R11", f"Context entry at index {at} is not a string.", path, f"the key {json.dumps(key)}")
                break
        return value

    def _count(self, kind: str, keys: list[JsonValue], children: JsonValue, path: str) -> None:
        if not isinstance(children, list):
            return
        if kind in ("list", "tuple") and not children:
            words = "must have at least one entry when 'type' is 'builtins.list' or 'builtins.tuple'."
            self._fail("R10", f"Property 'children_spec' {words}", path, f"an empty {kind}")
        if kind == "dict" and len(children) != len(keys):
            words = "Number of entries in 'children_spec' does not match number of entries in 'context'."
            self._fail("R9", words, path, kind)

    def _fail(self, rule: str, detail: str, path: str, found: str) -> None:
        self.failures.append(SpecFailure(rule=rule, detail=detail, path=path, found=found))


def _place(path: str, *, root: bool, label: str, at: int) -> str:
    """The user's path of a child. The two below the root of the inputs are ``args`` and ``kwargs``."""
    if root and path == "inputs":
        return ("args", "kwargs")[at] if at < 2 else f"inputs[{at}]"
    return f"{path}[{label}]"
