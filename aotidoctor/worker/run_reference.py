"""Run the program that the package was made from on the same inputs, and compare; job ``reference``.

The reference is an exported program (``exported.pt2``) or a function (``module.py:function``). It checks less of its
inputs than one might think (no dtype, no strides), but treats dict order, strides and lazy bits right.

Parts of the result beside the outputs: ``mutation``, one object per input that either of the two wrote to: ``path``,
``package``, ``reference`` (did it), ``agrees`` (both did, to the same values), ``max_abs_diff``. ``alias``, one
object per output whose memory is shared otherwise: ``path``, ``package`` and ``reference`` (names of what it shares
memory with).

Nothing can be loaded into constants that the compiler wrote into the code. Where a package with the reference's
weights still gives other outputs, the values in its code go into the reference instead. Which is whose the code does
not say: they are tried in the order in which program and code use them, until the outputs agree. Values that agree
are right, however they were found.
"""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

from aotidoctor.model.case import Tolerance, Tolerances, user_function
from aotidoctor.model.jobs import Job, Run, UserCode
from aotidoctor.model.record import record
from aotidoctor.readers.contract.written_constants import MOST, constant_numbers, constant_vectors, is_typed
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.tensors import (
    compare_leaf,
    compare_outputs,
    copy_leaf,
    describe,
    digest,
    rebuild_result,
    result_tensors,
    settle_verdicts,
    storage_address,
)
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.user_code import load_setup
from aotidoctor.worker.weights import compare_shipped, constant_difference, program_tensors

# Writes to inputs and shared memory.


def compare_mutation(before: list[str | None], ours: ModelCall, theirs: ModelCall) -> list[dict[str, Any]]:
    """``before`` are the digests of the inputs; both calls have been made, on inputs of their own."""
    found = []
    for old, (path, mine), (_, other) in zip(before, ours.tensors(), theirs.tensors(), strict=True):
        now, then = digest(mine), digest(other)
        if old is None or now is None or then is None or old == now == then:
            continue
        facts: dict[str, Any] = {"path": path, "package": old != now, "reference": old != then}
        compared = compare_leaf(path, mine, other)
        facts["agrees"] = facts["package"] == facts["reference"] and compared["agrees"]
        found.append(facts | {"max_abs_diff": compared.get("max_abs_diff")})
    return found


def compare_aliases(ours: Any, our_call: ModelCall, theirs: Any, their_call: ModelCall) -> list[dict[str, Any]]:
    """Only outputs that share other memory than their counterpart."""
    mine, other = _partners(ours, our_call), _partners(theirs, their_call)
    return [
        {"path": path, "package": mine[path], "reference": other[path]}
        for path in mine
        if path in other and mine[path] != other[path]
    ]


def _partners(result: Any, call: ModelCall) -> dict[str, list[str]]:
    leaves = result_tensors(result)
    around = [(path, storage_address(tensor)) for path, tensor in [*call.tensors(), *leaves]]
    return {
        path: [name for name, address in around if name != path and address and address == storage_address(tensor)]
        for path, tensor in leaves
    }


# Constants that the compiler wrote into the code.

_TRIES, _SECONDS = 32, 20.0
_SOURCE_BYTES = 64 * 1024 * 1024

ConstantValues = tuple[float, ...]
OutputsBefore = list[tuple[Any, Any]]
OutputFacts = dict[str, Any]


def put_written_constants(
    model: LoadedModel, program: Any, module: Any, before: OutputsBefore, compared: Callable[[], OutputFacts | None]
) -> tuple[dict[str, tuple[Any, Any]], OutputFacts] | None:
    """``compared`` where constants of ``module`` (that of ``program``) have the values that are in the package's code.

    ``compared`` runs the module and says how its outputs compare with the package's; ``before`` are the buffers as they
    have to be then. The constants are named, with the package's value and the module's own. None without an agreement.
    The module is left as it was.
    """
    from aotidoctor.worker.float64.float64_run import restore_buffers

    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    held = set(model.get_constant_fqns())
    # Parameters, buffers and constants in the order in which the graph first uses them.
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target is not None}
    used: dict[str, None] = {}
    for node in program.graph.nodes:
        used.update((targets[one.name], None) for one in node.all_input_nodes if one.name in targets)
    names = [name for name in list(used) if name in own and name not in held and _is_written(own[name])]
    kept = {name: own[name].detach().clone() for name in names}
    deadline = time.monotonic() + _SECONDS
    try:
        for choice in islice(_choices(list(kept.values()), _source(model.directory)), _TRIES):
            restore_buffers(before)
            restore_buffers(
                [(own[name], _tensor(values, own[name])) for name, values in zip(names, choice, strict=True)]
            )
            facts = compared()
            if facts is not None and facts["agrees"]:
                return {name: (own[name].detach().clone(), kept[name]) for name in names}, facts
            if time.monotonic() > deadline:
                break
        return None
    finally:
        restore_buffers([*before, *((own[name], value) for name, value in kept.items())])


def _tensor(values: ConstantValues, like: Any) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.float64).reshape(like.shape)


def differing_constants(found: dict[str, tuple[Any, Any]]) -> list[OutputFacts]:
    """Of each constant that is another one in the package how it differs, as ``weight_differences`` describes it.

    Nothing where one of them is a single number of few digits: any number of the code might have done.
    """
    facts = [constant_difference(name, ours, theirs) for name, (ours, theirs) in found.items()]
    wrong = [item for item in facts if not item["equal"]]
    typed = [item for item in wrong if found[item["name"]][0].numel() == 1 and is_typed(float(found[item["name"]][0]))]
    return [] if typed else [{**item, "written": True} for item in wrong]


def _is_written(tensor: Any) -> bool:
    """Inductor does so with numbers and with vectors of a few elements."""
    return bool(tensor.dim() <= 1 and 0 < tensor.numel() <= MOST and not tensor.is_complex())


def _source(directory: Path) -> str:
    files = sorted(directory.glob("**/*.cpp"))
    if sum(file.stat().st_size for file in files) > _SOURCE_BYTES:
        return ""
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _choices(wanted: Sequence[Any], source: str) -> Iterator[list[ConstantValues]]:
    """What may stand for ``wanted``, the likeliest first: as many values for each as it has."""
    found: dict[int, list[ConstantValues]] = {1: [(one,) for one in constant_numbers(source)]}
    for vector in constant_vectors(source):
        found.setdefault(len(vector), []).append(vector)
    # Numbers vary fastest: the code has many that are nobody's constant.
    sizes = sorted({tensor.numel() for tensor in wanted}, reverse=True)
    places = [[at for at, tensor in enumerate(wanted) if tensor.numel() == size] for size in sizes]
    groups = [
        list(islice(_assignments(found.get(size, []), len(ats)), _TRIES))
        for size, ats in zip(sizes, places, strict=True)
    ]
    for picked in product(*groups) if sizes else ():
        chosen = {
            at: values for ats, group in zip(places, picked, strict=True) for at, values in zip(ats, group, strict=True)
        }
        yield [chosen[at] for at in range(len(wanted))]


def _assignments(found: Sequence[ConstantValues], count: int) -> Iterator[tuple[ConstantValues, ...]]:
    """In the order of the code first. What several kernels read stands there several times."""
    distinct = tuple(dict.fromkeys(found))
    if len(distinct) == count != len(found):
        yield distinct
    yield from permutations(found, count)


def reference(payload: Run, channel: Channel) -> dict[str, Any]:
    """Job ``reference``: run the reference alone, on treated inputs; ``reference`` has ``outputs`` or ``error``."""
    payload, applied = treat.prepare_payload(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call = read_call(payload.inputs, channel)
    call = treat.apply_steps(payload.treatment, call, applied)
    channel.enter("reference")
    program = load_reference(payload.reference or "", channel)
    return {"applied": applied, "reference": call_reference(program, call)[0]}


def check_reference(
    payload: Run, model: LoadedModel, call: ModelCall | None, outputs: Any, channel: Channel
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
    seen, theirs = call_reference(reference, given)
    if theirs is None:
        return result | {"reference": seen}
    facts = compare_outputs(ours, theirs, requested_tolerances(payload))
    if not facts["agrees"] and again is not None and _may_be_written(payload, result):
        compared = partial(_compare_outputs, reference, again, ours, requested_tolerances(payload))
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
        _send_before_float64(facts, channel)
        # A copy first: an output may be one of the buffers.
        results = (ours, rebuild_result(theirs, copy_leaf))
        facts["float64"] = _judge(reference, again, results, leaves, state)
    elif problem:
        facts["float64"] = {"problem": problem}
    settle_verdicts(facts)
    return result | {"reference": facts}


def _with_written(
    reference: LoadedReference,
    model: LoadedModel,
    state: list[tuple[Any, Any]],
    compared: Callable[[], dict[str, Any] | None],
) -> dict[str, Any] | None:
    """What is ``compared`` where the reference has the constants that the package has in its code (``written``: names).

    None where the outputs do not agree with those either.
    """
    if reference.program is None:
        return None

    written = put_written_constants(model, reference.program, reference.call, state, compared)
    if written is None:
        return None
    found, facts = written
    return {**facts, "written": list(found), "written_differing": differing_constants(found)}


def _compare_outputs(
    reference: LoadedReference, call: ModelCall, ours: Any, tolerances: Tolerances
) -> dict[str, Any] | None:
    """Our outputs beside the reference's; None where it raises."""
    _, theirs = call_reference(reference, call.copy() or call)
    if theirs is None:
        return None
    facts = compare_outputs(ours, theirs, tolerances)
    settle_verdicts(facts)
    return facts


def _may_be_written(payload: Run, weights: dict[str, Any]) -> bool:
    """Whether nothing but constants in the code is left to explain the difference: all others are equal or loaded."""
    compared = weights.get("weights", [])
    alike = bool(compared) and not any(item.get("equal") is False for item in compared)
    return treat.loads_weights_of(payload) or (alike and not payload.treatment)


def _why_unjudged(leaves: list[dict[str, Any]], again: ModelCall | None, weights: dict[str, Any]) -> str | None:
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
    reference: LoadedReference,
    call: ModelCall,
    results: tuple[Any, Any],
    leaves: list[dict[str, Any]],
    state: list[tuple[Any, Any]],
) -> dict[str, Any]:
    """What the float64 run says of ``leaves``; ``state`` are the buffers as they were before the call."""
    from aotidoctor.worker.float64.float64_judge import judge
    from aotidoctor.worker.float64.float64_run import restore_buffers

    restore_buffers(state)
    return judge(reference, call, results, leaves)


def _send_before_float64(facts: dict[str, Any], channel: Channel) -> None:
    """The float64 run may be too slow or too big: what is known goes first."""
    settled = {**copy.deepcopy(facts), "float64": {"problem": "it did not finish"}}
    settle_verdicts(settled)
    channel.put(reference=settled)
    channel.enter("float64")


def requested_tolerances(payload: Run) -> Tolerances:
    """The tolerances that were asked for."""
    rtol, atol = (
        tuple(Tolerance(output=output, value=value) for output, value in given)
        for given in (payload.rtol, payload.atol)
    )
    return Tolerances(rtol=rtol, atol=atol)


@record
class LoadedReference:
    """``call`` runs it; ``program`` is the exported program (None for a function), ``tensors`` its tensors by name."""

    call: Callable[..., Any]
    program: Any = None
    tensors: dict[str, Any] = field(default_factory=dict)


# What a process loaded before it was forked.
_shared: dict[str, LoadedReference] = {}


def share_reference(spec: str, channel: Channel) -> None:
    """Load the reference for all processes that will be forked from this one. What fails, fails there again."""
    with suppress(Exception):
        _shared[spec] = load_reference(spec, channel)


def load_reference(spec: str, channel: Channel) -> LoadedReference:
    """An exported program, or the function in ``module.py:function``."""
    if spec in _shared:
        return _shared[spec]
    if (named := user_function(spec)) is not None:
        path, function = named
        module = load_setup(Job(code=UserCode(setup=path)), channel)
        return LoadedReference(call=getattr(module, function))
    if not (channel.user_cwd / spec).is_file():
        # A named pipe would be waited for until the time is up.
        raise FileNotFoundError(f"no such file: {spec}")
    from aotidoctor.readers.package.read_package import read_damage
    from aotidoctor.worker.cut_program import load_program

    # PyTorch compares no checksum: what differs would be taken for a fault of the package.
    if damage := read_damage(str(channel.user_cwd / spec)):
        raise ValueError(f"{spec} {damage}")
    program = load_program(channel.user_cwd / spec)
    return LoadedReference(call=program.module(), program=program, tensors=program_tensors(program))


def call_reference(reference: LoadedReference, call: ModelCall) -> tuple[dict[str, Any], Any]:
    """What the reference gives on ``call``: its facts, and its outputs (None when it raised)."""
    import torch

    try:
        with torch.no_grad():
            theirs = reference.call(*call.args, **call.kwargs)
    except Exception as error:
        return {"error": _error(error)}, None
    return {"outputs": [describe(path, leaf, values=True) for path, leaf in result_tensors(theirs)]}, theirs


def _buffers(reference: LoadedReference) -> list[tuple[Any, Any]]:
    if reference.program is None:
        return []
    from aotidoctor.worker.float64.float64_run import snapshot_buffers

    return snapshot_buffers(reference.call)


def _weights(payload: Run, model: LoadedModel, state: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"weights": compare_shipped(model, payload, state)}
    except (LookupError, RuntimeError, OSError) as error:
        return {"weights": [], "weights_unread": str(error)}


def _error(error: Exception) -> str:
    traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"[:16384]
