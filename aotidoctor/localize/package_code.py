"""Two packages of one program: the same kernels, the same generated code, and where they part.

Generated files name directories of the machine that compiled them and carry the compiler's command line: comments and
paths are left out of the comparison, and so are the names that the compiler gives to files by their content.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.record import record

_PATH = re.compile(r"(?:/[\w.+@-]+){2,}")
_HASHED = re.compile(r"\bc[a-z2-7]{40,}\b")
_FUNCTION = re.compile(r"\b((?:cpp|triton)_fused\w*|cpp_\w+?_\d+)\(")
_LONGEST = 160

Lines = list[tuple[int, str]]


@record
class Comparison:
    """``same_kernels``: the same names in the same order of calls. ``same_sources``: the same code below them too.

    Both are None where a package has no sources. ``where``, ``ours`` and ``theirs`` are the first line that differs:
    of the kernels, else of the wrapper (``ours`` is the package under examination).
    """

    kernels: tuple[str, ...] = ()
    other_kernels: tuple[str, ...] = ()
    same_kernels: bool | None = None
    same_sources: bool | None = None
    where: str | None = None
    ours: str | None = None
    theirs: str | None = None


def compare_code(
    ours: ModelEntry | None, our_contract: Contract | None, theirs: ModelEntry | None, their_contract: Contract | None
) -> Comparison:
    """Compare a package with one that was made from the same program."""
    mine, other = _kernels(ours, our_contract), _kernels(theirs, their_contract)
    if ours is None or theirs is None or ours.wrapper_cpp is None or theirs.wrapper_cpp is None:
        named = bool(mine and other)
        return Comparison(kernels=mine, other_kernels=other, same_kernels=mine == other if named else None)
    found = _first(_texts(ours.kernel_sources), _texts(theirs.kernel_sources), "kernel.cpp")
    found = found or _first(_lines(ours.wrapper_cpp), _lines(theirs.wrapper_cpp), "wrapper.cpp")
    where, left, right = found or (None, None, None)
    return Comparison(
        kernels=mine,
        other_kernels=other,
        same_kernels=mine == other,
        same_sources=found is None,
        where=where,
        ours=left,
        theirs=right,
    )


def _kernels(model: ModelEntry | None, contract: Contract | None) -> tuple[str, ...]:
    """Names in the order of calls; those of the symbol table where there is no source."""
    if contract is not None and contract.kernels:
        return tuple(call.name for call in contract.kernels)
    objects = model.shared_objects if model is not None else ()
    return tuple(sorted(name for item in objects for name in item.kernel_symbols))


def _texts(sources: Mapping[str, str]) -> Lines:
    """Kernel files in the order of the functions they define: file names are hashes."""
    ordered = sorted(sources.values(), key=_FUNCTION.findall)
    return [line for text in ordered for line in _lines(text)]


def _lines(text: str) -> Lines:
    """``(number, text)`` of the lines that are code, without what depends on the machine."""
    return [
        (number, _HASHED.sub("<hash>", _PATH.sub("<path>", line)))
        for number, line in enumerate(map(str.strip, text.splitlines()), start=1)
        if line and not line.startswith("//")
    ]


def _first(ours: Lines, theirs: Lines, file: str) -> tuple[str, str | None, str | None] | None:
    for left, right in zip_longest(ours, theirs):
        if left is None or right is None or left[1] != right[1]:
            number = left[0] if left is not None else ours[-1][0] if ours else 1
            return f"{file}:{number}", _short(left), _short(right)
    return None


def _short(line: tuple[int, str] | None) -> str | None:
    return None if line is None else line[1][:_LONGEST]
