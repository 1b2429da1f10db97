"""``aotidoctor triton``: every model of a repository against the rules, in one report."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.report import Report
from aotidoctor.model.serving import Release, ServedModel
from aotidoctor.triage.finish import Stopwatch, finish
from aotidoctor.triage.session import Session, name_causes
from aotidoctor.triton.judge import judge
from aotidoctor.triton.open_models import Served, open_models
from aotidoctor.triton.releases import find_release, standing


def serve(path: str, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]) -> Report:
    """What the server would make of ``path``. Raises UsageError and CannotExamineError."""
    watch = Stopwatch("triton", argv)
    release = find_release(triton)
    served = open_models(path, release, environ)
    session = Session(case=case_of(path, served), runner=None, not_checked=list(served.not_checked))
    for model in served.models:
        session.add(*judge(model))
    nothing = None if served.models else f"no model for torch_aoti in {path}"
    return report_on(session, served.models, release, watch, cannot_examine=nothing)


def report_on(
    session: Session, models: tuple[ServedModel, ...], release: Release, watch: Stopwatch, *, cannot_examine: str | None
) -> Report:
    """The report of what is known."""
    if (said := standing(release)) is not None:
        session.not_checked.append(NotChecked(code="TRITON", name=f"Triton {release.name}", reason=said))
    diagnoses = name_causes(session)
    return finish(
        session,
        diagnoses,
        watch,
        stage="host" if diagnoses else None,
        cannot_examine=cannot_examine,
        extra={
            "release": release.name,
            "server": release.server or "unknown",
            "models": ", ".join(model.name for model in models),
        },
    )


def case_of(path: str, served: Served) -> Case:
    """The folder as the thing that is examined; of one model, its package's contract, too."""
    artifact = Artifact(path=path, kind=ArtifactKind.DIRECTORY, size=0)
    contracts = served.models[0].contracts if len(served.models) == 1 else ()
    return Case(artifact=artifact, host=served.host, contract=contracts[-1][1] if contracts else None)
