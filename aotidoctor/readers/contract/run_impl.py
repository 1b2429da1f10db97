"""Parse run_impl statement by statement: how inputs become symbols, buffers, kernel calls and outputs.

Packages before 2.7 launch their Triton kernels in ``run_impl`` itself:

    kernels.K = loadKernel("....cubin", "K", 0, this->cubin_dir_);
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    void* kernel_args_var_0[] = {&var_0, &var_1};
    Grid K_grid_0 = Grid(2L, 1L, 1L);
    if (K_grid_0.is_non_zero()) {
        launchKernel(kernels.K, K_grid_0.grid_x, K_grid_0.grid_y, K_grid_0.grid_z, 4, 0, kernel_args_var_0, stream);
    }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import field

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.expr import Opaque
from aotidoctor.model.record import record
from aotidoctor.readers.contract.run_impl_records import (
    Assertion,
    Body,
    BodyEvent,
    Buffer,
    RawCall,
    TritonLaunch,
    alias_buffer,
    alias_subgraph_value,
    allocate_buffer,
    read_alias,
    read_view,
)
from aotidoctor.readers.contract.wrapper_text import (
    NotUnderstood,
    WrapperSection,
    fact_kind,
    is_known_statement,
    is_runtime,
    split_list,
    split_statements,
)

# Triton launches of packages before 2.7.
_LOAD = re.compile(r'kernels\.(\w+) = loadKernel\("([^"]*)", "[^"]*", (\d+), this->cubin_dir_\);')
_POINTER = re.compile(
    r"(?:CUdeviceptr|hipDeviceptr_t|void\*) (var_\d+) = reinterpret_cast<[\w*]+>\((\w+)\.data_ptr\(\)\);"
)
_LAUNCH_NUMBER = re.compile(r"(?:auto|int|float|int32_t|int64_t) (var_\d+) = ([^;]+);")
_SIZE = re.compile(r"true|false|-?[\d.]+(?:e[+-]?\d+)?f?|\w+")
# A number of the CPU that a kernel takes.
_ITEM = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_item_\w+\((\w+), &(var_\d+)\)\);")
_ARGUMENTS = re.compile(r"void\* (kernel_args_var_\d+)\[\] = \{([^{}]*)\};")
_GRID = re.compile(r"Grid (\w+) = Grid\((.*)\);")
_LAUNCH = re.compile(
    r"launchKernel\(kernels\.(\w+), (\w+)\.grid_x, \2\.grid_y, \2\.grid_z, (\d+), (\d+), (\w+), stream\);"
)
_AXES = 3


@record(kw_only=False, frozen=False)
class OldLaunches:
    """Follow the statements in order; ``launches`` has an entry per launch, as each has its own grid."""

    launches: dict[str, TritonLaunch] = field(default_factory=dict)
    _codes: dict[str, str] = field(default_factory=dict)
    _values: dict[str, str] = field(default_factory=dict)
    _arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _grids: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, text: str) -> bool:
        """Read ``text`` where it is a statement that prepares a launch; whether it is one."""
        load = _LOAD.fullmatch(text)
        if load is not None:
            self._codes[load[1]] = load[2].rpartition("/")[2]
            return True
        value = _POINTER.fullmatch(text) or _LAUNCH_NUMBER.fullmatch(text)
        if value is not None:
            self._values[value[1]] = value[2]
            if text.startswith(("CU", "hip", "void")) or _SIZE.fullmatch(value[2]) is not None:
                return True
            return not isinstance(parse_expr(value[2]), Opaque)
        given = _ARGUMENTS.fullmatch(text)
        if given is not None:
            names = [name.removeprefix("&") for name in split_list(given[2])]
            self._arguments[given[1]] = tuple(self._values.get(name, name) for name in names)
            return all(name in self._values for name in names)
        grid = _GRID.fullmatch(text)
        if grid is None or len(split_list(grid[2])) != _AXES:
            return False
        self._grids[grid[1]] = split_list(grid[2])
        return True

    def item(self, text: str) -> None:
        """Note a tensor that is passed to a kernel as a number; the call itself is read as any other one."""
        item = _ITEM.fullmatch(text)
        if item is not None:
            self._values[item[2]] = item[1]

    def launch(self, text: str, line: int) -> tuple[str, tuple[str, ...]] | None:
        """The name and the arguments of the kernel that ``text`` launches; None for any other statement."""
        found = _LAUNCH.fullmatch(text)
        if found is None or not (found[1] in self._codes and found[2] in self._grids and found[5] in self._arguments):
            return None
        self.launches[f"{found[1]}@{line}"] = TritonLaunch(
            name=found[1],
            grid=self._grids[found[2]],
            warps=found[3],
            shared=found[4],
            device_code=self._codes[found[1]],
            embedded=False,
            guarded=True,
            inputs=frozenset(),
            source="",
            line=line,
        )
        return found[1], self._arguments[found[5]]


_UNPACK = re.compile(r"auto (\w+) = std::move\(inputs\[(\d{1,6})\]\);")
_CONSTANT = re.compile(
    r"(?:\[\[maybe_unused\]\] )?auto&? (\w+) = (?:\*?constants_->at\(\d+\)|std::move\(inputs\[\d+\]\));"
)
_DEFINE = re.compile(
    r"(?:int64_t|auto|double) ((?!buf|arg|var|tmp)[a-z]+\d+|[a-z]+\d+_\w+|"
    r"\w+_(?:size|stride)_\d+|\w+_(?:[xyz]|r\d*_?)numel) = ([^;]+);"
)
_AGAIN = re.compile(r"(\w+numel) = ([^;]+);")
_SIZE_CALL = re.compile(r"(\w+)\.(size|stride)s\(\)\[(\d{1,3})\]$")
_ASSERT = re.compile(
    r"(?:if \(_check_aoti_runtime_check_inputs_env\(\)\) \{ )?assert_size_stride\((\w+), \{([^{}]*)\}, \{([^{}]*)\}, "
    r'"([^"]*)"(?:, \w+, "torch\.(\w+)")?\);(?: \})?'
)
_ALIGNED = re.compile(
    r'(?:if \(_check_aoti_runtime_check_inputs_env\(\)\) \{ )?assert_alignment\(\w+, \d+, "[^"]*"\);(?: \})?'
)
_ARRAY = re.compile(r"(?:static constexpr |static const |const )int64_t (?:(\w+)\[\] = \{([^{}]*)\}|\*(\w+)=nullptr);")
_ALLOCATE = re.compile(
    r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_empty_strided(?:_pinned)?\(\d+, (\w+), (\w+), \w+?_dtype_(\w+?)"
    r"(?:\(\))?, \w+?_device_type_(\w+?)(?:\(\))?, [^,]+, &(\w+?)_handle\)\);"
)
_REUSE = re.compile(
    r"(?:auto|decltype\(auto\)|RAIIAtenTensorHandle|AtenTensorHandle) (\w+) = "
    r"(?:std::move\((\w+)\);(?:\s*// (?:reuse|alias))?|RAIIAtenTensorHandle\((\w+)\);|(\w+)\.get\(\);)"
)
_OWNED = re.compile(r"RAIIAtenTensorHandle (\w+)\((\w+)\);")
_MOVED = re.compile(r"(\w+) = std::move\((\w+)\);")
_VIEW = re.compile(
    r"auto (\w+) = (?:wrap_with_raii_handle_if_needed\()?reinterpret_tensor_wrapper\((\w+), \d+, (\w+), \w+, [^;]+;"
    r"(?: \w+\.reset\(\);)?(?:\s*// (?:alias|reuse))?"
)
_OUTPUT = re.compile(
    r"output_handles\[(\d{1,6})\] = (?:(\w+)\.release\(\)|output_handles\[(\d{1,6})\]|\w+\((\w+)\)|(nullptr));"
)
_ANY_OUTPUT = re.compile(r"output_handles\[(\d{1,6})\] = ")
_NUMBER = re.compile(r"RAIIAtenTensorHandle (\w+) = scalar_to_tensor_handle\((.*)\);")
_DEVICE = re.compile(r"auto var_\d+ = \w+?_device_type_\w+;")
_COMMENT = re.compile(r"// (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_CHECKED_CALL = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\((\w+)(\(.*\))\);")
_CALL = re.compile(r"(kernels\.)?(\w+)(\(.*\));")
_GENERATED = ("cpp_", "call_", "aoti_torch_")
_LONGEST = 20_000
MOST_CALLS = 20_000
_TOKEN = re.compile(r"\b(?:arg\w+|[a-z]+\d+)\b")


def parse_body(section: WrapperSection, declared: Container[str] = frozenset()) -> Body:
    """Read ``run_impl`` in one pass. ``declared`` are functions that the wrapper declares as kernels."""
    reader = _BodyReader(declared)
    signature = True
    for number, statement in split_statements(section.text, section.line):
        if signature:
            signature = not statement.endswith(") {")
        elif len(reader.body.calls) >= MOST_CALLS:
            reader.body.losses.note("call", number, f"more than {MOST_CALLS:,} calls: not read beyond line {number:,}")
            break
        else:
            reader.read(statement, number)
    reader.body.launches = reader.old.launches
    return reader.body


class _BodyReader:
    """Dispatch each statement by its beginning; only the regular expressions of that rule are tried."""

    def __init__(self, declared: Container[str]) -> None:
        self.body = Body(losses=NotUnderstood("body"))
        self._declared = declared
        self.old = OldLaunches()
        self._comment: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._unpacking = True
        self._number = 0
        self._rules: tuple[tuple[str, Callable[[str], bool]], ...] = (
            ("AOTI_TORCH_ERROR_CODE_CHECK(", self._checked),
            ("static const", self._array),
            ("const int64_t", self._array),
            ("if (_check_aoti", self._assertion),
            ("assert_", self._assertion),
            ("int64_t ", self._definition),
            ("double ", self._definition),
            ("auto", self._auto),
            ("[[maybe_unused]] auto", self._auto),
            ("RAIIAtenTensorHandle", self._auto),
            ("decltype(auto)", self._auto),
            ("AtenTensorHandle var_", self._auto),
            ("output_handles[", self._output),
        )

    def read(self, text: str, number: int) -> None:
        """Read one statement."""
        self._number = number
        if text.startswith("// "):
            if (comment := _COMMENT.match(text)) is not None:
                self._comment = (split_list(comment[2]), split_list(comment[1]))
            return
        for prefix, rule in self._rules:
            if text.startswith(prefix):
                understood = rule(text)
                break
        else:
            understood = self._other(text)
        if not understood and not is_known_statement(text):
            self.body.losses.note(fact_kind(text), number, text)

    def _note_use(self, text: str) -> None:
        if not self._unpacking:
            self.body.used.update(_TOKEN.findall(text))

    def _other(self, text: str) -> bool:
        if text == "inputs.clear();":
            self._unpacking = False
            return True
        if self.old.read(text):
            self._note_use(text)
            return True
        launched = self.old.launch(text, self._number)
        if launched is not None:
            return self._called(f"call_{launched[0]}", f"({', '.join(launched[1])})", text)
        again = _AGAIN.fullmatch(text)
        if again is not None:
            return self.body.definitions.get(again[1], again[2]) == again[2]
        moved = _MOVED.fullmatch(text)
        if moved is not None:
            alias_subgraph_value(self.body, moved[1], moved[2])
            return True
        if text.endswith(".reset();"):
            self.body.events.append(BodyEvent(kind="free", name=text.removesuffix(".reset();")))
            return False
        found = _CALL.fullmatch(text)
        if found is None:
            return False
        function = found[2]
        if not (found[1] or function.startswith(_GENERATED) or function in self._declared):
            return False
        return read_alias(self.body, function + found[3], self._note_use) or self._called(function, found[3], text)

    def _array(self, text: str) -> bool:
        found = _ARRAY.fullmatch(text)
        if found is not None:
            self.body.arrays[found[1] or found[3]] = split_list(found[2] or "")
        self._note_use(text)
        return found is not None

    def _assertion(self, text: str) -> bool:
        found = _ASSERT.fullmatch(text) if len(text) < _LONGEST else None
        if found is None:
            return _ALIGNED.fullmatch(text) is not None
        sizes, strides = split_list(found[2]), split_list(found[3])
        self.body.assertions.append(
            Assertion(name=found[1], sizes=sizes, strides=strides, operator=found[4], line=self._number, dtype=found[5])
        )
        return True

    def _definition(self, text: str) -> bool:
        found = _DEFINE.fullmatch(text)
        self._note_use(text)
        if found is None:
            return self.old.read(text)
        size = _SIZE_CALL.match(found[2])
        self.body.definitions.setdefault(found[1], f"{size[1]}_{size[2]}[{size[3]}]" if size is not None else found[2])
        return True

    def _auto(self, text: str) -> bool:
        if text.startswith("[["):
            constant = _CONSTANT.fullmatch(text)
            if constant is not None:
                self.body.constants.add(constant[1])
            return constant is not None
        unpacked = _UNPACK.fullmatch(text)
        if unpacked is not None:
            self.body.unpacked[unpacked[1]] = (int(unpacked[2]), self._number)
            return True
        reuse = _REUSE.fullmatch(text)
        if reuse is not None:
            alias_buffer(self.body, "reuse", reuse[1], reuse[2] or reuse[3] or reuse[4], None)
            return True
        owned = _OWNED.fullmatch(text)
        if owned is not None and (owned[2] in self.body.renamed or owned[2] in self.body.buffers):
            alias_buffer(self.body, "reuse", owned[1], owned[2], None)
            return True
        self._note_use(text)
        number = _NUMBER.fullmatch(text)
        if number is not None:
            self.body.numbers[number[1]] = number[2]
            return True
        view = _VIEW.fullmatch(text)
        if view is not None:
            alias_buffer(self.body, "view", view[1], view[2], self.body.arrays.get(view[3]))
            if f" {view[2]}.reset();" in text:
                self.body.events.append(BodyEvent(kind="free", name=view[2]))
            return True
        return self.old.read(text) or _DEVICE.fullmatch(text) is not None or self._definition(text)

    def _output(self, text: str) -> bool:
        found = _OUTPUT.fullmatch(text)
        if found is None:
            other = _ANY_OUTPUT.match(text)
            if other is not None:
                self.body.outputs[int(other[1])] = ""
            return False
        if found[5] is None:
            index = int(found[1])
            name = found[2] or found[4] or self.body.outputs.get(int(found[3] or 0), "")
            self.body.outputs[index] = name
            self.body.events.append(BodyEvent(kind="output", name=name))
            self._note_use(text)
        return True

    def _checked(self, text: str) -> bool:
        if text.startswith("AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided"):
            made = _ALLOCATE.fullmatch(text)
            if made is None:
                return False
            shape, strides = self.body.arrays.get(made[1]), self.body.arrays.get(made[2])
            buffer = Buffer(dtype=made[3], shape=shape, device_type=made[4], strides=strides)
            allocate_buffer(self.body, made[5], buffer)
            return shape is not None
        found = _CHECKED_CALL.fullmatch(text)
        if found is None:
            return False
        self.old.item(text)
        return read_alias(self.body, found[1] + found[2], self._note_use) or self._called(
            found[1], found[2], text, checked=True
        )

    def _called(self, function: str, arguments: str, text: str, *, checked: bool = False) -> bool:
        self._note_use(text)
        if is_runtime(function):
            return True
        origins, nodes = self._comment
        self._comment = ((), ())
        call = RawCall(
            function=function,
            arguments=arguments[1:-1],
            line=self._number,
            origins=origins,
            source_nodes=nodes,
            checked=checked,
        )
        self.body.calls.append(call)
        if not read_view(self.body, function + arguments):
            self.body.events.append(BodyEvent(kind="call", name=function, call=call))
            return not function.endswith("_view_dtype")
        return True
