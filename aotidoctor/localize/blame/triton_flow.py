"""Follows a Triton kernel as the generator writes it: one assignment to a line, one lane for all.

``xindex`` and its like run over all elements (``xnumel``); the masks that keep them in range are true for those.
"""

from __future__ import annotations

import re

from aotidoctor.localize.blame.computed import Loop, Number, Read, Value, Variable, parts, reads, untold
from aotidoctor.localize.blame.expressions import ExpressionReader
from aotidoctor.localize.blame.flow import Access, Check, Flow, Store
from aotidoctor.localize.blame.tokens import argument, lines_of, mask_of

_INDEX = re.compile(r"(([xyz]|r\d*_?)index) = (?:.*tl\.arange\(|\w+_offset \+ \w+_base$|\w+offset \+ \w+base$)")
_DEFINE = re.compile(r"(\w+)(?:: tl\.constexpr)? = (.+)$")
_SEVERAL = re.compile(r"\w+(?:, \w+)*,? = ")
_CHECK = re.compile(
    r'tl\.device_assert\((.*), "index out of bounds: (?:\w+ <= )?(?P<variable>\w+)(?: < (?P<bound>[^"]+))?"\)$'
)
_STORE = re.compile(r"tl\.(store|atomic_\w+)\((.*)\)$")
_RANGE_MASK = re.compile(r"(?:[xyz]|r\d*_?)mask$")


def follow(text: str, first_line: int, parameters: frozenset[str]) -> Flow:
    """The flow of the kernel ``text``, whose first line has the number ``first_line``."""
    walker = _Walker(parameters)
    for number, line in lines_of(text, first_line):
        walker.line(line, number)
    return walker.flow


class _Walker:
    def __init__(self, parameters: frozenset[str]) -> None:
        self.flow = Flow()
        self._names: dict[str, Value] = {}
        self._loops: dict[str, Loop] = {}
        self._reader = ExpressionReader(self._resolve, parameters)

    def line(self, line: str, number: int) -> None:
        """Follow one line that is not blank."""
        index = _INDEX.match(line)
        if index is not None:
            end = self._resolve(f"{index[2]}numel")
            self._loops[index[1]] = Loop(name=index[1], start=Number(0), end=end)
            self._names[index[1]] = Variable(index[1])
            return
        check = _CHECK.match(line)
        if check is not None:
            self._check(check, number)
            return
        store = _STORE.match(line)
        if store is not None:
            self._store(store[2], whole=store[1] == "store")
            return
        defined = _DEFINE.match(line)
        if defined is not None:
            self._names[defined[1]] = self._value(defined[2])
        elif _SEVERAL.match(line) is not None:
            for name in re.findall(r"\w+", line.partition("=")[0]):
                self._names[name] = Variable("unread")

    def _resolve(self, name: str) -> Value:
        if _RANGE_MASK.match(name) is not None:
            return Number(1)
        return self._names.get(name, Variable(name))

    def _value(self, text: str) -> Value:
        value = self._reader.value(text)
        self.flow.accesses += [Access(one.parameter, one.at, self._around()) for one in reads(value)]
        return value

    def _store(self, arguments: str, *, whole: bool) -> None:
        target = argument(arguments)
        pointer = self._reader.pointer(self._reader.value(target))
        if pointer is None:
            return
        value = self._value(argument(arguments[len(target) + 1 :]))
        self.flow.accesses.append(Access(*pointer, self._around()))
        self.flow.stores.append(
            Store(parameter=pointer[0], at=pointer[1], value=value if whole else untold(value), loops=self._around())
        )

    def _check(self, found: re.Match[str], number: int) -> None:
        masked, bound = mask_of(found[1]), found["bound"] or ""
        mask = self._reader.value(masked) if masked is not None else None
        if mask is not None and not any(isinstance(one, Variable | Read) for one in parts(mask)):
            mask = None
        self.flow.checks.append(
            Check(
                variable=found["variable"],
                bound=bound,
                line=number,
                value=self._resolve(found["variable"]),
                limit=self._reader.value(bound) if bound else untold(),
                mask=mask,
                loops=self._around(),
            )
        )

    def _around(self) -> tuple[Loop, ...]:
        return tuple(self._loops.values())
