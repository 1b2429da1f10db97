"""From the record of a ``torch._utils._rebuild_*`` call to a ``TensorDesc``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from aotidoctor.model.dtypes import ITEMSIZE, QUANTIZED
from aotidoctor.model.inputs import TensorDesc, ValueStats
from aotidoctor.model.record import record
from aotidoctor.readers.inputs.arguments import class_name, device_name, dtype_name, layout_name, size, sizes
from aotidoctor.readers.inputs.nodes import Call, Entries, Global, Value
from aotidoctor.readers.inputs.storage import MalformedError, Resolve, Storage, nested_file, storage_id
from aotidoctor.readers.inputs.values import MAX_BYTES, View

STATS_TOTAL = 8 << 20


@record(kw_only=False, frozen=False)
class Reader:
    """Where storages come from. ``stats_left`` is how many bytes of values may still be looked at."""

    resolve: Resolve
    resolve_nested: Callable[[bytes | str], Storage]
    stats_left: int = STATS_TOTAL

    def storage(self, value: Value) -> Storage:
        """The storage that a persistent id or, in a plain pickle, an embedded torch file stands for."""
        nested = nested_file(value)
        return self.resolve(storage_id(value)) if nested is None else self.resolve_nested(nested)


def is_tensor_call(call: Call) -> bool:
    """Whether ``call`` rebuilds a tensor; one of a trusted file may do so with a function of its own."""
    if call.name == "torch._tensor._rebuild_from_type_v2" and call.args and isinstance(call.args[0], Global):
        function = call.args[0].name
        return function in _REBUILD or function.endswith("._rebuild_njt")
    return call.name in _REBUILD


def describe_tensor(reader: Reader, call: Call) -> TensorDesc:
    """The tensor that ``call`` rebuilds. Raises ``MalformedError``."""
    rebuild = _REBUILD.get(call.name)
    if rebuild is None:
        raise MalformedError(f"{call.name[:80]} in place of a tensor")
    try:
        return rebuild(reader, call.args)
    except (IndexError, OverflowError) as error:
        raise MalformedError(f"{call.name} with {len(call.args)} arguments") from error


def _inner(reader: Reader, value: Value, allowed: frozenset[str] | None = None) -> TensorDesc:
    """A tensor inside another one. What may be inside is bounded, and so is the recursion."""
    if not isinstance(value, Call) or value.name not in (allowed or _PLAIN):
        raise MalformedError("an unexpected value in place of a plain tensor")
    return describe_tensor(reader, value)


def _strided(
    reader: Reader, args: tuple[Value, ...], *, dtype: str | None, metadata: Value, requires_grad: Value
) -> TensorDesc:
    storage = reader.storage(args[0])
    name = dtype or storage.dtype or "uint8"
    offset, shape, stride = size(args[1]), sizes(args[2]), sizes(args[3])
    if len(shape) != len(stride):
        raise MalformedError(f"{len(stride)} strides", f"{len(shape)}, one for each dim", storage.key)
    _check_extent(storage, name, shape, stride, offset)
    bits = metadata if isinstance(metadata, Entries) else Entries()
    flags = {key: value for key, value in bits.entries if isinstance(key, str) and value is True}
    view: View | None = None
    if storage.data is not None and name not in QUANTIZED:
        order = {"big_endian": storage.big_endian, "negated": "neg" in flags}
        view = View(dtype=name, data=storage.data, shape=shape, stride=stride, offset=offset, **order)
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
        stats=None if view is None else _stats(reader, view),
        elements=None if view is None else view.elements,
    )


def _check_extent(storage: Storage, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    """The last element must lie inside the storage, else reading the tensor reads foreign memory."""
    if 0 in shape:
        return
    span = offset + 1 + sum((length - 1) * step for length, step in zip(shape, stride, strict=True))
    if span * ITEMSIZE[dtype] > storage.nbytes:
        raise MalformedError(
            f"a storage of {storage.nbytes} bytes", f"{span * ITEMSIZE[dtype]} for shape {shape}", storage.key
        )


def _stats(reader: Reader, view: View) -> ValueStats | None:
    stats = view.stats() if reader.stats_left > 0 else None
    if stats is not None:
        reader.stats_left -= min(MAX_BYTES, view.data.nbytes)
    return stats


def _v1(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    return _strided(reader, args, dtype=None, metadata=None, requires_grad=False)


def _v2(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    return _strided(reader, args, dtype=None, metadata=args[6] if len(args) > 6 else None, requires_grad=args[4])


def _v3(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    metadata = args[7] if len(args) > 7 else None
    return _strided(reader, args, dtype=dtype_name(args[6]), metadata=metadata, requires_grad=args[4])


def _parameter(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    requires_grad = len(args) < 2 or args[1] is True
    desc = _inner(reader, args[0], _IN_PARAMETER)
    return dataclasses.replace(desc, subclass="Parameter", requires_grad=requires_grad)


def _quantized(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    plain = _strided(reader, args, dtype=None, metadata=None, requires_grad=args[5])
    return dataclasses.replace(plain, quantized=True)


def _sparse(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    parts = args[1] if isinstance(args[1], tuple) else ()
    layout = layout_name(args[0])
    values, shape = (parts[1], parts[2]) if layout == "sparse_coo" else (parts[2], parts[3])
    desc = _inner(reader, values)
    return dataclasses.replace(desc, shape=sizes(shape), stride=None, storage_offset=0, layout=layout)


def _nested(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    """Only the number of parts is one size for all."""
    desc, parts = _inner(reader, args[0]), _inner(reader, args[1])
    return dataclasses.replace(desc, shape=parts.shape[:1], stride=None, layout="nested")


def _meta(_: Reader, args: tuple[Value, ...]) -> TensorDesc:
    return TensorDesc(
        dtype=dtype_name(args[0]),
        shape=sizes(args[1]),
        stride=sizes(args[2]),
        device="meta",
        requires_grad=args[3] is True,
    )


def _from_cpu(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    desc = _inner(reader, args[0])
    grad = args[3] is True
    return dataclasses.replace(desc, dtype=dtype_name(args[1]), device=device_name(args[2]), requires_grad=grad)


def _from_numpy(_: Reader, args: tuple[Value, ...]) -> TensorDesc:
    state = args[0].state if isinstance(args[0], Call) else None
    shape = sizes(state[1]) if isinstance(state, tuple) else ()
    grad = args[3] is True
    return TensorDesc(
        dtype=dtype_name(args[1]), shape=shape, stride=None, device=device_name(args[2]), requires_grad=grad
    )


def _wrapper(_: Reader, args: tuple[Value, ...]) -> TensorDesc:
    return TensorDesc(
        dtype=dtype_name(args[1]),
        shape=sizes(args[2]),
        stride=sizes(args[3]),
        storage_offset=size(args[4]),
        layout=layout_name(args[5]),
        device=device_name(args[6]),
        requires_grad=args[7] is True,
        subclass=class_name(args[0]),
    )


def _typed(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    """``_rebuild_from_type_v2(function, type, args, state)``: a tensor with attributes, or of a subclass."""
    function, inner = args[0], args[2]
    if not isinstance(function, Global) or not isinstance(inner, tuple) or function.name in _NOT_TYPED:
        raise MalformedError("an unexpected value in place of a tensor")
    if function.name.endswith("._rebuild_njt"):
        return _jagged(reader, inner)
    return dataclasses.replace(describe_tensor(reader, Call(function, inner)), subclass=class_name(args[1]))


def _jagged(reader: Reader, args: tuple[Value, ...]) -> TensorDesc:
    state = args[0] if args and isinstance(args[0], Entries) else Entries()
    values = next((value for key, value in state.entries if key == "values"), None)
    if isinstance(values, Call) and values.name == "torch._tensor._rebuild_from_type_v2" and len(values.args) == 4:
        inner = values.args[2]
        values = Call(values.args[0], inner if isinstance(inner, tuple) else ())
    desc = _inner(reader, values)
    return dataclasses.replace(desc, shape=(), stride=None, layout="nested", subclass="NestedTensor", stats=None)


_REBUILD: Mapping[str, Callable[[Reader, tuple[Value, ...]], TensorDesc]] = {
    "torch._utils._rebuild_tensor": _v1,
    "torch._utils._rebuild_tensor_v2": _v2,
    "torch._utils._rebuild_tensor_v3": _v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.parameter.Parameter": _parameter,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_nested_tensor": _nested,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _from_cpu,
    "torch._utils._rebuild_device_tensor_from_numpy": _from_numpy,
    "torch._utils._rebuild_wrapper_subclass": _wrapper,
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
