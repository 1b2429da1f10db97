"""Outputs: their paths from the call spec, and what the body tells about the tensors it hands back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.contract import ConstantSpec, LeafSpec, OutputSpec
from aotidoctor.model.record import record
from aotidoctor.model.tree import walk_leaves
from aotidoctor.model.treespec import SpecError, parse_spec
from aotidoctor.readers.contract.body_records import Assertion, Body, Buffer
from aotidoctor.readers.contract.custom_calls import element_type
from aotidoctor.readers.contract.symbols import SymbolTable

# Operators whose result has the dtype of their first argument.
_KEEPING = re.compile(r"^aoti_torch_[a-z]+_(?:mkldnn_)?_?(?:convolution(?:_pointwise)?|linear_pointwise)$")
# A view that is made for the call has the dtype of what it views.
_FIRST = re.compile(r"\s*(?:wrap_with_raii_handle_if_needed\()?(?:reinterpret_tensor_wrapper\()?(\w+)\s*,")
_DEEPEST = 8


def output_paths(out_spec: str | None, count: int) -> tuple[str, ...]:
    """Paths of ``count`` outputs (``result``, ``result[0]``, ``result['a']``), by position if the spec does not fit."""
    if out_spec is not None:
        try:
            paths = tuple(path for path, _ in walk_leaves(parse_spec(out_spec), "result"))
        except SpecError:
            paths = ()
        if len(paths) == count:
            return paths
    return tuple(f"result[{index}]" for index in range(count))


def build_outputs(
    paths: Sequence[str],
    body: Body,
    symbols: SymbolTable,
    leaves: Sequence[LeafSpec],
    constants: Sequence[ConstantSpec],
) -> tuple[OutputSpec, ...]:
    """One ``OutputSpec`` per output."""
    inputs = {leaf.generated_name: leaf for leaf in leaves if leaf.generated_name is not None}
    held = {constant.name: constant for constant in constants}
    asserted = {one.name: one for one in body.assertions}
    plain = {index: _plain(index, path, body) for index, path in enumerate(paths)}
    return tuple(
        plain[index]
        or _output(index, path, _origin(body.outputs.get(index, ""), body, symbols, asserted), inputs=inputs, held=held)
        for index, path in enumerate(paths)
    )


def _plain(index: int, path: str, body: Body) -> OutputSpec | None:
    """The output where the program returns None or a number, not a tensor. Without any output nothing was read.

    Where a statement about an output was not understood, one that is not there is not None, but unknown.
    """
    if body.outputs and index not in body.outputs and not _has_lost_one(body):
        return OutputSpec(index=index, path=path, kind="none")
    number = body.numbers.get(body.outputs.get(index, ""))
    if number is None:
        return None
    return OutputSpec(index=index, path=path, kind="number", dtype=_type_of(number), shape=(), device_type="cpu")


def _has_lost_one(body: Body) -> bool:
    """Whether a statement that does not tell which output it is about was not understood."""
    lost = body.losses.found.get("output")
    return lost is not None and lost.count > sum(not name for name in body.outputs.values())


def _type_of(number: str) -> str | None:
    """The dtype that the C++ literal makes; that of a symbol (``s77``) is int64."""
    if number in ("true", "false"):
        return "bool"
    if re.fullmatch(r"-?\d+(?:L|LL)?|[su]\d+", number):
        return "int64"
    return "float64" if re.fullmatch(r"-?\d+\.\d*(?:e[+-]?\d+)?", number) else None


@record
class _Origin:
    """The name a tensor first had, its buffer if it was allocated here, its shape where a view or a buffer tells.

    ``dtype`` is what the generated kernels or an assertion take it for, of a tensor that an operator gave, and that of
    a view that has a dtype of its own; ``shared`` tells that it is that tensor, or a view of it, and not a copy.
    """

    name: str
    buffer: Buffer | None
    dtype: str | None
    shape: tuple[str, ...] | None
    viewed_as: str | None
    shared: bool


def _origin(name: str, body: Body, symbols: SymbolTable, asserted: Mapping[str, Assertion]) -> _Origin:
    """Follow the names back; the first that tells the buffer, the shape or the dtype is believed."""
    buffer: Buffer | None = None
    told: Assertion | None = None
    shape: tuple[str, ...] | None = None
    viewed_as: str | None = None
    shared, shaped, first = True, False, name
    for _ in range(len(body.renamed) + len(body.like) + 1):
        viewed_as = viewed_as or body.view_dtypes.get(name)
        buffer = buffer or body.buffers.get(name)
        told = told or asserted.get(name)
        if not shaped:
            shape, shaped = _shape_of(name, body, asserted)
        if name not in body.renamed and name not in body.like:
            break
        shared = shared and name in body.renamed
        name = body.renamed[name] if name in body.renamed else body.like[name]
    dtype = None
    if buffer is None and name:
        dtype = element_type(name, body) or element_type(first, body) or _kept_dtype(name, body)
    return _Origin(
        name=name,
        buffer=buffer,
        dtype=dtype or (told.dtype if told is not None else None),
        shape=tuple(str(symbols.read(size)) for size in shape) if shape is not None else None,
        viewed_as=viewed_as,
        shared=shared,
    )


def _kept_dtype(name: str, body: Body, depth: int = 0) -> str | None:
    """Of what an operator gives that keeps the dtype of its first argument: that of the argument."""
    call = next(
        (one for one in body.calls if _KEEPING.search(one.function) and f"&{name}_handle" in one.arguments), None
    )
    given = _FIRST.match(call.arguments) if call is not None else None
    if given is None or depth > _DEEPEST:
        return None
    source = given[1]
    while source in body.renamed and source not in body.view_dtypes:
        source = body.renamed[source]
    made = body.buffers.get(source)
    known = body.view_dtypes.get(source) or element_type(source, body) or (made.dtype if made is not None else None)
    return known or _kept_dtype(source, body, depth + 1)


def _shape_of(name: str, body: Body, asserted: Mapping[str, Assertion]) -> tuple[tuple[str, ...] | None, bool]:
    """``(shape, whether anything tells it)``: a view of unknown shape has not that of its tensor."""
    if name in body.view_shapes:
        return body.view_shapes[name], True
    if name in body.buffers:
        return body.buffers[name].shape, True
    return (asserted[name].sizes, True) if name in asserted else (None, False)


def _output(
    index: int, path: str, origin: _Origin, *, inputs: Mapping[str, LeafSpec], held: Mapping[str, ConstantSpec]
) -> OutputSpec:
    leaf, constant = inputs.get(origin.name), held.get(origin.name)
    owner: LeafSpec | ConstantSpec | Buffer | None = leaf or constant or origin.buffer
    shape = origin.shape
    if shape is None and leaf is not None:
        shape = _leaf_shape(leaf)
    if shape is None and constant is not None and constant.shape is not None:
        shape = tuple(map(str, constant.shape))
    return OutputSpec(
        index=index,
        path=path,
        dtype=origin.viewed_as or (owner.dtype if owner is not None else None) or origin.dtype,
        shape=shape,
        device_type=owner.device_type if owner is not None else None,
        same_as=leaf.path if leaf is not None and origin.shared else None,
    )


def _leaf_shape(leaf: LeafSpec) -> tuple[str, ...] | None:
    if leaf.rank is None or leaf.dims is None:
        return None
    return tuple(str(dim.static if dim.static is not None else dim.expr or "?") for dim in leaf.dims)
