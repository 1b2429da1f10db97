"""All that points at the place of a failure, in one record: for people the culprit, for programs every trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.localize.backtrace import read_backtrace
from aotidoctor.localize.comparison import read_comparison
from aotidoctor.localize.frame_sources import package_files, with_sources
from aotidoctor.localize.hang import classify
from aotidoctor.localize.kernel_values import Watched, read_watched
from aotidoctor.localize.timeline import timeline
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.localization import Frame, Localization, TimelineEntry
from aotidoctor.model.run import Outcome

_CHECKED_HEAP = "where the checked heap stopped it"
# Which trail names the culprit, the surest first: code, kinds (empty: all), and what it did.
_TRAILS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("AD-RUN-018", ("found",), "the result is right without this step of the compiler"),
    ("AD-RUN-015", (), "called alone, on the arguments that the package passed"),
    ("AD-RUN-016", ("nan", "inf", "diverges"), "the first call that wrote bad values, from good ones"),
    (
        "AD-RUN-026",
        ("kernel", "extern", "custom", "refused", "hang"),
        "the first that fails when each launch is waited for",
    ),
    ("AD-RUN-028", ("invalid-access",), "the first report of compute-sanitizer"),
    (
        "AD-RUN-040",
        ("access", "assert", "refused", "uninitialized", "race", "nan"),
        "the first fault of the emulation, which checks every address",
    ),
    ("AD-RUN-027", ("exception",), "where the GPU's core dump saw it fault"),
    ("AD-RUN-034", ("kernel", "extern"), "the last launch printed with blocking launches, compiled again here"),
    ("AD-RUN-023", ("crash", "hang"), "where the debugger found it"),
    ("AD-RUN-025", (), _CHECKED_HEAP),
    ("AD-RUN-024", ("kernel", "extern", "custom"), "the call that was entered last"),
)
_MOST_FRAMES = 64
_MOST_CALLS = 4096


def localization(
    case: Case, findings: Sequence[Evidence], outcomes: Mapping[str, Outcome], *, failed: bool
) -> Localization | None:
    """Everything known of the place; None when no run looked for it. ``failed``: something is wrong with the case."""
    watched = _watched(case, outcomes)
    blamed: Mapping[str, FactValue] = next((item.facts for item in findings if item.facts.get("chain")), {})
    chain, kernel = (text if isinstance(text := blamed.get(name), str) else None for name in ("chain", "kernel"))
    culprit, how = _culprit(findings) if failed else (None, "")
    entries, total = _timeline(case, outcomes)
    stack = outcomes.get("backtrace") or outcomes.get("plain_run")
    found = Localization(
        culprit=culprit or (kernel if failed else None),
        how=how or (_named_by(findings) if chain and failed else ""),
        chain=chain if chain is not None else _chain_of_values(findings),
        check=_check(case, findings) if failed else None,
        timeline=entries,
        calls_total=total,
        frames=_frames(case, stack),
        fault_address=_fact(findings, "AD-RUN-023", "fault_address"),
        fault_target=_fact(findings, "AD-RUN-023", "fault_target"),
        values=watched.calls if watched is not None else (),
        notes=watched.notes if watched is not None else (),
        first_bad=_fact(findings, "AD-RUN-016", "kernel"),
        bisected=_fact(findings, "AD-RUN-018", "name"),
        comparison=read_comparison(compared) if (compared := outcomes.get("reference")) is not None else (),
    )
    return None if found == Localization() else found


def _named_by(findings: Sequence[Evidence]) -> str:
    unchecked = any(item.facts.get("unchecked") for item in findings)
    return "it reads there, and nothing checks the index" if unchecked else "the check that failed names it"


def _culprit(findings: Sequence[Evidence]) -> tuple[str | None, str]:
    heap = next((item for item in findings if _stopped_by_heap(item)), None)
    for code, kinds, how in _TRAILS:
        if heap is not None and code == "AD-RUN-023":
            return heap.subject, _CHECKED_HEAP
        for item in findings:
            if item.code == code and item.severity is not Severity.INFO and (not kinds or item.kind in kinds):
                return item.subject, how
    return None, ""


def _stopped_by_heap(item: Evidence) -> bool:
    """Earlier than without the checks, or in a kernel that frees what it damaged.

    The debugger stops at whoever uses the damaged block, which may be any of those that come after.
    """
    if item.code != "AD-RUN-025" or item.severity is Severity.INFO:
        return False
    in_kernel = item.facts.get("call_kind") == "kernel" and item.facts.get("inside") is True
    return item.kind == "moved" or (item.kind == "same" and in_kernel)


def _chain_of_values(findings: Sequence[Evidence]) -> str | None:
    """The blame chain of bad values: kernel, what it wrote, the operator and its domain, the source line."""
    item = next((f for f in findings if f.code == "AD-RUN-016" and f.kind in ("nan", "inf", "diverges")), None)
    if item is None:
        return None
    parts = [f"{item.facts.get('kernel')}: {item.observed}"]
    operators, domain, where = (item.facts.get(name) for name in ("operators", "domain", "where"))
    if isinstance(operators, tuple) and operators:
        named = " or ".join(str(one) for one in operators[:4])
        parts.append(f"from {named}" + (f" of {domain}" if domain else "") + (f" at {where}" if where else ""))
    return "; ".join(parts)


def _watched(case: Case, outcomes: Mapping[str, Outcome]) -> Watched | None:
    outcome = outcomes.get("kernel_values")
    return read_watched(case, outcome) if outcome is not None else None


def _timeline(case: Case, outcomes: Mapping[str, Outcome]) -> tuple[tuple[TimelineEntry, ...], int]:
    # Where launches only queue work, their order is that of a run that waited for each.
    outcome = outcomes.get("call_trace") or outcomes.get("cuda_blocking")
    if outcome is None or outcome.trace is None or outcome.trace.problem is not None:
        return (), 0
    # An exception leaves its call as well: only what neither returned nor raised was still inside.
    ended = outcome.succeeded
    return timeline(case, outcome.trace, ended=ended)[-_MOST_CALLS:], outcome.trace.total


def _frames(case: Case, outcome: Outcome | None) -> tuple[Frame, ...]:
    if outcome is None or not outcome.debugger_output:
        return ()
    trace = read_backtrace(outcome.debugger_output)
    frames = trace.stop.frames if trace.stop is not None else classify(trace, package_files(case.model)).frames
    return with_sources(frames[:_MOST_FRAMES], case.model)


def _check(case: Case, findings: Sequence[Evidence]) -> Frame | None:
    """The check that a blame chain begins with, as a place in the package's sources."""
    for facts in (item.facts for item in findings if item.facts.get("chain")):
        kernel, member, line = (facts.get(name) for name in ("kernel", "check_member", "check_line"))
        if isinstance(member, str) and isinstance(line, int):
            frame = Frame(index=0, function=str(kernel), file=member, line=line)
            return next(iter(with_sources((frame,), case.model)))
    return None


def _fact(findings: Sequence[Evidence], code: str, name: str) -> str | None:
    found = next((item.facts.get(name) for item in findings if item.code == code and item.facts.get(name)), None)
    return str(found) if found is not None else None
