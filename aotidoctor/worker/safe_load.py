"""Load inputs as real tensors from files or JSON, without executing code from a file.

``torch.load`` runs with ``weights_only=True``. Files that it refuses for their protocol or for numpy arrays go through
an unpickler that knows the globals of ``aotidoctor.model.torch_names`` and no others. Only a file that the user trusts
is unpickled without restrictions. Files of safetensors are read whether or not the library of that name is installed.
The same JSON document always gives the same tensors.
"""

from __future__ import annotations

import io
import json
import math
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.inputs import Container, Leaf, Place, Tree
from aotidoctor.model.jobs import InputsSource
from aotidoctor.model.torch_names import SAFE_GLOBALS, SAFETENSORS_DTYPES, contiguous_stride, global_name
from aotidoctor.readers.inputs.saved_calls import TensorSpec, arrange, build_plan, decode, plan_to_json

# Torch files and plain pickles.
_MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")


def load_object(path: str, trusted: bool) -> Any:
    """Load an object of ``torch.save`` or of ``pickle.dump``."""
    with Path(path).open("rb") as stream:
        head = stream.read(32)
        # A plain pickle: neither the zip file nor the magic number that ``torch.save`` begins with.
        if head[:2] != b"PK" and _MAGIC not in head:
            stream.seek(0)
            return pickle.load(stream) if trusted else _SafeUnpickler(stream).load()
    if trusted:
        return torch.load(path, map_location=place_storage, weights_only=False)
    return _load_restricted(lambda: path, place_storage)


def _load_restricted(source: Callable[[], Any], place: Any) -> Any:
    """Call ``torch.load`` on ``source()``, first with torch's own restrictions, then with ours.

    Torch's own unpickler knows neither protocols 4 and 5 nor numpy, and stumbles over untyped storages in old files.
    """
    try:
        return torch.load(source(), map_location=place, weights_only=True)
    except (pickle.UnpicklingError, AttributeError):
        return torch.load(source(), map_location=place, weights_only=False, pickle_module=_SafePickle)


def place_storage(storage: Any, location: str) -> Any:
    """The storage itself (on the CPU) for a device that this host lacks; None leaves it to torch."""
    kind, _, index = location.partition(":")
    if kind in ("cpu", "meta"):
        return None
    if kind == "cuda" and torch.cuda.is_available() and int(index or 0) < torch.cuda.device_count():
        return None
    return storage


class _SafeUnpickler(pickle.Unpickler):
    """Resolves the globals that the parent's reader describes; refuses all others."""

    def find_class(self, module: str, name: str) -> Any:
        full = global_name(module, name)
        if full == "torch.storage._load_from_bytes":
            # The same, without executing code from the bytes.
            return lambda data: _load_restricted(lambda: io.BytesIO(data), "cpu")
        if full not in SAFE_GLOBALS:
            raise pickle.UnpicklingError(f"unsafe global {full}")
        module, _, name = full.rpartition(".")
        return super().find_class(module, name)


class _SafePickle:
    """A pickle module as ``torch.load`` expects it."""

    __name__ = "aotidoctor.worker.safe_load"
    Unpickler = _SafeUnpickler
    UnpicklingError = pickle.UnpicklingError

    @staticmethod
    def load(stream: Any, **kwargs: Any) -> Any:
        """``pickle.load``, restricted."""
        return _SafeUnpickler(stream, **kwargs).load()


def load_safetensors(path: Path) -> dict[str, Any]:
    """Load name -> tensor, each in memory of its own."""
    with path.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        data = bytearray(stream.read())
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = getattr(torch, SAFETENSORS_DTYPES[entry["dtype"]])
        if begin == end:
            found[name] = torch.empty(entry["shape"], dtype=dtype)
        else:
            # A copy of its own: the memory of the file's bytes need not be aligned for it.
            values = torch.frombuffer(data, dtype=torch.uint8, offset=begin, count=end - begin).clone()
            found[name] = values.view(dtype).reshape(entry["shape"])
    return found


# Tensors from the leaves of a JSON document.
def make_tensor(spec: TensorSpec) -> Any:
    """Make the tensor of a JSON leaf: its values, or values from its seed; then its strides and its device."""
    dtype = getattr(torch, spec.dtype)
    if spec.data is None:
        values = _fill_tensor(spec, dtype)
    elif dtype.is_complex or dtype.is_floating_point:
        values = torch.tensor(spec.data, dtype=torch.float64).to(dtype).reshape(spec.shape)
    else:
        number = bool if spec.dtype == "bool" else int
        values = torch.tensor([number(value) for value in spec.data], dtype=dtype).reshape(spec.shape)
    stride = spec.stride
    if stride is not None and stride != contiguous_stride(spec.shape):
        values = _with_strides(values, spec.shape, stride)
    if spec.device == "meta":
        return values.to("meta")
    if spec.device == "cpu" or place_storage(values, spec.device) is not None:
        return values
    return values.to(spec.device)


def _with_strides(values: Any, shape: tuple[int, ...], stride: tuple[int, ...]) -> Any:
    """The values with other strides; along a dim of stride 0 only the first one: all elements share its memory."""
    for dim, step in enumerate(stride):
        if step == 0 and shape[dim] > 1:
            values = values.narrow(dim, 0, 1)
    span = 0 if 0 in shape else 1 + sum(((size - 1) * step for size, step in zip(shape, stride, strict=True)))
    # Strides that skip elements leave gaps; zeros make them the same on every run.
    memory = torch.zeros(span, dtype=values.dtype)
    memory.as_strided(values.shape, stride).copy_(values)
    return memory.as_strided(shape, stride)


def _fill_tensor(spec: TensorSpec, dtype: Any) -> Any:
    """Random values: normal, or uniform between the bounds; without bounds integers are 0 or 1."""
    generator = torch.Generator().manual_seed(spec.seed)
    if dtype.is_floating_point or dtype.is_complex:
        if spec.low is None and spec.high is None:
            wide = torch.complex64 if dtype.is_complex else torch.float32
            return torch.randn(spec.shape, generator=generator, dtype=wide).to(dtype)
        low, high = spec.low or 0.0, 1.0 if spec.high is None else spec.high
        return (torch.rand(spec.shape, generator=generator) * (high - low) + low).to(dtype)
    low, high = math.ceil(spec.low or 0), math.floor(1 if spec.high is None else spec.high)
    return torch.randint(low, max(low, high) + 1, spec.shape, generator=generator).to(dtype)


# The inputs, arranged as the parent described them.
MAPPINGS = ("dict", "OrderedDict", "defaultdict")


def load_inputs(source: InputsSource, files: dict[str, Any] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Load arguments and keyword arguments of the source; ``files`` holds the file that was read last.

    Without a plan the file is read as ``saved_calls.arrange`` reads it without a call spec.
    Tensors of a device that this host lacks are put on the CPU.
    """
    if source.path is None:
        value, flat = _from_json(source.document), False
    elif files is not None and source.path in files:
        value, flat = files[source.path]
    else:
        value, flat = _from_file(source.path, source.trusted)
        if files is not None:
            files.clear()
            files[source.path] = value, flat
    plan: dict[str, Any] = source.plan or plan_to_json(arrange(_tree(value), flat=flat))
    args = build_plan(plan["args"], _make, lambda place: _pick(value, place))
    kwargs = build_plan(plan["kwargs"], _make, lambda place: _pick(value, place))
    return tuple(args), dict(kwargs)


def _make(kind: str, children: list[Any], keys: list[str | int]) -> Any:
    if kind == "dict":
        return dict(zip(keys, children, strict=True))
    return tuple(children) if kind == "tuple" else children


def _pick(value: Any, place: Place) -> Any:
    for index in place:
        value = list(value.values())[index] if isinstance(value, Mapping) else value[index]
    return value


def _tree(value: Any) -> Tree[None]:
    """Containers of ``value``, as the reader in the parent describes them."""
    name = type(value).__name__
    if isinstance(value, dict) and name in MAPPINGS:
        keys = tuple(key if type(key) in (str, int) else repr(key) for key in value)
        return Container(type=name.lower(), children=tuple(map(_tree, value.values())), keys=keys)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Container(type=f"namedtuple:{name}", children=tuple(map(_tree, value)), keys=value._fields)
    if type(value) in (tuple, list):
        return Container(type=name, children=tuple(map(_tree, value)))
    return Leaf(value=None)


def _from_file(path: str, trusted: bool) -> tuple[Any, bool]:
    """The object in the file, and whether its names are flat (.npz, .safetensors)."""
    with Path(path).open("rb") as stream:
        head = stream.read(16)
    single = head[:6] == b"\x93NUMPY"
    if single or (head[:2] == b"PK" and _is_npz(path)):
        import numpy as np

        loaded = np.load(path, allow_pickle=trusted)
        if single:
            return _from_array(loaded), False
        with loaded:
            return {name: _from_array(loaded[name]) for name in loaded.files}, True
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 16 << 20:
        return load_safetensors(Path(path)), True
    if head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"["):
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except ValueError:
            # A pickle that begins like JSON.
            document = None
        if document is not None:
            return _from_json(document), False
    return load_object(path, trusted), False


def _is_npz(path: str) -> bool:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def _from_array(array: Any) -> Any:
    """A tensor that shares the memory of the array; an array of a dtype that no tensor has stays an array."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="K")
    try:
        return torch.from_numpy(array)
    except TypeError:
        return array


def _from_json(document: Any) -> Any:
    return _plain(decode(document, make_tensor, lambda value: value))


def _plain(tree: Tree[Any]) -> Any:
    if isinstance(tree, Leaf):
        return tree.value
    children = [_plain(child) for child in tree.children]
    return _make(tree.type if tree.type in ("dict", "tuple") else "list", children, list(tree.keys))
