"""From what a pickle says to a tree of tensor descriptions and plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod

from aotidoctor.model.inputs import LeafValue, PlainValue
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, Leaf, Tree
from aotidoctor.readers.inputs.arguments import class_name, device_name, sizes
from aotidoctor.readers.inputs.ndarrays import describe_array
from aotidoctor.readers.inputs.nodes import Call, Entries, Global, Items, Persistent, Value
from aotidoctor.readers.inputs.storage import MalformedError, TooManyPartsError
from aotidoctor.readers.inputs.tensors import Reader, describe_tensor, is_tensor_call

MAX_DEPTH = 100
MAX_NODES = 50_000
# Regular lists of more numbers than that are one leaf: a picture given as lists, not that many arguments.
MANY_NUMBERS = 10_000
TEXT = 80


@record(kw_only=False, frozen=False)
class Describer:
    """One walk over a value. Shared parts count each time they are met: a file cannot unfold without end.

    ``arguments`` is the depth at which the arguments of the call stand; what is above it are the call's own containers.
    """

    reader: Reader
    nodes: int = 0
    arguments: int = 1
    shapes: dict[int, tuple[int, ...] | None] = field(default_factory=dict)

    def call_of(self, value: Value) -> Tree[LeafValue]:
        """The tree of a saved call: a mapping of another class counts as the keyword arguments that ``**`` makes of it.

        Only where keyword arguments stand: as an argument such an object is what the model gets. Raises
        ``MalformedError``.
        """
        match value:
            case Entries():
                entries = [(key, _opened(one) if key == "kwargs" else one) for key, one in value.entries]
                self.arguments = 2 if any(key in ("args", "kwargs") for key, _ in entries) else 1
                return self.tree(Entries(entries=entries))
            case (args, kwargs) if isinstance(args, tuple | Items):
                opened = _opened(kwargs)
                self.arguments = 2 if isinstance(opened, Entries) else 1
                return self.tree((args, opened))
        return self.tree(_opened(value))

    def tree(self, value: Value, depth: int = 0) -> Tree[LeafValue]:
        """The tree of ``value``. Raises ``MalformedError``."""
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise MalformedError(f"containers of more than {MAX_DEPTH} levels", "inputs")
        if self.nodes > MAX_NODES:
            raise TooManyPartsError(f"containers of more than {MAX_NODES} parts", "inputs")
        match value:
            case tuple():
                return self._sequence("tuple", value, depth)
            case Items(type="list"):
                shape = self._shape(value) if depth >= self.arguments else None
                if shape is not None and prod(shape) > MANY_NUMBERS:
                    return Leaf(
                        value=PlainValue(type="list", text=f"lists of {' x '.join(map(str, shape))} numbers"[:TEXT])
                    )
                return self._sequence("list", value.items, depth)
            case Entries():
                return self._mapping("dict", value.entries, depth)
            case Call():
                return self._call(value, depth)
        return Leaf(value=plain_value(value))

    def _shape(self, value: Value, depth: int = 0) -> tuple[int, ...] | None:
        """Sizes of regular lists of numbers, ``()`` of a number, None of anything else; each list is read once."""
        if isinstance(value, (int, float)):
            return ()
        if not isinstance(value, Items) or value.type != "list" or depth > MAX_DEPTH:
            return None
        if id(value) not in self.shapes:
            self.shapes[id(value)] = None  # what a list that holds itself finds
            inner = {self._shape(item, depth + 1) for item in value.items}
            one = next(iter(inner)) if len(inner) == 1 else None
            self.shapes[id(value)] = None if one is None else (len(value.items), *one)
        return self.shapes[id(value)]

    def _sequence(self, kind: str, items: Sequence[Value], depth: int) -> Tree[LeafValue]:
        return Container(type=kind, children=tuple(self.tree(item, depth + 1) for item in items))

    def _mapping(self, kind: str, entries: Sequence[tuple[Value, Value]], depth: int) -> Tree[LeafValue]:
        last = {_key(key): value for key, value in entries}
        children = tuple(self.tree(value, depth + 1) for value in last.values())
        return Container(type=kind, children=children, keys=tuple(last))

    def _call(self, call: Call, depth: int) -> Tree[LeafValue]:
        if is_tensor_call(call):
            return Leaf(value=describe_tensor(self.reader, call))
        if call.name in ("collections.OrderedDict", "collections.defaultdict"):
            return self._mapping(call.name.partition(".")[2].lower(), [*_first_entries(call), *call.entries], depth)
        if call.name == "collections.deque":
            return self._sequence("deque", call.items, depth)
        if call.name.startswith("torch.return_types.") and call.args and isinstance(call.args[0], tuple):
            return self._sequence(call.name, call.args[0], depth)
        array = describe_array(call)
        if array is not None:
            return Leaf(value=array)
        if call.new and call.args and call.state is None and call.name.partition(".")[0] not in ("torch", "builtins"):
            return self._sequence(f"namedtuple:{call.name.rpartition('.')[2]}", call.args, depth)
        return Leaf(value=_called_value(call))


def _opened(value: Value) -> Value:
    """What a ``collections.UserDict`` holds, as the tokenisers' ``BatchEncoding`` is one: names and values."""
    state = value.state if isinstance(value, Call) else None
    if not isinstance(state, Entries):
        return value
    held = next((item for key, item in state.entries if key == "data"), None)
    named = isinstance(held, Entries) and all(isinstance(key, str) for key, _ in held.entries)
    return held if named else value


def _first_entries(call: Call) -> Sequence[tuple[Value, Value]]:
    """``OrderedDict([["a", 1]])``, as old Pythons wrote it."""
    first = call.args[-1] if call.args else None
    if not isinstance(first, Items):
        return ()
    rows = (row.items if isinstance(row, Items) else row for row in first.items)
    return [(row[0], row[1]) for row in rows if isinstance(row, (tuple, list)) and len(row) == 2]


def _key(key: Value) -> str | int:
    """Keys other than text and small whole numbers are shown, not compared."""
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool) and abs(key) < 1 << 62:
        return key
    return plain_value(key).text


def plain_value(value: Value) -> PlainValue:
    """A leaf that is not a tensor."""
    match value:
        case None:
            return PlainValue(type="None", text="None")
        case bool() | float():
            return PlainValue(type=type(value).__name__, text=repr(value))
        case int():
            text = repr(value) if value.bit_length() < 256 else f"an int of {value.bit_length()} bits"
            return PlainValue(type="int", text=text[:TEXT])
        case str() | bytes():
            return PlainValue(type=type(value).__name__, text=repr(value[:TEXT])[:TEXT])
        case Items():
            return PlainValue(type=value.type, text=f"a {value.type} of {len(value.items)}")
        case Global():
            return _global_value(value)
        case Persistent():
            return PlainValue(type="storage", text="a storage")
        case Call():
            return _called_value(value)
    return PlainValue(type="tuple" if isinstance(value, tuple) else "dict", text=f"a {type(value).__name__}".lower())


def _global_value(value: Global) -> PlainValue:
    module, _, name = value.name.rpartition(".")
    if module == "torch" and name[:1].islower():
        return PlainValue(type="dtype", text=value.name[:TEXT])
    return PlainValue(type="type", text=value.name[:TEXT])


def _called_value(call: Call) -> PlainValue:
    make = _VALUES.get(call.name)
    if make is not None:
        return make(call)
    name = class_name(call.function) or "object"
    return PlainValue(type=name[:TEXT], text=f"{call.name or 'something'}(...)"[:TEXT])


def _size_value(call: Call) -> PlainValue:
    return PlainValue(type="Size", text=f"torch.Size({list(sizes(call))})"[:TEXT])


def _complex_value(call: Call) -> PlainValue:
    # An integer may be too large for a float; a float may be infinite or no number at all.
    parts = [
        float(part)
        for part in call.args[:2]
        if isinstance(part, float) or (isinstance(part, int) and part.bit_length() < 1000)
    ]
    return PlainValue(type="complex", text=repr(complex(*parts)))


_VALUES: Mapping[str, Callable[[Call], PlainValue]] = {
    "torch.Size": _size_value,
    "torch.device": lambda call: PlainValue(type="device", text=device_name(call)),
    "builtins.complex": _complex_value,
    "builtins.set": lambda _: PlainValue(type="set", text="a set"),
    "builtins.frozenset": lambda _: PlainValue(type="frozenset", text="a frozenset"),
    "builtins.bytearray": lambda _: PlainValue(type="bytearray", text="a bytearray"),
    "builtins.bytes": lambda _: PlainValue(type="bytes", text="bytes"),
    "_codecs.encode": lambda _: PlainValue(type="bytes", text="bytes"),
    "torch.serialization._get_layout": lambda _: PlainValue(type="layout", text="a layout"),
}
