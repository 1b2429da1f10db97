"""The package or its inputs use a device index that does not exist, or different indices.

What it does
    Compares the index of --device with the devices of this host, and with the index of the inputs. A package for the
    CPU takes no index at all. The plan of an ExecuTorch method has the index: it is compared with the devices of the
    host, and with the one that its backend was given at the export. Of several ranks on one host, each needs a GPU of
    its own.

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

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import NO_MODEL, device_of, device_source
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource
from aotidoctor.model.torch_names import LOCAL_RANKS, VISIBLE_DEVICES

FIND = Finder("AD-LOAD-004", "device_index")


def run(case: Case) -> Observations:
    """At most one finding about --device, and one per input elsewhere."""
    if case.model is None:
        yield FIND.unchecked(NO_MODEL)
        return
    if case.artifact.executorch is not None:
        yield from _of_plan(case)
        return
    device, count = device_of(case), len(case.host.gpus)
    text = (case.options.device or "").partition(":")[2]
    index = int(text) if text.isdecimal() else None
    expected = None
    if index is not None and device == "cpu":
        expected = "no index: the package is compiled for the CPU"
    elif index is not None and device == "cuda" and 0 < count <= index:
        expected = f"0 to {count - 1}"
    if expected is not None:
        facts, source = {"index": index, "gpus": count}, device_source(case)
        yield FIND.error("index", "--device", observed=f"index {index}", expected=expected, source=source, facts=facts)
    if device == "cuda" and index is None and (rank := _later_rank(case)) is not None:
        yield FIND.warn(
            "rank",
            rank,
            observed=f"{rank}={case.host.environment[rank]}, and no index: the first GPU, as all ranks of this host",
            expected=f"cuda:{case.host.environment[rank]}, or one visible GPU for each rank",
            source=device_source(case),
        )
    if device == "cuda" and case.inputs is not None:
        used = f"cuda:{index or 0}"
        for path, tensor in case.inputs.tensors():
            if tensor.device.startswith("cuda:") and tensor.device != used:
                yield FIND.warn(
                    "index",
                    path,
                    observed=tensor.device,
                    expected=used,
                    source=FileSource(file=case.inputs.path) if case.inputs.path else None,
                    facts={"path": path, "device": tensor.device, "index": index or 0},
                )


def _later_rank(case: Case) -> str | None:
    """The variable that makes this process not the first of its host, where it sees the GPUs of the others too."""
    environ = case.host.environment
    visible = [environ[name] for name in VISIBLE_DEVICES if name in environ]
    if len(case.host.gpus) < 2 or any("," not in text for text in visible):
        return None
    return next((name for name in LOCAL_RANKS if environ.get(name, "").lstrip("0").isdecimal()), None)


def _of_plan(case: Case) -> Observations:
    """The devices that the plan of a method names, which the runtime takes whatever its backend was exported for."""
    program, count = case.artifact.executorch, len(case.host.gpus)
    method = program.method(case.model.name) if program is not None and case.model is not None else None
    planned = method.devices if method is not None else ()
    specs = [one.compile_specs.get("target_device") for one in method.delegates] if method is not None else []
    source = FileSource(file=case.artifact.path)
    for name in planned:
        if (index := name.partition(":")[2]).isdecimal() and 0 < count <= int(index):
            yield FIND.error(
                "index", name, observed=name, expected=f"0 to {count - 1}", source=source, facts={"gpus": count}
            )
    for spec in dict.fromkeys(specs):
        if spec and planned and spec not in planned:
            yield FIND.warn(
                "target",
                "target_device",
                observed=f"{spec[:40]} as the backend's target",
                expected=f"{planned[0]}, where the plan of the method puts its tensors and ExecuTorch runs it",
                source=source,
                facts={"target": spec[:40], "planned": planned[:20]},
            )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"))
