"""Parse the Triton and Metal kernels of a GPU package: launch settings, device code files and kernel sources.

Each ``call_<kernel>`` function carries the Triton source in a comment. That source is read for facts (bound checks,
random numbers) and is kept away from the rules that read C++. Kernels that were tuned by a first run have their
settings in macros at the top of the wrapper (2.14 and later). Packages before 2.7 launch in ``run_impl`` itself.
Imported only for GPU packages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import KernelParameter
from aotidoctor.model.expr import Opaque
from aotidoctor.model.record import record
from aotidoctor.readers.contract.run_impl import TritonLaunch
from aotidoctor.readers.contract.wrapper_statements import read_statement
from aotidoctor.readers.contract.wrapper_text import NotUnderstood, WrapperSection, split_list, split_statements

_FUNCTION = re.compile(r"^static (?:__attribute__\(\(noinline\)\)|inline)? ?void call_(\w+)\(", re.MULTILINE)
_LOAD = re.compile(
    r'kernels_\.\w+ = loadKernel\(\s*(?:"([^"]*)", "[^"]*", (\d+), cubin_dir_'
    r'|(__\w+_start)(?:, __\w+_end)?, "[^"]*", \d+'
    r"(?:, (?:true|false))?|(\w+_result)\.cubin_path, \w+_result\.mangled_name, \w+_result\.shared_mem, cubin_dir_)"
    r"(?:,\s*&kernels_\.loaded_modules_)?\);"
)
_LAUNCH = re.compile(r"launchKernel\((.*)\);")
# A kernel for the CPU is a library, called by the launcher in another one (2.13 and later).
_LOAD_CPU = re.compile(
    r'kernels_\.\w+ = loadCpuTriton(?:Kernel\(\s*"([^"]{1,400})", "[^"]{1,400}"|Launcher\(\s*"[^"]{1,400}"),'
    r" cubin_dir_\);"
)
_AXIS = r"\s{0,80}static_cast<uint32_t>\(([^;<>]{1,400})\),"
_LAUNCH_CPU = re.compile(
    rf"kernels_\.\w+_launcher_fn\({_AXIS}{_AXIS}{_AXIS}(?:\s{{0,80}}/\*num_cpu_threads=\*/)?\s{{0,80}}\d{{1,4}},"
    r"\s{0,80}args_arr,\s{0,80}kernels_\.\w+\);"
)
_HANDLES = ("kernel_args_", "stream_")
_GRID = re.compile(r"uint32_t (\w+) = ([^\n]{1,400});")
_GUARD = re.compile(r"if \(grid_0 == 0(?: \|\| grid_1 == 0 \|\| grid_2 == 0)?\) return;")
_PARAMETERS = re.compile(r"^[ \t]*(?:const )?[\w:]+&? (\w+),?$", re.MULTILINE)
_SETTING = re.compile(
    r"^#define (\w+?)_(CUBIN_PATH|NUM_WARPS|SHARED_MEM|[XYZ]BLOCKS|R0BLOCKS|RSPLIT|RSPLIT_SIZE|CONFIG_INDEX) (.+)$",
    re.MULTILINE,
)
_RESULT = re.compile(r"\b(\w+)_result\.(\w+)(?:\[(\d{1,3})\])?")
_CHOICE = re.compile(r"uint32_t grid_0, grid_1, grid_2;|switch \((\w+\.config_index)\) \{")
_CASE = re.compile(r"(?:case (\d+)|default): grid_0 = ([^;]*); grid_1 = ([^;]*); grid_2 = ([^;]*); break;")
# Declarations of arguments, scratch memory and records of the profiler.
_POINTER = r"(?:CUdeviceptr |hipDeviceptr_t |void ?\* ?)\w+ = "
_PLAIN = re.compile(
    "|".join(
        (
            r"(?:uint32_t|int|int32_t|int64_t|float|double|auto|bool|half|bfloat16) \w+(?: = [^;]*)?;",
            r"if \(kernels_\.\w+ == nullptr\) \{",
            r"void\* (?:kernel_args_|args_arr)\[\] = \{[^{}]*\};",
            r"using namespace torch::aot_inductor;",
            r"static std::once_flag \w+;",
            r"(?:std::call_once\(\w+, \[&\]\(\) \{|\}\);)",
            r"int64_t \w+\[\] = \{[^{}]*\};",
            r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_(?:empty_strided|item_\w+|get_\w+|\w+_to_ivalue)\(.*\)\);",
            r"aoti_torch_(?:int64|tensor|strlist)_to_ivalue\(.*\);",
            r"torch::aot_inductor::RAIIAtenRecordFunctionHandle \w+\(.*\);",
            _POINTER + r"(?:0|nullptr|allocate_scratch_tensor<[\w *]+>\(.*\)|\w+_tensor\.data_ptr\(\));",
            _POINTER + r"reinterpret_cast<[\w *]+>\(.*\);",
            r"\w+ = reinterpret_cast<[\w *]+>\(.*\);",
            r"RAIIAtenTensorHandle \w+_tensor;",
            r"\w+_tensor = RAIIAtenTensorHandle\(\w+\);",
            r"if \(\w+\.tensordesc_meta(?:\[\d+\]\.block_size)?\.size\(\) != \d+\) throw std::runtime_error\(.*\);",
            r"if \(\w+\.\w+ > 0\) \{",
            r"//.*",
        )
    )
)
_NAMES = {"num_warps": "NUM_WARPS", "shared_mem": "SHARED_MEM", "rsplit": "RSPLIT", "rsplit_size": "RSPLIT_SIZE"}
_LONGEST = 20_000
# Statements of ``run_impl`` that hold no fact of a launch.
_FREE = ("plain", "release", "own", "align", "pointer", "shape", "branch", "align-branch")


def read_triton_launches(section: WrapperSection, settings: str) -> tuple[Mapping[str, TritonLaunch], NotUnderstood]:
    """All kernels of the section by name, and what of their functions was not understood.

    ``settings`` is the text with the macros of tuned kernels.
    """
    starts = list(_FUNCTION.finditer(section.text))
    launches, losses = {}, NotUnderstood("launches")
    macros = {}
    if starts and "_CUBIN_PATH " in settings:
        # ``(KERNEL, NUM_WARPS)`` to ``4``.
        macros = {(found[1], found[2]): found[3].strip() for found in _SETTING.finditer(settings)}
    line, counted = section.line, 0
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(section.text)
        line += section.text.count("\n", counted, start.start())
        counted = start.start()
        text = section.text[start.end() : end]
        opened = text.find("/*")
        closed = text.find("*/", opened) if opened >= 0 else -1
        opening = text.find("{")
        source = text[opened:closed] if closed >= 0 else ""
        reader = _FunctionReader(macros)
        last = text.find("\n}", max(closed, opening))
        first = line + text.count("\n", 0, opening + 1)
        for number, statement in split_statements(text[opening + 1 : last if last >= 0 else len(text)], first):
            reader.read(statement, number, losses)
        begins = line + text.count("\n", 0, max(opened, 0))
        launches[start[1]] = reader.launch(start[1], text[:opening], source, begins, losses)
    return launches, losses


@record(kw_only=False, frozen=False)
class _FunctionReader:
    """Follow the statements of one ``call_<kernel>`` function; ``macros`` are the settings of tuned kernels."""

    macros: Mapping[tuple[str, str], str]
    values: dict[str, str] = field(default_factory=dict)
    launched: tuple[str, ...] = ()
    device_code: str | None = None
    loaded: bool = False
    embedded: bool = False
    guarded: bool = False
    chosen: str = ""

    def resolve(self, text: str) -> str:
        """``text`` with the settings of a tuned kernel in place of their names."""

        def setting(found: re.Match[str]) -> str:
            value = self.macros.get((found[1].upper(), _NAMES.get(found[2], found[2].upper())))
            if value is not None and found[3] is not None:
                parts = split_list(value.strip("{}"))
                value = parts[int(found[3])] if int(found[3]) < len(parts) else None
            return value if value is not None else found[0]

        return _RESULT.sub(setting, text) if "_result." in text else text

    def read(self, text: str, line: int, losses: NotUnderstood) -> None:
        """Read one statement."""
        if text.startswith("uint32_t") and (grid := _GRID.fullmatch(text)) is not None:
            self.values[grid[1]] = self.resolve(grid[2])
            return
        if text.startswith("kernels_."):
            known = self._load_for_cpu(text) or self._load(text)
        elif text.startswith("launchKernel("):
            known = self._start(text)
        elif _GUARD.fullmatch(text) is not None:
            known = self.guarded = True
        elif len(text) >= _LONGEST:
            known = False
        elif (choice := _CHOICE.fullmatch(text)) is not None:
            # A grid per configuration: the one that was tuned.
            known = True
            self.chosen = self.resolve(choice[1]) if choice[1] is not None else self.chosen
        elif (case := _CASE.fullmatch(text)) is not None:
            known = True
            if case[1] == self.chosen:
                self.values |= {f"grid_{at}": self.resolve(case[at + 2]) for at in range(3)}
        else:
            known = _PLAIN.fullmatch(text) is not None
        if not known and read_statement(line, text).kind not in _FREE:
            losses.note("device-code" if "loadKernel" in text else "launch", line, text)

    def _load_for_cpu(self, text: str) -> bool:
        found = _LOAD_CPU.fullmatch(text)
        if found is not None:
            self.loaded = True
            self.device_code = found[1].rpartition("/")[2] if found[1] is not None else self.device_code
            return True
        launch = _LAUNCH_CPU.fullmatch(text)
        if launch is not None:
            # An empty grid is a loop of no rounds.
            self.guarded, self.launched = True, (*launch.groups(), "", "")
        return launch is not None

    def _load(self, text: str) -> bool:
        found = _LOAD.fullmatch(text)
        if found is None:
            return False
        self.loaded, self.embedded = True, found[3] is not None
        path = found[1] if found[1] is not None else ""
        if found[4] is not None:
            path = self.resolve(f"{found[4]}.cubin_path").strip('"')
            path = "" if path.endswith(".cubin_path") and path.startswith(found[4]) else path
        self.device_code = path.replace("\\", "/").rpartition("/")[2] or None
        return self.embedded or self.device_code is not None

    def _start(self, text: str) -> bool:
        found = _LAUNCH.fullmatch(text)
        parts = split_list(found[1]) if found is not None else ()
        known = len(parts) == 8 or (len(parts) == 9 and parts[8] in ("true", "false"))
        if not known or parts[6:8] != _HANDLES or not parts[0].startswith("kernels_."):
            return False
        self.launched = tuple(self.resolve(self.values.get(part, part)) for part in parts[1:6])
        named = all(part in self.values for part in parts[1:4])
        # A grid that is split over two axes is known, and depends on a limit of the GPU; any other must be computable.
        return (
            named
            and not any("_result." in one for one in self.launched)
            and all("y_grid_" in one or not isinstance(parse_expr(one), Opaque) for one in self.launched[:3])
        )

    def launch(self, name: str, parameters: str, source: str, line: int, losses: NotUnderstood) -> TritonLaunch:
        """The launch that was read; a function without a launch or device code that was understood is noted."""
        if not self.launched and "launch" not in losses.found:
            losses.note("launch", line, f"call_{name}: no launch was found in it")
        if not self.loaded and "device-code" not in losses.found:
            losses.note("device-code", line, f"call_{name}: no device code was found in it")
        settings = self.launched or ("", "", "", "", "")
        names = [found[1] for found in _PARAMETERS.finditer(parameters)]
        return TritonLaunch(
            name=name,
            grid=settings[:3] if self.launched else (),
            warps=settings[3] or None,
            shared=settings[4] or None,
            device_code=self.device_code,
            embedded=self.embedded,
            guarded=self.guarded,
            inputs=frozenset(at for at, one in enumerate(names) if one.startswith("in_ptr")),
            source=source,
            line=line,
        )


# Metal kernels, whose sources are constants at the top of the wrapper.
_SOURCE = re.compile(r'(mps_lib_\d{1,6})(?:_source = |\()\(?R"MTL\(')
_KERNEL = re.compile(r"kernel void generated_kernel\(([^{]{0,20000}?)\) \{")
_PARAMETER = re.compile(r"(device|constant) (\w+)([*&]) (\w+)")


def read_metal_kernels(head: str) -> Mapping[str, TritonLaunch]:
    """The kernels by name, with their own sources: what is before them are Metal's own headers."""
    kernels = {}
    line, counted = 1, 0
    for found in _SOURCE.finditer(head):
        end = head.find(')MTL"', found.end())
        kernel = _KERNEL.search(head, found.end(), max(end, found.end()))
        if kernel is None:
            continue
        line += head.count("\n", counted, kernel.start())
        counted = kernel.start()
        kinds = [one[1] for one in _PARAMETER.finditer(kernel[1])]
        kernels[found[1]] = TritonLaunch(
            name=found[1],
            grid=(),
            warps=None,
            shared=None,
            device_code=None,
            embedded=True,
            guarded=False,
            inputs=frozenset(at for at, kind in enumerate(kinds) if kind == "constant"),
            source=head[kernel.start() : end],
            line=line,
        )
    return kernels


def metal_parameters(launch: TritonLaunch) -> Iterator[KernelParameter]:
    """The parameters of a Metal kernel."""
    for one in _PARAMETER.finditer(launch.source.partition("{")[0]):
        yield KernelParameter(name=one[4], type=one[2], pointer=one[3] == "*", const=one[1] == "constant")
