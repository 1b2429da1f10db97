"""Parse the messages of a failing run into a symptom and facts. A symptom is wording, never a cause."""

from __future__ import annotations

import re
from dataclasses import field, replace

from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import qualified_name

# Each named group of a pattern becomes a fact.
PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "heap-corruption",
        r"double free or corruption|corrupted (?:size vs|double-linked|unsorted)|stack smashing detected",
    ),
    (
        "heap-corruption",
        r"(?:free|malloc|calloc|realloc|munmap_chunk|mremap_chunk|malloc_consolidate|memalign)\(\): \w",
    ),
    ("heap-corruption", r"invalid fastbin entry \(free\)|malloc_check_get_size: memory corruption"),
    ("heap-corruption", r"malloc\.c:\d+: \w+: Assertion"),
    (
        "check-dtype",
        r"input_handles\[(?P<index>\d+)\]: unmatched dtype, expected: \d+\((?P<wanted>[^)]*)\), but got: (?P<got>\d+)",
    ),
    (
        "check-low",
        (
            r"input_handles\[(?P<index>\d+)\]: dim value is too small at (?P<dim>\d+), "
            r"expected it to be >= (?P<wanted>\d+), but got: (?P<got>-?\d+)"
        ),
    ),
    (
        "check-high",
        (
            r"input_handles\[(?P<index>\d+)\]: dim value is too large at (?P<dim>\d+), "
            r"expected to be <= (?P<wanted>\d+), but got: (?P<got>-?\d+)"
        ),
    ),
    (
        "check-dim",
        (
            r"input_handles\[(?P<index>\d+)\]: unmatched dim value at (?P<dim>\d+), "
            r"expected: (?P<wanted>-?\d+), but got: (?P<got>-?\d+)"
        ),
    ),
    (
        "check-stride",
        (
            r"input_handles\[(?P<index>\d+)\]: unmatched stride value at (?P<dim>\d+), "
            r"expected: (?P<wanted>-?\d+), but got: (?P<got>-?\d+)"
        ),
    ),
    (
        "check-device",
        (
            r"input_handles\[(?P<index>\d+)\]: unmatched device type, expected: "
            r"\d+\(?(?P<wanted>(?!\d)\w*)\)?, but got: (?P<got>\d+)"
        ),
    ),
    (
        "check-op",
        (
            r"(?:expected size|expected ndim|wrong number of "
            r"dimensions)[^\n]{0,800}\n(?:[^\n]{0,800}\n){0,8}?Error in op: (?P<op>torch\.ops\.\S+|\S+::\S+)"
        ),
    ),
    (
        "check-input-relation",
        r"(?P<detail>expected (?:size|ndim)[^\n]{0,800})\n(?:[^\n]{0,800}\n){0,8}?Error in op: input",
    ),
    (
        "check-op",
        r"(?P<detail>expected (?:size|ndim) [^\n]{0,300}?(?:==|but got)[^\n]*)(?:\nError in op: (?P<op>\S+))?",
    ),
    ("nan-assert", r"At least one (?:NaN|INF) in (?P<buffer>\w+)"),
    # The output of a GPU for a failed assertion; the exception that follows does not contain it.
    (
        "cuda-assert",
        (
            r"block: \[[\d,]+\], thread: \[[\d,]+\] Assertion `(?P<asserted>(?:index out of bounds: (?:0 <= )?"
            r"(?P<variable>\w+) < (?P<bound>[^\s`]+(?![^\s`])(?: [-+] [^\s`]+(?![^\s`])){0,8}))?[^`\n]*)` failed"
        ),
    ),
    (
        "index-out-of-bounds",
        r"index out of bounds: (?:0 <= )?(?P<variable>\w+) < (?P<bound>[^\s`\"]+(?: [-+] [^\s`\"]+)*)",
    ),
    # The compiler leaves out the half of the check that it can prove.
    ("index-out-of-bounds", r"index out of bounds: 0 <= (?P<variable>\w+)"),
    # The messages of ATen operators that check their own indices and offsets.
    (
        "index-out-of-bounds",
        (
            r"index (?P<value>-?\d+) is out of bounds for dimension \d+(?: with size (?P<size>\d+))?|"
            r"tried to access index (?P<value_in>-?\d+) on a tensor of (?P<size_of>\d+) elements|"
            r"of input takes value (?P<value_of>-?\d+) which is not in the valid range \[0, (?P<size_below>\d+)\)|"
            r"INDICES element is out of DATA bounds, id=(?P<value_id>-?\d+) axis_dim=(?P<size_axis>\d+)"
        ),
    ),
    (
        "index-out-of-bounds",
        (
            r"index out of range in self|index_select\(\): index out of range|"
            r"index is out of bounds for dimension with size (?P<size>0)|"
            r"Expected i(?:dx)? (?:< index_size|>= 0 && idx < num_\w{1,20}) to be true|"
            r"offsets\[0\] has to be 0|offsets\[-1\] can not be greater than input's length"
        ),
    ),
    ("index-out-of-bounds", r"Target (?P<value>-?\d+) is out of bounds|invalid max index: (?P<value_in>-?\d+)"),
    (
        "integer-division",
        r"ZeroDivisionError|inductor_cpu_throw_if_integer_div_error|integer division or modulo by zero",
    ),
    ("runtime-assert", r"Expected (?P<condition>u\d+ [<>=!]+ -?\d+|[^\n]{1,120}?) but received (?P<value>-?\d+)"),
    ("runtime-assert", r"Runtime assertion failed for expression (?P<condition>[^\n]{1,160})"),
    ("storage-overflow", r"Storage size calculation overflowed with sizes=(?P<sizes>\[[^\]]*\])"),
    (
        "alloc-failed",
        r"DefaultCPUAllocator: (?:not enough memory|can't allocate memory)[^\n]{0,200}?allocate (?P<bytes>\d+) bytes",
    ),
    (
        "cuda-oom",
        (
            r"CUDA out of memory|out of memory\. Tried to allocate|CUDA (?:driver )?error: out of memory|"
            r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"
        ),
    ),
    ("alloc-failed", r"std::bad_alloc|Cannot allocate memory|MemoryError|mz_zip error string: allocation failed"),
    ("cuda-illegal-access", r"an illegal memory access was encountered"),
    ("cuda-misaligned", r"misaligned address"),
    ("cuda-assert", r"device-side assert triggered"),
    ("cuda-no-image", r"no kernel image is available for execution"),
    ("cuda-file-not-found", r"CUDA (?:driver )?error: file not found"),
    (
        "cuda-capture",
        (
            r"operation (?:not permitted|failed|would make).{0,60}captur|cudaErrorStreamCapture\w+|"
            r"captur\w{1,8} .{0,40}was invalidated"
        ),
    ),
    ("cuda-device-index", r"invalid device ordinal"),
    (
        "cuda-driver",
        (
            r"driver version is insufficient for CUDA runtime|NVIDIA driver on your system is too old|"
            r"unsupported display driver / cuda driver combination|forward compatibility was attempted|"
            r"PTX was compiled with an unsupported toolchain"
        ),
    ),
    (
        "cuda-no-device",
        (
            r"no CUDA-capable device is detected|Found no NVIDIA driver|No CUDA GPUs are available|"
            r"CUDA driver is a stub library|libcuda\.so\.1: cannot open shared object"
        ),
    ),
    (
        "mixed-device",
        r"CUDAGuardImpl initialized with non-CUDA DeviceType|Expected all tensors to be on the same device",
    ),
    (
        "cuda-host-pointer",
        (
            r"resides o[nf] host memory and is not registered|[Hh]ost memory.{0,80}not (?:been )?registered|"
            r"Pointer argument .{0,20}cannot be accessed from Triton"
        ),
    ),
    # A library could not do its work: because of an earlier fault, or by itself. The message does not say which.
    (
        "gpu-library",
        r"(?P<status>CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_(?:EXECUTION_FAILED\w*|INTERNAL_ERROR\w*|MAPPING_ERROR))",
    ),
    ("cuda-error", r"CUDA (?:driver )?error: (?P<text>[^\n]{1,160})"),
    ("not-compiled-with", r"Torch not compiled with (?P<device>\w+) enabled"),
    ("unsupported-device-key", r"Unsupported device key found: (?P<device>\S+)"),
    ("device-mismatch", r"Incorrect device passed to (?P<runner>\w+)"),
    ("class-missing", r"Deserializing (?P<class_name>[\w.]+) in pytree is not registered"),
    ("schema-missing", r"Could not find schema for (?P<op>[\w:.]+?)\.?(?:\s|$)"),
    ("schema-differs", r"Expected extern kernel (?P<op>\w+::\w+)(?!\w)\S* to have serialized argument type"),
    (
        "schema-differs",
        r"Serialized node doesn't match operator[^\n]{0,300}?\"?(?P<op>\w{1,60}::\w{1,120})?\"?'?s? schema",
    ),
    (
        "op-unsupported-device",
        r"Could not run '(?P<op>\w+::\w+)(?!\w)[^']{0,200}' with arguments from the '(?P<backend>\w+)' backend",
    ),
    (
        "op-unsupported-device",
        r"NotImplementedError: [^\n]{0,200}?\b(?P<op>\w{1,60}::\w{1,120})[^\n]{0,300}?(?:kernel|implementation)",
    ),
    ("proxy-missing", r"Unable to find a proxy executor|Invalid extern node index"),
    ("proxy-arguments", r"Mismatch between (?:ints|tensors) consumed and num_(?:ints|tensors)"),
    ("op-no-storage", r"Cannot access data pointer of Tensor that doesn't have storage"),
    ("sparse-no-strides", r"Sparse \w+ tensors do not have strides|sparse tensors do not have strides"),
    ("tmpdir-create", r"Error generating temporary directory|Failed to create temp"),
    ("tmpdir-full", r"write callback failed|No space left on device"),
    ("tmpdir-noexec", r"failed to map segment from shared object"),
    ("dlopen-execstack", r"cannot enable executable stack as shared object requires: (?P<refusal>[^\n]{1,80})"),
    ("dlopen-symbol", r"undefined symbol: (?P<name>\S+)|version [`'](?P<version>[^'\n]{1,80})' not found"),
    ("dlopen-library", r"Error in dlopen: (?P<name>(?!/)\S+?): cannot open shared object file"),
    ("dlopen-machine", r"Error in dlopen: (?P<name>/\S+?): cannot open shared object file"),
    (
        "dlopen-format",
        r"invalid ELF header|wrong ELF class|file too short|ELF load command|object file has no|cannot (?:apply|read) ",
    ),
    ("kwarg-mismatch", r"Ran into a kwarg keyword mismatch"),
    (
        "output-spec",
        r"`leaves` has length (?P<observed>\d+) but the spec refers to a pytree that holds (?P<expected>\d+) items",
    ),
    ("count-mismatch", r"expected inputs vector size to be (?P<wanted>\d+), but got (?P<got>\d+)"),
    ("model-not-found", r"Failed to find a generated cpp file or so file for model '(?P<model>[^']*)'"),
    ("file-not-found", r"File not found: (?P<name>\S+)"),
    ("two-libraries", r"Multiple wrapper shared libraries found"),
    ("zip", r"Failed to initialize zip archive|Failed to extract zip file|PytorchStreamReader failed"),
    ("link-failed", r"Failed to (?:link|compile) (?:cpp )?files?\b|cannot find -l\w+"),
    ("unsafe-pickle", r"Weights only load failed"),
    ("constant-not-found", r"Constant not found: (?P<name>[\w.]+)"),
    ("constants-refused", r"(?:load_constants|update_constant_buffer)\(\): incompatible function arguments"),
    ("constant-state", r"Unknown constant state: (?:ConstantState::)?(?P<name>\w+)"),
    ("constant-not-given", r"Cannot find constants? (?P<name>[\w.]+)"),
)
COMPILED = tuple((symptom, re.compile(pattern)) for symptom, pattern in PATTERNS)

RAISED_FROM = re.compile(r"Exception raised from (?P<function>\S+) at (?P<file>[^\s:]+):(?P<line>\d+)")
# The C++ runtime prints the failed call, with all arguments, before it returns a bare error code.
CALL_FAILED = re.compile(
    r"Error: (?P<shim>aoti_torch_\w+)\([^\n]{0,2000}? API call failed at (?P<file>[^\s,]+), line (?P<line>\d+)"
)
# The shims print each of their exceptions; before 2.13 the caller may get a later one, or no message.
_IN_SHIM = re.compile(r"Exception in aoti_torch: ")
_NEXT_LOG_LINE = re.compile(r"^\[[A-Z]\d{4} \d\d:\d\d:\d\d\.|^Error: ", re.MULTILINE)
# The messages of compilers and linkers for a file that they do not find, and for code that they refuse.
NOT_FOUND = re.compile(
    r"error: [^\w\s./+-]?([\w./+-]{1,200})[^\w\s./+-]?(?:: No such file| file not found)|"
    r"cannot find (-l[\w.+-]{1,100})|\b((?:g\+\+|clang\+\+|c\+\+)(?:-\d{1,3})?): (?:command )?not found"
)
REFUSED_CODE = re.compile(r"\.(?:cpp|h|hpp|cuh|inl):\d{1,7}(?::\d{1,5})?: error: ")
# Only the end of long output is stored: a compiler that warns is present and has found its input.
_WARNED = re.compile(r"\.(?:cpp|h|hpp|cuh|inl):\d{1,7}(?::\d{1,5})?: warning: ")
KERNEL = re.compile(r"\b((?:cpp|triton)_\w*?fused_\w+)")


# A pattern cannot have two groups of one name.
_SECOND = {
    "value_in": "value", "value_of": "value", "value_id": "value",
    "size_of": "size", "size_below": "size", "size_axis": "size",
}  # fmt: skip


@record
class Symptom:
    """The wording that was recognised (``other`` when none was), its facts, and the line that contains it."""

    name: str
    line: str
    facts: dict[str, FactValue] = field(default_factory=dict)


def recognise(text: str) -> Symptom:
    """The first known wording in ``text``; kernels and places named beside it become facts."""
    for name, pattern in COMPILED:
        match = pattern.search(text)
        if match:
            facts: dict[str, FactValue] = {key: value for key, value in match.groupdict().items() if value is not None}
            facts |= {name: facts.pop(key) for key, name in _SECOND.items() if key in facts}
            if "op" in facts:
                facts["op"] = qualified_name(str(facts["op"]))
            return Symptom(name=name, line=line_at(text, match.start()), facts={**facts, **_place(text)})
    first = next((line.strip()[:300] for line in text.splitlines() if line.strip()), "")
    return Symptom(name="other", line=first, facts=_place(text))


def compiler_symptom(symptom: Symptom, text: str) -> Symptom:
    """The symptom of a package that could not be compiled at its load, from the compiler's output in ``text`` (stderr).

    The file that it did not find becomes the fact ``missing``. If it refuses code, the symptom is ``compile-failed``.
    """
    if symptom.name != "link-failed":
        return symptom
    missing = NOT_FOUND.search(text)
    if missing is not None:
        name = next(group for group in missing.groups() if group is not None)
        return replace(symptom, line=line_at(text, missing.start()), facts={**symptom.facts, "missing": name})
    refused = REFUSED_CODE.search(text) or _WARNED.search(text)
    if refused is None:
        return symptom
    line = line_at(text, refused.start()) if refused.re is REFUSED_CODE else symptom.line
    return Symptom(name="compile-failed", line=line, facts={**symptom.facts, "what": "the compiler here refuses them"})


def first_exception(text: str) -> str | None:
    """The first exception of a shim in ``text`` (of stderr), with all its lines; None without any."""
    start = _IN_SHIM.search(text)
    if start is None:
        return None
    end = _NEXT_LOG_LINE.search(text, start.end())
    return text[start.end() : end.start() if end is not None else len(text)].strip()


def _place(text: str) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    raised = RAISED_FROM.search(text)
    if raised:
        facts |= {"function": raised["function"], "file": raised["file"], "file_line": int(raised["line"])}
    kernel = KERNEL.search(raised["function"] if raised else text)
    if kernel:
        facts["kernel"] = kernel[1]
    return facts


def line_at(text: str, position: int) -> str:
    """The line at the position, cut to 300 characters."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return text[start : end if end >= 0 else len(text)].strip()[:300]
