"""Sizes of an exported program as text: ``8*s40`` of ``Mul(Integer(8), Symbol('s40', positive=True, integer=True))``.

The text is what sympy's ``srepr`` gives (older torch: its ``str``). It is parsed, never evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from aotidoctor.model.json_types import JsonValue, as_object
from aotidoctor.readers.package.text import as_text

_MAX_TEXT = 4000
_INFIX = {"Mul": "*", "Add": " + "}


def size_text(value: JsonValue) -> str | None:
    """The text of a serialised ``SymInt``; None when it is none."""
    union = as_object(value)
    number = union.get("as_int")
    if isinstance(number, int) and not isinstance(number, bool):
        return str(number)
    text = as_text(as_object(union.get("as_expr")).get("expr_str"))
    return expr_text(text) if text else None


def expr_text(text: str) -> str:
    """Infix text of an ``srepr``; anything else unchanged."""
    if len(text) > _MAX_TEXT or "(" not in text:
        return text[:_MAX_TEXT]
    try:
        return _infix(ast.parse(text, mode="eval").body) or text
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _infix(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=int() as number):
            return str(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return str(-number)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name), *_]):
            return name
        case ast.Call(func=ast.Name(id="Integer"), args=[value]):
            return _infix(value)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _call(name, [_infix(argument) for argument in arguments])
    return None


def _call(name: str, parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    if name == "Pow" and len(known) == 2:
        return "**".join(known)
    if name not in _INFIX:
        return f"{name}({', '.join(known)})"
    if name == "Mul":
        known = [f"({part})" if " + " in part else part for part in known]
    return _INFIX[name].join(known)
