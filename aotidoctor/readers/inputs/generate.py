"""Made-up inputs that fit a contract, so that a package can be tried without an inputs file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model.contract import Contract, LeafSpec
from aotidoctor.model.forms import arrange, graft
from aotidoctor.model.inputs import InputSet, LeafValue
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree
from aotidoctor.readers.inputs.json_values import describe_document
from aotidoctor.readers.inputs.sizes import choose_shape, choose_stride, choose_symbols

_BAG = "embedding_bag"
_DIVIDES = ("div", "remainder", "fmod")


def generate_inputs(contract: Contract, *, seed: int) -> tuple[InputSet, JsonObject]:
    """The description of made-up inputs, and the JSON document that the worker makes the tensors from.

    Sizes are small, inside the compiled ranges and equal where inputs share a symbol. Floats are normal, integers 0 or
    1 (1 where the code divides), booleans random; leaves that are no tensors are None. The same contract and seed give
    the same inputs.
    """
    symbols, notes = choose_symbols(contract)
    document = document_of(contract, generated_leaves(contract, symbols, seed, notes))
    return described(contract, document, (f"generated with seed {seed}", *notes)), document


def generated_leaves(
    contract: Contract, symbols: Mapping[str, int], seed: int, notes: list[str]
) -> dict[int, JsonValue]:
    """Each leaf by its index, as an inputs document has it: a tensor with sizes of ``symbols``, or None."""
    return {leaf.index: _leaf(leaf, contract, symbols, seed, notes) for leaf in contract.leaves}


def described(contract: Contract, document: JsonObject, notes: tuple[str, ...] = ()) -> InputSet:
    """The description of the tensors that the worker makes of ``document``. Raises ``DocumentError``."""
    root = describe_document(document)
    arranged = arrange(root)
    args, kwargs = replace(graft(arranged.args, root), type="tuple"), graft(arranged.kwargs, root)
    if contract.args is not None and contract.kwargs is not None:
        args, kwargs = _typed(contract.args, args), _typed(contract.kwargs, kwargs)
    return InputSet(path=None, format="generated", form="generated", args=args, kwargs=kwargs, notes=notes)


def _typed(spec: Container[int], given: Container[LeafValue]) -> Container[LeafValue]:
    """The containers called as in the call spec: a JSON document has only some types, which flatten alike."""
    if len(spec.children) != len(given.children) or (spec.keys and given.keys and spec.keys != given.keys):
        return given
    children = tuple(
        _typed(wanted, child) if isinstance(wanted, Container) and isinstance(child, Container) else child
        for wanted, child in zip(spec.children, given.children, strict=True)
    )
    return Container(type=spec.type, children=children, keys=spec.keys)


def document_of(contract: Contract, leaves: Mapping[int, JsonValue]) -> JsonObject:
    """The inputs document of a call with these leaves."""
    if contract.args is None or contract.kwargs is None:
        return {"args": [leaves[leaf.index] for leaf in contract.tensor_leaves()], "kwargs": {}}
    kwargs = contract.kwargs
    return {
        "args": [_tree(child, leaves) for child in contract.args.children],
        "kwargs": {str(key): _tree(child, leaves) for key, child in zip(kwargs.keys, kwargs.children, strict=True)},
    }


def _tree(tree: Tree[int], leaves: Mapping[int, JsonValue]) -> JsonValue:
    if isinstance(tree, Leaf):
        return leaves.get(tree.value)
    children = [_tree(child, leaves) for child in tree.children]
    if tree.keys and not tree.type.startswith("namedtuple"):
        return {"dict": [[key, child] for key, child in zip(tree.keys, children, strict=True)]}
    if tree.type in MAPPINGS:
        return {"dict": []}
    return {"list" if tree.type == "list" else "tuple": children}


def _leaf(leaf: LeafSpec, contract: Contract, symbols: Mapping[str, int], seed: int, notes: list[str]) -> JsonValue:
    if leaf.kind == "constant" or (leaf.input_index is None and leaf.kind != "tensor"):
        return None
    shape = choose_shape(leaf, symbols)
    if leaf.rank is None:
        notes.append(f"{leaf.path}: the package does not record its shape; generated as {shape}")
    if leaf.dtype is None:
        notes.append(f"{leaf.path}: the contract does not give its dtype; generated as float32")
    dtype = leaf.dtype or "float32"
    spec: JsonObject = {"dtype": dtype, "shape": list(shape), "seed": seed * 1009 + leaf.index}
    stride = choose_stride(leaf, shape, symbols)
    if stride is not None:
        spec["stride"] = list(stride)
    if leaf.device_type not in (None, "cpu"):
        spec["device"] = leaf.device_type
    if dtype.startswith(("int", "uint")):
        spec["low"], spec["high"] = (0, 0) if _is_offsets(leaf, contract) else _integer_range(contract)
    return {"tensor": spec}


def _is_offsets(leaf: LeafSpec, contract: Contract) -> bool:
    """Offsets of an embedding bag: zeros, as empty bags, are always right; random ones fall."""
    bags = [call for call in contract.kernels if _BAG in call.name]
    return any(leaf.generated_name == name for call in bags for name in call.arguments[2:3])


def _integer_range(contract: Contract) -> tuple[int, int]:
    """0 to 1, which fits nearly every table; only 0 where an index check allows no more; only 1 where code divides."""
    if "1" in {check.bound.rstrip("Ll") for check in contract.bound_checks}:
        return 0, 0
    names = {name for kernel in contract.kernels for name in (kernel.name, *kernel.origins)}
    return (1, 1) if any(word in name for name in names for word in _DIVIDES) else (0, 1)
