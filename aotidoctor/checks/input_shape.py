"""A dim that was fixed at export has a different size.

What it does
    Compares each static dim of each tensor with the size compiled into the package. If the package states no sizes
    (before torch 2.7), it compares the number of elements with the number that the kernels' loops read, and the steps
    of those loops with the tensor's dims if they leave elements unread.

Why it matters
    The kernel reads the memory with the compiled sizes: wider rows are skewed, a shorter tensor is read past its end, a
    larger batch is cut off. None of it raises unless AOTI_RUNTIME_CHECK_INPUTS is on.

Example:
    args[0].shape[1]: observed 17, expected 16

When it is wrong
    If the number of dims differs, input_rank reports it and this check skips the tensor. If a tensor has too few
    elements and nothing states the sizes, the check cannot determine which dim is too small or missing. A program that
    flattens a tensor and takes a part that is not a whole number of rows looks like one that was given a different
    shape.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.call_overlay import (
    TensorPair,
    contract_source,
    leaf_check,
    static_mismatches,
    tensor_pairs,
)
from aotidoctor.checks.matching.kernel_reads import Misfit, misfits, short_reads
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.evidence import Evidence, plural

FIND = Finder("AD-IN-013", "input_shape")


def run(case: Case) -> Findings:
    """One finding per tensor with a static dim of another size, or too few elements; it names the first such dim."""
    pairs = list(tensor_pairs(case, "shape"))
    found = [_finding(case, pair) for pair in pairs if static_mismatches(pair.spec, pair.tensor)]
    read = list(tensor_pairs(case, "stride"))
    short = [one for one in short_reads(read) if one.partner is None and one.size_alone]
    odd = [_odd(case, pair, dim) for pair in pairs for dim in _not_among(pair)]
    walked = [_walk_evidence(case, one) for one in misfits(read) if one.kind == "shape"]
    return [
        *found,
        *odd,
        *(
            FIND.error(
                "elements",
                one.pair.path,
                observed=f"{plural(one.given, 'element')} {one.pair.tensor.shape}",
                expected=f"at least {one.needed} elements, which a kernel reads ({one.expr})",
                source=contract_source(case, one.pair.spec),
                facts=one.facts(),
            )
            for one in short
        ),
        *walked,
    ]


def _walk_evidence(case: Case, one: Misfit) -> Evidence:
    dim, shape = one.dim, one.pair.tensor.shape
    as_these = f"a kernel iterates over it as {one.steps}"
    return FIND.error(
        "walk",
        one.pair.path if dim is None else f"{one.pair.path}.shape[{dim}]",
        observed=f"{shape}, which is only partly read" if dim is None else f"{shape[dim]} in {shape}",
        expected=as_these if dim is None else f"{one.steps.turns[dim][0]}: {as_these}",
        source=contract_source(case, one.pair.spec),
        facts=one.facts(),
    )


def _not_among(pair: TensorPair) -> list[int]:
    """The first dim with a size that no fixed one has."""
    dims = zip(pair.spec.dims or (), pair.tensor.shape, strict=False)
    return [at for at, (dim, size) in enumerate(dims) if dim.among and size not in dim.among][:1]


def _odd(case: Case, pair: TensorPair, dim: int) -> Evidence:
    size, among = pair.tensor.shape[dim], (pair.spec.dims or ())[dim].among
    return FIND.error(
        "among",
        f"{pair.path}.shape[{dim}]",
        observed=f"{size} in {pair.tensor.shape}",
        expected=f"a fixed size: one of {', '.join(map(str, among))}",
        source=contract_source(case, pair.spec),
        facts=pair.facts(dim=dim, size=size, observed_shape=pair.tensor.shape),
    )


def _finding(case: Case, pair: TensorPair) -> Evidence:
    dim, size, wanted = static_mismatches(pair.spec, pair.tensor)[0]
    expected_shape = tuple(dim.static for dim in pair.spec.dims or ())
    state = FIND.warn if pair.spec.used is False else FIND.error
    return state(
        "static",
        f"{pair.path}.shape[{dim}]",
        observed=f"{size} in {pair.tensor.shape}",
        expected=f"{wanted} in {describe_spec(pair.spec)}",
        source=contract_source(case, pair.spec),
        facts=pair.facts(
            dim=dim, size=size, expected_size=wanted, observed_shape=pair.tensor.shape, expected_shape=expected_shape
        ),
    )


CHECK = leaf_check(FIND, run, facts=("input", "input-check", "assert", "symbol"))
