"""Part of job ``run``: one call of the model with every kernel's values followed, and compared where a reference is.

Part of the result, ``watch``: ``calls`` (see ``watch.ValueWatch``), ``outputs`` (``path``; ``from``, the number of the
call that wrote it; ``agrees``, whether it has the values of a node), ``notes``, ``problem`` (why there is nothing, else
None), ``compared`` (with a reference?), ``places`` (source lines of the reference's operators),
``decomposition_differs``.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.model.user_function import user_function
from aotidoctor.worker.call import Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.hooks import HooksUnavailableError
from aotidoctor.worker.leaves import result_tensors
from aotidoctor.worker.load import LoadedModel
from aotidoctor.worker.values.candidates import Candidates, gather
from aotidoctor.worker.values.watch import ValueWatch


def watch_call(model: LoadedModel, call: Call, payload: Run, channel: Channel) -> None:
    """Call the model once, watched; the facts go over the channel also when it dies on the way."""
    candidates, notes = candidates_of(payload, call, channel)
    watch = ValueWatch(model.directory, candidates.closest if candidates is not None else None)
    try:
        watch.start()
    except (HooksUnavailableError, OSError) as error:
        channel.put(watch={"problem": str(error)})
        return
    channel.enter("run1")
    result = model(*call.args, **call.kwargs)
    watch.stop()
    channel.enter("scan")
    channel.put(
        watch={
            "problem": None,
            "calls": watch.calls,
            "left_out": watch.left_out,
            "outputs": [
                {"path": path, "writer": watch.writer(leaf), "agrees": _agrees(candidates, leaf)}
                for path, leaf in result_tensors(result)
            ],
            "notes": [*notes, *watch.problems[:10]],
            "compared": candidates is not None,
            "places": candidates.places() if candidates is not None else [],
            "decomposition_differs": candidates is not None and candidates.decomposition_differs,
        }
    )


def _agrees(candidates: Candidates | None, output: Any) -> bool | None:
    """Whether the output has the values of a node; None where that cannot be told."""
    return candidates.closest(output).get("agrees") if candidates is not None else None


def candidates_of(payload: Run, call: Call, channel: Channel) -> tuple[Candidates | None, list[str]]:
    """The reference's values; None where none was given, or it cannot be run node by node."""
    spec = payload.watch.reference if payload.watch is not None else None
    if not spec or user_function(spec) is not None:
        return None, []
    import torch

    channel.enter("reference")
    try:
        found = gather(torch.export.load(str(channel.user_cwd / spec)), call)
    except Exception as error:
        return None, [f"the reference was not run node by node: {type(error).__name__}: {error}"]
    return found, found.notes
