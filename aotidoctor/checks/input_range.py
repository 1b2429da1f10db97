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

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.leaves import TensorPair, contract_source, leaf_check, tensor_pairs
from aotidoctor.kernels.expressions import broken_comparisons
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.evidence import Evidence, FactValue
from aotidoctor.model.other_artifacts import CompiledFunction

FIND = Finder("AD-IN-017", "input_range")


def run(case: Case) -> Findings:
    """One finding per dim outside its range, one for a batch of one. Warnings: a run shows whether it matters.

    Only ExecuTorch, which holds the memory of an input, certainly refuses one that is too large for it, and a function
    of aot_compile, which evaluates its guards at each call.
    """
    if case.artifact.precompiled is not None and (function := case.artifact.precompiled.function) is not None:
        return list(_guards(case, function))
    found = []
    for pair in tensor_pairs(case, "stride"):
        if (capacity := _capacity(case, pair)) is not None and pair.tensor.numel > capacity:
            found.append(_beyond_capacity(case, pair, capacity))
            continue
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


def _capacity(case: Case, pair: TensorPair) -> int | None:
    """The elements that the plan of an ExecuTorch method has room for; None where nothing is planned."""
    if case.artifact.executorch is None or pair.spec.dims is None:
        return None
    sizes = [dim.static if dim.static is not None else dim.max for dim in pair.spec.dims]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _beyond_capacity(case: Case, pair: TensorPair, capacity: int) -> Evidence:
    # The dim that is farthest beyond its bound.
    over = [
        (size - dim.max, at)
        for at, (dim, size) in enumerate(zip(pair.spec.dims or (), pair.tensor.shape, strict=True))
        if dim.max is not None
    ]
    at = max(over)[1]
    dim, size = (pair.spec.dims or ())[at], pair.tensor.shape[at]
    return FIND.error(
        "capacity",
        f"{pair.path}.shape[{at}]",
        observed=f"{size}: {pair.tensor.numel} elements",
        expected=f"at most {dim.max}, and at most {capacity} elements in {describe_spec(pair.spec)}",
        message=f"{pair.path} has {pair.tensor.numel} elements {pair.tensor.shape}, and the method's plan has room for "
        f"{capacity}: ExecuTorch refuses it (Attempted to resize a bounded tensor, 0x10)",
        source=contract_source(case, pair.spec),
        facts=pair.facts(dim=at, size=size, low=dim.min, high=dim.max, symbol=None),
    )


# A relation between numbers, once the sizes stand in place of their names.
_SIZE = re.compile(r"(L(?:\[[^\[\]]{1,60}\]){1,8})\.(size|stride)\(\)\[(\d{1,3})\]")


def _guards(case: Case, function: CompiledFunction) -> Iterator[Evidence]:
    """One finding per guard about sizes that does not hold; those that other checks name are left to them."""
    pairs = {pair.spec.generated_name: pair for pair in tensor_pairs(case, "stride")}

    def value(hit: re.Match[str]) -> str:
        pair = pairs.get(hit[1])
        sizes = () if pair is None else pair.tensor.shape if hit[2] == "size" else pair.tensor.stride or ()
        return str(sizes[int(hit[3])]) if int(hit[3]) < len(sizes) else hit[0]

    for guard in function.guards:
        places = _SIZE.findall(guard)
        pair = pairs.get(places[0][0]) if places and " == " not in guard else None
        if pair is None:
            continue
        for low, sign, high in broken_comparisons(_SIZE.sub(value, guard), {})[:1]:
            yield FIND.error(
                "guard",
                f"{pair.path}.shape[{places[0][2]}]",
                observed=f"{low} {sign} {high}, which does not hold",
                expected=guard,
                message=f"{pair.path}: the guard {guard} does not hold: {low} {sign} {high}",
                facts=pair.facts(guard=guard),
            )


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
