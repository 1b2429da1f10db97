"""Size expressions of C++ as the wrapper writes them, computed with the wrapper's numbers.

Whole numbers only where the text has only those: ``/`` cuts towards zero there, as in C++.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

Number = int | float
_SUFFIX = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?:ULL|LL|UL|[LUlufF])\b")
_CAST = re.compile(r"\b(?:static_cast<[\w ]+>|(?:u?int(?:8|16|32|64)_t|double|float|long|bool)(?=\())")
_LONGEST = 4000
_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLS: Mapping[str, Callable[..., Number]] = {
    "c10__div_floor_integer": lambda a, b: a // b,
    "c10__div_floor_floating": lambda a, b: math.floor(a / b),
    "std__max": lambda *values: max(values),
    "std__min": lambda *values: min(values),
    "std__floor": math.floor,
    "std__ceil": math.ceil,
    "std__trunc": math.trunc,
    "std__sqrt": math.sqrt,
    "std__abs": abs,
    "std__pow": lambda a, b: a**b,
}
_CONSTANTS = {"true": True, "false": False, "INFINITY": math.inf, "NAN": math.nan}


class Unknown(Exception):  # noqa: N818 - the same whether a name or a form is not known
    """The expression has a name or a form that is not known; the text says which."""


def compute(text: str, names: Mapping[str, Any]) -> Number:
    """The value of ``text``. Raises ``Unknown``."""
    if len(text) > _LONGEST:
        raise Unknown("a very long expression")
    plain = _CAST.sub("", _SUFFIX.sub(r"\1", text)).replace("::", "__").replace("std__numeric_limits", "")
    plain = plain.replace("&&", " and ").replace("||", " or ").replace("{", "[").replace("}", "]")
    try:
        return _value(ast.parse(plain.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, KeyError) as error:
        raise Unknown(text[:200]) from error


def _value(node: ast.expr, names: Mapping[str, Any]) -> Number:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id=name):
            found = names.get(name, _CONSTANTS.get(name))
            if not isinstance(found, int | float):
                raise Unknown(name)
            return found
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return _item(names.get(name), _value(index, names), name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=inner):
            return -_value(inner, names) if isinstance(op, ast.USub) else _value(inner, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, names), _value(right, names))
        case ast.BoolOp(op=op, values=values):
            return (all if isinstance(op, ast.And) else any)([bool(_value(one, names)) for one in values])
        case ast.Call(func=ast.Name(id=name), args=args):
            flat = args[0].elts if len(args) == 1 and isinstance(args[0], ast.List) else args
            return _CALLS[name](*(_value(one, names) for one in flat))
    raise Unknown(ast.dump(node)[:80])


def _item(values: Any, index: Number, name: str) -> Number:
    if not isinstance(values, tuple) or not 0 <= index < len(values):
        raise Unknown(f"{name}[{index}]")
    found = values[int(index)]
    return float(found) if isinstance(found, float) else int(found)


def _binary(op: ast.operator, left: Number, right: Number) -> Number:
    whole = isinstance(left, int) and isinstance(right, int)
    match op:
        case ast.Div():
            if not whole:
                return left / right
            quotient = abs(left) // abs(right)
            return int(quotient if (left < 0) == (right < 0) else -quotient)
        case ast.Mod():
            return math.fmod(left, right) if not whole else int(left - right * _binary(ast.Div(), left, right))
        case _:
            return cast(Number, _BINARY[type(op)](left, right))
