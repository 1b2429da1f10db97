"""The statements of run_impl: one grammar for everybody who reads them, the contract as well as the replay.

A form of statement is a row of ``_FORMS``: a text that each such statement contains, the kind, and the regular
expression of the whole, so that a new argument or suffix is noticed. Its named groups are the fields of the statement.
What has no form is of the kind ``unknown``, which each reader counts or reports.

Packages before 2.7 launch their Triton kernels in ``run_impl`` itself:

    kernels.K = loadKernel("....cubin", "K", 0, this->cubin_dir_);
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    void* kernel_args_var_0[] = {&var_0, &var_1};
    Grid K_grid_0 = Grid(2L, 1L, 1L);
    if (K_grid_0.is_non_zero()) {
        launchKernel(kernels.K, K_grid_0.grid_x, K_grid_0.grid_y, K_grid_0.grid_z, 4, 0, kernel_args_var_0, stream);
    }

A Metal kernel is launched by a block, which becomes one call; since 2.9:

    auto mps_lib_0_lambda_0 = [&](AOTIMetalKernelFunctionHandle handle) {
        aoti_torch_mps_start_encoding(handle);
        aoti_torch_mps_set_arg_tensor(handle, 0, buf0);
        aoti_torch_mps_dispatch_single(handle, static_cast<uint64_t>(16L));
    };
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from aotidoctor.model import LatePattern
from aotidoctor.model.record import record
from aotidoctor.readers.contract.wrapper_text import WrapperSection, split_list, split_statements

# ``plain`` holds no fact. ``origins`` is the comment above a call. ``input`` and ``constant`` name one; without an
# index it is a constant that the caller gives. ``shape`` names the sizes or strides (``value``) of a tensor, ``number``
# is a new variable of the type ``source``, ``value`` another value of an old one. ``allocate`` makes a buffer, or a
# part of ``source``. ``reuse`` is another name for the tensor ``source``; ``own`` owns the handle ``source``; ``move``
# gives a tensor to a name that is there already: that of a branch, or of the rounds of a loop; ``align`` replaces an
# input by an aligned copy; ``view`` is a view, from the offset ``value`` on. ``scalar`` is a tensor of a number.
# ``output`` puts out a tensor, or that of the output ``same``, or None; ``copy`` a copy; ``other-output`` something
# else; ``alignment`` asserts where a tensor begins. The last five are a launch before 2.7: ``values`` of the ``start``
# are warps, shared memory and arguments.
Kind = Literal[
    "plain", "unknown", "origins", "input", "constant", "array", "shape", "number", "value", "assert", "alignment",
    "allocate", "reuse", "own", "move", "align", "view", "scalar", "output", "copy", "other-output", "release",
    "branch", "align-branch", "call", "code", "pointer", "arguments", "grid", "start",
]  # fmt: skip


@record
class Statement:
    """A statement: its kind, line and text, and what its form has of the rest.

    ``size_array`` and ``stride_array`` are names of arrays; ``sizes``, ``strides``, ``operator`` and ``dtype`` (since
    2.14) are those of an ``assert_size_stride``. ``checked``: the statement looks at the status that the function
    returns; ``kernels``: the function is one of the table of kernels. ``origins`` and ``source_nodes`` are those of the
    comment above.
    """

    kind: Kind
    line: int
    text: str
    name: str = ""
    source: str = ""
    value: str = ""
    index: int = -1
    same: int | None = None
    values: tuple[str, ...] = ()
    size_array: str = ""
    stride_array: str = ""
    sizes: tuple[str, ...] = ()
    strides: tuple[str, ...] = ()
    dtype: str | None = None
    device_type: str = ""
    operator: str = ""
    function: str = ""
    arguments: str = ""
    checked: bool = False
    kernels: bool = False
    origins: tuple[str, ...] = ()
    source_nodes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of a call's arguments, without the types of arrays that are written out."""
        return split_list(_ARRAY_TYPE.sub("", self.arguments))


_ARRAY_TYPE = re.compile(r"static_cast<[\w ]+\*>|std::(?:array|vector)<[^<>{}]*>")
_NAME = r"(?P<name>\w+)"
_SOURCE = r"(?P<source>\w+)"
_INDEX = r"(?P<index>\d{1,6})"
_WORD = r"[A-Za-z_]\w*"
_ENUM = r"\w+?_dtype_(?P<dtype>\w+?)(?:\(\))?"
_ARRAYS = r"(?P<size_array>\w+), (?P<stride_array>\w+)"
_NEW = rf"(?:auto|decltype\(auto\)|RAIIAtenTensorHandle|AtenTensorHandle) {_NAME} = "
_ARRAY = r"(?:static constexpr |static const |const )int64_t "
_CHECKS = r"if \(_check_aoti_runtime_check_inputs_env\(\)\) \{ "
_STATUS = r"(?P<status>AOTI_TORCH_ERROR_CODE_CHECK\()?"
_DONE = r"\)(?(status)\));"
_NOTE = r"(?:\s*// (?:alias|reuse))?"
_FORMS: tuple[tuple[str, Kind, str], ...] = (
    # Calls. Those of the runtime that only make or rename a tensor have kinds of their own.
    (
        "aoti_torch_empty_strided",
        "allocate",
        (
            rf"{_STATUS}aoti_torch_empty_strided(?:_pinned)?\(\d+, {_ARRAYS}, {_ENUM}, "
            rf"\w+?_device_type_(?P<device_type>\w+?)(?:\(\))?, [^,]+, &(?P<name>\w+?)_handle{_DONE}"
        ),
    ),
    (
        "aoti_torch__alloc_from_pool(",
        "allocate",
        rf"{_STATUS}aoti_torch__alloc_from_pool\({_SOURCE}, [^,]+, {_ENUM}, \d+, {_ARRAYS}, &{_NAME}{_DONE}",
    ),
    (
        "aoti_torch_new_tensor_handle(",
        "reuse",
        rf"{_STATUS}aoti_torch_new_tensor_handle\((?P<source>.+), &{_NAME}{_DONE}",
    ),
    (
        "aoti_torch_assign_tensors_out(",
        "move",
        rf"{_STATUS}aoti_torch_assign_tensors_out\((?P<source>.+), &{_NAME}{_DONE}",
    ),
    ("aoti_torch_clone(", "copy", rf"{_STATUS}aoti_torch_clone\((?P<name>.+), &output_handles\[{_INDEX}\]{_DONE}"),
    ("aoti_torch_empty_strided", "unknown", r".*"),
    ("_run_command_block(", "plain", r"aoti_torch_mps_run_command_block\(get_\w+_handle\(\), \w+, &\w+\);"),
    ("CODE_CHECK(", "call", r"(?P<checked>AOTI_TORCH_ERROR_CODE_CHECK)\((?P<function>\w+)\((?P<arguments>.*)\)\);"),
    ("_", "call", r"(?P<kernels>kernels\.)?(?P<function>(?:cpp_|call_|aoti_torch_)\w*)\((?P<arguments>.*)\);"),
    # Inputs, constants, sizes.
    ("inputs[", "input", rf"auto {_NAME} = std::move\(inputs\[{_INDEX}\]\);"),
    ("inputs.clear();", "plain", r"inputs\.clear\(\);"),
    (
        "constants_->at(",
        "constant",
        rf"(?:\[\[maybe_unused\]\] )?auto&? {_NAME} = \*?constants_->at\((?P<index>\d{{1,7}})\);",
    ),
    ("]] auto ", "constant", rf"\[\[maybe_unused\]\] auto&? {_NAME} = std::move\(inputs\[\d+\]\);"),
    ("int64_t ", "array", rf"{_ARRAY}{_NAME}\[\] = \{{(?P<values>[^{{}}]*)\}};"),
    ("nullptr;", "array", rf"{_ARRAY}\*{_NAME} ?= ?nullptr;"),
    ("auto ", "shape", rf"auto (?P<name>{_WORD})_(?P<value>size|stride) = (?P=name)\.(?:sizes|strides)\(\);"),
    (
        "assert_size_stride(",
        "assert",
        (
            rf"(?P<guarded>{_CHECKS})?assert_size_stride\({_NAME}, \{{(?P<sizes>[^{{}}]*)\}}, "
            r'\{(?P<strides>[^{}]*)\}, "(?P<operator>[^"]*)"(?:, \w+, "torch\.(?P<dtype>\w+)")?\);(?(guarded) \})'
        ),
    ),
    ("assert_size_stride(", "unknown", r"assert_size_stride\(.*"),
    (
        "assert_alignment(",
        "alignment",
        rf'(?:{_CHECKS})?assert_alignment\({_NAME}, (?P<value>\d{{1,6}}), "(?P<operator>[^"]*)"\);(?: \}})?',
    ),
    # Handles.
    ("std::move(", "reuse", rf"{_NEW}std::move\({_SOURCE}\);{_NOTE}"),
    ("= RAIIAtenTensorHandle(", "reuse", rf"{_NEW}RAIIAtenTensorHandle\({_SOURCE}\);"),
    (".get();", "reuse", rf"{_NEW}{_SOURCE}\.get\(\);"),
    ("RAIIAtenTensorHandle ", "own", rf"RAIIAtenTensorHandle {_NAME}\({_SOURCE}\);"),
    ("std::move(", "move", rf"{_NAME} = std::move\({_SOURCE}\);"),
    ("std::move(RAIIAtenTensorHandle(", "align", rf"{_NAME} = std::move\(RAIIAtenTensorHandle\({_SOURCE}\)\);"),
    (
        "reinterpret_tensor_wrapper(",
        "view",
        (
            rf"{_NEW}(?P<kept>wrap_with_raii_handle_if_needed\()?reinterpret_tensor_wrapper\({_SOURCE}, \d+, "
            rf"{_ARRAYS}, (?P<value>[^;]+)\)(?(kept)\));(?: \w+\.reset\(\);)?{_NOTE}"
        ),
    ),
    (
        "scalar_to_tensor_handle(",
        "scalar",
        rf"RAIIAtenTensorHandle {_NAME} = scalar_to_tensor_handle\((?P<value>.*)\);",
    ),
    (".release();", "output", rf"output_handles\[{_INDEX}\] = {_NAME}\.release\(\);"),
    ("output_handles[", "output", rf"output_handles\[{_INDEX}\] = output_handles\[(?P<same>\d{{1,6}})\];"),
    ("output_handles[", "output", rf"output_handles\[{_INDEX}\] = \w+\({_NAME}\);"),
    ("output_handles[", "output", rf"output_handles\[{_INDEX}\] = nullptr;"),
    ("output_handles[", "other-output", rf"output_handles\[{_INDEX}\] = .*"),
    (".reset();", "release", rf"{_NAME}\.reset\(\);"),
    (".reset();", "plain", rf"(?:{_WORD}\.reset\(\);\s*)+"),
    ("RAIIAtenTensorHandle ", "plain", rf"RAIIAtenTensorHandle {_WORD};"),
    ("AtenTensorHandle ", "plain", rf"AtenTensorHandle {_WORD};(?:  // output buffer)?"),
    ("wrap_with_raii_handle_if_needed(", "plain", rf"wrap_with_raii_handle_if_needed\({_WORD}\);"),
    # Launches of packages before 2.7.
    ("loadKernel(", "code", rf'kernels\.{_NAME} = loadKernel\("(?P<value>[^"]*)", "[^"]*", \d+, this->cubin_dir_\);'),
    (
        ".data_ptr()",
        "pointer",
        rf"(?:CUdeviceptr |hipDeviceptr_t |void ?\* ?){_NAME} = reinterpret_cast<[\w *]+>\({_SOURCE}\.data_ptr\(\)\);",
    ),
    ("kernel_args_var_", "arguments", r"void\* (?P<name>kernel_args_var_\d+)\[\] = \{(?P<values>[^{}]*)\};"),
    ("Grid(", "grid", rf"Grid {_NAME} = Grid\((?P<values>.*)\);"),
    (
        "launchKernel(",
        "start",
        (
            rf"launchKernel\(kernels\.{_NAME}, (?P<source>\w+)\.grid_x, (?P=source)\.grid_y, (?P=source)\.grid_z, "
            r"(?P<values>\d+, \d+, \w+), stream\);"
        ),
    ),
    # Control flow.
    ("}", "plain", r"\}(?: // .*)?"),
    ("{", "plain", r"\{"),
    (
        ".data_ptr()) & (",
        "align-branch",
        r"if \(\((?:reinterpret_cast<std::uintptr_t>|long)\(\w+\.data_ptr\(\)\) & \(\d+ ?- ?1\)\) != 0\) \{",
    ),
    ("} else {", "branch", r"\} else \{"),
    ("if (", "branch", r"(?:\} else )?if \(.*\) \{"),
    ("while (1) {", "branch", r"while \(1\) \{"),
    ("break;", "plain", rf"if \(!{_WORD}\) break;"),
    ("throw std::runtime_error(", "plain", r"if \(!\([^{}]*\)\) \{ throw std::runtime_error\([^{}]*\); \}"),
    ("is not aligned to", "plain", r'throw std::runtime_error\("\w+ is not aligned to \d+ bytes"\);'),
    ("AOTI_TORCH_", "plain", r'AOTI_TORCH_(?:WARN|CHECK)\([^"]*"[^"]*"\);'),
    # Others that hold no fact.
    ("__check_inputs_outputs(", "plain", r"__check_inputs_outputs\(input_handles, output_handles\);"),
    ("auto inputs = steal", "plain", r"auto inputs = steal_from_raw_handles_to_raii_handles\(input_handles, \d+\);"),
    (
        "auto& kernels = ",
        "plain",
        (
            r"(?:\[\[maybe_unused\]\] )?auto& kernels = "
            r"static_cast<AOTInductorModelKernels&>\(\*this->kernels_\.get\(\)\);"
        ),
    ),
    (";", "plain", rf"(?:bool|float|double|u?int\d+_t|half|bfloat16|at::\w+|c10::[\w:<>]+) {_WORD};"),
    (" var_", "plain", r"(?:const char\*|c10::complex<\w+>) var_\d+ = [^;]*;"),
    ("var_array_", "plain", r"const [\w:]+\*? var_array_\d+(?:\[\])? = [^;]*;"),
    ("Guard ", "plain", rf"{_WORD}Guard {_WORD}\([^;]*\);"),
    ("Guard> ", "plain", rf"std::(?:unique_ptr|optional)<{_WORD}Guard> {_WORD}(?:\([^;]*\))?;"),
    ("std::make_unique<", "plain", rf"{_WORD} = std::make_unique<{_WORD}Guard>\([^;]*\);"),
    ("Stream_t ", "plain", rf"(?:cuda|hip)Stream_t {_WORD}(?: = [^;]*)?;"),
    ("_aoti_aux_stream_cache.", "plain", r"_aoti_aux_stream_cache\.ensure\([^;]*\);"),
    ("AOTI_RUNTIME_CUDA_CHECK(", "plain", r"AOTI_RUNTIME_CUDA_CHECK\((?:cuda|hip)(?:Event|Stream|Device)\w+\(.*\)\);"),
    ("CUDA_DRIVER_CHECK(", "plain", r"CUDA_DRIVER_CHECK\(cuCtxSynchronize\(\)\);"),
    ("alignas(64) ", "plain", rf"alignas\(64\) (?:CUtensorMap|StableTMADescriptor) {_WORD}(?:\{{\}})?;"),
    ("] = ", "plain", rf"{_WORD}\.(?:global_address|(?:block|global|kernel)_shape\[\d+\]|strides\[\d+\]) = [^;]*;"),
    ("TMADescriptor", "plain", r"init(?:\dD)?TMADescriptor(?:WithMetadata)?\([^;]*\);"),
    ("RECORD_FUNCTION(", "plain", r"RECORD_FUNCTION\(.*\);"),
    ("RAIIAtenRecordFunctionHandle ", "plain", rf"RAIIAtenRecordFunctionHandle {_WORD}\(.*\);"),
    ("KernelContextGuard ", "plain", rf"KernelContextGuard {_WORD}\(.*\);"),
    ("C10IValueHandle ", "plain", rf"C10IValueHandle {_WORD};"),
    ("RAIIC10IValueHandle ", "plain", rf"RAIIC10IValueHandle {_WORD}\({_WORD}\);"),
    ("std::", "plain", r"std::(?:unordered_map|vector)<[\w:, *]*> \w+(?!\w)[^;]*;"),
    ("std::function<", "plain", r"std::function<void\(AOTIMetalKernelFunctionHandle\)> \w+ = \w+;"),
    ("mps_lib_", "plain", r"auto mps_lib_\w+ = (?:\w+\.getKernelFunction\(\"\w+\"\)|\w+\(\w+\.get\(\)\));"),
    ("kwargs_", "plain", rf'kwargs_{_WORD}\.emplace\(".*", {_WORD}\);'),
    ("printf(", "plain", r"printf\(.*\);"),
    # Any number, value or call: what remains.
    (" = ", "number", rf"(?P<source>auto|bool|float|double|int|u?int\d{{1,2}}_t) {_NAME} = (?P<value>[^;]+);"),
    (" = ", "value", rf"{_NAME} = (?P<value>[^;]+);"),
    (");", "call", r"(?P<kernels>kernels\.)?(?P<function>\w+)\((?P<arguments>.*)\);"),
)
# Few of them are ever needed, and compiled.
_ROWS = tuple((needle, kind, LatePattern(text)) for needle, kind, text in _FORMS)
# What makes a field of the text of its group; other groups are no fields.
_TEXTS = "name", "source", "value", "size_array", "stride_array", "dtype", "device_type", "operator"
_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys((*_TEXTS, "function", "arguments"), str),
    **dict.fromkeys(("index", "same"), int),
    **dict.fromkeys(("values", "sizes", "strides"), split_list),
    **dict.fromkeys(("checked", "kernels"), bool),
}
_COMMENT = re.compile(r"// (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_METAL = ("AOTIMetalKernelFunctionHandle handle) {", "_func->runCommandBlock([&] {")
# Only calls and arrays are longer.
_LONGEST = 20_000


def read_statements(section: WrapperSection) -> Iterator[Statement]:
    """The statements of ``run_impl`` behind its signature."""
    signature = True
    texts = split_statements(section.text, section.line)
    for line, text in texts:
        if not signature:
            block = text.endswith(_METAL)
            yield _metal_launch(line, text, texts) if block else read_statement(line, text)
        signature = signature and not text.endswith(") {")


# The launch of a Metal kernel.
_BEGIN = re.compile(
    r"auto (?P<name>mps_lib_\w+?)_lambda(?:_\d+)? = \[&\]\(AOTIMetalKernelFunctionHandle handle\) \{"
    r"|(?P<old>mps_lib_\w+?)_func->runCommandBlock\(\[&\] \{"
)
_ARGUMENT = re.compile(r"aoti_torch_mps_set_arg(?:_tensor|_int)?\(\w+, (\d{1,4}), ([^;]*)\);")
_UNSIGNED = re.compile(r"uint64_t (\w+)\[\] = \{([^;]*)\};")
_DISPATCH = re.compile(r"(?:aoti_torch_mps_dispatch_\w+\(handle, |mps_lib_\w+_func->dispatch\()([^;]*)\);")
_PLAIN = re.compile(r"[{}]|aoti_torch_mps_start_encoding\(handle\);|mps_lib_\w+_func->startEncoding\(\);")
_ENDS = ("};", "});")
_CAST = re.compile(r"static_cast<uint64_t>\(([^()]*)\)")
# No kernel of the generator has as many arguments.
_MOST = 400


def _metal_launch(line: int, text: str, statements: Iterator[tuple[int, str]]) -> Statement:
    """The block that begins with ``text`` as one call, whose ``values`` are the threads of each axis."""
    begin = _BEGIN.fullmatch(text)
    arguments: dict[int, str] = {}
    arrays: dict[str, tuple[str, ...]] = {}
    threads: tuple[str, ...] = ()
    known = begin is not None
    for _, inner in zip(range(_MOST), (one for _, one in statements), strict=False):
        if inner in _ENDS:
            break
        if (argument := _ARGUMENT.fullmatch(inner)) is not None:
            arguments[int(argument[1])] = argument[2]
        elif (array := _UNSIGNED.fullmatch(inner)) is not None:
            arrays[array[1]] = split_list(array[2])
        elif (dispatch := _DISPATCH.fullmatch(inner)) is not None:
            first = (split_list(dispatch[1]) or ("",))[0]
            sizes = arrays.get(first) or split_list(first.strip("{}"))
            threads = tuple(_CAST.sub(r"\1", one) for one in sizes)
        else:
            known = known and _PLAIN.fullmatch(inner) is not None
    if begin is None or not known or not threads or sorted(arguments) != list(range(len(arguments))):
        return Statement(kind="unknown", line=line, text=text)
    name, given = begin["name"] or begin["old"], ", ".join(arguments[at] for at in sorted(arguments))
    call = f"{name}({given})"
    return Statement(kind="call", line=line, text=call, function=name, arguments=given, kernels=True, values=threads)


def read_statement(line: int, text: str) -> Statement:
    """The statement ``text``."""
    if text.startswith("// "):
        comment = _COMMENT.match(text)
        if comment is None:
            return Statement(kind="plain", line=line, text=text)
        operators, nodes = split_list(comment[2]), split_list(comment[1])
        return Statement(kind="origins", line=line, text=text, origins=operators, source_nodes=nodes)
    make: Callable[..., Statement] = Statement  # type: ignore[explicit-any]  # the fields are those of the form
    for needle, kind, pattern in _ROWS:
        if needle in text and (len(text) < _LONGEST or kind in ("call", "array")):
            found = pattern.fullmatch(text)
            if found is not None:
                given = {name: value for name, value in found.groupdict().items() if value is not None}
                fields = {name: _READ[name](given[name]) for name in given if name in _READ}
                return make(kind=kind, line=line, text=text, **fields)
    return Statement(kind="unknown", line=line, text=text)
