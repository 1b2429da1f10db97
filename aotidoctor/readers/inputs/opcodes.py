"""The opcodes of pickle protocols 0 to 5, as small functions on ``Machine``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from aotidoctor.model.record import record
from aotidoctor.readers.inputs.machine import MAX_BYTES, MAX_DIGITS, MAX_STEPS, BadPickleError, Machine
from aotidoctor.readers.inputs.nodes import Call, Entries, Items, Persistent, Value

STOP = 0x2E
Step = Callable[[Machine], object]


@record
class Loaded:
    """One pickle: its value, the position after it, what it names, and why reading stopped (None at its end)."""

    value: Value
    end: int
    foreign: tuple[str, ...]
    persistents: tuple[Persistent, ...] = ()
    problem: str | None = None


def load(data: Sequence[int], start: int = 0, *, max_steps: int = MAX_STEPS) -> Loaded:
    """Read the pickle that begins at ``start``. Never raises for what the bytes are."""
    machine = Machine(data, start, min(len(data), start + MAX_BYTES))
    problem: str | None = None
    value: Value = None
    try:
        value = _run(machine, max_steps)
    except BadPickleError as error:
        problem = f"byte {machine.position}: {error}"
    except (ValueError, struct.error) as error:
        problem = f"byte {machine.position}: {type(error).__name__}: {str(error)[:80]}"
    return Loaded(
        value=value,
        end=machine.position,
        foreign=tuple(machine.foreign),
        persistents=tuple(machine.persistents),
        problem=problem,
    )


def _run(machine: Machine, max_steps: int) -> Value:
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


def _push(read: Callable[[Machine], Value]) -> Step:
    def step(machine: Machine) -> None:
        value = read(machine)  # first: it may change which stack is the current one
        machine.stack.append(value)

    return step


def _text(size: int) -> Step:
    return _push(lambda machine: machine.take(machine.number(size)).decode("utf-8", "surrogatepass"))


def _python2_text(size: int) -> Step:
    return _push(lambda machine: machine.take(machine.number(size)).decode("latin-1"))


def _bytes(size: int) -> Step:
    return _push(lambda machine: machine.take(machine.number(size)))


def _unsigned(size: int) -> Step:
    return _push(lambda machine: machine.number(size))


def _long(size: int) -> Step:
    return _push(lambda machine: machine.number(machine.number(size), signed=True))


def _constant(value: Value) -> Step:
    return _push(lambda _: value)


def _put(size: int) -> Step:
    def step(machine: Machine) -> None:
        machine.memo[machine.number(size)] = machine.top()

    return step


def _get(machine: Machine, key: int) -> Value:
    if key not in machine.memo:
        raise BadPickleError(f"memo {key} is not set")
    return machine.memo[key]


def _skip(size: int) -> Step:
    return lambda machine: machine.take(size)


def _decimal(machine: Machine) -> Value:
    """INT and LONG: a decimal line; ``00`` and ``01`` are the booleans of protocol 0."""
    line = machine.line()
    if line in (b"00", b"01"):
        return line == b"01"
    if len(line) > MAX_DIGITS:
        raise BadPickleError(f"a number of {len(line)} digits")
    return int(line.rstrip(b"L"))


def _decimal_key(machine: Machine) -> int:
    line = machine.line()
    if not line.isdigit() or len(line) > 10:
        raise BadPickleError("a memo key that is not a number")
    return int(line)


def _quoted(machine: Machine) -> Value:
    return machine.line()[1:-1].decode("unicode_escape", "replace")


def _tuple(count: int) -> Step:
    def step(machine: Machine) -> None:
        items = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(items)))

    return step


def _items(kind: str) -> Step:
    return _push(lambda _: Items(kind))


def _marked_dict(machine: Machine) -> None:
    items = machine.since_mark()
    machine.stack.append(Entries(list(zip(items[::2], items[1::2], strict=False))))


def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


def _global_lines(machine: Machine) -> Value:
    module, name = machine.line(), machine.line()
    return machine.found(module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))


def _stack_global(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise BadPickleError("the name of a global is not text")
    machine.stack.append(machine.found(module, name))


def _instance(machine: Machine) -> None:
    function = _global_lines(machine)
    args = tuple(machine.since_mark())
    machine.stack.append(Call(function, args))


def _object(machine: Machine) -> None:
    items = machine.since_mark()
    if not items:
        raise BadPickleError("the stack is empty")
    machine.stack.append(Call(items[0], tuple(items[1:])))


def _new_with_names(machine: Machine) -> None:
    machine.pop()  # keyword arguments of __new__: nothing on the allow-list has any
    machine.call(new=True)


def _extension(size: int) -> Step:
    """A global by number, from a registry of the process that reads: foreign whatever it is."""
    return _push(lambda machine: machine.found("copyreg", f"extension_{machine.number(size)}"))


def _pop(machine: Machine) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.since_mark()


OPCODES: Mapping[int, Step] = {
    ord(code): step
    for code, step in {
        "(": Machine.mark,
        "0": _pop,
        "1": Machine.since_mark,
        "2": _push(Machine.top),
        "I": _push(_decimal),
        "L": _push(_decimal),
        "F": _push(lambda machine: float(machine.line())),
        "G": _push(lambda machine: float(struct.unpack(">d", machine.take(8))[0])),
        "J": _push(lambda machine: machine.number(4, signed=True)),
        "K": _unsigned(1),
        "M": _unsigned(2),
        "\x8a": _long(1),
        "\x8b": _long(4),
        "N": _constant(None),
        "\x88": _constant(True),
        "\x89": _constant(False),
        "S": _push(_quoted),
        "T": _python2_text(4),
        "U": _python2_text(1),
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
        "d": _marked_dict,
        "s": _set_item,
        "u": lambda machine: machine.set_items(machine.since_mark()),
        "\x8f": _items("set"),
        "\x90": lambda machine: machine.append(machine.since_mark()),
        "\x91": _push(lambda machine: Items("frozenset", machine.since_mark())),
        "p": lambda machine: machine.memo.__setitem__(_decimal_key(machine), machine.top()),
        "q": _put(1),
        "r": _put(4),
        "\x94": lambda machine: machine.memo.__setitem__(len(machine.memo), machine.top()),
        "g": _push(lambda machine: _get(machine, _decimal_key(machine))),
        "h": _push(lambda machine: _get(machine, machine.number(1))),
        "j": _push(lambda machine: _get(machine, machine.number(4))),
        "c": _push(_global_lines),
        "\x93": _stack_global,
        "i": _instance,
        "o": _object,
        "R": Machine.call,
        "\x81": lambda machine: machine.call(new=True),
        "\x92": _new_with_names,
        "b": Machine.build,
        "P": lambda machine: machine.persistent(machine.line().decode("utf-8", "replace")),
        "Q": lambda machine: machine.persistent(machine.pop()),
        "\x82": _extension(1),
        "\x83": _extension(2),
        "\x84": _extension(4),
        "\x80": _skip(1),
        "\x95": _skip(8),
    }.items()
}
