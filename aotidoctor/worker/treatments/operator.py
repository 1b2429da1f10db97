"""A stand-in for a custom operator: zeros of the form that its fake kernel promises, and nothing else.

With it in place the package is called as before. Where it then returns, the operator was all that ended it.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.operators.alone import find
from aotidoctor.worker.operators.fake import on_meta
from aotidoctor.worker.operators.ops import dispatch_key, split_target
from aotidoctor.worker.treatments.errors import TreatmentError

# A library that is collected takes its kernels along.
_KEPT: list[Any] = []


def stand_in(target: str, device: str) -> str:
    """Replace the kernel of ``target`` (``zoo::scale``) for ``device`` in this process; says what was done.

    Raises:
        TreatmentError: there is no such operator here, or its kernel cannot be replaced.
    """
    import warnings

    import torch

    name, overload = split_target(target)
    namespace, _, packet = name.partition("::")
    try:
        op = find(target)
        library = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            # That there was a kernel before is why this is done.
            warnings.simplefilter("ignore")
            full = packet if overload == "default" else f"{packet}.{overload}"
            library.impl(full, _zeros_of(op), dispatch_key(device))
    except (AttributeError, RuntimeError) as error:
        raise TreatmentError(f"{target} cannot be replaced: {error}") from error
    _KEPT.append(library)
    return f"stand-in for {target}"


def _zeros_of(op: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_leaves, tree_map_only

    def kernel(*args: Any, **kwargs: Any) -> Any:
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        device = tensors[0].device if tensors else torch.device("cpu")
        on_args, on_kwargs = tree_map_only(torch.Tensor, on_meta, (args, kwargs))
        promised = op(*on_args, **on_kwargs)

        def made(tensor: Any) -> Any:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device).zero_()

        return tree_map_only(torch.Tensor, made, promised)

    return kernel
