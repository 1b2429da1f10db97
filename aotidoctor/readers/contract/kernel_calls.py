"""List the kernel calls of run_impl, and read the sources of the kernels.

Kernel calls come in call order: generated C++, Triton, ATen shims and custom operators. Sources show bound checks,
accumulators per thread, random numbers and NaN constants.

A kernel with a reduction across threads keeps one accumulator per thread in ``tmp_acc0_arr[N]``, where N is the number
of threads of the machine that compiled it. Where N equals that machine's number of cores, the parallel region does not
say ``num_threads(N)``, so a machine with more cores writes past the end of the array. The attention template sizes its
buffers with ``num_thread`` in the same way. An array of that name which no ``[tid]`` indexes has another purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.contract import BoundCheck, KernelBody, KernelCall, KernelParameter
from aotidoctor.model.expr import Expr
from aotidoctor.model.record import record
from aotidoctor.readers.contract.run_impl import TritonLaunch
from aotidoctor.readers.contract.wrapper_statements import Statement
from aotidoctor.readers.contract.wrapper_text import is_operator, split_list

# Calls.
PROXY = "aoti_torch_proxy_executor_call_function"
_POINTER = re.compile(r"\s*\((const )?[\w:<>, ]+\*\)\(?(\w+)\.data_ptr\(\)\)?|[^,]+")
_HANDLES = re.compile(
    r"std::(?:array<AtenTensorHandle, \d+>|vector<AtenTensorHandle>)\{([^{}]*)\}\.(?:data|cbegin)\(\)"
    r"|AtenTensorHandle\[\]\{([^{}]*)\}"
)
_NODE = re.compile(r"proxy_executor, (\d{1,6}),")
_VIEWED = "reinterpret_tensor_wrapper("
_RUNTIME = re.compile(r"this->device_idx_|stream\d*|kernels|this->cubin_dir_")
_LONGEST = 160
# The executor, the number of the node, the count of integers, the integers, the count of tensors, the tensors.
_PROXY_ARGUMENTS = 6


def read_kernels(
    calls: Sequence[Statement],
    launches: Mapping[str, TritonLaunch],
    nodes: Sequence[ExternNode],
    aliases: Mapping[str, Expr],
) -> Iterator[KernelCall]:
    """Describe each call. ``nodes`` are the entries of the proxy executor's JSON, which calls name by number.

    Sizes among the arguments that have a second name get their first one (``aliases``).
    """
    for call in calls:
        name, kind, launch = call.function, kind_of(call), None
        if kind == "custom":
            # The operator; its number where the JSON is missing.
            index = node_index(call)
            name = "?" if index is None else nodes[index].target if index < len(nodes) else f"#{index}"
        elif kind == "triton":
            name = triton_name(call)
            launch = launches.get(f"{name}@{call.line}") or launches.get(name)
        elif kind == "metal" and name in launches:
            launch = replace(launches[name], grid=call.values)
        one = KernelCall(
            name=name,
            kind=kind,
            line=call.line,
            arguments=tuple(str(aliases.get(argument, argument)) for argument in arguments_of(call)),
            origins=call.origins,
            source_nodes=call.source_nodes,
            # Only functions of the runtime return a status.
            unchecked=kind in ("extern", "custom") and not call.checked,
        )
        if launch is not None:
            one = replace(
                one,
                grid=launch.grid,
                warps=launch.warps,
                shared=launch.shared,
                device_code=launch.device_code,
                guarded=launch.guarded,
            )
        yield one


def kind_of(call: Statement) -> str:
    """The kind of a call: ``cpp``, ``triton``, ``metal``, ``extern`` or ``custom``."""
    if call.function == PROXY:
        return "custom"
    if call.function.startswith("aoti_torch_"):
        return "extern"
    if call.function.startswith("mps_lib_"):
        return "metal"
    return "triton" if call.function.startswith("call_") else "cpp"


def triton_name(call: Statement) -> str:
    """The kernel's own name: calls go through ``call_<name>``."""
    return call.function.removeprefix("call_")


def is_complete(call: Statement, launches: Mapping[str, TritonLaunch]) -> bool:
    """Whether the call was understood: its tensors were found, a Triton kernel has a launch, an operator is known."""
    match kind_of(call):
        case "custom":
            parts = call.parts
            return len(parts) == _PROXY_ARGUMENTS and parts[4] == str(len(arguments_of(call)))
        case "triton":
            return triton_name(call) in launches or f"{triton_name(call)}@{call.line}" in launches
        case "metal":
            return call.function in launches
        case "cpp":
            return call.arguments.count("data_ptr") == sum(
                found[2] is not None for found in _POINTER.finditer(call.arguments)
            )
        case _:
            return is_operator(call.function)


def node_index(call: Statement) -> int | None:
    """The node that a proxy-executor call names; None of another call."""
    found = _NODE.match(call.arguments) if call.function == PROXY else None
    return int(found[1]) if found is not None else None


def arguments_of(call: Statement) -> tuple[str, ...]:
    """Arguments: tensors by name, others as they are in the text."""
    match kind_of(call):
        case "cpp":
            return tuple(found[2] or found[0].strip() for found in _POINTER.finditer(call.arguments))
        case "custom":
            handles = _HANDLES.search(call.arguments)
            text = (handles[1] or handles[2] or "") if handles is not None else ""
            return tuple(map(_base, split_list(text)))
        case "triton":
            return tuple(_base(part) for part in split_list(call.arguments) if _RUNTIME.fullmatch(part) is None)
        case _:
            return tuple(map(_base, call.parts))


def _base(text: str) -> str:
    """The tensor below a view that is made in place."""
    _, view, inside = text.partition(_VIEWED)
    if view:
        return inside.partition(",")[0]
    text = text.removeprefix("&temporary_reference(").removesuffix(".get())")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def written_and_read(call: Statement, launches: Mapping[str, TritonLaunch]) -> tuple[frozenset[str], frozenset[str]]:
    """``(written, read)`` tensors of a call. Where that is not clear, an argument counts as written."""
    names = arguments_of(call)
    # Out variants and in-place operators (`mm_out`, `copy_`, `fill__Scalar`) write to their first argument.
    match kind_of(call):
        case "cpp":
            pairs = [(found[2], found[1] is None) for found in _POINTER.finditer(call.arguments) if found[2]]
            return frozenset(name for name, out in pairs if out), frozenset(name for name, out in pairs if not out)
        case "triton" | "metal":
            launch = launches.get(triton_name(call))
            inputs = launch.inputs if launch is not None else frozenset()
            # A tensor that is updated in place is given twice: to be read, and to be written.
            places = list(enumerate(names))
            read = frozenset(name for at, name in places if at in inputs)
            return frozenset(name for at, name in places if at not in inputs), read
        case "extern" if not (call.function.endswith(("_out", "_")) or "__" in call.function):
            return frozenset(), frozenset(names)
        case "extern":
            return frozenset(names[:1]), frozenset(names[1:])
        case _:
            return frozenset(names), frozenset()


# Parameters of kernels, to be matched with the arguments of a call.
# The type may hold spaces, and ends where the star or the name begins.
_NAME = re.compile(r"\w+$")
_CPP_TYPE = re.compile(r"[\w:<>, ]+")
_DEFINITION = re.compile(r"^[ \t]*def (\w+)\(([^()]*)\)", re.MULTILINE)
_SIGNATURE = re.compile(r"'signature': \{([^{}]*)\}")
_TYPE = re.compile(r"'(\w+)': '(\*?)(\w+)'")
_LONGEST_SIGNATURE = 20_000


def cpp_body(name: str, text: str, line: int, member: str) -> KernelBody:
    """The C++ kernel with the source ``text``; no parameters where one was not understood."""
    opened = text.find("(")
    closed = text.find(")", opened, opened + _LONGEST_SIGNATURE)
    parameters: list[KernelParameter] = []
    for part in split_list(text[opened + 1 : closed]) if closed > 0 else ():
        # ``const float* __restrict__ in_ptr0``. Searched from its end, a word costs no more than its length.
        start = len(part) - len(part[::-1].partition(" ")[0].partition("*")[0])
        kind = part[:start].removesuffix("__restrict__ ").rstrip()
        name_of_type = kind.removeprefix("const ").removesuffix("*").strip()
        if _NAME.fullmatch(part, start) is None or _CPP_TYPE.fullmatch(name_of_type) is None:
            parameters = []
            break
        const = part.startswith("const ")
        parameters.append(
            KernelParameter(name=part[start:], type=name_of_type, pointer=kind.endswith("*"), const=const)
        )
    return KernelBody(
        name=name, kind="cpp", member=member, line=line, lines=text.count("\n") + 1, parameters=tuple(parameters)
    )


def body_of(launch: TritonLaunch, member: str) -> KernelBody:
    """The Triton or Metal kernel of ``launch``."""
    metal = launch.name.startswith("mps_lib_")
    if metal:
        from aotidoctor.readers.contract.triton_launches import metal_parameters as parameters
    else:
        parameters = _triton_parameters
    return KernelBody(
        name=launch.name,
        kind="metal" if metal else "triton",
        member=member,
        line=launch.line,
        lines=launch.source.count("\n") + 1,
        parameters=tuple(parameters(launch)),
    )


def _triton_parameters(launch: TritonLaunch) -> Iterator[KernelParameter]:
    """The parameters that the launch passes: no compile-time constants."""
    signature = _SIGNATURE.search(launch.source)
    # Helper functions of scans come before the kernel.
    listed = next((one[2] for one in _DEFINITION.finditer(launch.source) if one[1] == launch.name), "")
    types = {one[1]: one for one in _TYPE.finditer(signature[1])} if signature is not None else {}
    for name in (part.partition(":")[0].strip() for part in split_list(listed)):
        if name in types and types[name][3] != "constexpr":
            const = name.startswith("in_ptr")
            yield KernelParameter(name=name, type=types[name][3], pointer=bool(types[name][2]), const=const)


# Facts in the bodies of kernels.
_FUNCTION = re.compile(r'extern "C"\s+(?:[A-Z_]+\s+)?void\s+(\w+)\(')
_BOUND = re.compile(r'"(index out of bounds: [^"\n]*)')
_RANDOM = re.compile(
    r"\b(normalized_rand_cpu|randn_cpu|randint64_cpu|tl\.randn?|triton_helpers\.randint64|tl\.randint)\("
)
_NAN = ("quiet_NaN()", 'float("nan")', "float('nan')")
_THREADS = re.compile(
    r"\b(?P<array>[a-z_]{0,40}acc\w{0,60}_arr)(?:\[|[^;\n]{0,200}\[\]>\()(?P<size>\d{1,6}|tid)[\])]"
    r"|#pragma omp parallel(?P<parallel>[^\n]*)"
    r"|int64_t num_thread = (?P<num_thread>\d{1,6});"
    r"|(?P<thread_number>at::get_thread_num\(\))"
)
_UPPER = re.compile(r"<=?([^<]+)$")
_SUFFIX = re.compile(r"\b(\d+)L\b")


@record(frozen=False)
class KernelFacts:
    """Facts of all kernels. ``baked_threads`` maps a kernel to the thread count its buffers were sized for.

    ``random`` are pairs of kernel and function, ``nan`` the kernels with a NaN constant, each once and in order.
    """

    bounds: list[BoundCheck] = field(default_factory=list)
    bodies: list[KernelBody] = field(default_factory=list)
    baked_threads: dict[str, int] = field(default_factory=dict)
    random: dict[tuple[str, str], None] = field(default_factory=dict)
    nan: dict[str, None] = field(default_factory=dict)


def read_kernel_sources(
    sources: Mapping[str, str], launches: Mapping[str, TritonLaunch], wrapper_member: str | None
) -> KernelFacts:
    """Read the C++ kernels of ``sources`` (member to text) and the Triton kernels of ``launches``."""
    facts = KernelFacts()
    for member, text in sources.items():
        starts = list(_FUNCTION.finditer(text))
        line, counted = 1, 0
        for at, start in enumerate(starts):
            end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
            opened = text.find("{", start.end(), end)
            # Only functions that have a body.
            if opened < 0 or text.find(";", start.end(), opened) >= 0:
                continue
            line += text.count("\n", counted, start.start())
            counted = start.start()
            part = text[counted:end]
            _read_source(facts, start[1], part, line, member)
            facts.bodies.append(cpp_body(start[1], part, line, member))
    for launch in launches.values():
        _read_source(facts, launch.name, launch.source, launch.line, wrapper_member)
        if launch.source and wrapper_member is not None:
            facts.bodies.append(body_of(launch, wrapper_member))
    return facts


def _read_source(facts: KernelFacts, kernel: str, text: str, line: int, member: str | None) -> None:
    """Read one kernel. Regular expressions are tried only where a word of theirs occurs: kernels are long texts."""
    counted = 0
    for found in _BOUND.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        upper = _UPPER.search(found[1])
        bound = _SUFFIX.sub(r"\1", upper[1].strip()) if upper is not None else ""
        facts.bounds.append(BoundCheck(kernel=kernel, text=found[1], bound=bound, line=line, member=member))
    if "rand" in text:
        facts.random.update(dict.fromkeys((kernel, found[1]) for found in _RANDOM.finditer(text)))
    if any(mark in text for mark in _NAN):
        facts.nan[kernel] = None
    if "_arr[tid]" in text or "int64_t num_thread" in text:
        baked = [threads for threads in _baked_threads(text) if threads is not None]
        if baked:
            facts.baked_threads[kernel] = min(baked)


def _baked_threads(text: str) -> Iterator[int | None]:
    """The thread count behind each use of a thread's number, where one is baked in, in the order of the kernel."""
    sizes: dict[str, int] = {}
    template: int | None = None
    open_region = False
    for mark in _THREADS.finditer(text):
        if mark["parallel"] is not None:
            open_region = "num_threads" not in mark["parallel"]
        elif mark["num_thread"] is not None:
            template = int(mark["num_thread"])
        elif mark["thread_number"] is not None:
            yield template
        elif mark["size"] == "tid":
            yield sizes.get(mark["array"]) if open_region else None
        else:
            sizes.setdefault(mark["array"], int(mark["size"]))
