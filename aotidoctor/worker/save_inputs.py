"""Job ``save_inputs``: the tensors of a call in one file of ``torch.save``, by the user's paths of them."""

from __future__ import annotations

from typing import Any

from aotidoctor.model.jobs import SaveInputs
from aotidoctor.worker.call import read_call
from aotidoctor.worker.channel import Channel


def save_inputs(payload: SaveInputs, channel: Channel) -> dict[str, Any]:
    """Write ``payload.target`` from ``payload.inputs``; ``paths`` names the leaves wanted, all where it is None.

    The result is the number of tensors that were written.
    """
    import torch

    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    wanted = payload.paths
    found = {path: tensor for path, tensor in call.tensors() if wanted is None or path in wanted}
    torch.save(found, payload.target)
    return {"saved": len(found)}
