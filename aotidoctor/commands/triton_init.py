"""``aotidoctor triton names`` and ``triton init``: a package alone, before there is a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from aotidoctor.commands.triton import report_on
from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Contract
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.host import Gpu, Host
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.serving import Release, ServedModel, ServedVersion
from aotidoctor.model.serving_names import NameTable
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.host import read_host
from aotidoctor.readers.package import read_artifact
from aotidoctor.triage.finish import Stopwatch
from aotidoctor.triage.open_case import select_model
from aotidoctor.triage.session import Session
from aotidoctor.triton.config_writer import Wanted, write_config
from aotidoctor.triton.judge import finding_of, judge
from aotidoctor.triton.names import name_table
from aotidoctor.triton.reading import read_config
from aotidoctor.triton.releases import find_release
from aotidoctor.triton.repository import ModelFolder
from aotidoctor.triton.rules import RULES
from aotidoctor.triton.server_defaults import server_defaults
from aotidoctor.triton.tables import remark_of

_FILE = "model.pt2"
_UNTOLD = "the package does not contain its call spec (no wrapper.cpp in it), so there are no names"


@record
class Package:
    """What is known of the file. ``problem`` says why there is no ``table``."""

    path: str
    release: Release
    case: Case
    table: NameTable | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """What the model is called in the report: the file without its ending."""
        return PurePath(self.path).stem or self.path


def names(path: str, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]) -> Report:
    """The names of the package's tensors, and why none can be served if so. Raises UsageError."""
    watch = Stopwatch("triton", argv)
    package = _open(path, find_release(triton), environ)
    session = Session(case=package.case, runner=None)
    model = _model(package, "")
    session.add(_obstacles(package, model))
    models = () if package.table is None else (model,)
    report = report_on(session, models, package.release, watch, cannot_examine=package.problem)
    return replace(report, names=package.table)


def _obstacles(package: Package, model: ServedModel) -> tuple[Evidence, ...]:
    rules = {rule.id: rule for rule in RULES}
    found = package.table.obstacles if package.table is not None else ()
    return tuple(finding_of(rules[item.rule], remark_of(item), model) for item in found)


@record
class Drawn:
    """``text`` is a config that passes the rules, None where there is none; the report says why."""

    report: Report
    text: str | None
    reasons: tuple[str, ...] = ()


def draw_config(
    path: str, wanted: Wanted, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]
) -> Drawn:
    """A config for the package that its own validator passes, or why there is none. Raises UsageError."""
    watch = Stopwatch("triton", argv)
    package = _open(path, find_release(triton), environ)
    session = Session(case=package.case, runner=None)
    text: str | None = None
    reasons: tuple[str, ...] = (package.problem,) if package.problem else ()
    model = _model(package, "")
    if package.table is not None and not package.table.servable:
        session.add(_obstacles(package, model))
    elif package.table is not None:
        written = write_config(package.table, package.release, _device(package.case), wanted)
        model, reasons = _model(package, written.text), written.problems
        if not reasons:
            session.add(*judge(model))
            text = written.text
    errors = [item for item in session.findings if item.severity is Severity.ERROR]
    if errors:
        text, reasons = None, tuple(_reason(item) for item in errors)
    untold = "; ".join(reasons) if reasons and not errors else None
    if untold is not None:
        session.not_checked.append(NotChecked(code="TRITON", name=package.name, reason=untold))
    models = () if package.table is None else (model,)
    report = report_on(session, models, package.release, watch, cannot_examine=untold)
    extra = report.extra if text is None else {**report.extra, "config": text}
    return Drawn(report=replace(report, names=package.table, extra=extra), text=text, reasons=reasons)


def _reason(item: Evidence) -> str:
    return f"{item.code.rpartition('-')[2]}: {item.message} {item.facts.get('remedy') or ''}".rstrip()


def _open(path: str, release: Release, environ: Mapping[str, str]) -> Package:
    artifact = read_artifact(path)
    entry = select_model(artifact, None)
    contract = read_contract(artifact, entry) if entry is not None else None
    host = read_host(artifact=None, environ=environ)
    case = Case(artifact=artifact, host=host, model=entry, contract=contract)
    table = name_table(contract, release) if contract is not None else None
    problem = None if table is not None else _problem(artifact, entry, contract)
    return Package(path=path, release=release, case=case, table=table, problem=problem)


def _problem(artifact: Artifact, entry: ModelEntry | None, contract: Contract | None) -> str:
    if artifact.kind is ArtifactKind.MISSING:
        return f"no such file: {artifact.path}"
    if entry is None:
        other = "none of its models is called model" if artifact.models else "no compiled model in it"
        return artifact.problem or other
    return _UNTOLD if contract is None or contract.in_spec is None else "its call spec cannot be read"


def _model(package: Package, text: str) -> ServedModel:
    """The package in the folder of a model whose config is ``text``."""
    reading = read_config(text)
    folder = ModelFolder(name=package.name, path="", text=text, folders=(("1", (_FILE,)),))
    host = _server_host(package.case)
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


def _server_host(case: Case) -> Host:
    """A host that can serve the package: with a GPU where it needs one, since the server need not be this machine."""
    gpus = case.host.gpus or (Gpu(index=0, name="a GPU"),) if _device(case) == "cuda" else ()
    return replace(case.host, gpus=gpus)
