"""The JSON inputs document: ``{"args": [...], "kwargs": {...}}``, a list of arguments, or an object of keyword ones.

A tensor is ``{"tensor": {"dtype", "shape", "stride", "device", "data", "low", "high", "seed"}}``: its values, or a
shape to fill (``low`` and ``high`` are both included). A rectangular list of numbers is a tensor too: int64, float32
or bool. ``{"tuple": [...]}``, ``{"list": [...]}`` and ``{"dict": [[key, value], ...]}`` are containers for sure; other
objects are dicts, other lists are lists, and what is left is itself. Parent and worker decode with this one module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.errors import too_many
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, Leaf, Tree

T = TypeVar("T")
Number = int | float | bool

MAX_DEPTH = 64
# Containers and leaves; the values of tensors do not count.
MOST_PLACES = 50_000
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class DocumentError(ValueError):
    """The document does not say what it must; the message names the place."""


@record
class TensorSpec:
    """A tensor to make. ``data`` holds its values row-major, None when they are to be generated from ``seed``."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    device: str = "cpu"
    data: tuple[Number, ...] | None = None
    low: float | None = None
    high: float | None = None
    seed: int = 0


@record(kw_only=False)
class _Makers(Generic[T]):
    tensor: Callable[[TensorSpec], T]
    plain: Callable[[str | int | float | bool | None], T]
    room: Iterator[int]


def decode(
    document: JsonValue,
    tensor: Callable[[TensorSpec], T],
    plain: Callable[[str | int | float | bool | None], T],
) -> Tree[T]:
    """The document as a tree, to be given to ``forms.arrange``. Raises ``DocumentError``, LimitReachedError."""
    makers = _Makers(tensor, plain, iter(range(MOST_PLACES)))
    match document:
        case {"tensor": dict(spec)} if _is_tensor(spec):
            return _tree(makers, document, "document", 0)
        case dict() if document and set(document) <= {"args", "kwargs"}:
            children = tuple(_part(makers, key, child) for key, child in document.items())
            return Container(type="dict", children=children, keys=tuple(document))
    return _part(makers, "args" if isinstance(document, list) else "kwargs", document)


def _part(makers: _Makers[T], name: str, value: JsonValue) -> Tree[T]:
    """Arguments, or keyword arguments: their own level is a container, whatever it looks like."""
    match value:
        case list():
            children = tuple(_tree(makers, item, f"{name}[{index}]", 1) for index, item in enumerate(value))
            return Container(type="list", children=children)
        case {"tuple": list(), **rest} | {"list": list(), **rest} | {"dict": list(), **rest} if not rest:
            return _tree(makers, value, name, 0)
        case dict():
            children = tuple(_tree(makers, item, f"{name}[{key!r}]", 1) for key, item in value.items())
            return Container(type="dict", children=children, keys=tuple(value))
    raise DocumentError(f"{name}: observed {type(value).__name__}, expected a list or an object")


def _tree(makers: _Makers[T], value: JsonValue, path: str, depth: int) -> Tree[T]:
    if depth > MAX_DEPTH:
        raise DocumentError(f"{path[:80]}: nested more than {MAX_DEPTH} deep")
    if next(makers.room, None) is None:
        raise too_many("values outside tensors", MOST_PLACES)
    match value:
        case {"tensor": dict(spec), **rest} if not rest and _is_tensor(spec):
            return Leaf(value=makers.tensor(tensor_spec(spec, path)))
        case {"tuple": list(items), **rest} if not rest:
            return _sequence(makers, "tuple", items, path, depth)
        case {"list": list(items), **rest} if not rest:
            return _sequence(makers, "list", items, path, depth)
        case {"dict": list(items), **rest} if not rest:
            return _entries(makers, [_entry(item, path) for item in items], path, depth)
        case dict():
            return _entries(makers, list(value.items()), path, depth)
        case list() if value and _is_numbers(value):
            return Leaf(value=makers.tensor(tensor_spec({"data": value}, path)))
        case list():
            return _sequence(makers, "list", value, path, depth)
    return Leaf(value=makers.plain(value))


def _sequence(makers: _Makers[T], kind: str, items: list[JsonValue], path: str, depth: int) -> Tree[T]:
    children = tuple(_tree(makers, item, f"{path}[{index}]", depth + 1) for index, item in enumerate(items))
    return Container(type=kind, children=children)


def _entries(makers: _Makers[T], items: Sequence[tuple[str | int, JsonValue]], path: str, depth: int) -> Tree[T]:
    children = tuple(_tree(makers, item, f"{path}[{key!r}]", depth + 1) for key, item in items)
    return Container(type="dict", children=children, keys=tuple(key for key, _ in items))


def _entry(item: JsonValue, path: str) -> tuple[str | int, JsonValue]:
    match item:
        case [str() | int() as key, value]:
            return key, value
    raise DocumentError(f"{path}: observed {str(item)[:40]}, expected [key, value] pairs")


def _is_tensor(spec: JsonObject) -> bool:
    return "shape" in spec or "data" in spec


def _is_numbers(value: JsonValue) -> bool:
    """Whether the first innermost element is a number; ``tensor_spec`` checks the rest."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, (int, float)) or (isinstance(value, str) and value in _WORDS)


def tensor_spec(spec: JsonObject, path: str) -> TensorSpec:
    """The tensor that ``spec`` describes. Raises ``DocumentError``."""
    unknown = set(spec) - {"dtype", "shape", "stride", "device", "data", "low", "high", "seed"}
    if unknown:
        raise DocumentError(f"{path}: unknown keys {sorted(unknown)[:5]}")
    flat: list[Number] | None = None
    shape = _integers(spec.get("shape"), f"{path}.shape")
    if spec.get("data") is not None:
        flat = []
        seen = _flatten(spec["data"], flat, f"{path}.data", 0)
        shape = seen if shape is None else shape
        if math.prod(shape) != len(flat):
            raise DocumentError(
                f"{path}.data: observed {len(flat)} values, expected {math.prod(shape)} for shape {shape}"
            )
    seed, device = spec.get("seed", 0), spec.get("device", "cpu")
    return TensorSpec(
        dtype=_dtype(spec.get("dtype"), flat, path),
        shape=shape or (),
        stride=_stride(spec, shape or (), path),
        device=device if isinstance(device, str) else "cpu",
        data=None if flat is None else tuple(flat),
        low=_number(spec.get("low"), f"{path}.low"),
        high=_number(spec.get("high"), f"{path}.high"),
        seed=seed if isinstance(seed, int) else 0,
    )


def _stride(spec: JsonObject, shape: tuple[int, ...], path: str) -> tuple[int, ...] | None:
    stride = _integers(spec.get("stride"), f"{path}.stride")
    if stride is not None and len(stride) != len(shape):
        raise DocumentError(f"{path}.stride: observed {len(stride)} strides, expected {len(shape)}")
    return stride


def _dtype(value: JsonValue, flat: list[Number] | None, path: str) -> str:
    if value is None:
        kinds = {type(item) for item in flat or ()}
        # As torch.tensor infers it: an empty list is float32, and bool beside int is int64.
        return "float32" if not kinds or float in kinds else "int64" if int in kinds else "bool"
    name = str(value).removeprefix("torch.")
    if name not in ITEMSIZE:
        raise DocumentError(f"{path}.dtype: observed {name[:40]!r}, expected the name of a torch dtype")
    return name


def _integers(value: JsonValue, path: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    good = isinstance(value, list) and len(value) <= MAX_DEPTH and all(_is_size(item) for item in value)
    if not good:
        raise DocumentError(f"{path}: observed {str(value)[:40]}, expected a list of sizes")
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, list) else ()


def _is_size(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48


def _number(value: JsonValue, path: str) -> float | None:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise DocumentError(f"{path}: observed {str(value)[:40]}, expected a number")


def _flatten(value: JsonValue, flat: list[Number], path: str, depth: int) -> tuple[int, ...]:
    """Append the numbers of ``value`` to ``flat``; its shape."""
    if isinstance(value, str) and value in _WORDS:
        value = _WORDS[value]
    if isinstance(value, (int, float)):
        flat.append(value)
        return ()
    if not isinstance(value, list) or depth > MAX_DEPTH:
        raise DocumentError(f"{path}: observed {str(value)[:40]}, expected numbers in a rectangular list")
    shapes = {_flatten(item, flat, path, depth + 1) for item in value}
    if len(shapes) > 1:
        raise DocumentError(f"{path}: observed rows of different sizes, expected a rectangular list")
    return (len(value), *(shapes.pop() if shapes else ()))
