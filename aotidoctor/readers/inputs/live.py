"""Tensors that exist already, as descriptions. They are only asked what they are; torch is not imported here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from aotidoctor.model.dtypes import ITEMSIZE, QUANTIZED
from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import Elements, InputSet, LeafValue, PlainValue, TensorDesc, ValueStats
from aotidoctor.model.tree import Container, Leaf, Tree
from aotidoctor.readers.inputs.describe import MAX_DEPTH, plain_value
from aotidoctor.readers.inputs.nodes import Value
from aotidoctor.readers.inputs.values import MAX_BYTES, MAX_SPAN, summarise

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
    if isinstance(value, dict) and kind in ("dict", "ordereddict", "defaultdict"):
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
        dtype = str(getattr(value, "dtype", ""))
        shape = tuple(int(size) for size in getattr(value, "shape", ()))
        return PlainValue(
            type="ndarray", text=f"ndarray of {dtype}, shape {list(shape)}"[:80], shape=shape, dtype=dtype
        )
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
    return TensorDesc(
        dtype=dtype,
        shape=_shape(tensor),
        stride=_stride(tensor) if layout == "strided" else None,
        storage_offset=_offset(tensor),
        storage=storage,
        storage_nbytes=nbytes,
        device=str(tensor.device),
        requires_grad=bool(tensor.requires_grad),
        conj=_says(tensor, "is_conj"),
        neg=_says(tensor, "is_neg"),
        layout="nested" if layout == "jagged" or getattr(tensor, "is_nested", False) else layout,
        quantized=dtype in QUANTIZED,
        subclass=None if name == "Tensor" else name,
        stats=_stats(tensor, dtype)
        if storage is not None and str(tensor.device) == "cpu" and layout == "strided"
        else None,
        elements=_elements(tensor, dtype)
        if storage is not None and str(tensor.device) == "cpu" and layout == "strided"
        else None,
    )


def _says(tensor: _Tensor, method: str) -> bool:
    try:
        return bool(getattr(tensor, method)())
    except _CANNOT_SAY:
        return False


def _shape(tensor: _Tensor) -> tuple[int, ...]:
    """The sizes; a nested tensor has none."""
    try:
        return tuple(int(size) for size in tensor.shape)
    except _CANNOT_SAY:
        return ()


def _stride(tensor: _Tensor) -> tuple[int, ...] | None:
    try:
        return tuple(int(step) for step in tensor.stride())
    except _CANNOT_SAY:
        return None


def _offset(tensor: _Tensor) -> int:
    try:
        return int(tensor.storage_offset())
    except _CANNOT_SAY:
        return 0


def _storage(tensor: _Tensor) -> tuple[str | None, int | None]:
    try:
        storage = tensor.untyped_storage()
        address, nbytes = storage.data_ptr(), storage.nbytes()
    except _CANNOT_SAY:
        return None, None
    return (f"{address:#x}" if address else None), int(nbytes)


def _elements(tensor: _Tensor, dtype: str) -> Elements:
    def read() -> Sequence[int] | Sequence[float] | None:
        if dtype.startswith("complex") or math.prod(_shape(tensor)) * ITEMSIZE.get(dtype, 16) > MAX_SPAN:
            return None
        try:
            return tensor.detach().flatten().tolist()
        except _CANNOT_SAY:
            return None

    return read


def _stats(tensor: _Tensor, dtype: str) -> ValueStats | None:
    if str(tensor.device) != "cpu":  # looking would wait for the device
        return None
    count = math.prod(_shape(tensor))
    if dtype in QUANTIZED or dtype.startswith("complex") or count * ITEMSIZE.get(dtype, 16) > MAX_BYTES:
        return None
    try:
        values = tensor.detach().flatten().tolist()
    except _CANNOT_SAY:
        return None
    return summarise([int(value) for value in values] if dtype == "bool" else values)
