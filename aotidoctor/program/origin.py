"""An exported program from its archive, and the package that may have been compiled from it: the stages that read both.

Nothing is loaded, run or unpickled, and torch is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.program_archive import Payloads, PickledState, ProgramArchive
from aotidoctor.program import against
from aotidoctor.program.findings import evidence
from aotidoctor.program.static import NAME as STATIC
from aotidoctor.program.static import judge_static
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.inputs import read_saved_state
from aotidoctor.readers.package import damage, read_artifact, read_package_constants, read_program_archive

AGAINST = "against"
SHIM = "VERIFY-A02"


def open_program(path: str, name: str | None = None) -> ProgramArchive | str:
    """The program with its weights, also of older archives, which keep them in one pickle; or why there is none."""
    archive = read_program_archive(path, name)
    if isinstance(archive, str):
        return archive
    problems: list[str] = []
    weights = archive.weights or _saved(archive, archive.weights_pickle, problems)
    constants = archive.constants or _saved(archive, archive.constants_pickle, problems)
    return replace(
        archive,
        weights=archive.weights if weights is None else weights,
        constants=archive.constants if constants is None else constants,
        problems=(*archive.problems, *problems),
    )


def _saved(archive: ProgramArchive, state: PickledState | None, problems: list[str]) -> Payloads | None:
    if state is None:
        return None
    try:
        return read_saved_state(archive.path, state)
    except InputsError as error:
        problems.append(f"{state.member}: {error}")
        return None


def judge_against(
    archive: ProgramArchive, package: str, model_name: str | None = None
) -> tuple[list[Evidence], list[NotChecked]]:
    """Whether ``package`` was compiled from the program: ``VERIFY-P`` findings, the verdict last."""
    artifact = read_artifact(package)
    model = _model(artifact, model_name)
    if model is None:
        return [], [unchecked(_no_model(artifact, model_name))]
    if damaged := damage(artifact.bad_crc):
        return [], [unchecked(f"{package} {damaged}")]
    contract = read_contract(artifact, model)
    if contract is None:
        return [], [unchecked(f"{package}: what it expects could not be determined")]
    if contract.source == "call-spec" or contract.args is None:
        why = "; ".join(contract.problems[:3]) or "the package contains no source that describes its inputs"
        return [], [unchecked(f"{package}: {why}")]
    stored = read_package_constants(artifact, model, contract.constants, contract.weights)
    question = against.Question(package=package, archive=archive, contract=contract, stored=stored, model=model)
    return against.judge_origin(question)


def _model(artifact: Artifact, name: str | None) -> ModelEntry | None:
    found = artifact.model(name or "model")
    return artifact.models[0] if found is None and len(artifact.models) == 1 and name is None else found


def _no_model(artifact: Artifact, name: str | None) -> str:
    if not artifact.models:
        why = f" ({artifact.problem})" if artifact.problem else ""
        return f"{artifact.path} is not a readable AOTInductor package (found: {artifact.kind.value}{why})"
    return (
        f"{artifact.path} has no model called {name or 'model'}: {', '.join(model.name for model in artifact.models)}"
    )


def static_answer(archive: ProgramArchive, seen: Sequence[Evidence]) -> tuple[list[Evidence], list[NotChecked]]:
    """What the archive itself tells of the program's faults; what was ``seen`` before is not told twice."""
    reading = judge_static(archive)
    told = {(item.code, item.kind, item.subject) for item in seen}
    made = [evidence(violation, archive.path) for violation in reading.violations]
    problems = [NotChecked(code="VERIFY-L03", name=STATIC, reason=text) for text in archive.problems]
    found = [item for item in made if (item.code, item.kind, item.subject) not in told]
    return found, [*reading.not_checked, *problems]


def unchecked(reason: str) -> NotChecked:
    """``--against`` could not be answered."""
    return NotChecked(code=against.VERDICT, name=AGAINST, reason=reason)


def is_other(found: Sequence[Evidence]) -> bool:
    """Whether the package was compiled from another program."""
    return any(item.code == against.VERDICT and item.kind == "other-program" for item in found)


def without_used(found: Sequence[Evidence]) -> list[Evidence]:
    """All but the shims that are said to be missing of operators which the package calls all the same."""
    verdict = next((item for item in found if item.code == against.VERDICT), None)
    return [
        item
        for item in found
        if item.code != SHIM or verdict is None or not against.calls(verdict, str(item.facts.get("target") or ""))
    ]


def origin_said(found: Sequence[Evidence]) -> dict[str, str]:
    """The verdict's sentence, for the head of the report."""
    return next(({"origin": item.observed} for item in found if item.code == against.VERDICT), {})
