"""Replay ``run_impl``: each statement of the wrapper does to tensors of the CPU what it does on the device.

A statement that is not known, or that cannot be carried out, is named; what it would have made is lost, and so is
what is computed of that. Everything else goes on.

Variables are numbers, arrays of them, tensors, and what could not be had. Size expressions of C++ are computed with
the wrapper's numbers: whole numbers only where the text has only those; ``/`` cuts towards zero there, as in C++.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

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
_SUFFIX = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?:ULL|LL|UL|[LUlufF])\b")
_CAST = re.compile(r"\b(?:static_cast<[\w ]+>|(?:u?int(?:8|16|32|64)_t|double|float|long|bool)(?=\())")
_LONGEST = 4000
_BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CALLS: Mapping[str, Callable[..., Number]] = {
    "c10__div_floor_integer": lambda a, b: a // b,
    "c10__div_floor_floating": lambda a, b: math.floor(a / b),
    "std__max": lambda *values: max(values),
    "std__min": lambda *values: min(values),
    "std__floor": math.floor,
    "std__ceil": math.ceil,
    "std__trunc": math.trunc,
    "std__sqrt": math.sqrt,
    "std__abs": abs,
    "std__pow": lambda a, b: a**b,
}
_CONSTANTS = {"true": True, "false": False, "INFINITY": math.inf, "NAN": math.nan}


class UnknownExpression(Exception):  # noqa: N818 - the same whether a name or a form is not known
    """The expression has a name or a form that is not known; the text says which."""


def compute_size(text: str, names: Mapping[str, Any]) -> Number:
    """The value of ``text``. Raises ``Unknown``."""
    if len(text) > _LONGEST:
        raise UnknownExpression("a very long expression")
    plain = _CAST.sub("", _SUFFIX.sub(r"\1", text)).replace("::", "__").replace("std__numeric_limits", "")
    plain = plain.replace("&&", " and ").replace("||", " or ").replace("{", "[").replace("}", "]")
    try:
        return _value(ast.parse(plain.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, KeyError) as error:
        raise UnknownExpression(text[:200]) from error


def _value(node: ast.expr, names: Mapping[str, Any]) -> Number:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id=name):
            found = names.get(name, _CONSTANTS.get(name))
            if not isinstance(found, int | float):
                raise UnknownExpression(name)
            return found
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return _item(names.get(name), _value(index, names), name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=inner):
            return -_value(inner, names) if isinstance(op, ast.USub) else _value(inner, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, names), _value(right, names))
        case ast.BoolOp(op=op, values=values):
            return (all if isinstance(op, ast.And) else any)([bool(_value(one, names)) for one in values])
        case ast.Call(func=ast.Name(id=name), args=args):
            flat = args[0].elts if len(args) == 1 and isinstance(args[0], ast.List) else args
            return _CALLS[name](*(_value(one, names) for one in flat))
    raise UnknownExpression(ast.dump(node)[:80])


def _item(values: Any, index: Number, name: str) -> Number:
    if not isinstance(values, tuple) or not 0 <= index < len(values):
        raise UnknownExpression(f"{name}[{index}]")
    found = values[int(index)]
    return float(found) if isinstance(found, float) else int(found)


def _binary(op: ast.operator, left: Number, right: Number) -> Number:
    whole = isinstance(left, int) and isinstance(right, int)
    match op:
        case ast.Div():
            if not whole:
                return left / right
            quotient = abs(left) // abs(right)
            return int(quotient if (left < 0) == (right < 0) else -quotient)
        case ast.Mod():
            return math.fmod(left, right) if not whole else int(left - right * _binary(ast.Div(), left, right))
        case _:
            return cast(Number, _BINARY[type(op)](left, right))


# The variables.

_VIEW = re.compile(r"reinterpret_tensor_wrapper\((.+), (\d+), (\w+), (\w+), (.+)\)$")
# What stands around a tensor and changes nothing about it.
_AROUND = (
    "wrap_with_raii_handle_if_needed(", "std::move(", "RAIIAtenTensorHandle(", "temporary_reference(",
    "&temporary_reference(", "ConstantHandle(", "borrow_arrayref_tensor_as_tensor(",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value that could not be had, and why."""

    why: str


UNMADE = LostValue("nothing was put there")


class CannotReplayError(Exception):
    """A statement cannot be carried out; the text says why."""


@dataclass(slots=True, kw_only=True)
class Variables:
    """``names`` maps a variable to an int, float, tuple of ints, ``Tensor`` or ``Lost``."""

    names: dict[str, Any] = field(default_factory=dict)

    def number(self, text: str) -> int | float:
        """A number of the wrapper. Raises ``CannotError``."""
        try:
            return compute_size(text, self.names)
        except UnknownExpression as error:
            raise CannotReplayError(f"the number {text[:80]!r} is not known ({error})") from error

    def numbers(self, text: str) -> tuple[int, ...]:
        """An array of whole numbers by name, or written out."""
        value = self.names.get(text.strip())
        if isinstance(value, tuple):
            return value
        inside = re.search(r"\{([^{}]*)\}", text)
        if inside is None:
            raise CannotReplayError(f"the array {text[:80]!r} is not known")
        return tuple(int(self.number(part)) for part in split_list(inside[1]))

    def tensor(self, text: str) -> WrapperTensor:
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
        if isinstance(value, WrapperTensor):
            return value
        raise CannotReplayError(value.why if isinstance(value, LostValue) else f"the tensor {text[:80]!r} is not known")

    def bind(self, name: str, tensor: WrapperTensor) -> None:
        """``name`` is that tensor from now on."""
        self.names[name] = replace(tensor, name=name.removesuffix("_handle"))


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
# What sizes and strides that make no sense end in.
_ODD = (RuntimeError, MemoryError, ValueError, OverflowError, TypeError, IndexError)


@dataclass(slots=True, kw_only=True)
class Replay(Variables):
    """The wrapper's variables, and what is done for calls of kernels and operators.

    ``launch(replay, kernel, arguments, line)`` and ``operator(replay, function, arguments, line)`` get the texts of the
    arguments. ``outputs`` are filled as the wrapper fills them. ``nodes`` describe the calls of the proxy executor.
    ``pending`` is what the quick way leaves out; None where everything is computed. ``followed`` keeps the values of
    each call; None where nobody asked.
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
        """Replay ``(line, statement)`` in order."""
        for line, text in statements:
            if self.skipping:
                self.skipping += text.endswith("{") - text.startswith("}")
                continue
            try:
                self._one(text, line)
            except (CannotReplayError, *_ODD) as error:
                why = (
                    str(error)
                    if isinstance(error, CannotReplayError)
                    else f"{type(error).__name__}: {str(error)[:200]}"
                )
                self.found.skip(text[:120], why)
                self._lose(text, why)
                if text.endswith("{"):
                    self.skipping = 1

    def _one(self, text: str, line: int) -> None:
        if text.startswith("//"):
            found = _COMMENT.match(text)
            if found is not None:
                self.origins = (split_list(found[2]), split_list(found[1]))
            return
        for pattern, rule in _RULES:
            match = pattern.fullmatch(text)
            if match is not None and rule(self, match, line):
                return
        if text.endswith("{") and text.startswith(("if (", "} else", "while", "for (")):
            raise CannotReplayError(f"control flow of the wrapper at its line {line} is not followed")
        if not is_known_statement(text) and "assert_" not in text:
            raise CannotReplayError(f"a statement that is not known, at line {line} of the wrapper")

    def _lose(self, text: str, why: str) -> None:
        """What the statement would have made is lost, and what it may have written to is not known."""
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
        """Make their values real, where they were left out."""
        if self.pending is not None:
            self.pending.fill([tensor.storage for tensor in tensors])

    # What each form of statement does; False where it is of another form after all.

    def _unpack(self, match: re.Match[str], line: int) -> bool:
        index = int(match[2])
        if index >= len(self.inputs):
            raise CannotReplayError(f"the call has {len(self.inputs)} tensors")
        self.bind(match[1], self.inputs[index])
        return True

    def _constant(self, match: re.Match[str], line: int) -> bool:
        index = int(match[2])
        value = self.constants[index] if index < len(self.constants) else LostValue("there is no such constant")
        if isinstance(value, WrapperTensor):
            self.bind(match[1], value)
        else:
            self.names[match[1]] = value
        return True

    def _aligned(self, match: re.Match[str], line: int) -> bool:
        """Inputs are copies that begin at an aligned address already."""
        self.skipping = 1
        return True

    def _shape(self, match: re.Match[str], line: int) -> bool:
        tensor = self.tensor(match[1])
        self.names[f"{match[1]}_{match[2]}"] = tensor.sizes if match[2] == "size" else tensor.strides
        return True

    def _array(self, match: re.Match[str], line: int) -> bool:
        if match[3] is not None:
            self.names[match[3]] = ()
        else:
            self.names[match[1]] = tuple(int(self.number(part)) for part in split_list(match[2]))
        return True

    def _number(self, match: re.Match[str], line: int) -> bool:
        try:
            self.names[match[1]] = self.number(match[2])
        except CannotReplayError:
            if match[0].startswith("auto "):
                return False
            raise
        return True

    def _again(self, match: re.Match[str], line: int) -> bool:
        if not isinstance(self.names.get(match[1]), int | float):
            return False
        self.names[match[1]] = self.number(match[2])
        return True

    def _allocate(self, match: re.Match[str], line: int) -> bool:
        sizes, strides = self.numbers(match[1]), self.numbers(match[2])
        if any(size < 0 for size in sizes):
            raise CannotReplayError(f"{match[5]} would have a negative size: {list(sizes)}")
        self.names[match[5]] = empty_storage(match[5].removesuffix("_handle"), match[3], sizes, strides)
        return True

    def _owned(self, match: re.Match[str], line: int) -> bool:
        if self.names.get(match[2]) is UNMADE:
            # Filled by an operator that gets the handle.
            self.names[match[1]] = UNMADE
            return True
        self.bind(match[1], self.tensor(match[2]))
        return True

    def _moved(self, match: re.Match[str], line: int) -> bool:
        if match[2].startswith(("std::make_unique", "static_cast", "steal_from")) or match[2] == "nullptr":
            return False
        self.bind(match[1], self.tensor(match[2]))
        return True

    def _reset(self, match: re.Match[str], line: int) -> bool:
        """The handle is dropped; the memory goes with the last handle of it."""
        value = self.names.pop(match[1], None)
        if isinstance(value, WrapperTensor):
            self.names.pop(f"{match[1]}_handle", None)
            # Everything that a handle still holds; inputs and constants belong to the caller and to the model.
            held = any(
                isinstance(one, WrapperTensor) and one.storage is value.storage
                for one in [
                    *(value for name, value in self.names.items() if not name.endswith("_handle")),
                    *self.inputs,
                    *self.constants,
                    *self.outputs.values(),
                ]
            )
            value.storage.live = held
        return True

    def _output(self, match: re.Match[str], line: int) -> bool:
        index = int(match[1])
        if match[2] is not None:
            value = self.names.get(match[2])
            self.outputs[index] = (
                value if isinstance(value, WrapperTensor | LostValue) else LostValue("it is not known")
            )
        elif match[3] is not None:
            self.outputs[index] = self.outputs.get(int(match[3]), LostValue("its output is not known"))
        else:
            raise CannotReplayError(f"output {index} is made in a way that is not known")
        return True

    def _call(self, match: re.Match[str], line: int) -> bool:
        function = match[1]
        arguments = list(split_list(_ARRAY_TYPE.sub("", match[2])))
        if function.startswith("call_"):
            self.launch(self, function.removeprefix("call_"), arguments, line)
        elif is_runtime(function):
            # Functions that move handles; of the others, nothing follows.
            match function:
                case "aoti_torch_new_uninitialized_tensor":
                    self.names[arguments[0].removeprefix("&")] = UNMADE
                case "aoti_torch_clone_preserve_strides":
                    self.names[arguments[1].removeprefix("&")] = self.tensor(arguments[0])
            return True
        else:
            self.operator(self, function, arguments, line)
        return True

    def _assertion(self, match: re.Match[str], line: int) -> bool:
        """An operator's result is taken to have these sizes and strides: it gets them, where the CPU's has others."""
        value = self.names.get(match[1])
        if not isinstance(value, WrapperTensor) or any(value.storage is one.storage for one in self.inputs):
            return True
        sizes = tuple(int(self.number(part)) for part in split_list(match[2]))
        strides = tuple(int(self.number(part)) for part in split_list(match[3]))
        if value.sizes == sizes and value.strides != strides:
            self.fill(value)
            made = empty_storage(value.name, value.dtype, sizes, strides)
            made.torch().copy_(value.torch())
            made.storage.all_written()
            self.names[match[1]] = made
        return True


_Rule = Callable[[Replay, re.Match[str], int], bool]
_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = (
    (_ALLOCATE, Replay._allocate),
    (_UNPACK, Replay._unpack),
    (_CONSTANT, Replay._constant),
    (_ALIGNED, Replay._aligned),
    (_SHAPE, Replay._shape),
    (_ARRAY, Replay._array),
    (_OUTPUT, Replay._output),
    (_OWNED, Replay._owned),
    (_RESET, Replay._reset),
    (re.compile(r"inputs\.clear\(\);"), lambda *_: True),
    (_CHECKED, Replay._call),
    (_CALL, Replay._call),
    (_NUMBER, Replay._number),
    (_AGAIN, Replay._again),
    (_MOVED, Replay._moved),
    (_ASSERT, Replay._assertion),
)
