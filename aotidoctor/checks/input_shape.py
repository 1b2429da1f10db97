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

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.kernel_reads import misfits, short_reads
from aotidoctor.checks.matching.leaves import contract_source, leaf_check, tensor_pairs
from aotidoctor.localize.call_overlay import static_mismatches
from aotidoctor.model.case import Case
from aotidoctor.model.contract import describe_spec
from aotidoctor.model.evidence import plural

FIND = Finder("AD-IN-013", "input_shape")


def run(case: Case) -> Observations:
    """One finding per tensor with a static dim of another size, or too few elements; it names the first such dim."""
    yield from _stated_sizes(case)
    read = list(tensor_pairs(case, "stride"))
    for one in short_reads(read):
        if one.partner is None and one.size_alone:
            yield FIND.error(
                "elements",
                one.pair.path,
                observed=f"{plural(one.given, 'element')} {one.pair.tensor.shape}",
                expected=f"at least {one.needed} elements, which a kernel reads ({one.expr})",
                source=contract_source(case, one.pair.spec),
                facts=one.facts(),
            )
    for walk in misfits(read):
        dim, shape = walk.dim, walk.pair.tensor.shape
        as_these = f"a kernel iterates over it as {walk.steps}"
        if walk.kind == "shape":
            yield FIND.error(
                "walk",
                walk.pair.path if dim is None else f"{walk.pair.path}.shape[{dim}]",
                observed=f"{shape}, which is only partly read" if dim is None else f"{shape[dim]} in {shape}",
                expected=as_these if dim is None else f"{walk.steps.turns[dim][0]}: {as_these}",
                source=contract_source(case, walk.pair.spec),
                facts=walk.facts(),
            )


def _stated_sizes(case: Case) -> Observations:
    """Findings about sizes that the package states: one fixed size per dim, or several to choose from."""
    for pair in tensor_pairs(case, "shape"):
        shape, dims, source = pair.tensor.shape, pair.spec.dims or (), contract_source(case, pair.spec)
        for at, size, wanted in static_mismatches(pair.spec, pair.tensor)[:1]:
            state = FIND.warn if pair.spec.used is False else FIND.error
            yield state(
                "static",
                f"{pair.path}.shape[{at}]",
                observed=f"{size} in {shape}",
                expected=f"{wanted} in {describe_spec(pair.spec)}",
                source=source,
                facts=pair.facts(
                    dim=at,
                    size=size,
                    expected_size=wanted,
                    observed_shape=shape,
                    expected_shape=tuple(dim.static for dim in dims),
                ),
            )
        sizes = enumerate(zip(dims, shape, strict=False))
        for at in [at for at, (dim, size) in sizes if dim.among and size not in dim.among][:1]:
            yield FIND.error(
                "among",
                f"{pair.path}.shape[{at}]",
                observed=f"{shape[at]} in {shape}",
                expected=f"a fixed size: one of {', '.join(map(str, dims[at].among))}",
                source=source,
                facts=pair.facts(dim=at, size=shape[at], observed_shape=shape),
            )


CHECK = leaf_check(FIND, run, facts=("input", "input-check", "assert", "symbol"))
