"""The addresses of a kernel cut out of its text: each access with its index and mask, each assertion, as graphs.

The statements are gone through once, whatever the size of the grid. What a value is made of is noted, not computed; a
call that is not known gives a value that is not followed, and only an address that needs it ends the attempt.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.nodes import (
    Grid,
    Interval,
    Node,
    Unsliceable,
    arange,
    binary,
    constant,
    function,
    opaque,
    program_id,
    reshaped,
)

# Rounds of the loops of a kernel that are gone through.
MOST_ROUNDS = 256
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_DTYPES = {
    "int1": "i1", "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "uint32": "u32", "int64": "i64",
    "uint64": "u64", "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16",
}  # fmt: skip
# Functions that touch no memory; others may.
_PURE = ("tl", "tl_math", "triton_helpers", "libdevice", "math")
_MEMORY = ("make_block_ptr", "make_tensor_descriptor", "atomic_cas", "atomic_xchg", "advance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ptr:
    """A pointer: the kernel's argument, and how many elements behind its beginning; ``rank`` of its block."""

    argument: str
    offset: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """``what`` is ``load``, ``store``, ``atomic`` or ``assert``; of the last only ``mask`` is used: what must hold.

    ``line`` is the line of the kernel's text, ``order`` counts in the order of execution.
    """

    what: str
    line: int
    order: int
    argument: str = ""
    index: Node | None = None
    mask: Node | None = None
    message: str = ""


@dataclass(slots=True, kw_only=True)
class Slicer:
    """Goes through the function of a kernel with what its parameters are.

    ``load`` gives the values of a load lane by lane, ``span`` the least and the greatest of them.
    """

    grid: tuple[int, int, int]
    load: Callable[[Access, str, Node | None, Grid], Any]
    span: Callable[[Access, str, Node | None], Interval | None]
    pointers: Mapping[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    rounds: int = 0

    def run(self, body: list[ast.stmt]) -> None:
        """Note every access. Raises ``Unsliceable``."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, self._value(value))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self._bind(target, self._value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                made = self._combine(_OPERATORS.get(type(op), "?"), self.names.get(name), self._value(value))
                self._bind(target, made)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._value(value)
            case ast.For(target=ast.Name(id=name), iter=ast.Call() as over, body=body, orelse=[]):
                for at in self._range(over):
                    self.names[name] = constant(at)
                    self.run(body)
            case ast.If(test=test, body=body, orelse=other):
                chosen = self._value(test)
                if not isinstance(chosen, Node) or chosen.what != "constant":
                    raise Unsliceable("a branch")
                self.run(body if chosen.value else other)
            case _:
                raise Unsliceable(f"a statement of the kind {type(node).__name__}")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple):
            parts = value if isinstance(value, tuple) and len(value) == len(target.elts) else None
            for at, one in enumerate(target.elts):
                self._bind(one, parts[at] if parts is not None else opaque("one of several results"))
        else:
            raise Unsliceable("an assignment to more than a name")

    def _range(self, call: ast.Call) -> range:
        if ast.unparse(call.func) not in ("tl.range", "range", "tl.static_range"):
            raise Unsliceable("a loop over more than numbers")
        values = [self._value(one) for one in call.args]
        if any(not isinstance(one, Node) or one.span is None or one.span[0] != one.span[1] for one in values):
            raise Unsliceable("a loop whose ends follow from data")
        found = range(*(one.span[0] for one in values))
        self.rounds += len(found)
        if self.rounds > MOST_ROUNDS:
            raise Unsliceable(f"loops of more than {MOST_ROUNDS} rounds")
        return found

    def _value(self, node: ast.expr) -> Any:  # noqa: C901 - one case for each form
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return constant(value)
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.names.get(name, opaque(name))
            case ast.BinOp(left=left, op=op, right=right):
                return self._combine(_OPERATORS.get(type(op), "?"), self._value(left), self._value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._combine(_OPERATORS.get(type(op), "?"), self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=inner):
                return self._unary(op, self._value(inner))
            case ast.IfExp(test=test, body=body, orelse=other):
                chosen = self._is_type(test)
                return self._value(body if chosen else other) if chosen is not None else opaque(ast.unparse(node)[:60])
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self._value(one) for one in parts)
            case ast.Subscript(value=inner, slice=at):
                return self._subscript(self._value(inner), at)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=inner, attr="shape" | "dtype"):
                return opaque(ast.unparse(node)[:60])
            case ast.Attribute():
                return _DTYPES.get(node.attr, opaque(ast.unparse(node)[:60]))
        return opaque(ast.unparse(node)[:60])

    def _is_type(self, test: ast.expr) -> bool | None:
        """``x.dtype is tl.float32``, as Inductor writes it for remainders."""
        match test:
            case ast.Compare(left=ast.Attribute(value=inner, attr="dtype"), ops=[ast.Is()], comparators=[wanted]):
                value, kind = self._value(inner), self._value(wanted)
                if isinstance(value, Node) and value.rank >= 0 and isinstance(kind, str):
                    return value.dtype == kind
        return None

    def _combine(self, name: str, a: Any, b: Any) -> Any:
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
                return self._known(base, name, node)
            case ast.Attribute(value=inner, attr="to"):
                return self._to(self._value(inner), node)
            case ast.Attribute(value=inner, attr="broadcast_to"):
                return self._spread(self._value(inner), node.args)
        self._lost(f"a call of {ast.unparse(node.func)[:40]}", *self._arguments(node))
        return opaque(f"{ast.unparse(node.func)[:40]}()")

    def _arguments(self, node: ast.Call) -> list[Any]:
        return [*(self._value(one) for one in node.args), *(self._value(one.value) for one in node.keywords)]

    def _to(self, value: Any, node: ast.Call) -> Any:
        wanted = self._value(node.args[0]) if node.args else None
        if not isinstance(value, Node) or not isinstance(wanted, str):
            return self._lost("a cast", value)
        return value if value.dtype == wanted else function("to", value, dtype=wanted)

    def _spread(self, value: Any, shape: list[ast.expr]) -> Any:
        """``tl.broadcast_to``: as many dims as asked for; how long they are follows from the partner of the result."""
        if not isinstance(value, Node) or value.rank < 0:
            return self._lost("a block", value)
        wanted = self._value(shape[0]) if len(shape) == 1 else tuple(shape)
        rank = len(wanted) if isinstance(wanted, tuple) else value.rank
        return value if rank <= value.rank else function("to", value, dtype=value.dtype, rank=rank)

    def _known(self, base: str, name: str, node: ast.Call) -> Any:
        if base == "tl" and name in ("load", "store", "atomic_add", "atomic_max", "atomic_min"):
            return self._access(name, node)
        if name in _MEMORY or name.startswith("atomic") or "load" in name or "store" in name:
            raise Unsliceable(f"{base}.{name}")
        if base == "tl" and name == "device_assert":
            return self._assertion(node)
        return self._computed(base, name, node, self._arguments(node))

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
            case "abs", [Node() as a]:
                return function("abs", a)
            case "floor" | "ceil", [Node() as a]:
                return function(name, a)
            case "broadcast_to", [value, *_]:
                return self._spread(value, node.args[1:])
            case "cast", [Node() as value, str() as dtype, *_]:
                return function("to", value, dtype=dtype)
        return self._lost(f"{base}.{name}", *given)

    def _full(self, value: Node, dtype: str, rank: int) -> Node:
        """One value everywhere; an array of it is as long as its partner makes it."""
        return function("to", value, dtype=dtype, rank=rank)

    def _assertion(self, node: ast.Call) -> Node:
        given = self._arguments(node)
        if not isinstance(given[0], Node):
            raise Unsliceable("an assertion")
        message = given[1] if len(given) > 1 and isinstance(given[1], str) else ""
        self._note("assert", node, mask=given[0], message=message)
        return opaque("an assertion")

    def _access(self, name: str, node: ast.Call) -> Node:
        words = {one.arg: one.value for one in node.keywords}
        values = [self._value(one) for one in node.args]
        pointer = values[0] if values else None
        at = 1 if name == "load" else 2
        mask = values[at] if len(values) > at else self._value(words["mask"]) if "mask" in words else None
        if not isinstance(pointer, Ptr) or pointer.offset.rank < 0:
            raise Unsliceable(pointer.offset.what if isinstance(pointer, Ptr) else "a pointer that is computed")
        if isinstance(mask, Node) and mask.rank < 0:
            raise Unsliceable(mask.what)
        kind = "atomic" if name.startswith("atomic") else name
        access = self._note(
            kind, node, argument=pointer.argument, index=pointer.offset, mask=mask if isinstance(mask, Node) else None
        )
        if name != "load":
            return opaque("what an atomic returns")
        other = values[2] if len(values) > 2 else self._value(words["other"]) if "other" in words else None
        return self._loaded(access, other if isinstance(other, Node) else None)

    def _note(self, what: str, node: ast.AST, **facts: Any) -> Access:
        made = Access(what=what, line=getattr(node, "lineno", 0), order=len(self.accesses), **facts)
        self.accesses.append(made)
        return made

    def _loaded(self, access: Access, other: Node | None) -> Node:
        """The value of a load, read where it is needed."""
        dtype = self.pointers[access.argument]
        index = access.index
        if index is None or dtype == "bf16":
            return opaque("a loaded bfloat16")
        parts = tuple(one for one in (index, access.mask, other) if one is not None)
        rank = max(one.rank for one in parts)

        def make(grid: Grid, _: tuple[Any, ...]) -> Any:
            return self.load(access, dtype, other, grid)

        what = f"a load through {access.argument}"
        return Node(what=what, dtype=dtype, rank=rank, make=make, find=lambda: self.span(access, dtype, other))


def _flat(values: Any) -> Any:
    for one in values:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one
