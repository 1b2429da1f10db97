"""Model the package as a program: calls in order, the tensors they name, who wrote what, and the numbers behind.

Everything goes by name, from the contract. Memory holds integer inputs as they are, and buffers as earlier kernels
filled them. Where no element can be named, the inputs that a value was computed from are found through the calls in
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aotidoctor.kernels import kernel_flow
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.kernels.value_trees import Column, ElementMemory, IterationGrid, KernelFlow, Read, UnknownError, reads
from aotidoctor.localize.call_timeline import text_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import (
    GENERATED,
    ConstantSpec,
    KernelBody,
    KernelCall,
    KernelParameter,
    LeafSpec,
    ModelContract,
    earlier_names,
)
from aotidoctor.model.expr import evaluate, solve
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.localization import Element
from aotidoctor.model.torch_names import contiguous_stride, element_dtype, index_at

# Calls and tensors.
_HANDLE = "_handle"
# The file begins on this line.
_OPENING = "async_compile.triton("


@dataclass(slots=True)
class PackageProgram:
    """Static facts of one model with the inputs of the call; flows of kernels are read when first needed."""

    case: Case
    contract: ModelContract
    leaves: Mapping[str, LeafSpec]
    constants: Mapping[str, ConstantSpec]
    tensors: Mapping[str, TensorDesc]
    bodies: Mapping[str, KernelBody]
    sizes: Mapping[str, int]
    _flows: dict[str, KernelFlow | None] = field(default_factory=dict)

    def calls(self, kernel: str) -> tuple[int, ...]:
        """Places of the calls of ``kernel``."""
        return tuple(at for at, call in enumerate(self.contract.kernels) if call.name == kernel)

    def call(self, at: int) -> KernelCall:
        """The call at a place."""
        return self.contract.kernels[at]

    def flow(self, kernel: str) -> KernelFlow | None:
        """The statements of the kernel; None when its source is not in the package."""
        if kernel not in self._flows:
            body = self.bodies.get(kernel)
            text = text_of(self.case.model, body) if body is not None else None
            self._flows[kernel] = None
            if body is not None and text is not None and body.kind in ("cpp", "triton"):
                pointers = frozenset(one.name for one in body.parameters if one.pointer)
                follow = kernel_flow.follow_cpp if body.kind == "cpp" else kernel_flow.follow_triton
                self._flows[kernel] = follow(text, body.line, pointers)
        return self._flows[kernel]

    def first_source_line(self, kernel: str) -> int | None:
        """The line of the wrapper where the file that a Triton kernel was compiled from begins, counted from 1."""
        body = self.bodies.get(kernel)
        text = text_of(self.case.model, body) if body is not None and body.kind == "triton" else None
        if body is None or text is None:
            return None
        opening = next((at for at, line in enumerate(text.split("\n")) if _OPENING in line), None)
        return body.line + opening if opening is not None else None

    def arguments(self, at: int) -> Mapping[str, tuple[KernelParameter, str]]:
        """Parameter name to itself and the argument of the call at ``at``; empty where they do not pair up."""
        call = self.call(at)
        body = self.bodies.get(call.name)
        if body is None or not body.parameters or len(call.arguments) < len(body.parameters):
            return {}
        if body.kind == "cpp" and len(call.arguments) != len(body.parameters):
            return {}
        return {one.name: (one, name) for one, name in zip(body.parameters, call.arguments, strict=False)}

    def numbers_given(self, at: int) -> dict[str, int]:
        """The numbers that the call at ``at`` hands to its kernel, as far as the inputs tell them."""
        found = {}
        for parameter, text in self.arguments(at).values():
            value = None if parameter.pointer else evaluate(parse_expr(text), self.sizes)
            if value is not None:
                found[parameter.name] = value
        return found

    def root(self, name: str) -> str:
        """The name that the memory of ``name`` first had."""
        *_, first = earlier_names(name, self.contract.renamed)
        return first

    def is_view(self, name: str) -> bool:
        """Whether ``name`` is a view: its offsets are not those of the memory below."""
        return any(one in self.contract.views for one in earlier_names(name, self.contract.renamed))

    def writer(self, name: str, before: int) -> int | None:
        """The last call before ``before`` that writes to the memory of ``name``."""
        root = self.root(name)
        for at in range(before - 1, -1, -1):
            if root in {self.root(one) for one in self.tensors_written(at)}:
                return at
        return None

    def tensors_written(self, at: int) -> tuple[str, ...]:
        """Tensors that the call at ``at`` writes to or makes."""
        call = self.call(at)
        if call.kind in GENERATED:
            return tuple(name for one, name in self.arguments(at).values() if one.pointer and not one.const)
        made = [name[1:].removesuffix(_HANDLE) for name in call.arguments if name.startswith("&")]
        # `aoti_torch_cpu__embedding_bag` makes its results, and is no in-place operator.
        in_place = call.name.endswith(("_out", "_")) or ("__" in call.name and not made)
        return (*made, *call.arguments[:1]) if in_place or call.kind == "custom" else tuple(made)

    def taken(self, at: int) -> tuple[str, ...]:
        """Tensors that the call at ``at`` reads."""
        call = self.call(at)
        if call.kind in GENERATED:
            arguments = self.arguments(at).values()
            return tuple(name for one, name in arguments if one.pointer and (one.const or "in_out" in one.name))
        written = set(self.tensors_written(at))
        pairs = [(name, self.root(name)) for name in call.arguments if name not in written]
        return tuple(
            name for name, root in pairs if root in self.leaves or root in self.constants or root.startswith("buf")
        )


def program_of(case: Case) -> PackageProgram | None:
    """The program; None without a contract."""
    contract = case.contract
    if contract is None:
        return None
    tensors = case.tensors
    # The value of each symbol in this call: as the wrapper computes it, from the first dim that shows it.
    sizes: dict[str, int] = {}
    for leaf in contract.leaves:
        tensor = tensors.get(leaf.path)
        shape = tensor.shape if tensor is not None else ()
        for dim, size in zip(leaf.dims or (), shape, strict=False):
            known = solve(dim.expr, size) if dim.expr is not None and dim.static is None else None
            if known is not None:
                sizes.setdefault(*known)
    return PackageProgram(
        case=case,
        contract=contract,
        leaves={leaf.generated_name: leaf for leaf in contract.leaves if leaf.generated_name is not None},
        constants={constant.name: constant for constant in contract.constants},
        tensors=tensors,
        bodies={body.name: body for body in contract.bodies},
        sizes=sizes,
    )


# Numbers behind the parameters of a call.
INTEGERS = frozenset(("int64", "int32", "int16", "int8", "uint8"))
_DEEPEST_FILL = 6


@dataclass(slots=True)
class InputMemory(ElementMemory):
    """An integer input: its values in order, and by offset their places where it is not contiguous."""

    path: str
    shape: tuple[int, ...]
    values: Sequence[int]
    places: Mapping[int, int] | None = None
    # An input has none before it.
    calls: tuple[str, ...] = ()

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


@dataclass(slots=True)
class BufferMemory(ElementMemory):
    """A buffer that a generated kernel filled: each offset with its value, and the iteration that wrote it."""

    kernel: str
    filled: dict[int, tuple[int | None, int, int]]
    made: list[tuple[tuple[tuple[Read, Column], ...], Mapping[str, OriginMemory]]]

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


# A memory that knows which input elements each of its own came from, and the calls in between.
OriginMemory = InputMemory | BufferMemory


def origins_at(
    sources: Sequence[tuple[Read, Column]], memories: Mapping[str, OriginMemory], row: int
) -> tuple[Element, ...]:
    """The input elements behind the reads of one iteration."""
    found: dict[Element, None] = {}
    for one, offsets in sources:
        offset = offsets[row]
        if offset is not None:
            found.update(dict.fromkeys(memories[one.parameter].origin(offset)))
    return tuple(found)


class CallMemories:
    """The memories of the parameters of one call, made when first needed."""

    def __init__(self, program: PackageProgram, at: int, depth: int = 0) -> None:
        self._program = program
        self._at = at
        self._depth = depth
        self._known: dict[str, OriginMemory | None] = {}
        self.given = program.numbers_given(at)

    def __call__(self, parameter: str) -> OriginMemory | None:
        """The memory behind ``parameter``; None where its values are not known."""
        if parameter not in self._known:
            # A kernel that reads what it writes ends here, not in a circle.
            self._known[parameter] = None
            self._known[parameter] = self._find(parameter)
        return self._known[parameter]

    def _find(self, parameter: str) -> OriginMemory | None:
        pair = self._program.arguments(self._at).get(parameter)
        if pair is None or self._depth > _DEEPEST_FILL:
            return None
        if not pair[0].const:
            return self._stored(self._at, parameter, self) if parameter.startswith("out_ptr") else None
        name = pair[1]
        if self._program.is_view(name):
            return None
        writer = self._program.writer(name, self._at)
        leaf = self._program.leaves.get(self._program.root(name))
        if writer is None:
            return None if leaf is None else input_memory(leaf, self._program.tensors.get(leaf.path), pair[0])
        return None if leaf is not None else self._buffer_content(writer, name)

    def _buffer_content(self, writer: int, name: str) -> OriginMemory | None:
        """What the call at ``writer`` put into the buffer ``name``."""
        root = self._program.root(name)
        for parameter, argument in self._program.arguments(writer).values():
            same = parameter.pointer and not parameter.const and self._program.root(argument) == root
            if same and not self._program.is_view(argument):
                return self._stored(writer, parameter.name, CallMemories(self._program, writer, self._depth + 1))
        return None

    def _stored(self, at: int, parameter: str, memories: CallMemories) -> OriginMemory | None:
        flow = self._program.flow(self._program.call(at).name)
        stores = [one for one in flow.stores if one.parameter == parameter] if flow is not None else []
        if not stores:
            return None
        memory = BufferMemory(kernel=self._program.call(at).name, filled={}, made=[])
        try:
            for index, store in enumerate(stores):
                sources = reads(store.value)
                grid = IterationGrid(store.loops, (store.at, store.value), memories.given, memories)
                offsets, values = grid.column(store.at), grid.column(store.value)
                found = {one.parameter: behind for one in sources if (behind := memories(one.parameter)) is not None}
                memory.made.append((tuple((one, grid.column(one.at)) for one in sources), found))
                for row, (offset, value) in enumerate(zip(offsets, values, strict=True)):
                    if offset is not None:
                        memory.filled[offset] = value, index, row
        except UnknownError:
            return None
        return memory


def input_memory(leaf: LeafSpec, tensor: TensorDesc | None, parameter: KernelParameter) -> InputMemory | None:
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


# Inputs behind a value.
_MOST = 3
_DEEPEST_SEARCH = 12


def sources_of(program: PackageProgram, at: int, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sources of the tensors that the call at ``at`` reads, if all were followed to the end and they are few.

    Paths of inputs, or names of constants, and the calls in between, the last one first; both empty when not known.
    """
    paths: dict[str, None] = {}
    through: dict[str, None] = {}
    visited: set[tuple[str, int]] = set()
    pending = [(name, at, 0) for name in reversed(names)]
    while pending:
        name, reader, depth = pending.pop()
        root = program.root(name)
        if (root, reader) in visited:
            continue
        visited.add((root, reader))
        writer = program.writer(name, reader)
        if writer is not None and depth < _DEEPEST_SEARCH:
            through[program.call(writer).name] = None
            pending += [(one, writer, depth + 1) for one in reversed(_behind(program, writer, root))]
        elif root in program.leaves:
            paths[program.leaves[root].path] = None
        elif root in program.constants:
            paths[program.constants[root].fqn] = None
        else:
            return (), ()
    return (tuple(paths), tuple(through)) if 0 < len(paths) <= _MOST else ((), ())


def _behind(program: PackageProgram, writer: int, root: str) -> Sequence[str]:
    """What the call at ``writer`` made the tensor of: what it stores there, else all that it reads."""
    call, arguments = program.call(writer), program.arguments(writer)
    flow = program.flow(call.name) if call.kind in GENERATED else None
    own = {key for key, (one, name) in arguments.items() if one.pointer and program.root(name) == root}
    stored = [store.value for store in flow.stores if store.parameter in own] if flow is not None else []
    named = {one.parameter for value in stored for one in reads(value)}
    if named and all(reads(value) for value in stored):
        return [arguments[key][1] for key in named if key in arguments and key not in own]
    return program.taken(writer)
