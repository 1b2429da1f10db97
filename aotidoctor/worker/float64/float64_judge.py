"""Judge which of two results is off, and by how much, against a float64 run of the same program.

Definitions, for one output with the package's values P, the reference's E, and those of the float64 run R:

- *unit*: an element counts in units of ``eps(dtype) * max(|R_i|, m, tiny)``, where eps and tiny are those of E's dtype
  and m is the median of the nonzero ``|R|``. So an element that cancels to almost nothing is measured by the size that
  elements of this tensor have, and one huge element (a mask of -1e9) does not hide the others.
- *error*: ``|X_i - R_i|`` in that unit; for the tensor, the largest (``error``) and the median (``typical``). An
  element that is NaN or Inf where R, as E's dtype can hold it, is not (or the other way round) has an infinite error.
- *noise*: the same two numbers for float64 runs in which each result was moved at random by the size of its rounding
  (``float64_run``): the precision of this dtype for this program and these inputs, with cancellation and long sums.
- *allowed*: ``max(floor, 4 * noise)``. The floor is 64 eps for the largest error (8 in half precision) and 16 for the
  median (4): operators have steps inside that the program does not show. Without a measured noise (a function as
  reference) it is eight times that.

P is *wrong* when its error, the largest or the typical one, is more than allowed and more than 4 times E's, and E
the other way round. This gives the verdict: ``package-wrong``, ``reference-imprecise`` (E is the wrong one), or
``both-within`` (at least one error is allowed, and neither is wrong). ``unknown`` remains when both are far off alike.

Integers and booleans have no eps. An element of P or E is *off* where it is outside the range of R and the runs with
noise; elements that differ and are both inside depend on rounding (``hanging``). P or E is wrong when it has more
elements that are off than there are hanging ones, and more than 4 times as many as the other.

The program is run in float64 once, and then with noise, unless every output is within rounding whatever the noise is.
Part of the result: ``float64`` with ``runs`` (1, and those with noise), ``kept`` (operators that were run in their own
dtype) and ``casts`` (dtypes that the program rounds to), or ``problem`` (the reason why there is none). Each leaf gets
the facts of ``judge_leaf``.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from aotidoctor.model.record import record
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.float64.float64_run import NoDoubleRunError, RoundingNoise, run_program, widen
from aotidoctor.worker.reference_program import LoadedReference
from aotidoctor.worker.tensors import iterate_leaves, real_parts, short_name

# The verdict on one output.
FACTOR = 4.0
UNMEASURED = 8.0
_FLOORS = {torch.float16: (8.0, 4.0), torch.bfloat16: (8.0, 4.0)}
_FLOOR = (64.0, 16.0)
PACKAGE_WRONG, REFERENCE_IMPRECISE, BOTH_WITHIN, UNKNOWN = (
    "package-wrong",
    "reference-imprecise",
    "both-within",
    "unknown",
)


@record
class RoundingError:
    """Errors of one tensor in units: the largest, and the median."""

    largest: float
    typical: float


def is_settled(ours: Any, theirs: Any, exact: Any) -> bool:
    """Whether one output is within rounding whatever the noise is, so that no run with noise is needed.

    More noise allows more, so an error within the floor stays allowed.
    """
    judged = judge_leaf(ours, theirs, exact, [])
    return judged["judged"] == BOTH_WITHIN and not judged.get("off") and not judged.get("reference_off")


def judge_leaf(ours: Any, theirs: Any, exact: Any, moved: list[Any] | None) -> dict[str, Any]:
    """``judged`` (the verdict) and its numbers for one output; ``moved`` are the results of float64 runs with noise.

    ``moved`` is empty where none was needed (``is_settled``), None where there can be none. ``error``,
    ``reference_error``, ``noise`` in eps (None for integers); ``reason`` for ``unknown``.
    """
    if exact.shape != theirs.shape:
        return {"judged": UNKNOWN, "reason": f"the float64 run returns shape {tuple(exact.shape)}"}
    ours, theirs, exact, *results = map(real_parts, (ours, theirs, exact, *(moved or ())))
    if not theirs.dtype.is_floating_point:
        return _judge_whole(ours, theirs, exact, results)
    if exact.dtype != torch.float64:
        return {"judged": UNKNOWN, "reason": "the float64 run returns no floating-point values"}
    usable = [one for one in results if one.shape == exact.shape]
    fragile = torch.zeros(exact.shape, dtype=torch.bool)
    for one in usable:
        fragile |= torch.isfinite(one) != torch.isfinite(exact)
    # One unit of error for each element of ``exact``.
    about = torch.finfo(theirs.dtype)
    size = torch.where(torch.isfinite(exact), exact.abs(), 0.0)
    nonzero = size[size > 0]
    middle = float(nonzero.median()) if nonzero.numel() else 0.0
    unit = size.clamp(min=max(middle, about.tiny), max=about.max) * about.eps
    held = exact.to(theirs.dtype).double()
    package = _error(ours, exact, held, unit, fragile)
    reference = _error(theirs, exact, held, unit, fragile)
    noises = [_error(one, exact, held, unit, fragile) for one in usable]
    # Infinite errors measure nothing.
    finite = [one for one in noises if one.largest != float("inf")] or [RoundingError(largest=0.0, typical=0.0)]
    largest, typical = max(one.largest for one in finite), max(one.typical for one in finite)
    noise = RoundingError(largest=largest, typical=typical) if noises else None
    numbers = {
        "error": package.largest,
        "reference_error": reference.largest,
        "noise": noise.largest if noise is not None else None,
    }
    allowed = allowed_of(RoundingError(largest=0.0, typical=0.0) if moved == [] else noise, theirs.dtype)
    verdict = verdict_of(package, reference, allowed)
    reason = "both are further from float64 than rounding explains" if verdict == UNKNOWN else None
    return {"judged": verdict, "reason": reason, "allowed": allowed.largest, **numbers}


def allowed_of(noise: RoundingError | None, dtype: Any) -> RoundingError:
    """Errors that rounding may cause; of a dtype in general when no noise was measured."""
    largest, typical = _FLOORS.get(dtype, _FLOOR)
    if noise is None:
        return RoundingError(largest=UNMEASURED * largest, typical=UNMEASURED * typical)
    return RoundingError(largest=max(largest, FACTOR * noise.largest), typical=max(typical, FACTOR * noise.typical))


def verdict_of(package: RoundingError, reference: RoundingError, allowed: RoundingError) -> str:
    """Verdict from the numbers alone."""
    if _is_wrong(package, reference, allowed):
        # One may be off in its largest error and the other in its typical one: then neither is closer.
        return UNKNOWN if _is_wrong(reference, package, allowed) else PACKAGE_WRONG
    if _is_wrong(reference, package, allowed):
        return REFERENCE_IMPRECISE
    within = min(package.largest, reference.largest) <= allowed.largest
    return BOTH_WITHIN if within and min(package.typical, reference.typical) <= allowed.typical else UNKNOWN


def _is_wrong(one: RoundingError, other: RoundingError, allowed: RoundingError) -> bool:
    return (one.largest > allowed.largest and one.largest > FACTOR * other.largest) or (
        one.typical > allowed.typical and one.typical > FACTOR * other.typical
    )


def _judge_whole(ours: Any, theirs: Any, exact: Any, moved: list[Any]) -> dict[str, Any]:
    """Judge integers and booleans by the range of the float64 runs."""
    ours, theirs = ours.long(), theirs.long()
    runs = [exact.long(), *(one.long() for one in moved if one.shape == exact.shape)]
    low, high = torch.stack(runs).amin(0), torch.stack(runs).amax(0)
    differs = ours != theirs
    ours_out, theirs_out = (differs & ((one < low) | (one > high)) for one in (ours, theirs))
    hanging = int((differs & ~ours_out & ~theirs_out).sum())
    off, their_off = int(ours_out.sum()), int(theirs_out.sum())
    numbers = {"hanging": hanging, "off": off, "reference_off": their_off}
    if off > hanging and off > FACTOR * their_off:
        return {"judged": PACKAGE_WRONG, "reason": None, **numbers}
    if their_off > hanging and their_off > FACTOR * off:
        return {"judged": REFERENCE_IMPRECISE, "reason": None, **numbers}
    if min(off, their_off) <= hanging:
        return {"judged": BOTH_WITHIN, "reason": None, **numbers}
    return {"judged": UNKNOWN, "reason": "neither has the values of the float64 run", **numbers}


def _error(values: Any, exact: Any, held: Any, unit: Any, fragile: Any) -> RoundingError:
    """Errors of ``values``, without the ``fragile`` elements, where noise decides whether they are finite at all."""
    values = values.double()
    finite = torch.isfinite(values) & torch.isfinite(held)
    same = (values == held) | (torch.isnan(values) & torch.isnan(held))
    off = torch.where(finite, (values - exact).abs() / unit, torch.where(same, 0.0, torch.inf))
    off = torch.where(same & ~finite, 0.0, off)[~fragile]
    if not off.numel():
        return RoundingError(largest=0.0, typical=0.0)
    return RoundingError(largest=float(off.max()), typical=float(off.median()))


# All outputs.
NOISES = 3
# A whole number is either moved by noise or not: fewer runs would miss a tie.
NOISES_OF_CHOICES = 8


def judge(
    reference: LoadedReference, call: ModelCall, results: tuple[Any, Any], leaves: list[dict[str, Any]]
) -> dict[str, Any]:
    """Add the verdict to each of ``leaves``; return the facts of the runs. Never raises."""
    try:
        exact, own_dtype = _run_float64(reference, call)
        moved = _results_with_noise(reference, call, (*results, exact), leaves)
    except NoDoubleRunError as error:
        return _no_judge(leaves, _first_line(error))
    except Exception as error:
        return _no_judge(leaves, f"{type(error).__name__}: {_first_line(error)}"[:300])
    sides = [dict(iterate_leaves(result, "result")) for result in (*results, exact, *(moved or ()))]
    for leaf in leaves:
        path = leaf["path"]
        if path not in sides[2]:
            leaf.update(judged="unknown", reason="the float64 run has no such output")
            continue
        ours, theirs, best, *noisy = (side[path] for side in sides if path in side)
        leaf.update(judge_leaf(ours, theirs, best, None if moved is None else noisy))
    return {"problem": None, "runs": len(sides) - 2, "kept": own_dtype, "casts": _roundings(reference)}


def _roundings(reference: LoadedReference) -> list[str]:
    """The dtypes that the program rounds wider numbers to: the compiler may leave that out."""
    found: dict[str, None] = {}
    for node in reference.program.graph.nodes if reference.program is not None else ():
        val, before = (one.meta.get("val") if one is not None else None for one in (node, _only_input(node)))
        if isinstance(val, torch.Tensor) and isinstance(before, torch.Tensor) and val.dtype in _FLOORS:
            found |= {short_name(val.dtype): None} if before.dtype in (torch.float32, torch.float64) else {}
    return list(found)


def _only_input(node: Any) -> Any:
    inputs = node.all_input_nodes
    return inputs[0] if len(inputs) == 1 else None


def _no_judge(leaves: list[dict[str, Any]], problem: str) -> dict[str, Any]:
    for leaf in leaves:
        if not leaf["agrees"]:
            leaf.update(judged="unknown", reason=f"there is no float64 run: {problem}")
    return {"problem": problem}


def _first_line(error: Exception) -> str:
    """The message; torch.fx adds a description of the node to it."""
    return (str(error).strip().splitlines() or [""])[0]


def _run_float64(reference: LoadedReference, call: ModelCall) -> tuple[Any, list[str]]:
    """The float64 result, and the operators that were not float64."""
    if reference.program is None:
        # A function is called with float64 inputs; it may refuse them, or compute in float32 all the same.
        wide = call.rebuilt(lambda _, leaf: widen(leaf, copy=True))
        function: Any = reference.call
        try:
            if isinstance(function, torch.nn.Module):
                function = copy.deepcopy(function).double()
            with torch.no_grad():
                result = function(*wide.args, **wide.kwargs)
        except Exception as error:
            raise NoDoubleRunError(
                f"the function refuses float64 inputs ({type(error).__name__}: {error})"[:200]
            ) from error
        floats = [
            leaf
            for _, leaf in iterate_leaves(result, "result")
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        ]
        if any(leaf.dtype != torch.float64 for leaf in floats):
            raise NoDoubleRunError("the function computes in a narrower dtype all the same")
        return result, []
    return run_program(reference.program, call)


def _results_with_noise(
    reference: LoadedReference, call: ModelCall, results: tuple[Any, Any, Any], leaves: list[dict[str, Any]]
) -> list[Any] | None:
    """Results of runs with noise: none where no noise could change a verdict, None where there is no program."""
    if reference.program is None:
        return None
    ours, theirs, exact = (dict(iterate_leaves(result, "result")) for result in results)
    judged = [leaf["path"] for leaf in leaves if leaf["path"] in exact]
    if all(is_settled(ours[path], theirs[path], exact[path]) for path in judged):
        return []
    whole = any(
        not leaf["agrees"] and not str(leaf["dtype"][1]).startswith(("float", "bfloat", "complex")) for leaf in leaves
    )
    seeds = range(NOISES_OF_CHOICES if whole else NOISES)
    return [run_program(reference.program, call, RoundingNoise(seed))[0] for seed in seeds]
