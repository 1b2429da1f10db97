"""Expressions of a kernel as graphs of index arithmetic.

What a value is made of is noted, not computed; a call that is not known gives a value that is not followed, and only an
address that needs it ends the attempt.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.addresses.accesses import Ptr
from aotidoctor.worker.emulation.addresses.nodes import Node, Unsliceable, arange, constant, opaque, program_id
from aotidoctor.worker.emulation.addresses.operations import binary, function, reshaped
from aotidoctor.worker.emulation.dtypes import BY_TEXT

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
# Functions that touch no memory; others may.
_PURE = ("tl", "tl_math", "triton_helpers", "libdevice", "math")


@dataclass(slots=True, kw_only=True)
class Expressions(ABC):
    """Values of expressions with what ``names`` are, in a launch over ``grid``."""

    grid: tuple[int, int, int]
    names: dict[str, Any] = field(default_factory=dict)

    @abstractmethod
    def touched(self, base: str, name: str, node: ast.Call) -> Node | None:
        """The value of a call that goes to memory or asserts; None where it does neither."""

    def value(self, node: ast.expr) -> Any:  # noqa: C901 - one case for each form
        """A ``Node``, a ``Ptr``, a tuple of these, or a text or None as it stands. Raises ``Unsliceable``."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return constant(value)
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.names.get(name, opaque(name))
            case ast.BinOp(left=left, op=op, right=right):
                return self.combine(OPERATORS.get(type(op), "?"), self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(op, self.value(left), self.value(right))
            case ast.UnaryOp(op=op, operand=inner):
                return self._unary(op, self.value(inner))
            case ast.IfExp(test=test, body=body, orelse=other):
                chosen = self._is_type(test)
                return self.value(body if chosen else other) if chosen is not None else opaque(ast.unparse(node)[:60])
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(one) for one in parts)
            case ast.Subscript(value=inner, slice=at):
                return self._subscript(self.value(inner), at)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=inner, attr="shape" | "dtype"):
                return opaque(ast.unparse(node)[:60])
            case ast.Attribute():
                return BY_TEXT.get(node.attr, opaque(ast.unparse(node)[:60]))
        return opaque(ast.unparse(node)[:60])

    def _compared(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        """Parameters may be texts or None, and decide what the kernel does."""
        if (isinstance(op, ast.Is | ast.IsNot) and b is None) or (isinstance(a, str) and isinstance(b, str)):
            return constant((a == b) == isinstance(op, ast.Is | ast.Eq))
        return self.combine(OPERATORS.get(type(op), "?"), a, b)

    def _is_type(self, test: ast.expr) -> bool | None:
        """``x.dtype is tl.float32``, as Inductor writes it for remainders."""
        match test:
            case ast.Compare(left=ast.Attribute(value=inner, attr="dtype"), ops=[ast.Is()], comparators=[wanted]):
                value, kind = self.value(inner), self.value(wanted)
                if isinstance(value, Node) and value.rank >= 0 and isinstance(kind, str):
                    return value.dtype == kind
        return None

    def combine(self, name: str, a: Any, b: Any) -> Any:
        """``a + b`` and its like, of what ``value`` gives."""
        if isinstance(a, Ptr) and isinstance(b, Node) and name in ("+", "-"):
            begins = name == "+" and a.offset.what == "constant" and a.offset.value == 0
            return Ptr(argument=a.argument, offset=b if begins else binary(name, a.offset, b))
        if isinstance(b, Ptr) and isinstance(a, Node) and name == "+":
            return Ptr(argument=b.argument, offset=binary(name, b.offset, a))
        if not isinstance(a, Node) or not isinstance(b, Node) or name == "?":
            return self._lost("an operation on pointers", a, b)
        return binary(name, a, b)

    def _lost(self, why: str, *values: Any) -> Node:
        """A value that is not followed; a pointer must not be lost that way."""
        if any(isinstance(one, Ptr) for one in _flat(values)):
            raise Unsliceable(why)
        return opaque(why)

    def _unary(self, op: ast.unaryop, value: Any) -> Any:
        if not isinstance(value, Node):
            return self._lost("an operation on pointers", value)
        match op:
            case ast.USub():
                return binary("-", constant(0), value)
            case ast.UAdd():
                return value
            case ast.Not():
                return function("not", value, dtype="i1")
            case _:
                return function("invert", value)

    def _subscript(self, value: Any, at: ast.expr) -> Any:
        parts = at.elts if isinstance(at, ast.Tuple) else [at]
        plain = [ast.unparse(one) for one in parts]
        if isinstance(value, tuple) and len(plain) == 1 and plain[0].isdigit() and int(plain[0]) < len(value):
            return value[int(plain[0])]
        if not isinstance(value, Node) or any(one not in (":", "None") for one in plain):
            return self._lost("a part of a block", value)
        if value.rank < 0 or sum(one == ":" for one in plain) != value.rank:
            return opaque(value.what if value.rank < 0 else "a part of a block")
        return value if plain == [":"] else reshaped(value, tuple(0 if one == ":" else None for one in plain))

    def _call(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Attribute(value=ast.Name(id=base), attr=name) if base in _PURE and base not in self.names:
                return self._function(base, name, node)
            case ast.Attribute(value=inner, attr="to"):
                return self._to(self.value(inner), node)
            case ast.Name(id="min" | "max" as name) if len(node.args) == 2 and not node.keywords:
                given = self.arguments(node)
                if all(isinstance(one, Node) for one in given):
                    return function(f"{name}imum", *given)
            case ast.Attribute(value=inner, attr="broadcast_to"):
                return self._spread(self.value(inner), node.args)
        self._lost(f"a call of {ast.unparse(node.func)[:40]}", *self.arguments(node))
        return opaque(f"{ast.unparse(node.func)[:40]}()")

    def arguments(self, node: ast.Call) -> list[Any]:
        """All arguments of a call, those by keyword last."""
        return [*(self.value(one) for one in node.args), *(self.value(one.value) for one in node.keywords)]

    def _to(self, value: Any, node: ast.Call) -> Any:
        wanted = self.value(node.args[0]) if node.args else None
        if not isinstance(value, Node) or not isinstance(wanted, str):
            return self._lost("a cast", value)
        return value if value.dtype == wanted else function("to", value, dtype=wanted)

    def _spread(self, value: Any, shape: list[ast.expr]) -> Any:
        """``tl.broadcast_to``: as many dims as asked for; how long they are follows from the partner of the result."""
        if not isinstance(value, Node) or value.rank < 0:
            return self._lost("a block", value)
        wanted = self.value(shape[0]) if len(shape) == 1 else tuple(shape)
        rank = len(wanted) if isinstance(wanted, tuple) else value.rank
        return value if rank <= value.rank else function("to", value, dtype=value.dtype, rank=rank)

    def _function(self, base: str, name: str, node: ast.Call) -> Any:
        made = self.touched(base, name, node)
        return made if made is not None else self._computed(base, name, node, self.arguments(node))

    def _computed(self, base: str, name: str, node: ast.Call, given: list[Any]) -> Any:  # noqa: C901 - likewise
        match name, given:
            case "program_id", [Node(value=int() as axis)]:
                return program_id(axis, self.grid[axis])
            case "num_programs", [Node(value=int() as axis)]:
                return constant(self.grid[axis])
            case "arange", [Node(value=int() as start), Node(value=int() as end)]:
                return arange(start, end)
            case "full", [tuple() as shape, Node() as value, str() as dtype]:
                return self._full(value, dtype, len(shape))
            case "zeros", [tuple() as shape, str() as dtype]:
                return self._full(constant(0), dtype, len(shape))
            case "where", [Node() as chosen, Node() as a, Node() as b]:
                return function("where", chosen, a, b)
            case "minimum" | "maximum", [Node() as a, Node() as b, *_]:
                return function(name, a, b)
            case "cdiv", [Node() as a, Node() as b]:
                return binary("//", binary("-", binary("+", a, b), constant(1)), b)
            case "multiple_of" | "max_contiguous" | "max_constancy", [value, *_]:
                return value
            case "abs" | "floor" | "ceil", [Node() as a]:
                return function(name, a)
            case "broadcast_to", [value, *_]:
                return self._spread(value, node.args[1:])
            case "cast", [Node() as value, str() as dtype, *_]:
                return function("to", value, dtype=dtype)
        return self._lost(f"{base}.{name}", *given)

    def _full(self, value: Node, dtype: str, rank: int) -> Node:
        """One value everywhere; an array of it is as long as its partner makes it."""
        return function("to", value, dtype=dtype, rank=rank)


def _flat(values: Any) -> Any:
    for one in values:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one
