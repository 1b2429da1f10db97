"""The file is not an AOTInductor package.

What it does
    Distinguishes the kinds of model files by member names and magic bytes, never by unpickling.

Why it matters
    The loader reports any other zip archive as "Failed to find a generated cpp file or so file for model 'model'" and
    any other file as "failed finding central directory". A torch.export archive has the same .pt2 suffix.

Example:
    model.pt2: observed a torch.export archive, never compiled, expected an AOTInductor package

When it is wrong
    A bare shared object is correct if it is loaded as one; under a name that ends in .so it is only a note.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import at_member, is_package
from aotidoctor.model import load_toml
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FileSource, list_names, plural
from aotidoctor.model.other_artifacts import ExecutorchFile

FIND = Finder("AD-ART-002", "artifact_wrong_kind")
EXPECTED = "an AOTInductor package"

# A log by its name, or by its first line.
_LOG = re.compile(r"\.(?:log|err|out|txt)$|^(?:Traceback |\S*(?:Error|Exception)\b|[WIEF]\d{4} |\[rank)", re.MULTILINE)


def run(case: Case) -> Observations:
    """At most one finding, and one for each file of --data."""
    artifact = case.artifact
    if artifact.executorch is not None:
        for item in case.data:
            if item.kind == "foreign" or item.program:
                yield _foreign(item)
        return
    if artifact.kind is ArtifactKind.PACKAGE_FOLDER:
        yield _folder(artifact)
        return
    if is_package(case) or artifact.precompiled is not None:
        return
    kinds = load_toml(Path(__file__).with_name("file_kinds.toml").read_text(encoding="utf-8"))
    is_log = artifact.kind is ArtifactKind.TEXT and _LOG.search(f"{artifact.path}\n{artifact.first_line or ''}")
    known = kinds.get("log" if is_log else artifact.kind.value)
    if known is None:
        return
    what, remedy = known["what"], known["remedy"]
    details = [text for text in (artifact.problem, artifact.first_line) if text]
    observed = f"{what} ({'; '.join(details)})" if details else what
    is_object = artifact.kind is ArtifactKind.BARE_SO and artifact.path.endswith(".so")
    state = FIND.info if is_object else FIND.error
    yield state(
        artifact.kind.value,
        artifact.path,
        observed=observed,
        expected=EXPECTED,
        message=f"{artifact.path}: observed {observed}, expected {EXPECTED}; {remedy}",
        source=at_member(case, None),
        facts={
            "artifact_kind": artifact.kind.value,
            "first_line": artifact.first_line,
            "remedy": remedy,
            "command": known["command"],
        },
    )


def _folder(artifact: Artifact) -> Evidence:
    """The packages of a folder, each an item of its own for what runs it."""
    packages = [f"{model.name} (weights: {model.weights_location})" for model in artifact.models]
    count, folder = plural(len(packages), "package"), shlex.quote(artifact.path)
    return FIND.info(
        artifact.kind.value,
        artifact.path,
        observed=f"a folder of {count}: {list_names(packages, 8)}",
        expected=EXPECTED,
        message=f"{artifact.path}: a folder of {count}: {list_names(packages, 8)}; --model-name examines one, "
        f"aotidoctor batch {folder} all",
        source=FileSource(file=artifact.path),
        facts={"artifact_kind": artifact.kind.value, "packages": tuple(model.name for model in artifact.models[:50])},
    )


def _foreign(item: ExecutorchFile) -> Evidence:
    what = "an ExecuTorch program (.pte)" if item.program else f"a file with the identifier {item.identifier!r}"
    expected = "the data of an ExecuTorch program (.ptd)"
    return FIND.error(
        "data",
        item.path,
        observed=what,
        expected=expected,
        message=f"{item.path}: observed {what}, expected {expected}: ExecuTorch refuses it with 0x24",
        source=FileSource(file=item.path),
        facts={"remedy": "Give the .ptd file that the export wrote beside the .pte.", "command": "ls *.ptd"},
    )


def _unchosen_model(case: Case) -> str | None:
    """The packages of a folder, of which a check examines one."""
    if case.artifact.kind is not ArtifactKind.PACKAGE_FOLDER or case.model is not None:
        return None
    names = list_names([model.name for model in case.artifact.models])
    return f"none of its packages was examined: --model-name takes {names}"


CHECK = FIND.check(run, needs=("artifact_missing",), partly=_unchosen_model)
