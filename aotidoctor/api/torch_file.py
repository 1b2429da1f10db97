"""A file that ``torch.load`` reads, written without torch: for arrays in a process that has not imported it."""

from __future__ import annotations

import pickle
import struct
import zipfile

from aotidoctor.api.arrays import Tensor
from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.safe_globals import STORAGE_DTYPES

_STORAGES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
_FOLDER = "inputs"


class CannotWriteError(ValueError):
    """An object that only its own program could read again."""


def write_tensors(value: object, path: str) -> None:
    """Write nested dicts, lists and tuples of ``Tensor`` and plain values. Raises CannotWriteError, OSError."""
    tensors: list[Tensor] = []
    written = b"\x80\x02" + _pickled(value, tensors) + b"."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{_FOLDER}/data.pkl", written)
        archive.writestr(f"{_FOLDER}/byteorder", "little")
        for number, tensor in enumerate(tensors):
            archive.writestr(f"{_FOLDER}/data/{number}", tensor.memory())
        archive.writestr(f"{_FOLDER}/version", "3\n")


def _pickled(value: object, tensors: list[Tensor]) -> bytes:
    """The opcodes of pickle's protocol 2 that push ``value``."""
    match value:
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int() if type(value) is int:
            data = pickle.encode_long(value)
            return b"\x8b" + struct.pack("<i", len(data)) + data
        case float() if type(value) is float:
            return b"G" + struct.pack(">d", value)
        case str() if type(value) is str:
            data = value.encode("utf-8", "surrogatepass")
            return b"X" + struct.pack("<I", len(data)) + data
        case list() if type(value) is list:
            return b"](" + b"".join(_pickled(item, tensors) for item in value) + b"e"
        case tuple() if type(value) is tuple:
            return b"(" + b"".join(_pickled(item, tensors) for item in value) + b"t"
        case dict() if type(value) is dict:
            items = (part for key, item in value.items() for part in (key, item))
            return b"}(" + b"".join(_pickled(item, tensors) for item in items) + b"u"
        case Tensor():
            return _tensor(value, tensors)
    raise CannotWriteError(f"{type(value).__module__}.{type(value).__qualname__}")


def _tensor(tensor: Tensor, tensors: list[Tensor]) -> bytes:
    storage = _STORAGES.get(tensor.dtype)
    if storage is None:
        raise CannotWriteError(f"an array of {tensor.dtype}; import torch first")
    tensors.append(tensor)
    elements = tensor.span() // ITEMSIZE[tensor.dtype]
    kept = (
        b"("
        + _pickled("storage", tensors)
        + _global("torch", storage)
        + b"".join(_pickled(part, tensors) for part in (str(len(tensors) - 1), "cpu", elements))
        + b"tQ"
    )
    place = b"".join(_pickled(part, tensors) for part in (0, tensor.shape, tuple(tensor.stride()), False))
    hooks = _global("collections", "OrderedDict") + b")R"
    return _global("torch._utils", "_rebuild_tensor_v2") + b"(" + kept + place + hooks + b"tR"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode("ascii")
