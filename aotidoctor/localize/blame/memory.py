"""The numbers behind the parameters of a call: integer inputs as they are, buffers as earlier kernels filled them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotidoctor.localize.blame.columns import Column, Grid, Memory, UnknownError
from aotidoctor.localize.blame.computed import Read, reads
from aotidoctor.localize.blame.flow import Store
from aotidoctor.localize.blame.program import Program
from aotidoctor.model.c10 import element_dtype
from aotidoctor.model.contract import LeafSpec, Parameter
from aotidoctor.model.dtypes import contiguous_stride, index_at
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.localization import Element

INTEGERS = frozenset(("int64", "int32", "int16", "int8", "uint8"))
_DEEPEST = 6


class Origins(Memory):
    """A memory that knows which input elements each of its own came from."""

    def origin(self, offset: int) -> tuple[Element, ...]:
        """The input elements behind the one at ``offset``."""
        raise NotImplementedError

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls between the inputs and this memory."""
        raise NotImplementedError


@dataclass(slots=True)
class InputMemory(Origins):
    """An integer input: its values in order, and by offset their places where it is not contiguous."""

    path: str
    shape: tuple[int, ...]
    values: Sequence[int]
    places: Mapping[int, int] | None = None

    def column(self, offsets: Column) -> Column:
        """The elements at the offsets."""
        values, count = self.values, len(self.values)
        if self.places is None:
            return [None if at is None or not 0 <= at < count else values[at] for at in offsets]
        places = self.places
        return [values[places[at]] if at is not None and at in places else None for at in offsets]

    def origin(self, offset: int) -> tuple[Element, ...]:
        """The element itself."""
        at = offset if self.places is None else self.places[offset]
        return (Element(path=self.path, index=tuple(index_at(at, self.shape)), value=self.values[at]),)

    @property
    def calls(self) -> tuple[str, ...]:
        """None."""
        return ()


@dataclass(slots=True)
class BufferMemory(Origins):
    """What a generated kernel stored: each offset with its value, and the iteration that wrote it."""

    kernel: str
    filled: dict[int, tuple[int | None, int, int]]
    made: list[tuple[tuple[tuple[Read, Column], ...], Mapping[str, Origins]]]

    def column(self, offsets: Column) -> Column:
        """The elements at the offsets."""
        filled = self.filled
        return [filled[at][0] if at in filled else None for at in offsets]

    def origin(self, offset: int) -> tuple[Element, ...]:
        """The input elements that the stored value was computed from."""
        _, store, row = self.filled[offset]
        sources, memories = self.made[store]
        return origins_at(sources, memories, row)

    @property
    def calls(self) -> tuple[str, ...]:
        """The kernel that filled the buffer, and those before it."""
        before = [name for _, memories in self.made for memory in memories.values() for name in memory.calls]
        return tuple(dict.fromkeys((*before, self.kernel)))


def origins_at(
    sources: Sequence[tuple[Read, Column]], memories: Mapping[str, Origins], row: int
) -> tuple[Element, ...]:
    """The input elements behind the reads of one iteration."""
    found: dict[Element, None] = {}
    for one, offsets in sources:
        offset = offsets[row]
        if offset is not None:
            found.update(dict.fromkeys(memories[one.parameter].origin(offset)))
    return tuple(found)


class CallMemories:
    """The memories of the parameters of one call, made when they are asked for."""

    def __init__(self, program: Program, at: int, depth: int = 0) -> None:
        self._program = program
        self._at = at
        self._depth = depth
        self._known: dict[str, Origins | None] = {}
        self.given = program.given(at)

    def __call__(self, parameter: str) -> Origins | None:
        """The memory behind ``parameter``; None where its values are not known."""
        if parameter not in self._known:
            # A kernel that reads what it writes ends here, not in a circle.
            self._known[parameter] = None
            self._known[parameter] = self._find(parameter)
        return self._known[parameter]

    def _find(self, parameter: str) -> Origins | None:
        pair = self._program.arguments(self._at).get(parameter)
        if pair is None or self._depth > _DEEPEST:
            return None
        if not pair[0].const:
            return self._stored(self._at, parameter, self) if parameter.startswith("out_ptr") else None
        name = pair[1]
        if self._program.shown_otherwise(name):
            return None
        writer = self._program.writer(name, self._at)
        leaf = self._program.leaves.get(self._program.root(name))
        if writer is None:
            return None if leaf is None else input_memory(leaf, self._program.tensors.get(leaf.path), pair[0])
        return None if leaf is not None else self._written(writer, name)

    def _written(self, writer: int, name: str) -> Origins | None:
        """What the call at ``writer`` put into the buffer ``name``."""
        root = self._program.root(name)
        for parameter, argument in self._program.arguments(writer).values():
            same = parameter.pointer and not parameter.const and self._program.root(argument) == root
            if same and not self._program.shown_otherwise(argument):
                return self._stored(writer, parameter.name, CallMemories(self._program, writer, self._depth + 1))
        return None

    def _stored(self, at: int, parameter: str, memories: CallMemories) -> Origins | None:
        flow = self._program.flow(self._program.call(at).name)
        stores = [one for one in flow.stores if one.parameter == parameter] if flow is not None else []
        if not stores:
            return None
        memory = BufferMemory(kernel=self._program.call(at).name, filled={}, made=[])
        try:
            for store in stores:
                _fill(memory, store, memories)
        except UnknownError:
            return None
        return memory


def _fill(memory: BufferMemory, store: Store, memories: CallMemories) -> None:
    sources = reads(store.value)
    grid = Grid(store.loops, (store.at, store.value), memories.given, memories)
    offsets, values = grid.column(store.at), grid.column(store.value)
    found = {one.parameter: behind for one in sources if (behind := memories(one.parameter)) is not None}
    memory.made.append((tuple((one, grid.column(one.at)) for one in sources), found))
    index = len(memory.made) - 1
    for row, (offset, value) in enumerate(zip(offsets, values, strict=True)):
        if offset is not None:
            memory.filled[offset] = value, index, row


def input_memory(leaf: LeafSpec, tensor: TensorDesc | None, parameter: Parameter) -> InputMemory | None:
    """The values of an input; None where they are not at hand, or where the kernel takes them for another type."""
    if tensor is None or tensor.elements is None or tensor.stride is None:
        return None
    if tensor.dtype != leaf.dtype or tensor.dtype not in INTEGERS or element_dtype(parameter.type) != tensor.dtype:
        return None
    values = tensor.elements()
    if values is None:
        return None
    places = None
    if tensor.stride != contiguous_stride(tensor.shape):
        offsets = [0]
        for size, step in zip(tensor.shape, tensor.stride, strict=True):
            offsets = [start + at * step for start in offsets for at in range(size)]
        places = {offset: at for at, offset in reversed(list(enumerate(offsets)))}
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) != len(values):
        return None
    return InputMemory(path=leaf.path, shape=tensor.shape, values=whole, places=places)
