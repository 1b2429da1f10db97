"""What a package says of its own origin, where ``aotidoctor stamp`` wrote it into its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.record import record

# The key of the metadata that holds it, as JSON text.
KEY = "AOTIDOCTOR_STAMP"
SCHEMA = "aotidoctor.stamp/1"


@record
class SampleTensor:
    """One tensor of the sample that the program was exported with; never its values."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    device: str = "cpu"


@record
class Stamp:
    """Origin of a package.

    ``torch`` and ``compiler`` are those that built it, None where the stamp was made without them. ``program`` is a
    hash of the graph (64 hex digits). ``weights`` maps the name of a constant in the model to a hash of its dtype, its
    shape and its bytes (16 hex digits); constants of a few bytes, whose hash would give them away, have none.
    ``facts`` are those of the exported program: ranges as exported and values fixed at export among them.
    """

    schema: str
    tool: str
    program: str
    facts: ExportedFacts
    torch: str | None = None
    compiler: str | None = None
    python: str | None = None
    weights: Mapping[str, str] = field(default_factory=dict)
    sample: tuple[SampleTensor, ...] = ()
    left_out: tuple[str, ...] = ()


@record
class StampSeen:
    """A stamp beside the package that carries it.

    ``stamp`` is None where it cannot be read (``problem``). ``equal`` counts the constants whose bytes are the stamped
    ones, ``differing`` names the others, ``unread`` says why some were not looked at.
    """

    member: str
    stamp: Stamp | None = None
    problem: str | None = None
    equal: int = 0
    differing: tuple[str, ...] = ()
    unread: str | None = None
