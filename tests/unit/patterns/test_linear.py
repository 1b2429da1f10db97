"""Every regular expression that may see a stranger's text takes time in proportion to it.

The expressions are found, not listed: all that are module-level in the parent's modules (in tuples, tables and records,
too), and those of the playbooks. A growth of more than sixfold for four times the text counts as not linear, and only
where it takes long enough to be measured: CPU time of this thread, the least of several tries.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import math
import os
import pkgutil
import re
import sys
import tempfile
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

import aotidoctor
from aotidoctor.logs.bounded import bounded
from aotidoctor.logs.origins import origins
from aotidoctor.logs.patterns import load_patterns
from aotidoctor.logs.splits import splits
from aotidoctor.model.late_pattern import LatePattern
from tests.e2e.foundry.place import cache_dir
from tests.unit.patterns import pump

_LENGTHS = (1000, 4000)
# A short one first: what is exponential takes long for it already, and for a longer one until it is stopped.
_FIRST = 100
_LOOK = 1500
# A linear expression takes a tenth of it for ``_LOOK`` characters; a quadratic one several times as much.
_NOTICED_S = 0.002
_GROWTH = 8
_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_DEEPEST = 4


def is_linear(pattern: re.Pattern, methods: frozenset[str]) -> tuple[str, str, str] | None:
    """The text that shows that ``pattern`` is not linear; None if none does."""
    for pumped in pump.texts(pattern):
        if pump.seconds(pattern, methods, pumped, _FIRST) > 5 * _NOTICED_S:
            return pumped
        looked = pump.seconds(pattern, methods, pumped, _LOOK)
        if looked == math.inf:
            return pumped
        if looked < _NOTICED_S:
            continue
        # Once, and only what looks bad again: the least of several is what no other process had a part in.
        if all(_grows(pattern, methods, pumped, tries) for tries in (1, 4)):
            return pumped
    return None


def _grows(pattern: re.Pattern, methods: frozenset[str], pumped: tuple[str, str, str], tries: int) -> bool:
    short, long = (pump.seconds(pattern, methods, pumped, length, tries) for length in _LENGTHS)
    return long > 3 * _NOTICED_S and long > _GROWTH * short


@pytest.mark.parametrize("text", [r"(\w+\s*)+$", r"\s*\s*x", r"'(.*)' and '(.*)'", r"\w+=", r"(?:a|aa)+b", r"a.*b.*c"])
def test_an_expression_that_is_not_linear_is_seen(text):
    assert is_linear(re.compile(text), frozenset({"search"})) is not None


@pytest.mark.parametrize("text", [r"(?<!\w)\w+=", r"^a.*b", r"'([^']*)'", r"\d{1,18}(?:,\d{1,18}){0,64}"])
def test_a_linear_one_is_not_accused(text):
    assert is_linear(re.compile(text), frozenset({"search"})) is None


def _compiled():
    for module in pkgutil.walk_packages(aotidoctor.__path__, "aotidoctor."):
        # The worker reads what this package's own children wrote, in a process with limits.
        if module.name.startswith("aotidoctor.worker") or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if not name.startswith("__"):
                yield from _inside(value, module.name, name)
    for pattern in load_patterns():
        for regex in (pattern.regex, *pattern.near, *pattern.not_near):
            yield f"playbooks.{pattern.record.cause}", "", regex
    for origin in origins():
        for text in filter(
            None, (origin.frame, origin.innermost, origin.file, origin.said, origin.near, origin.not_near)
        ):
            yield f"logs.origins.{origin.cause}", "", re.compile(bounded(text), re.MULTILINE)
    for split in splits():
        yield f"logs.splits.{split.cause}", "", split.words


def _inside(value, module, name, depth=0):
    if isinstance(value, (re.Pattern, LatePattern)):
        yield module, name, value if isinstance(value, re.Pattern) else value.compiled
    elif depth < _DEEPEST:
        for part in _parts(value):
            yield from _inside(part, module, name, depth + 1)


def _parts(value):
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    return ()


@cache
def _uses(module: str) -> dict[str, frozenset[str]]:
    """The methods that a module calls on each name, or on what a loop takes out of it. A search starts at every place, a match at the first only."""
    found: dict[str, set[str]] = {}
    path = Path(aotidoctor.__path__[0]).parent.joinpath(*module.split(".")).with_suffix(".py")
    nodes = [*ast.walk(ast.parse(path.read_text()))] if path.exists() else []
    # for pattern in PATTERNS: pattern.match(...)
    tables = {
        name.id: loop.iter.id
        for loop in nodes
        if isinstance(loop, (ast.For, ast.comprehension)) and isinstance(loop.iter, ast.Name)
        for name in ast.walk(loop.target)
        if isinstance(name, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _METHODS:
            name = tables.get(node.value.id, node.value.id)
            found.setdefault(name, set()).add(node.attr)
    return {name: frozenset(methods) for name, methods in found.items()}


def cases():
    """Each expression once: where it is, the methods it is used with."""
    found: dict[re.Pattern, tuple[str, frozenset[str]]] = {}
    for module, name, pattern in _compiled():
        methods = _uses(module).get(name, frozenset())
        where, others = found.get(pattern, (f"{module}.{name}", frozenset()))
        found[pattern] = (where, others | methods)
    return [(pattern, where, methods or frozenset({"search"})) for pattern, (where, methods) in found.items()]


def _measured() -> Path:
    """Where the expressions that were found linear are kept, by what was measured and how."""
    how = hashlib.sha256(sys.version.encode())
    for source in (pump.__file__, __file__):
        how.update(Path(source).read_bytes())
    return cache_dir() / "linear" / f"{how.hexdigest()[:16]}.txt"


def _key(pattern: re.Pattern, methods: frozenset[str]) -> str:
    return hashlib.sha256(repr((pattern.pattern, pattern.flags, sorted(methods))).encode()).hexdigest()[:16]


def test_every_expression_is_linear():
    """An expression that was measured on this machine, by this Python and this test, is not measured again."""
    measured = _measured()
    measured.parent.mkdir(parents=True, exist_ok=True)
    known = frozenset(measured.read_text().split()) if measured.exists() else frozenset()
    slow, linear = [], []
    for pattern, where, methods in cases():
        key = _key(pattern, methods)
        shown = None if key in known else is_linear(pattern, methods)
        if shown is not None:
            slow.append(f"{where} {sorted(methods)} {pattern.pattern!r}\n    {shown!r}")
        else:
            linear.append(key)
    with tempfile.NamedTemporaryFile("w", dir=measured.parent, delete=False) as stream:
        stream.write("\n".join(linear))
    os.replace(stream.name, measured)
    assert not slow, "\n".join(slow)
