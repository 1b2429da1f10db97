"""A pickle machine that builds nothing but ``nodes``.

``pickle.Unpickler`` would call, hash and allocate as the file says; its ``find_class`` hook guards only the first of
these. This one has a bounded number of steps, and memory in proportion to the bytes it read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from aotidoctor.model.record import record
from aotidoctor.model.safe_globals import SAFE_GLOBALS, global_name
from aotidoctor.readers.inputs.nodes import Call, Entries, Global, Items, Persistent, Value

MAX_STEPS = 1_000_000
MAX_BYTES = 64 << 20
MAX_FOREIGN = 50
MAX_DIGITS = 4300  # longer decimal numbers take quadratic time


class BadPickleError(Exception):
    """The bytes are no pickle, or one that is too large to be worth reading."""


@record(kw_only=False, frozen=False, eq=False)
class Machine:
    """The state between two steps. ``foreign`` lists the globals outside ``SAFE_GLOBALS`` that were met, in order."""

    data: Sequence[int]
    position: int
    end: int
    stack: list[Value] = field(default_factory=list)
    below: list[list[Value]] = field(default_factory=list)
    memo: dict[int, Value] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    persistents: list[Persistent] = field(default_factory=list)

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        start, self.position = self.position, self.position + count
        if self.position > self.end:
            self.position = start
            raise BadPickleError(f"{count} bytes wanted, {self.end - start} are left")
        return bytes(self.data[start : self.position])

    def number(self, count: int, *, signed: bool = False) -> int:
        """A little-endian number of ``count`` bytes."""
        return int.from_bytes(self.take(count), "little", signed=signed)

    def line(self) -> bytes:
        """The bytes up to the next newline, which is skipped."""
        start = position = self.position
        limit = min(self.end, start + (1 << 20))
        while position < limit and self.data[position] != 0x0A:
            position += 1
        if position == limit:
            raise BadPickleError("an unterminated line")
        self.position = position + 1
        return bytes(self.data[start:position])

    def pop(self) -> Value:
        """The top of the stack, which goes."""
        self.top()
        return self.stack.pop()

    def top(self) -> Value:
        """The top of the stack, which stays."""
        if not self.stack:
            raise BadPickleError("the stack is empty")
        return self.stack[-1]

    def mark(self) -> None:
        """Start a new level of the stack."""
        self.below.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[Value]:
        """What was pushed since the last mark, which is removed."""
        if not self.below:
            raise BadPickleError("there is no mark")
        items, self.stack = self.stack, self.below.pop()
        return items

    def found(self, module: str, name: str) -> Global:
        """A global; noted when it is a foreign one."""
        full = global_name(module, name)
        if full not in SAFE_GLOBALS and full not in self.foreign and len(self.foreign) < MAX_FOREIGN:
            self.foreign.append(full)
        return Global(full)

    def append(self, items: Sequence[Value]) -> None:
        """Add items to the list, set or object on top."""
        match self.top():
            case Items() | Call() as target:
                target.items.extend(items)
            case _:
                raise BadPickleError("items are added to something that is not a list")

    def set_items(self, items: Sequence[Value]) -> None:
        """Add keys and values, alternating, to the dict or object on top."""
        pairs = list(zip(items[::2], items[1::2], strict=False))
        match self.top():
            case Entries() | Call() as target:
                target.entries.extend(pairs)
            case _:
                raise BadPickleError("keys are added to something that is not a dict")

    def call(self, *, new: bool = False) -> None:
        """Replace a function and its argument tuple by the record of the call."""
        args, function = self.pop(), self.pop()
        if not isinstance(args, tuple) or not isinstance(function, Global):
            raise BadPickleError("something that is not a function is called")
        self.stack.append(Call(function, args, new=new))

    def build(self) -> None:
        """Set the state of the object on top; plain containers have none."""
        state, target = self.pop(), self.top()
        if isinstance(target, Call):
            target.state = state

    def persistent(self, key: Value) -> None:
        """Push a persistent id."""
        self.persistents.append(Persistent(key))
        self.stack.append(self.persistents[-1])
