"""Read the parts of pickled tensors and numpy arrays: storages, arguments, and statistics of their values.

Statistics are of small tensors only: range, NaN, Inf, zeros. No numpy: plain arrays and built-in functions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from aotidoctor.model.inputs import PlainValue, TensorDesc, ValueStats
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE, STORAGE_DTYPES, contiguous_stride
from aotidoctor.readers.inputs.pickle_machine import Items, Persistent, PickleCall, PickleGlobal, Value


# Storages: the memory behind tensors, as the file holds it.
class MalformedError(Exception):
    """The pickle is not one that torch.save writes; ``subject`` is the record, None for the pickle itself."""

    def __init__(self, observed: str, expected: str = "what torch.save writes", subject: str | None = None) -> None:
        super().__init__(observed)
        self.observed = observed
        self.expected = expected
        self.subject = subject


class TooManyPartsError(MalformedError):
    """The pickle is sound, but has more parts than inputs have: numbers in lists where tensors belong."""


@record
class FileStorage:
    """One storage. ``dtype`` is None for untyped bytes, ``data`` None where the file holds none (meta)."""

    key: str
    dtype: str | None
    nbytes: int
    device: str
    data: memoryview | None = None
    big_endian: bool = False


@record
class StorageId:
    """The parts of a persistent id. ``dtype`` as in ``FileStorage``."""

    key: str
    dtype: str | None
    device: str
    nbytes: int


Resolve: TypeAlias = Callable[[StorageId], FileStorage]


def storage_id(value: Value) -> StorageId:
    """Read ``("storage", torch.FloatStorage, "0", "cpu", 12)``, which older files end with view metadata."""
    if not isinstance(value, Persistent) or not isinstance(value.id, tuple) or len(value.id) not in (5, 6):
        raise MalformedError("a persistent id that is not a storage")
    kind, type_, key, location, count = value.id[:5]
    if kind != "storage" or not isinstance(type_, PickleGlobal) or not isinstance(location, str):
        raise MalformedError("a persistent id that is not a storage")
    if not isinstance(key, (str, int)) or not isinstance(count, int) or not 0 <= count < 1 << 60:
        raise MalformedError(f"a storage of {count if isinstance(count, (int, str)) else '?'} elements"[:80])
    dtype = storage_dtype(type_.name)
    return StorageId(
        key=str(key)[:80], dtype=dtype, device=location[:40], nbytes=count * (1 if dtype is None else ITEMSIZE[dtype])
    )


def storage_dtype(name: str) -> str | None:
    """The dtype of a storage class, None for ``UntypedStorage``. Raises ``MalformedError`` for other globals."""
    last = name.rpartition(".")[2]
    if last in STORAGE_DTYPES:
        return STORAGE_DTYPES[last]
    if last == "UntypedStorage":
        return None
    raise MalformedError(f"{name[:80]} in place of a storage class")


def nested_file(value: Value) -> bytes | str | None:
    """The torch file inside a plain pickle of a tensor, None for anything else.

    Text is what protocol 2 makes of bytes: one letter for each, as latin-1.
    """
    if not isinstance(value, PickleCall) or value.name != "torch.storage._load_from_bytes" or len(value.args) != 1:
        return None
    data = value.args[0]
    if isinstance(data, PickleCall) and data.name == "_codecs.encode" and data.args:
        data = data.args[0]
    return data if isinstance(data, (bytes, str)) else None


# Arguments of calls: sizes, dtypes, devices, layouts, classes.
MAX_RANK = 64


def sizes_argument(value: Value) -> tuple[int, ...]:
    """A shape or strides: a tuple, a list or a torch.Size of non-negative integers."""
    if isinstance(value, PickleCall) and value.name == "torch.Size" and len(value.args) == 1:
        value = value.args[0]
    items = value.items if isinstance(value, Items) else value
    if not isinstance(items, (tuple, list)) or len(items) > MAX_RANK:
        raise MalformedError("an unexpected value in place of sizes")
    return tuple(size_argument(item) for item in items)


def size_argument(value: Value) -> int:
    """A count of elements: a size, a stride or an offset."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise MalformedError("a size or stride that is not a non-negative integer")
    return value


def dtype_name(value: Value) -> str:
    """``float32`` of the global ``torch.float32``."""
    name = value.name.removeprefix("torch.") if isinstance(value, PickleGlobal) else ""
    if name not in ITEMSIZE:
        raise MalformedError("an unexpected value in place of a dtype")
    return name


def device_name(value: Value) -> str:
    """``cuda:1`` of ``torch.device("cuda", 1)`` or of a text."""
    parts = value.args if isinstance(value, PickleCall) and value.name == "torch.device" else (value,)
    return ":".join(str(part) for part in parts if isinstance(part, (str, int)))[:40] or "cpu"


def layout_name(value: Value) -> str:
    """``sparse_csr`` of ``torch.serialization._get_layout("torch.sparse_csr")``."""
    if isinstance(value, PickleCall) and value.name == "torch.serialization._get_layout" and len(value.args) == 1:
        name = value.args[0]
        if isinstance(name, str):
            return name.removeprefix("torch.")[:40]
    return "strided"


def class_name(value: Value) -> str | None:
    """The last part of a class's name, None for ``torch.Tensor`` itself."""
    if not isinstance(value, PickleGlobal) or value.name == "torch.Tensor":
        return None
    return value.name.rpartition(".")[2]


# Statistics of values.
MAX_BYTES = 256 << 10
# What is read on demand, in bytes from the first to the last element.
MAX_SPAN = 16 << 20

_CODED = ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CODES = dict(zip((*_CODED, "float16", "float32", "float64"), "BBbhHiIqQefd", strict=True))
_PARTS = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}


@record
class ValueView:
    """Elements of the storage ``data``, inside of which they must lie; strides and offset in elements.

    ``negated``: the values are those stored with the other sign.
    """

    dtype: str
    data: memoryview
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0
    big_endian: bool = False
    negated: bool = False

    def stats(self) -> ValueStats | None:
        """Their statistics; None where they are many or of a dtype that is not read."""
        count = math.prod(self.shape)
        if self.dtype not in ITEMSIZE or count * ITEMSIZE[self.dtype] > MAX_BYTES:
            return None
        if count == 0:
            return summarise([])
        part = _PARTS.get(self.dtype)
        if part is not None:
            stride = (*(2 * step for step in self.stride), 1)
            pairs = replace(
                self, dtype=part, shape=(*self.shape, 2), stride=stride, offset=2 * self.offset, negated=False
            )
            values = pairs.values()
            return None if values is None else summarise_complex(values)
        values = self.values()
        return None if values is None else summarise(values)

    def elements(self) -> Sequence[int] | Sequence[float] | None:
        """The values, to be read when they are needed; None for what is large or not read."""
        if (
            self.dtype not in ITEMSIZE
            or self._span * ITEMSIZE[self.dtype] > MAX_SPAN
            or math.prod(self.shape) > MAX_SPAN
        ):
            return None
        return () if 0 in self.shape else self.values(MAX_SPAN)

    def values(self, limit: int = 16 * MAX_BYTES) -> Sequence[int] | Sequence[float] | None:
        """Row-major; None for a dtype that is not read, or where they are strewn over more than ``limit`` bytes."""
        size = ITEMSIZE[self.dtype]
        if self._span * size > limit:
            return None
        raw = bytes(self.data[self.offset * size : (self.offset + self._span) * size])
        flat = decode(self.dtype, raw, big_endian=self.big_endian)
        if flat is not None and self.stride != contiguous_stride(self.shape) and self.shape:
            positions = [0]
            for length, step in zip(self.shape, self.stride, strict=True):
                positions = [start + index * step for start in positions for index in range(length)]
            flat = [flat[index] for index in positions]
        return [-value for value in flat] if flat is not None and self.negated else flat

    @property
    def _span(self) -> int:
        """Elements from the first to the last."""
        return 1 + sum((length - 1) * step for length, step in zip(self.shape, self.stride, strict=True))


def describe_view(view: ValueView, storage: str) -> TensorDesc:
    """The tensor that ``view`` is all of, with a storage of its own."""
    return TensorDesc(
        dtype=view.dtype,
        shape=view.shape,
        stride=view.stride,
        storage=storage,
        storage_nbytes=view.data.nbytes,
        stats=view.stats(),
        elements=view.elements,
    )


def decode(dtype: str, raw: bytes, *, big_endian: bool = False) -> Sequence[int] | Sequence[float] | None:
    """The numbers that the bytes are, 0 and 1 for booleans; None for a dtype that is not read."""
    if dtype == "bfloat16":
        # A bfloat16 is the upper half of a float32: put zeros below it.
        low, high = (1, 0) if big_endian else (0, 1)
        wide = bytearray(2 * len(raw))
        wide[2::4] = raw[low::2]
        wide[3::4] = raw[high::2]
        raw, dtype = bytes(wide), "float32"
        big_endian = False
    code = _CODES.get(dtype)
    if code is None:
        return None
    return struct.unpack(f"{'>' if big_endian else '<'}{len(raw) // ITEMSIZE[dtype]}{code}", raw)


def summarise(values: Sequence[int] | Sequence[float]) -> ValueStats:
    """The statistics of a flat sequence of numbers."""
    if not values:
        return ValueStats(low=None, high=None, nan=0, inf=0, zeros=0)
    zeros = values.count(0)
    low, high = min(values), max(values)
    if isinstance(low, int) or math.isfinite(low + high + sum(values)):
        binary = zeros + values.count(1) == len(values)
        return ValueStats(low=low, high=high, nan=0, inf=0, zeros=zeros, all_zero_or_one=binary)
    numbers = [value for value in values if not math.isnan(value)]
    first = next((index for index, value in enumerate(values) if not math.isfinite(value)), None)
    return ValueStats(
        low=min(numbers, default=None),
        high=max(numbers, default=None),
        nan=len(values) - len(numbers),
        inf=sum(map(math.isinf, numbers)),
        zeros=zeros,
        first_nonfinite=first,
    )


def summarise_complex(parts: Sequence[int] | Sequence[float]) -> ValueStats:
    """The statistics of complex numbers given as real and imaginary parts in turn; they have no range."""
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    nan = [math.isnan(real) or math.isnan(imaginary) for real, imaginary in pairs]
    inf = [math.isinf(real) or math.isinf(imaginary) for real, imaginary in pairs]
    first = next((index for index in range(len(pairs)) if nan[index] or inf[index]), None)
    return ValueStats(
        low=None,
        high=None,
        nan=sum(nan),
        inf=sum(inf),
        zeros=sum(real == 0 and imaginary == 0 for real, imaginary in pairs),
        first_nonfinite=first,
    )


# Arrays and scalars of numpy, and numpy's names of dtypes.
_SIZES = {"int": (1, 2, 4, 8), "uint": (1, 2, 4, 8), "float": (2, 4, 8), "complex": (8, 16)}
_KINDS = {f"{kind[0]}{size}": f"{kind}{8 * size}" for kind, sizes in _SIZES.items() for size in sizes} | {"b1": "bool"}


def torch_dtype(code: str) -> str | None:
    """``float32`` for numpy's ``<f4``; None for a dtype that no tensor has (text, objects, records)."""
    return _KINDS.get(code.lstrip("<>=|"))


def array_value(dtype: str, shape: tuple[int, ...]) -> PlainValue:
    """An ndarray as a leaf that is not a tensor."""
    return PlainValue(type="ndarray", text=f"ndarray of {dtype}, shape {list(shape)}"[:80], shape=shape, dtype=dtype)


def describe_array(call: PickleCall) -> PlainValue | None:
    """An ndarray or a numpy scalar, None for anything else. Raises ``MalformedError``."""
    module, _, name = call.name.rpartition(".")
    if not module.startswith(("numpy.core.", "numpy._core.")):
        return None
    if name == "_reconstruct" and isinstance(call.state, tuple) and len(call.state) == 5:
        return _array(call.state[1], call.state[2])
    if name == "_frombuffer" and len(call.args) == 4:
        return _array(call.args[2], call.args[1])
    if name == "scalar" and len(call.args) == 2:
        return _scalar(call.args[0], call.args[1])
    raise MalformedError(f"{call.name} with arguments that numpy does not write")


def _array(shape: Value, dtype: Value) -> PlainValue:
    code = _dtype_code(dtype)
    return array_value(torch_dtype(code) or code, sizes_argument(shape))


def _dtype_code(dtype: Value) -> str:
    if isinstance(dtype, PickleCall) and dtype.name == "numpy.dtype" and dtype.args and isinstance(dtype.args[0], str):
        return dtype.args[0][:20]
    return "object"


def _scalar(dtype: Value, data: Value) -> PlainValue:
    name = torch_dtype(_dtype_code(dtype)) or _dtype_code(dtype)
    if isinstance(data, PickleCall) and data.name == "_codecs.encode" and data.args and isinstance(data.args[0], str):
        data = data.args[0][:16].encode("latin-1", "replace")
    text = name
    if isinstance(data, bytes) and len(data) <= 16 and len(data) == ITEMSIZE.get(name):
        stats = ValueView(dtype=name, data=memoryview(data), shape=(1,), stride=(1,)).stats()
        text = name if stats is None or stats.low is None else f"{name}({stats.low})"
    return PlainValue(type=f"numpy.{name}"[:40], text=text, dtype=name)
