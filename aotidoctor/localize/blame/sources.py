"""Which inputs a value was computed from, through the calls in between, where no element can be named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aotidoctor.localize.blame.computed import reads
from aotidoctor.localize.blame.program import GENERATED, Program
from aotidoctor.model.record import record

_MOST = 3
_DEEPEST = 12


@record
class Sources:
    """Paths of inputs, or names of constants, and the calls in between, the last one first; empty when not known."""

    paths: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


@dataclass(slots=True)
class _Search:
    program: Program
    paths: dict[str, None] = field(default_factory=dict)
    through: dict[str, None] = field(default_factory=dict)
    seen: set[tuple[str, int]] = field(default_factory=set)
    lost: bool = False

    def tensor(self, name: str, at: int, depth: int) -> None:
        """Follow the tensor that the call at ``at`` reads."""
        root = self.program.root(name)
        if (root, at) in self.seen:
            return
        self.seen.add((root, at))
        writer = self.program.writer(name, at)
        if writer is not None and depth < _DEEPEST:
            self.through[self.program.call(writer).name] = None
            for one in self._behind(writer, root):
                self.tensor(one, writer, depth + 1)
        elif root in self.program.leaves:
            self.paths[self.program.leaves[root].path] = None
        elif root in self.program.constants:
            self.paths[self.program.constants[root].fqn] = None
        else:
            self.lost = True

    def found(self) -> Sources:
        """What was followed to the end, if it is few."""
        if self.lost or not 0 < len(self.paths) <= _MOST:
            return Sources()
        return Sources(paths=tuple(self.paths), through=tuple(self.through))

    def _behind(self, writer: int, root: str) -> Sequence[str]:
        """What the call at ``writer`` made the tensor of: what it stores there, else all that it reads."""
        call, arguments = self.program.call(writer), self.program.arguments(writer)
        flow = self.program.flow(call.name) if call.kind in GENERATED else None
        own = {key for key, (one, name) in arguments.items() if one.pointer and self.program.root(name) == root}
        stored = [store.value for store in flow.stores if store.parameter in own] if flow is not None else []
        named = {one.parameter for value in stored for one in reads(value)}
        if named and all(reads(value) for value in stored):
            return [arguments[key][1] for key in named if key in arguments and key not in own]
        return self.program.taken(writer)


def sources_of(program: Program, at: int, parameters: Sequence[str]) -> Sources:
    """Where the values behind ``parameters`` of the call at ``at`` come from."""
    search = _Search(program=program)
    arguments = program.arguments(at)
    for parameter in parameters:
        pair = arguments.get(parameter)
        if pair is None:
            return Sources()
        search.tensor(pair[1], at, 0)
    return search.found()


def tensor_sources(program: Program, at: int, name: str) -> Sources:
    """Where the tensor ``name`` that the call at ``at`` reads comes from."""
    search = _Search(program=program)
    search.tensor(name, at, 0)
    return search.found()
