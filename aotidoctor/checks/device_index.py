"""The package or its inputs use a device index that does not exist, or different indices.

What it does
    Compares the index of --device with the devices of this host, and with the index of the inputs. A package for the
    CPU takes no index at all.

Why it matters
    The CPU loader reports "Incorrect device passed to aoti_runner_cpu". A kernel on one GPU that receives a pointer
    from another GPU ends in an illegal memory access.

Example:
    args[0]: observed cuda:1, expected cuda:0

When it is wrong
    CUDA_VISIBLE_DEVICES renumbers devices. GPUs with peer access can read each other's memory; the inputs are only a
    warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, device_of, device_source
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FileSource

FIND = Finder("AD-LOAD-004", "device_index")


def run(case: Case) -> Findings:
    """At most one finding about --device, and one per input elsewhere."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    device = device_of(case)
    text = (case.options.device or "").partition(":")[2]
    index = int(text) if text.isdecimal() else None
    asked = [] if index is None else _check_asked_index(case, device, index)
    return [*asked, *(_inputs(case, index or 0) if device == "cuda" else [])]


def _check_asked_index(case: Case, device: str | None, index: int) -> list[Evidence]:
    count = len(case.host.gpus)
    if device == "cpu":
        observed, expected = f"index {index}", "no index: the package is compiled for the CPU"
    elif device == "cuda" and 0 < count <= index:
        observed, expected = f"index {index}", f"0 to {count - 1}"
    else:
        return []
    return [
        FIND.error(
            "index",
            "--device",
            observed=observed,
            expected=expected,
            source=device_source(case),
            facts={"index": index, "gpus": count},
        )
    ]


def _inputs(case: Case, index: int) -> list[Evidence]:
    if case.inputs is None:
        return []
    return [
        FIND.warn(
            "index",
            path,
            observed=tensor.device,
            expected=f"cuda:{index}",
            source=FileSource(file=case.inputs.path) if case.inputs.path else None,
            facts={"path": path, "device": tensor.device, "index": index},
        )
        for path, tensor in case.inputs.tensors()
        if tensor.device.startswith("cuda:") and tensor.device != f"cuda:{index}"
    ]


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"))
