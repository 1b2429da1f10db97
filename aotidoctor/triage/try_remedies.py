"""Try the remedies of causes that lie in the export or the compile, and mark each cause with what came of it.

Where the program is given, or the user's function that makes it, each remedy that can be carried out without the
user's hands is: a child exports the model again with it, compiles it, calls it, and compares with plain PyTorch, also
for another size where the remedy is about a dynamic dim. The first one that helps becomes the advice. One that failed
never is: where none helps, the advice is what remains to be done by hand.

Cheapest first, each within a limit of time, and no new one after ``_SECONDS``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.diagnosis.rank import confirm
from aotidoctor.model import load_toml
from aotidoctor.model.answers import RemedyTried, parse_answer
from aotidoctor.model.evidence import Evidence, Severity, shorten
from aotidoctor.model.jobs import InputsSource, TryRemedy
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import Diagnosis, EventKind, Remedy, Treatment
from aotidoctor.model.run import ChildError, Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.probes.compiler_bisect import CODE as BISECT_CODE
from aotidoctor.probes.payload import user_code
from aotidoctor.probes.probe import evidence
from aotidoctor.triage.compile_cache import compiler_of, make_private, open_cache
from aotidoctor.triage.finish import OF_THE_MODEL
from aotidoctor.triage.state import Session
from aotidoctor.triage.treated_run import LINE, TREATMENT_CODE

NAME = "try_remedy"
_MOST, _SECONDS, _EACH = 4, 300.0, 180.0
# What the child enters before the remedy is carried out, and while it is.
_BEFORE = ("start", "import", "setup", "inputs", "reference")
_NOT_APPLICABLE = "remedy"
BY_HAND = "needs a change of forward"
_SUGGESTED = re.compile(r"^ {0,8}(\w{1,60} = [\w+*/ ()'=,.-]{1,120})$", re.MULTILINE)

_FIXED = re.compile(r" = \d+$")


@record
class Attempt:
    """One remedy that was tried. ``words`` say what came of it; ``kind`` is that of its finding."""

    treatment: Treatment
    kind: str
    words: str
    run: str = ""


@record
class ProgramSource:
    """The program: an archive or ``module.py:function``. ``message`` is what its export raised, if it did."""

    program: str
    is_function: bool
    inputs: InputsSource | None = None
    message: str = ""


_TABLES = load_toml(Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8"))
# By name, which begins with the child's operation.
_REMEDIES = {
    name: Treatment(
        name=name,
        cause="",
        text=one["text"],
        steps=({"op": name.partition(" ")[0], **one.get("step", {})},),
        command=one["command"],
    )
    for one in _TABLES["remedy"]
    for name in (one["name"],)
}
_SHORT_NAMES: Mapping[str, str] = {"cast": "a cast", **{one["name"]: one["short"] for one in _TABLES["remedy"]}}
# A program that was exported cannot be exported in another way: these need no other export.
_OF_A_PROGRAM = ("buffers", "fakes", "settings without vectors", "settings without patterns", "cast")
# Stands in the command until the dims that were tried are known.
_EXAMPLE_DIMS = "{'x': {0: torch.export.Dim.AUTO}}"


def planned_remedies(diagnosis: Diagnosis, findings: Sequence[Evidence], message: str = "") -> tuple[Treatment, ...]:
    """The remedies of a cause that can be carried out, cheapest first. ``message`` is what the export raised."""
    named = [item for item in findings if item.id in diagnosis.evidence]
    kinds = {(item.code, item.kind) for item in named}
    split = next((item.facts["split"] for item in named if "split" in item.facts), "")
    plain = [_REMEDIES["plain_sizes"]] if "torch.Size" in message else []
    names: tuple[str, ...] = ()
    match diagnosis.cause:
        case "export-specialization" if {("VERIFY-A13", "merged"), ("AD-RUN-011", "merged")} & kinds:
            names = ("own_inputs",)
        case "export-specialization" if split == "example-of-one":
            names = ("larger_example",)
        case "export-specialization" if message:
            # What is fixed is no better than Dim.AUTO, and shows sooner.
            fixed = any(_FIXED.search(one) for one in _suggestions(message))
            names = ("dims auto", "dims suggested") if fixed else ("dims suggested", "dims auto")
        case "export-unsupported" if split == "outside-tensor" or ("VERIFY-A12", "mutated-constant") in kinds:
            names = ("buffers",)
        case "export-unsupported" if message:
            names = ("strict off", "strict on")
        case "unbacked-symint" if split != "float":
            # A float is no size: no bound helps.
            names = ("check_sizes", "strict off", "strict on")
        case "train-mode":
            names = ("eval",)
        case "custom-op-fake-kernel" | "custom-op-no-kernel":
            names = ("fakes",)
        case "codegen-bug" if (BISECT_CODE, "kernel") in kinds:
            names = ("settings without vectors", "settings without patterns")
        case "codegen-bug":
            return (*plain, *_casts(named))
    return (*plain, *(_REMEDIES[name] for name in names))


def _casts(named: Sequence[Evidence]) -> Iterator[Treatment]:
    for item in named:
        operator, expected = item.facts.get("operator"), item.facts.get("expected")
        if item.kind == "dtype" and isinstance(operator, str) and isinstance(expected, str):
            text = "Until it is fixed, give the operator another dtype in the model, and cast the result."
            step: JsonObject = {"op": "cast", "operator": operator, "to": expected}
            command = str(item.facts.get("command") or "")
            yield Treatment(name="cast", cause="codegen-bug", text=text, steps=(step,), command=command)


def try_remedies(session: Session, diagnoses: Sequence[Diagnosis], source: ProgramSource) -> tuple[Diagnosis, ...]:
    """Try the remedies of the first cause, and put the one that helps, or what is left to do, into it."""
    if not diagnoses or diagnoses[0].remedy.verified:
        return tuple(diagnoses)
    first = diagnoses[0]
    plans = planned_remedies(first, session.findings, source.message)
    if not source.is_function:
        plans = tuple(plan for plan in plans if plan.name in _OF_A_PROGRAM)
    if not plans:
        by_hand = source.is_function and first.cause in OF_THE_MODEL
        return (_mark(first, f"not tried: {BY_HAND}") if by_hand else first, *diagnoses[1:])
    tried: list[Attempt] = []
    with session.guard(TREATMENT_CODE, NAME):
        _try_in_turn(session, plans, source, tried)
    return (_with_attempts(first, tried), *diagnoses[1:])


def _try_in_turn(session: Session, plans: Sequence[Treatment], source: ProgramSource, tried: list[Attempt]) -> None:
    began = time.monotonic()
    for plan in (_fill_in(plan, source.message) for plan in plans[:_MOST]):
        if time.monotonic() - began > _SECONDS:
            session.leave_out(TREATMENT_CODE, NAME, f"{plan.name}: {_SECONDS:g} s are over")
            return
        session.begins(plan.text)
        outcome = session.run(_request(session, plan, source))
        if outcome is None:
            session.leave_out(TREATMENT_CODE, NAME, f"{plan.name}: {session.refusal()}")
            return
        attempt = judge_attempt(plan, outcome, source.message)
        if attempt is None:
            continue
        tried.append(replace(attempt, run=outcome.id))
        helped = attempt.kind == "healed"
        found = evidence(
            TREATMENT_CODE,
            attempt.kind,
            Severity.INFO,
            outcome,
            observed=f"{attempt.treatment.text} {attempt.words[:1].upper()}{attempt.words[1:]}",
            expected="it compiles and agrees with eager",
            facts={"treatment": plan.name},
        )
        session.add([found])
        session.ended(plan.name, outcome.seconds, attempt.words, ok=helped, kind=EventKind.TREATMENT)
        if helped:
            return


def _request(session: Session, plan: Treatment, source: ProgramSource) -> Request:
    options, cache, folder = session.case.options, open_cache(), None
    with suppress(OSError):
        make_private(cache.compiler, cache.root)
        folder = str(cache.compiler)
    payload = TryRemedy(
        code=user_code(session.case),
        program=source.program,
        steps=plan.steps,
        inputs=source.inputs,
        cache=folder,
        compiles=compiler_of(session.case.host.tools) is not None,
    )
    return Request(
        probe=NAME,
        job=NAME,
        payload=payload,
        timeout=_EACH,
        memory_limit=options.memory_limit,
        purpose=f"try a remedy: {plan.text}",
    )


def _fill_in(plan: Treatment, message: str) -> Treatment:
    found = _suggestions(message)
    text, command = (one.replace("{suggested}", ", ".join(found)) for one in (plan.text, plan.command))
    if plan.name == "dims suggested" and any(_FIXED.search(one) for one in found):
        text += " The package then takes that size only: make one for each, or change the line that fixes it."
    return replace(plan, text=text, command=command)


def _suggestions(message: str) -> list[str]:
    _, _, after = message.partition("Suggested fixes:")
    return [str(one) for one in _SUGGESTED.findall(after)[:4]]


def judge_attempt(plan: Treatment, outcome: Outcome, message: str) -> Attempt | None:
    """What came of an attempt; None where the remedy does not apply. ``message`` is the error without it."""
    error = outcome.error
    if outcome.stage == _NOT_APPLICABLE and error is not None:
        return None
    if error is not None:
        if outcome.stage in _BEFORE:
            return Attempt(treatment=plan, kind="untried", words=f"not tried: {_first_line(error)}")
        same = bool(message) and _core(message) in _without_numbers(error.message)
        words = "the same error" if same else f"another error in {outcome.stage}: {_first_line(error)}"
        return Attempt(treatment=plan, kind="stayed" if same else "other-error", words=words)
    match outcome.ending:
        case Exited(done=True):
            pass
        case TimedOut(limit=limit):
            return Attempt(treatment=plan, kind="untried", words=f"no end within {limit:g} s, in {outcome.stage}")
        case Signalled(name=name):
            return Attempt(treatment=plan, kind="other-error", words=f"{name} in {outcome.stage}")
        case _:
            return Attempt(treatment=plan, kind="untried", words=f"the child ended in {outcome.stage}")
    found = parse_answer(RemedyTried, outcome.result)
    if found.dims:
        plan = replace(plan, command=plan.command.replace(_EXAMPLE_DIMS, found.dims))
    done = "it compiles" if found.compiled else "it exports"
    if found.agrees is False:
        return Attempt(
            treatment=plan, kind="differs", words=f"{done} but gives other results than eager: {found.differs}"
        )
    unchecked = "" if found.compiled else "; not compiled: there is no C++ compiler here"
    second = found.second or {}
    if not second:
        return Attempt(treatment=plan, kind="healed", words=f"{done} and agrees with eager{unchecked}")
    what = second.get("what")
    if second.get("agrees") is True:
        return Attempt(treatment=plan, kind="healed", words=f"{done} and agrees with eager, also {what}{unchecked}")
    if second.get("error"):
        return Attempt(treatment=plan, kind="differs", words=f"{done}, but is refused {what}: {second['error']}")
    words = f"{done}, but gives other results than eager {what}: {second.get('differs')}"
    return Attempt(treatment=plan, kind="differs", words=words)


def _first_line(error: ChildError) -> str:
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    return shorten(f"{error.type}: {lines[0]}" if lines else error.type, LINE)


def _core(message: str) -> str:
    """The first line of a message, without numbers: those of symbols differ."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return _without_numbers(lines[0]) if lines else ""


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)


def _with_attempts(diagnosis: Diagnosis, tried: Sequence[Attempt]) -> Diagnosis:
    helped = next((one for one in tried if one.kind == "healed"), None)
    if helped is not None:
        text, command = helped.treatment.text + _known_of(diagnosis), helped.treatment.command
        remedy = Remedy(text=text, command=command, tried=f"tried: {helped.words}")
        return confirm(
            replace(diagnosis, remedy=remedy), f"there without the remedy; with it, {helped.words} ({helped.run})"
        )
    if not tried:
        return diagnosis
    each = "; ".join(f"{_SHORT_NAMES.get(one.treatment.name, one.treatment.name)}: {one.words}" for one in tried)
    if all(one.kind == "untried" for one in tried):
        return _mark(diagnosis, each if len(tried) > 1 else tried[0].words)
    left = replace(diagnosis.remedy, tried=f"not tried: {BY_HAND}. Tried: {each}")
    if (advice := _TABLES["by_hand"].get(diagnosis.cause)) is not None:
        left = replace(left, text=advice["text"] + _known_of(diagnosis), command=advice["command"])
    return replace(diagnosis, remedy=left)


def _known_of(diagnosis: Diagnosis) -> str:
    """What the advice says of a public issue, which stays true whatever was tried; without its workaround."""
    for mark in (" A fault of this operator", " This message is known from"):
        _, found, rest = diagnosis.remedy.text.partition(mark)
        if found:
            return f"{mark}{rest.partition(').')[0]})."
    return ""


def _mark(diagnosis: Diagnosis, words: str) -> Diagnosis:
    return replace(diagnosis, remedy=replace(diagnosis.remedy, tried=words))
