"""Arguments of an operator that a package calls: from what the compiled call passes, and from and to a file.

The compiled call passes tensors and integers in two flat arrays; the rest stands in the package's JSON, with the names.
A saved call keeps the tensors beside a description, since not every value of torch can be written to a file:
``["tensor", 0]``, ``["tensors", [0, None]]``, ``["value", 2.0]``, ``["torch", "float16"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aotidoctor.model.c10 import EXPORTED_TYPES

Described = dict[str, list[Any]]

# Numbers of torch._export.serde.schema.
_LAYOUTS = {1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 7: "strided"}
_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_PLAIN = ("float", "floats", "bool", "bools", "string", "strings")


class ArgumentError(Exception):
    """A kind of argument that cannot be given to an operator outside its package; the text names it."""


def read_call(
    node: dict[str, Any], integers: Sequence[int], tensors: Sequence[Any], device: str
) -> tuple[Described, list[Any]]:
    """The arguments of one call by name, and the tensors they hold, of a node of the package's JSON.

    ``integers`` and ``tensors`` are the flat arrays of the call. Arguments come first in both, results after them.

    Raises:
        ArgumentError: an object of a custom class, mostly.
    """
    given = [(item["name"], *_only(item["arg"])) for item in node["inputs"]]
    outputs = sum(_only(output)[0] == "int" for output in node.get("outputs", []))
    # Torch before 2.13 takes a constant Scalar from the JSON and not from the array: then there are fewer integers.
    passed = sum(_count(kind, value) for _, kind, value in given) == len(integers) - outputs
    flat, handles = iter(integers), iter(tensors)
    reader = _Reader(flat, handles, passed=passed, device=device)
    return {name: reader.read(kind, value) for name, kind, value in given}, reader.kept


def _only(union: dict[str, Any]) -> tuple[str, Any]:
    """Kind and value of ``{"as_int": 3}``."""
    ((key, value),) = union.items()
    return key.removeprefix("as_"), value


def _count(kind: str, value: Any) -> int:
    return len(value) if kind in ("ints", "sym_ints") else int(kind in ("int", "sym_int"))


class _Reader:
    """Takes from the flat arrays what each argument is made of."""

    def __init__(self, integers: Iterator[int], tensors: Iterator[Any], *, passed: bool, device: str) -> None:
        self._integers = integers
        self._tensors = tensors
        self._passed = passed
        self._device = device
        self.kept: list[Any] = []

    def read(self, kind: str, value: Any) -> list[Any]:
        match kind:
            case "none":
                return ["value", None]
            case "tensor":
                return ["tensor", self._keep()]
            case "tensors":
                return ["tensors", [self._keep() for _ in value]]
            case "optional_tensors":
                return ["tensors", [self._keep() if _only(item)[0] == "tensor" else None for item in value]]
            case "int" | "sym_int":
                return ["value", self._integer(value)]
            case "ints" | "sym_ints":
                return ["value", [self._integer(item) for item in value]]
            case "device":
                return ["device", self._device]
            case _ if kind in _PLAIN:
                return ["value", value]
            case _:
                return ["torch", _named(kind, value)]

    def _keep(self) -> int:
        self.kept.append(next(self._tensors))
        return len(self.kept) - 1

    def _integer(self, value: Any) -> int:
        """From the array where it was passed; a constant that was not stands in the JSON."""
        if not self._passed and isinstance(value, int):
            return value
        return int(next(self._integers))


def _named(kind: str, value: Any) -> str:
    table = {"scalar_type": EXPORTED_TYPES, "layout": _LAYOUTS, "memory_format": _FORMATS}.get(kind, {})
    name = table.get(value) if isinstance(value, int) else None
    if name is None:
        raise ArgumentError(f"an argument of the kind {kind.replace('_', ' ')}")
    return name


def describe_values(values: dict[str, Any]) -> tuple[Described, list[Any]]:
    """The same of arguments that are there as Python values.

    Raises:
        ArgumentError: as ``read_call``.
    """
    kept: list[Any] = []
    return {name: _describe(value, kept) for name, value in values.items()}, kept


def _describe(value: Any, kept: list[Any]) -> list[Any]:
    import torch

    def keep(tensor: Any) -> int | None:
        if tensor is None:
            return None
        kept.append(tensor)
        return len(kept) - 1

    if isinstance(value, torch.Tensor):
        return ["tensor", keep(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        return ["tensors", [keep(item) for item in value]]
    if isinstance(value, torch.device):
        return ["device", str(value)]
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return ["torch", str(value).removeprefix("torch.")]
    if value is None or isinstance(value, bool | int | float | str):
        return ["value", value]
    if isinstance(value, list | tuple) and all(isinstance(item, bool | int | float | str) for item in value):
        return ["value", list(value)]
    raise ArgumentError(f"an argument of the type {type(value).__name__}")


def build_arguments(described: Described, tensors: Sequence[Any]) -> dict[str, Any]:
    """Python values of a saved call's arguments."""
    import torch

    build: dict[str, Callable[[Any], Any]] = {
        "value": lambda value: value,
        "tensor": lambda index: tensors[index],
        "tensors": lambda indices: [None if index is None else tensors[index] for index in indices],
        "torch": lambda name: getattr(torch, name),
        "device": torch.device,
    }
    return {name: build[kind](value) for name, (kind, value) in described.items()}
