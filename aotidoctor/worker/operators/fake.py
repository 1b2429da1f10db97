"""What an operator's fake kernel promises for given arguments, without the real kernel.

Meta tensors are tried first: fake tensors need modules whose import takes longer than everything else here. They are
needed where the size of a result depends on values; such a size is None.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from aotidoctor.worker.describe import dtype_name
from aotidoctor.worker.operators.contract import flatten


def promise(op: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """``fake``: per result ``path``, ``dtype``, ``shape``, ``stride``, ``device`` (None: not known from here).

    Or ``fake_missing``: what the attempt said.
    """
    import torch
    from torch.utils._pytree import tree_map_only

    with torch.no_grad():
        try:
            result = op(**tree_map_only(torch.Tensor, on_meta, arguments))
            return {"fake": [_facts(name, tensor) for name, tensor in flatten(op, result)]}
        except Exception:
            return _with_fake_tensors(op, arguments)


def _with_fake_tensors(op: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils._pytree import tree_map_only

    try:
        mode = FakeTensorMode(shape_env=ShapeEnv())
        with mode:
            fakes = tree_map_only(torch.Tensor, partial(mode.from_tensor, static_shapes=True), arguments)
            result = op(**fakes)
        return {"fake": [_facts(name, tensor) for name, tensor in flatten(op, result)]}
    except Exception as error:
        return {"fake_missing": f"{type(error).__name__}: {error}"[:2000]}


def on_meta(tensor: Any) -> Any:
    """A tensor of the same form without memory."""
    import torch

    if tensor.layout != torch.strided:
        return tensor.to("meta")
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _facts(name: str, tensor: Any) -> dict[str, Any]:
    return {
        "path": name,
        "dtype": dtype_name(tensor),
        "shape": [_size(size) for size in tensor.shape],
        "stride": [_size(size) for size in tensor.stride()],
        "device": None if tensor.device.type == "meta" else tensor.device.type,
    }


def _size(size: Any) -> int | None:
    """None for a size that depends on values."""
    return int(size) if isinstance(size, int) else None
