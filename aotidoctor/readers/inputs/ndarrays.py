"""Arrays and scalars of numpy in a pickle, and numpy's names of dtypes."""

from __future__ import annotations

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.inputs import PlainValue
from aotidoctor.readers.inputs.arguments import sizes
from aotidoctor.readers.inputs.nodes import Call, Value
from aotidoctor.readers.inputs.storage import MalformedError
from aotidoctor.readers.inputs.values import View

_KINDS = {
    "b1": "bool",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}


def torch_dtype(code: str) -> str | None:
    """``float32`` for numpy's ``<f4``; None for a dtype that no tensor has (text, objects, records)."""
    return _KINDS.get(code.lstrip("<>=|"))


def array_value(dtype: str, shape: tuple[int, ...]) -> PlainValue:
    """An ndarray as a leaf that is not a tensor."""
    return PlainValue(type="ndarray", text=f"ndarray of {dtype}, shape {list(shape)}"[:80], shape=shape, dtype=dtype)


def describe_array(call: Call) -> PlainValue | None:
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
    return array_value(torch_dtype(code) or code, sizes(shape))


def _dtype_code(dtype: Value) -> str:
    if isinstance(dtype, Call) and dtype.name == "numpy.dtype" and dtype.args and isinstance(dtype.args[0], str):
        return dtype.args[0][:20]
    return "object"


def _scalar(dtype: Value, data: Value) -> PlainValue:
    name = torch_dtype(_dtype_code(dtype)) or _dtype_code(dtype)
    if isinstance(data, Call) and data.name == "_codecs.encode" and data.args and isinstance(data.args[0], str):
        data = data.args[0][:16].encode("latin-1", "replace")
    text = name
    if isinstance(data, bytes) and len(data) <= 16:
        stats = _one(name, data)
        text = name if stats is None else f"{name}({stats})"
    return PlainValue(type=f"numpy.{name}"[:40], text=text, dtype=name)


def _one(dtype: str, data: bytes) -> float | int | None:
    if ITEMSIZE.get(dtype) != len(data):
        return None
    stats = View(dtype=dtype, data=memoryview(data), shape=(1,), stride=(1,)).stats()
    return None if stats is None else stats.low
