"""The manual pages of the rules about Triton: the docstrings of their checks, read from the source files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "serving" / "rules"
_PREFIX = "TRITON-"
_PART = re.compile(r"^(Versions|Consequence|How it was seen|Remedy):\s+(\S)", re.MULTILINE)


def rule_pages(wanted: str | None = None) -> Iterator[tuple[str, str, str]]:
    """``(name, code, Markdown)`` of every rule; with ``wanted``, a code or name, only files that mention it."""
    mark = None if wanted is None else wanted.removeprefix(_PREFIX)
    for path in sorted(_FOLDER.glob("[!_]*.py")):
        source = path.read_text(encoding="utf-8")
        if mark is None or mark in source:
            yield from _of(ast.parse(source))


def _of(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    checks = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Rule")
    for call in calls:
        given = {item.arg: item.value for item in call.keywords}
        rule, check = given.get("id"), given.get("check")
        if isinstance(rule, ast.Constant) and isinstance(check, ast.Name) and check.id in checks:
            yield check.id, f"{_PREFIX}{rule.value!s}", _markdown(checks[check.id])


def _markdown(docstring: str) -> str:
    return _PART.sub(lambda found: f"\n## {found[1]}\n\n{found[2].upper()}", docstring) + "\n"
