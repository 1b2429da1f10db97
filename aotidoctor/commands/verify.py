"""Judge an exported program by its archive and by a child that rebuilds it (``aotidoctor verify``).

Both use the same codes. If the child could rebuild the program, its answer counts: it sees operators where the archive
has names. Otherwise (no torch, a program that cannot be rebuilt) the archive's answer stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aotidoctor.checks.registry import CHECKS
from aotidoctor.commands.classify import classify_text
from aotidoctor.commands.diagnose_package import REFERENCE_MODULES, runner_or_new
from aotidoctor.diagnosis.rank import with_paths
from aotidoctor.files import open_regular
from aotidoctor.logs.diagnose_log import log_diagnoses
from aotidoctor.model.answers import JudgedProgram
from aotidoctor.model.artifact import ArtifactKind, ExportedFacts
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import UsageError
from aotidoctor.model.evidence import NotChecked, Severity, Violation, describe_failure
from aotidoctor.model.jobs import Verify
from aotidoctor.model.record import JsonValue, record
from aotidoctor.model.report import Diagnosis, OnEvent, Report
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import user_code
from aotidoctor.program import verify_stages
from aotidoctor.program.static_verify import NAME as STATIC
from aotidoctor.program.verify_stages import (
    AGAINST,
    is_other_program,
    judge_against,
    open_program,
    origin_sentence,
    origin_unchecked,
    static_answer,
    violation_evidence,
    why_no_program,
    with_advice,
    without_called_shims,
)
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage.finish import KNOWN, Invocation, finish, is_lead
from aotidoctor.triage.missing_file import no_such_file, refuse_missing_code
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, run_check
from aotidoctor.triage.try_remedies import ProgramSource, try_remedies

if TYPE_CHECKING:
    from aotidoctor.runner.runner import Runner

NAME = "verify"
INSTALL = "pip install 'aotidoctor[torch]'"
# This check expects an AOTInductor package, which an exported program is not.
_LARGEST_SHAPES = 1 << 20
_WRONG_KIND = "AD-ART-002"


@record
class VerifyRequest:
    """Options of a verification. ``program`` is an archive, or ``module.py:function`` that returns a program.

    ``against`` is a package that may have been compiled from the program.
    """

    program: str
    options: Options
    dynamic_shapes: str | None = None
    against: str | None = None

    @property
    def is_function(self) -> bool:
        """Whether a function of the user's makes the program."""
        return ".py:" in self.program

    @property
    def path(self) -> str:
        """The file of the program or of the function."""
        return self.program.rpartition(":")[0] if self.is_function else self.program


def verify(
    question: VerifyRequest,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
) -> Report:
    """Judge the program: rebuilding it executes its pickled parts. It is run where a remedy of a cause is tried."""
    invocation = Invocation(NAME, argv)
    declared = read_dynamic_shapes(question.dynamic_shapes)
    refuse_missing_code(question.options)
    # The warm worker imports what rebuilding a program needs while the parent reads.
    with runner_or_new(runner, environ, REFERENCE_MODULES) as runs:
        runs.prewarm()
        artifact = read_artifact(question.path)
        host = read_host(artifact=artifact, environ=environ)
        options = question.options
        if options.model is not None:
            options = replace(options, reference=question.program)
        case = Case(artifact=artifact, host=host, options=options)
        session = Session(case=case, runner=runs, on_event=on_event or (lambda _event: None))
        if artifact.kind is ArtifactKind.MISSING:
            problem: str | None = no_such_file(question.path)
        elif artifact.kind is ArtifactKind.UNREADABLE:
            problem = f"{question.path}: {artifact.problem or 'unreadable'}"
        else:
            problem = None if question.is_function else why_no_program(artifact)
        interrupted = False
        if problem is None:
            try:
                _judge(session, question, declared)
            except KeyboardInterrupt:
                interrupted = True
    diagnoses, localization = _causes(session, question), None
    if question.options.model is not None:
        from aotidoctor.localize.stages import custody
        from aotidoctor.model.localization import Localization
        from aotidoctor.probes import stages
        from aotidoctor.triage.treated_run import TreatmentVerdicts, apply_verdicts

        confirmed, untried = stages.proof(session.findings), stages.untried_causes(session.findings)
        diagnoses = apply_verdicts(diagnoses, TreatmentVerdicts(confirmed=confirmed, shown=untried))
        localization = Localization(stages=custody(session.findings, session.outcomes))
    if not interrupted and diagnoses:
        raised = verify_stages.raised_error(next(iter(session.runs), None))
        message = raised.message if raised is not None else ""
        program = question.options.model or question.program
        is_function = question.is_function or question.options.model is not None
        source = ProgramSource(program=program, is_function=is_function, message=message)
        try:
            diagnoses = try_remedies(session, diagnoses, source)
        except KeyboardInterrupt:
            interrupted = True
    if not interrupted:
        problem = problem or _unanswered_reason(session)
    return finish(
        session,
        diagnoses,
        invocation,
        verdict="problem" if is_other_program(session.findings) else None,
        interrupted=interrupted,
        cannot_examine=problem,
        localization=localization,
        extra=verify_stages.verifier_result(session.runs) | origin_sentence(session.findings),
    )


def read_dynamic_shapes(path: str | None) -> JsonValue:
    """Read ``--dynamic-shapes``: JSON by argument, as torch.export takes it: ``{"x": {"0": "batch"}}``."""
    if path is None:
        return None
    try:
        with open_regular(path) as stream:
            data = stream.read(_LARGEST_SHAPES + 1)
        if len(data) > _LARGEST_SHAPES:
            raise UsageError(f"{path}: larger than {_LARGEST_SHAPES:,} bytes")
        found: JsonValue = json.loads(data)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict | list):
        raise UsageError(f'{path}: expected an object such as {{"x": {{"0": "batch"}}}}')
    return found


def _judge(session: Session, question: VerifyRequest, declared: JsonValue) -> None:
    if not question.is_function:
        for check in CHECKS:
            if check.code.startswith("AD-ART-") and check.code != _WRONG_KIND:
                result = run_check(check, session)
                if not isinstance(result, NotChecked):
                    session.add(result)
        if any(item.severity is Severity.ERROR for item in session.findings):
            return
    programs = _judge_rebuilt(session, question, declared)
    if session.case.options.model is not None:
        # Imported only where something is executed.
        from aotidoctor.triage.examine import follow_stages

        follow_stages(session)
    if question.is_function:
        if question.against is not None:
            session.not_checked.append(
                origin_unchecked("a function's program has no archive to compare the package with")
            )
        return
    archive = open_program(question.path)
    if isinstance(archive, str):
        session.not_checked.append(NotChecked(code="VERIFY", name=NAME, reason=archive))
        return
    if not any(program.problem is None for program in programs):
        session.add(*static_answer(archive, session.findings))
    else:
        session.add(verify_stages.merged_findings(archive))
    if question.against is not None:
        session.add(*judge_against(archive, question.against, question.options.model_name))
        session.findings[:] = without_called_shims(session.findings)


def _judge_rebuilt(session: Session, question: VerifyRequest, declared: JsonValue) -> Sequence[JudgedProgram]:
    """Judge the programs in a child that rebuilds them; empty when there is no torch to do that."""
    host = session.case.host
    if host.torch is None:
        why = f"{host.torch_problem or 'torch is not installed here'}; {INSTALL}"
        session.not_checked.append(NotChecked(code="VERIFY", name=NAME, reason=why))
        return ()
    outcome = _ask_child(session, question, declared)
    programs = verify_stages.judged_programs(outcome)
    if (raised := verify_stages.raised_error(outcome)) is not None:
        # What torch.export refuses is read as the log that the user would have, by the same table of messages.
        if raised.by == "export":
            session.add(classify_text(raised.traceback.encode(), "traceback")[0])
        session.add([verify_stages.raised_evidence(raised, question.program)])
    elif not programs:
        # With the install line where torch turns out to be what is missing.
        error = outcome.error if outcome is not None else None
        lacks = error is not None and error.type == "ModuleNotFoundError" and "'torch'" in error.message
        session.not_checked.append(
            NotChecked(
                code="VERIFY",
                name=NAME,
                reason=(verify_stages.why_no_answer(outcome) + (f"; {INSTALL}" if lacks else "")),
            )
        )
        if error is not None and outcome is not None and outcome.stage == "setup":
            # A setup file that raises is the user's fault, not the program's.
            found = Violation(
                code="VERIFY-L06",
                kind="setup",
                observed=f"{error.type}: {error.message}",
                expected="operators that can be loaded",
                target=question.options.setup or ", ".join(question.options.custom_op_libraries) or question.program,
            )
            session.add([violation_evidence(found, question.path)])
    for program in programs:
        if program.unknown_inputs:
            raise UsageError(f"{question.dynamic_shapes}: the program has no input {program.unknown_inputs[0]}")
        try:
            if program.refusal:
                session.add(classify_text(program.refusal.encode(), "traceback")[0])
            session.add(verify_stages.program_findings(program, question.path))
        except KeyError:
            session.not_checked.append(NotChecked(code="VERIFY", name=NAME, reason=describe_failure()))
        session.not_checked.extend(verify_stages.rules_left_out(program))
        if program.problem is not None and not program.records:
            # No fault of the program: this torch cannot read it.
            session.not_checked.append(NotChecked(code="VERIFY", name=NAME, reason=program.problem[:300]))
    return programs


def _ask_child(session: Session, question: VerifyRequest, declared: JsonValue) -> Outcome | None:
    options = session.case.options
    payload = Verify(program=question.program, code=user_code(session.case), dynamic_shapes=declared)
    session.begins(NAME)
    outcome = session.run(
        Request(
            probe=NAME,
            job="verify",
            payload=payload,
            timeout=options.timeout,
            memory_limit=options.memory_limit,
            purpose="rebuild the program and check it against every rule",
        )
    )
    if outcome is not None:
        raised = verify_stages.raised_error(outcome)
        verdict = "rebuilt" if verify_stages.judged_programs(outcome) else verify_stages.why_no_answer(outcome)
        words = verify_stages.raised_evidence(raised, question.program).observed if raised is not None else verdict
        session.ended(NAME, outcome.seconds, words, ok=outcome.error is None and raised is None)
    return outcome


def _causes(session: Session, question: VerifyRequest) -> tuple[Diagnosis, ...]:
    """The causes, worded for a program: commands name it, and the package that is still to be made."""
    case = session.case
    named = replace(
        case,
        artifact=replace(case.artifact, path="model.pt2"),
        options=replace(case.options, reference=question.path),
        # A command must not write over the file that only makes the program.
        reference=None if question.is_function else ExportedFacts(name=""),
    )
    logged = [item for item in session.findings if item.code == KNOWN]
    if logged and (causes := log_diagnoses(logged)) and not is_lead(causes[0], logged):
        raised = verify_stages.raised_error(session.runs[0])
        words = verify_stages.raised_evidence(raised, question.program).observed if raised is not None else ""
        return tuple(replace(item, looked_like=words) for item in causes)
    found = name_causes(Session(case=named, runner=None, findings=session.findings))
    return tuple(with_paths(item, named) for item in with_advice(found, session.findings))


def _unanswered_reason(session: Session) -> str | None:
    """The reason why no findings do not mean a healthy program; None if all was answered, or there is a fault."""
    if any(item.severity is Severity.ERROR for item in session.findings):
        return None
    model = next((item.reason for item in session.not_checked if item.name == "stage eager"), None)
    if model is not None:
        return f"--model: {model}"
    against = next((item.reason for item in session.not_checked if item.name == AGAINST), None)
    if against is not None:
        return f"not compared with the package: {against}"
    # None, too, where a child or the archive itself was judged.
    if session.findings or any(item.name == STATIC for item in session.not_checked):
        return None
    reason = next((item.reason for item in session.not_checked if item.code == "VERIFY"), None)
    return None if reason is None else f"not verified: {reason}"
