"""Make findings, diagnoses and next steps of a log's matches, in the sentences of the playbooks.

A diagnosis from a log is suspected at best: nothing was run. It names the line that says so, what the log looked like
at that line, and the releases in which the cause is known and fixed, compared with those that the log names.

Sentences are filled with the values that the line has, and no others. The runtime prints dtypes and devices as
numbers of c10 (``expected: 4(at::kLong), but got: 3``); the sentences want ``int64`` and ``int32``. A command that
would have to make up a value is left out. Titles and remedies for the kinds of a cause that a log tells apart are in
``splits``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from aotidoctor.diagnosis.playbooks import NAME, KnownIssue, fill_text, find_playbook, subject_of, title_of
from aotidoctor.logs.executorch import error_code
from aotidoctor.logs.judgement import is_fixed
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, LEAST_SUSPICION, known_issue
from aotidoctor.logs.splits import kind_of, split_of
from aotidoctor.model.evidence import Evidence, FactValue, FileSource, Severity, shorten
from aotidoctor.model.report import Diagnosis, LogEvent, LogMatch, LogReading, Playbook, Remedy, Status
from aotidoctor.model.torch_names import DEVICE_TYPES, SCALAR_NAMES, scalar_type
from aotidoctor.triage.finish import KNOWN, NAMED_CONFIDENCE

# Sentences.
_SCALAR = re.compile(r"^(?P<number>\d+)?\(?(?:at::)?k?(?P<name>[A-Za-z]\w*)?\)?$")
_DEVICE = re.compile(r"\((?P<name>\w+)\)")
# Prefixes that callers put before a message.
_CALLERS = re.compile(r"^(?:what\(\): *|(?:[\w.]*(?:Error|Exception)): +)+")
# Names that stand for a whole sentence or command, and a stand-in that nobody takes for a value.
_WHOLE, _STAND_IN = ("command", "remedy", "advice"), "x"


def fill_sentence(cause: str, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """The facts of a pattern, with those that the sentences of the playbook of ``cause`` need."""
    found = dict(facts)
    observed, expected, dim = (_text(facts.get(key)) for key in ("observed", "expected", "dim"))
    match cause:
        case "input-dtype":
            found["observed"], found["expected"] = _dtype(observed), _dtype(expected)
            found["observed_dtype"], found["expected_dtype"] = found["observed"], found["expected"]
        case "input-device":
            found["observed_device"], found["expected_device"] = _device(observed), _device(expected)
        case "input-stride" if expected and dim:
            found["observed_stride"] = f"{observed} at dim {dim}"
            found["expected"] = f"{expected} at dim {dim}"
        case "missing-c-shim":
            named = _text(facts.get("subject")) or _text(facts.get("target"))
            found["subject"] = found["target"] = named
        case "input-rank" if expected:
            found["expected_rank"] = expected
            found["observed"], found["expected"] = f"{observed} dims", f"{expected} dims"
        case "input-shape" | "input-range" | "input-divisibility" | "input-shape-disagree" if dim:
            subject = _text(facts.get("subject"))
            found["subject"] = f"{subject}.shape[{dim}]" if subject and ".shape[" not in subject else subject
    return {key: value for key, value in found.items() if value != ""}


def _text(value: FactValue) -> str:
    return value if isinstance(value, str) else ""


def _dtype(text: str) -> str:
    found = _SCALAR.match(text)
    if found is None:
        return text
    if found["name"]:
        return SCALAR_NAMES.get(found["name"], text)
    return scalar_type(int(found["number"] or -1)) or text


def _device(text: str) -> str:
    named = _DEVICE.search(text)
    return named["name"] if named is not None else DEVICE_TYPES.get(int(text), text) if text.isdigit() else text


def evidence_values(lead: Evidence) -> Evidence:
    """``lead`` with values as its observed and expected, for sentences to be filled with."""
    observed, expected = (_text(lead.facts.get(key)) for key in ("observed", "expected"))
    line = _CALLERS.sub("", lead.observed)
    return replace(lead, observed=observed, expected=expected, facts={"line": line, **lead.facts})


def command_of(template: str, lead: Evidence) -> str:
    """The command with the values of the log; empty where a value that it needs is missing."""
    # Generated code's name of a tensor is none that the caller could type.
    known = lead if not (lead.subject or "").startswith("input_handles") else replace(lead, subject=None)
    for found in NAME.finditer(template):
        name, default = found[1], found[2] or ""
        is_known = fill_text(f"{{{name}}}", known) not in ("?", "")
        if not is_known and name not in _WHOLE and default != _STAND_IN:
            return ""
    return fill_text(template, known)


# What to run next.
_CUDA = re.compile(r"illegal memory access|misaligned address|device-side assert|unspecified launch failure|CUDA error")
_API = re.compile(r"API call failed at ")
_DEATHS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_MOST_STEPS = 4
# Conditions, of which one failure is enough, and the steps that follow.
_RULES: tuple[tuple[Callable[[LogEvent], bool], tuple[str, ...]], ...] = (
    (
        lambda event: _API.search(event.text) is not None,
        ("keep stderr as well (2>&1): releases of torch before 2.13 print the reason there, as `Error: ...`",),
    ),
    (
        # It shows at a later, innocent call.
        lambda event: _CUDA.search(event.text) is not None,
        (
            "CUDA_LAUNCH_BLOCKING=1 in a fresh process: the error is then reported at the kernel that caused it",
            "AOTI_RUNTIME_CHECK_INPUTS=1 in a fresh process: the package then checks dtypes, shapes and devices",
        ),
    ),
    (
        lambda event: event.kind in _DEATHS and not event.frames,
        ("aotidoctor watch -- PROGRAM --model {model}   # the same program, with a stack when it crashes",),
    ),
    (
        lambda event: event.kind == "SIGKILL",
        ("dmesg --ctime | grep -i -E 'killed process|out of memory'   # whether memory ran out",),
    ),
    (lambda event: event.kind == "truncated", ("provide the rest of the log: a traceback ends before its exception",)),
)


# Steps where the failure is before there is a package, by stage.
_BEFORE = {
    "export": "model(*args)   # the same call in plain PyTorch: an error that it raises as well is the model's own",
    "compile": "aotidoctor verify exported.pt2   # the program that was to be compiled, against every rule",
}


def next_steps(reading: LogReading, *, package: str | None, inputs: str | None = None) -> tuple[str, ...]:
    """Commands and settings to try next, the most informative first."""
    events = reading.unknown or reading.events
    model, sample = _word(package or "model.pt2"), _word(inputs or "sample.pt")
    fitting = [texts for is_one, texts in _RULES if any(map(is_one, events))]
    steps = [text.format(model=model) for texts in fitting for text in texts]
    stages = {match.pattern.stage or match.event.stage for match in reading.matches}
    before = _BEFORE.keys() if reading.names_aoti else {"export"}
    if package is None and stages and stages <= before:
        # There is no package yet.
        return tuple(dict.fromkeys([*steps, *(_BEFORE[stage] for stage in sorted(stages))]))[:_MOST_STEPS]
    if package is None and not reading.names_aoti:
        # Nothing of it is AOTInductor's: no advice names a package.
        others = (step.replace(f" --model {model}", "") for step in steps if "AOTI" not in step)
        return tuple(dict.fromkeys(others))[:_MOST_STEPS]
    if events and package is None:
        log = "LOG" if reading.name in ("", "stdin") else _word(reading.name)
        steps.append(f"aotidoctor classify {log} --package {model}   # kernels, wrapper lines and symbols by name")
    if events:
        steps.append(f"aotidoctor run {model} --inputs {sample}   # reproduce it, and find the cause by experiment")
    return tuple(dict.fromkeys(steps))[:_MOST_STEPS]


def _word(path: str) -> str:
    """``path`` quoted for a shell, and never read as an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


# Findings and diagnoses.
UNKNOWN, UNREAD = "AD-LOG-002", "AD-LOG-003"
_LONGEST, _FRAMES = 300, 5
# Causes whose subject is a kernel where no input is named.
_OF_KERNELS = ("index-out-of-range", "cuda-device-assert", "integer-division", "kernel-crash", "cuda-illegal-access")
# The cause whose subject is the user's line.
_OF_THE_MODEL = "model-error"
_KERNEL = re.compile(r"\b(?:cpp|triton)_(?:[a-z]+_)*?fused_\w+")
# A frame of the model below those of PyTorch: ``forward (/home/me/model.py:10)``.
_USERS_FRAME = re.compile(r"forward \((?:[^\n()]{0,400}[/\\])?(?P<file>[^\n/\\()]{1,120}\.py):(?P<line>\d{1,7})\)")
_LISTED_FRAME = re.compile(r'File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,7}), in (?P<name>\w{1,120})')
_RELEASE = re.compile(r" \((?:torch |Triton )?\d+\.\d+(?!\d)[^()]*\)$")
_MOST_MATCHES, _MOST_UNKNOWN, _MOST_CAUSES = 12, 5, 5
# Advice that takes a package for granted, and what stands there instead where nothing in a log is AOTInductor's.
_OF_PACKAGES = re.compile(r"(?i:\bpackages?\b(?! (?:list|index|manager))|\.pt2\b|aoti|\bcompile[ds]? again)")
_FIND_IT = "Find the library or program that the line belongs to: the log does not show what was loaded or compiled."


def log_findings(reading: LogReading) -> list[Evidence]:
    """Evidence of the matches, of failures that no pattern knows, and of what was not read. The caller adds ids."""
    found = [_known_evidence(match, reading) for match in reading.matches[:_MOST_MATCHES]]
    for event in reading.unknown[:_MOST_UNKNOWN]:
        facts: dict[str, FactValue] = {"form": event.form, "type": event.kind, "stage": event.stage}
        if event.frames:
            facts["frame"] = event.frames[0]
        facts |= {key: value for key, value in _more_of(event, reading).items() if value}
        message = f"{event.form}, logged {event.count} times" if event.count > 1 else event.form
        observed = _short(event.text.partition("\n")[0] or event.kind)
        found.append(Evidence(
            code=UNKNOWN, kind="unknown-failure", severity=Severity.WARN, subject=None, observed=observed, expected="",
            message=_with_code(message, facts), source=FileSource(file=reading.name, line=event.first), facts=facts,
        ))  # fmt: skip
    source = FileSource(file=reading.name)
    return found + [
        Evidence(
            code=UNREAD, kind="not-read", severity=Severity.INFO, subject=None,
            observed=problem, expected="the whole log", source=source,
        )
        for problem in reading.problems
    ]  # fmt: skip


def log_diagnoses(findings: Sequence[Evidence]) -> tuple[Diagnosis, ...]:
    """Diagnoses of the findings of ``log_findings``, in their order, one per cause."""
    known = [item for item in findings if item.code == KNOWN]
    sure = [item for item in known if _sure(item) >= LEAST_CONFIDENCE]
    # Without a certain cause, those suspected by a place or general words.
    chosen = sure or [item for item in known if item.facts.get("suspect") and _sure(item) >= LEAST_SUSPICION]
    causes: dict[str, list[Evidence]] = {}
    for item in chosen:
        causes.setdefault(item.kind, []).append(item)
    made: list[Diagnosis] = []
    for cause, evidence in causes.items():
        playbook = find_playbook(cause)
        if playbook is not None and len(made) < _MOST_CAUSES:
            made.append(_diagnosis(playbook, evidence, len(made) + 1))
    return tuple(made)


def judge_log(reading: LogReading, diagnoses: tuple[Diagnosis, ...]) -> tuple[str, tuple[Diagnosis, ...]]:
    """The verdict on a log, and the causes to show: where nothing failed, none below ``NAMED_CONFIDENCE``."""
    if diagnoses and diagnoses[0].confidence >= NAMED_CONFIDENCE:
        return "problem", diagnoses
    if reading.has_failure:
        return "unknown", diagnoses
    return "unknown" if reading.out_of_time else "healthy", ()


def _sure(item: Evidence) -> float:
    sure = item.facts.get("confidence")
    return sure if isinstance(sure, float) else 0.0


def _known_evidence(match: LogMatch, reading: LogReading) -> Evidence:
    event, pattern = match.event, match.pattern
    facts: dict[str, FactValue] = {
        **fill_sentence(pattern.cause, match.facts),
        "confidence": match.confidence,
        "form": event.form,
        "stage": pattern.stage or event.stage,
    }
    # The known issue of a match: some are told apart by where the message comes from, not by its words.
    text = "\n".join((event.text, *event.frames))
    issue = known_issue(text, pattern.cause)
    facts |= {key: value for key, value in _more(match, reading, issue).items() if value}
    short = "\n".join((event.text, *event.frames[:_FRAMES]))
    facts = {**kind_of(pattern.cause, short, elsewhere=not reading.names_aoti), **facts}
    where = next(filter(None, map(_users_place, (*event.frames, *_listed_frames(event.text)))), "")
    if where:
        facts.setdefault("where", where)
    kernel = _KERNEL.search(text)
    if kernel is not None:
        facts.setdefault("kernel", kernel[0])
    is_lead = match.confidence < LEAST_CONFIDENCE
    subject = facts.get("subject") or (facts.get("kernel") if pattern.cause in _OF_KERNELS else None)
    subject = subject or (where if pattern.cause == _OF_THE_MODEL else None)
    return Evidence(
        code=KNOWN,
        kind=pattern.cause,
        severity=Severity.INFO if is_lead else Severity.WARN if event.level == "warning" else Severity.ERROR,
        subject=subject if isinstance(subject, str) else None,
        observed=_short(match.text),
        expected="",
        message=_with_code(_message(match, reading.versions, issue), facts),
        source=FileSource(file=reading.name, line=match.line),
        facts=facts,
    )


def _with_code(message: str, facts: Mapping[str, FactValue]) -> str:
    return f"{message}; code {code}" if (code := facts.get("error_code")) else message


def _more(match: LogMatch, reading: LogReading, issue: KnownIssue | None) -> dict[str, FactValue]:
    event, pattern = match.event, match.pattern
    return {
        "source": _origin_file(pattern.source),
        "known_issue": issue.issue if issue is not None else "",
        "known_url": issue.url if issue is not None else "",
        "workaround_known": issue.workaround if issue is not None else "",
        "suspect": pattern.is_suspect,
        "component": pattern.component if pattern.known or pattern.fixed else "",
        "known": pattern.known,
        "fixed": pattern.fixed,
        "version": reading.versions.get(pattern.component, ""),
        **_more_of(event, reading),
        "count": event.count if event.count > 1 else 0,
        "tainted": event.tainted,
        "elsewhere": not reading.names_aoti,
        "echo_of": event.echo_of or 0,
    }


def _more_of(event: LogEvent, reading: LogReading) -> dict[str, FactValue]:
    return {"said_by": event.origin, "error_code": error_code(event, reading.events)}


def _message(match: LogMatch, versions: Mapping[str, str], issue: KnownIssue | None) -> str:
    """The origin of the message, and the releases in which the cause is known and fixed."""
    pattern, version = match.pattern, versions.get(match.pattern.component)
    # The file that prints such a message, or why the place of the failure shows the cause (see `LogPattern`).
    parts = (
        [(f"printed by {_origin_file(pattern.source)}" if pattern.example else pattern.source)]
        if pattern.source
        else []
    )
    if issue is not None:
        parts.insert(0, issue.sentence)
    if pattern.known:
        parts.append(f"known in {pattern.component} {pattern.known}")
    if pattern.fixed:
        parts.append(f"fixed in {pattern.component} {pattern.fixed}")
    if version and (pattern.known or pattern.fixed):
        over = ", which has the fix" if pattern.fixed and is_fixed(version, pattern.fixed) else ""
        parts.append(f"the log names {version}{over}")
    if match.facts.get("alike"):
        parts.append(f"by wording only, which is most similar to that of such failures: {match.facts['alike']}")
    if match.facts.get("unmarked"):
        parts.append("nothing around it names torch: it may come from a different program")
    if match.event.tainted:
        parts.append("logged after a sticky CUDA error; may be unreliable")
    return "; ".join(parts)


def _origin_file(source: str) -> str:
    """The file that prints a message, without the release that it was looked up in: that is not the user's."""
    return _RELEASE.sub("", source)


def _diagnosis(playbook: Playbook, evidence: Sequence[Evidence], rank: int) -> Diagnosis:
    lead, values = evidence[0], evidence_values(evidence[0])
    stage, line = lead.facts.get("stage"), lead.source.line if isinstance(lead.source, FileSource) else None
    split = split_of(playbook.cause, lead.facts)
    elsewhere = bool(lead.facts.get("elsewhere")) and not split.carrier
    remedy = fill_text(split.remedy or playbook.remedy, values)
    command = command_of(split.command or ("" if split.carrier else playbook.command), values)
    if elsewhere and _OF_PACKAGES.search(remedy) is not None:
        remedy = _FIND_IT
    if elsewhere and _OF_PACKAGES.search(command) is not None:
        command = ""
    issue, workaround = lead.facts.get("known_issue"), lead.facts.get("workaround_known")
    if issue:
        instead = f" Workaround: {workaround}." if workaround else ""
        remedy = f"{remedy.rstrip()} This message is known from {issue} ({lead.facts.get('known_url')}).{instead}"
    fixed, version, component = (lead.facts.get(key) for key in ("fixed", "version", "component"))
    if fixed:
        named = f"; the log names {version}" if version else ""
        remedy = f"{remedy.rstrip()} Fixed in {component} {fixed}{named}."
    return Diagnosis(
        cause=playbook.cause,
        rank=rank,
        status=Status.SUSPECTED,
        confidence=_sure(lead),
        title=title_of(split.title or playbook.title, values, evidence),
        looked_like=f"line {line}: {lead.observed}",
        subject=subject_of(lead),
        evidence=tuple(item.id for item in evidence if item.id),
        remedy=Remedy(text=remedy, command=command),
        playbook=playbook.cause,
        severity=lead.severity,
        would_confirm=fill_text(playbook.would_confirm, values),
        stage=stage if isinstance(stage, str) and stage else playbook.stage,
    )


def _listed_frames(text: str) -> list[str]:
    """The frames that a message itself lists (``from user code:``), innermost first."""
    return [f"{hit['name']} ({hit['file']}:{hit['line']})" for hit in _LISTED_FRAME.finditer(text)][::-1]


def _users_place(frame: str) -> str:
    """The place of a forward, if its file is not in a folder of installed packages; empty for other frames."""
    found = None if "-packages" in frame or "/torch/" in frame else _USERS_FRAME.fullmatch(frame)
    return f"{found['file']}:{found['line']}, in forward" if found is not None else ""


def with_ids(findings: Sequence[Evidence]) -> list[Evidence]:
    """The findings, numbered from ``E1``."""
    return [replace(item, id=f"E{number}") for number, item in enumerate(findings, 1)]


def _short(text: str) -> str:
    return shorten(text.strip(), _LONGEST)
