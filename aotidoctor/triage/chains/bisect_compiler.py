"""Search the step of the compiler that makes the wrong numbers, one compile and one call per question.

What is asked next is decided in ``localize.compiler_steps``; here the questions are put to children, within the budget,
and every answer is written down at once, so that an interrupted search goes on where it stopped.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from aotidoctor.localize.compiler_steps import BAD, FAILED, GOOD, Found, NotFound, Question, next_question
from aotidoctor.model.answers.made import Step
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.jobs import changed
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.run import Exited, Outcome, Request
from aotidoctor.probes import compiler_bisect, recompiled, succeeded
from aotidoctor.probes.compiler_bisect import WORDS
from aotidoctor.triage.chains.compile_cache import CompileCache, key_of, open_cache
from aotidoctor.triage.chains.recompile import Recompiled, asked, compile_now, target_of
from aotidoctor.triage.run_probes import history_of
from aotidoctor.triage.session import Session

CAUSE = "codegen-bug"
# Of a compile's usual time; one that would be cut short answers nothing.
MARGIN = 1.3
_OVERLOAD = re.compile(r"<OpOverload\(op='(?P<op>[\w.]+)', overload='(?P<overload>\w+)'\)>")


@dataclass(slots=True, kw_only=True)
class Search:
    """A search under way.

    ``answers`` are those of earlier calls as well, ``runs`` maps those of this call to the ids of their runs. ``last``
    is the run that answered last, ``whole`` the id of the one with the whole compiler on.
    """

    made: Recompiled
    compile: Request
    key: str
    answers: dict[str, str]
    last: Outcome
    whole: str
    runs: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    seconds: float = 0.0


def bisect(session: Session, made: Recompiled, cache: CompileCache | None = None) -> None:
    """Search, if ``made`` is wrong as well and the time for it was given; adds its finding."""
    asked(session, compiler_bisect.PROBE, lambda plan: _bisect(session, made, cache or open_cache(), plan))


def proof(session: Session) -> dict[str, str]:
    """The cause that a search has proven, with how: wrong with the step on, right with it disabled."""
    item = next((item for item in session.findings if item.code == compiler_bisect.CODE and item.kind == "found"), None)
    if item is None:
        return {}
    bad, good = (item.facts.get(name) for name in ("bad_run", "good_run"))
    step = f"{item.facts['word']} {item.facts['number']} of {item.facts['steps']} ({item.subject})"
    return {CAUSE: f"wrong with {step} on{_at(bad)}, right with it off{_at(good)}"}


def _bisect(session: Session, made: Recompiled, cache: CompileCache, plan: Request) -> None:
    key = key_of(made.key, session.case.generated, files=(session.case.inputs_path,))
    whole = session.outcomes[recompiled.NAME]
    search = Search(made=made, compile=plan, key=key, answers=cache.answers(key), last=whole, whole=whole.id)
    while isinstance(step := _next(search), Question):
        reason = _ask(session, cache, search, step)
        if reason is not None:
            left = (step.of - step.done) * made.seconds
            session.add([compiler_bisect.unfinished(search.last, _text(step), step.done, step.of, left)])
            told = f"{reason}; the same command resumes from here"
            session.leave_out(compiler_bisect.CODE, compiler_bisect.NAME, told)
            return
    match step:
        case Found():
            session.add([compiler_bisect.found(search.last, _facts(search, step))])
        case NotFound():
            session.add([compiler_bisect.not_found(search.last, step.tried, step.failed, search.asked)])


def _next(search: Search) -> Question | Found | NotFound:
    """What to do next. That a step heals is shown in this call, also where an earlier one answered it."""
    step = next_question(search.made.steps, search.answers)
    if isinstance(step, Found) and f"{step.subsystem}:{step.heals_at}" not in search.runs:
        known = len(search.answers)
        steps = len(search.made.steps[step.subsystem])
        return Question(
            backend=step.backend, subsystem=step.subsystem, max=step.heals_at, steps=steps, done=known, of=known + 1
        )
    return step


def _ask(session: Session, cache: CompileCache, search: Search, question: Question) -> str | None:
    """Put one question; why it was not answered, or None."""
    if session.deadline is not None and session.deadline - time.monotonic() < MARGIN * search.made.seconds:
        return "the time budget is too short for one more compile"
    began = time.monotonic()
    session.begins(_name(question))
    answer = _answer(session, cache, search, question)
    if answer not in (GOOD, BAD, FAILED):
        return answer
    search.asked += 1
    search.seconds += time.monotonic() - began
    search.answers[question.key] = answer
    search.runs[question.key] = search.last.id
    cache.remember(search.key, search.answers)
    session.ended(_name(question), time.monotonic() - began, f"{_text(question)}: {answer}", ok=answer == GOOD)
    return None


def _answer(session: Session, cache: CompileCache, search: Search, question: Question) -> str:
    """``good``, ``bad``, ``failed``, or why there is no answer."""
    switch: JsonObject = {"backend": question.backend, "subsystem": question.subsystem, "max": question.max}
    payload = changed(search.compile.payload, {"bisect": switch})
    request = Request(
        probe=compiler_bisect.NAME,
        job=search.compile.job,
        payload=payload,
        timeout=search.compile.timeout,
        purpose=_text(question),
    )
    compiled = compile_now(session, cache, request, f"{search.key}-step")
    if not isinstance(compiled, Outcome):
        return compiled
    package = target_of(compiled)
    try:
        if not isinstance(compiled.ending, Exited):
            return "a compile did not finish"
        search.last = compiled
        return _call(session, search, str(package), _text(question)) if succeeded(compiled) else FAILED
    finally:
        cache.discard(package, headers=not isinstance(compiled.ending, Exited))


def _call(session: Session, search: Search, package: str, purpose: str) -> str:
    ran = session.run(recompiled.comparison_request(history_of(session), compiler_bisect.NAME, package, purpose))
    if ran is None:
        return session.refusal()
    search.last = ran
    verdict = recompiled.verdict_of(ran)
    return FAILED if verdict is None else GOOD if verdict else BAD


def _facts(search: Search, found: Found) -> dict[str, FactValue]:
    culprit = found.steps[-1]
    variables = (
        f"TORCH_BISECT_BACKEND={found.backend} TORCH_BISECT_SUBSYSTEM={found.subsystem} "
        f"TORCH_BISECT_MAX={found.heals_at}"
    )
    operator = operator_of(culprit)
    own = f"program = program.run_decompositions({{torch.ops.{operator}: your_own}})"
    decomposition = found.subsystem == "decomposition"
    return {
        "name": " or ".join(dict.fromkeys(operator_of(step) for step in found.steps)),
        "node": culprit.name if culprit.target is not None else None,
        "backend": found.backend,
        "subsystem": found.subsystem,
        "number": found.number + 1,
        "steps": len(search.made.steps[found.subsystem]),
        "max": found.heals_at,
        "where": culprit.where,
        "workaround": own if decomposition else variables,
        "command": f"{own}  # before compiling it" if decomposition else f"{variables} python compile.py",
        "runs": search.asked,
        "answers": len(search.answers),
        "seconds": round(search.seconds, 1),
        "good_run": search.runs.get(f"{found.subsystem}:{found.heals_at}"),
        # Where that was asked in an earlier call: it is on in the compile with nothing off as well.
        "bad_run": search.runs.get(f"{found.subsystem}:{found.number}", search.whole),
    }


def operator_of(step: Step) -> str:
    """The operator of a lowering or decomposition, as ``torch.ops`` spells it; the name of a pass."""
    if step.target is not None:
        return step.target
    overload = _OVERLOAD.fullmatch(step.name)
    return f"{overload['op']}.{overload['overload']}" if overload is not None else step.name


def _at(run: FactValue) -> str:
    return f" ({run})" if run is not None else ""


def _name(question: Question) -> str:
    return f"bisect {WORDS[question.subsystem]} {question.done + 1}/{question.of}"


def _text(question: Question) -> str:
    kept = question.max + 1
    of = f"{question.steps} {question.subsystem}"
    return f"none of {of}" if kept == 0 else f"the first {kept} of {of}"
