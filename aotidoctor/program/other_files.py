"""What a file is that holds no exported program."""

from __future__ import annotations

from aotidoctor.model.artifact import Artifact, ArtifactKind

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
    """What the file is instead; None where there is a program in it, or where it is too broken to tell."""
    if artifact.exported or artifact.kind not in _OTHER_FILES:
        return None
    return f"{artifact.path} is not an exported program (torch.export.save) but {_OTHER_FILES[artifact.kind]}"
