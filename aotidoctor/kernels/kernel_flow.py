"""Follow the statements of a generated kernel, C++ or Triton, one to a line.

In C++, names live in scopes: ``tmp4`` of the first loop is not that of the second. A statement that is not understood
makes the name it defines unknown; it never leaves an older meaning behind. In Triton, ``xindex`` and its like run over
all elements (``xnumel``); the masks that bound them are true for those.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from aotidoctor.kernels.expressions import loop_header
from aotidoctor.kernels.kernel_expressions import ExpressionReader, argument, lines_of, mask_of
from aotidoctor.kernels.value_trees import (
    Computed,
    Division,
    ElementAccess,
    ElementStore,
    IterationLoop,
    KernelCheck,
    KernelFlow,
    Number,
    Value,
    Variable,
    parts,
    reads,
    unknown_value,
)

# A check counts everywhere, or where its mask holds.
_MESSAGE = re.compile(r'"index out of bounds: (?:\w+ <= )?(?P<variable>\w+)(?: < (?P<bound>[^"]+))?"')


class _Walker(ABC):
    def __init__(self, parameters: frozenset[str]) -> None:
        self.flow = KernelFlow()
        self._parameters = parameters
        self._number = 0
        self._reader = ExpressionReader(self._resolve, parameters, self._divide)

    def follow(self, text: str, first_line: int) -> KernelFlow:
        """The flow of ``text``, whose first line has the number ``first_line``."""
        for self._number, line in lines_of(text, first_line):
            if "index out of bounds: " in line:
                self._check(line)
            else:
                self._line(line)
        return self.flow

    @abstractmethod
    def _line(self, line: str) -> None:
        """Follow one line that is not blank, and no check."""

    @abstractmethod
    def _resolve(self, name: str) -> Value:
        """The value that a name has now."""

    @abstractmethod
    def _around(self) -> tuple[IterationLoop, ...]:
        """The loops around the line, outermost first."""

    def _divide(self, function: str, divisor: Value) -> None:
        self.flow.divisions.append(
            Division(function=function, divisor=divisor, line=self._number, loops=self._around())
        )

    def _value(self, text: str) -> Value:
        value = self._reader.value(text)
        self.flow.accesses += [ElementAccess(one.parameter, one.at, self._around()) for one in reads(value)]
        return value

    def _quiet(self, text: str) -> Value:
        """The value of an expression that is no statement of its own: bounds of loops, masks."""
        return ExpressionReader(self._resolve, self._parameters).value(text)

    def _store(self, parameter: str, at: Value, value: Value) -> None:
        self.flow.accesses.append(ElementAccess(parameter, at, self._around()))
        self.flow.stores.append(ElementStore(parameter=parameter, at=at, value=value, loops=self._around()))

    def _check(self, line: str) -> None:
        message = _MESSAGE.search(line)
        if message is None:
            return
        mask, bound = mask_of(line[: message.start()]), message["bound"] or ""
        counts = self._quiet(mask) if mask is not None else Number(1)
        # The range of all elements, or of a reduction, leaves out none of them.
        always = all(one == Number(1) or (isinstance(one, Computed) and one.operation == "&") for one in parts(counts))
        self.flow.checks.append(
            KernelCheck(
                variable=message["variable"],
                bound=bound,
                line=self._number,
                value=self._resolve(message["variable"]),
                limit=self._quiet(bound) if bound else unknown_value(),
                mask=None if always else counts,
                loops=self._around(),
            )
        )


# C++.
_CPP_DEFINE = re.compile(
    r"(?:const )?(?:auto|int64_t|int32_t|long|int|bool|float|double)&? (\w+) *=(?!=) *((?:\S.*)?)$"
)
_ASSIGN = re.compile(r"(\w+) *([-+*/|&^]?)= *(\S.*);$")
_PUT = re.compile(r"(?=.*;$)(\w+)\[(.+)\] *([-+*]?)= *(\S.*);$")
_CPP_STORE = re.compile(r"(?=.*\);$)(.+)\.store\((.+)\);$")
_RETURN = re.compile(r"return (.+);$")
_INNER = "_inner"


@dataclass(slots=True)
class _Scope:
    """``into`` is the name that the value of a lambda goes to, ``""`` for a block that is no lambda."""

    names: dict[str, Value] = field(default_factory=dict)
    loops: tuple[IterationLoop, ...] = ()
    into: str = ""
    result: Value | None = None


def follow_cpp(text: str, first_line: int, parameters: frozenset[str]) -> KernelFlow:
    """The flow of the function ``text``, whose first line has the number ``first_line``."""
    return _CppWalker(parameters).follow(text, first_line)


class _CppWalker(_Walker):
    def __init__(self, parameters: frozenset[str]) -> None:
        super().__init__(parameters)
        self._scopes = [_Scope()]
        self._loops: list[IterationLoop] = []
        self._lambda = ""

    def _around(self) -> tuple[IterationLoop, ...]:
        return self._scopes[-1].loops

    def _line(self, line: str) -> None:
        if line.startswith("for"):
            # Of a loop that is not understood the variable is unknown inside.
            loop = loop_header(line)
            if loop is not None and not loop[0].endswith(_INNER):
                self._loops.append(IterationLoop(loop[0], self._quiet(loop[1]), self._quiet(loop[2])))
            if line.endswith("{"):
                self._open()
        elif line[0] in "{}":
            for sign in line:
                if sign == "{":
                    self._open()
                elif sign == "}":
                    self._close()
        elif line.startswith("[&]"):
            self._lambda = self._lambda or "?"
        else:
            self._statement(line)

    def _resolve(self, name: str) -> Value:
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
        return Variable(name)

    def _open(self) -> None:
        loops = (*self._scopes[-1].loops, *self._loops)
        names: dict[str, Value] = {loop.name: Variable(loop.name) for loop in self._loops}
        self._scopes.append(_Scope(names=names, loops=loops, into=self._lambda))
        self._loops, self._lambda = [], ""

    def _close(self) -> None:
        if len(self._scopes) == 1:
            return
        scope = self._scopes.pop()
        outer = self._scopes[-1]
        if scope.into:
            outer.names[scope.into] = scope.result if scope.result is not None else unknown_value()
        elif scope.result is not None:
            # The branches of an ``if`` inside a lambda: they agree, or nothing is known.
            same = outer.result is None or outer.result == scope.result
            outer.result = scope.result if same else unknown_value(scope.result)

    def _statement(self, line: str) -> None:
        names = self._scopes[-1].names
        if (found := _CPP_DEFINE.match(line)) is not None:
            name, text = found[1], found[2].strip()
            names[name] = self._value(text[:-1]) if text.endswith(";") else Variable("unread")
            if text in ("", "[&]", "[&]()"):
                self._lambda = name
        elif (found := _RETURN.match(line)) is not None:
            self._scopes[-1].result = self._value(found[1])
        elif (found := _CPP_STORE.match(line)) is not None:
            # `tmp7.store(out_ptr0 + ..., 16)`, or into a temporary array.
            value = self._value(found[1])
            pointer = self._reader.pointer(self._quiet(argument(found[2])))
            if pointer is not None:
                self._store(pointer[0], pointer[1], value)
            elif found[2].startswith("tmpbuf"):
                names["tmpbuf"] = value
        elif (found := _PUT.match(line)) is not None:
            name, value = found[1], self._value(found[4])
            at = self._value(found[2]) if name in self._parameters else None
            value = value if not found[3] else unknown_value(value)
            if at is not None:
                self._store(name, at, value)
            else:
                # ``tmpbuf[x1_inner] = ...`` inside a loop over lanes belongs to the lambda around it.
                scopes = (scope for scope in reversed(self._scopes[1:]) if scope.into)
                next(scopes, self._scopes[-1]).names[name] = value
        elif (found := _ASSIGN.match(line)) is not None:
            # A name that changes its value does so in the scope that defines it.
            name, value = found[1], unknown_value(self._value(found[3]), self._resolve(found[1]))
            scope = next((scope for scope in reversed(self._scopes) if name in scope.names), None)
            if scope is not None:
                scope.names[name] = value


# Triton.
_INDEX = re.compile(r"(([xyz]|r\d*_?)index) = (?:.*tl\.arange\(|\w+_offset \+ \w+_base$|\w+offset \+ \w+base$)")
_TRITON_DEFINE = re.compile(r"(\w+)(?:: tl\.constexpr)? = (.+)$")
_SEVERAL = re.compile(r"\w+(?:, \w+)*,? = ")
_TRITON_STORE = re.compile(r"tl\.(store|atomic_\w+)\((.*)\)$")
_RANGE_MASK = re.compile(r"(?:[xyz]|r\d*_?)mask$")


def follow_triton(text: str, first_line: int, parameters: frozenset[str]) -> KernelFlow:
    """The flow of the kernel ``text``, whose first line has the number ``first_line``."""
    return _TritonWalker(parameters).follow(text, first_line)


class _TritonWalker(_Walker):
    def __init__(self, parameters: frozenset[str]) -> None:
        super().__init__(parameters)
        self._names: dict[str, Value] = {}
        self._loops: dict[str, IterationLoop] = {}

    def _around(self) -> tuple[IterationLoop, ...]:
        return tuple(self._loops.values())

    def _resolve(self, name: str) -> Value:
        return Number(1) if _RANGE_MASK.match(name) is not None else self._names.get(name, Variable(name))

    def _line(self, line: str) -> None:
        if (index := _INDEX.match(line)) is not None:
            end = self._resolve(f"{index[2]}numel")
            self._loops[index[1]] = IterationLoop(name=index[1], start=Number(0), end=end)
            self._names[index[1]] = Variable(index[1])
        elif (store := _TRITON_STORE.match(line)) is not None:
            target = argument(store[2])
            pointer = self._reader.pointer(self._quiet(target))
            if pointer is not None:
                value = self._value(argument(store[2][len(target) + 1 :]))
                self._store(*pointer, value if store[1] == "store" else unknown_value(value))
        elif (defined := _TRITON_DEFINE.match(line)) is not None:
            self._names[defined[1]] = self._value(defined[2])
        elif _SEVERAL.match(line) is not None:
            for name in re.findall(r"\w+", line.partition("=")[0]):
                self._names[name] = Variable("unread")
