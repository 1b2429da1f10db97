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
from aotidoctor.model.evidence import FileSource

FIND = Finder("AD-LOAD-004", "device_index")


def run(case: Case) -> Findings:
    """At most one finding about --device, and one per input elsewhere."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    device, count = device_of(case), len(case.host.gpus)
    text = (case.options.device or "").partition(":")[2]
    index = int(text) if text.isdecimal() else None
    expected = None
    if index is not None and device == "cpu":
        expected = "no index: the package is compiled for the CPU"
    elif index is not None and device == "cuda" and 0 < count <= index:
        expected = f"0 to {count - 1}"
    found = []
    if expected is not None:
        facts, source = {"index": index, "gpus": count}, device_source(case)
        found.append(
            FIND.error("index", "--device", observed=f"index {index}", expected=expected, source=source, facts=facts)
        )
    if device == "cuda" and case.inputs is not None:
        used = f"cuda:{index or 0}"
        found += [
            FIND.warn(
                "index",
                path,
                observed=tensor.device,
                expected=used,
                source=FileSource(file=case.inputs.path) if case.inputs.path else None,
                facts={"path": path, "device": tensor.device, "index": index or 0},
            )
            for path, tensor in case.inputs.tensors()
            if tensor.device.startswith("cuda:") and tensor.device != used
        ]
    return found


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"))
