"""Put outputs that differ before a float64 run of the reference: who is off, and by how much?

The program is run in float64 once, and then with noise, unless every output is within rounding whatever the noise is.

Part of the result: ``float64`` with ``runs`` (1, and those with noise), ``kept`` (operators that were run in their own
dtype), or ``problem`` (why there is none). Each leaf gets what ``rounding.judge_leaf`` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aotidoctor.worker.call import Call
from aotidoctor.worker.float64.float64_run import NoDoubleRunError, run_program, widened
from aotidoctor.worker.float64.rounding import is_settled, judge_leaf
from aotidoctor.worker.float64.rounding_noise import Noise
from aotidoctor.worker.leaves import walk

if TYPE_CHECKING:
    from aotidoctor.worker.reference import Reference

NOISES = 3
# A whole number is either moved by noise or not: fewer runs would miss a tie.
NOISES_OF_CHOICES = 8


def judge(reference: Reference, call: Call, results: tuple[Any, Any], leaves: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the verdict to each of ``leaves``; returns what was run for it. Never raises."""
    try:
        exact, kept = _exact(reference, call)
        moved = _moved(reference, call, (*results, exact), leaves)
    except NoDoubleRunError as error:
        return _no_judge(leaves, _first_line(error))
    except Exception as error:
        return _no_judge(leaves, f"{type(error).__name__}: {_first_line(error)}"[:300])
    sides = [dict(walk(result, "result")) for result in (*results, exact, *(moved or ()))]
    for leaf in leaves:
        path = leaf["path"]
        if path not in sides[2]:
            leaf.update(judged="unknown", reason="the float64 run has no such output")
            continue
        ours, theirs, best, *noisy = (side[path] for side in sides if path in side)
        leaf.update(judge_leaf(ours, theirs, best, None if moved is None else noisy))
    return {"problem": None, "runs": len(sides) - 2, "kept": kept}


def _no_judge(leaves: list[dict[str, Any]], problem: str) -> dict[str, Any]:
    for leaf in leaves:
        if not leaf["agrees"]:
            leaf.update(judged="unknown", reason=f"there is no float64 run: {problem}")
    return {"problem": problem}


def _first_line(error: Exception) -> str:
    """The message; torch.fx adds a description of the node to it."""
    return (str(error).strip().splitlines() or [""])[0]


def _are_choices(leaves: list[dict[str, Any]]) -> bool:
    """Whether an output of whole numbers differs."""
    return any(
        not leaf["agrees"] and not str(leaf["dtype"][1]).startswith(("float", "bfloat", "complex")) for leaf in leaves
    )


def _exact(reference: Reference, call: Call) -> tuple[Any, list[str]]:
    """The float64 result, and the operators that were not float64."""
    if reference.program is None:
        return _function(reference, call), []
    return run_program(reference.program, call)


def _moved(
    reference: Reference, call: Call, results: tuple[Any, Any, Any], leaves: list[dict[str, Any]]
) -> list[Any] | None:
    """The results with noise: none where no noise could change a verdict, None where there is no program to run."""
    if reference.program is None:
        return None
    ours, theirs, exact = (dict(walk(result, "result")) for result in results)
    judged = [leaf["path"] for leaf in leaves if leaf["path"] in exact]
    if all(is_settled(ours[path], theirs[path], exact[path]) for path in judged):
        return []
    noises = NOISES_OF_CHOICES if _are_choices(leaves) else NOISES
    return [run_program(reference.program, call, Noise(seed))[0] for seed in range(noises)]


def _function(reference: Reference, call: Call) -> Any:
    """A function is called with float64 inputs; it may refuse them, or compute in float32 all the same."""
    import torch

    wide = call.rebuilt(lambda _, leaf: widened(leaf, copy=True))
    try:
        with torch.no_grad():
            result = reference.call(*wide.args, **wide.kwargs)
    except Exception as error:
        raise NoDoubleRunError(
            f"the function refuses float64 inputs ({type(error).__name__}: {error})"[:200]
        ) from error
    floats = [leaf for _, leaf in walk(result, "result") if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    if any(leaf.dtype != torch.float64 for leaf in floats):
        raise NoDoubleRunError("the function computes in a narrower dtype all the same")
    return result
