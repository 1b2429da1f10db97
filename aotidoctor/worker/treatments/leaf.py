"""Treatment steps on one leaf: ``(step, leaf) -> (new leaf, note)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotidoctor.model.jobs import InputsSource
from aotidoctor.worker.describe import dtype_name
from aotidoctor.worker.treatments.errors import TreatmentError

Step = dict[str, Any]
Change = Callable[[Step, Any], tuple[Any, str]]


def cast(step: Step, leaf: Any) -> tuple[Any, str]:
    """Another dtype, same values as far as they fit, same strides."""
    return leaf.to(dtype_of(step["dtype"])), f"{dtype_name(leaf)}→{step['dtype']}"


def contiguous(step: Step, leaf: Any) -> tuple[Any, str]:
    """The same values with the given strides, or contiguous ones."""
    import torch

    wanted = step.get("stride")
    if wanted is None:
        new = leaf.clone(memory_format=torch.contiguous_format)
    else:
        if len(wanted) != leaf.dim():
            raise TreatmentError(f"{len(wanted)} strides for {leaf.dim()} dims")
        new = torch.empty_strided(tuple(leaf.shape), tuple(wanted), dtype=leaf.dtype, device=leaf.device)
        new.copy_(leaf)
    return new, f"{tuple(leaf.stride())}→{tuple(new.stride())}"


def to_device(step: Step, leaf: Any) -> tuple[Any, str]:
    """The same values on another device; a tensor without values (meta) gets zeros."""
    import torch

    if leaf.device.type == "meta":
        return torch.zeros_like(leaf, device=step["device"]), f"meta→{step['device']} (zeros)"
    return leaf.to(step["device"]), f"{leaf.device}→{step['device']}"


def resolve(_: Step, leaf: Any) -> tuple[Any, str]:
    """Carry out pending conjugation and negation."""
    return leaf.resolve_conj().resolve_neg(), ""


def dense(_: Step, leaf: Any) -> tuple[Any, str]:
    """A plain strided tensor of a sparse, quantised, nested or subclass one."""
    import torch

    if leaf.is_quantized:
        return leaf.dequantize(), "dequantised"
    if leaf.is_nested:
        return torch.nested.to_padded_tensor(leaf, 0.0), "padded"
    if leaf.layout != torch.strided:
        return leaf.to_dense(), f"{leaf.layout}→strided"
    return leaf.detach().as_subclass(torch.Tensor), type(leaf).__name__


def reshape(step: Step, leaf: Any) -> tuple[Any, str]:
    """Another shape for the same number of elements."""
    return leaf.reshape(step["shape"]).contiguous(), f"{tuple(leaf.shape)}→{tuple(step['shape'])}"


def permute(step: Step, leaf: Any) -> tuple[Any, str]:
    """Dims in another order; a view."""
    return leaf.permute(step["dims"]), f"{tuple(leaf.shape)}→{tuple(leaf.shape[dim] for dim in step['dims'])}"


def clamp_dim(step: Step, leaf: Any) -> tuple[Any, str]:
    """Dim ``dim`` cut to ``size``, or filled up by repeating its last entry."""
    import torch

    dim, size = step["dim"], step["size"]
    if leaf.shape[dim] == 0 and size > 0:
        raise TreatmentError(f"dim {dim} is empty, nothing to repeat")
    index = torch.arange(size, device=leaf.device).clamp(max=max(leaf.shape[dim] - 1, 0))
    return leaf.index_select(dim, index), f"dim {dim}: {leaf.shape[dim]}→{size}"


def slice_dim(step: Step, leaf: Any) -> tuple[Any, str]:
    """``size`` entries of dim ``dim`` from ``start`` on, with their values, in memory of their own and as ordered."""
    import torch

    dim, start, size = step["dim"], step["start"], step["size"]
    part = leaf.narrow(dim, start, size).clone(memory_format=torch.preserve_format)
    return part, f"dim {dim}: {leaf.shape[dim]}→{size} from {start}"


def clone(_: Step, leaf: Any) -> tuple[Any, str]:
    """A copy in memory of its own."""
    return leaf.detach().clone(), ""


def nan_to_num(_: Step, leaf: Any) -> tuple[Any, str]:
    """Zero where there was NaN or Inf."""
    import torch

    bad = ~torch.isfinite(leaf)
    return leaf.masked_fill(bad, 0), f"{int(bad.sum())} values"


def clamp_values(step: Step, leaf: Any) -> tuple[Any, str]:
    """Values outside ``low``..``high`` set to the nearer bound."""
    new = leaf.clamp(step.get("low"), step.get("high"))
    return new, f"{int((new != leaf).sum())} values into {step.get('low')}..{step.get('high')}"


def mend_offsets(step: Step, leaf: Any) -> tuple[Any, str]:
    """Offsets of bags: the first 0, none below the one before, none beyond ``high``."""
    new = leaf.clone()
    new[:1] = 0
    new = new.clamp(0, step["high"]).cummax(0).values.to(leaf.dtype)
    return new, f"{int((new != leaf).sum())} offsets"


def replace_value(step: Step, leaf: Any) -> tuple[Any, str]:
    """``new`` wherever the value is ``old``."""
    hit = leaf == step["old"]
    return leaf.masked_fill(hit, step["new"]), f"{int(hit.sum())} values {step['old']}→{step['new']}"


def to_tensor(step: Step, leaf: Any) -> tuple[Any, str]:
    """A tensor of a number, list or array."""
    import torch

    dtype = dtype_of(step["dtype"]) if step.get("dtype") else None
    return torch.as_tensor(leaf, dtype=dtype), f"{type(leaf).__name__}→tensor"


def stand_in(step: Step, leaf: Any) -> tuple[Any, str]:
    """A tensor made from its JSON description in place of whatever was there."""
    return made_tensor(step["tensor"]), f"{type(leaf).__name__}→tensor"


def set_value(step: Step, leaf: Any) -> tuple[Any, str]:
    """Another plain value in place of whatever was there."""
    return step["value"], f"{leaf!r}→{step['value']!r}"[:120]


def made_tensor(document: Any) -> Any:
    """A tensor from its JSON description, with or without the word ``tensor`` around it."""
    from aotidoctor.worker.materialize import load_inputs

    leaf = document if isinstance(document, dict) and "tensor" in document else {"tensor": document}
    made, _ = load_inputs(InputsSource(document={"args": [leaf], "kwargs": {}}))
    return made[0]


def dtype_of(name: str) -> Any:
    """``torch.float32`` of ``float32``."""
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TreatmentError(f"no such dtype: {name}")
    return dtype


LEAF_STEPS: dict[str, Change] = {
    "cast": cast,
    "contiguous": contiguous,
    "to": to_device,
    "resolve": resolve,
    "dense": dense,
    "reshape": reshape,
    "permute": permute,
    "clamp_dim": clamp_dim,
    "slice_dim": slice_dim,
    "clone": clone,
    "nan_to_num": nan_to_num,
    "clamp_values": clamp_values,
    "mend_offsets": mend_offsets,
    "replace_value": replace_value,
    "to_tensor": to_tensor,
    "stand_in": stand_in,
    "set": set_value,
}
