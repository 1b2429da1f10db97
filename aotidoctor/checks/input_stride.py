"""The strides of an input differ from the compiled ones: transposed, sliced, expanded or channels-last.

What it does
    Compares each constant stride of the contract with the tensor's, and the symbolic ones (``8*s27`` for a row) if the
    sizes determine the symbols and fit them. If the package states none (before torch 2.7), it finds a tensor with
    enough elements whose memory ends before the last element that the kernels' loops read, or one that they iterate
    over as if it were contiguous. Where the code asserts an alignment (2.15), the storage offset must be a multiple.

Why it matters
    Compiled code reads the memory with its own strides. x.t(), x[:, ::2], x.expand(...) and channels_last look right in
    Python, but the code reads different elements, or past the end: silently wrong numbers.

Example:
    args[0].stride: observed (1, 8), expected (8, 1)

When it is wrong
    Strides of dims with one element are never used, nor are those of an empty tensor; they are not compared. A storage
    offset is harmless where no alignment is asserted; a CPU reads at any address, unless AOTI_RUNTIME_CHECK_INPUTS=1.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.kernel_reads import agreed_values, misfits, readings, short_reads
from aotidoctor.checks.matching.leaves import TensorPair, contract_source, leaf_check, tensor_pairs
from aotidoctor.model.case import Case
from aotidoctor.model.expr import evaluate
from aotidoctor.model.torch_names import ITEMSIZE

FIND = Finder("AD-IN-014", "input_stride")

Strides = tuple[int | None, ...]


def run(case: Case) -> Observations:
    """One finding per tensor with other strides."""
    pairs = list(tensor_pairs(case, "stride"))
    values = agreed_values(readings(pairs))
    for pair in pairs:
        wanted = _other_strides(pair, values)
        if wanted is not None:
            stride = pair.tensor.stride or ()
            text = ", ".join("?" if value is None else str(value) for value in wanted)
            state = FIND.warn if pair.spec.used is False else FIND.error
            yield state(
                "stride",
                f"{pair.path}.stride",
                observed=f"{stride} of shape {pair.tensor.shape}",
                expected=f"({text})",
                source=contract_source(case, pair.spec),
                facts=pair.facts(observed_stride=stride, expected_stride=wanted, observed_shape=pair.tensor.shape),
            )
        yield from _misaligned(case, pair)
    for one in short_reads(pairs):
        if one.folded:
            yield FIND.error(
                "span",
                f"{one.pair.path}.stride",
                observed=f"{one.pair.tensor.stride} of shape {one.pair.tensor.shape}: memory for {one.given} elements",
                expected=f"memory for at least {one.needed} elements, which a kernel reads ({one.expr})",
                source=contract_source(case, one.pair.spec),
                facts={**one.facts(), "observed_stride": one.pair.tensor.stride or ()},
            )
    for walk in misfits(pairs):
        if walk.kind == "stride":
            yield FIND.error(
                "walk",
                f"{walk.pair.path}.stride",
                observed=f"{walk.pair.tensor.stride} of shape {walk.pair.tensor.shape}",
                expected=f"those of a contiguous tensor, which a kernel iterates over as {walk.steps}",
                source=contract_source(case, walk.pair.spec),
                facts=walk.facts(),
            )


def _misaligned(case: Case, pair: TensorPair) -> Observations:
    """A finding if the tensor begins at another address than the code asserts, which only a GPU needs."""
    alignment, tensor = pair.spec.alignment, pair.tensor
    begins = tensor.storage_offset * ITEMSIZE.get(tensor.dtype, 0)
    if alignment and begins % alignment:
        state = FIND.warn if pair.spec.device_type == "cpu" else FIND.error
        yield state(
            "alignment",
            f"{pair.path}.storage_offset",
            observed=f"{tensor.storage_offset} elements of {tensor.dtype}: byte {begins} of its storage",
            expected=f"a start at a multiple of {alignment} bytes",
            source=contract_source(case, pair.spec),
            facts=pair.facts(
                misfit="its first element at",
                observed_stride=f"byte {begins} of its storage",
                bytes=alignment,
                offset=tensor.storage_offset,
            ),
        )


def _other_strides(pair: TensorPair, values: Mapping[str, int]) -> Strides | None:
    """The compiled strides if the tensor has others, each None if it is unknown; None if the tensor's strides fit.

    A symbolic stride is known only if the tensor has the sizes that the symbols say: a tensor of another size is
    explained by that, and its strides follow from it.
    """
    tensor, wanted, exprs = pair.tensor, pair.spec.strides, pair.spec.stride_exprs
    if wanted is None or tensor.stride is None or tensor.numel == 0:
        return None
    if exprs is not None and len(exprs) == len(wanted):
        own = {reading.symbol: reading.value for reading in readings([pair]) if reading.symbol is not None}
        dims = zip(pair.spec.dims or (), tensor.shape, strict=False)
        if all(value is not None and values.get(symbol) == value for symbol, value in own.items()) and all(
            dim.expr is None or evaluate(dim.expr, values) in (None, size) for dim, size in dims
        ):
            wanted = tuple(
                want if want is not None or expr is None else evaluate(expr, values)
                for want, expr in zip(wanted, exprs, strict=True)
            )
    strides = zip(wanted, tensor.stride, tensor.shape, strict=False)
    return wanted if any(want is not None and want != got and size != 1 for want, got, size in strides) else None


CHECK = leaf_check(FIND, run, facts=("input", "input-check", "assert", "symbol"))
