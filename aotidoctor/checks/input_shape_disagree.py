"""Inputs that share a symbolic size have different sizes.

What it does
    Solves the symbols of the compiled size relations over all inputs and names the dim that does not agree. If a
    relation is not stated (before torch 2.7; for derived dims before 2.13), it compares the number of elements with the
    number that the kernels' loops read, given the other sizes.

Why it matters
    The kernel takes the size from one input and reads the others with it: a longer one is cut off, a shorter one is
    read past its end. It may show as an unrelated "index out of bounds".

Example:
    args[1].shape[0]: observed 16, expected 8 (s77, as args[0].shape[0])

When it is wrong
    With two inputs there is no majority: the first is assumed to be right, although the second may be.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.kernel_reads import SymbolReading, agreed_values, readings, short_reads
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.expr import evaluate

FIND = Finder("AD-IN-016", "input_shape_disagree")


def run(case: Case) -> Findings:
    """One finding per dim that disagrees with what the other dims say."""
    pairs = list(tensor_pairs(case, "stride"))
    found = list(readings(pairs))
    values = agreed_values(found)
    findings = [
        _finding(case, reading, wanted, found)
        for reading in found
        if (wanted := evaluate(reading.expr, values)) is not None and wanted != reading.size and not reading.remainder
    ]
    return findings or [
        FIND.error(
            "elements",
            short.pair.path,
            observed=f"{short.given} elements {short.pair.tensor.shape}",
            expected=f"at least {short.needed}, which a kernel reads ({short.expr}, with {short.symbol} of "
            f"{short.partner})",
            source=contract_source(case, short.pair.spec),
            facts=short.facts(),
        )
        for short in short_reads(pairs)
        if short.partner is not None and short.size_alone
    ]


def _finding(case: Case, reading: SymbolReading, wanted: int, found: Sequence[SymbolReading]) -> Evidence:
    pair = reading.pair
    partner = next(
        (
            other
            for other in found
            if (other is not reading and other.expr.symbols == reading.expr.symbols and other.size == wanted)
        ),
        None,
    )
    as_there = f", as {partner.pair.path}.shape[{partner.dim}]" if partner is not None else ""
    state = FIND.warn if pair.spec.used is False else FIND.error
    return state(
        "symbol",
        f"{pair.path}.shape[{reading.dim}]",
        observed=f"{reading.size}",
        expected=f"{wanted} ({reading.expr}{as_there})",
        source=contract_source(case, pair.spec),
        facts=pair.facts(
            dim=reading.dim,
            size=reading.size,
            expected_size=wanted,
            symbol=reading.symbol,
            partner=partner.pair.path if partner is not None else None,
        ),
    )


CHECK = leaf_check(FIND, run, facts=("input", "input-check", "assert", "symbol"))
