"""Extract the addresses of a kernel from its text: each access with its index and mask, each assertion, as graphs.

The statements are processed once, whatever the size of the grid. A value is represented by what it depends on, and is
not computed; an unknown call gives a value that is not followed, and only an address that needs it ends the attempt.

The addresses of an access are known without computing one: they are sums of axes, each of which takes every value up
to a bound. ``x0 + 24*x1`` with ``x0`` below 24 covers a run of elements, each once; so it need not be checked by lane.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.index_nodes import (
    Access,
    AddressNode,
    IndexPointer,
    ProgramGrid,
    Unsliceable,
    arange,
    binary_node,
    constant_node,
    function_node,
    insert_dims,
    opaque_node,
    program_id,
)
from aotidoctor.worker.emulation.kernel_source import BY_TEXT, Interval

# Forms of an index: sums of axes.
_LESS = {"<": 1, "<=": 0}
_MORE = {">": 1, ">=": 0}


@record
class ElementForm:
    """Elements ``start`` to ``last``, each at most once, all if ``whole``. Equal forms have equal ``key``s."""

    start: int
    last: int
    whole: bool
    key: tuple[Any, ...]


def mask_bounds(mask: AddressNode | None) -> tuple[dict[int, Interval], dict[int, AddressNode], bool]:
    """The ranges of nodes where a mask holds, the nodes, and whether the mask is nothing but these ranges.

    An empty range: the mask never holds.
    """
    known: dict[int, Interval] = {}
    nodes: dict[int, AddressNode] = {}
    complete = True
    for one in _parts(mask):
        # ``a < 5`` bounds ``a``; other forms do not bound anything.
        compares = len(one.parts) == 2 and one.what in (*_LESS, *_MORE)
        limit = one.parts[1].interval({}) if compares else None
        node = one.parts[0] if limit is not None and limit[0] == limit[1] else None
        before = known.get(id(node)) or node.interval({}) if node is not None else None
        if limit is None or node is None or before is None:
            complete = False
            continue
        if one.what in _LESS:
            known[id(node)] = (before[0], min(limit[0] - _LESS[one.what], before[1]))
        else:
            known[id(node)] = (max(limit[0] + _MORE[one.what], before[0]), before[1])
        nodes[id(node)] = node
    return known, nodes, complete


def _parts(mask: AddressNode | None) -> list[AddressNode]:
    if mask is None:
        return []
    if mask.what == "&":
        return [*_parts(mask.parts[0]), *_parts(mask.parts[1])]
    # ``tl.full([XBLOCK], True, tl.int1)``
    return [] if mask.what == "to" and mask.parts[0].what == "constant" and mask.parts[0].value else [mask]


def index_form(
    index: AddressNode, known: Mapping[int, Interval], nodes: Mapping[int, AddressNode], grid: tuple[int, int, int]
) -> ElementForm | None:
    """The form of an index under a mask that holds ``nodes`` to the ranges ``known``; None where it has none."""
    linear = _linear(index, known)
    if linear is None:
        return None
    start, terms = linear
    runs = {one: known[one][1] + 1 for one in known if known[one][0] == 0 and _is_run(nodes[one])}
    if len(runs) != len(known) or any(one not in terms for one in known):
        # An axis that bounds the lanes and is not in the index: the same elements several times.
        return None
    leaves = {part.what for _, node in terms.values() for part in _leaves(node)}
    if not all(size == 1 or f"program {axis}" in leaves for axis, size in enumerate(grid)):
        # Several programs have the same index.
        return None
    steps = sorted((coefficient, runs.get(one) or node.size, one) for one, (coefficient, node) in terms.items())
    reach, whole = 0, True
    for coefficient, size, _ in steps:
        if size <= 1:
            continue
        if coefficient <= reach:
            return None
        whole = whole and coefficient == reach + 1
        reach += coefficient * (size - 1)
    if any(size <= 0 for _, size, _ in steps):
        return ElementForm(start=start, last=start - 1, whole=True, key=())
    return ElementForm(start=start, last=start + reach, whole=whole, key=(start, *steps))


def _leaves(node: AddressNode) -> list[AddressNode]:
    return [one for part in node.parts for one in _leaves(part)] if node.parts else [node]


def _is_run(node: AddressNode) -> bool:
    """Whether a node takes every value from 0 on, each in one lane."""
    linear = _linear(node, {})
    if linear is None or linear[0] != 0:
        return False
    reach = 0
    for coefficient, size in sorted((coefficient, one.size) for coefficient, one in linear[1].values()):
        if size > 1 and coefficient != reach + 1:
            return False
        reach += coefficient * (size - 1)
    return True


def _linear(node: AddressNode, stops: Mapping[int, Any]) -> tuple[int, dict[int, tuple[int, AddressNode]]] | None:
    """``(constant, {axis: (coefficient, node)})``; axes are the nodes of ``stops``, programs and ranges."""
    if id(node) in stops:
        return 0, {id(node): (1, node)}
    match node.what:
        case "constant" if isinstance(node.value, int):
            return int(node.value), {}
        case "arange":
            return int(node.value), {id(node): (1, node)}
        case "program 0" | "program 1" | "program 2":
            return 0, {hash(node.what): (1, node)}
        case "reshape":
            return _linear(node.parts[0], stops)
        case "to" if node.dtype in ("i32", "i64") and node.interval({}) is not None:
            return _linear(node.parts[0], stops)
        case "+" | "-" | "*":
            left, right = (_linear(part, stops) for part in node.parts)
            if left is None or right is None:
                return None
            if node.what == "*":
                if left[1] and right[1]:
                    return None
                factor, (start, terms) = (left[0], right) if not left[1] else (right[0], left)
                return factor * start, {one: (factor * by, what) for one, (by, what) in terms.items()}
            sign = 1 if node.what == "+" else -1
            terms = dict(left[1])
            for one, (coefficient, what) in right[1].items():
                terms[one] = (terms.get(one, (0, what))[0] + sign * coefficient, what)
            return left[0] + sign * right[0], terms
    return None


# Expressions.
OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
# Functions that touch no memory; others may.
_PURE = ("tl", "tl_math", "triton_helpers", "libdevice", "math")


def _flat(values: Any) -> Any:
    for one in values:
        if isinstance(one, tuple):
            yield from _flat(one)
        else:
            yield one


# Rounds of the loops of a kernel that are processed.
MOST_ROUNDS = 256
_MEMORY = ("make_block_ptr", "make_tensor_descriptor", "atomic_cas", "atomic_xchg", "advance")


@dataclass(slots=True, kw_only=True)
class Slicer:
    """Process the function of a kernel over ``grid`` with the values of its parameters, by their ``names``.

    ``load`` gives the values of a load lane by lane, ``span`` the least and the greatest of them.
    """

    grid: tuple[int, int, int]
    load: Callable[[Access, str, AddressNode | None, ProgramGrid], Any]
    span: Callable[[Access, str, AddressNode | None], Interval | None]
    pointers: Mapping[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    rounds: int = 0

    def run(self, body: list[ast.stmt]) -> None:
        """Note every access. Raises ``Unsliceable``."""
        for node in body:
            match node:
                case ast.Assign(targets=[target], value=value):
                    self._bind(target, self.value(value))
                case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                    self._bind(target, self.value(value))
                case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                    made = self._combine(OPERATORS.get(type(op), "?"), self.names.get(name), self.value(value))
                    self._bind(target, made)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.Expr(value=value):
                    self.value(value)
                case ast.For(target=ast.Name(id=name), iter=ast.Call() as over, body=inner, orelse=[]):
                    for at in self._range(over):
                        self.names[name] = constant_node(at)
                        self.run(inner)
                case ast.If(test=test, body=inner, orelse=other):
                    chosen = self.value(test)
                    if not isinstance(chosen, AddressNode) or chosen.what != "constant":
                        raise Unsliceable("a branch")
                    self.run(inner if chosen.value else other)
                case _:
                    raise Unsliceable(f"a statement of the kind {type(node).__name__}")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple):
            parts = value if isinstance(value, tuple) and len(value) == len(target.elts) else None
            for at, one in enumerate(target.elts):
                self._bind(one, parts[at] if parts is not None else opaque_node("one of several results"))
        else:
            raise Unsliceable("an assignment to more than a name")

    def _range(self, call: ast.Call) -> range:
        if ast.unparse(call.func) not in ("tl.range", "range", "tl.static_range"):
            raise Unsliceable("a loop over more than numbers")
        values = [self.value(one) for one in call.args]
        spans = [one.interval({}) if isinstance(one, AddressNode) else None for one in values]
        if any(span is None or span[0] != span[1] for span in spans):
            raise Unsliceable("a loop whose ends follow from data")
        found = range(*(span[0] for span in spans if span is not None))
        self.rounds += len(found)
        if self.rounds > MOST_ROUNDS:
            raise Unsliceable(f"loops of more than {MOST_ROUNDS} rounds")
        return found

    def _touched(self, base: str, name: str, node: ast.Call) -> AddressNode | None:
        """The value of a call that accesses memory or asserts. Raises ``Unsliceable`` for accesses of other forms."""
        if base == "tl" and name in ("load", "store", "atomic_add", "atomic_max", "atomic_min"):
            return self._access(name, node)
        if name in _MEMORY or name.startswith("atomic") or "load" in name or "store" in name:
            raise Unsliceable(f"{base}.{name}")
        if base == "tl" and name == "device_assert":
            given = self._arguments(node)
            if not isinstance(given[0], AddressNode):
                raise Unsliceable("an assertion")
            message = given[1] if len(given) > 1 and isinstance(given[1], str) else ""
            self._note("assert", node, mask=given[0], message=message)
            return opaque_node("an assertion")
        return None

    def _access(self, name: str, node: ast.Call) -> AddressNode:
        words = {one.arg: one.value for one in node.keywords}
        values = [self.value(one) for one in node.args]

        def argument(at: int, word: str) -> Any:
            return values[at] if len(values) > at else self.value(words[word]) if word in words else None

        pointer = values[0] if values else None
        mask = argument(1 if name == "load" else 2, "mask")
        if not isinstance(pointer, IndexPointer) or pointer.offset.rank < 0:
            offset = pointer.offset if isinstance(pointer, IndexPointer) else None
            raise Unsliceable(offset.what if offset is not None else "a pointer that is computed")
        mask = mask if isinstance(mask, AddressNode) else None
        if mask is not None and mask.rank < 0:
            raise Unsliceable(mask.what)
        kind = "atomic" if name.startswith("atomic") else name
        access = self._note(kind, node, argument=pointer.argument, index=pointer.offset, mask=mask)
        if name != "load":
            return opaque_node("what an atomic returns")
        dtype, other = self.pointers[access.argument], argument(2, "other")
        if dtype == "bf16":
            return opaque_node("a loaded bfloat16")
        other = other if isinstance(other, AddressNode) else None
        # The value is read where it is needed.
        return AddressNode(
            what=f"a load through {access.argument}",
            dtype=dtype,
            rank=max(one.rank for one in (pointer.offset, mask, other) if one is not None),
            make=lambda grid, _: self.load(access, dtype, other, grid),
            find=lambda: self.span(access, dtype, other),
        )

    def _note(self, what: str, node: ast.AST, **facts: Any) -> Access:
        made = Access(what=what, line=getattr(node, "lineno", 0), order=len(self.accesses), **facts)
        self.accesses.append(made)
        return made

    # Expressions.

    def value(self, node: ast.expr) -> Any:
        """An ``AddressNode``, an ``IndexPointer``, a tuple of these, a text or None. Raises ``Unsliceable``."""
        match node:
            case ast.Constant(value=value):
                return constant_node(value) if isinstance(value, bool | int | float) else value
            case ast.Name(id=name):
                return self.names.get(name, opaque_node(name))
            case ast.BinOp(left=left, op=op, right=right):
                return self._combine(OPERATORS.get(type(op), "?"), self.value(left), self.value(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self.value(left), self.value(right)
                # Parameters may be texts or None, and decide what the kernel does.
                if (isinstance(op, ast.Is | ast.IsNot) and b is None) or (isinstance(a, str) and isinstance(b, str)):
                    return constant_node((a == b) == isinstance(op, ast.Is | ast.Eq))
                return self._combine(OPERATORS.get(type(op), "?"), a, b)
            case ast.UnaryOp(op=op, operand=inner):
                return self._unary(op, self.value(inner))
            case ast.IfExp(test=test, body=body, orelse=other) if (chosen := self._is_type(test)) is not None:
                return self.value(body if chosen else other)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(one) for one in parts)
            case ast.Subscript(value=inner, slice=at):
                return self._subscript(self.value(inner), at)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr=name) if name in BY_TEXT:
                return BY_TEXT[name]
        return opaque_node(ast.unparse(node)[:60])

    def _is_type(self, test: ast.expr) -> bool | None:
        """``x.dtype is tl.float32``, as Inductor writes it for remainders."""
        match test:
            case ast.Compare(left=ast.Attribute(value=inner, attr="dtype"), ops=[ast.Is()], comparators=[other]):
                value, kind = self.value(inner), self.value(other)
                if isinstance(value, AddressNode) and value.rank >= 0 and isinstance(kind, str):
                    return value.dtype == kind
        return None

    def _combine(self, name: str, a: Any, b: Any) -> Any:
        """``a + b`` and other binary operations on results of ``value``."""
        if isinstance(a, IndexPointer) and isinstance(b, AddressNode) and name in ("+", "-"):
            begins = name == "+" and a.offset.what == "constant" and a.offset.value == 0
            return IndexPointer(argument=a.argument, offset=b if begins else binary_node(name, a.offset, b))
        if isinstance(b, IndexPointer) and isinstance(a, AddressNode) and name == "+":
            return IndexPointer(argument=b.argument, offset=binary_node(name, b.offset, a))
        if not isinstance(a, AddressNode) or not isinstance(b, AddressNode) or name == "?":
            return self._lost("an operation on pointers", a, b)
        return binary_node(name, a, b)

    def _lost(self, why: str, *values: Any) -> AddressNode:
        """A value that is not followed. Raises ``Unsliceable`` where a pointer would be lost that way."""
        if any(isinstance(one, IndexPointer) for one in _flat(values)):
            raise Unsliceable(why)
        return opaque_node(why)

    def _unary(self, op: ast.unaryop, value: Any) -> Any:
        if not isinstance(value, AddressNode):
            return self._lost("an operation on pointers", value)
        match op:
            case ast.USub():
                return binary_node("-", constant_node(0), value)
            case ast.UAdd():
                return value
            case ast.Not():
                return function_node("not", value, dtype="i1")
            case _:
                return function_node("invert", value)

    def _subscript(self, value: Any, at: ast.expr) -> Any:
        parts = at.elts if isinstance(at, ast.Tuple) else [at]
        plain = [ast.unparse(one) for one in parts]
        if isinstance(value, tuple) and len(plain) == 1 and plain[0].isdigit() and int(plain[0]) < len(value):
            return value[int(plain[0])]
        if not isinstance(value, AddressNode) or any(one not in (":", "None") for one in plain):
            return self._lost("a part of a block", value)
        if value.rank < 0 or sum(one == ":" for one in plain) != value.rank:
            return opaque_node(value.what if value.rank < 0 else "a part of a block")
        return value if plain == [":"] else insert_dims(value, tuple(0 if one == ":" else None for one in plain))

    def _call(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Attribute(value=ast.Name(id=base), attr=name) if base in _PURE and base not in self.names:
                made = self._touched(base, name, node)
                return made if made is not None else self._computed(base, name, node, self._arguments(node))
            case ast.Attribute(value=inner, attr="to"):
                value = self.value(inner)
                dtype = self.value(node.args[0]) if node.args else None
                if not isinstance(value, AddressNode) or not isinstance(dtype, str):
                    return self._lost("a cast", value)
                return value if value.dtype == dtype else function_node("to", value, dtype=dtype)
            case ast.Name(id="min" | "max" as name) if len(node.args) == 2 and not node.keywords:
                given = self._arguments(node)
                if all(isinstance(one, AddressNode) for one in given):
                    return function_node(f"{name}imum", *given)
            case ast.Attribute(value=inner, attr="broadcast_to"):
                return self._spread(self.value(inner), node.args)
        self._lost(f"a call of {ast.unparse(node.func)[:40]}", *self._arguments(node))
        return opaque_node(f"{ast.unparse(node.func)[:40]}()")

    def _arguments(self, node: ast.Call) -> list[Any]:
        """All arguments of a call, keyword arguments last."""
        return [*(self.value(one) for one in node.args), *(self.value(one.value) for one in node.keywords)]

    def _spread(self, value: Any, shape: list[ast.expr]) -> Any:
        """``tl.broadcast_to``: as many dims as ``shape`` has; their lengths follow from the partner of the result."""
        if not isinstance(value, AddressNode) or value.rank < 0:
            return self._lost("a block", value)
        dims = self.value(shape[0]) if len(shape) == 1 else tuple(shape)
        rank = len(dims) if isinstance(dims, tuple) else value.rank
        return value if rank <= value.rank else function_node("to", value, dtype=value.dtype, rank=rank)

    def _computed(self, base: str, name: str, node: ast.Call, given: list[Any]) -> Any:
        match name, given:
            case "program_id", [AddressNode(value=int() as axis)]:
                return program_id(axis, self.grid[axis])
            case "num_programs", [AddressNode(value=int() as axis)]:
                return constant_node(self.grid[axis])
            case "arange", [AddressNode(value=int() as start), AddressNode(value=int() as end)]:
                return arange(start, end)
            case "full", [tuple() as shape, AddressNode() as value, str() as dtype]:
                # One value everywhere: as long as its partner makes it.
                return function_node("to", value, dtype=dtype, rank=len(shape))
            case "zeros", [tuple() as shape, str() as dtype]:
                return function_node("to", constant_node(0), dtype=dtype, rank=len(shape))
            case ("where", [AddressNode(), AddressNode(), AddressNode()]) | ("abs" | "floor" | "ceil", [AddressNode()]):
                return function_node(name, *given)
            case "minimum" | "maximum", [AddressNode() as a, AddressNode() as b, *_]:
                return function_node(name, a, b)
            case "cdiv", [AddressNode() as a, AddressNode() as b]:
                return binary_node("//", binary_node("-", binary_node("+", a, b), constant_node(1)), b)
            case "multiple_of" | "max_contiguous" | "max_constancy", [value, *_]:
                return value

            case "broadcast_to", [value, *_]:
                return self._spread(value, node.args[1:])
            case "cast", [AddressNode() as value, str() as dtype, *_]:
                return function_node("to", value, dtype=dtype)
        return self._lost(f"{base}.{name}", *given)
