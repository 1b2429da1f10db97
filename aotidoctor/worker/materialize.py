"""The inputs file, or a JSON document, as real tensors; arranged as the parent described them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aotidoctor.model.forms import arrange, build_plan, plan_to_json
from aotidoctor.model.inputs_json import decode
from aotidoctor.model.jobs import InputsSource
from aotidoctor.model.named import Place
from aotidoctor.model.tree import Container, Leaf, Tree
from aotidoctor.worker.made_tensors import make_tensor
from aotidoctor.worker.safe_load import load_object
from aotidoctor.worker.safetensors_file import load_safetensors

MAPPINGS = ("dict", "OrderedDict", "defaultdict")


def load_inputs(source: InputsSource) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keyword arguments of the source.

    Without a plan the file is read as ``forms.arrange`` reads it without a call spec.
    Tensors of a device that is not here are put on the CPU.
    """
    if source.path is None:
        value, flat = _from_json(source.document), False
    else:
        value, flat = _from_file(source.path, source.trusted)
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
    """The containers of ``value``, as the reader in the parent would describe them."""
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
    if head[:6] == b"\x93NUMPY":
        return _from_npy(path, trusted), False
    if head[:2] == b"PK" and _is_npz(path):
        return _from_npz(path, trusted), True
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= 16 << 20:
        return load_safetensors(Path(path)), True
    if head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[") and (document := _json_in(path)) is not None:
        return _from_json(document), False
    return load_object(path, trusted), False


def _json_in(path: str) -> Any:
    """The document in the file; None where it is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except ValueError:
        return None


def _is_npz(path: str) -> bool:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def _from_npy(path: str, trusted: bool) -> Any:
    import numpy as np

    return _from_array(np.load(path, allow_pickle=trusted))


def _from_npz(path: str, trusted: bool) -> dict[str, Any]:
    import numpy as np

    with np.load(path, allow_pickle=trusted) as archive:
        return {name: _from_array(archive[name]) for name in archive.files}


def _from_array(array: Any) -> Any:
    """The tensor that shares its memory; an array of a dtype that no tensor has stays an array."""
    import torch

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
