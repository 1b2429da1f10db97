"""Run the program that the package was made from on the same inputs, and compare; job ``reference``.

The reference checks less of its inputs than one might think (no dtype, no strides), but handles dict order, strides and
lazy bits correctly.

Parts of the result beside the outputs: ``mutation``, one object per input that either of the two wrote to: ``path``,
``package``, ``reference`` (whether it did), ``agrees`` (both did, to the same values), ``max_abs_diff``. ``alias``,
one object per output that shares memory differently in the two: ``path``, ``package`` and ``reference`` (names of the
tensors that it shares memory with).

Constants that the compiler wrote into the code cannot be loaded. Where a package with the reference's weights still
gives other outputs, the values in its code go into the reference instead. The code does not show which value belongs
to which constant: they are tried in the order in which program and code use them, until the outputs agree. Values
that agree are right, however they were found.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, permutations, product
from typing import Any

import torch

from aotidoctor.model.jobs import Run
from aotidoctor.readers.contract.written_constants import MOST, constant_numbers, constant_vectors, is_typed
from aotidoctor.readers.package.zip_archive import QUICK_CRC_LIMIT
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.float64.float64_judge import judge
from aotidoctor.worker.float64.float64_run import restore_buffers, snapshot_buffers
from aotidoctor.worker.load_package import LoadedModel
from aotidoctor.worker.reference_program import (
    LoadedReference,
    call_reference,
    damage_error,
    error_text,
    load_reference,
)
from aotidoctor.worker.serve import keep_memory
from aotidoctor.worker.tensors import (
    compare_leaf,
    compare_outputs,
    copy_result,
    digest,
    leave_open_sizes,
    result_tensors,
    settle_verdicts,
    storage_address,
)
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.user_code import load_setup
from aotidoctor.worker.weights import compare_shipped, constant_difference


# Writes to inputs and shared memory.
def compare_mutation(before: list[str | None], ours: ModelCall, theirs: ModelCall) -> list[dict[str, Any]]:
    """Inputs that either call wrote to; ``before`` are their digests. Both calls have run, each on its own inputs."""
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
    """Outputs that share memory with other tensors than their counterpart does."""
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
    """Put values from the package's code into constants of ``module`` (that of ``program``) until the outputs agree.

    ``compared`` runs the module and compares its outputs with the package's; ``before`` are the buffers for that run.
    Returns the constants by name, each with the package's value and the module's own, and the facts of ``compared``;
    None without an agreement. The module is left as it was.
    """
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names = _constants_in_code(program, own, set(model.get_constant_fqns()))
    saved = {name: own[name].detach().clone() for name in names}
    files = sorted(model.directory.glob("**/*.cpp"))
    small = sum(file.stat().st_size for file in files) <= _SOURCE_BYTES
    source = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files) if small else ""
    deadline = time.monotonic() + _SECONDS
    try:
        for choice in islice(_choices(list(saved.values()), source), _TRIES):
            restore_buffers(before)
            for name, values in zip(saved, choice, strict=True):
                restore_buffers([(own[name], torch.tensor(values, dtype=torch.float64).reshape(own[name].shape))])
            facts = compared()
            if facts is not None and facts["agrees"]:
                return {name: (own[name].detach().clone(), value) for name, value in saved.items()}, facts
            if time.monotonic() > deadline:
                break
        return None
    finally:
        restore_buffers([*before, *((own[name], value) for name, value in saved.items())])


def _constants_in_code(program: Any, own: dict[str, Any], loadable: set[str]) -> list[str]:
    """Names of the constants that Inductor may have written into the code, in the order in which the graph uses them.

    It does so with numbers and with vectors of a few elements.
    """
    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target is not None}
    used = [targets[one.name] for node in program.graph.nodes for one in node.all_input_nodes if one.name in targets]
    names = [name for name in dict.fromkeys(used) if name in own and name not in loadable]
    return [
        name for name in names if own[name].dim() <= 1 and 0 < own[name].numel() <= MOST and not own[name].is_complex()
    ]


def differing_constants(found: dict[str, tuple[Any, Any]]) -> list[OutputFacts]:
    """Differences of the constants that are not the same in the package, as ``constant_difference`` describes them.

    None where one of them is a single number of few digits: any number of the code might have fitted.
    """
    facts = [constant_difference(name, ours, theirs) for name, (ours, theirs) in found.items()]
    wrong = [item for item in facts if not item["equal"]]
    typed = [item for item in wrong if found[item["name"]][0].numel() == 1 and is_typed(float(found[item["name"]][0]))]
    return [] if typed else [{**item, "written": True} for item in wrong]


def _choices(wanted: Sequence[Any], source: str) -> Iterator[list[ConstantValues]]:
    """Values from ``source`` for the tensors of ``wanted``, as many as each has elements; the likeliest first."""
    found: dict[int, list[ConstantValues]] = {1: [(one,) for one in constant_numbers(source)]}
    for vector in constant_vectors(source):
        found.setdefault(len(vector), []).append(vector)
    # Numbers vary fastest: the code has many that are no constants.
    sizes = sorted({tensor.numel() for tensor in wanted}, reverse=True)
    places = [[at for at, tensor in enumerate(wanted) if tensor.numel() == size] for size in sizes]
    groups = []
    for size, ats in zip(sizes, places, strict=True):
        values = found.get(size, [])
        # In the order of the code first; a constant that several kernels read occurs there several times.
        distinct = tuple(dict.fromkeys(values))
        first = [distinct] if len(distinct) == len(ats) != len(values) else []
        groups.append(list(islice(chain(first, permutations(values, len(ats))), _TRIES)))
    for picked in product(*groups) if sizes else ():
        chosen = {
            at: one for ats, group in zip(places, picked, strict=True) for at, one in zip(ats, group, strict=True)
        }
        yield [chosen[at] for at in range(len(wanted))]


def reference(payload: Run, channel: Channel) -> dict[str, Any]:
    """Run the reference alone, on treated inputs; the result's ``reference`` has ``outputs`` or ``error``."""
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
    else the facts of ``compare_outputs``, ``mutation``, ``alias``, and, where the outputs differ, ``float64``.
    ``outputs`` is the result of ``make_calls``: the inputs as they were before, and the package's first result.

    The checksums of large members of the program are compared only where something differs.
    """
    # The call under examination is over.
    keep_memory()
    spec = payload.reference or ""
    try:
        reference = load_reference(spec, channel, crc_limit=QUICK_CRC_LIMIT)
    except Exception as error:
        return {"reference": {"unavailable": error_text(damage_error(spec, channel) or error)}}
    result: dict[str, Any] = {}
    if reference.tensors:
        try:
            result["weights"] = compare_shipped(model, payload, reference.tensors)
        except (LookupError, RuntimeError, OSError) as error:
            result = {"weights": [], "weights_unread": str(error)}
    weights = result.get("weights", [])
    equal = bool(weights) and all(item["equal"] for item in weights)
    if not equal and (damaged := damage_error(spec, channel)):
        return {"reference": {"unavailable": error_text(damaged)}}
    if call is None or outputs is None:
        return result
    channel.put(**result)
    facts = _compare_calls(payload, model, reference, call, outputs=outputs, weights=weights, channel=channel)
    if equal and not facts.get("agrees") and (damaged := damage_error(spec, channel)):
        facts = {"unavailable": error_text(damaged)}
    return result | {"reference": facts}


def compare_call(payload: Run, model: LoadedModel, call: ModelCall, outputs: Any, channel: Channel) -> dict[str, Any]:
    """The part ``reference`` of one of many calls: neither weights nor checksums are compared."""
    try:
        reference = load_reference(payload.reference or "", channel, crc_limit=QUICK_CRC_LIMIT)
    except Exception as error:
        return {"reference": {"unavailable": error_text(error)}}
    return {"reference": _compare_calls(payload, model, reference, call, outputs=outputs, weights=[], channel=channel)}


def _compare_calls(
    payload: Run,
    model: LoadedModel,
    reference: LoadedReference,
    call: ModelCall,
    *,
    outputs: Any,
    weights: list[dict[str, Any]],
    channel: Channel,
) -> OutputFacts:
    """Call the reference and compare; differences of written constants are added to ``weights``."""
    saved, ours = outputs
    given = saved or call
    again, before = given.copy(), given.digests()
    state = snapshot_buffers(reference.call) if reference.program is not None else []
    facts, theirs = call_reference(reference, given)
    if theirs is None:
        return facts
    facts = compare_outputs(ours, theirs, payload.tolerances)
    if not facts["agrees"] and again is not None:
        written = _compare_with_written(payload, model, reference, again, ours=ours, weights=weights, state=state)
        if written is not None and treat.loads_weights_of(payload):
            facts = written
        elif written is not None:
            weights += written["written_differing"]
        if reference.program is None and (other := _other_in_its_place(payload, reference, again, ours)) is not None:
            facts["merged"] = other
    if saved is not None:
        facts["mutation"] = compare_mutation(before, call, saved)
        facts["alias"] = compare_aliases(ours, call, theirs, saved)
    _judge_outputs(
        payload, facts, reference, again, results=(ours, theirs), weights=weights, state=state, channel=channel
    )
    leave_open_sizes(facts, reference.program)
    settle_verdicts(facts)
    return facts


def _other_in_its_place(payload: Run, reference: LoadedReference, call: ModelCall, ours: Any) -> dict[str, str] | None:
    """An input that the package never reads, and the one that makes the reference agree when it is in its place."""
    leaves = dict(call.tensors())
    for path, other in payload.unread:
        if path not in leaves or other not in leaves:
            continue
        put = partial(_put_leaf, wanted=path, value=leaves[other])
        _, theirs = call_reference(reference, call.rebuilt(put).copy() or call)
        if theirs is None:
            continue
        facts = compare_outputs(ours, theirs, payload.tolerances)
        if facts["agrees"]:
            return {"path": path, "other": other}
    return None


def _put_leaf(path: str, leaf: Any, *, wanted: str, value: Any) -> Any:
    return value if path == wanted else leaf


def _compare_with_written(
    payload: Run,
    model: LoadedModel,
    reference: LoadedReference,
    call: ModelCall,
    *,
    ours: Any,
    weights: list[dict[str, Any]],
    state: OutputsBefore,
) -> OutputFacts | None:
    """Compare ``ours`` with the reference that has the constants of the package's code (``written``: their names).

    None where the outputs do not agree with those either, or other constants may explain the difference.
    """
    equal = bool(weights) and not any(item.get("equal") is False for item in weights)
    if reference.program is None or not (treat.loads_weights_of(payload) or (equal and not payload.treatment)):
        return None

    def compared() -> OutputFacts | None:
        _, theirs = call_reference(reference, call.copy() or call)
        if theirs is None:
            return None
        facts = compare_outputs(ours, theirs, payload.tolerances)
        settle_verdicts(facts)
        return facts

    written = put_written_constants(model, reference.program, reference.call, state, compared)
    if written is None:
        return None
    found, facts = written
    return {**facts, "written": list(found), "written_differing": differing_constants(found)}


def _judge_outputs(
    payload: Run,
    facts: OutputFacts,
    reference: LoadedReference,
    call: ModelCall | None,
    *,
    results: tuple[Any, Any],
    weights: list[dict[str, Any]],
    state: OutputsBefore,
    channel: Channel,
) -> None:
    """Add ``float64`` to the facts where outputs differ (or, with ``measure``, have other bits).

    ``call`` has the inputs as they were before the first call (None: too big to be copied), ``state`` the buffers.
    """
    leaves = [leaf for leaf in facts["outputs"] if leaf["what"] in (None, "values", "nan") and "needed" in leaf]
    differs = any(not leaf["agrees"] or (payload.measure and leaf["max_abs_diff"] != 0.0) for leaf in leaves)
    if not differs or facts.get("written"):
        return
    if any(item.get("equal") is False for item in weights):
        facts["float64"] = {"problem": "not run: different weights explain the difference"}
    elif call is None:
        facts["float64"] = {"problem": "the inputs are too big to be copied"}
    else:
        # The float64 run may be too slow or too big: the facts so far are sent first.
        settled = {**copy.deepcopy(facts), "float64": {"problem": "it did not finish"}}
        settle_verdicts(settled)
        channel.put(reference=settled)
        channel.enter("float64")
        # A copy first: an output may be one of the buffers.
        ours, theirs = results[0], copy_result(results[1])
        restore_buffers(state)
        facts["float64"] = judge(reference, call, (ours, theirs), leaves)
