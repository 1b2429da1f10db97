"""``aotidoctor triton rehearse`` and ``--load-hook``: what the server would do, done in a child.

A model that the rules say would not be loaded is not rehearsed: the findings say why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from aotidoctor.commands.triton import case_of, report_on
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import UsageError
from aotidoctor.model.event import OnEvent
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import Hook
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.serving import Consequence, ServedModel, ServedVersion
from aotidoctor.model.serving_hook import INIT
from aotidoctor.probes.payload import base_payload
from aotidoctor.triage.finish import Stopwatch
from aotidoctor.triage.open_case import with_inputs
from aotidoctor.triage.session import Session
from aotidoctor.triton.hook_reading import read_hook_run
from aotidoctor.triton.init_parameter import SINCE
from aotidoctor.triton.judge import judge
from aotidoctor.triton.names import name_table
from aotidoctor.triton.open_models import open_models
from aotidoctor.triton.rehearsal import CannotRehearseError, payload, plan
from aotidoctor.triton.rehearsal_reading import CODE, Reading
from aotidoctor.triton.releases import find_release

HOOK = "TRITON-R46"


@record
class Wish:
    """What the user asks for.

    ``inputs`` is the path of the sample, None to call the init library only. ``requests`` are put together in one
    execution where the server would do that, None for the usual number. ``said`` maps names of the config to the user's
    paths of what clients send and expect under them. ``load_hook`` asks to call the init library.
    """

    inputs: str | None = None
    triton: str | None = None
    requests: int | None = None
    said: Mapping[str, str] = field(default_factory=dict)
    load_hook: bool = False
    options: Options = field(default_factory=Options)


def rehearse(
    path: str,
    wish: Wish,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """Judge what is in ``path``, and do what was asked for. Raises UsageError and CannotExamineError."""
    from aotidoctor.runner import Runner  # noqa: PLC0415 - the rules alone start no process

    watch = Stopwatch("triton", argv)
    release = find_release(wish.triton)
    with Runner(environ=environ) as runner:
        runner.prewarm()
        served = open_models(path, release, environ)
        if wish.inputs is not None and len(served.models) > 1:
            raise UsageError(f"{path} holds {len(served.models)} models; name the folder of one")
        tell = on_event or (lambda _event: None)
        session = Session(
            case=case_of(path, served), runner=runner, on_event=tell, not_checked=list(served.not_checked)
        )
        problem = None if served.models else f"no model for torch_aoti in {path}"
        found: list[Evidence] = []
        for model in served.models:
            said, not_checked = judge(model)
            session.not_checked.extend(not_checked)
            found.extend(said)
            if wish.load_hook:
                found.extend(_hook(model, wish, session))
            if wish.inputs is not None:
                seen, problem = _model(model, wish, session, _fatal(said))
                found.extend(seen)
        # What was seen to be wrong comes before what a rule remarks by the way.
        session.add(sorted(found, key=lambda item: -item.severity.rank))
        # Where the rules found why nothing can be rehearsed, that is the answer.
        known = any(item.severity is Severity.ERROR for item in found)
    return report_on(session, served.models, release, watch, cannot_examine=None if known else problem)


def _model(
    model: ServedModel, wish: Wish, session: Session, fatal: str | None
) -> tuple[tuple[Evidence, ...], str | None]:
    """What rehearsing the newest version that is served shows, or the reason why nothing is rehearsed."""
    version = next((item for item in reversed(model.served) if item.contract is not None), None)
    if fatal is not None:
        return _unasked(session, f"the server would not return an answer: {fatal}")
    if version is None:
        return _unasked(session, "there is no package to call")
    case = _case(model, version, wish)
    session.case = replace(session.case, inputs=case.inputs, inputs_path=wish.inputs, inputs_error=case.inputs_error)
    if case.inputs is None:
        return _unasked(session, str(case.inputs_error) if case.inputs_error is not None else "no inputs")
    table = name_table(case.contract, model.release) if case.contract is not None else None
    if table is None:
        return _unasked(session, "the package does not contain its call spec")
    try:
        rehearsal = plan(model, table, requests=wish.requests, said=wish.said)
    except CannotRehearseError as error:
        return _unasked(session, str(error))
    for note in rehearsal.notes:
        session.not_checked.append(NotChecked(code=CODE, name="batching", reason=note))
    outcome = _run(session, _request(case, payload(rehearsal), gpu=rehearsal.gpu))
    return (() if outcome is None else Reading(model=model, plan=rehearsal, outcome=outcome).findings()), None


def _case(model: ServedModel, version: ServedVersion, wish: Wish) -> Case:
    """The package as ``run`` would see it."""
    assert version.artifact is not None  # noqa: S101 - there is a contract
    case = Case(
        artifact=version.artifact,
        host=model.host,
        options=wish.options,
        model=version.entry,
        contract=version.contract,
        inputs_path=wish.inputs,
    )
    return with_inputs(case)


def _fatal(found: Sequence[Evidence]) -> str | None:
    """The first finding after which there is no answer to expect."""
    letter = Consequence.FAILS_TO_LOAD.value
    return next((f"{item.code}, {item.message}" for item in found if item.facts.get("consequence") == letter), None)


def _request(case: Case, rehearsal: JsonObject, *, gpu: int | None) -> Request:
    device, index = ("cpu", -1) if gpu is None else ("cuda", gpu)
    return Request(
        probe="rehearse",
        job="rehearse",
        payload=replace(base_payload(case), device=device, device_index=index, rehearsal=rehearsal),
        fresh=gpu is not None,
        timeout=case.options.timeout,
        memory_limit=case.options.memory_limit,
        purpose="what the server would do with these inputs",
    )


def _hook(model: ServedModel, wish: Wish, session: Session) -> tuple[Evidence, ...]:
    """Call the init library for the newest version that is served."""
    hook, version = model.hook, next(iter(reversed(model.served)), None)
    callable_ = hook is not None and hook.exists and not hook.problem and INIT in hook.symbols
    if hook is None or not callable_ or version is None or model.release.before(SINCE):
        reason = f"no library that Triton {model.release.name} would load and call"
        session.not_checked.append(NotChecked(code=HOOK, name="load_hook", reason=reason))
        return ()
    gpu = bool(model.settled and model.settled.kinds and model.settled.kinds[0] == "KIND_GPU")
    request = Request(
        probe="load_hook",
        job="hook",
        payload=Hook(library=hook.path, folder=version.directory, device_index=0 if gpu else -1),
        fresh=True,
        timeout=wish.options.timeout,
        purpose="native code of the init library is executed",
    )
    outcome = _run(session, request)
    return () if outcome is None else (read_hook_run(model, outcome),)


def _run(session: Session, request: Request) -> Outcome | None:
    name = f"{request.probe}: {request.purpose}"
    session.begins(name)
    outcome = session.run(request)
    if outcome is None:
        session.not_checked.append(NotChecked(code=CODE, name=request.probe, reason=session.refusal()))
        return None
    session.ended(name, outcome.seconds, outcome.stage)
    return outcome


def _unasked(session: Session, reason: str) -> tuple[tuple[Evidence, ...], str]:
    session.not_checked.append(NotChecked(code=CODE, name="rehearse", reason=reason))
    return (), f"not rehearsed: {reason}"
