"""Run what the package was made from on the same inputs, and compare.

The reference is an exported program (``exported.pt2``) or a function (``module.py:function``). It checks less of its
inputs than one might think (no dtype, no strides), but treats dict order, strides and lazy bits right.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any

from aotidoctor.model.jobs import Job, Run, UserCode
from aotidoctor.model.record import record
from aotidoctor.model.tolerance import Tolerance, Tolerances
from aotidoctor.model.user_function import user_function
from aotidoctor.worker.against import compare_outputs, settle
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.describe import describe
from aotidoctor.worker.leaves import copied, rebuild_result, result_tensors
from aotidoctor.worker.load import LoadedModel
from aotidoctor.worker.setup_module import load_setup
from aotidoctor.worker.side_effects import compare_aliases, compare_mutation
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.weights import compare_shipped, tensors_of


def reference(payload: Run, channel: Channel) -> dict[str, Any]:
    """Job ``reference``: run the reference alone, on treated inputs; ``reference`` has ``outputs`` or ``error``."""
    payload, applied = treat.prepare(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    call = treat.apply(payload.treatment, call, applied)
    channel.enter("reference")
    program = load_reference(payload.reference or "", channel)
    return {"applied": applied, "reference": attempt(program, call)[0]}


def check_reference(
    payload: Run, model: LoadedModel, call: Call | None, outputs: Any, channel: Channel
) -> dict[str, Any]:
    """Parts of the result: ``reference`` and, of a program, ``weights`` (or ``weights_unread``).

    ``reference`` holds ``error`` (text) when the reference raised, ``unavailable`` (text) when there is none to run,
    else what ``against.compare_outputs`` gives, ``mutation`` and ``alias`` (``side_effects``), and ``float64`` where
    the outputs differ (``judge``).

    ``outputs`` is what ``make_calls`` gave: the inputs as they were before, and the package's first result.
    """
    try:
        reference = load_reference(payload.reference or "", channel)
    except Exception as error:
        return {"reference": {"unavailable": _error(error)}}
    result = _weights(payload, model, reference.tensors) if reference.tensors else {}
    if call is None or outputs is None:
        return result
    channel.put(**result)
    saved, ours = outputs
    given = saved or call
    again, before, state = given.copy(), given.digests(), _buffers(reference)
    seen, theirs = attempt(reference, given)
    if theirs is None:
        return result | {"reference": seen}
    facts = compare_outputs(ours, theirs, tolerances_of(payload))
    if not facts["agrees"] and again is not None and _may_be_written(payload, result):
        compared = partial(_compared, reference, again, ours, tolerances_of(payload))
        written = _with_written(reference, model, state, compared)
        if written is not None and treat.loads_weights_of(payload):
            facts = written
        elif written is not None:
            result["weights"] += written["written_differing"]
    if saved is not None:
        facts["mutation"] = compare_mutation(before, call, saved)
        facts["alias"] = compare_aliases(ours, call, theirs, saved)
    leaves = [] if facts.get("written") else _to_judge(facts, measure=payload.measure)
    problem = _why_unjudged(leaves, again, result)
    if problem is None and again is not None:
        _announced(facts, channel)
        # A copy first: an output may be one of the buffers.
        results = (ours, rebuild_result(theirs, copied))
        facts["float64"] = _judge(reference, again, results, leaves, state)
    elif problem:
        facts["float64"] = {"problem": problem}
    settle(facts)
    return result | {"reference": facts}


def _with_written(
    reference: Reference,
    model: LoadedModel,
    state: list[tuple[Any, Any]],
    compared: Callable[[], dict[str, Any] | None],
) -> dict[str, Any] | None:
    """What is ``compared`` where the reference has the constants that the package has in its code (``written``: names).

    None where the outputs do not agree with those either.
    """
    if reference.program is None:
        return None
    from aotidoctor.worker.treatments.written import differing, put_written

    written = put_written(model, reference.program, reference.call, state, compared)
    if written is None:
        return None
    found, facts = written
    return {**facts, "written": list(found), "written_differing": differing(found)}


def _compared(reference: Reference, call: Call, ours: Any, tolerances: Tolerances) -> dict[str, Any] | None:
    """Our outputs beside the reference's; None where it raises."""
    _, theirs = attempt(reference, call.copy() or call)
    if theirs is None:
        return None
    facts = compare_outputs(ours, theirs, tolerances)
    settle(facts)
    return facts


def _may_be_written(payload: Run, weights: dict[str, Any]) -> bool:
    """Whether nothing but constants in the code is left to explain the difference: all others are equal or loaded."""
    compared = weights.get("weights", [])
    alike = bool(compared) and not any(item.get("equal") is False for item in compared)
    return treat.loads_weights_of(payload) or (alike and not payload.treatment)


def _why_unjudged(leaves: list[dict[str, Any]], again: Call | None, weights: dict[str, Any]) -> str | None:
    """Why the float64 run is not asked about ``leaves``; empty where there is nothing to ask it."""
    if not leaves:
        return ""
    if any(item.get("equal") is False for item in weights.get("weights", [])):
        return "not run: different weights explain the difference"
    return "the inputs are too big to be copied" if again is None else None


def _to_judge(facts: dict[str, Any], *, measure: bool) -> list[dict[str, Any]]:
    """Leaves whose values can be judged, if one of them differs (or, to ``measure``, has other bits)."""
    leaves = [leaf for leaf in facts["outputs"] if leaf["what"] in (None, "values", "nan") and "needed" in leaf]
    differs = any(not leaf["agrees"] or (measure and leaf["max_abs_diff"] != 0.0) for leaf in leaves)
    return leaves if differs else []


def _judge(
    reference: Reference,
    call: Call,
    results: tuple[Any, Any],
    leaves: list[dict[str, Any]],
    state: list[tuple[Any, Any]],
) -> dict[str, Any]:
    """What the float64 run says of ``leaves``; ``state`` are the buffers as they were before the call."""
    from aotidoctor.worker.float64.float64_run import restore
    from aotidoctor.worker.float64.judge import judge

    restore(state)
    return judge(reference, call, results, leaves)


def _announced(facts: dict[str, Any], channel: Channel) -> None:
    """The float64 run may be too slow or too big: what is known goes first."""
    settled = {**copy.deepcopy(facts), "float64": {"problem": "it did not finish"}}
    settle(settled)
    channel.put(reference=settled)
    channel.enter("float64")


def tolerances_of(payload: Run) -> Tolerances:
    """The tolerances that were asked for."""
    rtol, atol = (
        tuple(Tolerance(output=output, value=value) for output, value in given)
        for given in (payload.rtol, payload.atol)
    )
    return Tolerances(rtol=rtol, atol=atol)


@record
class Reference:
    """``call`` runs it; ``program`` is the exported program (None for a function), ``tensors`` its tensors by name."""

    call: Callable[..., Any]
    program: Any = None
    tensors: dict[str, Any] = field(default_factory=dict)


# What a process loaded before it was forked.
_shared: dict[str, Reference] = {}


def share_reference(spec: str, channel: Channel) -> None:
    """Load the reference for all processes that will be forked from this one. What fails, fails there again."""
    with suppress(Exception):
        _shared[spec] = load_reference(spec, channel)


def load_reference(spec: str, channel: Channel) -> Reference:
    """An exported program, or the function in ``module.py:function``."""
    if spec in _shared:
        return _shared[spec]
    if (named := user_function(spec)) is not None:
        path, function = named
        module = load_setup(Job(code=UserCode(setup=path)), channel)
        return Reference(call=getattr(module, function))
    if not (channel.user_cwd / spec).is_file():
        # A named pipe would be waited for until the time is up.
        raise FileNotFoundError(f"no such file: {spec}")
    from aotidoctor.readers.package import read_damage
    from aotidoctor.worker.program_file import load_program

    # PyTorch compares no checksum: what differs would be taken for a fault of the package.
    if damage := read_damage(str(channel.user_cwd / spec)):
        raise ValueError(f"{spec} {damage}")
    program = load_program(channel.user_cwd / spec)
    return Reference(call=program.module(), program=program, tensors=tensors_of(program))


def attempt(reference: Reference, call: Call) -> tuple[dict[str, Any], Any]:
    """What the reference gives on ``call``: its facts, and its outputs (None when it raised)."""
    import torch

    try:
        with torch.no_grad():
            theirs = reference.call(*call.args, **call.kwargs)
    except Exception as error:
        return {"error": _error(error)}, None
    return {"outputs": [describe(path, leaf, values=True) for path, leaf in result_tensors(theirs)]}, theirs


def _buffers(reference: Reference) -> list[tuple[Any, Any]]:
    if reference.program is None:
        return []
    from aotidoctor.worker.float64.float64_run import snapshot

    return snapshot(reference.call)


def _weights(payload: Run, model: LoadedModel, state: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"weights": compare_shipped(model, payload, state)}
    except (LookupError, RuntimeError, OSError) as error:
        return {"weights": [], "weights_unread": str(error)}


def _error(error: Exception) -> str:
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"[:16384]
