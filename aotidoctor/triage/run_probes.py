"""Run probes in child processes, each only if its answer can change the diagnosis.

As with checks, a probe that raises becomes ``NotChecked`` with its traceback, and the session goes on.

Setups of plugins are modules that every child imports before the package. Each is imported alone first: one that
raises, hangs or crashes would end every run and look like a fault of the model. It is left out and reported.

A package without wrapper.cpp has its contract recovered in a child. The package's own input checks are called with
stand-in tensors (on the meta device, so nothing can be read), one complaint at a time, until dtype, dims, bounds,
strides and device of each input are known. The kernels never run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from aotidoctor.checks.registry import CHECKS
from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.artifact import RUNNABLE_KINDS
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import UsageError
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.jobs import Job, UserCode
from aotidoctor.model.report import current_extensions
from aotidoctor.model.run import Exited, Outcome, Request, Signalled, TimedOut
from aotidoctor.model.torch_names import CHECK_INPUTS
from aotidoctor.probes import LATER, PROBES
from aotidoctor.probes.payload import base_payload, device_of
from aotidoctor.probes.probe import Plan, Probe, Reuse, succeeded, unasked
from aotidoctor.probes.tool_effects import own_failure, remove_stage, tool_failure_note
from aotidoctor.readers.contract.sourceless_contract import recovered_contract
from aotidoctor.triage.open_case import with_inputs, with_reference
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import run_check

HANG_S = 5.0
DEFAULT_TIMEOUT = Options().timeout
# Lower bound of the rate at which a package is unpacked and loaded, in bytes per second.
SLOWEST_READ = 20e6
# Limit of a probe's time as a multiple of the plain run's.
SLOWER = 6.0


def run_probes(session: Session, *, only: Collection[str] | None = None, but: Collection[str] = ()) -> None:
    """Run all probes in order, each only if its answer can change the diagnosis.

    ``only`` are the names of those that run now, ``but`` of those that do not; these are not reported as unchecked.

    Raises:
        KeyboardInterrupt: the user interrupted; the probes that were left are in ``session.not_checked``.
    """
    left = [
        probe
        for probe in (*PROBES, *current_extensions().probes)
        if (only is None or probe.name in only) and probe.name not in but
    ]
    try:
        while left:
            _ask_probe(left[0], session)
            left.pop(0)
    except KeyboardInterrupt:
        session.not_checked += [NotChecked(code=item.code, name=item.name, reason="interrupted") for item in left]
        raise


def skip_probes(session: Session, reason: str, *, but: Collection[str]) -> None:
    """Leave out all probes but those in ``but``, for this reason."""
    left = [probe for probe in _all() if probe.name not in but]
    session.not_checked += [NotChecked(code=probe.code, name=probe.name, reason=reason) for probe in left]


def _all() -> tuple[Probe, ...]:
    return (*PROBES, *LATER, *current_extensions().probes)


def _ask_probe(probe: Probe, session: Session) -> None:
    with session.guard(probe.code, probe.name):
        plan = plan_of(probe, session)
        for part in plan if isinstance(plan, tuple) else (plan,):
            match part:
                case NotChecked():
                    session.not_checked.append(part)
                case Reuse(probe=name) if name not in session.outcomes:
                    session.not_checked.append(unasked(probe.code, probe.name, f"{name} was not run"))
                case Reuse(probe=name):
                    outcome = session.outcomes[name]
                    session.add(probe.read(session.case, session.history(), outcome), probe.left_out(outcome))
                case Request():
                    _run_probe(probe, part, session)


def plan_of(probe: Probe, session: Session) -> Plan:
    """Plan of a probe, as far as the options permit it."""
    options = session.case.options
    if probe.name in options.skip_rungs:
        return NotChecked(code=probe.code, name=probe.name, reason="--skip-probes")
    # All other runs are compared with the plain run.
    if options.rungs is not None and probe.name not in (*options.rungs, "plain_run"):
        return NotChecked(code=probe.code, name=probe.name, reason="not among --probes")
    return probe.plan(session.case, session.history())


def _run_probe(probe: Probe, request: Request, session: Session) -> None:
    session.begins(probe.name)
    outcome = session.run(_shorten_timeout(request, session))
    if outcome is None:
        session.leave_out(probe.code, probe.name, session.refusal())
        return
    stage = own_failure(session.case, outcome)
    if stage is not None:
        # The same run without the stage of ours that failed. A signal in the call that comes all the same was not
        # caused by that stage.
        repeated = session.run(_shorten_timeout(remove_stage(outcome.request, stage), session))
        both = repeated is not None and all(isinstance(one.ending, Signalled) for one in (outcome, repeated))
        if repeated is None or not (both and repeated.stage.startswith("run")):
            session.not_checked.append(tool_failure_note(probe.code, probe.name, outcome, stage))
        outcome = repeated or outcome
    if probe.name != "plain_run" and outcome.error is not None and own_failure(session.case, outcome) == "scan":
        # Our stage failed once more, which is noted already: the model has no part in it.
        session.ended(probe.name, outcome.seconds, "failed here")
        return
    session.not_checked += probe.left_out(outcome)
    session.findings[:] = probe.revise(session.findings, outcome)
    session.outcomes[request.probe] = outcome
    if probe.thread_checks:
        _correct_threads(session, outcome, probe.thread_checks)
    found = list(probe.read(session.case, session.history(), outcome))
    session.add(found)
    verdict = found[0].observed if found else "as expected"
    fine = not any(item.severity is Severity.ERROR for item in found)
    session.ended(probe.name, outcome.seconds, verdict, ok=fine)


def _shorten_timeout(request: Request, session: Session) -> Request:
    """Limit the wait for a hang that is known: until the stage is reached, and some seconds more.

    A slow run may be slower under another setting: the limit grows with the time of the plain run, and that of the
    plain run with the size of the package, unless the user has set one.
    """
    plain = session.outcomes.get("plain_run")
    if plain is None:
        grown = session.case.artifact.size / SLOWEST_READ
        return _extend_timeout(request, request.timeout + grown, session)
    if not isinstance(plain.ending, TimedOut):
        return _extend_timeout(request, SLOWER * sum(plain.stages.values()), session)
    return replace(request, timeout=min(request.timeout, sum(plain.stages.values()) + HANG_S))


def _extend_timeout(request: Request, seconds: float, session: Session) -> Request:
    """The request with at least ``seconds``, where the limit is not the user's own."""
    if session.case.options.timeout != DEFAULT_TIMEOUT or request.timeout >= seconds:
        return request
    return replace(request, timeout=seconds)


def _correct_threads(session: Session, outcome: Outcome, names: Collection[str]) -> None:
    """Take the thread count from the child, as a setup file may set it, and repeat the checks that depend on it."""
    threads = parse_answer(Acted, outcome.result).threads
    host = session.case.host
    if threads is None or threads == (session.case.options.threads or host.threads):
        return
    session.case = replace(session.case, host=replace(host, threads=threads))
    known = {item.code for item in session.findings}
    for check in (check for check in CHECKS if check.name in names and check.code not in known):
        result = run_check(check, session)
        if not isinstance(result, NotChecked):
            session.add(result)


def check_probe_names(case: Case) -> None:
    """Raise UsageError for a probe that does not exist."""
    known = [probe.name for probe in _all()]
    for option, names in (("--probes", case.options.rungs or ()), ("--skip-probes", case.options.skip_rungs)):
        for name in names:
            if name not in known:
                raise UsageError(f"{option}: no probe is called {name!r}; there are {', '.join(known)}")


def plan_lines(session: Session) -> tuple[str, ...]:
    """One line per probe: whether it would run, and why; nothing is run."""
    lines = []
    for probe in _all():
        match plan_of(probe, session):
            case NotChecked(reason=reason) if probe.name == "plain_run" or reason.startswith(("--", "not among")):
                lines.append(f"{probe.name}: no - {reason}")
            case NotChecked():
                lines.append(f"{probe.name}: {probe.asked_when} - {probe.asks}")
            case _:
                lines.append(f"{probe.name}: yes - {probe.asks}")
    return tuple(lines)


# Setups of plugins.
PLUGIN_SETUP_CODE = "AD-PLUGIN"
_LIMIT_S = 30.0


def admit_plugin_setups(session: Session) -> None:
    """Add the plugins' setups that can be imported to the options of the case."""
    if session.runner is None:
        return
    good = []
    for module in current_extensions().setups:
        request = Request(
            probe="plugin_setup", job="setup_only", payload=Job(code=UserCode(imports=(module,))), timeout=_LIMIT_S
        )
        outcome = session.runner.run(request)
        match outcome.error, outcome.ending:
            case None, Exited(done=True):
                good.append(module)
                continue
            case None, ending:
                problem = f"importing it ended in {type(ending).__name__}"
            case error, _:
                problem = f"{error.type}: {error.message[:500]}"
        session.leave_out(PLUGIN_SETUP_CODE, f"setup {module}", f"the plugin cannot be used: {problem}")
    if good:
        options = replace(session.case.options, imports=tuple(good))
        session.case = replace(session.case, options=options)


# Contracts of packages without wrapper.cpp.
CODE, NAME = "AD-RUN-014", "recover_contract"


def recover_contract(session: Session) -> None:
    """Replace the case's missing contract by a recovered one, or note why there is none."""
    reason = _why_not(session)
    if reason is not None:
        session.leave_out(CODE, NAME, reason)
        return
    name = session.case.model.name if session.case.model is not None else "model"
    request = Request(
        probe=NAME,
        job="recover",
        payload=replace(base_payload(session.case), model_name=name),
        env={CHECK_INPUTS: "1"},
        timeout=session.case.options.timeout,
        purpose="the contract from the package's own input checks",
    )
    outcome = session.run(request)
    if outcome is None or not succeeded(outcome):
        if outcome is None:
            reason = session.refusal()
        elif outcome.error is not None:
            reason = f"probing failed in {outcome.stage}: {outcome.error.type}: {outcome.error.message[:200]}"
        else:
            reason = f"the probing child ended in {outcome.stage}"
        session.leave_out(CODE, NAME, reason)
        return
    contract = recovered_contract(name, outcome.result)
    session.case = with_inputs(replace(session.case, contract=with_reference(contract, session.case.reference)))


def _why_not(session: Session) -> str | None:
    case = session.case
    if case.artifact.kind not in RUNNABLE_KINDS or case.artifact.bad_crc or case.artifact.names_unsafe:
        return "the file is not executed"
    if case.model is None or not case.model.shared_objects:
        return "there is no shared object to probe"
    if case.host.torch is None:
        return "torch is not installed here"
    return "a CUDA package is not probed" if device_of(case) != "cpu" else None
