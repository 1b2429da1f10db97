"""Describe the content of a pickle as a tree of tensor descriptions and plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod

from aotidoctor.model.inputs import Container, Leaf, LeafValue, PlainValue, TensorDesc, Tree
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE, QUANTIZED
from aotidoctor.readers.inputs.pickle_machine import Entries, Items, Persistent, PickleCall, PickleGlobal, Value
from aotidoctor.readers.inputs.tensor_values import (
    MAX_BYTES,
    FileStorage,
    MalformedError,
    Resolve,
    TooManyPartsError,
    ValueView,
    class_name,
    describe_array,
    device_name,
    dtype_name,
    layout_name,
    nested_file,
    size_argument,
    sizes_argument,
    storage_id,
)

# Tensors, from the records of ``torch._utils._rebuild_*`` calls.
STATS_TOTAL = 8 << 20


@record(kw_only=False, frozen=False)
class TensorReader:
    """Access to storages. ``stats_left`` is the number of bytes of values that may still be read."""

    resolve: Resolve
    resolve_nested: Callable[[bytes | str], FileStorage]
    stats_left: int = STATS_TOTAL

    def storage(self, value: Value) -> FileStorage:
        """The storage that a persistent id or, in a plain pickle, an embedded torch file stands for."""
        nested = nested_file(value)
        return self.resolve(storage_id(value)) if nested is None else self.resolve_nested(nested)


def is_tensor_call(call: PickleCall) -> bool:
    """Whether ``call`` rebuilds a tensor; one of a trusted file may do so with a function of its own."""
    if call.name == "torch._tensor._rebuild_from_type_v2" and call.args and isinstance(call.args[0], PickleGlobal):
        function = call.args[0].name
        return function in _REBUILD or function.endswith("._rebuild_njt")
    return call.name in _REBUILD


def describe_tensor(reader: TensorReader, call: PickleCall) -> TensorDesc:
    """The tensor that ``call`` rebuilds. Raises ``MalformedError``."""
    rebuild = _REBUILD.get(call.name)
    if rebuild is None:
        raise MalformedError(f"{call.name[:80]} in place of a tensor")
    try:
        return rebuild(reader, call.args)
    except (IndexError, OverflowError) as error:
        raise MalformedError(f"{call.name} with {len(call.args)} arguments") from error


def _inner(reader: TensorReader, value: Value, allowed: frozenset[str] | None = None) -> TensorDesc:
    """A tensor inside another one. What may be inside is bounded, and so is the recursion."""
    if not isinstance(value, PickleCall) or value.name not in (allowed or _PLAIN):
        raise MalformedError("an unexpected value in place of a plain tensor")
    return describe_tensor(reader, value)


def _strided(
    reader: TensorReader,
    args: tuple[Value, ...],
    *,
    requires_grad: Value,
    dtype: str | None = None,
    metadata: Value = None,
) -> TensorDesc:
    storage = reader.storage(args[0])
    name = dtype or storage.dtype or "uint8"
    offset, shape, stride = size_argument(args[1]), sizes_argument(args[2]), sizes_argument(args[3])
    if len(shape) != len(stride):
        raise MalformedError(f"{len(stride)} strides", f"{len(shape)}, one for each dim", storage.key)
    _check_extent(storage, name, shape, stride, offset)
    bits = metadata if isinstance(metadata, Entries) else Entries()
    flags = {key: value for key, value in bits.entries if isinstance(key, str) and value is True}
    view: ValueView | None = None
    if storage.data is not None and name not in QUANTIZED:
        order = {"big_endian": storage.big_endian, "negated": "neg" in flags}
        view = ValueView(dtype=name, data=storage.data, shape=shape, stride=stride, offset=offset, **order)
    stats = view.stats() if view is not None and reader.stats_left > 0 else None
    if stats is not None:
        reader.stats_left -= min(MAX_BYTES, storage.nbytes)
    return TensorDesc(
        dtype=name,
        shape=shape,
        stride=stride,
        storage_offset=offset,
        storage=storage.key,
        storage_nbytes=storage.nbytes,
        device=storage.device,
        requires_grad=requires_grad is True,
        conj="conj" in flags,
        neg="neg" in flags,
        quantized=name in QUANTIZED,
        stats=stats,
        elements=None if view is None else view.elements,
    )


def _check_extent(
    storage: FileStorage, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    """The last element must lie inside the storage, else reading the tensor reads foreign memory."""
    if 0 in shape:
        return
    span = offset + 1 + sum((length - 1) * step for length, step in zip(shape, stride, strict=True))
    if span * ITEMSIZE[dtype] > storage.nbytes:
        raise MalformedError(
            f"a storage of {storage.nbytes} bytes", f"{span * ITEMSIZE[dtype]} for shape {shape}", storage.key
        )


def _parameter(reader: TensorReader, args: tuple[Value, ...]) -> TensorDesc:
    requires_grad = len(args) < 2 or args[1] is True
    desc = _inner(reader, args[0], _IN_PARAMETER)
    return dataclasses.replace(desc, subclass="Parameter", requires_grad=requires_grad)


def _sparse(reader: TensorReader, args: tuple[Value, ...]) -> TensorDesc:
    parts = args[1] if isinstance(args[1], tuple) else ()
    layout = layout_name(args[0])
    values, shape = (parts[1], parts[2]) if layout == "sparse_coo" else (parts[2], parts[3])
    desc = _inner(reader, values)
    return dataclasses.replace(desc, shape=sizes_argument(shape), stride=None, storage_offset=0, layout=layout)


def _from_numpy(_: TensorReader, args: tuple[Value, ...]) -> TensorDesc:
    state = args[0].state if isinstance(args[0], PickleCall) else None
    shape = sizes_argument(state[1]) if isinstance(state, tuple) else ()
    grad = args[3] is True
    return TensorDesc(
        dtype=dtype_name(args[1]), shape=shape, stride=None, device=device_name(args[2]), requires_grad=grad
    )


def _typed(reader: TensorReader, args: tuple[Value, ...]) -> TensorDesc:
    """``_rebuild_from_type_v2(function, type, args, state)``: a tensor with attributes, or of a subclass."""
    function, inner = args[0], args[2]
    if not isinstance(function, PickleGlobal) or not isinstance(inner, tuple) or function.name in _NOT_TYPED:
        raise MalformedError("an unexpected value in place of a tensor")
    if function.name.endswith("._rebuild_njt"):
        return _jagged(reader, inner)
    return dataclasses.replace(describe_tensor(reader, PickleCall(function, inner)), subclass=class_name(args[1]))


def _jagged(reader: TensorReader, args: tuple[Value, ...]) -> TensorDesc:
    state = args[0] if args and isinstance(args[0], Entries) else Entries()
    values = next((value for key, value in state.entries if key == "values"), None)
    if (
        isinstance(values, PickleCall)
        and values.name == "torch._tensor._rebuild_from_type_v2"
        and len(values.args) == 4
    ):
        inner = values.args[2]
        values = PickleCall(values.args[0], inner if isinstance(inner, tuple) else ())
    desc = _inner(reader, values)
    return dataclasses.replace(desc, shape=(), stride=None, layout="nested", subclass="NestedTensor", stats=None)


_REBUILD: Mapping[str, Callable[[TensorReader, tuple[Value, ...]], TensorDesc]] = {
    "torch._utils._rebuild_tensor": lambda reader, args: _strided(reader, args, requires_grad=False),
    "torch._utils._rebuild_tensor_v2": lambda reader, args: _strided(
        reader, args, metadata=args[6] if len(args) > 6 else None, requires_grad=args[4]
    ),
    "torch._utils._rebuild_tensor_v3": lambda reader, args: _strided(
        reader, args, dtype=dtype_name(args[6]), metadata=args[7] if len(args) > 7 else None, requires_grad=args[4]
    ),
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch._utils._rebuild_qtensor": lambda reader, args: dataclasses.replace(
        _strided(reader, args, requires_grad=args[5]), quantized=True
    ),
    "torch._utils._rebuild_sparse_tensor": _sparse,
    # Only the number of parts is one size for all.
    "torch._utils._rebuild_nested_tensor": lambda reader, args: dataclasses.replace(
        _inner(reader, args[0]), shape=_inner(reader, args[1]).shape[:1], stride=None, layout="nested"
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": lambda _, args: TensorDesc(
        dtype=dtype_name(args[0]),
        shape=sizes_argument(args[1]),
        stride=sizes_argument(args[2]),
        device="meta",
        requires_grad=args[3] is True,
    ),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": lambda reader, args: dataclasses.replace(
        _inner(reader, args[0]), dtype=dtype_name(args[1]), device=device_name(args[2]), requires_grad=args[3] is True
    ),
    "torch._utils._rebuild_device_tensor_from_numpy": _from_numpy,
    "torch._utils._rebuild_wrapper_subclass": lambda _, args: TensorDesc(
        dtype=dtype_name(args[1]),
        shape=sizes_argument(args[2]),
        stride=sizes_argument(args[3]),
        storage_offset=size_argument(args[4]),
        layout=layout_name(args[5]),
        device=device_name(args[6]),
        requires_grad=args[7] is True,
        subclass=class_name(args[0]),
    ),
    "torch._tensor._rebuild_from_type_v2": _typed,
}
_PLAIN = frozenset(f"torch._utils._rebuild_{name}" for name in ("tensor", "tensor_v2", "tensor_v3", "qtensor"))
_IN_PARAMETER = _PLAIN | {
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_sparse_tensor",
}
_NOT_TYPED = frozenset(
    {
        "torch._tensor._rebuild_from_type_v2",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state",
        "torch.nn.parameter.Parameter",
    }
)


# The tree.
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

    reader: TensorReader
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
                entries = [(key, _unwrap_user_dict(one) if key == "kwargs" else one) for key, one in value.entries]
                self.arguments = 2 if any(key in ("args", "kwargs") for key, _ in entries) else 1
                return self.tree(Entries(entries=entries))
            case (args, kwargs) if isinstance(args, tuple | Items):
                opened = _unwrap_user_dict(kwargs)
                self.arguments = 2 if isinstance(opened, Entries) else 1
                return self.tree((args, opened))
        return self.tree(_unwrap_user_dict(value))

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
            case PickleCall():
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

    def _call(self, call: PickleCall, depth: int) -> Tree[LeafValue]:
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


def _unwrap_user_dict(value: Value) -> Value:
    """The names and values in a ``collections.UserDict``, such as the tokenisers' ``BatchEncoding``."""
    state = value.state if isinstance(value, PickleCall) else None
    if not isinstance(state, Entries):
        return value
    held = next((item for key, item in state.entries if key == "data"), None)
    named = isinstance(held, Entries) and all(isinstance(key, str) for key, _ in held.entries)
    return held if named else value


def _first_entries(call: PickleCall) -> Sequence[tuple[Value, Value]]:
    """``OrderedDict([["a", 1]])``, as old Pythons wrote it."""
    first = call.args[-1] if call.args else None
    if not isinstance(first, Items):
        return ()
    rows = (row.items if isinstance(row, Items) else row for row in first.items)
    return [(row[0], row[1]) for row in rows if isinstance(row, (tuple, list)) and len(row) == 2]


def _key(key: Value) -> str | int:
    """Keys other than text and small whole numbers become text."""
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
        case PickleGlobal():
            module, _, name = value.name.rpartition(".")
            if module == "torch" and name[:1].islower():
                return PlainValue(type="dtype", text=value.name[:TEXT])
            return PlainValue(type="type", text=value.name[:TEXT])
        case Persistent():
            return PlainValue(type="storage", text="a storage")
        case PickleCall():
            return _called_value(value)
    return PlainValue(type="tuple" if isinstance(value, tuple) else "dict", text=f"a {type(value).__name__}".lower())


def _called_value(call: PickleCall) -> PlainValue:
    make = _VALUES.get(call.name)
    if make is not None:
        return make(call)
    name = class_name(call.function) or "object"
    return PlainValue(type=name[:TEXT], text=f"{call.name or 'something'}(...)"[:TEXT])


def _complex_value(call: PickleCall) -> PlainValue:
    # An integer may be too large for a float; a float may be infinite or no number at all.
    parts = [
        float(part)
        for part in call.args[:2]
        if isinstance(part, float) or (isinstance(part, int) and part.bit_length() < 1000)
    ]
    return PlainValue(type="complex", text=repr(complex(*parts)))


_VALUES: Mapping[str, Callable[[PickleCall], PlainValue]] = {
    "torch.Size": lambda call: PlainValue(type="Size", text=f"torch.Size({list(sizes_argument(call))})"[:TEXT]),
    "torch.device": lambda call: PlainValue(type="device", text=device_name(call)),
    "builtins.complex": _complex_value,
    "builtins.set": lambda _: PlainValue(type="set", text="a set"),
    "builtins.frozenset": lambda _: PlainValue(type="frozenset", text="a frozenset"),
    "builtins.bytearray": lambda _: PlainValue(type="bytearray", text="a bytearray"),
    "builtins.bytes": lambda _: PlainValue(type="bytes", text="bytes"),
    "_codecs.encode": lambda _: PlainValue(type="bytes", text="bytes"),
    "torch.serialization._get_layout": lambda _: PlainValue(type="layout", text="a layout"),
}
