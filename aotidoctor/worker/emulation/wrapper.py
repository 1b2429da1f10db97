"""Replay ``run_impl``: carry out each statement of the wrapper on CPU tensors, as it would run on the device.

A statement that is not known, or that cannot be carried out, is reported; what it would have made is lost, and so is
everything computed from that. The replay goes on with the rest.

Variables are numbers, arrays of numbers, tensors and lost values. Size expressions of C++ are computed with the
wrapper's numbers: as integers where the text has only integers; ``/`` then truncates towards zero, as in C++.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from aotidoctor.kernels.expressions import OPERATIONS, Syntax, UnreadableExpressionError, syntax_of
from aotidoctor.readers.contract.wrapper_statements import Statement
from aotidoctor.readers.contract.wrapper_text import is_runtime, split_list
from aotidoctor.worker.emulation.storage import (
    EmulationFindings,
    FollowedCalls,
    PendingSteps,
    WrapperTensor,
    device_copy,
    empty_storage,
)

# Size expressions of C++.
Number = int | float
# Of C++'s widest integer.
_BITS = 64


def _power(base: Number, exponent: Number) -> Number:
    if not isinstance(base, int) or not isinstance(exponent, int) or exponent < 0:
        return math.pow(base, exponent)
    if base.bit_length() * exponent > _BITS:
        raise OverflowError
    return int(base**exponent)


def _operate(sign: str, left: Any, right: Number) -> Number | None:
    if sign in ("/", "%") and not (isinstance(left, int) and isinstance(right, int)):
        return left / right if sign == "/" else math.fmod(left, right)
    operation: Callable[..., Number | None] = OPERATIONS[sign]
    return operation(left, right)


_CALLS: Mapping[str, Callable[..., Number]] = {
    "c10::div_floor_integer": operator.floordiv, "c10::div_floor_floating": lambda a, b: math.floor(a / b),
    "std::max": lambda *values: max(values), "std::min": lambda *values: min(values), "std::floor": math.floor,
    "std::ceil": math.ceil, "std::trunc": math.trunc, "std::sqrt": math.sqrt, "std::abs": abs, "std::pow": _power,
}  # fmt: skip
_CAST = re.compile(r"static_cast|u?int(?:8|16|32|64)_t|double|float|long|bool")
_CONSTANTS = {"true": True, "false": False, "INFINITY": math.inf, "NAN": math.nan}


def compute_size(text: str, names: Mapping[str, Any]) -> Number:
    """The value of ``text``. Raises ``UnreadableExpressionError``."""
    try:
        value = _value(syntax_of(text), names)
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise OverflowError
    except (ValueError, TypeError, ArithmeticError, KeyError) as error:
        raise UnreadableExpressionError(text[:200]) from error
    return value


def _value(node: Syntax, names: Mapping[str, Any]) -> Number:
    kind, text, parts, signs = node
    if kind == "subscript" and parts[0].kind == "name" and len(parts) == 2:
        array, at = names.get(parts[0].text), _value(parts[1], names)
        found = array[at] if isinstance(array, tuple) and isinstance(at, int) and 0 <= at < len(array) else None
    elif kind == "name":
        found = names.get(text, _CONSTANTS.get(text))
    elif kind == "number":
        found = int(text) if text.isdecimal() else float(text)
    elif kind == "unary" and text in "+-":
        found = _operate(text, 0, _value(parts[0], names))
    elif kind == "chain":
        found, *others = (_value(part, names) for part in parts)
        for sign, other in zip(signs, others, strict=True):
            found = _operate(sign, found, other)
    elif kind == "call":
        given = [_value(part, names) for part in parts]
        found = given[0] if len(given) == 1 and _CAST.fullmatch(text) else _CALLS[text](*given)
    else:
        found = None
    if not isinstance(found, int | float):
        raise UnreadableExpressionError(text)
    return found


# The variables.
_VIEW = re.compile(r"reinterpret_tensor_wrapper\((.+), (\d+), (\w+), (\w+), (.+)\)$")
# Wrappers around a tensor that change nothing about it.
_AROUND = (
    "wrap_with_raii_handle_if_needed(", "std::move(", "RAIIAtenTensorHandle(", "temporary_reference(",
    "&temporary_reference(", "ConstantHandle(", "borrow_arrayref_tensor_as_tensor(",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value that could not be computed, and why."""

    why: str


UNMADE = LostValue("nothing was put there")


class CannotReplayError(Exception):
    """A statement cannot be carried out; the message says why."""


@dataclass(slots=True, kw_only=True)
class Variables:
    """Variables of the wrapper: ``names`` maps each to an int, float, tuple of ints, tensor or ``LostValue``."""

    names: dict[str, Any] = field(default_factory=dict)

    def number(self, text: str) -> int | float:
        """A number of the wrapper. Raises ``CannotReplayError``."""
        try:
            return compute_size(text, self.names)
        except UnreadableExpressionError as error:
            raise CannotReplayError(f"the number {text[:80]!r} is not known ({error})") from error

    def numbers(self, text: str) -> tuple[int, ...]:
        """An array of integers by name, or written out."""
        value = self.names.get(text.strip())
        if isinstance(value, tuple):
            return value
        inside = re.search(r"\{([^{}]*)\}", text)
        if inside is None:
            raise CannotReplayError(f"the array {text[:80]!r} is not known")
        return tuple(int(self.number(part)) for part in split_list(inside[1]))

    def tensor(self, text: str) -> WrapperTensor:
        """A tensor by name, or as a view that the text makes. Raises ``CannotReplayError``."""
        text = text.strip()
        while text.endswith(")") and (around := next(filter(text.startswith, _AROUND), None)) is not None:
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
        if isinstance(value, WrapperTensor):
            return value
        raise CannotReplayError(value.why if isinstance(value, LostValue) else f"the tensor {text[:80]!r} is not known")

    def bind(self, name: str, tensor: WrapperTensor | LostValue) -> None:
        """Make ``name`` refer to that tensor."""
        if isinstance(tensor, WrapperTensor):
            tensor = replace(tensor, name=name.removesuffix("_handle"))
        self.names[name] = tensor


# The statements.
_NAME = re.compile(r"\w+")
_ARRAY_TYPE = re.compile(r"std::(?:array|vector)<[^<>]*>")
# Errors that sizes and strides without sense lead to.
_ODD = (RuntimeError, MemoryError, ValueError, OverflowError, TypeError, IndexError)


@dataclass(slots=True, kw_only=True)
class Replay(Variables):
    """Replay of a wrapper: its variables, and the functions for calls of kernels and operators.

    ``launch(replay, kernel, arguments, line)`` and ``operator(replay, function, arguments, line)`` get the texts of the
    arguments. ``outputs`` are filled as the wrapper fills them. ``nodes`` describe the calls of the proxy executor.
    ``pending`` are the steps that the quick way defers; None where everything is computed. ``followed`` records the
    values of each call; None where they are not needed.
    """

    inputs: Sequence[WrapperTensor]
    constants: Sequence[WrapperTensor | LostValue]
    found: EmulationFindings
    launch: Callable[[Replay, str, list[str], int], None]
    operator: Callable[[Replay, str, list[str], int], None]
    outputs: dict[int, WrapperTensor | LostValue] = field(default_factory=dict)
    origins: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    skipping: int = 0
    nodes: Sequence[dict[str, Any]] = ()
    pending: PendingSteps | None = None
    followed: FollowedCalls | None = None

    def run(self, statements: Iterable[Statement]) -> None:
        """Carry out the statements in order."""
        for one in statements:
            text = one.text
            if self.skipping:
                self.skipping += text.endswith("{") - text.startswith("}")
                continue
            try:
                self._carry_out(one)
            except (CannotReplayError, *_ODD) as error:
                known = isinstance(error, CannotReplayError)
                why = str(error) if known else f"{type(error).__name__}: {str(error)[:200]}"
                self.found.lose(text[:120], why)
                self._lose(text, why)
                if text.endswith("{"):
                    self.skipping = 1

    def _lose(self, text: str, why: str) -> None:
        """Mark what the statement would have made as lost, and what it may have written to as not known."""
        made = re.match(r"(?:[\w:<>&() ]+ )?(\w+) = ", text)
        if made is not None:
            self.names[made[1]] = LostValue(why)
        call = text.find("(")
        if call >= 0 and "=" not in text[:call]:
            for name in _NAME.findall(text[call:]):
                value = self.names.get(name)
                if isinstance(value, WrapperTensor):
                    value.storage.known = False
        for name in re.findall(r"&(\w+)", text):
            self.names[name] = LostValue(why)

    def fill(self, *tensors: WrapperTensor) -> None:
        """Compute their values, where that was deferred."""
        if self.pending is not None:
            self.pending.fill([tensor.storage for tensor in tensors])

    def _carry_out(self, one: Statement) -> None:
        match one.kind:
            case "origins":
                self.origins = (one.origins, one.source_nodes)
            case "input" | "constant" | "allocate" | "array" | "shape":
                self._declare(one)
            case "reuse" | "own" | "move" | "align" | "view" | "pointer":
                self._rename(one)
            case "output" | "copy" | "other-output":
                self._put_out(one)
            case "release":
                self._release(one.name)
            case "call":
                self._call(one)
            case "number" | "value" | "scalar":
                self._assign(one)
            case "assert":
                self._restride(one)
            case "align-branch":
                # Inputs are copies that begin at an aligned address already.
                self.skipping = 1
            case "branch":
                raise CannotReplayError(f"control flow of the wrapper at its line {one.line} is not followed")
            case "code" | "start" | "unknown" if "assert_" not in one.text:
                raise CannotReplayError(f"a statement that is not known, at line {one.line} of the wrapper")

    def _declare(self, one: Statement) -> None:
        """Inputs, constants, sizes, arrays and buffers, each under its first name."""
        match one.kind:
            case "allocate":
                if one.source:
                    raise CannotReplayError(f"the memory of {one.source} is shared out, which is not followed")
                sizes, strides = self.numbers(one.size_array), self.numbers(one.stride_array)
                if any(size < 0 for size in sizes):
                    raise CannotReplayError(f"{one.name} would have a negative size: {list(sizes)}")
                self.names[f"{one.name}_handle"] = empty_storage(one.name, one.dtype or "", sizes, strides)
            case "input":
                if one.index >= len(self.inputs):
                    raise CannotReplayError(f"the call has {len(self.inputs)} tensors")
                self.bind(one.name, self.inputs[one.index])
            case "constant":
                there = 0 <= one.index < len(self.constants)
                self.bind(one.name, self.constants[one.index] if there else LostValue("there is no such constant"))
            case "shape":
                tensor = self.tensor(one.name)
                self.names[f"{one.name}_{one.value}"] = tensor.sizes if one.value == "size" else tensor.strides
            case _:
                self.names[one.name] = tuple(int(self.number(part)) for part in one.values)

    def _rename(self, one: Statement) -> None:
        """New names for tensors, and views of them."""
        if one.name.endswith("_handle"):
            raise CannotReplayError("what a branch or a loop takes is not followed")
        if self.names.get(one.source) is UNMADE and one.kind == "own":
            # A handle that is not made yet is filled by an operator that gets it.
            self.bind(one.name, UNMADE)
            return
        tensor = self.tensor(one.source)
        if one.kind == "pointer":
            # A launch in run_impl itself, which is not followed, may write to it.
            tensor.storage.known = False
            return
        if one.kind == "view":
            sizes, strides = self.numbers(one.size_array), self.numbers(one.stride_array)
            offset = tensor.offset + int(self.number(one.value))
            tensor = replace(tensor, sizes=sizes, strides=strides, offset=offset)
        self.bind(one.name, tensor)

    def _put_out(self, one: Statement) -> None:
        if one.same is not None:
            self.outputs[one.index] = self.outputs.get(one.same, LostValue("its output is not known"))
        elif one.kind == "output" and one.name:
            value = self.names.get(one.name)
            lost = LostValue("it is not known")
            self.outputs[one.index] = value if isinstance(value, WrapperTensor | LostValue) else lost
        else:
            raise CannotReplayError(f"output {one.index} is made in a way that is not known")

    def _release(self, name: str) -> None:
        """Drop a handle."""
        value = self.names.pop(name, None)
        if isinstance(value, WrapperTensor):
            self.names.pop(f"{name}_handle", None)
            # The memory goes with its last handle; inputs and constants belong to the caller and to the model.
            handles = [one for key, one in self.names.items() if not key.endswith("_handle")]
            value.storage.live = any(
                isinstance(one, WrapperTensor) and one.storage is value.storage
                for one in (*handles, *self.inputs, *self.constants, *self.outputs.values())
            )

    def _call(self, one: Statement) -> None:
        function, arguments = one.function, list(one.parts)
        if not one.checked and not function.startswith(("call_", "aoti_torch_")):
            raise CannotReplayError(f"a statement that is not known, at line {one.line} of the wrapper")
        if function.startswith("call_"):
            self.launch(self, function.removeprefix("call_"), arguments, one.line)
        elif not is_runtime(function):
            self.operator(self, function, arguments, one.line)
            self.found.operators += 1
        # Of the runtime's functions only those that move handles have an effect.
        elif function == "aoti_torch_new_uninitialized_tensor":
            self.names[arguments[0].removeprefix("&")] = UNMADE
        elif function == "aoti_torch_clone_preserve_strides":
            self.names[arguments[1].removeprefix("&")] = self.tensor(arguments[0])

    def _assign(self, one: Statement) -> None:
        """Numbers and tensors of them; of the type ``auto``, and under a name that has no number, other tensors."""
        if one.kind == "number" or isinstance(self.names.get(one.name), int | float):
            try:
                self.names[one.name] = self.number(one.value)
            except CannotReplayError:
                if one.source != "auto":
                    raise
            else:
                return
        if one.kind == "scalar":
            number = self.number(one.value)
            dtype = torch.float64 if isinstance(number, float) else None
            self.bind(one.name, device_copy(one.name, torch.tensor(number, dtype=dtype)))
        else:
            self.bind(one.name, self.tensor(one.value))

    def _restride(self, one: Statement) -> None:
        """Give an operator's result the strides that the wrapper asserts, where the CPU's operator made others."""
        value = self.names.get(one.name)
        if not isinstance(value, WrapperTensor) or any(value.storage is given.storage for given in self.inputs):
            return
        try:
            sizes = tuple(int(self.number(part)) for part in one.sizes)
            strides = tuple(int(self.number(part)) for part in one.strides)
        except CannotReplayError:
            # An assertion makes nothing that could be lost.
            return
        if value.sizes == sizes and value.strides != strides:
            self.fill(value)
            made = empty_storage(value.name, value.dtype, sizes, strides)
            made.torch().copy_(value.torch())
            made.storage.all_written()
            self.names[one.name] = made
