"""Examine one package with its inputs: what `run`, `check`, `localize`, `compare`, `inspect` and `env` share.

package ─► artifact ─► contract ─┐ inputs ──► inputs ───────────────┼─► case ─► checks ─► probes ─► diagnosis ─►
treatment ─► report host ────► host ─────────────────┘
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.interruption import held, interruptible
from aotidoctor.model.artifact import RUNNABLE_KINDS, Artifact, ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.record import as_list
from aotidoctor.model.report import Event, EventKind, OnEvent, Report, current_extensions
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.package.zip_archive import DEFAULT_CRC_LIMIT, QUICK_CRC_LIMIT
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import Invocation, session_report
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes, overlooked_by_checks, run_checks

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet
    from aotidoctor.model.report import Diagnosis
    from aotidoctor.model.run import Request
    from aotidoctor.runner.runner import Runner
    from aotidoctor.triage.samples import Sample

# Importing these takes seconds; the warm worker does it once, for all runs that compare with the reference.
REFERENCE_MODULES = ("torch.export.pt2_archive._package", "torch._export.serde.serialize")
# Calls of a larger package take as long as that; behind those of a small one it would only take more memory.
_LARGE = 256 << 20
# The first call of an operator that is defined in Python imports these.
_OPERATOR_MODULES = ("torch._dynamo",)

_NOT_EXECUTED_EXECUTORCH = "`check` executes nothing; an ExecuTorch program runs in its runtime"
# Least seconds for a load that compiles.
_LOAD_S = 300.0
# Checks of the file alone.
_OF_THE_FILE = ("AD-ART", "AD-PTE")
NOT_EXECUTED = "`check` does not execute the package; use `aotidoctor run`"


def diagnose(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    static_only: bool = False,
    command: str = "run",
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
    live: InputSet | None = None,
) -> Report:
    """Examine a package with its inputs.

    ``static_only``: no child process, no torch, nothing executed. ``command`` is the name that the report gets;
    ``compare`` runs only what the comparison with the reference needs.
    ``runner`` may be given to examine several packages with one warm worker; the caller then closes it. ``live`` holds
    inputs that are already described; a run needs them as a file.
    """
    invocation = Invocation("check" if static_only else command, argv)
    if options.reference is None and options.model is not None:
        # The model is the reference of the package as well where there is no program.
        options = replace(options, reference=options.model)
    notify = on_event or (lambda _event: None)
    modules = early_modules(options, path)
    # What was found is not lost while the child processes are ended.
    with held(), nullcontext() if static_only else runner_or_new(runner, environ, modules) as runs:
        notify(Event(kind=EventKind.STAGE, name="read"))

        def prewarm(artifact: Artifact) -> None:
            # The child imports torch while this process reads, as soon as it is clear that there is something to run.
            if runs is not None and artifact.kind in RUNNABLE_KINDS and not artifact.names_unsafe:
                runs.prewarm()

        samples: tuple[Sample, ...] = ()
        if runs is not None and inputs_path is not None and live is None:
            from aotidoctor.triage.samples import examine_samples, samples_in, samples_of_list

            samples = samples_in(inputs_path)
        with interruptible():
            limit = QUICK_CRC_LIMIT if static_only else DEFAULT_CRC_LIMIT
            given = None if samples else inputs_path
            case, unread = open_case.open_case(
                path, given, options, environ, crc_limit=limit, on_contents=prewarm, live=live
            )
            if runs is not None and given is not None and live is None:
                samples = samples_of_list(case)
        deadline = None if options.budget is None else time.monotonic() + options.budget
        session = Session(case=case, runner=runs, on_event=notify, deadline=deadline, not_checked=unread)
        called = None
        try:
            with interruptible():
                if samples:
                    one, called = examine_samples(session, samples, lambda one: _examine(one, command))
                    session, diagnoses, interrupted = one.session, one.diagnoses, one.interrupted
                else:
                    diagnoses, interrupted = _examine(session, command)
            if runs is not None and runs.unseen and session.runs:
                session.leave_out("AD-RUN-024", "call_trace", runs.unseen)
        finally:
            if runs is not None:
                runs.forget()
        return replace(session_report(session, diagnoses, invocation, interrupted=interrupted), samples=called)


def early_modules(options: Options, package: str = "") -> tuple[str, ...]:
    """Modules that the warm worker imports, early or behind the first run: most runs would import them themselves."""
    operators = _OPERATOR_MODULES if open_case.defines_operators(options.setup) else ()
    if options.reference is None:
        return operators
    from aotidoctor.model.run import BEHIND

    behind = False
    with suppress(OSError, ValueError):
        behind = Path(package).stat().st_size >= _LARGE
    return (*operators, *((BEHIND,) if behind else ()), *REFERENCE_MODULES)


def runner_or_new(
    given: Runner | None, environ: Mapping[str, str], preload: tuple[str, ...]
) -> AbstractContextManager[Runner]:
    """The runner of a caller, who closes it, or a new one that ends with this command."""
    if given is not None:
        return nullcontext(given)
    # Imported only here: most commands start no process.
    from aotidoctor.runner.portable import make_runner

    return make_runner(environ=environ, preload=preload)


def _examine(session: Session, command: str) -> tuple[tuple[Diagnosis, ...], bool]:
    """The causes, and whether the session was interrupted."""
    error = session.case.inputs_error
    # Without the inputs there is no call to examine, without the reference nothing to compare with: a run would only
    # make the user wait for the answer.
    lacking = (
        f"the inputs file could not be read: {error}" if error and error.kind in ("missing", "unreadable") else None
    )
    lacking = lacking or open_case.reference_problem(session.case.options.reference)
    if session.runner is None or command == "run":
        session.case = open_case.with_precompiled(session.case, session.not_checked)
    if session.case.artifact.precompiled is not None and session.runner is not None and lacking is None:
        return _call_precompiled(session)
    program = command == "run" and session.case.artifact.kind in open_case.EXECUTORCH_KINDS
    if program and session.runner is not None and lacking is None:
        return _run_method(session)
    if session.runner is not None and lacking is None:
        # Imported only where something is executed.
        from aotidoctor.triage import examine

        if current_extensions().setups:
            from aotidoctor.triage.run_probes import admit_plugin_setups

            admit_plugin_setups(session)
        return examine.compare_runs(session) if command == "compare" else examine.examine(session)
    session.case = open_case.with_library_texts(session.case, session.not_checked)
    if session.runner is None:
        session.case = open_case.with_executorch(session.case, session.not_checked)
    run_checks(session)
    unexecuted = NOT_EXECUTED if session.case.artifact.executorch is None else _NOT_EXECUTED_EXECUTORCH
    reason = unexecuted if session.runner is None else str(lacking)
    session.not_checked.append(NotChecked(code="AD-RUN", name="runs", reason=reason))
    return name_causes(session), False


def _call_precompiled(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """Load and call an artifact of torch.compile in a child; a failure is read as a log of it would be."""
    from aotidoctor.model.jobs import change_fields
    from aotidoctor.probes import plain_run
    from aotidoctor.triage.compile_cache import open_cache

    run_checks(session)
    plan = plain_run.plan(session.case, session.history())
    if isinstance(plan, NotChecked):
        session.not_checked.append(plan)
        return name_causes(session), False
    # Its load compiles C++, and the first one the headers of torch.
    payload = change_fields(plan.payload, {"cache": str(open_cache().compiler)})
    try:
        outcome = session.run(replace(plan, payload=payload, timeout=max(plan.timeout, _LOAD_S)))
    except KeyboardInterrupt:
        return name_causes(session), True
    if outcome is None:
        session.leave_out(plain_run.CODE, plain_run.NAME, session.refusal())
        return name_causes(session), False
    session.outcomes[plain_run.NAME] = outcome
    session.add(plain_run.read(session.case, session.history(), outcome))
    found = name_causes(session)
    if found or outcome.error is None:
        return found, False
    return _causes_of_log(session, outcome.error.traceback, plain_run.NAME), False


def _causes_of_log(session: Session, text: str, name: str) -> tuple[Diagnosis, ...]:
    """The causes that the text of a run names, read as a log; its findings are added to the session's."""
    from aotidoctor.logs.diagnose_log import log_diagnoses, log_findings
    from aotidoctor.logs.log_reading import read_log

    known = len(session.findings)
    session.add(log_findings(read_log(BytesIO(text.encode()), name)))
    return log_diagnoses(session.findings[known:])


# A program in ExecuTorch's own runtime.
_RUNTIME = "executorch"
# Static findings with which it must not, or cannot, run; without its weights it does.
_FORBIDDING = ("AD-ART", "AD-HOST-001", "AD-PTE-002")


def _run_method(session: Session) -> tuple[tuple[Diagnosis, ...], bool]:
    """Check an ExecuTorch program, and call its method in the runtime of this Python, if there is one."""
    session.case = open_case.with_executorch(session.case, session.not_checked)
    run_checks(session)
    request = _method_request(session)
    try:
        outcome = session.run(request) if not isinstance(request, str) else None
    except KeyboardInterrupt:
        return name_causes(session), True
    if outcome is None:
        reason = request if isinstance(request, str) else session.refusal()
        session.leave_out("AD-RUN", "runs", reason)
        return name_causes(session), False
    from aotidoctor.commands.watch.watch_report import merge_causes
    from aotidoctor.probes import plain_run

    session.outcomes[plain_run.NAME] = outcome
    session.add([plain_run.read_ending(plain_run.CODE, session.case, outcome)])
    if session.case.inputs is None and outcome.succeeded:
        session.leave_out(
            "AD-RUN", "calls", "the program was opened and no method loaded or called: no inputs were given"
        )
    backends = as_list(outcome.result.get("backends"))
    program = session.case.artifact.executorch
    if program is not None and all(delegate.backend in backends for delegate in program.delegates):
        session.not_checked = [one for one in session.not_checked if one.name != "executorch_backend"]
    if outcome.succeeded:
        return name_causes(session), False
    # Its runtime logs what it refuses, and raises only a number.
    text = "\n".join((outcome.stderr_tail, outcome.error.message if outcome.error is not None else ""))
    logged = _causes_of_log(session, text, "stderr")
    return merge_causes(name_causes(session), logged, session.findings), False


def _method_request(session: Session) -> Request | str:
    """The run of the method, or why there is none."""
    from importlib.util import find_spec

    from aotidoctor.model.jobs import ExecutorchRun
    from aotidoctor.model.run import Request
    from aotidoctor.probes.payload import inputs_source, user_code

    case = session.case
    if case.artifact.executorch is None or case.contract is None:
        return "the file could not be read as an ExecuTorch program with a method to call"
    forbidding = next(
        (item for item in session.findings if item.severity is Severity.ERROR and item.code.startswith(_FORBIDDING)),
        None,
    )
    if forbidding is not None:
        return f"the program is not executed: {forbidding.message}"
    if case.contract.args is None:
        return "the program has several methods: --model-name names the one to call"
    if len(case.options.data) > 1:
        return "the runtime in Python takes one data file, and several were given"
    if find_spec(_RUNTIME) is None:
        return "ExecuTorch is not installed for this Python (pip install executorch): the program was only read"
    payload = ExecutorchRun(
        code=user_code(case),
        program=case.artifact.path,
        method=case.contract.model_name,
        data=next(iter(case.options.data), None),
        inputs=inputs_source(case),
    )
    timeout = case.options.timeout
    return Request(
        probe="plain_run", job="executorch", payload=payload, timeout=timeout, purpose="a call in ExecuTorch"
    )


def inspect(path: str, options: Options, *, argv: tuple[str, ...] = (), environ: Mapping[str, str]) -> Report:
    """Report a package's contents, contract and needs; execute nothing and judge the artifact only."""
    invocation = Invocation("inspect", argv)
    case, unread = open_case.open_case(path, None, options, environ, crc_limit=QUICK_CRC_LIMIT)
    case = open_case.with_executorch(open_case.with_library_texts(case, unread), unread)
    case = open_case.with_precompiled(case, unread)
    session = Session(case=case, runner=None)
    run_checks(session)
    # A choice between several models is no fault of a package that is not called.
    session.findings = [
        (replace(item, severity=Severity.INFO) if (item.code, item.kind) == ("AD-ART-011", "several") else item)
        for item in session.findings
        if item.code.startswith(_OF_THE_FILE)
    ]
    session.not_checked = [item for item in session.not_checked if item.code.startswith(_OF_THE_FILE)]
    session.not_checked += [item for item in (*unread, *overlooked_by_checks(case)) if item not in session.not_checked]
    return session_report(session, name_causes(session), invocation)


def env(*, argv: tuple[str, ...] = (), environ: Mapping[str, str], profile: str | None = None) -> Report:
    """Report what this host offers, or the host of a profile.

    Raises:
        UsageError: there is no such profile.
        CannotExamineError: it cannot be read.
    """
    invocation = Invocation("env", argv)
    if profile is None:
        host = read_host(artifact=None, environ=environ)
    else:
        host = open_case.host_of(Options(host=profile), None, environ)
    case = Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host)
    return session_report(Session(case=case, runner=None), (), invocation)


def plan(
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    live: InputSet | None = None,
) -> Report:
    """List the probes that ``run`` would start, and why; execute nothing."""
    from aotidoctor.triage.run_probes import check_probe_names, plan_lines

    invocation = Invocation("run", argv)
    case, unread = open_case.open_case(path, inputs_path, options, environ, crc_limit=QUICK_CRC_LIMIT, live=live)
    check_probe_names(case)
    session = Session(case=case, runner=None, not_checked=unread)
    if case.artifact.kind in open_case.EXECUTORCH_KINDS:
        session.case = open_case.with_executorch(case, session.not_checked)
    run_checks(session)
    report = session_report(session, name_causes(session), invocation)
    if session.case.artifact.executorch is None:
        return replace(report, plan=plan_lines(session))
    request = _method_request(session)
    answer = f"no - {request}" if isinstance(request, str) else "yes - does it load and answer?"
    return replace(report, plan=(f"plain_run: {answer}",))
