"""Family instances, the number: which GPUs, how often the model is loaded, and what the server refuses."""

from __future__ import annotations

from aotidoctor.model.serving import Consequence, Family, Needs, Remark, RuleResult, ServedModel
from aotidoctor.model.serving_config import TOP, InstanceGroup, Position
from aotidoctor.triton.rules.instance_kinds import CPU, GPU, MODEL, devices_of

RULES = Family("instances")


@RULES.rule("R38", "more than GPU 0", Consequence.REQUESTS_FAIL)
def one_gpu(model: ServedModel) -> RuleResult:
    """An AOTInductor model runs only on GPU 0.

    Versions: up to 26.05, according to its source; later releases were not examined, and their tests use one GPU.
    Consequence: all instances of a model share one loader, that of the GPU loaded last, so the others pass it inputs on
    the wrong GPU; the CUDA events are made on GPU 0, so any other GPU fails with "Failed to record the event."
    How it was seen: read in the source of the backend.
    Remedy: gpus: [ 0 ], and one server per GPU with CUDA_VISIBLE_DEVICES.
    """
    if model.settled is None or GPU not in model.settled.kinds or _is_cpu(model):
        return ()  # A package for the CPU does not load there at all: rules 36 and 37.
    groups = [group for group in model.instance_groups if group.effective_kind == GPU]
    found = [
        Remark(
            kind="not-the-first",
            message="each request fails with 'Failed to record the event.': the CUDA events are made on GPU 0.",
            observed=f"gpus: [ {group.gpus[0].value} ]",
            expected="gpus: [ 0 ]",
            remedy=f"Start a server with CUDA_VISIBLE_DEVICES={group.gpus[0].value} and write gpus: [ 0 ].",
            at=group.gpus[0].at,
        )
        for group in groups
        if len(group.gpus) == 1 and group.gpus[0].value > 0
    ]
    used = {item.value for group in groups for item in group.gpus}
    spread = len(used) > 1 or (len(model.host.gpus) > 1 and (not groups or any(not group.gpus for group in groups)))
    if spread and not found:
        several = Remark(
            kind="several",
            message="all instances share the loader of the GPU that was loaded last; the others hand it inputs on the "
            "wrong GPU, and fail to record their events.",
            observed=f"GPUs {', '.join(map(str, sorted(used)))}"
            if used
            else f"all {len(model.host.gpus)} GPUs of this host",
            expected="one GPU, number 0",
            remedy="Write gpus: [ 0 ], and start one server per GPU with CUDA_VISIBLE_DEVICES.",
            at=groups[0].at if groups else TOP,
        )
        found.append(several)
    return found


def _is_cpu(model: ServedModel) -> bool:
    return {device for _, device in devices_of(model)} == {"cpu"}


@RULES.rule("R39", "several instances", Consequence.WASTE)
def count_is_one(model: ServedModel) -> RuleResult:
    """More than one instance costs memory and gives no parallelism.

    Versions: up to 26.05, according to its source.
    Consequence: each instance loads the package and replaces the loader of the one before; the remaining loader has one
    runner, so requests wait for one another.
    How it was seen: read in the source of the backend.
    Remedy: count: 1.
    """
    groups = model.instance_groups
    counts = [group.count for group in groups if group.count is not None and group.count.value > 1]
    found = [_instances(count.value, count.at) for count in counts]
    if not found and len(groups) > 1:
        found.append(_instances(len(groups), groups[1].at))
    yield from found


def _instances(count: int, at: Position) -> Remark:
    return Remark(
        kind="count",
        message=f"the package is loaded {count} times, the last one is kept, and it runs one request at a time.",
        observed=f"{count} instances",
        expected="count: 1",
        remedy="Write count: 1; for parallelism start more servers.",
        at=at,
        facts={"count": count},
    )


@RULES.rule(
    "R40", "an instance group that the server refuses", Consequence.FAILS_TO_LOAD, needs=Needs.CONFIG, last_seen="26.06"
)
def group_is_valid(model: ServedModel) -> RuleResult:
    """The field gpus requires KIND_GPU and existing GPUs; profile is only for TensorRT.

    Versions: all.
    Consequence: the core refuses the model: "has kind KIND_CPU but specifies one or more GPUs", "specifies invalid or
    unsupported gpu id", "specifies profile".
    How it was seen: read in the source of the core; a test compares it with a real core if one is installed.
    Remedy: remove gpus from a group that does not run on GPUs.
    """
    return [remark for group in model.instance_groups for remark in _invalid(group, model)]


def _invalid(group: InstanceGroup, model: ServedModel) -> RuleResult:
    kind, subject = group.effective_kind, group.name
    if kind in (CPU, MODEL) and group.gpus:
        yield Remark(
            kind="gpus-without-gpu",
            message=f"the model is not loaded: instance group has kind {kind} but specifies one or more GPUs.",
            observed=f"{kind} with gpus",
            expected="gpus with KIND_GPU only",
            subject=subject,
            remedy="Remove gpus.",
            at=group.gpus[0].at,
        )
    elif model.host.gpus:
        known = {gpu.index for gpu in model.host.gpus}
        for number in (item for item in group.gpus if item.value not in known):
            yield Remark(
                kind="no-such-gpu",
                message="the model is not loaded: instance group specifies invalid or unsupported gpu id "
                f"{number.value}.",
                observed=f"gpu {number.value}",
                expected="one of " + ", ".join(map(str, sorted(known))),
                subject=subject,
                remedy="Name a GPU that the server sees; CUDA_VISIBLE_DEVICES renumbers them.",
                at=number.at,
            )
    elif kind == GPU and not _is_cpu(model):
        yield Remark(
            kind="no-gpu-here",
            consequence=Consequence.WASTE,
            message="a server on this host does not load the model: instance group has kind KIND_GPU but no GPUs are "
            "available.",
            observed="no GPU on this host",
            expected="a GPU, or KIND_CPU",
            subject=subject,
            remedy="Serve it on a host with a GPU.",
            at=group.kind_at,
        )
    for profile in group.profile[:1]:
        yield Remark(
            kind="profile",
            message="the model is not loaded: a profile is for TensorRT only.",
            observed=f'profile: "{profile.value}"',
            expected="no profile",
            subject=subject,
            remedy="Remove profile.",
            at=profile.at,
        )
