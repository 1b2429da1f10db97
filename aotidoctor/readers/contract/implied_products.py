"""Dtype, rank and sizes of inputs that no check states, from the matrix products that they are a factor of.

Packages of torch 2.6 hold no input checks. ``aoti_torch_cpu_addmm_out(buf0, bias, arg0_1, weight, 1L, 1L)`` says much
of ``arg0_1`` all the same: it has the dtype of the result, is a matrix, has a row for each row of the result, and a
column for each row of the other factor. Of an input that is viewed for it only the dtype follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from aotidoctor.model.contract import ConstantSpec, Contract, Dim, LeafSpec
from aotidoctor.model.expr import Expr, Num
from aotidoctor.model.record import record
from aotidoctor.readers.contract.body_records import Body
from aotidoctor.readers.contract.implied import is_described
from aotidoctor.readers.contract.kernels import arguments_of
from aotidoctor.readers.contract.symbols import SymbolTable, known

# The result and the two factors among the arguments.
_PLACES = {"mm_out": (0, 1, 2), "bmm_out": (0, 1, 2), "addmm_out": (0, 2, 3), "baddbmm_out": (0, 2, 3)}
_PRODUCT = re.compile(rf"aoti_torch_[a-z]+_(?P<name>{'|'.join(_PLACES)})")
_Shape = tuple[str, ...]


@record
class _Told:
    """What a product tells of an input; ``shape`` is None where a view stands between them."""

    name: str
    dtype: str
    shape: _Shape | None


def with_implied_products(contract: Contract, body: Body, symbols: SymbolTable) -> Contract:
    """``contract`` with what products tell of tensors that are not described."""
    if all(map(is_described, contract.tensor_leaves())):
        return contract
    told: dict[str, list[_Told]] = {}
    for one in _products(body, {constant.name: constant for constant in contract.constants}):
        told.setdefault(one.name, []).append(one)
    leaves = (
        _described(leaf, told[leaf.generated_name], symbols) if leaf.generated_name in told else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


def _described(leaf: LeafSpec, told: list[_Told], symbols: SymbolTable) -> LeafSpec:
    dtypes = {one.dtype for one in told}
    leaf = replace(leaf, dtype=leaf.dtype or (told[0].dtype if len(dtypes) == 1 else None))
    shapes = {one.shape for one in told if one.shape is not None}
    if leaf.rank is not None or len(shapes) != 1:
        return leaf
    sizes = [known(symbols.read(size)) for size in shapes.pop()]
    nothing = (None,) * len(sizes)
    dims = tuple(_dim(size, at, leaf) for at, size in enumerate(sizes))
    return replace(leaf, rank=len(sizes), dims=dims, strides=nothing, stride_exprs=nothing)


def _dim(size: Expr | None, at: int, leaf: LeafSpec) -> Dim:
    """What the wrapper says of this dim itself comes first."""
    seen = leaf.dims[at] if leaf.dims is not None and at < len(leaf.dims) else Dim()
    if seen.static is not None or seen.expr is not None:
        return seen
    if isinstance(size, Num) and size.under == 1:
        return Dim(static=size.over, expr=size)
    return replace(seen, expr=size)


def _products(body: Body, constants: Mapping[str, ConstantSpec]) -> Iterator[_Told]:
    for call in body.calls:
        found = _PRODUCT.fullmatch(call.function)
        places = _PLACES[found["name"]] if found is not None else ()
        arguments = arguments_of(call) if places else ()
        if not places or len(arguments) <= max(places):
            continue
        out, left, right = (arguments[place] for place in places)
        dtype, shape = _dtype_of(out, body), _shape_of(out, body, constants)
        if dtype is None:
            continue
        sizes = {name: _shape_of(name, body, constants) for name in (left, right)}
        yield from _of_factor(left, body, dtype, _joined(shape, sizes[right], -2))
        yield from _of_factor(right, body, dtype, _joined(shape, sizes[left], -1))


def _joined(result: _Shape | None, other: _Shape | None, kept: int) -> _Shape | None:
    """The shape of a factor: dim ``kept`` is that of the result, the other one is the dim that is summed over."""
    if result is None or other is None or len(result) != len(other) or len(result) < 2:
        return None
    pair = (result[-2], other[-2]) if kept == -2 else (other[-1], result[-1])
    return (*result[:-2], *pair)


def _of_factor(name: str, body: Body, dtype: str, shape: _Shape | None) -> Iterator[_Told]:
    for step in _names(name, body):
        if step in body.view_dtypes:
            return
        if step in body.unpacked:
            yield _Told(name=step, dtype=dtype, shape=shape if step == name else None)


def _names(name: str, body: Body) -> Iterator[str]:
    """The name, and what it took its tensor from, step by step."""
    for _ in range(len(body.renamed) + 1):
        yield name
        if name not in body.renamed:
            return
        name = body.renamed[name]


def _dtype_of(name: str, body: Body) -> str | None:
    for step in _names(name, body):
        if step in body.view_dtypes:
            return body.view_dtypes[step]
        if step in body.buffers:
            return body.buffers[step].dtype
    return None


def _shape_of(name: str, body: Body, constants: Mapping[str, ConstantSpec]) -> _Shape | None:
    """As the wrapper writes it; None of an input itself."""
    for step in _names(name, body):
        if step in body.view_shapes:
            return body.view_shapes[step]
        if step in body.buffers:
            return body.buffers[step].shape
        if step in body.constants:
            shape = constants[step].shape if step in constants else None
            return tuple(map(str, shape)) if shape is not None else None
    return None
