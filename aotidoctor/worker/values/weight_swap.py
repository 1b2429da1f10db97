"""Put other weights in the place of those of a loaded model as servers do, and compare with a fresh load of them.

``double-buffer``: the first weights are loaded and called; the second go into the inactive buffer, and are called
after a swap; then the first again. ``user-managed``: the model uses tensors that the caller owns, as it does for
``load_constants(user_managed=True)``. The second weights are copied into them in place, and then loaded again.

Each fresh load, and the double buffer, is a container of its own, made of the unpacked library. The part
``weight_swap`` of the result is a ``WeightSwap``.
"""

from __future__ import annotations

from typing import Any

from aotidoctor.model.answers import SwapStep, WeightSwap
from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import ModelCall
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import LoadedModel, load_library
from aotidoctor.worker.tensors import compare_results, copy_result, digest
from aotidoctor.worker.weights import constant_difference, library_of, load_state

_NAMED = 50


def swap_weights(model: LoadedModel, call: ModelCall, payload: Run, channel: Channel) -> None:
    """Go through the steps of the protocol; each call is a stage, so that a crash names it."""
    library, names = library_of(model, payload), model.get_constant_fqns()
    files = [load_state(channel.user_cwd / path) for path in (payload.weights or "", payload.next_weights or "")]
    first, second = ({name: held[name].detach() for name in names if name in held} for held in files)
    steps: list[SwapStep] = []

    def container() -> LoadedModel:
        loader = load_library(library, payload.device, payload.device_index, library.parent)
        return LoadedModel(loader, directory=model.directory)

    def outputs(of: LoadedModel, stage: str) -> Any:
        given = call.copy() or call
        channel.enter(stage)
        return copy_result(of(*given.args, **given.kwargs))

    def fresh(weights: dict[str, Any]) -> Any:
        other = container()
        other.load_constants(weights, check_full_update=False)
        return outputs(other, "run1")

    def step(name: str, of: LoadedModel, expected: Any, weights: dict[str, Any] | None = None) -> None:
        compared = compare_results(outputs(of, f"run{len(steps) + 2}"), expected)
        held = of.loader.extract_constants_map(False) if weights and hasattr(of.loader, "extract_constants_map") else {}
        stale = [one for one in held if one in (weights or {}) and not _equal(held[one], (weights or {})[one])]
        wrong = next((one["path"] for one in compared["outputs"] if not one["agrees"]), "")
        steps.append(SwapStep(name=name, agrees=compared["agrees"], output=wrong, stale=tuple(stale[:_NAMED])))
        channel.put(weight_swap=WeightSwap(steps=tuple(steps), changed=changed, outputs_change=differ))

    changed = tuple(name for name in second if name in first and digest(first[name]) != digest(second[name]))[:_NAMED]
    by_first, by_second = fresh(first), fresh(second)
    differ = not compare_results(by_second, by_first)["agrees"]
    if payload.weight_protocol == "user-managed":
        owned = {name: value.clone() for name, value in first.items()}
        model.load_constants(owned, check_full_update=False, user_managed=True)
        step("the first weights", model, by_first)
        for name in owned.keys() & second.keys():
            owned[name].copy_(second[name])
        step("the second weights, copied in place", model, by_second)
        model.load_constants(owned, check_full_update=False, user_managed=True)
        step("the second weights, loaded again", model, by_second)
        return
    double = container()
    double.load_constants(first, check_full_update=False)
    step("the first weights", double, by_first, first)
    for name, weights, expected, before in (
        ("the second weights, swapped in", second, by_second, by_first),
        ("the first weights, swapped in again", first, by_first, by_second),
    ):
        double.load_constants(weights, check_full_update=False, inactive=True)
        step("what is active before the swap", double, before)
        channel.enter("swap")
        double.loader.swap_constant_buffer()
        step(name, double, expected, weights)


def _equal(held: Any, value: Any) -> bool:
    return constant_difference("", held, value)["equal"] is not False
