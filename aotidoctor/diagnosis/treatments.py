"""Causes to treatments: the registry, and the two ways to ask it. Pure; the worker carries the steps out.

A planner gets the case and all findings, and returns steps, or none when the change is not unambiguous: a treatment
that guesses would confirm the wrong thing. Planners stand in one file per family (``treat_*``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aotidoctor.diagnosis import treat_host, treat_results, treat_sizes, treat_tensors, treat_tree, treat_values
from aotidoctor.diagnosis.treat_plan import Plan
from aotidoctor.model.case import Case
from aotidoctor.model.diagnosis import Treatment
from aotidoctor.model.evidence import Evidence

Planner = Callable[[Case, Sequence[Evidence]], Plan | None]

PLANNERS: Mapping[str, tuple[str, Planner]] = {
    "model-name": ("model-name", treat_host.model_name),
    "tmpdir": ("tmpdir", treat_host.tmpdir),
    "toolchain-missing": ("headers", treat_host.headers),
    "artifact-layout": ("repack", treat_host.repack),
    "executable-stack": ("clear-execstack", treat_host.clear_execstack),
    "abi-mismatch": ("global-libtorch", treat_host.global_libtorch),
    "threads-exceed-build": ("threads", treat_host.threads),
    "threading": ("one-thread", treat_host.one_thread),
    "pytree-class-missing": ("import", treat_host.register_classes),
    "weights-not-loaded": ("load-weights", treat_host.load_weights),
    "weights-differ": ("load-weights", treat_host.differing_weights),
    "weights-mismatch": ("fit-weights", treat_host.fit_weights),
    "load-device": ("load-device", treat_host.load_device),
    "device-index": ("load-device", treat_host.load_device),
    "input-tree": ("tree", treat_tree.tree),
    "input-kwargs": ("tree", treat_tree.tree),
    "input-count": ("tree", treat_tree.tree),
    "input-order": ("tree", treat_tree.swap),
    "input-nontensor": ("to-tensor", treat_tree.nontensor),
    "input-layout": ("dense", treat_tensors.dense),
    "input-device": ("to-device", treat_tensors.to_device),
    "input-dtype": ("cast", treat_tensors.cast),
    "input-lazy-bit": ("resolve", treat_tensors.resolve),
    "input-rank": ("reshape", treat_tensors.reshape),
    "input-shape": ("permute", treat_tensors.permute),
    "input-stride": ("restride", treat_tensors.restride),
    "input-alias": ("clone", treat_tensors.clone),
    "input-divisibility": ("shorten", treat_sizes.divisible),
    "input-shape-disagree": ("shorten", treat_sizes.agree),
    "input-range": ("shorten", treat_sizes.into_range),
    "cuda-launch": ("shorten", treat_sizes.into_grid),
    "input-nan": ("nan-to-num", treat_values.nan_to_num),
    "index-out-of-range": ("clamp-values", treat_values.clamp),
    "cuda-device-assert": ("clamp-values", treat_values.clamp),
    "integer-division": ("replace-zeros", treat_values.replace_zeros),
    "numeric-difference": ("nodes", treat_results.nodes),
    "nan-produced": ("zeros", treat_results.zeros),
    "overflow": ("zeros", treat_results.zeros),
    "custom-op-contract": ("nodes", treat_results.operator_nodes),
    "custom-op-crash": ("stand-in", treat_results.stand_in),
    "custom-op-exception": ("stand-in", treat_results.stand_in),
    "custom-op-exits": ("stand-in", treat_results.stand_in),
    "custom-op-hang": ("stand-in", treat_results.stand_in),
    "custom-op-bad-return": ("stand-in", treat_results.stand_in),
    "custom-op-fake-kernel": ("stand-in", treat_results.stand_in),
}


def plan_treatment(cause: str, case: Case, findings: Sequence[Evidence]) -> Treatment | None:
    """What to change so that the failure goes away if ``cause`` is right; None when nothing unambiguous is known."""
    if cause not in PLANNERS:
        return None
    name, planner = PLANNERS[cause]
    plan = planner(case, findings)
    if plan is None or not plan.steps:
        return None
    return Treatment(name=name, cause=cause, text=plan.text, steps=plan.steps, command=plan.command)


def combine(treatments: Sequence[Treatment]) -> Treatment | None:
    """All treatments in one, in the order given, for inputs with several faults at once; None when there is none."""
    if len(treatments) < 2:
        return treatments[0] if treatments else None
    return Treatment(
        name="+".join(item.name for item in treatments),
        cause=treatments[0].cause,
        text="; ".join(item.text for item in treatments),
        steps=tuple(step for item in treatments for step in item.steps),
        command="\n".join(item.command for item in treatments if item.command),
    )
