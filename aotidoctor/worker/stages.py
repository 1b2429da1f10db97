"""Compute one stage between a model and its package, and hold it against the stage before; job ``stage``.

Stages: ``eager`` (the user's model), ``exported`` (the given program), ``not strict`` and ``strict`` (the model
exported here, with the sizes of this call), ``decomposed`` (the program after Inductor's decompositions). Each side has
its own copy of the inputs, the same seed and the same weights, and a float64 run of the side before is the judge.

Parts of the result: ``reference`` as of job ``run`` (the comparison, of which ``error`` is what this stage raised and
``where`` the line of the user's code), ``operator`` with ``where`` (the first operator that gives other values),
``instead`` (what the program computes in its place), ``weights`` (those of the model that were exchanged for the
program's).

The operator: what the model computes is recorded below autograd, and looked for among the values that the program
computes; the first value that the program never has is named. Of a decomposition, each operator is called as it is and
decomposed, on the same arguments; a decomposition is a call of other operators, so that the innermost wrong one counts.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from aotidoctor.model.case import Tolerances
from aotidoctor.model.jobs import Stage
from aotidoctor.model.record import record
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compile_program import compiler_decompositions, save_program
from aotidoctor.worker.float64.float64_judge import PACKAGE_WRONG, judge, judge_leaf
from aotidoctor.worker.float64.float64_run import is_random, program_leaves, restore_buffers, snapshot_buffers, widen
from aotidoctor.worker.reference_program import (
    LoadedReference,
    call_reference,
    error_text,
    is_users_file,
    load_reference,
    users_line,
)
from aotidoctor.worker.tensors import (
    compare_leaf,
    compare_outputs,
    copy_result,
    leave_open_sizes,
    result_tensors,
    settle_verdicts,
)
from aotidoctor.worker.user_code import load_setup
from aotidoctor.worker.values.match_values import Candidates, program_value, source_place

_SEED = 0
_MOST_OPERATORS = 20_000


def stage(payload: Stage, channel: Channel) -> dict[str, Any]:
    """Compute ``payload.stage``, and ``payload.before`` on the same inputs, and compare them."""
    load_setup(payload, channel)
    channel.enter("reference")
    way = _load_way(payload, channel)
    result: dict[str, Any] = {"weights": way.weights} if way.weights else {}
    channel.put(**result)
    before, theirs = None, None
    if payload.before is not None:
        channel.enter(payload.before)
        before = way.make(payload.before, None)
        theirs = _call(before, way.call)[1]
    channel.enter(payload.stage)
    try:
        made = way.make(payload.stage, before)
    except Exception as error:
        return {**result, "reference": {"error": error_text(error), "where": users_line(error)}}
    facts, ours = _call(made, way.call)
    if before is None or ours is None:
        return {**result, "reference": facts}
    facts = compare_outputs(ours, theirs, Tolerances())
    leaves = [leaf for leaf in facts["outputs"] if leaf["what"] in (None, "values", "nan") and "needed" in leaf]
    if not all(leaf["agrees"] for leaf in leaves):
        facts["float64"] = judge(before, way.call.copy() or way.call, (ours, theirs), leaves)
    leave_open_sizes(facts, before.program)
    settle_verdicts(facts)
    if facts["agrees"]:
        if payload.keep is not None:
            save_program(made.program, Path(payload.keep))
        return {**result, "reference": facts}
    channel.put(**result, reference=facts)
    # Of what is not decided, such as random numbers, no operator is to blame.
    if facts["same_structure"] and all(leaf["verdict"] == "unknown" for leaf in facts["outputs"] if not leaf["agrees"]):
        return {**result, "reference": facts}
    channel.enter("operator")
    # The verdict stands without it.
    with suppress(Exception):
        if payload.stage == "decomposed":
            result |= _wrong_decomposition(before.program, way.call)
        else:
            result |= _first_missing(before, made, way.call)
    return {**result, "reference": facts}


@record
class _Way:
    """The model and its program, as far as they were given, on one call; ``weights`` are those that were exchanged."""

    model: LoadedReference | None
    program: LoadedReference | None
    call: ModelCall
    weights: list[str]

    def make(self, name: str, before: LoadedReference | None) -> LoadedReference:
        """A stage by its name; ``before`` is the program that is decomposed."""
        if name == "decomposed" and before is not None:
            # Some decompositions take it for imported.
            import_module("torch._inductor.lowering")

            made = before.program.run_decompositions(compiler_decompositions())
            return LoadedReference(call=made.module(), program=made)
        if name == "exported" and self.program is not None:
            return self.program
        if self.model is None:
            raise ValueError(f"there is nothing to make {name} of")
        if name == "eager":
            return LoadedReference(call=copy_of(self.model.call))
        own = self.call.copy() or self.call
        made = torch.export.export(as_module(self.model.call), own.args, own.kwargs, strict=name == "strict")
        return LoadedReference(call=made.module(), program=made)


def _load_way(payload: Stage, channel: Channel) -> _Way:
    model = load_reference(payload.model, channel) if payload.model is not None else None
    program = load_reference(payload.program, channel) if payload.program is not None else None
    if model is not None and model.program is not None:
        raise TypeError(f"{payload.model} returns an exported program, not a model: give it with --reference")
    if program is not None and program.program is None:
        raise TypeError(f"{payload.program} returns no exported program")
    channel.enter("inputs")
    if payload.inputs is not None:
        call = read_call(payload.inputs, channel)
    else:
        found = model.example if model is not None else None
        if found is None and program is not None:
            found = program.program.example_inputs
        if found is None:
            raise ValueError("there are no example inputs: let the function return (model, args)")
        call = ModelCall(args=tuple(found[0]), kwargs=dict(found[1]))
    weights = _take_weights(model, program) if model is not None and program is not None else []
    return _Way(model=model, program=program, call=call, weights=weights)


def as_module(function: Callable[..., Any]) -> Any:
    """A copy of a module, or a module around another callable."""
    if isinstance(function, torch.nn.Module):
        return copy_of(function)

    class Called(torch.nn.Module):  # type: ignore[misc,unused-ignore]  # torch.export takes modules only
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    return Called()


def copy_of(function: Callable[..., Any]) -> Any:
    """A copy of a module, whose buffers a call may change; a function, or what cannot be copied, as it is."""
    with suppress(Exception):
        return copy.deepcopy(function)
    return function


def _take_weights(model: LoadedReference, program: LoadedReference) -> list[str]:
    """Give the model the program's weights: an initialisation at random is another one at each call. Names of those."""
    if not isinstance(model.call, torch.nn.Module):
        return []
    own, theirs = model.call.state_dict(), program.program.state_dict
    differ = [
        name
        for name, tensor in own.items()
        if name in theirs and theirs[name].shape == tensor.shape and not torch.equal(theirs[name], tensor)
    ]
    with torch.no_grad():
        for name in differ:
            own[name].copy_(theirs[name])
    return differ


def _call(reference: LoadedReference, call: ModelCall) -> tuple[dict[str, Any], Any]:
    torch.manual_seed(_SEED)
    # The decomposed program has the buffers of the one before, which a call may write to.
    state = snapshot_buffers(reference.call) if isinstance(reference.call, torch.nn.Module) else []
    try:
        facts, result = call_reference(reference, call.copy() or call)
        return facts, copy_result(result)
    finally:
        restore_buffers(state)


# The operator of the model whose values the program never has.
def _first_missing(before: LoadedReference, made: LoadedReference, call: ModelCall) -> dict[str, Any]:
    theirs = _record_operators(made.call, call)
    candidates = Candidates()
    candidates.add(theirs)
    ours = _record_operators(copy_of(before.call), call)
    for at, one in enumerate(ours):
        found = candidates.closest(one.value)
        if found.get("agrees") or (not found and not one.value.is_floating_point()):
            continue
        known = Candidates()
        known.add(ours)
        instead = next((other for other in theirs if known.closest(other.value).get("agrees") is False), None)
        return {
            "operator": one.target,
            "where": one.where,
            "instead": instead.target if instead is not None else None,
            "position": at,
        }
    return {}


def _record_operators(function: Callable[..., Any], call: ModelCall) -> list[Any]:
    """The results of all operators of one call, each with the line of the user's code."""
    found: list[Any] = []

    class Recorder(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if len(found) < _MOST_OPERATORS:
                # The innermost frame that is not PyTorch's or ours.
                frame: FrameType | None = sys._getframe(1)
                while frame is not None and not is_users_file(frame.f_code.co_filename):
                    frame = frame.f_back
                where = None if frame is None else f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
                tensors = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.numel()]
                found.extend(program_value(str(func), str(func), where, one) for one in tensors)
            return result

    torch.manual_seed(_SEED)
    own = call.copy() or call
    with torch.no_grad(), Recorder():
        function(*own.args, **own.kwargs)
    return found


# The operator whose decomposition gives other values than the operator itself.
def _wrong_decomposition(program: Any, call: ModelCall) -> dict[str, Any]:
    table = compiler_decompositions()
    wrong: list[dict[str, Any]] = []

    class Decomposer(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        node: Any = None

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            own = func(*args, **kwargs)
            if wrong or not self._is_plain(func, args, kwargs):
                return own
            with self:
                parts = table[func](*tree_map(_clone, args), **tree_map(_clone, kwargs))
            # A call inside of the decomposition may have been found meanwhile.
            if parts is not NotImplemented and not wrong and (dtype := _differs(parts, own, func, args, kwargs)):
                wrong.append({"operator": str(func), "where": source_place(self.node), "dtype": dtype})
            return own

        def _is_plain(self, func: Any, args: Any, kwargs: Any) -> bool:
            return (
                func in table
                and not func._schema.is_mutable
                and not any(one.alias_info is not None for one in func._schema.returns)
                and "empty" not in func.name()
                and not is_random(func, args, kwargs)
            )

    mode = Decomposer()

    class Walk(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not seen by the type checker
        def run_node(self, n: Any) -> Any:
            mode.node = n
            return super().run_node(n)

    own = call.copy() or call
    torch.manual_seed(_SEED)
    with torch.no_grad(), mode:
        Walk(program.module()).run(*program_leaves(program.call_spec.in_spec, own), enable_io_processing=False)
    return wrong[0] if wrong else {}


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _differs(made: Any, own: Any, func: Any, args: Any, kwargs: Any) -> str | None:
    """The dtype of the operator's result, if the decomposition gives other values or another dtype; else None."""
    exact: dict[str, Any] = {}
    with suppress(Exception):
        wide = tree_map(widen, (args, kwargs))
        exact = dict(result_tensors(func(*wide[0], **wide[1])))
    others = dict(result_tensors(made))
    for path, theirs in result_tensors(own):
        ours = others.get(path)
        # Some results are left empty by one of the two: statistics that nobody reads.
        if ours is None or not theirs.numel():
            continue
        facts = compare_leaf(path, ours, theirs)
        if facts["agrees"]:
            continue
        judged = path in exact and facts["what"] in ("values", "nan")
        if judged and judge_leaf(ours, theirs, exact[path], None)["judged"] != PACKAGE_WRONG:
            continue
        return str(theirs.dtype).removeprefix("torch.")
    return None
