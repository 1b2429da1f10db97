"""The call to be made: arguments as real tensors, what they looked like before, and how to get that back."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from aotidoctor.model.jobs import InputsSource
from aotidoctor.model.record import record
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.describe import describe, digest, nbytes
from aotidoctor.worker.leaves import Visit, rebuild, tensors, walk_call

KEEP_BYTES = 512 * 1024 * 1024
"""Copies of inputs and outputs are made up to this size, so that looking does not exhaust the memory."""


@record
class Call:
    """Arguments of one call. ``described`` is what ``describe`` said before the model saw them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    described: list[dict[str, Any]] = field(default_factory=list)

    def tensors(self) -> list[tuple[str, Any]]:
        """``(path, tensor)`` of the tensor leaves in the user's flattening order."""
        return tensors(walk_call(self.args, self.kwargs))

    def describe(self, *, values: bool) -> list[dict[str, Any]]:
        """One object per tensor leaf."""
        return [describe(path, tensor, values=values) for path, tensor in self.tensors()]

    def digests(self) -> list[str | None]:
        """Digest of each tensor leaf's values."""
        return [digest(tensor) for _, tensor in self.tensors()]

    def copy(self) -> Call | None:
        """A copy that shares no memory, with the same strides; None when it would be too big."""
        if sum(nbytes(tensor) for _, tensor in self.tensors()) > KEEP_BYTES:
            return None
        return self.rebuilt(_copy)

    def rebuilt(self, visit: Visit) -> Call:
        """The same call with each leaf replaced by ``visit(path, leaf)``."""
        args, kwargs = rebuild(self.args, "args", visit), rebuild(self.kwargs, "kwargs", visit)
        return Call(args=args, kwargs=kwargs, described=self.described)

    def restore(self, saved: Call) -> None:
        """Write the values of ``saved`` back into our tensors."""
        import torch

        with torch.no_grad():
            for (_, mine), (_, old) in zip(self.tensors(), saved.tensors(), strict=True):
                write_back(mine, old)


def write_back(tensor: Any, values: Any) -> None:
    """Copy ``values`` into ``tensor``; of an expanded one into the elements that it has."""
    import torch

    if tensor.layout is torch.strided:
        for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if step == 0 and size > 1:
                tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.copy_(values)


def read_call(source: InputsSource | None, channel: Channel) -> Call:
    """The call with the inputs that ``source`` names."""
    from aotidoctor.worker.materialize import load_inputs

    if source is None:
        raise ValueError("this job was given no inputs")
    if source.path is not None:
        source = replace(source, path=str(channel.user_cwd / source.path))
    args, kwargs = load_inputs(source)
    return Call(args=args, kwargs=kwargs)


def _copy(_: str, leaf: Any) -> Any:
    import torch

    if not isinstance(leaf, torch.Tensor):
        return leaf
    try:
        return leaf.detach().clone().requires_grad_(leaf.requires_grad)
    except (RuntimeError, NotImplementedError):
        return leaf
