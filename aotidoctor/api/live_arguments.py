"""Describe tensors and arrays of this process, and write them to a file only for a child.

Neither torch nor numpy is imported here: who has a tensor or an array has imported it. For arrays without torch, the
file that ``torch.load`` reads is written without it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from aotidoctor.api.option_arguments import path, value_text
from aotidoctor.commands.live_inputs import split_arguments
from aotidoctor.model.errors import ArgumentError, InputsError
from aotidoctor.model.inputs import InputSet
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE, STORAGE_DTYPES
from aotidoctor.readers.inputs.live_and_generated import describe_live
from aotidoctor.readers.inputs.read_inputs import read_inputs
from aotidoctor.readers.inputs.tensor_values import torch_dtype


# NumPy arrays by their attributes.
class _DType(Protocol):
    str: str


class _FlatValues(Protocol):
    def tolist(self) -> list[float]: ...


class Array(Protocol):
    """The part of ``numpy.ndarray`` that is used here. ``strides`` are in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: _DType
    __array_interface__: dict[str, tuple[int, bool]]

    def ravel(self) -> _FlatValues:
        """The elements, row-major."""


def is_array(value: object) -> bool:
    """Whether it is a ``numpy.ndarray`` of a kind that a tensor can be made of."""
    if type(value).__name__ != "ndarray" or type(value).__module__ != "numpy":
        return False
    array = cast("Array", value)
    dtype = torch_dtype(array.dtype.str)
    if dtype is None or array.dtype.str.startswith(">"):
        return False
    return all(step >= 0 and step % ITEMSIZE[dtype] == 0 for step in array.strides)


class Tensor:
    """An array with the attributes of the tensor that ``torch.from_numpy`` makes of it; ``is_array`` must be true."""

    device = "cpu"
    layout = "strided"
    requires_grad = False
    is_quantized = False

    def __init__(self, value: object) -> None:
        self.array = cast("Array", value)
        self.dtype = torch_dtype(self.array.dtype.str) or ""
        self.shape = tuple(int(size) for size in self.array.shape)

    def stride(self) -> Sequence[int]:
        """The strides in elements."""
        size = ITEMSIZE[self.dtype]
        return tuple(int(step) // size for step in self.array.strides)

    def storage_offset(self) -> int:
        """The tensor begins where its storage begins."""
        return 0

    def span(self) -> int:
        """Bytes from the first element to behind the last one."""
        if 0 in self.shape:
            return 0
        reach = sum((size - 1) * int(step) for size, step in zip(self.shape, self.array.strides, strict=True))
        return reach + ITEMSIZE[self.dtype]

    def untyped_storage(self) -> Tensor:
        """Itself: see ``data_ptr`` and ``nbytes``."""
        return self

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """The size of the memory that the elements lie in."""
        return self.span()

    def memory(self) -> bytes:
        """Copy the memory of the array, with the gaps between its elements."""
        return ctypes.string_at(self.data_ptr(), self.span()) if self.span() else b""

    def detach(self) -> Tensor:
        """Itself: an array has no gradient."""
        return self

    def flatten(self) -> _FlatValues:
        """The elements, row-major."""
        return self.array.ravel()


# A file for `torch.load`, written without torch.
_STORAGES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
_FOLDER = "inputs"


class CannotWriteError(ValueError):
    """An object that only its own program could read again."""


def write_tensors(value: object, path: str) -> None:
    """Write nested dicts, lists and tuples of ``Tensor`` and plain values. Raises CannotWriteError, OSError."""
    tensors: list[Tensor] = []
    written = b"\x80\x02" + _pickle_value(value, tensors) + b"."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{_FOLDER}/data.pkl", written)
        archive.writestr(f"{_FOLDER}/byteorder", "little")
        for number, tensor in enumerate(tensors):
            archive.writestr(f"{_FOLDER}/data/{number}", tensor.memory())
        archive.writestr(f"{_FOLDER}/version", "3\n")


def _pickle_value(value: object, tensors: list[Tensor]) -> bytes:
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
            return b"](" + b"".join(_pickle_value(item, tensors) for item in value) + b"e"
        case tuple() if type(value) is tuple:
            return b"(" + b"".join(_pickle_value(item, tensors) for item in value) + b"t"
        case dict() if type(value) is dict:
            items = (part for key, item in value.items() for part in (key, item))
            return b"}(" + b"".join(_pickle_value(item, tensors) for item in items) + b"u"
        case Tensor():
            return _pickle_tensor(value, tensors)
    raise CannotWriteError(f"{type(value).__module__}.{type(value).__qualname__}")


def _pickle_tensor(tensor: Tensor, tensors: list[Tensor]) -> bytes:
    storage = _STORAGES.get(tensor.dtype)
    if storage is None:
        raise CannotWriteError(f"an array of {tensor.dtype}; import torch first")
    tensors.append(tensor)
    elements = tensor.span() // ITEMSIZE[tensor.dtype]
    text = (
        b"("
        + _pickle_value("storage", tensors)
        + _global("torch", storage)
        + b"".join(_pickle_value(part, tensors) for part in (str(len(tensors) - 1), "cpu", elements))
        + b"tQ"
    )
    place = b"".join(_pickle_value(part, tensors) for part in (0, tensor.shape, tuple(tensor.stride()), False))
    hooks = _global("collections", "OrderedDict") + b")R"
    return _global("torch._utils", "_rebuild_tensor_v2") + b"(" + text + place + hooks + b"tR"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode("ascii")


# Tensors and arrays as inputs of a call.
_CALL_EXPECTED = "a tuple or list of arguments, such as args=(x,)"
_NAMED = "a dict of keyword arguments, such as kwargs={'ids': ids}"
_INPUTS = "a path, a tensor, a tuple or list of args, or a dict of kwargs"
# Modules that only this process has: the script or the notebook itself.
_SCRIPT = ("__main__.", "__mp_main__.")
# As deep as the readers of files go.
_MAX_DEPTH = 64


Change = Callable[[object], object]


class _Torch(Protocol):
    """What of the caller's torch is used here."""

    def save(self, obj: object, f: str) -> None: ...
    def from_numpy(self, ndarray: object) -> object: ...


@record
class LiveSource:
    """The source of the inputs: a file at ``path``, objects (``args`` and ``kwargs``), or nowhere (all None)."""

    path: str | None = None
    args: Sequence[object] | None = None
    kwargs: Mapping[str, object] | None = None

    @property
    def is_live(self) -> bool:
        """Whether they are objects of this process."""
        return self.args is not None


def source_of(inputs: object, args: object, kwargs: object) -> LiveSource:
    """Determine the source of the inputs. Raises ArgumentError."""
    if args is None and kwargs is None:
        if inputs is None:
            return LiveSource()
        if isinstance(inputs, (str, os.PathLike)):
            return LiveSource(path=path("inputs", inputs))
        if isinstance(inputs, (bool, int, float, bytes)):
            raise ArgumentError("inputs", value_text(inputs), _INPUTS)
        positional, named = split_arguments(inputs)
        return LiveSource(args=positional, kwargs=_check_keyword_names(named))
    if inputs is not None:
        raise ArgumentError(
            "inputs", f"{value_text(inputs)} in addition to args or kwargs", "either inputs, or args and kwargs"
        )
    if args is not None and not isinstance(args, (tuple, list)):
        raise ArgumentError("args", value_text(args), _CALL_EXPECTED)
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise ArgumentError("kwargs", value_text(kwargs), _NAMED)
    return LiveSource(
        args=args if args is not None else (), kwargs=_check_keyword_names(kwargs if kwargs is not None else {})
    )


def _check_keyword_names(kwargs: Mapping[object, object] | Mapping[str, object]) -> Mapping[str, object]:
    for name in kwargs:
        if not isinstance(name, str):
            raise ArgumentError("kwargs", f"the key {value_text(name)}", _NAMED)
    return cast("Mapping[str, object]", kwargs)


@contextmanager
def described_inputs(source: LiveSource, *, to_run: bool) -> Iterator[InputSet | None]:
    """The description of objects, None for a file or nothing; with ``to_run`` of a file that lives as long as this.

    Raises:
        InputsError: endless nesting, or an object that cannot be handed to another process.
    """
    if source.args is None or source.kwargs is None:
        yield None
        return
    if not to_run:
        yield _add_array_note(describe_live(*_map_arrays(source, Tensor)), source)
        return
    with tempfile.TemporaryDirectory(prefix="aotidoctor-inputs-") as room:
        place = str(Path(room) / "inputs.pt")
        _write(source, place)
        # These are the caller's own objects: to unpickle them runs no code but the caller's.
        found = read_inputs(place, trust_pickle=True)
        private = [name for name in found.globals if name.startswith(_SCRIPT)]
        if private:
            raise _unfit(private[0], "a class of a module that a child process can import; check() needs none")
        yield _add_array_note(replace(found, form="live"), source)


def without_file(found: InputSet) -> InputSet:
    """The description without the file, which is gone by now."""
    return replace(found, path=None, format="live", sha256=None, plan=None)


def _write(source: LiveSource, place: str) -> None:
    torch = cast("_Torch | None", sys.modules.get("torch"))
    try:
        if torch is None:
            args, kwargs = _map_arrays(source, Tensor)
            write_tensors({"args": args, "kwargs": kwargs}, place)
        else:
            given_torch = torch
            args, kwargs = _map_arrays(source, lambda array: _as_torch_tensor(given_torch, array))
            torch.save({"args": args, "kwargs": kwargs}, place)
    except CannotWriteError as error:
        raise _unfit(str(error), "tensors, arrays, numbers, texts and None in tuples, lists and dicts") from error
    except Exception as error:
        # Whatever an object of a stranger's class does when it is pickled.
        raise _unfit(f"{type(error).__name__}: {error}", "objects that pickle can pass to a child process") from error


def _unfit(observed: str, expected: str) -> InputsError:
    return InputsError(
        f"the arguments cannot be passed to a child process: {observed[:200]}",
        cause="inputs-file-format",
        subject="inputs",
        observed=observed[:200],
        expected=expected,
    )


def _as_torch_tensor(torch: _Torch, array: object) -> object:
    """As ``torch.from_numpy`` makes it; the array itself where no tensor is like it."""
    flags = getattr(array, "flags", None)
    try:
        if not getattr(flags, "writeable", True):
            # A tensor of what nobody may write to comes with a warning.
            array = array.copy(order="K")  # type: ignore[attr-defined]  # a numpy.ndarray
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        return array


def _map_arrays(source: LiveSource, change: Change) -> tuple[list[object], dict[str, object]]:
    """Arguments and keyword arguments with ``change`` of every array in plain containers."""
    args = [_change_arrays(value, change, 1) for value in source.args or ()]
    return args, {name: _change_arrays(value, change, 1) for name, value in (source.kwargs or {}).items()}


def _change_arrays(value: object, change: Change, depth: int) -> object:
    if depth > _MAX_DEPTH:
        observed = f"containers of more than {_MAX_DEPTH} levels"
        raise InputsError(observed, cause="inputs-file-format", subject="inputs", observed=observed)
    if is_array(value):
        return change(value)
    if type(value) is dict:
        return {key: _change_arrays(item, change, depth + 1) for key, item in value.items()}
    if type(value) is list:
        return [_change_arrays(item, change, depth + 1) for item in value]
    if type(value) is tuple:
        return tuple(_change_arrays(item, change, depth + 1) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        make: Callable[..., object] = type(value)  # type: ignore[explicit-any]  # a namedtuple takes its fields
        return make(*(_change_arrays(item, change, depth + 1) for item in value))
    return value


def _add_array_note(found: InputSet, source: LiveSource) -> InputSet:
    arrays: list[object] = []
    _map_arrays(source, arrays.append)
    if not arrays:
        return found
    note = "NumPy arrays were examined as the tensors that torch.from_numpy makes of them"
    return replace(found, notes=(*found.notes, note))
