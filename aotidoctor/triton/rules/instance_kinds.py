"""Family instances, the kind: where the model runs, against the device that the package was compiled for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from aotidoctor.model.record import record
from aotidoctor.model.serving import (
    Consequence,
    Family,
    Needs,
    NotJudged,
    Remark,
    RuleResult,
    ServedModel,
    ServedVersion,
)
from aotidoctor.model.serving_config import TOP, Position

RULES = Family("instances")

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
