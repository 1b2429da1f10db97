"""Operators that the wrapper calls through the C shim, by the CPU kernels of the same operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from aotidoctor.readers.contract.text import split_list
from aotidoctor.worker.describe import dtype_name
from aotidoctor.worker.emulation.c_arguments import Reader, find_operator, read_arguments
from aotidoctor.worker.emulation.followed import PROXY
from aotidoctor.worker.emulation.operands import check_given, tell_nan
from aotidoctor.worker.emulation.pending import Step
from aotidoctor.worker.emulation.storage import Tensor, empty, of_torch
from aotidoctor.worker.emulation.variables import CannotError
from aotidoctor.worker.emulation.wrapper import Replay
from aotidoctor.worker.operators.alone import find
from aotidoctor.worker.operators.arguments import ArgumentError, build_arguments, read_call

_DEVICE = re.compile(r"aoti_torch_(?:(?:cuda|cpu|xpu|mps|aten)_)?")
# Nothing about addresses follows from what these are given.
_WITHOUT_INDICES = ("mm_out", "bmm_out", "addmm_out", "baddbmm_out", "_int_mm_out", "addmv_out", "zero_")
_SHAPED = ("convolution",)
# Same result by another operator, where the CPU has no kernel of that one.
_ALIKE = ("_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
          "_scaled_dot_product_cudnn_attention")  # fmt: skip


def call_operator(replay: Replay, function: str, arguments: list[str], line: int) -> None:
    """Carry out one call. Raises ``CannotError``."""
    name = _DEVICE.sub("", function, count=1)
    if name.startswith("item_"):
        tensor = replay.tensor(arguments[0])
        replay.fill(tensor)
        replay.names[arguments[1].removeprefix("&")] = tensor.torch().item()
        return
    if name == "tensor_copy_":
        source, target = replay.tensor(arguments[0]), replay.tensor(arguments[1])
        if not _left_out(replay, [source], [target], lambda: target.torch().copy_(source.torch())):
            target.torch().copy_(source.torch())
        target.mark()
        return
    if name == "proxy_executor_call_function":
        _call_node(replay, arguments, line)
        return
    operator = find_operator(name)
    reader = Reader(replay, iter(arguments))
    written, given, keywords = read_arguments(reader, operator)
    results = list(reader.rest())
    read = [one for one in reader.tensors if not any(one is other for other in written)]
    check_given(replay, function, read, line)
    late = partial(_compute, replay, function, operator, given, keywords, line)
    if name in _WITHOUT_INDICES and not results and _left_out(replay, reader.tensors, written, late):
        for tensor in written:
            tensor.mark()
        return
    if name in _SHAPED and len(results) == 1 and _made_later(replay, reader, late, operator, given, keywords, results):
        return
    replay.fill(*reader.tensors)
    _begin(replay, function, read)
    values = late()
    for tensor in written:
        tensor.mark()
    made = [*written, *_hand_over(replay, values, results)]
    _end(replay, made)
    tell_nan(replay, function, read, made, line)


def _left_out(replay: Replay, given: list[Tensor], written: list[Tensor], late: Callable[[], Any]) -> bool:
    """Leave an operator for later whose result does not follow from data as far as addresses go."""
    if replay.pending is None:
        return False
    reads = tuple(tensor.storage for tensor in given)
    writes = tuple(tensor.storage for tensor in written)
    replay.pending.add(Step(carry_out=late, reads=reads, writes=writes))
    return True


def _made_later(  # noqa: PLR0917
    replay: Replay,
    reader: Reader,
    late: Callable[[], tuple[Any, ...]],
    operator: Any,
    given: list[Any],
    keywords: dict[str, Any],
    results: list[str],
) -> bool:
    """Likewise for one that makes its result: its sizes are those that it has without data."""
    import torch

    if replay.pending is None:
        return False

    def bare(value: Any) -> Any:
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    try:
        like = operator(*map(bare, given), **{key: bare(value) for key, value in keywords.items()})
    except Exception:
        return False
    if not isinstance(like, torch.Tensor):
        return False
    made = empty(results[0].removesuffix("_handle"), dtype_name(like), tuple(like.shape), tuple(like.stride()))
    made.storage.all_written()
    _left_out(replay, reader.tensors, [made], lambda: made.torch().copy_(late()[0]))
    replay.names[results[0]] = made
    return True


def _call_node(replay: Replay, arguments: list[str], line: int) -> None:
    """An operator without a C function: the package's JSON has its name and what is not passed."""
    import torch

    index = int(replay.number(arguments[1]))
    if index >= len(replay.nodes):
        raise CannotError("the package does not describe the operator")
    node = replay.nodes[index]
    target = str(node.get("target"))
    integers = replay.numbers(arguments[3]) if replay.number(arguments[2]) else ()
    inside = re.search(r"\{(.*)\}", arguments[5])
    texts = split_list(inside[1]) if inside is not None else ()
    try:
        described, kept = read_call(node, integers, texts, "cpu")
        given = [replay.tensor(text) for text in kept]
        operator = find(target)
        check_given(replay, target, given, line)
        replay.fill(*given)
        values = build_arguments(described, [one.torch() for one in given])
        _begin(replay, PROXY, given, index)
        with torch.no_grad():
            made = operator(**values)
    except (RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArgumentError) as error:
        said = (str(error).strip().splitlines() or [""])[0][:200]
        raise CannotError(f"{target} on the CPU: {type(error).__name__}: {said}") from error
    for tensor in given:
        tensor.mark()
    results = list(texts[len(kept) :])
    _end(replay, _hand_over(replay, tuple(made) if isinstance(made, tuple | list) else (made,), results))


def _begin(replay: Replay, function: str, read: list[Tensor], argument: int | None = None) -> None:
    if replay.followed is not None:
        replay.followed.begin(function, [(one.name, -1, one) for one in read], argument)


def _end(replay: Replay, written: list[Tensor]) -> None:
    if replay.followed is not None:
        replay.followed.end([(one.name, -1, one) for one in written])


def _compute(  # noqa: PLR0917
    replay: Replay, function: str, operator: Any, given: list[Any], keywords: dict[str, Any], line: int
) -> tuple[Any, ...]:
    import torch

    try:
        with torch.no_grad():
            made = _attention(operator, given) or operator(*given, **keywords)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        text = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        if isinstance(error, IndexError) or "out of range" in text or "out of bounds" in text:
            replay.found.add("operator-refused", kernel=function, wrapper_line=line, message=text, launch=None)
        raise CannotError(f"{function} on the CPU: {text}") from error
    return tuple(made) if isinstance(made, tuple | list) else (made,)


def _attention(operator: Any, given: list[Any]) -> tuple[Any, ...] | None:
    """Attention as the CPU has it, where the package calls a kernel of the GPU; the second result is not looked at."""
    import torch

    name = operator._schema.name.removeprefix("aten::")
    if name not in _ALIKE:
        return None
    query, key, value = given[:3]
    bias = (
        given[3] if name == "_scaled_dot_product_efficient_attention" and isinstance(given[3], torch.Tensor) else None
    )
    causal = next((one for one in given[4:] if isinstance(one, bool) and one), False)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, is_causal=bool(causal))
    return (out, *[torch.zeros(0) for _ in operator._schema.returns[1:]])


def _hand_over(replay: Replay, made: tuple[Any, ...], names: list[str]) -> list[Tensor]:
    """Give the results to the wrapper; those that are tensors."""
    import torch

    tensors = []
    for name, value in zip(names, made, strict=False):
        replay.names[name] = value
        if isinstance(value, torch.Tensor):
            replay.names[name] = of_torch(name.removesuffix("_handle"), value)
            tensors.append(replay.names[name])
    return tensors
