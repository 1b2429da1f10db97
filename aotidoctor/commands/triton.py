"""Check a model repository against the rules of Triton, write a config, rehearse requests (``aotidoctor triton``).

A model that the rules reject is not rehearsed; the findings give the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Gpu, Options
from aotidoctor.model.errors import UsageError
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.jobs import Hook
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.report import OnEvent, Report
from aotidoctor.model.serving_config import INIT_FUNCTION, NameTable
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.missing_file import no_such_file
from aotidoctor.triage.open_case import select_model, with_inputs
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import name_causes
from aotidoctor.triton.call_spec import find_release, unknown_release_note
from aotidoctor.triton.init_library import INIT_LIBRARY_SINCE, read_hook_run
from aotidoctor.triton.judge import finding_of, judge_model
from aotidoctor.triton.open_models import ModelFolder, OpenedModels, open_models, read_config, server_defaults
from aotidoctor.triton.rehearsal import CannotRehearseError, plan_rehearsal, rehearsal_payload
from aotidoctor.triton.rehearsal_findings import REHEARSAL_CODE, RehearsalReading
from aotidoctor.triton.rules import RULES
from aotidoctor.triton.servable import ConfigOptions, write_config
from aotidoctor.triton.serving import Consequence, Release, ServedModel, ServedVersion
from aotidoctor.triton.tensor_names import name_table, remark_of

if TYPE_CHECKING:
    from aotidoctor.model.run import Outcome, Request


def judge_repository(path: str, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]) -> Report:
    """Judge the models in ``path`` as the server would. Raises UsageError and CannotExamineError."""
    invocation = Invocation("triton", argv)
    release = find_release(triton)
    served = open_models(path, release, environ)
    session = Session(case=serving_case(path, served), runner=None, not_checked=list(served.not_checked))
    for model in served.models:
        session.add(*judge_model(model))
    nothing = None if served.models else f"no model for torch_aoti in {path}"
    return serving_report(session, served.models, release, invocation, cannot_examine=nothing)


def serving_report(
    session: Session,
    models: tuple[ServedModel, ...],
    release: Release,
    invocation: Invocation,
    *,
    cannot_examine: str | None,
) -> Report:
    """Build the report on models for a release."""
    if (note := unknown_release_note(release)) is not None:
        session.not_checked.append(NotChecked(code="TRITON", name=f"Triton {release.name}", reason=note))
    diagnoses = name_causes(session)
    return finish(
        session,
        diagnoses,
        invocation,
        stage="host" if diagnoses else None,
        cannot_examine=cannot_examine,
        extra={
            "release": release.name,
            "server": release.server or "unknown",
            "models": ", ".join(model.name for model in models),
        },
    )


def serving_case(path: str, served: OpenedModels) -> Case:
    """The case of a folder, with the contract of its package if there is one model."""
    artifact = Artifact(path=path, kind=ArtifactKind.DIRECTORY, size=0)
    contracts = served.models[0].contracts if len(served.models) == 1 else ()
    return Case(artifact=artifact, host=served.host, contract=contracts[-1][1] if contracts else None)


# `names` and `init`: a package alone, before there is a config.

_FILE = "model.pt2"
_NO_CALL_SPEC = "the package does not contain its call spec (no wrapper.cpp in it), so there are no names"


@record
class NamedPackage:
    """A package with its table of tensor names. ``problem`` is the reason why there is no ``table``."""

    path: str
    release: Release
    case: Case
    table: NameTable | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The model's name in the report: the file without its suffix."""
        return PurePath(self.path).stem or self.path


def server_names(path: str, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]) -> Report:
    """Report the server's names of the package's tensors, or why it cannot be served. Raises UsageError."""
    invocation = Invocation("triton", argv)
    package = _open(path, find_release(triton), environ)
    session = Session(case=package.case, runner=None)
    model = _model_of_config(package, "")
    session.add(_obstacles(package, model))
    models = () if package.table is None else (model,)
    report = serving_report(session, models, package.release, invocation, cannot_examine=package.problem)
    return replace(report, names=package.table)


def _obstacles(package: NamedPackage, model: ServedModel) -> tuple[Evidence, ...]:
    rules = {rule.id: rule for rule in RULES}
    found = package.table.obstacles if package.table is not None else ()
    return tuple(finding_of(rules[item.rule], remark_of(item), model) for item in found)


@record
class ConfigDraft:
    """A report with a config that passes the rules as ``text``; None if there is none, for ``reasons``."""

    report: Report
    text: str | None
    reasons: tuple[str, ...] = ()


def draw_config(
    path: str, options: ConfigOptions, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]
) -> ConfigDraft:
    """Write a config for the package that passes all rules, or the reasons why there is none. Raises UsageError."""
    invocation = Invocation("triton", argv)
    package = _open(path, find_release(triton), environ)
    session = Session(case=package.case, runner=None)
    text: str | None = None
    reasons: tuple[str, ...] = (package.problem,) if package.problem else ()
    model = _model_of_config(package, "")
    if package.table is not None and not package.table.servable:
        session.add(_obstacles(package, model))
    elif package.table is not None:
        written, reasons = write_config(package.table, package.release, _device(package.case), options)
        model = _model_of_config(package, written)
        if not reasons:
            session.add(*judge_model(model))
            text = written
    errors = [item for item in session.findings if item.severity is Severity.ERROR]
    if errors:
        text, reasons = (
            None,
            tuple(
                f"{item.code.rpartition('-')[2]}: {item.message} {item.facts.get('remedy') or ''}".rstrip()
                for item in errors
            ),
        )
    problem = "; ".join(reasons) if reasons and not errors else None
    if problem is not None:
        session.not_checked.append(NotChecked(code="TRITON", name=package.name, reason=problem))
    models = () if package.table is None else (model,)
    report = serving_report(session, models, package.release, invocation, cannot_examine=problem)
    extra = report.extra if text is None else {**report.extra, "config": text}
    return ConfigDraft(report=replace(report, names=package.table, extra=extra), text=text, reasons=reasons)


def _open(path: str, release: Release, environ: Mapping[str, str]) -> NamedPackage:
    artifact = read_artifact(path)
    entry = select_model(artifact, None)
    contract = read_contract(artifact, entry) if entry is not None else None
    host = read_host(artifact=None, environ=environ)
    case = Case(artifact=artifact, host=host, model=entry, contract=contract)
    table = name_table(contract, release) if contract is not None else None
    problem = None
    if artifact.kind is ArtifactKind.MISSING:
        problem = no_such_file(artifact.path)
    elif entry is None:
        other = "none of its models is called model" if artifact.models else "no compiled model in it"
        problem = artifact.problem or other
    elif table is None:
        no_spec = contract is None or contract.in_spec is None
        problem = _NO_CALL_SPEC if no_spec else "its call spec cannot be read"
    return NamedPackage(path=path, release=release, case=case, table=table, problem=problem)


def _model_of_config(package: NamedPackage, text: str) -> ServedModel:
    """The package as a model whose config is ``text``."""
    reading = read_config(text)
    folder = ModelFolder(name=package.name, path="", text=text, folders=(("1", (_FILE,)),))
    gpus = package.case.host.gpus or (Gpu(index=0, name="a GPU"),) if _device(package.case) == "cuda" else ()
    host = replace(package.case.host, gpus=gpus)
    config = reading.config
    version = ServedVersion(
        number=1,
        directory="1",
        package=package.path,
        served=True,
        files=(_FILE,),
        artifact=package.case.artifact,
        entry=package.case.artifact.model("model"),
        contract=package.case.contract,
    )
    return ServedModel(
        name=package.name,
        path=package.path,
        release=package.release,
        host=host,
        text=text,
        config=config,
        parse_problem=reading.problem,
        parse_at=reading.at,
        settled=server_defaults(config, folder, package.release, host) if config is not None else None,
        versions=(version,),
    )


def _device(case: Case) -> str:
    return case.needs.device_type or "cpu"


# `rehearse` and `--load-hook`: the steps of the server in a child.

HOOK = "TRITON-R46"


@record
class RehearsalRequest:
    """Options of a rehearsal.

    ``inputs`` is the path of the sample, None to call the init library only. ``requests`` is the number of requests in
    one batch, None for the usual number. ``said`` maps names of the config to the user's paths of inputs and outputs.
    ``load_hook``: call the init library.
    """

    inputs: str | None = None
    triton: str | None = None
    requests: int | None = None
    sends: Mapping[str, str] = field(default_factory=dict)
    load_hook: bool = False
    options: Options = field(default_factory=Options)


def rehearse(
    path: str,
    request: RehearsalRequest,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """Judge the models in ``path``, and rehearse requests. Raises UsageError and CannotExamineError."""
    from aotidoctor.runner.portable import make_runner

    invocation = Invocation("triton", argv)
    release = find_release(request.triton)
    with make_runner(environ=environ) as runner:
        runner.prewarm()
        served = open_models(path, release, environ)
        if request.inputs is not None and len(served.models) > 1:
            raise UsageError(f"{path} holds {len(served.models)} models; name the folder of one")
        session = Session(
            case=serving_case(path, served),
            runner=runner,
            on_event=on_event or (lambda _event: None),
            not_checked=list(served.not_checked),
        )
        problem = None if served.models else f"no model for torch_aoti in {path}"
        found: list[Evidence] = []
        for model in served.models:
            judged, not_checked = judge_model(model)
            session.not_checked.extend(not_checked)
            found.extend(judged)
            if request.load_hook:
                found.extend(_hook(model, request, session))
            if request.inputs is not None:
                # The first finding that prevents an answer.
                letter = Consequence.FAILS_TO_LOAD.value
                fatal = [f"{item.code}, {item.message}" for item in judged if item.facts.get("consequence") == letter]
                observed, problem = _rehearse_model(model, request, session, next(iter(fatal), None))
                found.extend(observed)
        session.add(sorted(found, key=lambda item: -item.severity.rank))
        # If a rule explains why nothing can be rehearsed, that is the answer.
        known = any(item.severity is Severity.ERROR for item in found)
    return serving_report(session, served.models, release, invocation, cannot_examine=None if known else problem)


def _rehearse_model(
    model: ServedModel, request: RehearsalRequest, session: Session, fatal: str | None
) -> tuple[tuple[Evidence, ...], str | None]:
    """Rehearse the newest version that is served; its findings, or the reason why it is not rehearsed."""
    version = next((item for item in reversed(model.served) if item.contract is not None), None)
    if fatal is not None:
        return _not_rehearsed(session, f"the server would not return an answer: {fatal}")
    if version is None or version.artifact is None:
        return _not_rehearsed(session, "there is no package to call")
    # The package as for `run`.
    case = with_inputs(
        Case(
            artifact=version.artifact,
            host=model.host,
            options=request.options,
            model=version.entry,
            contract=version.contract,
            inputs_path=request.inputs,
        )
    )
    session.case = replace(session.case, inputs=case.inputs, inputs_path=request.inputs, inputs_error=case.inputs_error)
    if case.inputs is None:
        return _not_rehearsed(session, str(case.inputs_error) if case.inputs_error is not None else "no inputs")
    table = name_table(case.contract, model.release) if case.contract is not None else None
    if table is None:
        return _not_rehearsed(session, "the package does not contain its call spec")
    try:
        rehearsal = plan_rehearsal(model, table, requests=request.requests, sends=request.sends)
    except CannotRehearseError as error:
        return _not_rehearsed(session, str(error))
    for note in rehearsal.notes:
        session.not_checked.append(NotChecked(code=REHEARSAL_CODE, name="batching", reason=note))
    outcome = _run_request(session, _request(case, rehearsal_payload(rehearsal), gpu=rehearsal.gpu))
    return (() if outcome is None else RehearsalReading(model=model, plan=rehearsal, outcome=outcome).findings()), None


def _request(case: Case, rehearsal: JsonObject, *, gpu: int | None) -> Request:
    # Imported only here: rules alone do not need it.
    from aotidoctor.model.run import Request
    from aotidoctor.probes.payload import base_payload

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


def _hook(model: ServedModel, request: RehearsalRequest, session: Session) -> tuple[Evidence, ...]:
    """Call the init library for the newest version that is served."""
    hook, version = model.hook, next(iter(reversed(model.served)), None)
    callable_ = hook is not None and hook.exists and not hook.problem and INIT_FUNCTION in hook.symbols
    if hook is None or not callable_ or version is None or model.release.before(INIT_LIBRARY_SINCE):
        reason = f"no library that Triton {model.release.name} would load and call"
        session.not_checked.append(NotChecked(code=HOOK, name="load_hook", reason=reason))
        return ()
    from aotidoctor.model.run import Request

    gpu = bool(model.settled and model.settled.kinds and model.settled.kinds[0] == "KIND_GPU")
    hook_run = Request(
        probe="load_hook",
        job="hook",
        payload=Hook(library=hook.path, folder=version.directory, device_index=0 if gpu else -1),
        fresh=True,
        timeout=request.options.timeout,
        purpose="native code of the init library is executed",
    )
    outcome = _run_request(session, hook_run)
    return () if outcome is None else (read_hook_run(model, outcome),)


def _run_request(session: Session, request: Request) -> Outcome | None:
    name = f"{request.probe}: {request.purpose}"
    session.begins(name)
    outcome = session.run(request)
    if outcome is None:
        session.not_checked.append(NotChecked(code=REHEARSAL_CODE, name=request.probe, reason=session.refusal()))
        return None
    session.ended(name, outcome.seconds, outcome.stage)
    return outcome


def _not_rehearsed(session: Session, reason: str) -> tuple[tuple[Evidence, ...], str]:
    session.not_checked.append(NotChecked(code=REHEARSAL_CODE, name="rehearse", reason=reason))
    return (), f"not rehearsed: {reason}"
