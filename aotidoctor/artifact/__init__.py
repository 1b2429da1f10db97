"""Path to ``Artifact``: archive members, metadata, sources, ELF facts. Executes nothing, extracts nothing."""

from __future__ import annotations

from aotidoctor.artifact.integrity import DEFAULT_CRC_LIMIT
from aotidoctor.artifact.programs import read_program_archive
from aotidoctor.artifact.read import read_artifact, read_exported

__all__ = ["DEFAULT_CRC_LIMIT", "read_artifact", "read_exported", "read_program_archive"]
