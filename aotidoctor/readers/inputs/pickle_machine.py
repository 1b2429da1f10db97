"""Interpret pickles of protocols 0 to 5 as data: globals as names, calls as records. Nothing is called.

``pickle.Unpickler`` would call, hash and allocate as the file says; its ``find_class`` hook guards only the first of
these. This machine has a bounded number of steps, and memory in proportion to the bytes it read. Dicts and sets keep
their entries in a list: nothing is hashed, so crafted collisions cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from aotidoctor.model.record import record
from aotidoctor.model.torch_names import SAFE_GLOBALS, global_name

# Values.
Value: TypeAlias = (
    "bool | int | float | str | bytes | tuple[Value, ...] | Items | Entries | PickleGlobal | PickleCall | Persistent"
    " | None"
)


@record(kw_only=False)
class PickleGlobal:
    """A global by name, as Python 3 spells it (``torch.FloatStorage``)."""

    name: str


@record(kw_only=False, frozen=False, eq=False)
class Items:
    """A list, set or frozenset (``type``)."""

    type: str
    items: list[Value] = field(default_factory=list)


@record(kw_only=False, frozen=False, eq=False)
class Entries:
    """A dict: entries in the order of the pickle, repeated keys included."""

    entries: list[tuple[Value, Value]] = field(default_factory=list)


@record(kw_only=False, frozen=False, eq=False)
class PickleCall:
    """``function(*args)``, then what was done to the result: items and entries added, state set (the last one).

    ``new`` tells ``function.__new__(function, *args)`` from a plain call: so are namedtuples saved.
    """

    function: Value
    args: tuple[Value, ...]
    items: list[Value] = field(default_factory=list)
    entries: list[tuple[Value, Value]] = field(default_factory=list)
    state: Value = None
    new: bool = False

    @property
    def name(self) -> str:
        """The called global, ``""`` when something else is called."""
        return self.function.name if isinstance(self.function, PickleGlobal) else ""


@record(kw_only=False, frozen=False, eq=False)
class Persistent:
    """A persistent id: in torch files, a storage."""

    id: Value


# Machine.
MAX_STEPS = 1_000_000
MAX_BYTES = 64 << 20
MAX_FOREIGN = 50
MAX_DIGITS = 4300  # longer decimal numbers take quadratic time


class BadPickleError(Exception):
    """The bytes are no pickle, or one that is too large to be worth reading."""


@record(kw_only=False, frozen=False, eq=False)
class PickleMachine:
    """The state between two steps. ``foreign`` lists the globals outside ``SAFE_GLOBALS``, in order of appearance."""

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
        """The top of the stack, which is removed."""
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
        """The values above the last mark, which is removed."""
        if not self.below:
            raise BadPickleError("there is no mark")
        items, self.stack = self.stack, self.below.pop()
        return items

    def note_global(self, module: str, name: str) -> PickleGlobal:
        """A global; noted when it is a foreign one."""
        full = global_name(module, name)
        if full not in SAFE_GLOBALS and full not in self.foreign and len(self.foreign) < MAX_FOREIGN:
            self.foreign.append(full)
        return PickleGlobal(full)

    def append(self, items: Sequence[Value]) -> None:
        """Add items to the list, set or object on top."""
        match self.top():
            case Items() | PickleCall() as target:
                target.items.extend(items)
            case _:
                raise BadPickleError("items are added to something that is not a list")

    def set_items(self, items: Sequence[Value]) -> None:
        """Add keys and values, alternating, to the dict or object on top."""
        pairs = list(zip(items[::2], items[1::2], strict=False))
        match self.top():
            case Entries() | PickleCall() as target:
                target.entries.extend(pairs)
            case _:
                raise BadPickleError("keys are added to something that is not a dict")

    def call(self, *, new: bool = False) -> None:
        """Replace a function and its argument tuple by the record of the call."""
        args, function = self.pop(), self.pop()
        if not isinstance(args, tuple) or not isinstance(function, PickleGlobal | PickleCall):
            raise BadPickleError("something that is not a function is called")
        self.stack.append(PickleCall(function, args, new=new))

    def build(self) -> None:
        """Set the state of the object on top; plain containers have none."""
        state, target = self.pop(), self.top()
        if isinstance(target, PickleCall):
            target.state = state

    def persistent(self, key: Value) -> None:
        """Push a persistent id."""
        self.persistents.append(Persistent(key))
        self.stack.append(self.persistents[-1])


# Opcodes.
STOP = 0x2E
Step = Callable[[PickleMachine], object]


@record
class LoadedPickle:
    """One pickle: its value, the position after it, what it names, and why reading stopped (None at its end)."""

    value: Value
    end: int
    foreign: tuple[str, ...]
    persistents: tuple[Persistent, ...] = ()
    problem: str | None = None


def load_pickle(data: Sequence[int], start: int = 0, *, max_steps: int = MAX_STEPS) -> LoadedPickle:
    """Read the pickle that begins at ``start``. Never raises for what the bytes are."""
    machine = PickleMachine(data, start, min(len(data), start + MAX_BYTES))
    problem: str | None = None
    value: Value = None
    try:
        value = _run(machine, max_steps)
    except BadPickleError as error:
        problem = f"byte {machine.position}: {error}"
    except (ValueError, struct.error) as error:
        problem = f"byte {machine.position}: {type(error).__name__}: {str(error)[:80]}"
    return LoadedPickle(
        value=value,
        end=machine.position,
        foreign=tuple(machine.foreign),
        persistents=tuple(machine.persistents),
        problem=problem,
    )


def _run(machine: PickleMachine, max_steps: int) -> Value:
    data = machine.data
    for _ in range(max_steps):
        if machine.position >= machine.end:
            raise BadPickleError(
                "the pickle ends before its STOP" if machine.end == len(data) else f"more than {MAX_BYTES} bytes"
            )
        code = data[machine.position]
        machine.position += 1
        if code == STOP:
            return machine.pop()
        step = OPCODES.get(code)
        if step is None:
            machine.position -= 1
            raise BadPickleError(f"0x{code:02x} is not an opcode")
        step(machine)
    raise BadPickleError(f"more than {max_steps} opcodes")


def _push(read: Callable[[PickleMachine], Value]) -> Step:
    def step(machine: PickleMachine) -> None:
        value = read(machine)  # first: it may change which stack is the current one
        machine.stack.append(value)

    return step


def _text(size: int, encoding: str = "utf-8", errors: str = "surrogatepass") -> Step:
    return _push(lambda machine: machine.take(machine.number(size)).decode(encoding, errors))


def _bytes(size: int) -> Step:
    return _push(lambda machine: machine.take(machine.number(size)))


def _long(size: int) -> Step:
    return _push(lambda machine: machine.number(machine.number(size), signed=True))


def _constant(value: Value) -> Step:
    return _push(lambda _: value)


def _memoize(size: int) -> Step:
    def step(machine: PickleMachine) -> None:
        machine.memo[machine.number(size)] = machine.top()

    return step


def _get(machine: PickleMachine, key: int) -> Value:
    if key not in machine.memo:
        raise BadPickleError(f"memo {key} is not set")
    return machine.memo[key]


def _decimal(machine: PickleMachine) -> Value:
    """INT and LONG: a decimal line; ``00`` and ``01`` are the booleans of protocol 0."""
    line = machine.line()
    if line in (b"00", b"01"):
        return line == b"01"
    if len(line) > MAX_DIGITS:
        raise BadPickleError(f"a number of {len(line)} digits")
    return int(line.rstrip(b"L"))


def _decimal_key(machine: PickleMachine) -> int:
    line = machine.line()
    if not line.isdigit() or len(line) > 10:
        raise BadPickleError("a memo key that is not a number")
    return int(line)


def _tuple(count: int) -> Step:
    def step(machine: PickleMachine) -> None:
        items = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(items)))

    return step


def _items(kind: str) -> Step:
    return _push(lambda _: Items(kind))


def _marked_dict(machine: PickleMachine) -> Value:
    items = machine.since_mark()
    return Entries(list(zip(items[::2], items[1::2], strict=False)))


def _global_lines(machine: PickleMachine) -> Value:
    module, name = machine.line(), machine.line()
    return machine.note_global(module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))


def _stack_global(machine: PickleMachine) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise BadPickleError("the name of a global is not text")
    machine.stack.append(machine.note_global(module, name))


def _object(machine: PickleMachine) -> None:
    items = machine.since_mark()
    if not items:
        raise BadPickleError("the stack is empty")
    machine.stack.append(PickleCall(items[0], tuple(items[1:])))


def _new_with_names(machine: PickleMachine) -> None:
    machine.pop()  # keyword arguments of __new__: nothing on the allow-list has any
    machine.call(new=True)


def _extension(size: int) -> Step:
    """A global by number, from a registry of the process that reads: foreign whatever it is."""
    return _push(lambda machine: machine.note_global("copyreg", f"extension_{machine.number(size)}"))


def _pop(machine: PickleMachine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.since_mark()


OPCODES: Mapping[int, Step] = {
    ord(code): step
    for code, step in {
        "(": PickleMachine.mark,
        "0": _pop,
        "1": PickleMachine.since_mark,
        "2": _push(PickleMachine.top),
        "I": _push(_decimal),
        "L": _push(_decimal),
        "F": _push(lambda machine: float(machine.line())),
        "G": _push(lambda machine: float(struct.unpack(">d", machine.take(8))[0])),
        "J": _push(lambda machine: machine.number(4, signed=True)),
        "K": _push(lambda machine: machine.number(1)),
        "M": _push(lambda machine: machine.number(2)),
        "\x8a": _long(1),
        "\x8b": _long(4),
        "N": _constant(None),
        "\x88": _constant(True),
        "\x89": _constant(False),
        "S": _push(lambda machine: machine.line()[1:-1].decode("unicode_escape", "replace")),
        "T": _text(4, "latin-1", "strict"),
        "U": _text(1, "latin-1", "strict"),
        "V": _push(lambda machine: machine.line().decode("raw-unicode-escape", "replace")),
        "X": _text(4),
        "\x8c": _text(1),
        "\x8d": _text(8),
        "B": _bytes(4),
        "C": _bytes(1),
        "\x8e": _bytes(8),
        "\x96": _bytes(8),
        ")": _constant(()),
        "t": _push(lambda machine: tuple(machine.since_mark())),
        "\x85": _tuple(1),
        "\x86": _tuple(2),
        "\x87": _tuple(3),
        "]": _items("list"),
        "l": _push(lambda machine: Items("list", machine.since_mark())),
        "a": lambda machine: machine.append([machine.pop()]),
        "e": lambda machine: machine.append(machine.since_mark()),
        "}": _push(lambda _: Entries()),
        "d": _push(_marked_dict),
        "s": lambda machine: machine.set_items([machine.pop(), machine.pop()][::-1]),
        "u": lambda machine: machine.set_items(machine.since_mark()),
        "\x8f": _items("set"),
        "\x90": lambda machine: machine.append(machine.since_mark()),
        "\x91": _push(lambda machine: Items("frozenset", machine.since_mark())),
        "p": lambda machine: machine.memo.__setitem__(_decimal_key(machine), machine.top()),
        "q": _memoize(1),
        "r": _memoize(4),
        "\x94": lambda machine: machine.memo.__setitem__(len(machine.memo), machine.top()),
        "g": _push(lambda machine: _get(machine, _decimal_key(machine))),
        "h": _push(lambda machine: _get(machine, machine.number(1))),
        "j": _push(lambda machine: _get(machine, machine.number(4))),
        "c": _push(_global_lines),
        "\x93": _stack_global,
        "i": _push(lambda machine: PickleCall(_global_lines(machine), tuple(machine.since_mark()))),
        "o": _object,
        "R": PickleMachine.call,
        "\x81": lambda machine: machine.call(new=True),
        "\x92": _new_with_names,
        "b": PickleMachine.build,
        "P": lambda machine: machine.persistent(machine.line().decode("utf-8", "replace")),
        "Q": lambda machine: machine.persistent(machine.pop()),
        "\x82": _extension(1),
        "\x83": _extension(2),
        "\x84": _extension(4),
        "\x80": lambda machine: machine.take(1),
        "\x95": lambda machine: machine.take(8),
    }.items()
}
