"""Where a finding points and what it says, for formats that machines of others read."""

from __future__ import annotations

from urllib.parse import quote

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.contract import Contract
from aotidoctor.model.evidence import Evidence, FileSource
from aotidoctor.model.report import Report
from aotidoctor.reports.contract_view import names_leaf
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


def place_of(report: Report, finding: Evidence) -> FileSource | None:
    """The place in a file that a finding is about.

    What a run said of a kernel, a call or an input is about the line of the generated code that makes the call or
    checks the input; None where there is no such line.
    """
    source, contract = finding.source, report.case.contract
    if isinstance(source, FileSource) and (source.line is not None or contract is None):
        return source
    line = _line(contract, finding.subject) if contract is not None and finding.subject else None
    if contract is not None and contract.member is not None and line is not None:
        return FileSource(file=contract.member, line=line)
    return source if isinstance(source, FileSource) else None


def finding_text(finding: Evidence) -> str:
    """What a finding says, in one text: subject, what was observed, and its message where that says more."""
    message, observed = finding.message, finding.observed
    if not message:
        message = f"observed {observed}, expected {finding.expected}" if finding.expected else observed
    elif observed and observed not in message:
        message = f"{observed} ({message})"
    about = f"{finding.subject}: " if finding.subject and finding.subject not in message else ""
    return f"{about}{message}" or finding.code


def _line(contract: Contract, subject: str) -> int | None:
    calls = (kernel.line for kernel in contract.kernels if kernel.name == subject)
    leaves = (leaf.check_line or leaf.source_line for leaf in contract.leaves if names_leaf(subject, leaf.path))
    return next((line for line in (*calls, *leaves) if line is not None), None)


def uri(path: str) -> str:
    """A path as a URI reference: absolute paths with their scheme, relative ones as they are."""
    text = one_line(path, 4000).replace("\\", "/")
    while text.startswith("./"):
        text = text[2:]
    return f"file://{quote(text, safe=_PATH)}" if text.startswith("/") else quote(text, safe=_PATH)
