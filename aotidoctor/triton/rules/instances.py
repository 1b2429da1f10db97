"""Family instances: where the model runs, on which GPUs, how often it is loaded, and what the server refuses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from aotidoctor.model.record import record
from aotidoctor.model.serving_config import TOP, InstanceGroup, Position
from aotidoctor.triton.serving import (
    Consequence,
    Family,
    Needs,
    NotJudged,
    Remark,
    RuleResult,
    ServedModel,
    ServedVersion,
)

RULES = Family("instances")

# The kind, against the device that the package was compiled for.
AUTOMATIC, CPU, GPU, MODEL = "KIND_AUTO", "KIND_CPU", "KIND_GPU", "KIND_MODEL"
_WRONG_RUNNER = "the model is not loaded: Incorrect device passed to aoti_runner_cpu."
_NO_EVENT = "each request fails with 'Failed to record the event.': its CUDA events are never made."
_CPU_INPUTS = "the inputs stay in the memory of the CPU, and the kernels read them on the GPU: invalid memory access."
_NO_GPU = "the model is not loaded: there is no GPU for it."


@record
class Clash:
    """A failure of a package on a kind of instance."""

    consequence: Consequence
    message: str


def clash_of(kind: str, device: str, has_gpu: bool) -> Clash | None:
    """Failure of a package for ``device`` in an instance of ``kind``; None where there is none."""
    if device == "cpu":
        if kind == GPU:
            return Clash(consequence=Consequence.FAILS_TO_LOAD, message=_WRONG_RUNNER)
        if kind == MODEL and has_gpu:
            return Clash(consequence=Consequence.REQUESTS_FAIL, message=_NO_EVENT)
        return None
    if kind not in (CPU, MODEL):
        return None
    if not has_gpu:
        return Clash(consequence=Consequence.FAILS_TO_LOAD, message=_NO_GPU)
    return Clash(consequence=Consequence.REQUESTS_FAIL, message=_CPU_INPUTS)


def kind_remark(clash: Clash, kind: str, device: str, version: ServedVersion, at: Position) -> Remark:
    """Remark of rule 36."""
    want = CPU if device == "cpu" else GPU
    return Remark(
        kind="kind",
        consequence=clash.consequence,
        message=clash.message,
        observed=f"{kind}, and a package for {device}",
        expected=f"kind: {want}",
        subject=f"version {version.number}",
        remedy=f"Write kind: {want}, or compile the package for that device.",
        at=at,
        facts={"device": device},
    )


@RULES.rule(
    "R36", "the kind of the instances does not fit the package's device", Consequence.FAILS_TO_LOAD, needs=Needs.PACKAGE
)
def kind_fits_device(model: ServedModel) -> RuleResult:
    """The kind of an instance group must match the device that the package was compiled for.

    Versions: all seen.
    Consequence: a package for the CPU on KIND_GPU does not load ("Incorrect device passed to aoti_runner_cpu"). A
    package for CUDA on KIND_CPU or KIND_MODEL gets its inputs in the memory of the CPU and reads them from the GPU:
    invalid memory access; without a GPU it does not load. On a host with GPUs KIND_MODEL fails at the first request,
    because the backend records CUDA events that it never made.
    How it was seen: the cases for the CPU were run with the 26.05 backend; those for CUDA follow from its source.
    Remedy: use KIND_CPU for a CPU package, KIND_GPU for a CUDA package.
    """
    devices = tuple(devices_of(model))
    if not devices:
        yield NotJudged(reason="the package does not record its device")
        return
    for version, device in devices:
        for group in model.instance_groups:
            kind = group.effective_kind
            clash = clash_of(kind, device, bool(model.host.gpus))
            if kind != AUTOMATIC and clash is not None:
                yield kind_remark(clash, kind, device, version, group.kind_at)


@RULES.rule(
    "R37",
    "the kind of the instances is left to the host",
    Consequence.FAILS_TO_LOAD,
    needs=Needs.PACKAGE,
    last_seen="26.06",
)
def kind_is_stated(model: ServedModel) -> RuleResult:
    """Without a kind, the server uses KIND_GPU on all GPUs if it sees one, else KIND_CPU.

    Versions: all.
    Consequence: a package for the CPU loads on a laptop but not on a server with a GPU: "Incorrect device passed to
    aoti_runner_cpu". A package for CUDA is spread over all GPUs, see TRITON-R38.
    How it was seen: the default was read in the source of the core; the failure was run with the loader.
    Remedy: instance_group [ { kind: KIND_CPU } ] or [ { kind: KIND_GPU gpus: [ 0 ] } ].
    """
    devices = tuple(devices_of(model))
    if not devices:
        yield NotJudged(reason="the package does not record its device")
        return
    # The top of the file where no group is written.
    groups = model.instance_groups
    unstated = [group.kind_at for group in groups if group.effective_kind == AUTOMATIC] if groups else [TOP]
    gpus = len(model.host.gpus)
    here = f"this host has {gpus} GPUs" if gpus > 1 else "this host has a GPU" if gpus else "this host has none"
    for at, (version, device) in product(unstated, devices):
        kind, want = (GPU, CPU) if device == "cpu" else (CPU, GPU)
        clash = clash_of(kind, device, gpus > 0)
        if clash is None:
            continue
        where = "on a host with a GPU" if kind == GPU else "on a host without a GPU"
        yield Remark(
            kind="unstated",
            # A package for the CPU fails where there is a GPU, one for CUDA where there is none.
            consequence=clash.consequence if (gpus > 0) == (device == "cpu") else Consequence.WASTE,
            message=f"the server makes it {kind} {where} ({here}): {clash.message}",
            observed="no kind",
            expected=f"kind: {want}",
            subject=f"version {version.number}",
            remedy=f"Write instance_group [ {{ kind: {want}{' gpus: [ 0 ]' if want == GPU else ''} }} ].",
            at=at,
            file=model.config_path or model.path,
        )


def devices_of(model: ServedModel) -> Iterator[tuple[ServedVersion, str]]:
    """Yield the served versions with the device that each was compiled for, where the package records it."""
    for version in model.served:
        values = [item.values.get("AOTI_DEVICE_KEY") for item in (version.entry.metadata if version.entry else ())]
        found = next((value for value in values if value), None)
        if found is None and version.contract is not None:
            found = version.contract.needs.device_type
        if found is not None:
            yield version, found.partition(":")[0]


# The number.
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
