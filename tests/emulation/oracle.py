"""Which lanes go astray, told without the emulation: the index lines of a kernel's text, evaluated by plain NumPy.

Knows the lines that Inductor writes before an access (``x1 = xindex // 24``), and of the values that a kernel computes
only those that follow from its lanes. Anything else is unknown, and so is what depends on it: no expectation then.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import numpy as np

_ASSIGNED = re.compile(r"^(\w+) = (.+)$")
_OFFSET = re.compile(r"([xyz])offset = tl\.program_id\((\d)\) \* [XYZ]BLOCK$", re.MULTILINE)
_OWN = re.compile(r"(\w+) = tl\.program_id\(0\) \* BLOCK \+ tl\.arange\(0, BLOCK\)$", re.MULTILINE)
_FULL = re.compile(r"tl\.full\(\[[^\]]*\], (-?[\d.]+|True|False), tl\.\w+\)")
_CAST = re.compile(r"\.to\(tl\.int(?:1|8|32|64)\)")
_FUNCTIONS = {"where": np.where, "abs": np.abs}
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant, ast.Load, ast.operator, ast.unaryop,
    ast.cmpop, ast.Call,
)  # fmt: skip
USER_BLOCK = 64


@dataclass(frozen=True, kw_only=True)
class Access:
    """A load or store of a kernel's text: what it goes through, its index and its mask (None: all lanes)."""

    what: str
    argument: str
    index: str
    mask: str | None


def access_of(line: str) -> Access | None:
    """The access on one line; None where there is none of the plain form ``pointer + (index)``."""
    try:
        tree = ast.parse(line.strip())
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        what = node.func.attr
        if what not in ("load", "store", "atomic_add") or ast.unparse(node.func.value) != "tl":
            continue
        pointer = node.args[0]
        if not isinstance(pointer, ast.BinOp) or not isinstance(pointer.left, ast.Name):
            return None
        words = {word.arg: word.value for word in node.keywords}
        at = 1 if what == "load" else 2
        mask = node.args[at] if len(node.args) > at else words.get("mask")
        text = None if mask is None or ast.unparse(mask) == "None" else ast.unparse(mask)
        return Access(what=what, argument=pointer.left.id, index=ast.unparse(pointer.right), mask=text)
    return None


class Lanes:
    """The lanes of one launch: what their indices are, by the text of the kernel."""

    def __init__(self, text: str, launch: dict):
        self.lines = [line.strip() for line in text.split("\n")]
        self.text = "\n".join(self.lines)
        self.blocks = launch["blocks"]
        self.programs = int(np.prod(launch["grid"]))
        self.sizes: list[int] = []
        self.reduced: int | None = None
        self.loops = "tl.range(0, r0_numel, R0_BLOCK)" in self.text
        self.known = dict(launch["numbers"])
        self.known |= {f[1]: int(f[2]) for f in re.finditer(r"^(\w+numel) = (\d+)$", self.text, re.MULTILINE)}
        self.plain = self._axes(launch["grid"])

    def _axes(self, grid) -> bool:
        """Arrays for the axes of the grid and of the reduction; False where the text has others."""
        own = _OWN.search(self.text)
        if own is not None:
            self.sizes, self.known[own[1]] = [USER_BLOCK], np.arange(grid[0] * USER_BLOCK)
            return True
        found = sorted(_OFFSET.finditer(self.text), key=lambda one: "zyx".index(one[1]))
        if not found or len(found) != self.text.count("tl.program_id("):
            return False
        block = re.search(r"^R0_BLOCK: tl\.constexpr = (\d+)$", self.text, re.MULTILINE)
        reduces = "r0_numel" in self.known
        rank = len(found) + reduces
        for at, one in enumerate(found):
            size = self.blocks.get(one[1], 1)
            shape = [-1 if dim == at else 1 for dim in range(rank)]
            self.sizes.append(size)
            self.known[f"{one[1]}index"] = np.arange(grid[int(one[2])] * size).reshape(shape)
        if reduces:
            self.reduced = int(block[1]) if block is not None else int(self.known["r0_numel"])
            self.known["r0_index"] = np.arange(self.reduced).reshape([1] * len(found) + [-1])
        self.axes = [int(one[2]) for one in found]
        return True

    def values(self, before: int) -> dict:
        """What is known at line ``before`` (counted from 0): numbers, and arrays over the lanes."""
        known = dict(self.known)
        fixed = set(self.known)
        for line in self.lines[:before]:
            found = _ASSIGNED.match(line)
            if found is None or found[1] in fixed:
                continue
            value = evaluate(found[2], known)
            if value is None:
                known.pop(found[1], None)
            else:
                known[found[1]] = value
        return known

    def astray(self, line: int, extent: int | None):
        """Of the access on that line: indices, and which lanes are outside of ``extent`` elements (None: any lane).

        None where the text does not tell.
        """
        access = access_of(self.lines[line])
        if not self.plain or access is None:
            return None
        known = self.values(line)
        index = evaluate(access.index, known)
        mask = True if access.mask is None else evaluate(access.mask, known)
        if index is None or mask is None:
            return None
        index, mask = np.broadcast_arrays(index, mask)
        outside = np.ones(index.shape, dtype=bool) if extent is None else (index < 0) | (index >= extent)
        return index, outside & mask

    def element(self, program, lane, shape):
        """The place in an array over the lanes that a program and a lane of it stand for; None where it is unclear."""
        if self.loops or len(shape) != len(self.sizes) + (self.reduced is not None):
            return None
        places: list[int] = []
        if self.reduced is not None:
            lane, last = divmod(lane, self.reduced)
            places.append(last)
        axes = getattr(self, "axes", [0])
        for at in reversed(range(len(self.sizes))):
            lane, within = divmod(lane, self.sizes[at])
            places.append(program[axes[at]] * self.sizes[at] + within)
        index = tuple(0 if size == 1 else place for place, size in zip(reversed(places), shape, strict=True))
        return index if all(at < size for at, size in zip(index, shape, strict=True)) else None


def evaluate(text: str, known: dict):
    """The value of an index or mask expression, as Python and NumPy have it; None where it has more than that."""
    text = _CAST.sub("", _FULL.sub(r"(\1)", text)).replace("tl.where(", "where(").replace("tl_math.abs(", "abs(")
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Name) and node.id not in known and node.id not in _FUNCTIONS
        ):
            return None
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
            return None
    with np.errstate(all="ignore"):
        return eval(compile(tree, "index", "eval"), {"__builtins__": {}, **_FUNCTIONS}, known)
