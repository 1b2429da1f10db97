"""The variables of a wrapper while it is replayed: numbers, arrays of them, tensors, and what could not be had."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from aotidoctor.readers.contract.text import split_list
from aotidoctor.worker.emulation.arithmetic import Unknown, compute
from aotidoctor.worker.emulation.storage import Tensor

_VIEW = re.compile(r"reinterpret_tensor_wrapper\((.+), (\d+), (\w+), (\w+), (.+)\)$")
# What stands around a tensor and changes nothing about it.
_AROUND = (
    "wrap_with_raii_handle_if_needed(", "std::move(", "RAIIAtenTensorHandle(", "temporary_reference(",
    "&temporary_reference(", "ConstantHandle(", "borrow_arrayref_tensor_as_tensor(",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lost:
    """A value that could not be had, and why."""

    why: str


UNMADE = Lost("nothing was put there")


class CannotError(Exception):
    """A statement cannot be carried out; the text says why."""


@dataclass(slots=True, kw_only=True)
class Variables:
    """``names`` maps a variable to an int, float, tuple of ints, ``Tensor`` or ``Lost``."""

    names: dict[str, Any] = field(default_factory=dict)

    def number(self, text: str) -> int | float:
        """A number of the wrapper. Raises ``CannotError``."""
        try:
            return compute(text, self.names)
        except Unknown as error:
            raise CannotError(f"the number {text[:80]!r} is not known ({error})") from error

    def numbers(self, text: str) -> tuple[int, ...]:
        """An array of whole numbers by name, or written out."""
        value = self.names.get(text.strip())
        if isinstance(value, tuple):
            return value
        inside = re.search(r"\{([^{}]*)\}", text)
        if inside is None:
            raise CannotError(f"the array {text[:80]!r} is not known")
        return tuple(int(self.number(part)) for part in split_list(inside[1]))

    def tensor(self, text: str) -> Tensor:
        """A tensor by name, or as a view that is made on the spot. Raises ``CannotError``."""
        text = text.strip()
        while (
            around := next((one for one in _AROUND if text.startswith(one) and text.endswith(")")), None)
        ) is not None:
            text = text[len(around) : -1].strip()
        text = text.removesuffix(".get()").removesuffix(".release()").removesuffix(".data_ptr()")
        view = _VIEW.fullmatch(text)
        if view is not None:
            base = self.tensor(view[1])
            return replace(
                base,
                sizes=self.numbers(view[3]),
                strides=self.numbers(view[4]),
                offset=base.offset + int(self.number(view[5])),
            )
        value = self.names.get(text)
        if isinstance(value, Tensor):
            return value
        raise CannotError(value.why if isinstance(value, Lost) else f"the tensor {text[:80]!r} is not known")

    def bind(self, name: str, tensor: Tensor) -> None:
        """``name`` is that tensor from now on."""
        self.names[name] = replace(tensor, name=name.removesuffix("_handle"))
