"""What does compute-sanitizer see: a bad access, memory read before it was written, a race?

What it does
    Repeats the failed call under NVIDIA's compute-sanitizer, without the caching allocator: memcheck if an access
    faults or may fault, racecheck if the failure depends on timing, initcheck if calls differ from each other. The
    first report counts; later errors of CUDA calls only show that the context is unusable.

Why it matters
    It names kernel, thread, address and size of the access, and the nearest buffer: this distinguishes an index that is
    too large from a pointer that never belonged to the GPU.

Example:
    triton_poi_fused_addmm_relu_0: observed write of 4 bytes, 1 byte after an allocation of 4096 bytes, expected none

When it is wrong
    It makes the GPU ten to a hundred times slower, so a race may not occur. racecheck checks only shared memory. A
    kernel may read what it never uses: not every report of initcheck is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.memory_errors import SanitizerReport, read_sanitizer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import NO_CACHING
from aotidoctor.probes.cuda_probe import ACCESS, VAGUE, reason_to_skip, repeat_call, symptom_of, vanished_blocking
from aotidoctor.probes.payload import device_of
from aotidoctor.probes.probe import History, Plan, RunFinder, succeeded, unasked

CODE, NAME = "AD-RUN-028", "sanitizer"
FIND = RunFinder(CODE, NAME, __doc__)
TOOL = "compute-sanitizer"
INSTALL = (
    "compute-sanitizer is not installed; it is part of the CUDA toolkit: conda install -c nvidia cuda-sanitizer-api"
)
# The factor by which a call may take longer than without it.
SLOWER = 10
OPTIONS = ("--print-limit", "20", "--show-backtrace", "no", "--log-file", "{run_dir}/tool.log")


def plan(case: Case, history: History) -> Plan:
    """Plan one run per tool that can explain this failure."""
    reason = reason_to_skip(case, history)
    if reason is not None and not _answers_differ(case, history):
        return FIND.unchecked(reason)
    program = case.host.tools.get(TOOL)
    if not program:
        return FIND.unchecked(INSTALL, moot=False)
    plain = history.outcomes["plain_run"]
    symptom = "an answer" if succeeded(plain) else symptom_of(case, plain)
    varies = vanished_blocking(history) or _answers_differ(case, history)
    planned: list[Request | NotChecked] = []
    for tool, useful, why in (
        ("memcheck", symptom in (*ACCESS, *VAGUE), f"{symptom} is not a memory access fault"),
        ("initcheck", varies, "nothing indicates that the call depends on earlier memory contents"),
        ("racecheck", varies, "the failure does not depend on timing, as far as observed"),
    ):
        if not useful:
            planned.append(unasked(CODE, f"{NAME} {tool}", why))
            continue
        request = repeat_call(case, history, f"{NAME}_{tool}", f"under compute-sanitizer --tool {tool}")
        command, env = (program, "--tool", tool, *OPTIONS), {NO_CACHING: "1"}
        planned.append(replace(request, wrapper=command, env=env, timeout=request.timeout * SLOWER))
    return tuple(planned)


def _answers_differ(case: Case, history: History) -> bool:
    """Whether it returns different outputs each time."""
    return device_of(case) == "cuda" and history.has("AD-RUN-002", "differs")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: invalid-access, uninitialized or race (the first report), clean or unavailable."""
    found = read_sanitizer(outcome.tool_output)
    tool = outcome.request.probe.removeprefix(f"{NAME}_")
    if not found.started:
        why = (outcome.stderr_tail.strip().splitlines() or [f"it ended in {outcome.stage}"])[-1][:200]
        return [_quiet("unavailable", outcome, f"{tool} did not start: {why}", tool)]
    if found.reports:
        first = found.reports[0]
        others = tuple(dict.fromkeys(one.kernel for one in found.reports if one.kernel not in (None, first.kernel)))
        facts: dict[str, FactValue] = {
            **first.facts,
            "tool": tool,
            "head": first.head[:200],
            "reports": len(found.reports),
        }
        if first.kernel:
            facts["kernel"] = first.kernel
        if first.kind == "invalid-access":
            facts["symptom"] = "cuda-misaligned" if first.facts.get("what") == "misaligned" else "cuda-illegal-access"
        return [
            FIND.at(Severity.ERROR if first.kind == "invalid-access" else Severity.WARN, outcome, "tool")(
                first.kind,
                first.kernel,
                observed=_words(first),
                expected="no report",
                facts={**facts, "total": found.total, "other_kernels": others},
            )
        ]
    if found.total is None:
        return [_quiet("unavailable", outcome, f"{tool} did not finish ({outcome.stage})", tool)]
    return [_quiet("clean", outcome, f"{tool} reports nothing", tool)]


def _quiet(kind: str, outcome: Outcome, observed: str, tool: str) -> Evidence:
    return FIND.info(outcome, "tool")(kind, None, observed=observed, expected="a report", facts={"tool": tool})


def _words(report: SanitizerReport) -> str:
    facts = report.facts
    if report.kind != "invalid-access":
        return report.head.removeprefix("Error: ").removeprefix("ERROR: ")[:200]
    size = f" of {facts['size']} bytes" if "size" in facts else ""
    text = f"{facts.get('access', 'access')}{size} at {facts.get('address', 'an unknown address')}"
    if "beyond" in facts:
        text += f", {facts['beyond']} bytes {facts['side']} an allocation"
        text += f" of {facts['allocated']} bytes" if "allocated" in facts else ""
    thread = f", by thread ({facts['thread']}) of block ({facts['block']})" if "thread" in facts else ""
    return text + thread


PROBE = FIND.probe(
    plan, read, "when an access faulted or the failure depends on timing, and compute-sanitizer is installed"
)
