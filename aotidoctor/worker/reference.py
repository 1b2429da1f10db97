"""Run what the package was made from on the same inputs, and compare.

The reference is an exported program (``exported.pt2``) or a function (``module.py:function``). It checks less of its
inputs than one might think (no dtype, no strides), but treats dict order, strides and lazy bits right.
"""

from __future__ import annotations

import traceback
from typing import Any

from aotidoctor.worker import treat
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compare import compare
from aotidoctor.worker.describe import describe
from aotidoctor.worker.leaves import tensors, walk
from aotidoctor.worker.load import LoadedModel
from aotidoctor.worker.setup_module import load_setup


def reference(payload: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Job ``reference``: run the reference alone, on treated inputs; ``reference`` has ``outputs`` or ``error``."""
    payload, applied = treat.prepare(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call, _ = read_call(payload["inputs"], channel)
    call = treat.apply(payload.get("treatment") or [], call, applied)
    channel.enter("reference")
    program, _ = _load(payload["reference"], channel)
    return {"applied": applied, "reference": _attempt(program, call)[0]}


def check_reference(
    payload: dict[str, Any], model: LoadedModel, call: Call | None, outputs: Any, channel: Channel
) -> dict[str, Any]:
    """Parts of the result: ``reference`` and, of a program, ``weights`` (or ``weights_unread``).

    ``reference`` holds ``error`` (text) when the reference raised, ``unavailable`` (text) when there is none to run,
    else what ``compare`` gives; ``reference_outputs`` what it returned.

    ``outputs`` is what ``make_calls`` gave: the inputs as they were before, and the package's first result.
    """
    try:
        program, state = _load(payload["reference"], channel)
    except Exception as error:
        return {"reference": {"unavailable": _error(error)}}
    result = _weights(payload, model, state) if state else {}
    if call is None or outputs is None:
        return result
    saved, ours = outputs
    seen, theirs = _attempt(program, saved or call)
    if theirs is None:
        return result | {"reference": seen}
    facts = compare(ours, theirs, rtol=payload.get("rtol"), atol=payload.get("atol"))
    return result | {"reference": facts, "reference_outputs": seen["outputs"]}


def _load(spec: str, channel: Channel) -> tuple[Any, dict[str, Any]]:
    """The callable, and its tensors by name (empty for a function)."""
    import torch

    path, colon, function = spec.rpartition(":")
    if colon and path.endswith(".py"):
        module = load_setup({"setup": path}, channel)
        return getattr(module, function), {}
    if not (channel.user_cwd / spec).is_file():
        # A named pipe would be waited for until the time is up.
        raise FileNotFoundError(f"no such file: {spec}")
    program = torch.export.load(str(channel.user_cwd / spec))
    from aotidoctor.worker.weights import tensors_of

    return program.module(), tensors_of(program)


def _attempt(program: Any, call: Call) -> tuple[dict[str, Any], Any]:
    """What the reference gives on ``call``: its facts, and its outputs (None when it raised)."""
    import torch

    try:
        with torch.no_grad():
            theirs = program(*call.args, **call.kwargs)
    except Exception as error:
        return {"error": _error(error)}, None
    leaves = tensors(list(walk(theirs, "result")))
    return {"outputs": [describe(path, leaf, values=True) for path, leaf in leaves]}, theirs


def _weights(payload: dict[str, Any], model: LoadedModel, state: dict[str, Any]) -> dict[str, Any]:
    from aotidoctor.worker.weights import compare_weights, read_constants

    try:
        constants, owner = read_constants(model, payload)
        facts = compare_weights(constants, state)
    except (LookupError, RuntimeError, OSError) as error:
        return {"weights": [], "weights_unread": str(error)}
    del constants, owner
    return {"weights": facts}


def _error(error: Exception) -> str:
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"[:16384]
