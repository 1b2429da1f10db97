"""The GPU code in the package does not fit the GPU of this host, or a piece of it is missing.

What it does
    Compares the compute capability in the metadata, and the one in the GPU code itself, with the GPUs that the driver
    lists, and the GPU code files that the wrapper loads with the members of the package.

Why it matters
    Such a package loads with at most a warning. The first launch fails with "no kernel image is available for execution
    on the device", or with "file not found" for a missing file.

Example:
    AOTI_COMPUTE_CAPABILITY: observed 90, expected 80 (NVIDIA A100)

When it is wrong
    Code for an older minor version runs on a newer one of the same major version. A package with PTX may be compiled by
    the driver for a newer GPU; such a mismatch is not reported.
"""

from __future__ import annotations

import re

from aotidoctor.checks.check import Finder, Findings, Observations
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, device_of, metadata_value
from aotidoctor.model.artifact import ArtifactKind, ModelEntry
from aotidoctor.model.case import Case, Gpu
from aotidoctor.model.evidence import list_names
from aotidoctor.model.other_artifacts import Precompiled

FIND = Finder("AD-HOST-004", "gpu_arch_mismatch")
KEY = "AOTI_COMPUTE_CAPABILITY"


def run(case: Case) -> Findings:
    """One finding per missing GPU code file, and at most one about the compute capability."""
    if case.artifact.precompiled is not None:
        return _made_on(case, case.artifact.precompiled)
    if case.artifact.kind is ArtifactKind.PACKAGE_FOLDER:
        return _promised(case)
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    if device_of(case) != "cuda":
        return []
    return _of_gpu(case, case.model)


def _of_gpu(case: Case, model: ModelEntry) -> Observations:
    if case.contract is not None:
        for name in case.contract.needs.missing_gpu_code:
            yield FIND.error(
                "cubin-missing",
                name,
                observed="no such member",
                expected="the GPU code that the wrapper loads",
                source=at_member(case, case.contract.member),
                facts={"member": name},
            )
    capability, member = metadata_value(case, KEY)
    if capability is None and case.contract is not None:
        capability = case.contract.needs.compute_capability
    known = [gpu for gpu in case.host.gpus if gpu.compute_capability]
    if capability is None or not known or (case.host.torch is not None and case.host.torch.hip):
        yield FIND.unchecked(
            "the compute capability of this host's GPUs is unknown"
            if capability
            else "the package does not record a compute capability"
        )
        return
    number = (case.options.device or "").partition(":")[2]
    gpu = next((gpu for gpu in known if not number.isdecimal() or gpu.index == int(number)), None)
    if gpu is None:
        return
    marks = (*model.gpu_code, *model.gpu_targets)
    ptx = any(mark.endswith((".fatbin", ".ptx")) or "ptx" in mark or mark.startswith("compute_") for mark in marks)
    if runs_on(capability, gpu.compute_capability or "", has_ptx=ptx):
        yield from _other_code(case, model, gpu)
        return
    yield FIND.error(
        "capability",
        KEY,
        observed=capability,
        expected=f"{gpu.compute_capability} ({gpu.name})",
        source=at_member(case, member),
        facts={"package": capability, "gpu": gpu.compute_capability, "gpu_name": gpu.name},
    )


_PROMISE = re.compile(r"[-_.]sm_?(\d{2,3}[af]?)(?![0-9a-z])")


def _promised(case: Case) -> Findings:
    """A folder that is named after a GPU (``...-sm120-cu130``) and holds code for another one, or for none."""
    promised = _PROMISE.search(case.artifact.path.lower())
    held = {model.name: model.gpu_targets for model in case.artifact.models}
    wrong = [name for name, targets in held.items() if promised and f"sm_{promised[1]}" not in targets]
    if promised is None or not wrong:
        return None
    targets = list_names(held[wrong[0]]) or "no GPU code"
    return FIND.warn(
        "promise",
        wrong[0],
        observed=targets,
        expected=f"sm_{promised[1]}, as the name of the folder says",
        message=f"the folder is named after sm_{promised[1]}; {list_names(wrong)} has {targets}",
        source=at_member(case, None),
        facts={"promised": f"sm_{promised[1]}", "packages": tuple(wrong[:20])},
    )


def _made_on(case: Case, found: Precompiled) -> Findings:
    """The name of the GPU that an artifact of torch.compile was made on: its loader wants the same."""
    made = next((one.gpu for one in found.functions if one.gpu and one.device_type in ("cuda", "xpu")), None)
    if made is None or not case.host.gpus or any(gpu.name == made for gpu in case.host.gpus):
        return None
    here = case.host.gpus[0].name
    return FIND.error(
        "gpu-name",
        made,
        observed=f"made on {made}",
        expected=f"{here}, as here",
        message=f"the file was made on {made}, and this host has {here}: its loader refuses any other GPU, and its "
        "message swaps the two names",
        source=at_member(case, None),
        facts={"made": made, "here": here, "remedy": f"Make the file again on {here}."},
    )


def runs_on(compiled: str, gpu: str, *, has_ptx: bool) -> bool:
    """Whether code for capability ``compiled`` (``90``, ``90a``) runs on a GPU of capability ``gpu``.

    The same major version and no older minor one; a letter ties the code to exactly one version; PTX runs on all newer.
    """
    digits = compiled.rstrip("af")
    if not digits.isdecimal() or not gpu.isdecimal():
        return True
    if digits != compiled:
        return digits == gpu
    if has_ptx and int(gpu) >= int(digits):
        return True
    return digits[:-1] == gpu[:-1] and int(gpu) >= int(digits)


def _other_code(case: Case, model: ModelEntry, gpu: Gpu) -> Observations:
    """The finding for code that is for a different GPU from the one in the metadata."""
    machine = [target[3:] for target in model.gpu_targets if target.startswith("sm_")]
    ptx = [target[8:] for target in model.gpu_targets if target.startswith("compute_")]
    fits = any(runs_on(one, gpu.compute_capability or "", has_ptx=False) for one in machine)
    if not machine or fits or any(runs_on(one, gpu.compute_capability or "", has_ptx=True) for one in ptx):
        return
    yield FIND.error(
        "gpu-code",
        "GPU code",
        observed=", ".join(model.gpu_targets),
        expected=f"sm_{gpu.compute_capability} ({gpu.name})",
        source=at_member(case, next(iter(model.gpu_code), None)),
        facts={"package": model.gpu_targets, "gpu": gpu.compute_capability, "gpu_name": gpu.name},
    )


CHECK = FIND.check(
    run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"), facts=("device-code",)
)
