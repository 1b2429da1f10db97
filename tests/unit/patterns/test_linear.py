"""Every regular expression that may see a stranger's text was measured, and takes time in proportion to it.

The expressions are found, not listed: all that are module-level in the parent's modules (in tuples, tables and records,
too), and those of the playbooks. ``linear.txt`` has those that were found linear, and with which methods. The clock is
no matter of this test: who writes or changes an expression runs ``python -m tests.unit.patterns.measure``.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path

import pytest

import aotidoctor
from aotidoctor.logs.origins import origins
from aotidoctor.logs.patterns import bound_repeats, load_patterns
from aotidoctor.logs.splits import splits
from aotidoctor.model import LatePattern
from aotidoctor.probes.symptoms import wordings
from tests.optional import needs
from tests.unit.patterns import pump

RECORD = Path(__file__).with_name("linear.txt")
_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_DEEPEST = 4


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
            None, (origin.frame, origin.innermost, origin.file, origin.message, origin.near, origin.not_near)
        ):
            yield f"logs.origins.{origin.cause}", "", re.compile(bound_repeats(text), re.MULTILINE)
    for split in splits():
        yield f"logs.splits.{split.cause}", "", split.words
    for symptom, regex in wordings()[0]:
        yield f"probes.symptoms.{symptom}", "", regex


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


def key(pattern: re.Pattern) -> str:
    return hashlib.sha256(repr((pattern.pattern, pattern.flags)).encode()).hexdigest()[:16]


def recorded() -> dict[str, frozenset[str]]:
    """The methods that each expression was found linear with."""
    rows = [line.split() for line in RECORD.read_text(encoding="utf-8").splitlines()]
    return {name: frozenset(methods) for name, *methods in rows}


@needs("pandas")
def test_every_expression_was_measured_and_is_linear():
    known = recorded()
    new = [
        f"{where} {sorted(methods)} {pattern.pattern!r}"
        for pattern, where, methods in cases()
        if not methods <= known.get(key(pattern), frozenset())
    ]
    assert new == [], "measure them: python -m tests.unit.patterns.measure"


def test_the_record_is_of_many():
    assert len(recorded()) > 1000


@pytest.mark.parametrize("text", [r"(\w+\s*)+$", r"'(.*)' and '(.*)'", r"(?:a|aa)+b"])
def test_texts_are_made_of_what_an_expression_repeats(text):
    """Each is a prefix, what is repeated, and an end with which it does not match."""
    pumped = list(pump.texts(re.compile(text)))
    assert pumped
    assert all(unit for _, unit, _ in pumped)
    assert any(re.search(text, before + unit * 20 + end) is None for before, unit, end in pumped)
