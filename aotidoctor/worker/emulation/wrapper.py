"""``run_impl`` replayed: each statement of the wrapper does to tensors of the CPU what it does on the device.

A statement that is not known, or that cannot be carried out, is named; what it would have made is lost, and so is what
is computed of that. Everything else goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aotidoctor.readers.contract.known import is_known, is_runtime
from aotidoctor.readers.contract.text import split_list
from aotidoctor.worker.emulation.followed import Followed
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.pending import Pending
from aotidoctor.worker.emulation.storage import Tensor, empty
from aotidoctor.worker.emulation.variables import UNMADE, CannotError, Lost, Variables

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

    inputs: Sequence[Tensor]
    constants: Sequence[Tensor | Lost]
    found: Found
    launch: Callable[[Replay, str, list[str], int], None]
    operator: Callable[[Replay, str, list[str], int], None]
    outputs: dict[int, Tensor | Lost] = field(default_factory=dict)
    origins: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    skipping: int = 0
    nodes: Sequence[dict[str, Any]] = ()
    pending: Pending | None = None
    followed: Followed | None = None

    def run(self, statements: Sequence[tuple[int, str]]) -> None:
        """Replay ``(line, statement)`` in order."""
        for line, text in statements:
            if self.skipping:
                self.skipping += text.endswith("{") - text.startswith("}")
                continue
            try:
                self._one(text, line)
            except (CannotError, *_ODD) as error:
                why = str(error) if isinstance(error, CannotError) else f"{type(error).__name__}: {str(error)[:200]}"
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
            raise CannotError(f"control flow of the wrapper at its line {line} is not followed")
        if not is_known(text) and "assert_" not in text:
            raise CannotError(f"a statement that is not known, at line {line} of the wrapper")

    def _lose(self, text: str, why: str) -> None:
        """What the statement would have made is lost, and what it may have written to is not known."""
        made = re.match(r"(?:[\w:<>&() ]+ )?(\w+) = ", text)
        if made is not None:
            self.names[made[1]] = Lost(why)
        call = text.find("(")
        if call >= 0 and "=" not in text[:call]:
            for name in _NAME.findall(text[call:]):
                value = self.names.get(name)
                if isinstance(value, Tensor):
                    value.storage.known = False
        for name in re.findall(r"&(\w+)", text):
            self.names[name] = Lost(why)

    def fill(self, *tensors: Tensor) -> None:
        """Make their values real, where they were left out."""
        if self.pending is not None:
            self.pending.fill([tensor.storage for tensor in tensors])

    # What each form of statement does; False where it is of another form after all.

    def _unpack(self, match: re.Match[str], line: int) -> bool:
        index = int(match[2])
        if index >= len(self.inputs):
            raise CannotError(f"the call has {len(self.inputs)} tensors")
        self.bind(match[1], self.inputs[index])
        return True

    def _constant(self, match: re.Match[str], line: int) -> bool:
        index = int(match[2])
        value = self.constants[index] if index < len(self.constants) else Lost("there is no such constant")
        if isinstance(value, Tensor):
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
        except CannotError:
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
            raise CannotError(f"{match[5]} would have a negative size: {list(sizes)}")
        self.names[match[5]] = empty(match[5].removesuffix("_handle"), match[3], sizes, strides)
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
        if isinstance(value, Tensor):
            self.names.pop(f"{match[1]}_handle", None)
            held = any(isinstance(one, Tensor) and one.storage is value.storage for one in self._held())
            value.storage.live = held
        return True

    def _held(self) -> list[Any]:
        """Everything that a handle still holds; inputs and constants belong to the caller and to the model."""
        return [
            *(value for name, value in self.names.items() if not name.endswith("_handle")),
            *self.inputs,
            *self.constants,
            *self.outputs.values(),
        ]

    def _output(self, match: re.Match[str], line: int) -> bool:
        index = int(match[1])
        if match[2] is not None:
            value = self.names.get(match[2])
            self.outputs[index] = value if isinstance(value, Tensor | Lost) else Lost("it is not known")
        elif match[3] is not None:
            self.outputs[index] = self.outputs.get(int(match[3]), Lost("its output is not known"))
        else:
            raise CannotError(f"output {index} is made in a way that is not known")
        return True

    def _call(self, match: re.Match[str], line: int) -> bool:
        function = match[1]
        arguments = list(split_list(_ARRAY_TYPE.sub("", match[2])))
        if function.startswith("call_"):
            self.launch(self, function.removeprefix("call_"), arguments, line)
        elif is_runtime(function):
            return self._runtime(function, arguments)
        else:
            self.operator(self, function, arguments, line)
        return True

    def _runtime(self, function: str, arguments: list[str]) -> bool:
        """Functions that move handles; of the others, nothing follows."""
        match function:
            case "aoti_torch_new_uninitialized_tensor":
                self.names[arguments[0].removeprefix("&")] = UNMADE
            case "aoti_torch_clone_preserve_strides":
                self.names[arguments[1].removeprefix("&")] = self.tensor(arguments[0])
        return True

    def _assertion(self, match: re.Match[str], line: int) -> bool:
        """An operator's result is taken to have these sizes and strides: it gets them, where the CPU's has others."""
        value = self.names.get(match[1])
        if not isinstance(value, Tensor) or any(value.storage is one.storage for one in self.inputs):
            return True
        sizes = tuple(int(self.number(part)) for part in split_list(match[2]))
        strides = tuple(int(self.number(part)) for part in split_list(match[3]))
        if value.sizes == sizes and value.strides != strides:
            self.fill(value)
            made = empty(value.name, value.dtype, sizes, strides)
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
