"""Kernel calls in call order: generated C++, Triton, ATen shims and custom operators."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.expr import Expr
from aotidoctor.readers.contract.body_records import RawCall
from aotidoctor.readers.contract.known import is_operator
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.text import split_list

PROXY = "aoti_torch_proxy_executor_call_function"
_POINTER = re.compile(r"\s*\((const )?[\w:<>, ]+\*\)\(?(\w+)\.data_ptr\(\)\)?|[^,]+")
_HANDLES = re.compile(
    r"std::(?:array<AtenTensorHandle, \d+>|vector<AtenTensorHandle>)\{([^{}]*)\}\.(?:data|cbegin)\(\)"
    r"|AtenTensorHandle\[\]\{([^{}]*)\}"
)
_NODE = re.compile(r"proxy_executor, (\d{1,6}),")
_VIEWED = "reinterpret_tensor_wrapper("
_RUNTIME = re.compile(r"this->device_idx_|stream\d*|kernels|this->cubin_dir_")
_ARRAY_TYPE = re.compile(r"static_cast<[\w ]+\*>|std::array<[^<>{}]*>")
_LONGEST = 160
# The executor, the number of the node, the count of integers and they, the count of tensors and they.
_PROXY_ARGUMENTS = 6


def read_kernels(
    calls: Sequence[RawCall],
    launches: Mapping[str, Launch],
    nodes: Sequence[ExternNode],
    aliases: Mapping[str, Expr],
) -> tuple[KernelCall, ...]:
    """Describe each call. ``nodes`` are the entries of the proxy executor's JSON, which calls name by number.

    Sizes among the arguments that have a second name get their first one (``aliases``).
    """
    return tuple(_kernel(call, launches, nodes, aliases) for call in calls)


def _kernel(
    call: RawCall, launches: Mapping[str, Launch], nodes: Sequence[ExternNode], aliases: Mapping[str, Expr]
) -> KernelCall:
    name, kind = call.function, kind_of(call)
    launch = None
    match kind:
        case "custom":
            name = _target(call, nodes)
        case "triton":
            name = triton_name(call)
            launch = launches.get(f"{name}@{call.line}") or launches.get(name)
    return KernelCall(
        name=name,
        kind=kind,
        line=call.line,
        arguments=tuple(str(aliases.get(name, name)) for name in arguments_of(call)),
        origins=call.origins,
        source_nodes=call.source_nodes,
        grid=launch.grid if launch is not None else (),
        warps=launch.warps if launch is not None else None,
        shared=launch.shared if launch is not None else None,
        device_code=launch.device_code if launch is not None else None,
        guarded=launch.guarded if launch is not None else False,
    )


def kind_of(call: RawCall) -> str:
    """``cpp``, ``triton``, ``extern`` or ``custom``."""
    if call.function == PROXY:
        return "custom"
    if call.function.startswith("aoti_torch_"):
        return "extern"
    return "triton" if call.function.startswith("call_") else "cpp"


def triton_name(call: RawCall) -> str:
    """The kernel's own name: calls go through ``call_<name>``."""
    return call.function.removeprefix("call_")


def is_complete(call: RawCall, launches: Mapping[str, Launch]) -> bool:
    """Whether the call was understood: its tensors were found, a Triton kernel has a launch, an operator is known."""
    match kind_of(call):
        case "custom":
            parts = split_list(_ARRAY_TYPE.sub("", call.arguments))
            return len(parts) == _PROXY_ARGUMENTS and parts[4] == str(len(arguments_of(call)))
        case "triton":
            return triton_name(call) in launches or f"{triton_name(call)}@{call.line}" in launches
        case "cpp":
            return call.arguments.count("data_ptr") == sum(
                found[2] is not None for found in _POINTER.finditer(call.arguments)
            )
        case _:
            return is_operator(call.function)


def node_index(call: RawCall) -> int | None:
    """The node that a proxy-executor call names; None of another call."""
    found = _NODE.match(call.arguments) if call.function == PROXY else None
    return int(found[1]) if found is not None else None


def _target(call: RawCall, nodes: Sequence[ExternNode]) -> str:
    """The operator of a proxy-executor call; its number where the JSON is missing."""
    index = node_index(call)
    if index is None:
        return "?"
    return nodes[index].target if index < len(nodes) else f"#{index}"


def arguments_of(call: RawCall) -> tuple[str, ...]:
    """Arguments by the names of their tensors, other arguments as they stand."""
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
            return tuple(map(_base, split_list(_ARRAY_TYPE.sub("", call.arguments))))


def _base(text: str) -> str:
    """The tensor below a view that is made in place."""
    _, view, inside = text.partition(_VIEWED)
    if view:
        return inside.partition(",")[0]
    text = text.removeprefix("&temporary_reference(").removesuffix(".get())")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def written_and_read(call: RawCall, launches: Mapping[str, Launch]) -> tuple[frozenset[str], frozenset[str]]:
    """``(written, read)`` tensors of a call. Where the call does not tell, an argument counts as written."""
    names = arguments_of(call)
    match kind_of(call):
        case "cpp":
            pairs = [(found[2], found[1] is None) for found in _POINTER.finditer(call.arguments) if found[2]]
            return frozenset(name for name, out in pairs if out), frozenset(name for name, out in pairs if not out)
        case "triton":
            launch = launches.get(triton_name(call))
            inputs = launch.inputs if launch is not None else frozenset()
            # A tensor that is updated in place is given twice: to be read, and to be written.
            places = list(enumerate(names))
            read = frozenset(name for at, name in places if at in inputs)
            return frozenset(name for at, name in places if at not in inputs), read
        case "extern" if not _writes_first(call.function):
            return frozenset(), frozenset(names)
        case "extern":
            return frozenset(names[:1]), frozenset(names[1:])
        case _:
            return frozenset(names), frozenset()


def _writes_first(function: str) -> bool:
    """Out variants and in-place operators (``mm_out``, ``copy_``, ``fill__Scalar``) write to their first argument."""
    return function.endswith(("_out", "_")) or "__" in function
