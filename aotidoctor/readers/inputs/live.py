"""Tensors that exist already, as descriptions. They are only asked what they are; torch is not imported here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar, cast

from aotidoctor.model.dtypes import ITEMSIZE, QUANTIZED
from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import InputSet, LeafValue, PlainValue, TensorDesc, ValueStats
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree
from aotidoctor.readers.inputs.describe import MAX_DEPTH, plain_value
from aotidoctor.readers.inputs.ndarrays import array_value
from aotidoctor.readers.inputs.nodes import Value
from aotidoctor.readers.inputs.values import MAX_BYTES, MAX_SPAN, summarise

_T = TypeVar("_T")
_CANNOT_SAY = (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)


class _Flat(Protocol):
    def tolist(self) -> list[float]: ...


class _Storage(Protocol):
    def data_ptr(self) -> int: ...
    def nbytes(self) -> int: ...


class _Tensor(Protocol):
    """What of ``torch.Tensor`` is used here."""

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
    def flatten(self) -> _Flat: ...


def describe_live(args: Sequence[object], kwargs: Mapping[str, object] | None = None) -> InputSet:
    """Describe the arguments of a call that is about to be made. Raises ``InputsError`` for endless nesting."""
    positional = tuple(_tree(value, 1) for value in args)
    named = {str(key): _tree(value, 1) for key, value in (kwargs or {}).items()}
    return InputSet(
        path=None,
        format="live",
        form="live",
        args=Container(type="tuple", children=positional),
        kwargs=Container(type="dict", children=tuple(named.values()), keys=tuple(named)),
    )


def _tree(value: object, depth: int) -> Tree[LeafValue]:
    if depth > MAX_DEPTH:
        observed = f"containers of more than {MAX_DEPTH} levels"
        raise InputsError(observed, cause="inputs-file-format", subject="inputs", observed=observed)
    kind = type(value).__name__.lower()
    if isinstance(value, dict) and kind in MAPPINGS:
        keys = tuple(key if type(key) in (str, int) else repr(key)[:80] for key in value)
        return Container(type=kind, children=tuple(_tree(item, depth + 1) for item in value.values()), keys=keys)
    fields = getattr(value, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        children = tuple(_tree(item, depth + 1) for item in value)
        return Container(type=f"namedtuple:{type(value).__name__}", children=children, keys=fields)
    if type(value) in (tuple, list):
        items = cast("Sequence[object]", value)
        return Container(type=kind, children=tuple(_tree(item, depth + 1) for item in items))
    return Leaf(value=_leaf(value))


def _leaf(value: object) -> LeafValue:
    if all(hasattr(value, name) for name in ("dtype", "device", "layout", "storage_offset")):
        return _tensor(cast("_Tensor", value))
    name = type(value).__name__
    if type(value).__module__.partition(".")[0] == "numpy" and name == "ndarray":
        return array_value(str(getattr(value, "dtype", "")), tuple(map(int, getattr(value, "shape", ()))))
    if value is None or type(value) in (bool, int, float, str, bytes):
        return plain_value(cast("Value", value))
    shown = type(value) is complex or (type(value).__module__, name) in (("torch", "dtype"), ("torch", "Size"))
    text = str(value) if shown or (type(value).__module__, name) == ("torch", "device") else f"a {name}"
    return PlainValue(type=name, text=text[:80])


def _tensor(tensor: _Tensor) -> TensorDesc:
    dtype = str(tensor.dtype).removeprefix("torch.")
    layout = str(tensor.layout).removeprefix("torch.")
    storage, nbytes = _storage(tensor)
    name = type(tensor).__name__
    # To look at values elsewhere would wait for the device.
    is_read = storage is not None and str(tensor.device) == "cpu" and layout == "strided"
    return TensorDesc(
        dtype=dtype,
        shape=_shape(tensor),
        stride=_told(lambda: tuple(map(int, tensor.stride())), None) if layout == "strided" else None,
        storage_offset=_told(lambda: int(tensor.storage_offset()), 0),
        storage=storage,
        storage_nbytes=nbytes,
        device=str(tensor.device),
        requires_grad=bool(tensor.requires_grad),
        conj=_told(lambda: bool(tensor.is_conj()), otherwise=False),
        neg=_told(lambda: bool(tensor.is_neg()), otherwise=False),
        layout="nested" if layout == "jagged" or getattr(tensor, "is_nested", False) else layout,
        quantized=dtype in QUANTIZED,
        subclass=None if name == "Tensor" else name,
        stats=_stats(tensor, dtype) if is_read else None,
        elements=partial(_values, tensor, dtype, MAX_SPAN) if is_read else None,
    )


def _told(ask: Callable[[], _T], otherwise: _T) -> _T:
    """What a tensor says of itself; ``otherwise`` where one of its kind cannot say it."""
    try:
        return ask()
    except _CANNOT_SAY:
        return otherwise


def _shape(tensor: _Tensor) -> tuple[int, ...]:
    """The sizes; a nested tensor has none."""
    return _told(lambda: tuple(map(int, tensor.shape)), ())


def _storage(tensor: _Tensor) -> tuple[str | None, int | None]:
    try:
        storage = tensor.untyped_storage()
        address, nbytes = storage.data_ptr(), storage.nbytes()
    except _CANNOT_SAY:
        return None, None
    return (f"{address:#x}" if address else None), int(nbytes)


def _values(tensor: _Tensor, dtype: str, most: int) -> Sequence[int] | Sequence[float] | None:
    """The values row-major; None where they are complex, of more than ``most`` bytes, or cannot be told."""
    if dtype.startswith("complex") or math.prod(_shape(tensor)) * ITEMSIZE.get(dtype, 16) > most:
        return None
    return _told(lambda: tensor.detach().flatten().tolist(), None)


def _stats(tensor: _Tensor, dtype: str) -> ValueStats | None:
    values = None if dtype in QUANTIZED else _values(tensor, dtype, MAX_BYTES)
    if values is None:
        return None
    return summarise([int(value) for value in values] if dtype == "bool" else values)
