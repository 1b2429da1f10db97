"""Compile the exported program again on this host, and bisect the step of the compiler that breaks it.

A chain of up to two child runs after the probes: a compile (or a cached package), and one call of the result,
compared with the reference. ``probes.recompiled`` decides when to run it and reads the results;
``localize.comparison`` compares the code of the two packages.

The bisect takes one compile and one call per step. ``localize.bisection`` decides the next step; here it runs in
children, within the budget, and every result is saved at once, so that an interrupted search resumes where it stopped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from aotidoctor.localize.bisection import (
    BAD,
    FAILED,
    GOOD,
    WITHOUT_PASSES,
    BisectionStep,
    StepNotFound,
    WrongStep,
    most_steps,
    next_step,
)
from aotidoctor.localize.comparison import CodeComparison, compare_code
from aotidoctor.localize.stages import AGREES, DECOMPOSED, DIFFERS, known_stages
from aotidoctor.model.answers import Compiled, CompilerStep, parse_answer
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import FactValue, NotChecked
from aotidoctor.model.jobs import change_fields
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.run import Exited, Outcome, Request
from aotidoctor.probes import compiler_bisect, recompiled
from aotidoctor.probes.compiler_bisect import WORDS
from aotidoctor.probes.payload import device_of
from aotidoctor.probes.probe import Probe, succeeded
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.probes.reference_findings import is_another_program
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage.compile_cache import CachedCompile, CompileCache, compiler_of, key_of, open_cache
from aotidoctor.triage.open_case import select_model
from aotidoctor.triage.run_probes import plan_of
from aotidoctor.triage.state import Session
from aotidoctor.version import __version__

# Compile again.
T = TypeVar("T")
RECOMPILE_CAUSE = "numeric-difference"
NO_COMPILER = "there is no C++ compiler here: apt-get install g++ (or conda install cxx-compiler)"
PATIENCE = "compiling; the first time takes half a minute longer"


@record
class Recompiled:
    """A package that the compiler of this host made of the reference.

    ``kind`` is that of the finding (``agrees``, ``differs``, ``unavailable``); ``seconds`` the time of the compile
    that made it; ``steps`` the compiler steps that can be turned off, by subsystem; ``key`` the content key.
    """

    package: str
    key: str
    kind: str
    seconds: float
    code: CodeComparison
    model: ModelEntry | None = None
    contract: ModelContract | None = None
    steps: Mapping[str, tuple[CompilerStep, ...]] = field(default_factory=dict)


def recompile(session: Session, cache: CompileCache | None = None) -> Recompiled | None:
    """Compile again, if that can change the diagnosis; None where there is no such package."""
    return run_planned(session, recompiled.PROBE, lambda plan: _recompile(session, cache or open_cache(), plan))


def _recompile(session: Session, cache: CompileCache, plan: Request) -> Recompiled | None:
    probe = recompiled.PROBE
    session.begins(f"{probe.name}: {PATIENCE}")
    cached = obtain_package(session, cache, plan)
    if cached is None:
        return None
    ran = session.run(recompiled.comparison_request(session.history(), probe.name, str(cached.package), plan.purpose))
    if ran is None:
        session.leave_out(probe.code, probe.name, session.refusal())
        return None
    session.outcomes[probe.name] = ran
    key = key_for(session, plan) or ""
    model, contract = model_in(str(cached.package))
    compiled = parse_answer(Compiled, cached.facts)
    made = Recompiled(
        package=str(cached.package),
        key=key,
        kind="unavailable",
        seconds=compiled.seconds,
        code=compare_code(session.case.model, session.case.contract, model, contract),
        model=model,
        contract=contract,
        steps=compiled.switchable or {},
    )
    code = made.code
    kernels = f"{', '.join(code.kernels[:4])} here {', '.join(code.other_kernels[:4])}"
    lines = f"{code.where}: `{code.ours}`, here `{code.theirs}`" if code.where else None
    facts: dict[str, FactValue] = {
        "same_kernels": code.same_kernels,
        "same_sources": code.same_sources,
        "first_difference": kernels if code.same_kernels is False else lines,
        "where": code.where,
        "settings": tuple(f"{name}={value}" for name, value in (compile_of(plan).config or {}).items()),
        "seconds": round(made.seconds, 1),
        "bisect_seconds": round(made.seconds * most_steps(made.steps), 0),
    }
    finding = recompiled.read_with_facts(session.history(), ran, facts)
    session.add([finding])
    session.ended(probe.name, ran.seconds + cached.seconds, finding.observed, ok=finding.kind == "agrees")
    if finding.facts.get("same_outputs") is True:
        session.findings[:] = [item for item in session.findings if not is_another_program([item])]
        if finding.kind == "differs":
            session.add(compiler_bisect.wrong_kernel_evidence(session.case, session.history(), ran))
    if finding.kind == "differs" and session.history().has(recompiled.COMPARISON, *recompiled.OTHER_TYPES):
        _name_wrong_dtype(session)
    return replace(made, kind=finding.kind)


def _name_wrong_dtype(session: Session) -> None:
    """Ask which operator the compiler gives another dtype; adds its finding."""
    outcome = session.run(compiler_bisect.dtypes_request(session.case))
    if outcome is None or not succeeded(outcome):
        reason = session.refusal() if outcome is None else "the program cannot be lowered here without being compiled"
        session.leave_out(compiler_bisect.CODE, compiler_bisect.NAME, reason)
        return
    session.add(compiler_bisect.wrong_dtype_evidence(outcome))


def recompile_proof(session: Session) -> dict[str, str]:
    """Cause proven by a package that is right when compiled here, with how; empty where there is none."""
    item = next((item for item in session.findings if item.code == recompiled.CODE and item.kind == "agrees"), None)
    as_it_is, here = session.outcomes.get("reference"), session.outcomes.get(recompiled.NAME)
    if item is None or as_it_is is None or here is None:
        return {}
    return {
        RECOMPILE_CAUSE: f"differs from the reference unchanged ({as_it_is.id}), "
        f"agrees when compiled again here ({here.id})"
    }


def obtain_package(session: Session, cache: CompileCache, request: Request) -> CachedCompile | None:
    """The package that ``request`` describes, from the cache or compiled now; None, with the reason reported."""
    key = key_for(session, request)
    if key is None:
        session.leave_out(recompiled.CODE, request.probe, NO_COMPILER)
        return None
    cached = cache.take(key)
    if cached is not None:
        return cached
    made = compile_now(session, cache, request, key)
    if not isinstance(made, Outcome):
        session.leave_out(recompiled.CODE, request.probe, made)
        return None
    if not succeeded(made):
        session.add([recompiled.read_compile(session.case, made)])
        session.ended(request.probe, made.seconds, session.findings[-1].observed, ok=False)
        cache.discard(target_of(made), headers=not isinstance(made.ending, Exited))
        return None
    facts: JsonObject = {name: value for name, value in made.result.items() if name in ("seconds", "switchable")}
    return cache.commit(key, target_of(made), facts)._replace(seconds=made.seconds)


def compile_now(session: Session, cache: CompileCache, request: Request, key: str) -> Outcome | str:
    """Run the compile of ``request``, or say why it did not begin. The caller removes its folder."""
    try:
        target = cache.begin(key)
    except OSError as error:
        return f"nothing can be kept in {cache.root}: {error.strerror or error}"
    payload = change_fields(request.payload, {"target": str(target), "cache": str(cache.compiler)})
    outcome = session.run(replace(request, payload=payload))
    if outcome is None:
        cache.discard(target, headers=False)
        return session.refusal()
    return outcome


def key_for(session: Session, request: Request) -> str | None:
    """Content key of the package that ``request`` makes; None where there is no compiler to make it."""
    host, payload = session.case.host, compile_of(request)
    compiler = compiler_of(host.tools)
    if compiler is None or host.torch is None:
        return None
    libraries = session.case.options.custom_op_libraries
    machine = f"{host.machine} {' '.join(sorted(host.cpu_flags))} {host.threads}"
    settings: JsonObject = {"config": payload.config, "printer": payload.printer}
    settings |= {"provenance": payload.provenance, "bisect": payload.bisect}
    if device_of(session.case) == "cuda":
        gpu = next(iter(host.gpus), None)
        settings["printed_kernels"] = payload.printed_kernels
        settings["gpu"] = f"{gpu.name} {gpu.compute_capability} {host.cuda_driver}" if gpu is not None else None
    files = (session.case.options.reference, session.case.options.setup, *libraries)
    return key_of(__version__, host.torch.version, host.torch.path, compiler, machine, settings, files=files)


def run_planned(session: Session, probe: Probe, ask: Callable[[Request], T]) -> T | None:
    """Call ``ask`` with the request of ``probe``; None, with the reasons reported, where it has none.

    An error of ours, or a cache that fails, costs only this probe.
    """
    with session.guard(probe.code, probe.name):
        plan = plan_of(probe, session)
        if isinstance(plan, Request):
            return ask(plan)
        parts = plan if isinstance(plan, tuple) else (plan,)
        session.not_checked += [part for part in parts if isinstance(part, NotChecked)]
    return None


def target_of(outcome: Outcome) -> Path:
    """Path that the compile of ``outcome`` wrote to."""
    return Path(compile_of(outcome.request).target)


def model_in(package: str) -> tuple[ModelEntry | None, ModelContract | None]:
    """The model of a package that was compiled here, and its contract."""
    artifact = read_artifact(package, crc_limit=0)
    model = select_model(artifact, None)
    return model, read_contract(artifact, model) if model is not None else None


# Bisect.
BISECT_CAUSE = "codegen-bug"
# Least time for a compile as a multiple of its usual time; one that is cut short shows nothing.
MARGIN = 1.3
_OVERLOAD = re.compile(r"<OpOverload\(op='(?P<op>[\w.]+)', overload='(?P<overload>\w+)'\)>")


@dataclass(slots=True, kw_only=True)
class CompilerSearch:
    """A search under way.

    ``answers`` include those of earlier calls; ``runs`` maps those of this call to the ids of their runs. ``last`` is
    the last run, ``whole`` the id of the run with the whole compiler on, ``count`` the number of answers in this call.
    ``decomposed`` is whether the decomposed program is right, None where that is not known.
    """

    made: Recompiled
    compile: Request
    key: str
    answers: dict[str, str]
    last: Outcome
    whole: str
    decomposed: bool | None = None
    runs: dict[str, str] = field(default_factory=dict)
    count: int = 0
    seconds: float = 0.0


def bisect(session: Session, made: Recompiled, cache: CompileCache | None = None) -> None:
    """Bisect the compiler, if ``made`` is wrong as well and there is time; adds its finding."""
    run_planned(session, compiler_bisect.PROBE, lambda plan: _bisect(session, made, cache or open_cache(), plan))


def bisect_proof(session: Session) -> dict[str, str]:
    """Cause proven by a search, with how: wrong with the step on, right with it disabled; empty without one."""
    item = next((item for item in session.findings if item.code == compiler_bisect.CODE and item.kind == "found"), None)
    if item is None:
        return {}
    bad, good = (item.facts.get(name) for name in ("bad_run", "good_run"))
    step = f"{item.facts['word']} {item.facts['number']} of {item.facts['steps']} ({item.subject})"
    return {BISECT_CAUSE: f"wrong with {step} on{_at(bad)}, right with it off{_at(good)}"}


def _bisect(session: Session, made: Recompiled, cache: CompileCache, plan: Request) -> None:
    key = key_of(made.key, session.case.generated, files=(session.case.inputs_path,))
    whole = session.outcomes[recompiled.NAME]
    stage = known_stages(session.outcomes).get(DECOMPOSED)
    search = CompilerSearch(
        made=made,
        compile=plan,
        key=key,
        answers=cache.answers(key),
        last=whole,
        whole=whole.id,
        decomposed=None if stage is None or stage.verdict not in (AGREES, DIFFERS) else stage.verdict == AGREES,
    )
    while isinstance(step := _next(search), BisectionStep):
        reason = _ask(session, cache, search, step)
        if reason is not None:
            left = (step.of - step.done) * made.seconds
            session.add([compiler_bisect.unfinished_evidence(search.last, _text(step), step.done, step.of, left)])
            session.leave_out(
                compiler_bisect.CODE, compiler_bisect.NAME, f"{reason}; the same command resumes from here"
            )
            return
    match step:
        case WrongStep():
            session.add([compiler_bisect.faulty_step_evidence(search.last, _bisect_facts(search, step))])
        case StepNotFound():
            session.add([compiler_bisect.not_found_evidence(search.last, step.tried, step.failed, search.count)])
    if (without := search.answers.get(WITHOUT_PASSES)) in (GOOD, BAD):
        last = session.findings[-1]
        session.findings[-1] = replace(last, facts={**last.facts, "without_passes": without})


def _next(search: CompilerSearch) -> BisectionStep | WrongStep | StepNotFound:
    """Next step. A healing step is run again in this call where only an earlier call had its answer."""
    step = next_step(search.made.steps, search.answers, decomposed=search.decomposed)
    if isinstance(step, WrongStep) and f"{step.subsystem}:{step.heals_at}" not in search.runs:
        known = len(search.answers)
        steps = len(search.made.steps[step.subsystem])
        return BisectionStep(
            backend=step.backend, subsystem=step.subsystem, max=step.heals_at, steps=steps, done=known, of=known + 1
        )
    return step


def _ask(session: Session, cache: CompileCache, search: CompilerSearch, question: BisectionStep) -> str | None:
    """Run one step; the reason why there is no answer, or None."""
    if session.deadline is not None and session.deadline - time.monotonic() < MARGIN * search.made.seconds:
        return "the time budget is too short for one more compile"
    began = time.monotonic()
    session.begins(_name(question))
    answer = _answer(session, cache, search, question)
    if answer not in (GOOD, BAD, FAILED):
        return answer
    search.count += 1
    search.seconds += time.monotonic() - began
    search.answers[question.key] = answer
    search.runs[question.key] = search.last.id
    cache.remember(search.key, search.answers)
    session.ended(_name(question), time.monotonic() - began, f"{_text(question)}: {answer}", ok=answer == GOOD)
    return None


def _answer(session: Session, cache: CompileCache, search: CompilerSearch, question: BisectionStep) -> str:
    """``good``, ``bad``, ``failed``, or why there is no answer."""
    switch: JsonObject = {"backend": question.backend, "subsystem": question.subsystem, "max": question.max}
    payload = change_fields(search.compile.payload, {"bisect": switch})
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
        if not succeeded(compiled):
            return FAILED
        request = recompiled.comparison_request(session.history(), compiler_bisect.NAME, str(package), _text(question))
        ran = session.run(request)
        if ran is None:
            return session.refusal()
        search.last = ran
        verdict = recompiled.verdict_of(ran)
        return FAILED if verdict is None else GOOD if verdict else BAD
    finally:
        cache.discard(package, headers=not isinstance(compiled.ending, Exited))


def _bisect_facts(search: CompilerSearch, found: WrongStep) -> dict[str, FactValue]:
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
        "runs": search.count,
        "answers": len(search.answers),
        "seconds": round(search.seconds, 1),
        "good_run": search.runs.get(f"{found.subsystem}:{found.heals_at}"),
        # Where an earlier call had that answer: the step is on in the compile with nothing off as well.
        "bad_run": search.runs.get(f"{found.subsystem}:{found.number}", search.whole),
    }


def operator_of(step: CompilerStep) -> str:
    """Operator of a lowering or decomposition, as ``torch.ops`` spells it, or the name of a pass."""
    if step.target is not None:
        return step.target
    overload = _OVERLOAD.fullmatch(step.name)
    return f"{overload['op']}.{overload['overload']}" if overload is not None else step.name


def _at(run: FactValue) -> str:
    return f" ({run})" if run is not None else ""


def _name(question: BisectionStep) -> str:
    return f"bisect {WORDS[question.subsystem]} {question.done + 1}/{question.of}"


def _text(question: BisectionStep) -> str:
    count = question.max + 1
    of = f"{question.steps} {question.subsystem}"
    return f"none of {of}" if count == 0 else f"the first {count} of {of}"
