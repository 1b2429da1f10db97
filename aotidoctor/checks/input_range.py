"""A dynamic dim is outside the range it was compiled for.

What it does
    Compares each dynamic dim of each tensor with the lower and upper bound compiled into the package.

Why it matters
    AOTI often computes it anyway, and correctly; AOTI_RUNTIME_CHECK_INPUTS and serving refuse it. Buffers and index
    types were chosen for sizes up to the upper bound.

Example:
    args[0].shape[0]: observed 200, expected 2..64

When it is wrong
    A batch of 1 below a compiled minimum of 2 is an artefact of export (0 and 1 are specialised) and runs correctly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.call_overlay import contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.evidence import Evidence, FactValue

FIND = Finder("AD-IN-017", "input_range")


def run(case: Case) -> Findings:
    """One finding per dim outside its range, one for a batch of one. Warnings only: a run shows whether it matters."""
    found = []
    for pair in tensor_pairs(case, "stride"):
        for at, (dim, size) in enumerate(zip(pair.spec.dims or (), pair.tensor.shape, strict=False)):
            low, high = dim.min, dim.max
            if dim.static is not None:
                continue
            if low is not None and size < low:
                kind = "batch-one" if size == 1 and low == 2 else "low"
            elif high is not None and size > high:
                kind = "high"
            else:
                continue
            bounds = f"at least {low}" if high is None else f"at most {high}" if low is None else f"{low}..{high}"
            found.append(
                FIND.warn(
                    kind,
                    f"{pair.path}.shape[{at}]",
                    observed=f"{size}",
                    expected=f"{bounds} in {describe_spec(pair.spec)}",
                    source=contract_source(case, pair.spec),
                    facts=pair.facts(dim=at, size=size, low=low, high=high, symbol=str(dim.expr) if dim.expr else None),
                )
            )
    return list(_one_batch(found))


def _one_batch(findings: Sequence[Evidence]) -> Iterator[Evidence]:
    """Merge the findings about one batch of one, however many inputs have that batch."""
    batches: dict[FactValue, list[str]] = {}
    for finding in findings:
        symbol = finding.facts.get("symbol")
        if finding.kind == "batch-one" and symbol is not None:
            batches.setdefault(symbol, []).append(finding.subject or "")
    for finding in findings:
        symbol = finding.facts.get("symbol")
        places = batches.get(symbol, []) if finding.kind == "batch-one" else []
        if finding.subject in places[1:]:
            continue
        if len(places) < 2:
            yield finding
            continue
        observed = f"{finding.observed} (and {len(places) - 1} more with the size {symbol})"
        yield replace(finding, observed=observed, facts={**finding.facts, "places": tuple(places)})


CHECK = leaf_check(FIND, run, facts=("input", "input-check"))
