"""Outputs: their paths from the call spec, and what the body tells about the tensors it hands back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aotidoctor.model.contract import ConstantSpec, LeafSpec, OutputSpec
from aotidoctor.model.tree import walk_leaves
from aotidoctor.readers.contract.body import Body, Buffer
from aotidoctor.readers.contract.custom_calls import element_type
from aotidoctor.readers.contract.symbols import SymbolTable
from aotidoctor.readers.contract.treespec import SpecError, parse_spec


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
    asserted = {one.name: one.sizes for one in body.assertions}
    plain = {index: _plain(index, path, body) for index, path in enumerate(paths)}
    return tuple(
        plain[index]
        or _output(index, path, _origin(body.outputs.get(index, ""), body, symbols, asserted), inputs=inputs, held=held)
        for index, path in enumerate(paths)
    )


def _plain(index: int, path: str, body: Body) -> OutputSpec | None:
    """The output where the program returns None or a number, not a tensor. Without any output nothing was read."""
    if body.outputs and index not in body.outputs:
        return OutputSpec(index=index, path=path, kind="none")
    number = body.numbers.get(body.outputs.get(index, ""))
    if number is None:
        return None
    return OutputSpec(index=index, path=path, kind="number", dtype=_type_of(number), shape=(), device_type="cpu")


def _type_of(number: str) -> str | None:
    """The dtype that the C++ literal makes; that of a symbol (``s77``) is int64."""
    if number in ("true", "false"):
        return "bool"
    if re.fullmatch(r"-?\d+(?:L|LL)?|[su]\d+", number):
        return "int64"
    return "float64" if re.fullmatch(r"-?\d+\.\d*(?:e[+-]?\d+)?", number) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """The name a tensor first had, its buffer if it was allocated here, its shape where a view or a buffer tells.

    ``dtype`` is what the generated kernels take it for, of a tensor that an operator gave.
    """

    name: str
    buffer: Buffer | None
    dtype: str | None
    shape: tuple[str, ...] | None


def _origin(name: str, body: Body, symbols: SymbolTable, asserted: Mapping[str, tuple[str, ...]]) -> _Origin:
    buffer, shape = body.buffers.get(name), body.view_shapes.get(name)
    if shape is None and buffer is not None:
        shape = buffer.shape
    for _ in range(len(body.renamed)):
        if name not in body.renamed:
            break
        name = body.renamed[name]
    sizes = shape if shape is not None else asserted.get(name)
    shown = tuple(str(symbols.read(size)) for size in sizes) if sizes is not None else None
    dtype = element_type(name, body) if name and buffer is None else None
    return _Origin(name=name, buffer=buffer, dtype=dtype, shape=shown)


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
        dtype=owner.dtype if owner is not None else origin.dtype,
        shape=shape,
        device_type=owner.device_type if owner is not None else None,
        same_as=leaf.path if leaf is not None else None,
    )


def _leaf_shape(leaf: LeafSpec) -> tuple[str, ...] | None:
    if leaf.rank is None or leaf.dims is None:
        return None
    return tuple(str(dim.static if dim.static is not None else dim.expr or "?") for dim in leaf.dims)
