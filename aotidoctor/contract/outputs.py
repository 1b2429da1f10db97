"""Outputs: their paths from the call spec, and what the body tells about the tensors it hands back."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.contract.body import Body
from aotidoctor.contract.symbols import SymbolTable
from aotidoctor.contract.treespec import SpecError, parse_spec
from aotidoctor.model.contract import ConstantSpec, LeafSpec, OutputSpec
from aotidoctor.model.tree import walk_leaves


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
    """One ``OutputSpec`` per output tensor."""
    inputs = {leaf.generated_name: leaf for leaf in leaves if leaf.generated_name is not None}
    held = {constant.name: constant for constant in constants}
    shapes = {one.name: one.sizes for one in body.assertions}
    built = []
    for index, path in enumerate(paths):
        name = body.outputs.get(index, "")
        if name in inputs:
            built.append(_from_input(index, path, inputs[name]))
        elif name in held:
            built.append(_from_constant(index, path, held[name]))
        else:
            buffer = body.buffers.get(name)
            sizes = buffer.shape if buffer is not None and buffer.shape is not None else shapes.get(name)
            built.append(
                OutputSpec(
                    index=index,
                    path=path,
                    dtype=buffer.dtype if buffer is not None else None,
                    shape=tuple(str(symbols.read(size)) for size in sizes) if sizes is not None else None,
                    device_type=buffer.device_type if buffer is not None else None,
                )
            )
    return tuple(built)


def _from_input(index: int, path: str, leaf: LeafSpec) -> OutputSpec:
    shape = None
    if leaf.rank is not None and leaf.dims is not None:
        shape = tuple(str(dim.static if dim.static is not None else dim.expr or "?") for dim in leaf.dims)
    return OutputSpec(
        index=index, path=path, dtype=leaf.dtype, shape=shape, device_type=leaf.device_type, same_as=leaf.path
    )


def _from_constant(index: int, path: str, constant: ConstantSpec) -> OutputSpec:
    shape = tuple(map(str, constant.shape)) if constant.shape is not None else None
    return OutputSpec(index=index, path=path, dtype=constant.dtype, shape=shape, device_type=constant.device_type)
