"""``aotidoctor triton``: every model of a repository against the rules, in one report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone

from aotidoctor.climb import Climb, name_causes
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.host import Host
from aotidoctor.model.report import Report
from aotidoctor.model.serving import ServedModel
from aotidoctor.serving.judge import judge
from aotidoctor.serving.releases import find_release, standing
from aotidoctor.serving_case import open_models
from aotidoctor.version import __version__


def serve(path: str, *, triton: str | None, argv: tuple[str, ...], environ: Mapping[str, str]) -> Report:
    """What the server would make of ``path``. Raises UsageError and CannotExamineError."""
    began, started = time.monotonic(), datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    release = find_release(triton)
    served = open_models(path, release, environ)
    climb = Climb(case=_case(path, served.models, served.host), runner=None, not_checked=list(served.not_checked))
    for model in served.models:
        found, not_checked = judge(model)
        climb.add(found)
        climb.not_checked.extend(not_checked)
    if (said := standing(release)) is not None:
        climb.not_checked.append(NotChecked(code="TRITON", name=f"Triton {release.name}", reason=said))
    diagnoses = name_causes(climb)
    nothing = None if served.models else f"no model for torch_aoti in {path}"
    return Report(
        verdict="problem" if diagnoses else "unknown" if nothing else "healthy",
        stage="host" if diagnoses else None,
        case=climb.case,
        diagnoses=diagnoses,
        findings=tuple(climb.findings),
        not_checked=tuple(climb.not_checked),
        runs=(),
        argv=argv,
        command="triton",
        version=__version__,
        started=started,
        seconds=time.monotonic() - began,
        cannot_examine=nothing,
        extra={
            "release": release.name,
            "server": release.server or "unknown",
            "models": ", ".join(model.name for model in served.models),
        },
    )


def _case(path: str, models: tuple[ServedModel, ...], host: Host) -> Case:
    """The folder as the thing that is examined; of one model, its package's contract, too."""
    artifact = Artifact(path=path, kind=ArtifactKind.DIRECTORY, size=0)
    contracts = models[0].contracts if len(models) == 1 else ()
    return Case(artifact=artifact, host=host, contract=contracts[-1][1] if contracts else None)
