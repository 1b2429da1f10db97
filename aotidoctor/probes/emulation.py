"""Which lane of which launch makes a bad access when the package is executed on the CPU?

What it does
    Replays the wrapper of a CUDA package with tensors of the CPU and runs its Triton kernels in Triton's interpreter.
    Every lane of every load, store and atomic is checked against the allocation that its pointer belongs to: outside
    it, misaligned, after it was freed, or before anything was written there. It also reports two programs of one launch
    that write to one address, failed assertions, overflows of 32-bit indices and the first NaN. Operators run with
    their CPU kernels. Needs Triton (pip install 'aotidoctor[emulate]') and no GPU.

Why it matters
    A GPU reports only "illegal memory access", at a later call. The emulation names the launch, the line of the kernel,
    the lane, the element and the caller's input, on any machine.

Example:
    launch 1 triton_poi_fused_embedding_0, program 0, lane 5: observed index out of bounds: 0 <= tmp0 < 100, expected no
    failed assertion

When it is wrong
    It is not the hardware: no timing, no races between warps, no libraries (matrix products and convolutions are those
    of the CPU), no tensor cores. What could not be executed is listed and not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.memory_errors import (
    buffer_text,
    element_text,
    explained_by,
    failure_of,
    read_emulation,
    root_findings,
)
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity, plural
from aotidoctor.model.jobs import Watch
from aotidoctor.model.localization import Emulation, EmulationFault
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import blame
from aotidoctor.probes.cuda_probe import reason_to_skip
from aotidoctor.probes.kernel_inputs import kernel_of
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.probe import History, RunFinder, succeeded
from aotidoctor.probes.reference import comparison

CODE, NAME = "AD-RUN-040", "emulation"
FIND = RunFinder(CODE, NAME, __doc__)
UNAVAILABLE = "AD-HOST-003"
INSTALL = (
    "Triton is not installed here. With it (pip install 'aotidoctor[emulate]') the package can be executed on the CPU, "
    "which names launch, line, lane and input element of a bad access without a GPU"
)
# The share of the time for one run that the replay may take; the rest is for importing torch and Triton.
SHARE = 0.8
_WORDS = {
    "out-of-bounds": ("access", "an access inside the allocation"),
    "misaligned": ("access", "an aligned address"),
    "use-after-free": ("access", "memory that is still allocated"),
    "device-assert": ("assert", "no failed assertion"),
    "operator-refused": ("refused", "arguments that the operator takes"),
    "uninitialized": ("uninitialized", "memory that was written before"),
    "race": ("race", "one program for each element that is written"),
    "duplicate-index": ("duplicate", "each element written once"),
    "int32-overflow": ("overflow", "an index that fits 32 bits"),
    "nan": ("nan", "finite values"),
    "inf": ("inf", "finite values"),
}
# A healthy model may do these: a scatter with the same index twice; a number that no address depends on.
_REMARKS = ("int32-overflow", "duplicate-index")
_SEVERITIES = {"inf": Severity.INFO, **dict.fromkeys(_REMARKS, Severity.WARN)}
_SYMPTOMS = {
    "out-of-bounds": "cuda-illegal-access",
    "use-after-free": "cuda-illegal-access",
    "misaligned": "cuda-misaligned",
    "device-assert": "cuda-assert",
    "operator-refused": "index-out-of-bounds",
}
# Facts of a finding that have the names of its fields.
_PLACE = (
    *("kernel", "launch", "grid", "line", "wrapper_line", "program", "lane"),
    *("argument", "buffer", "offset", "extent", "count"),
)
# What stands in for the device, by code and kind of the finding that misses it.
_STANDS_IN = {
    (UNAVAILABLE, ""): "it was emulated on the CPU instead",
    ("AD-IN-008", "device"): "in emulation, CPU tensors replace those of the device",
}


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if a CUDA package cannot run here, or if it failed on the GPU and nothing explains it."""
    reason = _not_planned(case, history)
    if reason is not None:
        return FIND.unchecked(reason)
    if "triton" not in case.host.packages:
        return FIND.unchecked(INSTALL, moot=False)
    named = case.options.emulate_kernel or kernel_of(case, history)
    if named is not None and (case.contract is None or named not in {call.name for call in case.contract.kernels}):
        return FIND.unchecked(f"--emulate-kernel: the package launches no kernel {named}", moot=False)
    reference = case.options.reference
    request = run_request(
        case,
        NAME,
        "the package executed on the CPU, with every address checked",
        **comparison(case),
        emulate_seconds=case.options.timeout * SHARE,
        emulate_kernels=() if named is None else (named,),
        watch=None if reference is None else Watch(reference=reference),
    )
    # The variable is read when Triton is imported.
    return replace(request, job="emulate", env={"TRITON_INTERPRET": "1"}, fresh=True)


def _not_planned(case: Case, history: History) -> str | None:
    if device_of(case) != "cuda":
        return "the package does not run on CUDA"
    if case.options.emulate == "never":
        return "--emulate never"
    if case.contract is None:
        return "the package has no wrapper.cpp that can be read"
    if case.inputs is None and case.generated is None:
        return "there are no inputs to call it with"
    if case.options.emulate == "always" or history.errors(UNAVAILABLE):
        return None
    return reason_to_skip(case, history)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """Findings in the order in which they happened; clean, partial or unavailable if there is none."""
    found = read_emulation(outcome)
    if found is None or found.problem is not None:
        return [_quiet("unavailable", outcome, _why_nothing(outcome, found))]
    made = [item for one in root_findings(found) for item in _evidence_of(case, one, outcome, found)]
    if made:
        return made
    if not succeeded(outcome):
        return [_quiet("unavailable", outcome, f"it did not finish: {_why_nothing(outcome, None)}")]
    launches = plural(found.launched, "launch", "launches")
    operators = f" and {plural(found.operators, 'operator')}" if found.operators else ""
    if not found.is_whole or found.not_emulated:
        quick = f", {found.quick} of them by their addresses alone" if found.quick else ""
        more = "; see not checked" if found.not_emulated else ""
        return [_quiet("partial", outcome, f"{found.done} of {launches}{operators} without a finding{quick}{more}")]
    return [_quiet("clean", outcome, f"{launches}{operators}, every access inside its allocation")]


def revise(findings: Sequence[Evidence], outcome: Outcome) -> list[Evidence]:
    """Turn errors about the missing device and inputs on the CPU into warnings: neither is a fault in emulation.

    Where no fault was found and not all was carried out, they stay the answer.
    """
    if not is_bad(outcome) and not finished_clean(outcome):
        return list(findings)
    return [
        replace(
            item, severity=Severity.WARN, message=f"{item.message}; {words}", facts={**item.facts, "emulated": True}
        )
        if item.severity is Severity.ERROR
        and (words := _STANDS_IN.get((item.code, item.kind)) or _STANDS_IN.get((item.code, ""))) is not None
        else item
        for item in findings
    ]


def skipped(outcome: Outcome) -> list[NotChecked]:
    """The operations that were not emulated, one by one."""
    found = read_emulation(outcome)
    if found is None:
        return []
    return [
        FIND.unchecked(
            f"not emulated: {one.what}: {one.why}" + (f" ({one.times} times)" if one.times > 1 else ""), moot=False
        )
        for one in found.not_emulated
    ]


def is_bad(outcome: Outcome) -> bool:
    """Whether the emulation found a fault."""
    found = read_emulation(outcome)
    return found is not None and any(one.kind not in ("inf", *_REMARKS) for one in found.findings)


def finished_clean(outcome: Outcome) -> bool:
    """Whether something was emulated, and all of it, without a fault."""
    found = read_emulation(outcome)
    return succeeded(outcome) and found is not None and found.is_whole and not is_bad(outcome)


def _why_nothing(outcome: Outcome, found: Emulation | None) -> str:
    if found is not None and found.problem is not None:
        return found.problem
    if outcome.error is not None:
        lines = outcome.error.message.strip().splitlines() or [""]
        return f"{outcome.error.type}: {lines[0][:200]}"
    return f"the run ended in {outcome.stage}"


def _quiet(kind: str, outcome: Outcome, observed: str) -> Evidence:
    return FIND.info(outcome)(kind, None, observed=observed, expected="no finding", facts={"emulated": True})


def _evidence_of(case: Case, one: EmulationFault, outcome: Outcome, found: Emulation) -> list[Evidence]:
    """The finding, and the chain behind a failed assertion. A remark that explains a fault counts as a fault."""
    kind, expected = _WORDS.get(one.kind, ("other", "no finding"))
    buffer, path = buffer_text(case, one.buffer)
    explained = explained_by(one, found)
    text = "; ".join([_observed(one, buffer), *(f"so {_observed(other, buffer)}" for other in explained[:2])])
    facts: dict[str, FactValue] = {
        "emulated": True,
        "what": one.kind,
        **{name: getattr(one, name) for name in _PLACE},
        "text": one.text or "",
        "shown": buffer if one.buffer is not None else None,
        "path": path,
    }
    failure = failure_of(one)
    if failure is not None:
        facts |= {"variable": failure.variable, "bound": failure.bound}
    symptom = next((_SYMPTOMS[other.kind] for other in (one, *explained) if other.kind in _SYMPTOMS), None)
    if symptom is not None:
        facts["symptom"] = symptom
    chain = chain_of(case, failure) if failure is not None else None
    if chain is None:
        facts["chain"] = f"{one.place}: {text}"
    made = FIND.at(Severity.ERROR if explained else _SEVERITIES.get(one.kind, Severity.ERROR), outcome)(
        kind,
        # An index that does not fit is the kernel's own fault.
        (None if one.kind == "int32-overflow" else path) or one.kernel or one.output,
        observed=f"{one.place}: {text}",
        expected=expected,
        facts=facts,
    )
    if failure is None or chain is None:
        return [made]
    followed = blame.finding(failure, chain, outcome)
    return [made, replace(followed, facts={**followed.facts, "emulated": True, "on_device": True})]


def _observed(one: EmulationFault, buffer: str) -> str:
    more = f" ({one.count} lanes)" if one.count > 1 else ""
    match one.kind:
        case "device-assert" | "operator-refused":
            return f"{one.message}{more}"
        case "nan" | "inf":
            return f"writes {'NaN' if one.kind == 'nan' else 'Inf'} from finite values{more}"
        case "int32-overflow":
            return f"an index of 32 bits overflows ({one.value}){more}"
        case "race" | "duplicate-index":
            return f"{one.access} in {buffer}{element_text(one)}{more}"
        case "uninitialized" if one.output is not None:
            return f"{one.count} elements of {one.output} were never written"
        case "uninitialized":
            return f"reads {buffer}{element_text(one)}, which nothing has written{more}"
        case "use-after-free":
            return f"{one.access} of {buffer}, which was freed before{more}"
        case _:
            verb = {"load": "reads", "store": "writes", "atomic": "updates"}.get(one.access, "accesses")
            odd = " at a misaligned address" if one.kind == "misaligned" else ""
            return f"{verb} {buffer}{element_text(one)}{odd}{more}"


_WHEN = "for a CUDA package that cannot run here, or failed on the GPU without an explanation; needs Triton"
PROBE = replace(FIND.probe(plan, read, _WHEN), left_out=skipped, revise=revise)
