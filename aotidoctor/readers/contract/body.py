"""``run_impl``: how inputs become symbols, buffers, kernel calls and outputs, line by line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from aotidoctor.readers.contract.text import Section, split_list

_UNPACK = re.compile(r"auto (\w+) = std::move\(inputs\[(\d{1,6})\]\);$")
_CONSTANT = re.compile(
    r"(?:\[\[maybe_unused\]\] )?auto&? (\w+) = (?:\*?constants_->at\(\d+\)|std::move\(inputs\[\d+\]\));$"
)
_DEFINE = re.compile(r"(?:int64_t|auto) ([a-z]+\d+|\w+_(?:size|stride)_\d+|\w+_(?:[xyz]|r\d*_?)numel) = ([^;]+);$")
_ASSERT = re.compile(r'assert_size_stride\((\w+), \{(.*)\}, \{(.*)\}, "([^"]*)"\);')
_ARRAY = re.compile(r"(?:static constexpr|const) int64_t (?:(\w+)\[\] = \{(.*)\}|\*(\w+)=nullptr);$")
_ALLOCATE = re.compile(
    r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_empty_strided\w*\(\d+, (\w+), (\w+), \w+?_dtype_(\w+?)(?:\(\))?, "
    r"\w+?_device_type_(\w+?)(?:\(\))?, [^,]+, &(\w+?)_handle\)\);"
)
_REUSE = re.compile(r"(?:auto|RAIIAtenTensorHandle) (\w+) = std::move\((\w+)\);")
_VIEW = re.compile(
    r"auto (\w+) = (?:wrap_with_raii_handle_if_needed\()?reinterpret_tensor_wrapper\((\w+), \d+, (\w+), "
)
_OUTPUT = re.compile(r"output_handles\[(\d{1,6})\] = (?:(\w+)\.release\(\)|output_handles\[(\d{1,6})\]|\w+\((\w+)\))")
_ANY_OUTPUT = re.compile(r"output_handles\[(\d{1,6})\] = (?!nullptr\b)")
_NUMBER = re.compile(r"RAIIAtenTensorHandle (\w+) = scalar_to_tensor_handle\((.*)\);$")
_COMMENT = re.compile(r"// (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_CHECKED_CALL = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\((\w+)\((.*)\)\);")
_CALL = re.compile(r"(?:kernels\.)?(\w+)\((.*)\);")
_HOUSEKEEPING = re.compile(
    r"AOTI_|__|printf$|sizeof$|if$|aoti_torch_(?:get_|new_uninitialized|check_inf|print_|save_|delete_|clone_preserve|"
    r"empty_strided|create_|warn|set_|grad_|dtype_|device_type_|assign_tensors)|std$|assert_size_stride$"
)
_LONGEST_ASSERTION = 20_000
_TOKEN = re.compile(r"\b(?:arg\w+|[a-z]+\d+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """An allocated buffer: element type, shape as the wrapper writes it, device type, line."""

    dtype: str
    shape: tuple[str, ...] | None
    device_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """An ``assert_size_stride``: sizes and strides as the wrapper writes them."""

    name: str
    sizes: tuple[str, ...]
    strides: tuple[str, ...]
    operator: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A call as it stands: the function, the text of its arguments, its line and the comment above it."""

    function: str
    arguments: str
    line: int
    origins: tuple[str, ...] = ()
    source_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An allocation, renaming, view, call or output, in order: what the data-flow reads."""

    kind: str
    name: str
    other: str = ""
    call: RawCall | None = None


@dataclass(slots=True)
class Body:
    """What ``run_impl`` says.

    ``definitions`` are the locals that hold sizes, in order; ``renamed`` maps a name to the one whose tensor it took or
    views (then ``view_shapes`` has its shape); ``numbers`` are the tensors made of a number of the program, with its
    C++ text; ``used`` are the names that any statement but a check mentions once the
    inputs are unpacked.
    """

    unpacked: dict[str, tuple[int, int]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    definitions: dict[str, str] = field(default_factory=dict)
    assertions: list[Assertion] = field(default_factory=list)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    view_shapes: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    calls: list[RawCall] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    unknown: int = 0


def parse_body(section: Section) -> Body:
    """Read ``run_impl`` in one pass."""
    reader = _BodyReader()
    for offset, raw in enumerate(section.text.split("\n")):
        line = raw.strip()
        if line:
            reader.read(line, section.line + offset)
    return reader.body


class _BodyReader:
    """Dispatches each line by how it begins; only the matching rule's expression is tried."""

    def __init__(self) -> None:
        self.body = Body()
        self._comment: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._unpacking = True
        self._number = 0
        self._rules: tuple[tuple[str, Callable[[str], None]], ...] = (
            ("AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided", self._allocation),
            ("AOTI_TORCH_ERROR_CODE_CHECK(", self._call),
            ("static constexpr int64_t", self._array),
            ("const int64_t", self._array),
            ("if (_check_aoti", self._assertion),
            ("assert_size_stride(", self._assertion),
            ("int64_t ", self._definition),
            ("auto", self._auto),
            ("[[maybe_unused]] auto&", self._constant),
            ("RAIIAtenTensorHandle", self._auto),
            ("output_handles[", self._output),
            ("// ", self._remember),
        )

    def read(self, line: str, number: int) -> None:
        """Read one line that is not blank."""
        self._number = number
        for prefix, rule in self._rules:
            if line.startswith(prefix):
                rule(line)
                return
        if line == "inputs.clear();":
            self._unpacking = False
        elif not (line.endswith(".reset();") or line.startswith("AtenTensorHandle")):
            self._call(line)

    def _note_use(self, line: str) -> None:
        if not self._unpacking:
            self.body.used.update(_TOKEN.findall(line))

    def _remember(self, line: str) -> None:
        found = _COMMENT.match(line)
        if found is not None:
            self._comment = (split_list(found[2]), split_list(found[1]))

    def _array(self, line: str) -> None:
        found = _ARRAY.match(line)
        if found is not None:
            self.body.arrays[found[1] or found[3]] = split_list(found[2] or "")
        self._note_use(line)

    def _assertion(self, line: str) -> None:
        found = _ASSERT.search(line) if len(line) < _LONGEST_ASSERTION else None
        if found is None:
            self.body.unknown += "assert_size_stride" in line
            return
        sizes, strides = split_list(found[2]), split_list(found[3])
        self.body.assertions.append(
            Assertion(name=found[1], sizes=sizes, strides=strides, operator=found[4], line=self._number)
        )

    def _definition(self, line: str) -> None:
        found = _DEFINE.match(line)
        if found is not None:
            self.body.definitions.setdefault(found[1], found[2])
        self._note_use(line)

    def _constant(self, line: str) -> None:
        found = _CONSTANT.match(line)
        if found is not None:
            self.body.constants.add(found[1])

    def _auto(self, line: str) -> None:
        unpacked = _UNPACK.match(line)
        if unpacked is not None:
            self.body.unpacked[unpacked[1]] = (int(unpacked[2]), self._number)
            return
        reuse = _REUSE.match(line)
        if reuse is not None:
            self._renamed("reuse", reuse[1], reuse[2], None)
            return
        number = _NUMBER.match(line)
        if number is not None:
            self.body.numbers[number[1]] = number[2]
        view = _VIEW.match(line)
        if view is not None:
            self._renamed("view", view[1], view[2], self.body.arrays.get(view[3]))
        elif "= " in line:
            self._definition(line)
        self._note_use(line)

    def _renamed(self, kind: str, name: str, source: str, shape: tuple[str, ...] | None) -> None:
        self.body.events.append(Event(kind=kind, name=name, other=source))
        self.body.renamed[name] = source
        if kind == "view":
            self.body.view_shapes[name] = shape
        origin = self.body.buffers.get(source)
        if origin is not None:
            kept = origin.shape if kind == "reuse" else shape
            self.body.buffers[name] = Buffer(dtype=origin.dtype, shape=kept, device_type=origin.device_type)

    def _allocation(self, line: str) -> None:
        found = _ALLOCATE.match(line)
        if found is None:
            return
        shape = self.body.arrays.get(found[1])
        self.body.buffers[found[5]] = Buffer(dtype=found[3], shape=shape, device_type=found[4])
        if "0L" not in (shape or ()):
            self.body.events.append(Event(kind="allocate", name=found[5]))

    def _output(self, line: str) -> None:
        found = _OUTPUT.match(line)
        if found is None:
            other = _ANY_OUTPUT.match(line)
            if other is not None:
                self.body.outputs[int(other[1])] = ""
            return
        index = int(found[1])
        name = found[2] or found[4] or self.body.outputs.get(int(found[3] or 0), "")
        self.body.outputs[index] = name
        self.body.events.append(Event(kind="output", name=name))
        self._note_use(line)

    def _call(self, line: str) -> None:
        found = _CHECKED_CALL.match(line) or _CALL.match(line)
        if found is None or _HOUSEKEEPING.match(found[1]) is not None:
            self._note_use(line)
            return
        origins, nodes = self._comment
        self._comment = ((), ())
        call = RawCall(function=found[1], arguments=found[2], line=self._number, origins=origins, source_nodes=nodes)
        self.body.calls.append(call)
        self.body.events.append(Event(kind="call", name=found[1], call=call))
        self._note_use(line)
