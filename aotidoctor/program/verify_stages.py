"""Run the stages of verify that need no torch: open the program, judge it, read the answer of the child.

Nothing is loaded, run or unpickled. Playbooks are written for packages: their texts about how a fault looks and what to
do fit most rules of exported programs, and are replaced here for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import JudgedProgram, RaisedError, Verified, parse_answer
from aotidoctor.model.artifact import ArchivePayloads, Artifact, ArtifactKind, PickledState, ProgramArchive
from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, Severity, Violation
from aotidoctor.model.report import Diagnosis
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.program import compiled_from
from aotidoctor.program.rules import ADVICE, BY_CODE, RULES, Advice
from aotidoctor.program.static_verify import NAME as STATIC
from aotidoctor.program.static_verify import judge_static, merged_violations
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.readers.inputs.saved_weights import read_saved_state
from aotidoctor.readers.package.constants import read_constants, read_program_archive
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.readers.package.zip_archive import describe_damage


def violation_evidence(found: Violation, path: str, *, accepted: bool = False) -> Evidence:
    """Finding for a violation, with its rule's severity. Raises ``KeyError`` for an unknown rule or kind.

    ``accepted``: the installed verifier passes the program, so a rule of its own is no error here.
    """
    rule = BY_CODE[found.code]
    severity = rule.severities[found.kind]
    name = (found.target or found.node if rule.names_target else found.node or found.target) or path
    subject = f"{found.graph}.{name}" if found.graph else name
    overruled = accepted and rule.of_torch and severity is Severity.ERROR
    facts = {
        "what": "program",
        "rule": rule.name,
        "node": found.node,
        "target": found.target,
        "graph": found.graph or None,
    }
    if found.where is not None:
        facts["line"] = found.where.text or None
    # Rule and place; `observed` and `expected` stand beside it.
    calls = f" ({found.target})" if found.target is not None and found.target != subject else ""
    line = f", from `{found.where.text}`" if found.where is not None and found.where.text else ""
    doubt = "; the verifier of the installed torch accepts it" if overruled else ""
    return Evidence(
        code=found.code,
        kind=found.kind,
        severity=Severity.WARN if overruled else severity,
        subject=subject,
        observed=found.observed,
        expected=found.expected,
        message=f"{rule.title}: {subject}{calls}{line}{doubt}",
        source=None if found.where is None else FileSource(file=found.where.file, line=found.where.line),
        facts={**{key: value for key, value in facts.items() if value is not None}, **found.facts},
    )


# Answer of the child.
def judged_programs(outcome: Outcome | None) -> tuple[JudgedProgram, ...]:
    """Programs that the child judged; empty where it did not get there."""
    return parse_answer(Verified, outcome.result).programs if outcome is not None else ()


def raised_error(outcome: Outcome | None) -> RaisedError | None:
    """What the user's function raised instead of returning a program."""
    return parse_answer(Verified, outcome.result).raised if outcome is not None else None


def raised_evidence(raised: RaisedError, function: str) -> Evidence:
    """The finding for a function that raised."""
    lines = [line.strip() for line in raised.message.splitlines() if line.strip()]
    what = {"model": "the model", "export": "torch.export", "function": "the function"}[raised.by]
    found = violation_evidence(
        Violation(
            code="VERIFY-L07",
            kind=raised.by,
            observed=f"{raised.type}: {lines[0]}" if lines else raised.type,
            expected="an exported program",
            target=raised.where or function,
        ),
        function,
    )
    return replace(found, facts={**found.facts, "by": what})


def why_no_answer(outcome: Outcome | None) -> str:
    """Reason why there is no program in the answer."""
    if outcome is None:
        return "the time budget is spent"
    if outcome.error is not None:
        return f"{outcome.error.type}: {outcome.error.message}"[:500]
    match outcome.ending:
        case Signalled(name=name):
            how = name
        case TimedOut(limit=limit):
            how = f"no end within {limit:g} s"
        case OutOfMemory(reason=reason) | NotStarted(reason=reason):
            how = reason
        case Exited(code=code):
            how = f"exit {code}"
    return f"the child ended in stage {outcome.stage}: {how}"


def program_findings(program: JudgedProgram, path: str) -> list[Evidence]:
    """Findings of one program. Raises ``KeyError`` for a record of no known rule.

    Violations of the verifier's rules have its own message as a fact.
    """
    made = [violation_evidence(item, path, accepted=program.verifier == "passes") for item in program.records]
    if (message := program.verifier_says) is None:
        return made
    return [
        replace(item, facts={**item.facts, "verifier": message}) if BY_CODE[item.code].of_torch else item
        for item in made
    ]


def rules_left_out(program: JudgedProgram) -> list[NotChecked]:
    """Rules that were not checked, and numbers of violations that are not listed."""
    names = {rule.code: rule.name for rule in RULES} | {"VERIFY-G": "graph", "VERIFY-S": "signature"}
    too_many = {code: f"{count} more of the same kind are not listed" for code, count in program.cut.items()}
    return [
        NotChecked(code=f"VERIFY-{code}", name=names.get(f"VERIFY-{code}", code), reason=reason)
        for code, reason in (*program.skipped.items(), *too_many.items())
    ]


def verifier_result(runs: Sequence[Outcome]) -> dict[str, str]:
    """Verifier's result for the report: ``passes``, ``refuses`` or ``not-asked``; empty without a judged program."""
    given = judged_programs(runs[0] if runs else None)
    return {"verifier": given[0].verifier} if given else {}


# Stages that read the archive, and the package that may have been compiled from it.
AGAINST = "against"
SHIM = "VERIFY-A02"


def open_program(path: str, name: str | None = None) -> ProgramArchive | str:
    """Open the program with its weights (older archives have them in one pickle), or say why there is none."""
    archive = read_program_archive(path, name)
    if isinstance(archive, str):
        return archive
    problems: list[str] = []
    weights = archive.weights or _read_saved_state(archive, archive.weights_pickle, problems)
    constants = archive.constants or _read_saved_state(archive, archive.constants_pickle, problems)
    return replace(
        archive,
        weights=archive.weights if weights is None else weights,
        constants=archive.constants if constants is None else constants,
        problems=(*archive.problems, *problems),
    )


def _read_saved_state(
    archive: ProgramArchive, state: PickledState | None, problems: list[str]
) -> ArchivePayloads | None:
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
    found = artifact.model(model_name or "model")
    model = artifact.models[0] if found is None and len(artifact.models) == 1 and model_name is None else found
    if model is None and not artifact.models:
        why = f" ({artifact.problem})" if artifact.problem else ""
        what = f"not a readable AOTInductor package (found: {artifact.kind.value}{why})"
        return [], [origin_unchecked(f"{artifact.path} is {what}")]
    if model is None:
        names = ", ".join(model.name for model in artifact.models)
        return [], [origin_unchecked(f"{artifact.path} has no model called {model_name or 'model'}: {names}")]
    if damaged := describe_damage(artifact.bad_crc):
        return [], [origin_unchecked(f"{package} {damaged}")]
    contract = read_contract(artifact, model)
    if contract is None:
        return [], [origin_unchecked(f"{package}: what it expects could not be determined")]
    if contract.source == "call-spec" or contract.args is None:
        why = "; ".join(contract.problems[:3]) or "the package contains no source that describes its inputs"
        return [], [origin_unchecked(f"{package}: {why}")]
    stored = read_constants(artifact, model, contract.constants, contract.weights)
    question = compiled_from.OriginCase(package=package, archive=archive, contract=contract, stored=stored, model=model)
    return compiled_from.judge_origin(question)


def static_answer(archive: ProgramArchive, seen: Sequence[Evidence]) -> tuple[list[Evidence], list[NotChecked]]:
    """Findings from the archive alone, without those that were ``seen`` before."""
    reading = judge_static(archive)
    known = {(item.code, item.kind, item.subject) for item in seen}
    made = [violation_evidence(violation, archive.path) for violation in reading.violations]
    problems = [NotChecked(code="VERIFY-L03", name=STATIC, reason=text) for text in archive.problems]
    found = [item for item in made if (item.code, item.kind, item.subject) not in known]
    return found, [*reading.not_checked, *problems]


def merged_findings(archive: ProgramArchive) -> list[Evidence]:
    """Findings about inputs that export took for another one, which only the archive shows."""
    return [violation_evidence(violation, archive.path) for violation in merged_violations(archive)]


def origin_unchecked(reason: str) -> NotChecked:
    """Note that ``--package`` could not be checked, for this reason."""
    return NotChecked(code=compiled_from.ORIGIN_VERDICT, name=AGAINST, reason=reason)


def is_other_program(found: Sequence[Evidence]) -> bool:
    """Whether the package was compiled from another program."""
    return any(item.code == compiled_from.ORIGIN_VERDICT and item.kind == "other-program" for item in found)


def without_called_shims(found: Sequence[Evidence]) -> list[Evidence]:
    """Drop findings about missing shims of operators that the package calls all the same."""
    verdict = next((item for item in found if item.code == compiled_from.ORIGIN_VERDICT), None)
    return [
        item
        for item in found
        if item.code != SHIM
        or verdict is None
        or not compiled_from.calls_operator(verdict, str(item.facts.get("target") or ""))
    ]


def origin_sentence(found: Sequence[Evidence]) -> dict[str, str]:
    """Sentence of the verdict, for the head of the report."""
    return next(({"origin": item.observed} for item in found if item.code == compiled_from.ORIGIN_VERDICT), {})


# Files that hold no exported program.
_OTHER_FILES = {
    ArtifactKind.AOTI_PACKAGE: "an AOTInductor package: it no longer contains a graph",
    ArtifactKind.AOTI_DIRECTORY: "the directory of an AOTInductor package: it no longer contains a graph",
    ArtifactKind.TORCHSCRIPT: "a TorchScript archive",
    ArtifactKind.TORCH_SAVE: "a torch.save file",
    ArtifactKind.BARE_SO: "a shared object",
    ArtifactKind.SAFETENSORS: "a safetensors file",
    ArtifactKind.ONNX: "an ONNX model",
    ArtifactKind.PICKLE: "a pickle",
    ArtifactKind.TEXT: "a text file",
    ArtifactKind.LFS_POINTER: "a pointer to a large file: fetch its content with git lfs pull",
    ArtifactKind.DIRECTORY: "a directory",
    ArtifactKind.ZIP: "a different kind of zip archive",
    ArtifactKind.BUNDLE: "a bundle of aotidoctor: aotidoctor analyze reads it",
    ArtifactKind.OTHER: "a file of an unknown format",
}


def why_no_program(artifact: Artifact) -> str | None:
    """Reason why the file is no exported program; None where it is one, or is too damaged to decide."""
    if artifact.exported or artifact.kind not in _OTHER_FILES:
        return None
    return f"{artifact.path} is not an exported program (torch.export.save) but {_OTHER_FILES[artifact.kind]}"


# Texts of causes for programs.
def with_advice(diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]) -> tuple[Diagnosis, ...]:
    """Put the texts for a program, and the verifier's message, into the diagnoses."""
    by_id = {item.id: item for item in findings}
    return tuple(_advise_diagnosis(item, by_id.get(item.evidence[0]) if item.evidence else None) for item in diagnoses)


def _advise_diagnosis(diagnosis: Diagnosis, lead: Evidence | None) -> Diagnosis:
    if lead is None:
        return diagnosis
    advice = ADVICE.get((lead.code, lead.kind), Advice())
    message = lead.facts.get("verifier")
    subject = lead.subject or "it"
    remedy = replace(
        diagnosis.remedy,
        text=advice.remedy.replace("{subject}", subject) or diagnosis.remedy.text,
        command=advice.command.replace("{subject}", subject) or diagnosis.remedy.command,
    )
    looked_like = message if isinstance(message, str) else advice.looked_like or diagnosis.looked_like
    confirmation = advice.confirmation or diagnosis.confirmation
    return replace(diagnosis, looked_like=looked_like, remedy=remedy, confirmation=confirmation)
