"""The statements of run_impl: one grammar for everybody who reads them, the contract as well as the replay.

A form of statement is a row of ``wrapper_statements.txt``: the kind, a text that each such statement contains, and the
regular expression of the whole, so that a new argument or suffix is noticed. Its named groups are the fields of the
statement. What has no form is of the kind ``unknown``, which each reader counts or reports.

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
from pathlib import Path
from typing import Literal, get_args

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


def _read_forms() -> Iterator[tuple[str, Kind, LatePattern]]:
    kinds: Mapping[str, Kind] = {kind: kind for kind in get_args(Kind)}
    parts: dict[str, str] = {}
    # No TOML: each check reads it, and that reader takes longer to import than all of this.
    for row in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        line = row
        for part, text in parts.items():
            line = line.replace(f"«{part}»", text)
        if "¦" in line:
            kind, needle, text = line.split("¦")
            yield needle, kinds[kind.strip()], LatePattern(text)
        elif line and not line.startswith("#"):
            name, _, parts[name] = line.partition(" = ")


# Few of them are ever needed, and compiled.
_ROWS = tuple(_read_forms())
# What makes a field of the text of its group; other groups are no fields.
_TEXTS = "name", "source", "value", "size_array", "stride_array", "dtype", "device_type", "operator"
_READ: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys((*_TEXTS, "function", "arguments"), str),
    **dict.fromkeys(("index", "same"), int),
    **dict.fromkeys(("values", "sizes", "strides"), split_list),
    **dict.fromkeys(("checked", "kernels"), bool),
}
_COMMENT = re.compile(r"// (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
_METAL = ("AOTIMetalKernelFunctionHandle handle) {", "->runCommandBlock([&] {")
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
    r"|(?:get_)?(?P<old>mps_lib_\d{1,6})(?:_func|\(\))->runCommandBlock\(\[&\] \{"
)
_ARGUMENT = re.compile(r"aoti_torch_mps_set_arg(?:_tensor|_int)?\(\w+(?:\(\))?, (\d{1,4}), ([^;]*)\);")
_UNSIGNED = re.compile(r"uint64_t (\w+)\[\] = \{([^;]*)\};")
_DISPATCH = re.compile(
    r"(?:aoti_torch_mps_dispatch_\w+\(handle, |(?:get_)?mps_lib_\d{1,6}(?:_func|\(\))->dispatch\()([^;]*)\);"
)
_PLAIN = re.compile(
    r"[{}]|aoti_torch_mps_start_encoding\(handle\);|(?:get_)?mps_lib_\d{1,6}(?:_func|\(\))->startEncoding\(\);"
)
_ENDS = ("};", "});")
_CAST = "static_cast<uint64_t>("
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
            threads = tuple(one[len(_CAST) : -1] if one.startswith(_CAST) else one for one in sizes)
        else:
            known = known and _PLAIN.fullmatch(inner) is not None
    else:
        known = False
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
