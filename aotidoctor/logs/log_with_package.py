"""Read a log next to its package: names of the generated code in the words of the user. Runs neither.

Kernels, lines of the wrapper, ``input_handles[2]``, ``arg5_1``, ``s77`` and constants get the names that the caller
knows; a failed check gets the chain from the kernel back to an input, and with the inputs file to the element.

Apart from ``diagnose_log``, since it needs the package and its checks, which most logs come without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.localize.blame.indirect_failures import chains_in
from aotidoctor.localize.culprit import called_operator, package_files, with_sources
from aotidoctor.logs.diagnose_log import UNKNOWN, judge_log, log_diagnoses, with_ids
from aotidoctor.logs.patterns import LEAST_CONFIDENCE
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.localization import Chain, Frame, Localization
from aotidoctor.model.report import Diagnosis, LogEvent, LogReading, Report
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import KNOWN
from aotidoctor.triage.missing_file import no_such_file
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_checks

_KERNEL = re.compile(r"\b(?:cpp|triton)_[a-z]\w*\b")
_HANDLE = re.compile(r"\binput_handles\[(\d+)\]")
_DIM = re.compile(r"\bdim value(?: is too \w+)? at (\d+)")
_PLACE = re.compile(
    r"(?<![^\s:()'\"])(?:(?P<file>[^\s:()'\"]+\.(?:cpp|cu|cc|py)):(?P<line>\d+)"
    r"|(?P<other>[^\s:()'\"]+\.cpp), line (?P<number>\d+))"
)
# Causes that the chain of a failed check explains.
CHECKED = ("index-out-of-range", "cuda-device-assert", "integer-division", "runtime-assert")
_MOST_FRAMES = 12
# The package's own text leads from the failed check to an element of the inputs.
_FOLLOWED = 0.95


def resolve_names(report: Report, package: str, inputs: str | None, environ: Mapping[str, str]) -> Report:
    """``report`` with names of the package ``package``. Raises CannotExamineError."""
    case, unread = open_case.open_case(package, inputs, report.case.options, environ)
    if case.artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(no_such_file(package, "--package"))
    if case.artifact.kind is ArtifactKind.UNREADABLE:
        raise CannotExamineError(f"{package}: {case.artifact.problem}")
    if inputs is not None and (error := case.inputs_error) is not None and error.kind in ("missing", "unreadable"):
        raise CannotExamineError(no_such_file(inputs, "--inputs") if error.kind == "missing" else str(error))
    reading = report.log
    if reading is None or case.contract is None:
        reason = case.artifact.problem or "it contains no sources of generated code"
        missing = NotChecked(code="AD-LOG", name="package", reason=f"the log was not matched with it: {reason}")
        return replace(report, case=case, not_checked=(*report.not_checked, *unread, missing))
    named, chains = translate_findings(case, reading, report.findings)
    checked = _check_inputs(case) if inputs is not None else Session(case=case, runner=None)
    findings = with_ids([*named, *checked.findings])
    # Inputs that break the contract come first: what the log reports a run with them may follow from it.
    own = [item for item in findings if item.code.startswith("AD-IN")]
    broken = name_causes(Session(case=case, runner=None, findings=own))
    verdict, logged = judge_log(reading, log_diagnoses(findings))
    first = [item for item in broken if item.severity is Severity.ERROR]
    known = {item.cause for item in first}
    rest = [item for item in (*logged, *broken) if item.cause not in known]
    by_cause: dict[str, Diagnosis] = {}
    for item in (*first, *rest):
        by_cause.setdefault(item.cause, item)
    diagnoses = tuple(replace(item, rank=rank) for rank, item in enumerate(by_cause.values(), 1))
    return replace(
        report,
        case=case,
        verdict="problem" if broken else verdict,
        stage=diagnoses[0].stage or report.stage if diagnoses else report.stage,
        findings=tuple(findings),
        diagnoses=diagnoses,
        not_checked=(*report.not_checked, *unread, *checked.not_checked),
        localization=_place(case, reading, chains),
    )


def translate_findings(
    case: Case, reading: LogReading, findings: Sequence[Evidence]
) -> tuple[list[Evidence], tuple[Chain, ...]]:
    """``findings`` of the log with the names of the package, and the chains of the checks that failed."""
    chains = tuple(chains_in(case, "\n".join(event.text for event in reading.events)))
    names, leaves, contract = dict[str, str](), dict[int, str](), case.contract
    if contract is not None:
        leaves = {leaf.input_index: leaf.path for leaf in contract.leaves if leaf.input_index is not None}
        names = {f"input_handles[{index}]": path for index, path in leaves.items()}
        names |= {leaf.generated_name: leaf.path for leaf in contract.leaves if leaf.generated_name}
        names |= {one.name: one.original_fqn for one in contract.constants if one.original_fqn not in ("", one.name)}
        names |= {symbol.name: symbol.appears_in[0] for symbol in contract.symbols if symbol.appears_in}
    return [_finding_in_users_words(item, names, leaves, chains) for item in findings], chains


def _check_inputs(case: Case) -> Session:
    """Findings about the inputs. What this host lacks says nothing about a log from another one."""
    session = Session(case=case, runner=None)
    run_checks(session)
    session.findings = [item for item in session.findings if item.code.startswith("AD-IN")]
    session.not_checked = [item for item in session.not_checked if item.code.startswith("AD-IN")]
    return session


def _finding_in_users_words(
    item: Evidence, names: Mapping[str, str], leaves: Mapping[int, str], chains: Sequence[Chain]
) -> Evidence:
    """A finding of the log in the user's words.

    ``names`` maps those of generated code to the user's; ``leaves`` has the tensors by input handle.
    """
    if item.code not in (KNOWN, UNKNOWN):
        return item
    sentences: dict[str, None] = {}
    for word, name in names.items():
        if word in item.observed and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", item.observed):
            sentences[f"{word} is {name}"] = None
    facts: dict[str, FactValue] = {**item.facts}
    subject = item.subject
    handle, dim = _HANDLE.search(item.observed), _DIM.search(item.observed)
    if handle is not None and int(handle[1]) in leaves:
        path = leaves[int(handle[1])]
        facts["path"] = path
        subject = f"{path}.shape[{dim[1]}]" if dim is not None else path
    elif subject in names:
        subject = names[subject or ""]
    if item.kind in CHECKED and len(chains) == 1:
        # The same facts as from the blame of a run, as far as a log allows.
        chain = chains[0]
        paths, element = chain.paths, chain.element
        origin = f" ({chain.origin})" if chain.origin is not None else ""
        from_where = f", computed from {', '.join(chain.sources)}" if chain.sources and element is None else ""
        facts |= {
            "chain": chain.text,
            "kernel": chain.kernel,
            "path": paths[0] if len(paths) == 1 else None,
            "element": element.place if element is not None else None,
            "value": element.value if element is not None else None,
            "bound": chain.bound,
            "origin": chain.origin,
            "operators": chain.operators,
            "where": chain.where,
            "found": f"{element} is {chain.what}{origin}"
            if element is not None
            else f"{chain.what}{origin}{from_where}",
        }
        sure = facts.get("confidence")
        if isinstance(sure, float) and sure >= LEAST_CONFIDENCE:
            facts["confidence"] = max(sure, _FOLLOWED if chains[0].elements else sure)
        subject = str(facts["path"] or chains[0].kernel or "") or subject
        sentences[chains[0].text] = None
    message = "; ".join(part for part in (*sentences, item.message) if part)
    return replace(item, subject=subject, message=message, facts=facts)


def _place(case: Case, reading: LogReading, chains: Sequence[Chain]) -> Localization | None:
    """The place of the log's first failures in the compiled code."""
    events = [event for event in reading.events if event.level == "error" and not event.tainted]
    frames = with_sources(_frames(events, case), case.model)
    kernels = {call.name for call in case.contract.kernels} if case.contract is not None else set()
    mentioned = [name for event in events for name in _KERNEL.findall("\n".join((event.text, *event.frames)))]
    named = next((name for name in mentioned if name in kernels), None)
    kernel = next((chain.kernel for chain in chains if chain.kernel), None) or named
    culprit = kernel or called_operator(frames, case.model) or _call_at_line(frames, case)
    everything = _KERNEL.findall("\n".join(event.text for event in reading.events))
    foreign = [name for name in dict.fromkeys(everything) if "fused" in name and kernels and name not in kernels]
    notes = (
        (f"of a different package: {', '.join(foreign[:3])} is not one of its kernels",)
        if foreign and not named
        else ()
    )
    if culprit is None and not frames and not notes:
        return None
    how = "the chain of the failed check" if chains else "named in the log" if named else "the line that the log names"
    chain = chains[0].text if chains else None
    return Localization(culprit=culprit, how=how if culprit else "", chain=chain, frames=frames, notes=notes)


def _frames(events: Sequence[LogEvent], case: Case) -> tuple[Frame, ...]:
    """The places in the package's own files that the log names."""
    own = package_files(case.model)
    found: dict[tuple[str, int], str | None] = {}
    for event in events:
        for text in (*event.frames, *event.text.splitlines()):
            for place in _PLACE.finditer(text):
                file, line = place["file"] or place["other"], int(place["line"] or place["number"])
                if file.rpartition("/")[2] in own:
                    kernel = _KERNEL.search(text)
                    found.setdefault((file, line), kernel[0] if kernel is not None else None)
    listed = list(found.items())[:_MOST_FRAMES]
    return tuple(
        Frame(index=index, function=function, file=file, line=line)
        for index, ((file, line), function) in enumerate(listed)
    )


def _call_at_line(frames: Sequence[Frame], case: Case) -> str | None:
    """The kernel whose call in the wrapper a frame's line is in: the last one that does not begin after it."""
    wrapper = (case.model.wrapper_member or "").rpartition("/")[2] if case.model is not None else ""
    line = next((one.line for one in frames if (one.file or "").rpartition("/")[2] == wrapper), None)
    if line is None or case.contract is None:
        return None
    before = [call for call in case.contract.kernels if call.line is not None and line - 3 <= call.line <= line]
    return max(before, key=lambda call: call.line or 0).name if before else None
