"""Which leaves are tensors, where the package leaves that open and the inputs tell.

The generated names allow several readings of the call spec when parameters are missing among the constants (unused,
inlined or folded ones leave no trace). The reading under which tensors stand where tensors were given is the right one:
the runtime itself takes the tensors of a call in their order, whatever the leaves are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.contract import Contract, LeafSpec, Reading, Symbol
from aotidoctor.model.inputs import InputSet, LeafValue, PlainValue, TensorDesc


def resolve_leaves(contract: Contract, inputs: InputSet) -> Contract:
    """``contract`` in the reading that fits ``inputs`` best; unchanged where nothing is open or several fit alike.

    Leaves are certain afterwards if every one of them fits, or if all inputs find tensors of their dtype and rank: then
    what does not fit is a fault of the call.
    """
    if not contract.readings:
        return contract
    given = dict(inputs.leaves())
    tensors: dict[int | None, LeafSpec] = {leaf.input_index: leaf for leaf in contract.tensor_leaves()}
    scores = [_score(reading, contract.leaves, tensors, given) for reading in contract.readings]
    best = max(scores)
    if scores.count(best) > 1:
        return contract
    reading = contract.readings[scores.index(best)]
    certain = best[0] == len(contract.leaves) or best[1] == 2 * len(tensors)
    leaves = tuple(_moved(leaf, reading[leaf.index], tensors, certain=certain) for leaf in contract.leaves)
    paths = {tensors[leaf.input_index].path: leaf.path for leaf in leaves if leaf.input_index is not None}
    return replace(
        contract,
        leaves=leaves,
        outputs=tuple(replace(one, same_as=paths.get(one.same_as or "", one.same_as)) for one in contract.outputs),
        symbols=tuple(_renamed(symbol, paths) for symbol in contract.symbols),
        readings=() if certain else contract.readings,
        problems=tuple(text for text in contract.problems if not certain or text != contract.open_leaves),
        open_leaves=None if certain else contract.open_leaves,
    )


def _score(
    reading: Reading,
    leaves: Sequence[LeafSpec],
    tensors: Mapping[int | None, LeafSpec],
    given: Mapping[str, LeafValue],
) -> tuple[int, int, int]:
    """Leaves that are what the reading says, tensors of the dtype and rank it says, and flags that it takes for flags.

    The last decides only where a tensor is missing: a None in its place is likelier than a True or a number.
    """
    kinds = details = flags = 0
    for leaf in leaves:
        if leaf.path not in given:
            continue
        value, spec = given[leaf.path], tensors.get(reading[leaf.index])
        kinds += isinstance(value, TensorDesc) == (spec is not None)
        flags += spec is None and isinstance(value, PlainValue) and value.type not in ("None", "NoneType")
        if spec is not None and isinstance(value, TensorDesc):
            details += (value.dtype == spec.dtype) + (len(value.shape) == spec.rank)
    return kinds, details, flags


def _moved(leaf: LeafSpec, at: int | None, tensors: Mapping[int | None, LeafSpec], *, certain: bool) -> LeafSpec:
    """What the wrapper tells about input ``at``, under the names of ``leaf``."""
    kind = leaf.kind if not certain else "constant" if at is None else "tensor"
    if at is None:
        return LeafSpec(index=leaf.index, path=leaf.path, kind=kind, triton_names=leaf.triton_names)
    return replace(tensors[at], index=leaf.index, path=leaf.path, kind=kind, triton_names=leaf.triton_names)


def _renamed(symbol: Symbol, paths: Mapping[str, str]) -> Symbol:
    """The symbol's places under the new names of their leaves."""
    places = []
    for place in symbol.appears_in:
        path, mark, dim = place.rpartition(".shape[")
        places.append(f"{paths.get(path, path)}{mark}{dim}")
    return replace(symbol, appears_in=tuple(places))
