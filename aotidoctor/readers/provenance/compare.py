"""All that can be compared without looking at the bytes of constants."""

from __future__ import annotations

from aotidoctor.model.artifact import ExportedFacts, ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.readers.provenance.calls import compare_call
from aotidoctor.readers.provenance.difference import Compared, joined
from aotidoctor.readers.provenance.operators import compare_operators
from aotidoctor.readers.provenance.results import compare_constants, compare_outputs


def compare(contract: Contract, facts: ExportedFacts, model: ModelEntry | None = None) -> Compared:
    """A package's contract against a program's facts; ``model`` has the sources of its kernels."""
    parts = (compare_call, compare_outputs, compare_constants)
    return joined([*(part(contract, facts) for part in parts), compare_operators(contract, facts, model)])
