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

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import at_member
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FileSource, list_names, plural
from aotidoctor.model.other_artifacts import FORMS, ExecutorchFile

FIND = Finder("AD-ART-002", "artifact_wrong_kind")
EXPECTED = "an AOTInductor package"

# A description, the remedy, and a command that does not change the file.
_LOOK = "file model.pt2"
_KINDS = {
    ArtifactKind.EXPORTED_PROGRAM: (
        "a torch.export archive, never compiled",
        "compile it: torch._inductor.aoti_compile_and_package(torch.export.load(path), package_path=...)",
        "torch._inductor.aoti_compile_and_package(torch.export.load('model.pt2'), package_path='compiled.pt2')",
    ),
    ArtifactKind.TORCHSCRIPT: ("a TorchScript archive", "load it with torch.jit.load", "torch.jit.load('model.pt2')"),
    ArtifactKind.TORCH_SAVE: (
        "a torch.save file (a state dict or a pickled object)",
        "load it with torch.load",
        "torch.load('model.pt2')",
    ),
    ArtifactKind.BARE_SO: (
        "a bare shared object",
        "load it with torch._export.aot_load, or package it as .pt2 when compiling",
        "nm -D model.pt2 | grep AOTInductorModel   # what aot_load needs",
    ),
    ArtifactKind.LFS_POINTER: (
        "a pointer to a large file, not its content",
        "fetch the content: git lfs pull",
        "git lfs pull",
    ),
    ArtifactKind.SAFETENSORS: (
        "a safetensors file: weights only",
        "compile the model that these weights belong to",
        _LOOK,
    ),
    ArtifactKind.ONNX: ("an ONNX model", "run it with an ONNX runtime", _LOOK),
    ArtifactKind.ZIP: (
        "a zip archive without data/aotinductor/",
        "check which file the build was meant to ship",
        "unzip -l model.pt2",
    ),
    ArtifactKind.BUNDLE: (
        "a bundle of aotidoctor: a report, not the package itself",
        "read it with: aotidoctor analyze",
        "aotidoctor analyze model.pt2",
    ),
    ArtifactKind.PICKLE: ("a pickle", "load it with the program that wrote it", _LOOK),
    ArtifactKind.TEXT: (
        "a text file",
        "download the file again; its first line is often an error message",
        "head -n 3 model.pt2",
    ),
    ArtifactKind.DIRECTORY: (
        "a directory without data/aotinductor/",
        "give the .pt2 file inside it",
        "find model.pt2 -name '*.pt2'",
    ),
    ArtifactKind.EXECUTORCH_PROGRAM: (
        "an ExecuTorch program (.pte)",
        "examine it with aotidoctor check or inspect; ExecuTorch's runtime runs it",
        "aotidoctor check model.pt2",
    ),
    ArtifactKind.EXECUTORCH_DATA: (
        "the data of an ExecuTorch program (.ptd)",
        "examine it with its program: aotidoctor check model.pte --data FILE",
        "aotidoctor check model.pte --data model.pt2",
    ),
    **{
        kind: (
            f"no package but {what}",
            "examine it with aotidoctor check or inspect; run --trust-pickle loads and calls it",
            "aotidoctor check model.pt2",
        )
        for kind, what in (
            (ArtifactKind.AOT_COMPILED, FORMS["aot-compile"]),
            (ArtifactKind.COMPILED_ARTIFACT, FORMS["standalone-cache"]),
            (ArtifactKind.COMPILE_CACHE, "a compile cache of torch or vLLM"),
            (ArtifactKind.PRECOMPILE_CODE, FORMS["precompile-code"]),
            (ArtifactKind.PRECOMPILE_CACHE, FORMS["precompile-cache"]),
        )
    },
    ArtifactKind.OTHER: ("a file of an unknown format", "check which file the build was meant to ship", _LOOK),
}

# A log by its name, or by its first line.
_LOG = re.compile(r"\.(?:log|err|out|txt)$|^(?:Traceback |\S*(?:Error|Exception)\b|[WIEF]\d{4} |\[rank)", re.MULTILINE)
_A_LOG = ("a text, perhaps a log", "name the cause of a failure from its log", "aotidoctor classify model.pt2")


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
    if artifact.kind not in _KINDS or artifact.precompiled is not None:
        return
    what, remedy, command = _KINDS[artifact.kind]
    if artifact.kind is ArtifactKind.TEXT and _LOG.search(f"{artifact.path}\n{artifact.first_line or ''}"):
        what, remedy, command = _A_LOG
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
            "command": command,
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
