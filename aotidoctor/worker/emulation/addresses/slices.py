"""The addresses of a kernel cut out of its text: each access with its index and mask, each assertion, as graphs.

The statements are gone through once, whatever the size of the grid.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.worker.emulation.addresses.accesses import Access, Ptr
from aotidoctor.worker.emulation.addresses.expressions import OPERATORS, Expressions
from aotidoctor.worker.emulation.addresses.nodes import Grid, Node, Unsliceable, constant, opaque
from aotidoctor.worker.emulation.dtypes import Interval

# Rounds of the loops of a kernel that are gone through.
MOST_ROUNDS = 256
_MEMORY = ("make_block_ptr", "make_tensor_descriptor", "atomic_cas", "atomic_xchg", "advance")


@dataclass(slots=True, kw_only=True)
class Slicer(Expressions):
    """Goes through the function of a kernel with what its parameters are.

    ``load`` gives the values of a load lane by lane, ``span`` the least and the greatest of them.
    """

    load: Callable[[Access, str, Node | None, Grid], Any]
    span: Callable[[Access, str, Node | None], Interval | None]
    pointers: Mapping[str, str]
    accesses: list[Access] = field(default_factory=list)
    rounds: int = 0

    def run(self, body: list[ast.stmt]) -> None:
        """Note every access. Raises ``Unsliceable``."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._bind(target, self.value(value))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self._bind(target, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                made = self.combine(OPERATORS.get(type(op), "?"), self.names.get(name), self.value(value))
                self._bind(target, made)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self.value(value)
            case ast.For(target=ast.Name(id=name), iter=ast.Call() as over, body=body, orelse=[]):
                for at in self._range(over):
                    self.names[name] = constant(at)
                    self.run(body)
            case ast.If(test=test, body=body, orelse=other):
                chosen = self.value(test)
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
        values = [self.value(one) for one in call.args]
        spans = [one.interval({}) if isinstance(one, Node) else None for one in values]
        if any(span is None or span[0] != span[1] for span in spans):
            raise Unsliceable("a loop whose ends follow from data")
        found = range(*(span[0] for span in spans if span is not None))
        self.rounds += len(found)
        if self.rounds > MOST_ROUNDS:
            raise Unsliceable(f"loops of more than {MOST_ROUNDS} rounds")
        return found

    def touched(self, base: str, name: str, node: ast.Call) -> Node | None:
        """As ``Expressions`` says. Raises ``Unsliceable`` for accesses of other forms."""
        if base == "tl" and name in ("load", "store", "atomic_add", "atomic_max", "atomic_min"):
            return self._access(name, node)
        if name in _MEMORY or name.startswith("atomic") or "load" in name or "store" in name:
            raise Unsliceable(f"{base}.{name}")
        if base == "tl" and name == "device_assert":
            return self._assertion(node)
        return None

    def _assertion(self, node: ast.Call) -> Node:
        given = self.arguments(node)
        if not isinstance(given[0], Node):
            raise Unsliceable("an assertion")
        message = given[1] if len(given) > 1 and isinstance(given[1], str) else ""
        self._note("assert", node, mask=given[0], message=message)
        return opaque("an assertion")

    def _access(self, name: str, node: ast.Call) -> Node:
        words = {one.arg: one.value for one in node.keywords}
        values = [self.value(one) for one in node.args]

        def given(at: int, word: str) -> Any:
            return values[at] if len(values) > at else self.value(words[word]) if word in words else None

        pointer = values[0] if values else None
        mask = given(1 if name == "load" else 2, "mask")
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
        other = given(2, "other")
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
