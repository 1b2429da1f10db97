"""Carry out operators that the wrapper calls through the C shim, by the CPU kernels of the same operators.

The C signatures follow from the schemas: an out variant takes what it writes first, a list is a pointer and a length,
an optional argument is a pointer, results are handles at the end. Operands are checked for memory that was never
written, results for NaN of finite values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from aotidoctor.readers.contract.wrapper_text import split_list
from aotidoctor.worker.emulation.storage import PROXY, PendingStep, WrapperTensor, device_copy, empty_storage
from aotidoctor.worker.emulation.wrapper import CannotReplayError, Replay
from aotidoctor.worker.operators.op_calls import find_overload
from aotidoctor.worker.operators.op_schema import UnsuitableArgumentError, build_arguments, read_operator_call
from aotidoctor.worker.tensors import dtype_name

# Calls of the C shim, read by the schemas.
_NULL = ("0", "nullptr", "NULL", "{}")
_DTYPE = re.compile(r"\w*?_dtype_(\w+?)(?:\(\))?$")
# Where the shim's name is not the operator's.
_NAMES = {
    "scatter_out": ("scatter", "src_out"),
    "scatter_reduce_out": ("scatter_reduce", "two_out"),
    "_scaled_dot_product_flash_attention_v2": ("_scaled_dot_product_flash_attention", "default"),
}
# What an operator may take. A text only where it is one of a few words: ``aten::from_file`` takes the name of a file.
_KINDS = (
    "Tensor", "int", "bool", "float", "number", "complex", "SymInt", "Device", "Generator", "Layout", "MemoryFormat",
)  # fmt: skip
_WORDS = (
    "approximate", "equation", "indexing", "interpolation", "mode", "norm", "ord", "padding_mode", "reduce",
    "rounding_mode", "side", "UPLO", "driver", "padding", "algorithm",
)  # fmt: skip
# PyTorch's own namespaces: those of computations, and all others. What is in neither was registered by the user.
_COMPUTING = ("aten", "prims", "quantized", "quantized_decomposed")
_NOT_COMPUTING = (
    "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_native", "_quantized", "_test", "c10d", "cuda",
    "debug_mode_ops", "debugprims", "dist", "export", "fsdp", "higher_order", "inductor", "inductor_prims", "mkl",
    "mkldnn", "mkldnn_prepacked", "onednn", "onnx", "prim", "profiler", "quantization", "rngprims", "sparse",
    "static_runtime", "streams", "symm_mem",
)  # fmt: skip


def allow_operator(operator: Any) -> Any:
    """``operator``, if a package may call it. Raises ``CannotReplayError``."""
    namespace = operator._schema.name.partition("::")[0]
    if namespace in _NOT_COMPUTING:
        raise CannotReplayError(f"the operator {operator._schema.name} does not compute")
    for one in operator._schema.arguments if namespace in _COMPUTING else ():
        kind = str(one.type).replace("Optional[", "").replace("List[", "").rstrip("]")
        if kind not in _KINDS and not (kind == "str" and one.name in _WORDS):
            raise CannotReplayError(f"the operator {operator._schema.name} takes {one.name}, a {kind}")
    return operator


def find_operator(name: str) -> Any:
    """The operator behind ``mm_out``, ``sort_stable``, ``index_Tensor``. Raises ``CannotReplayError``."""
    if name in _NAMES:
        base, overload = _NAMES[name]
        return getattr(getattr(torch.ops.aten, base), overload)
    for cut in [None, *(at for at in range(len(name) - 1, 0, -1) if name[at] == "_")]:
        base, overload = (name, "default") if cut is None else (name[:cut], name[cut + 1 :])
        packet = getattr(torch.ops.aten, base, None) if base else None
        if packet is None:
            continue
        overloads = packet.overloads()
        if overload in overloads:
            return allow_operator(getattr(packet, overload))
        if cut is None and overloads:
            return allow_operator(getattr(packet, overloads[0]))
    raise CannotReplayError(f"the operator {name} is not known here")


class CArgumentReader:
    """Read the texts of a call's arguments in the order of the operator's schema."""

    def __init__(self, replay: Replay, texts: Iterator[str]) -> None:
        self._replay = replay
        self._texts = texts
        self.tensors: list[WrapperTensor] = []

    def rest(self) -> Iterator[str]:
        """The names of the results, which come last."""
        return (text.strip().removeprefix("&") for text in self._texts)

    def tensor(self) -> Any:
        """The next argument as a tensor of torch."""
        return self._tensor(next(self._texts))

    def read(self, kind: str) -> Any:
        """The value of the next argument, which has the type ``kind`` in the schema."""
        text = next(self._texts).strip()
        if kind.startswith("Optional["):
            if text in _NULL:
                if "List" in kind:
                    next(self._texts)
                return None
            return self._value(kind[len("Optional[") : -1], text.removeprefix("&"), optional=True)
        return self._value(kind, text, optional=False)

    def _value(self, kind: str, text: str, *, optional: bool) -> Any:
        match kind:
            case "Tensor":
                return self._tensor(text)
            case "List[int]" | "List[SymInt]":
                values = self._replay.numbers(text)
                length = int(self._replay.number(next(self._texts)))
                return list(values[:length])
            case "List[Tensor]" | "List[Optional[Tensor]]":
                inside = re.search(r"\{(.*)\}", text)
                length = int(self._replay.number(next(self._texts)))
                if inside is None:
                    raise CannotReplayError("a list of tensors that is not written out")
                parts = [one.strip() for one in split_list(inside[1])[:length]]
                return [None if one in _NULL else self._tensor(one.removeprefix("&")) for one in parts]
            case "int":
                dtype = _DTYPE.match(text)
                if dtype is not None:
                    return getattr(torch, dtype[1])
                return int(self._replay.number(text))
            case "bool":
                return bool(self._replay.number(text))
            case "float":
                return float(self._replay.number(text))
            case "number":
                return self._replay.number(text)
            case "str":
                return text.strip('"')
            case _:
                raise CannotReplayError(f"an argument of the type {kind}")

    def _tensor(self, text: str) -> Any:
        tensor = self._replay.tensor(text.removeprefix("&"))
        if not tensor.storage.live:
            raise CannotReplayError(f"{tensor.name} was freed before")
        self.tensors.append(tensor)
        return tensor.torch()


def read_shim_arguments(
    reader: CArgumentReader, operator: Any
) -> tuple[list[WrapperTensor], list[Any], dict[str, Any]]:
    """The tensors that an operator writes to, its positional arguments and its keyword arguments."""
    arguments = operator._schema.arguments
    keywords: dict[str, Any] = {one.name: reader.tensor() for one in arguments if one.is_out}
    written = list(reader.tensors)
    given: list[Any] = []
    for one in arguments:
        if one.is_out:
            continue
        if str(one.type) in ("Optional[Device]", "Device", "Optional[Layout]", "Optional[MemoryFormat]"):
            raise CannotReplayError(f"an argument of the type {one.type}")
        before = len(reader.tensors)
        value = reader.read(str(one.type))
        if one.alias_info is not None and one.alias_info.is_write:
            written += reader.tensors[before:]
        if one.kwarg_only:
            keywords[one.name] = value
        else:
            given.append(value)
    return written, given, keywords


# Checks of operands and results.
def check_operands_known(replay: Replay, function: str, given: list[WrapperTensor], line: int) -> None:
    """Report unwritten elements of operands, all of which are read. Raises ``CannotReplayError`` for unknown ones."""
    for tensor in given:
        if not tensor.storage.known:
            raise CannotReplayError(
                f"{tensor.name} is not known: something that was not executed may have written to it"
            )
        count = tensor.has_unwritten()
        if count:
            replay.found.add(
                "uninitialized", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None,
                allocation=tensor.storage.name, argument=tensor.name,
            )  # fmt: skip


def report_nan(replay: Replay, function: str, given: list[WrapperTensor], made: list[WrapperTensor], line: int) -> None:
    """Report NaN in results of finite operands."""
    values = (tensor.torch() for tensor in given)
    if any(value.is_floating_point() and not value.isfinite().all() for value in values):
        return
    for tensor in made:
        value = tensor.torch()
        count = int(value.isnan().sum()) if value.is_floating_point() else 0
        if count:
            replay.found.add("nan", kernel=function, wrapper_line=line, buffer=tensor.name, count=count, launch=None)


# The calls.
_DEVICE = re.compile(r"aoti_torch_(?:(?:cuda|cpu|xpu|mps|aten)_)?")
# Operators whose operands no address depends on.
_WITHOUT_INDICES = ("mm_out", "bmm_out", "addmm_out", "baddbmm_out", "_int_mm_out", "addmv_out", "zero_")
_SHAPED = ("convolution",)
# Operators without a CPU kernel whose result another operator computes.
_ALIKE = ("_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
          "_scaled_dot_product_cudnn_attention")  # fmt: skip


def call_operator(replay: Replay, function: str, arguments: list[str], line: int) -> None:
    """Carry out one call. Raises ``CannotReplayError``."""
    name = _DEVICE.sub("", function, count=1)
    if name.startswith("item_"):
        tensor = replay.tensor(arguments[0])
        replay.fill(tensor)
        replay.names[arguments[1].removeprefix("&")] = tensor.torch().item()
        return
    if name == "tensor_copy_":
        source, target = replay.tensor(arguments[0]), replay.tensor(arguments[1])
        if not _leave_out(replay, [source], [target], lambda: target.torch().copy_(source.torch())):
            target.torch().copy_(source.torch())
        target.mark()
        return
    if name == "proxy_executor_call_function":
        _call_node(replay, arguments, line)
        return
    operator = find_operator(name)
    reader = CArgumentReader(replay, iter(arguments))
    written, given, keywords = read_shim_arguments(reader, operator)
    results = list(reader.rest())
    read = [one for one in reader.tensors if not any(one is other for other in written)]
    check_operands_known(replay, function, read, line)
    late = partial(_compute, replay, function, line, operator=operator, given=given, keywords=keywords)
    if name in _WITHOUT_INDICES and not results and _leave_out(replay, reader.tensors, written, late):
        for tensor in written:
            tensor.mark()
        return
    if name in _SHAPED and len(results) == 1 and replay.pending is not None:
        made_later = _make_later(
            replay, reader.tensors, late, operator=operator, given=given, keywords=keywords, result=results[0]
        )
        if made_later:
            return
    replay.fill(*reader.tensors)
    _begin(replay, function, read)
    values = late()
    for tensor in written:
        tensor.mark()
    made = [*written, *_hand_over(replay, values, results)]
    _end(replay, made)
    report_nan(replay, function, read, made, line)


def _leave_out(
    replay: Replay, given: list[WrapperTensor], written: list[WrapperTensor], late: Callable[[], Any]
) -> bool:
    """Defer an operator whose result no address depends on; False where everything is computed at once."""
    if replay.pending is None:
        return False
    reads = tuple(tensor.storage for tensor in given)
    writes = tuple(tensor.storage for tensor in written)
    replay.pending.add(PendingStep(carry_out=late, reads=reads, writes=writes))
    return True


def _make_later(
    replay: Replay,
    read: list[WrapperTensor],
    late: Callable[[], tuple[Any, ...]],
    *,
    operator: Any,
    given: list[Any],
    keywords: dict[str, Any],
    result: str,
) -> bool:
    """Defer an operator that allocates its result; the sizes come from a run without data (on ``meta``)."""

    def bare(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    try:
        like = operator(*map(bare, given), **{key: bare(value) for key, value in keywords.items()})
    except Exception:
        return False
    if not isinstance(like, torch.Tensor):
        return False
    made = empty_storage(result.removesuffix("_handle"), dtype_name(like), tuple(like.shape), tuple(like.stride()))
    made.storage.all_written()
    _leave_out(replay, read, [made], lambda: made.torch().copy_(late()[0]))
    replay.names[result] = made
    return True


def _call_node(replay: Replay, arguments: list[str], line: int) -> None:
    """Call an operator without a C function: the package's JSON has its name and the arguments that are not passed."""
    index = int(replay.number(arguments[1]))
    if index >= len(replay.nodes):
        raise CannotReplayError("the package does not describe the operator")
    node = replay.nodes[index]
    target = str(node.get("target"))
    integers = replay.numbers(arguments[3]) if replay.number(arguments[2]) else ()
    inside = re.search(r"\{(.*)\}", arguments[5])
    texts = split_list(inside[1]) if inside is not None else ()
    try:
        described, names = read_operator_call(node, integers, texts, "cpu")
        given = [replay.tensor(text) for text in names]
        operator = allow_operator(find_overload(target))
        check_operands_known(replay, target, given, line)
        replay.fill(*given)
        values = build_arguments(described, [one.torch() for one in given])
        _begin(replay, PROXY, given, index)
        with torch.no_grad():
            made = operator(**values)
    except (RuntimeError, LookupError, ValueError, TypeError, AttributeError, UnsuitableArgumentError) as error:
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        raise CannotReplayError(f"{target} on the CPU: {type(error).__name__}: {reason}") from error
    for tensor in given:
        tensor.mark()
    results = list(texts[len(names) :])
    _end(replay, _hand_over(replay, tuple(made) if isinstance(made, tuple | list) else (made,), results))


def _begin(replay: Replay, function: str, read: list[WrapperTensor], argument: int | None = None) -> None:
    if replay.followed is not None:
        replay.followed.begin(function, [(one.name, -1, one) for one in read], argument)


def _end(replay: Replay, written: list[WrapperTensor]) -> None:
    if replay.followed is not None:
        replay.followed.end([(one.name, -1, one) for one in written])


def _compute(
    replay: Replay, function: str, line: int, *, operator: Any, given: list[Any], keywords: dict[str, Any]
) -> tuple[Any, ...]:
    try:
        with torch.no_grad():
            made = _attention(operator, given) or operator(*given, **keywords)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        text = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        if isinstance(error, IndexError) or "out of range" in text or "out of bounds" in text:
            replay.found.add("operator-refused", kernel=function, wrapper_line=line, message=text, launch=None)
        raise CannotReplayError(f"{function} on the CPU: {text}") from error
    return tuple(made) if isinstance(made, tuple | list) else (made,)


def _attention(operator: Any, given: list[Any]) -> tuple[Any, ...] | None:
    """Attention by the CPU's operator where the package calls a kernel of the GPU; further results are empty."""
    name = operator._schema.name.removeprefix("aten::")
    if name not in _ALIKE:
        return None
    query, key, value = given[:3]
    biased = name == "_scaled_dot_product_efficient_attention" and isinstance(given[3], torch.Tensor)
    bias = given[3] if biased else None
    causal = next((one for one in given[4:] if isinstance(one, bool) and one), False)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=bool(causal))
    return (out, *[torch.zeros(0) for _ in operator._schema.returns[1:]])


def _hand_over(replay: Replay, made: tuple[Any, ...], names: list[str]) -> list[WrapperTensor]:
    """Give the results to the wrapper; return those that are tensors."""
    tensors = []
    for name, value in zip(names, made, strict=False):
        replay.names[name] = value
        if isinstance(value, torch.Tensor):
            replay.names[name] = device_copy(name.removesuffix("_handle"), value)
            tensors.append(replay.names[name])
    return tensors
