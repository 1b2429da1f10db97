"""Describe inputs that come from no file: live values of Python, and inputs generated to fit a contract.

Only the attributes of live tensors are read; torch is not imported here. Generated sizes and strides are small,
inside the ranges, and equal where a symbol is shared, so that a package can be tried without an inputs file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, permutations
from math import prod
from typing import Protocol, TypeVar, cast

from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.errors import InputsError
from aotidoctor.model.expr import evaluate
from aotidoctor.model.inputs import MAPPINGS, Container, InputSet, Leaf, LeafValue, PlainValue, TensorDesc, Tree
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.torch_names import ITEMSIZE, QUANTIZED, contiguous_stride
from aotidoctor.readers.inputs.describe_pickle import MAX_DEPTH, plain_value
from aotidoctor.readers.inputs.other_formats import describe_document
from aotidoctor.readers.inputs.pickle_machine import Value
from aotidoctor.readers.inputs.saved_calls import arrange, graft
from aotidoctor.readers.inputs.tensor_values import MAX_BYTES, MAX_SPAN, array_value, summarise

# Live values.
_T = TypeVar("_T")
_CANNOT_SAY = (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)


class _Storage(Protocol):
    def data_ptr(self) -> int: ...
    def nbytes(self) -> int: ...


class _Tensor(Protocol):
    """The part of ``torch.Tensor`` that is used here."""

    shape: Sequence[int]
    dtype: object
    device: object
    layout: object
    requires_grad: bool
    is_quantized: bool

    def stride(self) -> Sequence[int]: ...
    def storage_offset(self) -> int: ...
    def untyped_storage(self) -> _Storage: ...
    def is_conj(self) -> bool: ...
    def is_neg(self) -> bool: ...
    def detach(self) -> _Tensor: ...
    def flatten(self) -> _Tensor: ...
    def tolist(self) -> list[float]: ...


def describe_live(args: Sequence[object], kwargs: Mapping[str, object] | None = None) -> InputSet:
    """Describe the arguments of a call that is about to be made. Raises ``InputsError`` for endless nesting."""
    positional = tuple(_live_tree(value, 1) for value in args)
    named = {str(key): _live_tree(value, 1) for key, value in (kwargs or {}).items()}
    return InputSet(
        path=None,
        format="live",
        form="live",
        args=Container(type="tuple", children=positional),
        kwargs=Container(type="dict", children=tuple(named.values()), keys=tuple(named)),
    )


def _live_tree(value: object, depth: int) -> Tree[LeafValue]:
    if depth > MAX_DEPTH:
        observed = f"containers of more than {MAX_DEPTH} levels"
        raise InputsError(observed, cause="inputs-file-format", subject="inputs", observed=observed)
    kind = type(value).__name__.lower()
    if isinstance(value, dict) and kind in MAPPINGS:
        keys = tuple(key if type(key) in (str, int) else repr(key)[:80] for key in value)
        return Container(type=kind, children=tuple(_live_tree(item, depth + 1) for item in value.values()), keys=keys)
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        children = tuple(_live_tree(item, depth + 1) for item in value)
        return Container(type=f"namedtuple:{type(value).__name__}", children=children, keys=fields)
    if type(value) in (tuple, list):
        items = cast("Sequence[object]", value)
        return Container(type=kind, children=tuple(_live_tree(item, depth + 1) for item in items))
    return Leaf(value=_live_leaf(value))


def _live_leaf(value: object) -> LeafValue:
    if all(hasattr(value, name) for name in ("dtype", "device", "layout", "storage_offset")):
        return _tensor(cast("_Tensor", value))
    name = type(value).__name__
    if type(value).__module__.partition(".")[0] == "numpy" and name == "ndarray":
        return array_value(str(getattr(value, "dtype", "")), tuple(map(int, getattr(value, "shape", ()))))
    if value is None or type(value) in (bool, int, float, str, bytes):
        return plain_value(cast("Value", value))
    of_torch = type(value).__module__ == "torch" and name in ("dtype", "Size", "device")
    text = str(value) if of_torch or type(value) is complex else f"a {name}"
    return PlainValue(type=name, text=text[:80])


def _tensor(tensor: _Tensor) -> TensorDesc:
    dtype = str(tensor.dtype).removeprefix("torch.")
    layout = str(tensor.layout).removeprefix("torch.")
    storage, nbytes = _storage(tensor)
    name = type(tensor).__name__
    # To look at values elsewhere would wait for the device.
    is_read = storage is not None and str(tensor.device) == "cpu" and layout == "strided"
    values = _values(tensor, dtype, MAX_BYTES) if is_read and dtype not in QUANTIZED else None
    if values is not None and dtype == "bool":
        values = [int(value) for value in values]
    return TensorDesc(
        dtype=dtype,
        shape=_shape(tensor),
        stride=_answer_or(lambda: tuple(map(int, tensor.stride())), None) if layout == "strided" else None,
        storage_offset=_answer_or(lambda: int(tensor.storage_offset()), 0),
        storage=storage,
        storage_nbytes=nbytes,
        device=str(tensor.device),
        requires_grad=bool(tensor.requires_grad),
        conj=_answer_or(lambda: bool(tensor.is_conj()), otherwise=False),
        neg=_answer_or(lambda: bool(tensor.is_neg()), otherwise=False),
        layout="nested" if layout == "jagged" or getattr(tensor, "is_nested", False) else layout,
        quantized=dtype in QUANTIZED,
        subclass=None if name == "Tensor" else name,
        stats=None if values is None else summarise(values),
        elements=partial(_values, tensor, dtype, MAX_SPAN) if is_read else None,
    )


def _answer_or(ask: Callable[[], _T], otherwise: _T) -> _T:
    """The result of ``ask``; ``otherwise`` where a tensor of this kind does not have it."""
    try:
        return ask()
    except _CANNOT_SAY:
        return otherwise


def _shape(tensor: _Tensor) -> tuple[int, ...]:
    """The sizes; a nested tensor has none."""
    return _answer_or(lambda: tuple(map(int, tensor.shape)), ())


def _storage(tensor: _Tensor) -> tuple[str | None, int | None]:
    try:
        storage = tensor.untyped_storage()
        address, nbytes = storage.data_ptr(), storage.nbytes()
    except _CANNOT_SAY:
        return None, None
    return (f"{address:#x}" if address else None), int(nbytes)


def _values(tensor: _Tensor, dtype: str, most: int) -> Sequence[int] | Sequence[float] | None:
    """The values row-major; None where they are complex, of more than ``most`` bytes, or not available."""
    if dtype.startswith("complex") or math.prod(_shape(tensor)) * ITEMSIZE.get(dtype, 16) > most:
        return None
    return _answer_or(lambda: tensor.detach().flatten().tolist(), None)


# Sizes and strides that satisfy a contract.
SMALL = (4, 2, 3, 5, 6, 8, 16, 32, 64, 1)
MOST = 4096
MAX_PERMUTED = 5
# Of float32, 1 GiB: what reads more is not tried with made-up inputs.
MOST_READ = 1 << 28


def choose_symbols(contract: ModelContract) -> tuple[dict[str, int], list[str]]:
    """A value for every symbol that a dim shows, and a note for each that no small value suits."""
    dynamic = [dim for leaf in contract.leaves for dim in leaf.dims or () if dim.static is None]
    dims = [dim for dim in dynamic if dim.expr is not None]
    names = sorted({name for dim in dims if dim.expr is not None for name in dim.expr.symbols})
    # A recovered contract does not tell which dynamic dims belong together. Then every dim gets its lower bound: sizes
    # that grow with one another (``s0``, ``s0 + 1``, ``2*s0``) take those together.
    smallest = len(dims) < len(dynamic) and any(dim.min for dim in dynamic)
    chosen: dict[str, int] = {}
    notes: list[str] = []
    for name in names:
        alone = [dim for dim in dims if dim.expr is not None and dim.expr.symbols == {name}]
        value = next((size for size in _candidates(alone, smallest=smallest) if _suits(alone, {name: size})), None)
        if value is None:
            notes.append(f"no size up to {MOST} of {name} is inside all ranges; made with {SMALL[0]}")
        chosen[name] = SMALL[0] if value is None else value
    return _adjust_symbols(dims, chosen), notes


def _candidates(dims: Iterable[Dim], *, smallest: bool = False) -> Iterator[int]:
    """Small sizes first, then the bounds themselves, then all others up to ``MOST``; ``smallest``: from below."""
    bounds = [bound for dim in dims for bound in (dim.min, dim.max) if bound is not None and 0 < bound < 1 << 31]
    if smallest:
        return chain(range(2, MOST), (1,), sorted(bounds))
    return chain(SMALL, sorted(bounds), range(7, MOST))


def _suits(dims: Iterable[Dim], values: Mapping[str, int]) -> bool:
    for dim in dims:
        size = None if dim.expr is None else evaluate(dim.expr, values)
        if size is None or size < 0:
            continue
        if (dim.min is not None and size < dim.min) or (dim.max is not None and size > dim.max):
            return False
    return True


def _adjust_symbols(dims: Iterable[Dim], chosen: dict[str, int]) -> dict[str, int]:
    """Change single symbols where a dim of several symbols is out of its range."""
    mixed = [dim for dim in dims if dim.expr is not None and len(dim.expr.symbols) > 1]
    if _suits(mixed, chosen):
        return chosen
    for name in chosen:
        for size in _candidates(dims):
            trial = {**chosen, name: size}
            if _suits(dims, trial):
                return trial
    return chosen


def choose_shape(leaf: LeafSpec, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of one tensor; dims that the contract does not tell are small.

    Where their number is not known, there is one more for as many elements as a kernel reads.
    """
    if leaf.rank is not None:
        return tuple(_size(dim, symbols) for dim in leaf.dims) if leaf.dims is not None else (SMALL[0],) * leaf.rank
    known = tuple(_size(dim, symbols) for dim in leaf.dims or ())
    extents = (evaluate(one.extent, symbols) for one in leaf.reads)
    rows = prod(known)
    more = -(-max((extent for extent in extents if extent is not None), default=1) // max(rows, 1))
    return (*known, min(more, MOST_READ)) if more > 1 or not known else known


def _size(dim: Dim, symbols: Mapping[str, int]) -> int:
    if dim.static is not None:
        return dim.static
    size = None if dim.expr is None else evaluate(dim.expr, symbols)
    if size is not None and size >= 0:
        return size
    if dim.min:
        return dim.min
    return SMALL[0] if dim.max is None else min(SMALL[0], dim.max)


def choose_stride(leaf: LeafSpec, shape: tuple[int, ...], symbols: Mapping[str, int]) -> tuple[int, ...] | None:
    """Strides in elements, None for a contiguous tensor."""
    known = leaf.strides
    if leaf.stride_exprs is not None:
        known = tuple(None if expr is None else evaluate(expr, symbols) for expr in leaf.stride_exprs)
    if known is None or len(known) != len(shape):
        return None
    plain = contiguous_stride(shape)
    if _agrees(known, plain):
        return None
    found = _dense(known, shape)
    if found is None:
        found = tuple(step if want is None else want for want, step in zip(known, plain, strict=True))
    return found


def _agrees(known: tuple[int | None, ...], stride: tuple[int, ...]) -> bool:
    return all(want is None or want == step for want, step in zip(known, stride, strict=True))


def _dense(known: tuple[int | None, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a permuted but dense tensor (channels_last, transposed) that agree with the known ones."""
    if len(shape) > MAX_PERMUTED:
        return None
    for order in permutations(range(len(shape))):
        inner = contiguous_stride(tuple(shape[dim] for dim in order))
        stride = [0] * len(shape)
        for position, dim in enumerate(order):
            stride[dim] = inner[position]
        if _agrees(known, tuple(stride)):
            return tuple(stride)
    return None


# Generated inputs.
_BAG = "embedding_bag"
_DIVIDES = ("div", "remainder", "fmod")


def generate_inputs(contract: ModelContract, *, seed: int) -> tuple[InputSet, JsonObject]:
    """The description of made-up inputs, and the JSON document that the worker makes the tensors from.

    Sizes are small, inside the compiled ranges and equal where inputs share a symbol. Floats are normal, integers 0 or
    1 (1 where the code divides), booleans random; leaves that are no tensors are None. The same contract and seed give
    the same inputs.
    """
    symbols, notes = choose_symbols(contract)
    document = document_of(contract, generated_leaves(contract, symbols, seed, notes))
    return describe_generated(contract, document, (f"generated with seed {seed}", *notes)), document


def generated_leaves(
    contract: ModelContract, symbols: Mapping[str, int], seed: int, notes: list[str]
) -> dict[int, JsonValue]:
    """Each leaf by its index, as an inputs document has it: a tensor with sizes of ``symbols``, or None."""
    return {leaf.index: _leaf(leaf, contract, symbols, seed, notes) for leaf in contract.leaves}


def describe_generated(contract: ModelContract, document: JsonObject, notes: tuple[str, ...] = ()) -> InputSet:
    """The description of the tensors that the worker makes of ``document``. Raises ``DocumentError``."""
    root = describe_document(document)
    arranged = arrange(root)
    args, kwargs = replace(graft(arranged.args, root), type="tuple"), graft(arranged.kwargs, root)
    if contract.args is not None and contract.kwargs is not None:
        args, kwargs = _retype_containers(contract.args, args), _retype_containers(contract.kwargs, kwargs)
    return InputSet(path=None, format="generated", form="generated", args=args, kwargs=kwargs, notes=notes)


def _retype_containers(spec: Container[int], given: Container[LeafValue]) -> Container[LeafValue]:
    """The containers called as in the call spec: a JSON document has only some types, which flatten alike."""
    if len(spec.children) != len(given.children) or (spec.keys and given.keys and spec.keys != given.keys):
        return given
    children = tuple(
        _retype_containers(wanted, child) if isinstance(wanted, Container) and isinstance(child, Container) else child
        for wanted, child in zip(spec.children, given.children, strict=True)
    )
    return Container(type=spec.type, children=children, keys=spec.keys)


def document_of(contract: ModelContract, leaves: Mapping[int, JsonValue]) -> JsonObject:
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


def _leaf(
    leaf: LeafSpec, contract: ModelContract, symbols: Mapping[str, int], seed: int, notes: list[str]
) -> JsonValue:
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
        # Offsets of an embedding bag: zeros, as empty bags, are always right; random ones fall.
        bags = [call for call in contract.kernels if _BAG in call.name]
        spec["low"], spec["high"] = (
            (0, 0)
            if any(leaf.generated_name == name for call in bags for name in call.arguments[2:3])
            else _integer_range(contract)
        )
    return {"tensor": spec}


def _integer_range(contract: ModelContract) -> tuple[int, int]:
    """0 to 1, which fits nearly every table; only 0 where an index check allows no more; only 1 where code divides."""
    if "1" in {check.bound.rstrip("Ll") for check in contract.bound_checks}:
        return 0, 0
    names = {name for kernel in contract.kernels for name in (kernel.name, *kernel.origins)}
    return (1, 1) if any(word in name for name in names for word in _DIVIDES) else (0, 1)
