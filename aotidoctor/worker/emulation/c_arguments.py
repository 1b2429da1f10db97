"""Calls of the C shim read by the schemas of their operators.

The C signatures follow from the schemas: an out variant takes what it writes first, a list is a pointer and a length,
what may be missing is a pointer, results are handles at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from aotidoctor.readers.contract.text import split_list
from aotidoctor.worker.emulation.storage import Tensor
from aotidoctor.worker.emulation.variables import CannotError
from aotidoctor.worker.emulation.wrapper import Replay

_NULL = ("0", "nullptr", "NULL", "{}")
_DTYPE = re.compile(r"\w*?_dtype_(\w+?)(?:\(\))?$")
# Where the shim's name is not the operator's.
_NAMES = {
    "scatter_out": ("scatter", "src_out"),
    "scatter_reduce_out": ("scatter_reduce", "two_out"),
    "_scaled_dot_product_flash_attention_v2": ("_scaled_dot_product_flash_attention", "default"),
}


def find_operator(name: str) -> Any:
    """The operator behind ``mm_out``, ``sort_stable``, ``index_Tensor``. Raises ``CannotError``."""
    import torch

    if name in _NAMES:
        base, overload = _NAMES[name]
        return getattr(getattr(torch.ops.aten, base), overload)
    for cut in [None, *(at for at in range(len(name) - 1, 0, -1) if name[at] == "_")]:
        base, overload = (name, "default") if cut is None else (name[:cut], name[cut + 1 :])
        packet = getattr(torch.ops.aten, base, None) if base else None
        if packet is None:
            continue
        overloads = packet.overloads()
        if overload in overloads:
            return getattr(packet, overload)
        if cut is None and overloads:
            return getattr(packet, overloads[0])
    raise CannotError(f"the operator {name} is not known here")


class Reader:
    """Takes from the texts of the arguments what the schema asks for."""

    def __init__(self, replay: Replay, texts: Iterator[str]) -> None:
        self._replay = replay
        self._texts = texts
        self.tensors: list[Tensor] = []

    def rest(self) -> Iterator[str]:
        """Names of the results."""
        return (text.strip().removeprefix("&") for text in self._texts)

    def tensor(self) -> Any:
        """A tensor, as one of torch's."""
        return self._tensor(next(self._texts))

    def read(self, kind: str) -> Any:
        """The value of an argument of that type of the schema."""
        text = next(self._texts).strip()
        if kind.startswith("Optional["):
            if text in _NULL:
                if "List" in kind:
                    next(self._texts)
                return None
            return self._value(kind[len("Optional[") : -1], text.removeprefix("&"), optional=True)
        return self._value(kind, text, optional=False)

    def _value(self, kind: str, text: str, *, optional: bool) -> Any:
        match kind:
            case "Tensor":
                return self._tensor(text)
            case "List[int]" | "List[SymInt]":
                values = self._replay.numbers(text)
                length = int(self._replay.number(next(self._texts)))
                return list(values[:length])
            case "List[Tensor]" | "List[Optional[Tensor]]":
                return self._tensors(text)
            case "int":
                dtype = _DTYPE.match(text)
                if dtype is not None:
                    import torch

                    return getattr(torch, dtype[1])
                return int(self._replay.number(text))
            case "bool":
                return bool(self._replay.number(text))
            case "float":
                return float(self._replay.number(text))
            case "number":
                return self._replay.number(text)
            case "str":
                return text.strip('"')
            case _:
                raise CannotError(f"an argument of the type {kind}")

    def _tensors(self, text: str) -> list[Any]:
        inside = re.search(r"\{(.*)\}", text)
        length = int(self._replay.number(next(self._texts)))
        if inside is None:
            raise CannotError("a list of tensors that is not written out")
        parts = split_list(inside[1])[:length]
        return [None if one.strip() in _NULL else self._tensor(one.strip().removeprefix("&")) for one in parts]

    def _tensor(self, text: str) -> Any:
        tensor = self._replay.tensor(text.removeprefix("&"))
        if not tensor.storage.live:
            raise CannotError(f"{tensor.name} was freed before")
        self.tensors.append(tensor)
        return tensor.torch()


def read_arguments(reader: Reader, operator: Any) -> tuple[list[Tensor], list[Any], dict[str, Any]]:
    """What it writes to, its positional arguments and those by keyword."""
    arguments = operator._schema.arguments
    keywords: dict[str, Any] = {one.name: reader.tensor() for one in arguments if one.is_out}
    written = list(reader.tensors)
    given: list[Any] = []
    for one in arguments:
        if one.is_out:
            continue
        if str(one.type) in ("Optional[Device]", "Device", "Optional[Layout]", "Optional[MemoryFormat]"):
            raise CannotError(f"an argument of the type {one.type}")
        before = len(reader.tensors)
        value = reader.read(str(one.type))
        if one.alias_info is not None and one.alias_info.is_write:
            written += reader.tensors[before:]
        if one.kwarg_only:
            keywords[one.name] = value
        else:
            given.append(value)
    return written, given, keywords
