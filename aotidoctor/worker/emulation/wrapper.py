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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aotidoctor.kernels.expressions import OPERATIONS, Syntax, UnreadableExpressionError, syntax_of
from aotidoctor.readers.contract.wrapper_text import is_known_statement, is_runtime, split_list
from aotidoctor.worker.emulation.storage import (
    EmulationFindings,
    FollowedCalls,
    PendingSteps,
    WrapperTensor,
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
_UNPACK = re.compile(r"auto (\w+) = std::move\(inputs\[(\d{1,6})\]\);")
_CONSTANT = re.compile(r"(?:\[\[maybe_unused\]\] )?auto&? (\w+) = \*?constants_->at\((\d{1,7})\);")
_ALIGNED = re.compile(r"if \(\(reinterpret_cast<std::uintptr_t>\((\w+)\.data_ptr\(\)\) & \((\d+) ?- ?1\)\) != 0\) \{")
_SHAPE = re.compile(r"auto (\w+)_(size|stride) = \1\.(?:sizes|strides)\(\);")
_ARRAY = re.compile(
    r"(?:static constexpr |static const |const )int64_t (?:(\w+)\[\] = \{([^{}]*)\}|\*(\w+) ?= ?nullptr);"
)
_NUMBER = re.compile(r"(?:int64_t|int32_t|uint32_t|double|float|bool|auto) (\w+) = (.+);")
_AGAIN = re.compile(r"(\w+) = (.+);")
_ALLOCATE = re.compile(
    r"AOTI_TORCH_ERROR_CODE_CHECK\(aoti_torch_empty_strided(?:_pinned)?\(\d+, (\w+), (\w+), \w+?_dtype_(\w+?)"
    r"(?:\(\))?, \w+?_device_type_(\w+?)(?:\(\))?, [^,]+, &(\w+)\)\);"
)
_OWNED = re.compile(r"RAIIAtenTensorHandle (\w+)\((\w+)\);")
_MOVED = re.compile(
    r"(?:(?:auto|decltype\(auto\)|RAIIAtenTensorHandle|AtenTensorHandle|ConstantHandle) )?(\w+) = (.+?);"
    r"(?:\s*(\w+)\.reset\(\);)?(?:\s*// (?:alias|reuse))?"
)
_RESET = re.compile(r"(\w+)\.reset\(\);")
_OUTPUT = re.compile(r"output_handles\[(\d{1,6})\] = (?:(\w+)\.release\(\)|output_handles\[(\d{1,6})\]|nullptr|.*);")
_CHECKED = re.compile(r"AOTI_TORCH_ERROR_CODE_CHECK\((\w+)\((.*)\)\);")
_CALL = re.compile(r"(?:kernels\.)?(call_\w+|aoti_torch_\w+)\((.*)\);")
_ASSERT = re.compile(r"assert_size_stride\((\w+), \{([^{}]*)\}, \{([^{}]*)\}.*")
_NAME = re.compile(r"\w+")
_ARRAY_TYPE = re.compile(r"std::(?:array|vector)<[^<>]*>")
_COMMENT = re.compile(r"// (?:Topologically Sorted |Unsorted )?Source Nodes: \[(.*?)\], Original ATen: \[(.*?)\]")
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

    def run(self, statements: Sequence[tuple[int, str]]) -> None:
        """Carry out the statements, each ``(line, text)``, in order."""
        for line, text in statements:
            if self.skipping:
                self.skipping += text.endswith("{") - text.startswith("}")
                continue
            try:
                self._one(text, line)
            except (CannotReplayError, *_ODD) as error:
                known = isinstance(error, CannotReplayError)
                why = str(error) if known else f"{type(error).__name__}: {str(error)[:200]}"
                self.found.lose(text[:120], why)
                self._lose(text, why)
                if text.endswith("{"):
                    self.skipping = 1

    def _one(self, text: str, line: int) -> None:
        if text.startswith("//"):
            found = _COMMENT.match(text)
            if found is not None:
                self.origins = (split_list(found[2]), split_list(found[1]))
            return
        if self._declare(text) or self._release(text) or self._call(text, line) or self._assign(text):
            return
        if (match := _ASSERT.fullmatch(text)) is not None:
            self._restride(match)
            return
        if text.endswith("{") and text.startswith(("if (", "} else", "while", "for (")):
            raise CannotReplayError(f"control flow of the wrapper at its line {line} is not followed")
        if not is_known_statement(text) and "assert_" not in text:
            raise CannotReplayError(f"a statement that is not known, at line {line} of the wrapper")

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

    # The forms of statements: each method returns False for a statement of another form.

    def _declare(self, text: str) -> bool:
        """Inputs, constants, sizes, arrays and buffers, each under its first name."""
        if match := _ALLOCATE.fullmatch(text):
            sizes, strides = self.numbers(match[1]), self.numbers(match[2])
            if any(size < 0 for size in sizes):
                raise CannotReplayError(f"{match[5]} would have a negative size: {list(sizes)}")
            self.names[match[5]] = empty_storage(match[5].removesuffix("_handle"), match[3], sizes, strides)
        elif match := _UNPACK.fullmatch(text):
            index = int(match[2])
            if index >= len(self.inputs):
                raise CannotReplayError(f"the call has {len(self.inputs)} tensors")
            self.bind(match[1], self.inputs[index])
        elif match := _CONSTANT.fullmatch(text):
            index = int(match[2])
            there = index < len(self.constants)
            self.bind(match[1], self.constants[index] if there else LostValue("there is no such constant"))
        elif _ALIGNED.fullmatch(text):
            # Inputs are copies that begin at an aligned address already.
            self.skipping = 1
        elif match := _SHAPE.fullmatch(text):
            tensor = self.tensor(match[1])
            self.names[f"{match[1]}_{match[2]}"] = tensor.sizes if match[2] == "size" else tensor.strides
        elif match := _ARRAY.fullmatch(text):
            values = tuple(int(self.number(part)) for part in split_list(match[2] or ""))
            self.names[match[1] or match[3]] = values
        else:
            return False
        return True

    def _release(self, text: str) -> bool:
        """Outputs, and handles that change their owner or are dropped."""
        if match := _OUTPUT.fullmatch(text):
            index = int(match[1])
            if match[2] is None and match[3] is None:
                raise CannotReplayError(f"output {index} is made in a way that is not known")
            if match[2] is not None:
                value = self.names.get(match[2])
                lost = LostValue("it is not known")
                self.outputs[index] = value if isinstance(value, WrapperTensor | LostValue) else lost
            else:
                self.outputs[index] = self.outputs.get(int(match[3]), LostValue("its output is not known"))
        elif match := _OWNED.fullmatch(text):
            # A handle that is not made yet is filled by an operator that gets it.
            unmade = self.names.get(match[2]) is UNMADE
            self.bind(match[1], UNMADE if unmade else self.tensor(match[2]))
        elif match := _RESET.fullmatch(text):
            value = self.names.pop(match[1], None)
            if isinstance(value, WrapperTensor):
                self.names.pop(f"{match[1]}_handle", None)
                # The memory goes with its last handle; inputs and constants belong to the caller and to the model.
                handles = [one for name, one in self.names.items() if not name.endswith("_handle")]
                value.storage.live = any(
                    isinstance(one, WrapperTensor) and one.storage is value.storage
                    for one in (*handles, *self.inputs, *self.constants, *self.outputs.values())
                )
        else:
            return text == "inputs.clear();"
        return True

    def _call(self, text: str, line: int) -> bool:
        match = _CHECKED.fullmatch(text) or _CALL.fullmatch(text)
        if match is None:
            return False
        function = match[1]
        arguments = list(split_list(_ARRAY_TYPE.sub("", match[2])))
        if function.startswith("call_"):
            self.launch(self, function.removeprefix("call_"), arguments, line)
        elif not is_runtime(function):
            self.operator(self, function, arguments, line)
            self.found.operators += 1
        # Of the runtime's functions only those that move handles have an effect.
        elif function == "aoti_torch_new_uninitialized_tensor":
            self.names[arguments[0].removeprefix("&")] = UNMADE
        elif function == "aoti_torch_clone_preserve_strides":
            self.names[arguments[1].removeprefix("&")] = self.tensor(arguments[0])
        return True

    def _assign(self, text: str) -> bool:
        """Numbers, and new names for tensors."""
        if match := _NUMBER.fullmatch(text):
            try:
                self.names[match[1]] = self.number(match[2])
            except CannotReplayError:
                if not text.startswith("auto "):
                    raise
            else:
                return True
        if (match := _AGAIN.fullmatch(text)) and isinstance(self.names.get(match[1]), int | float):
            self.names[match[1]] = self.number(match[2])
            return True
        match = _MOVED.fullmatch(text)
        if match is None or match[2] == "nullptr":
            return False
        if match[2].startswith(("std::make_unique", "static_cast", "steal_from")):
            return False
        self.bind(match[1], self.tensor(match[2]))
        return True

    def _restride(self, match: re.Match[str]) -> None:
        """Give an operator's result the strides that the wrapper asserts, where the CPU's operator made others."""
        value = self.names.get(match[1])
        if not isinstance(value, WrapperTensor) or any(value.storage is one.storage for one in self.inputs):
            return
        sizes = tuple(int(self.number(part)) for part in split_list(match[2]))
        strides = tuple(int(self.number(part)) for part in split_list(match[3]))
        if value.sizes == sizes and value.strides != strides:
            self.fill(value)
            made = empty_storage(value.name, value.dtype, sizes, strides)
            made.torch().copy_(value.torch())
            made.storage.all_written()
            self.names[match[1]] = made
