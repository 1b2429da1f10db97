"""Where a finding points, for formats that machines read: a file, a member of the package, or a run's output."""

from __future__ import annotations

from urllib.parse import quote

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.reports.text import one_line

# As RFC 3986 has it for a path; what stands for something else in a reference is escaped.
_PATH = "/-._~!$&'()*+,;=@"


def is_member(artifact: Artifact, file: str) -> bool:
    """Whether ``file`` is the name of a member of the archive, not of a file."""
    if artifact.kind is ArtifactKind.AOTI_DIRECTORY:
        return False
    return any(member.name == file for model in artifact.models for member in model.members) or any(
        member.name == file for member in artifact.members
    )


def uri(path: str) -> str:
    """A path as a URI reference: absolute paths with their scheme, relative ones as they are."""
    text = one_line(path, 4000).replace("\\", "/")
    while text.startswith("./"):
        text = text[2:]
    return f"file://{quote(text, safe=_PATH)}" if text.startswith("/") else quote(text, safe=_PATH)
