"""Read the constants of a loaded model, load other ones, and compare them with those of a reference.

The package loader cannot read constants. They are read from the file of the library that the loader has just unpacked
or, where that fails, from a second container made of it; both give the constants that the package ships, not those
loaded afterwards. A second container would copy them all; in the file they lie one after the other between two
symbols, as the parent knows from the package's source, and are read one at a time. If names or sizes do not match, or
the library is not loaded in this process, the file is not used.

The kind of difference between a constant and that of the reference under the same name is ``what``:

- ``flipped-bit``: at most ``FEW`` elements differ, each in exactly one bit;
- ``few``: at most ``FEW`` elements differ otherwise;
- ``cast``: another dtype, and the reference's values cast to it are the package's;
- ``transposed``, ``reshaped``: the same values in another order or shape;
- ``values``: many elements differ; ``share`` is their part of all;
- ``dtype``, ``shape``: anything else of that kind.

``elements`` has index, both values, and the differing bits (0 is the least significant) of the first few elements that
differ.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import re
import zipfile
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from aotidoctor.model.jobs import Run, StoredConstant
from aotidoctor.model.torch_names import index_at
from aotidoctor.worker.load_package import LoadedModel, exports_symbol, load_library
from aotidoctor.worker.safe_load import load_safetensors
from aotidoctor.worker.tensors import dense, describe, digest, dtype_name, storage_address

# The difference of one pair.
FEW = 8
# Bits are compared in integers of the same width.
_INTEGERS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}


def constant_difference(name: str, ours: Any, theirs: Any) -> dict[str, Any]:
    """Facts of one pair: ``name``, ``equal``, ``what``, and the details of that kind."""
    mine, other = describe(name, ours, values=False), describe(name, theirs, values=False)
    facts = {"name": name, "equal": False, "dtype": mine["dtype"], "shape": mine["shape"]}
    if mine["dtype"] != other["dtype"]:
        what = "cast" if mine["shape"] == other["shape"] and _same(ours, theirs.to(ours.dtype)) else "dtype"
        return {**facts, "what": what, "observed": mine["dtype"], "expected": other["dtype"]}
    if mine["shape"] != other["shape"]:
        return {
            **facts,
            "what": _reordering_kind(ours, theirs) or "shape",
            "observed": mine["shape"],
            "expected": other["shape"],
        }
    alike = _identical(ours, theirs)
    if digest(ours) == digest(theirs) if alike is None else alike:
        return {**facts, "equal": True, "what": None}
    return {**facts, **_value_difference(ours, theirs)}


def _value_difference(ours: Any, theirs: Any) -> dict[str, Any]:
    left, right = dense(ours).cpu().contiguous(), dense(theirs).cpu().contiguous()
    if left.is_complex():
        left, right = torch.view_as_real(left), torch.view_as_real(right)
    one, other = _bits(left), _bits(right)
    # -0.0 and another NaN have other bits and the same value.
    alike = (left == right) | (torch.isnan(left) & torch.isnan(right))
    places = ((one != other) & ~alike).reshape(-1).nonzero().reshape(-1)
    if not places.numel():
        return {"equal": True, "what": None}
    width, elements = one.element_size() * 8, []
    for at in places[:FEW].tolist():
        flipped = (int(one.reshape(-1)[at]) ^ int(other.reshape(-1)[at])) & ((1 << width) - 1)
        values = {"observed": left.reshape(-1)[at].item(), "expected": right.reshape(-1)[at].item()}
        bits = [bit for bit in range(width) if flipped >> bit & 1]
        elements.append({"index": index_at(at, left.shape), **values, "bits": bits})
    apart = (left.double() - right.double()).abs()
    facts: dict[str, Any] = {
        "differing": int(places.numel()),
        "numel": int(left.numel()),
        "share": int(places.numel()) / max(1, int(left.numel())),
        "max_abs_diff": float(apart.nan_to_num(nan=float("inf")).max()),
        "elements": elements,
    }
    reordered = _reordering_kind(left, right)
    if reordered is not None:
        return {"what": reordered, **facts}
    few = places.numel() <= FEW and (places.numel() == 1 or places.numel() * 2 <= left.numel())
    single = few and all(len(element["bits"]) == 1 for element in elements)
    return {"what": "flipped-bit" if single else "few" if few else "values", **facts}


def _reordering_kind(ours: Any, theirs: Any) -> str | None:
    """``transposed`` or ``reshaped`` where the values are the same in another order."""
    if ours.numel() != theirs.numel() or ours.numel() < 2:
        return None
    if ours.dim() == theirs.dim() == 2 and _same(ours, theirs.t()):
        return "transposed"
    if ours.shape != theirs.shape and _same(ours.reshape(-1), theirs.reshape(-1)):
        return "reshaped"
    return None


def _identical(ours: Any, theirs: Any) -> bool | None:
    """Whether two plain tensors of one dtype and shape have the same bytes; None for tensors of other kinds."""
    for tensor in (ours, theirs):
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu"
        if not plain or tensor.is_quantized or tensor.layout != torch.strided or not tensor.is_contiguous():
            return None
        if tensor.is_conj() or tensor.is_neg():
            return None
    size = ours.numel() * ours.element_size()
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return bool(size == 0 or compare(ours.data_ptr(), theirs.data_ptr(), size) == 0)


def _same(ours: Any, theirs: Any) -> bool:
    return list(ours.shape) == list(theirs.shape) and digest(ours) == digest(theirs) is not None


def _bits(tensor: Any) -> Any:
    return tensor.view(getattr(torch, _INTEGERS[tensor.element_size()]))


# Constants in the file of the library. The last one may end without its padding.
_PADDING = 64
_SYMBOLS = ("_binary_constants_bin_start", "_binary_constants_bin_end")
_LINE = re.compile(rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S{4} ([0-9a-f]{1,16}) ")


class StoredConstants(Mapping[str, Any]):
    """Original name -> tensor, which is read anew at each access."""

    def __init__(self, library: Path, begin: int, rows: Mapping[str, tuple[int, StoredConstant]]) -> None:
        self._library = library
        self._begin = begin
        self._rows = rows

    def __len__(self) -> int:
        """Number of constants."""
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        """Iterate over their names in the order of the file."""
        return iter(self._rows)

    def __getitem__(self, name: str) -> Any:
        """The constant in memory of its own. Raises OSError if the file has changed."""
        begin, row = self._rows[name]
        dtype = getattr(torch, row.dtype)
        if not row.size:
            return torch.empty_strided(row.shape, row.stride, dtype=dtype)
        storage = torch.empty(row.size, dtype=torch.uint8)
        with self._library.open("rb", buffering=0) as file:
            file.seek(self._begin + begin)
            # Straight into the tensor, without a second copy.
            room = memoryview((ctypes.c_char * row.size).from_address(storage.data_ptr())).cast("B")
            while room:
                count = file.readinto(room)
                if not count:
                    raise OSError(f"{self._library} ends within the constant {name}")
                room = room[count:]
        whole = storage[: row.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(row.shape, row.stride, row.offset)


def stored_constants(
    library: Path, names: Collection[str], layout: Sequence[StoredConstant] | None
) -> StoredConstants | None:
    """Constants in the file of ``library``, which is loaded; None where they cannot be read from it.

    ``layout`` has the constants in their order, ``names`` are the original names that the loaded model gives.
    """
    if layout is None or not set(names) >= {row.name for row in layout}:
        return None
    rows: dict[str, tuple[int, StoredConstant]] = {}
    at = 0
    for row in layout:
        # Of two under one name the container returns the first.
        rows.setdefault(row.name, (at, row))
        at += row.size
    found = _find_constants(library)
    if found is None or not at - _PADDING < found[1] < at + _PADDING:
        return None
    return StoredConstants(library, found[0], rows)


def _find_constants(library: Path) -> tuple[int, int] | None:
    """Offset of the constants in the file, and their size in bytes."""
    try:
        loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOW)
        start, end = (ctypes.addressof(ctypes.c_char.in_dll(loaded, symbol)) for symbol in _SYMBOLS)
        lines = Path("/proc/self/maps").read_bytes().splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        match = _LINE.match(line)
        low, high, offset = (int(number, 16) for number in match.groups()) if match is not None else (0, 0, 0)
        if low <= start < high:
            return (offset + start - low, end - start) if end <= high else None
    return None


MAX_LIBRARY_BYTES = 2 * 1024 * 1024 * 1024


def read_constants(model: LoadedModel, payload: Run, *, loaded: bool = False) -> tuple[Mapping[str, Any], Any]:
    """Read original name -> tensor, and the runner that owns the memory (it must live as long as the tensors).

    They are those that the package ships, replaced by those that a setup loaded. If they can be read from the file,
    each is read at its access, unless they are to be ``loaded`` again.

    Raises:
        LookupError: they cannot be read; the text gives the reason.
    """
    try:
        shipped, owner = _read_shipped(model, payload, loaded=loaded)
    except (LookupError, RuntimeError, OSError):
        if not model.given:
            raise
        return dict(model.given), None
    return ChainMap(model.given, shipped), owner  # type: ignore[arg-type]  # Nobody writes to it.


def compare_shipped(model: LoadedModel, payload: Run, theirs: dict[str, Any]) -> list[dict[str, Any]]:
    """``compare_weights`` with the constants of the package; raises the errors of ``read_constants``.

    A difference found in the file is checked again in a container: only that knows the layout for sure.
    """
    constants, owner = read_constants(model, payload)
    try:
        facts = compare_weights(constants, theirs)
    except (TypeError, ValueError, AttributeError, OSError, RuntimeError):
        if owner is not None:
            raise
        facts = [{"equal": False}]
    if owner is None and any(fact["equal"] is False for fact in facts):
        constants, owner = read_constants(model, payload, loaded=True)
        facts = compare_weights(constants, theirs)
    del constants, owner
    return facts


def _read_shipped(
    model: LoadedModel, payload: Run, *, loaded: bool
) -> tuple[MutableMapping[str, Any] | StoredConstants, Any]:
    bare = hasattr(model.loader, "extract_constants_map")
    library = library_of(model, payload)
    if not exports_symbol(library, "ExtractConstantsMap"):
        raise LookupError("a library of a torch before 2.8 does not hand out its constants")
    if bare:
        return dict(model.loader.extract_constants_map(False)), model.loader
    stored = None if loaded else stored_constants(library, model.get_constant_fqns(), payload.stored)
    if stored is not None:
        return stored, None
    if library.stat().st_size > MAX_LIBRARY_BYTES:
        raise LookupError("the library is too big to be opened twice")
    device = model.get_metadata().get("AOTI_DEVICE_KEY", "cpu")
    runner = load_library(library, device, payload.device_index, library.parent)
    if not hasattr(runner, "extract_constants_map"):
        raise LookupError("this torch cannot read constants back: 2.8 and later can")
    return dict(runner.extract_constants_map(False)), runner


def describe_constants(model: LoadedModel, payload: Run) -> dict[str, Any]:
    """Part of the result: ``constants`` (one object each, with value counts), none where they cannot be read."""
    try:
        constants, owner = read_constants(model, payload)
    except (LookupError, RuntimeError, OSError):
        return {"constants": []}
    described = [describe(name, tensor, values=True) for name, tensor in constants.items()]
    del constants, owner
    return {"constants": [{"name": facts.pop("path"), **facts} for facts in described]}


def load_from_package(model: LoadedModel, package: Path, model_name: str) -> int:
    """Load the weights beside the library in the package, like ``load_weights_from_disk=True``; return their number."""
    files: dict[str, Callable[[], bytes]]
    # Member name (with a leading slash) -> a function that reads it, of a directory or an archive.
    if package.is_dir():
        files = {f"/{item.relative_to(package)}": item.read_bytes for item in package.rglob("*") if item.is_file()}
    else:
        archive = zipfile.ZipFile(package)
        files = {f"/{name}": partial(archive.read, name) for name in archive.namelist()}
    configs = [name for name in files if name.endswith("weights_config.json") and f"/{model_name}/" in name]
    if not configs:
        raise LookupError(f"the package has no weights_config.json for model {model_name}")
    loaded: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for name, (file, shape, stride, offset) in json.loads(files[configs[0]]()).items():
        if file not in loaded:
            member = next(known for known in files if known.endswith(f"/data/weights/{file}"))
            loaded[file] = torch.load(io.BytesIO(files[member]()), weights_only=True)
        weights[name] = loaded[file].as_strided(shape, stride, offset)
    model.load_constants(weights, check_full_update=True, user_managed=True)
    return len(weights)


def load_from_file(model: LoadedModel, path: Path) -> int:
    """Load the model's constants from an exported program or a state dict; return their number."""
    source = load_state(path)
    weights = {name: source[name].detach() for name in model.get_constant_fqns() if name in source}
    model.load_constants(weights, check_full_update=True, user_managed=True)
    return len(weights)


def load_state(path: Path) -> dict[str, Any]:
    """Load name -> tensor of an exported program (parameters, buffers, constants) or of a saved state dict."""
    if path.suffix == ".safetensors":
        return load_safetensors(path)
    try:
        saved = torch.load(path, weights_only=True)
    except Exception:
        program = torch.export.load(str(path))
        return program_tensors(program)
    return {str(name): value for name, value in saved.items() if isinstance(value, torch.Tensor)}


def program_tensors(program: Any) -> dict[str, Any]:
    """Name -> tensor of all parameters, buffers and constants of an exported program."""
    held = {**program.state_dict, **program.constants}
    return {name: value for name, value in held.items() if isinstance(value, torch.Tensor)}


def compare_weights(ours: Mapping[str, Any], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    """One object per constant of either side: ``name``, ``equal`` (None if only one side has it), ``what`` differs.

    The kinds of ``what`` are those of ``constant_difference``, and "not in the reference", "not in the package".
    """
    only = [{"name": name, "equal": None, "what": "not in the reference"} for name in ours if name not in theirs]
    only += [{"name": name, "equal": None, "what": "not in the package"} for name in theirs if name not in ours]
    return [*(constant_difference(name, ours[name], theirs[name]) for name in ours if name in theirs), *only]


def library_of(model: LoadedModel, payload: Run) -> Path:
    """The library of the model: the unpacked one of a package."""
    if payload.kind == "bare-so":
        return model.directory / Path(payload.package).name
    found = sorted(model.directory.glob(f"**/data/aotinductor/{payload.model_name}/*.so"))
    if not found:
        raise LookupError("the unpacked library was not found")
    return found[0]


def describe_given_weights(constants: dict[str, Any]) -> list[dict[str, Any]]:
    """Metadata of weights that are about to be loaded: name, dtype, shape, stride, device.

    ``same_as`` are the other names of the very same memory: tied weights. Of what is no tensor, the type is the dtype.
    """
    names: dict[tuple[int, int], list[str]] = {}
    for name, value in constants.items():
        # A tensor without memory, as on the meta device, shares none.
        if hasattr(value, "stride") and value.numel() and storage_address(value):
            names.setdefault((storage_address(value), value.data_ptr()), []).append(str(name))
    return [
        {
            "name": str(name),
            "same_as": [one for one in names.get((storage_address(value), value.data_ptr()), []) if one != str(name)],
            "dtype": dtype_name(value),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "device": str(value.device),
        }
        if hasattr(value, "stride")
        else {"name": str(name), "dtype": type(value).__name__}
        for name, value in constants.items()
    ]
