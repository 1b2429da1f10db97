"""Match the given tree with the call spec, leaf by leaf, without guessing.

By key where both have keys, by position where the numbers agree; what is left over is matched by elimination, and among
several candidates by dtype and dims, if exactly one fits. A constant leaf takes any plain value, as does one
that nothing tells anything about. Lists of numbers for a tensor leaf are made the tensor that they spell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aotidoctor.diagnosis.treat_plan import template
from aotidoctor.diagnosis.treat_tensors import allows
from aotidoctor.model.contract import Contract, LeafSpec
from aotidoctor.model.inputs import InputSet, LeafValue, PlainValue, TensorDesc
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, Leaf, Tree, child_path

Key = str | int
_NUMBERS = ("int", "float", "bool")
Given = tuple[str, Tree[LeafValue]]


@record
class Hole:
    """A tensor leaf of the spec that nothing given can fill."""

    path: str
    spec: LeafSpec


@dataclass(slots=True)
class Assignment:
    """Templates of the rebuilt call; ``dropped`` are given leaves that it does not use."""

    args: JsonObject = field(default_factory=dict)
    kwargs: JsonObject = field(default_factory=dict)
    holes: list[Hole] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


class Unfit(Exception):  # noqa: N818 - a signal inside this module
    """The trees cannot be matched without guessing."""


def assign(contract: Contract, inputs: InputSet) -> Assignment | None:
    """The given call in the form of the call spec; None when that would need a guess."""
    try:
        return _Matcher(contract).call(inputs)
    except Unfit:
        return None


class _Matcher:
    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.result = Assignment()

    def call(self, inputs: InputSet) -> Assignment:
        """Positional arguments and keywords; either may have been given as the other."""
        wanted_args, wanted_kwargs = self.contract.args, self.contract.kwargs
        if wanted_args is None or wanted_kwargs is None:
            raise Unfit
        given = _children(inputs.args, "args")
        named = dict(zip(inputs.kwargs.keys, _children(inputs.kwargs, "kwargs"), strict=True))
        by_name: dict[Key, Given | None] = {key: named.pop(key, None) for key in wanted_kwargs.keys}
        spare = [*given[len(wanted_args.children) :], *named.values()]
        placed: list[Given | None] = [*given[: len(wanted_args.children)]]
        placed += [None] * (len(wanted_args.children) - len(placed))
        self._fill(placed, wanted_args.children, spare)
        names = list(wanted_kwargs.keys)
        values = [by_name[key] for key in names]
        self._fill(values, wanted_kwargs.children, spare)
        self._drop(spare)
        args = [
            self._slot(spec, item, f"args[{at}]")
            for at, (spec, item) in enumerate(zip(wanted_args.children, placed, strict=True))
        ]
        kwargs = [
            self._slot(spec, item, f"kwargs[{key!r}]")
            for key, spec, item in zip(names, wanted_kwargs.children, values, strict=True)
        ]
        if None in args[: max((at for at, item in enumerate(args) if item is not None), default=-1)]:
            raise Unfit
        self.result.args = {"tuple": [item for item in args if item is not None]}
        self.result.kwargs = {
            "dict": [[key, item] for key, item in zip(names, kwargs, strict=True) if item is not None]
        }
        return self.result

    def _fill(self, places: list[Given | None], specs: Sequence[Tree[int]], spare: list[Given]) -> None:
        """Put spare arguments into empty places: all in order if as many, otherwise only what fits one place alone."""
        empty = [at for at, item in enumerate(places) if item is None and self._needed(specs[at])]
        if not empty or not spare:
            return
        if len(empty) == len(spare):
            in_order = all(self._may(specs[at], item[1]) for at, item in zip(empty, spare, strict=True))
            if in_order or len(empty) == 1:
                for at in empty:
                    places[at] = spare.pop(0)
                return
        for at in empty:
            fitting = [item for item in spare if self._may(specs[at], item[1])]
            if len(fitting) > 1:
                raise Unfit
            for item in fitting:
                places[at] = item
                spare.remove(item)

    def _slot(self, spec: Tree[int], given: Given | None, path: str) -> JsonObject | None:
        """The template of one argument; None leaves a hole."""
        if given is not None:
            return self._tree(spec, given[1], given[0])
        return self._missing(spec, path)

    def _missing(self, spec: Tree[int], path: str) -> JsonObject | None:
        if not isinstance(spec, Leaf):
            raise Unfit
        leaf = self.contract.leaves[spec.value]
        if leaf.kind == "constant":
            return {"value": None}
        self.result.holes.append(Hole(path=path, spec=leaf))
        return None

    def _tree(self, spec: Tree[int], given: Tree[LeafValue], path: str) -> JsonObject:
        match spec, given:
            case Leaf(value=index), _ if _spells(self.contract.leaves[index], given):
                return {"tensor_of": path, "dtype": self.contract.leaves[index].dtype}
            case Leaf(value=index), Leaf(value=value):
                return self._leaf(self.contract.leaves[index], value, path)
            case Leaf(), Container() if len(given.children) == 1:
                return self._tree(spec, given.children[0], child_path(path, given, 0))
            case Container(), Leaf() if len(spec.children) == 1:
                return template(spec.type, spec.keys, [self._tree(spec.children[0], given, path)])
            case Container(), Container():
                return template(spec.type, spec.keys, self._pairs(spec, given, path))
            case _:
                raise Unfit

    def _leaf(self, spec: LeafSpec, value: LeafValue, path: str) -> JsonObject:
        if spec.kind == "constant" and isinstance(value, TensorDesc):
            self.result.dropped.append(path)
            return {"value": None}
        return {"leaf": path}

    def _pairs(self, spec: Container[int], given: Container[LeafValue], path: str) -> list[JsonObject]:
        children = _children(given, path)
        if spec.keys and given.keys:
            named = dict(zip(given.keys, children, strict=True))
            places: list[Given | None] = [named.pop(key, None) for key in spec.keys]
            spare = [*named.values()]
        else:
            places = [*children[: len(spec.children)]]
            places += [None] * (len(spec.children) - len(places))
            spare = children[len(spec.children) :]
        self._fill(places, spec.children, spare)
        self._drop(spare)
        return [self._inner(child, item, path) for child, item in zip(spec.children, places, strict=True)]

    def _inner(self, spec: Tree[int], given: Given | None, path: str) -> JsonObject:
        """Inside a container nothing can be inserted later without shifting its neighbours."""
        slot = self._slot(spec, given, path)
        if slot is None:
            raise Unfit
        return slot

    def _drop(self, spare: Sequence[Given]) -> None:
        self.result.dropped.extend(path for path, _ in spare)

    def _needed(self, spec: Tree[int]) -> bool:
        return not isinstance(spec, Leaf) or self.contract.leaves[spec.value].kind != "constant"

    def _may(self, spec: Tree[int], given: Tree[LeafValue]) -> bool:
        """The given tree could be this part of the spec, leaf by leaf."""
        match spec, given:
            case Leaf(value=index), _ if _spells(self.contract.leaves[index], given):
                return True
            case Leaf(value=index), Leaf(value=value):
                return leaf_fits(self.contract.leaves[index], value)
            case Container(), Container() if len(spec.children) == len(given.children):
                return all(self._may(a, b) for a, b in zip(spec.children, given.children, strict=True))
            case _:
                return False


def leaf_fits(spec: LeafSpec, value: LeafValue) -> bool:
    """A tensor of this dtype, rank and dims for a tensor leaf; a plain value for a constant."""
    match value:
        case PlainValue():
            return spec.kind == "constant" or _untold(spec)
        case TensorDesc(dtype=dtype, shape=shape):
            if spec.kind == "constant" or spec.dtype not in (None, dtype) or spec.rank not in (None, len(shape)):
                return False
            return all(allows(dim, size) for dim, size in zip(spec.dims or (), shape, strict=False))


def _untold(spec: LeafSpec) -> bool:
    """A leaf that the code does not read: a constant, or a tensor that nobody uses."""
    return spec.kind == "unknown" and spec.input_index is None and spec.dtype is None


def _spells(spec: LeafSpec, given: Tree[LeafValue]) -> bool:
    """Lists of numbers that have the rank and sizes of a tensor leaf."""
    if spec.dtype is None or spec.rank is None:
        return False
    if isinstance(given, Leaf):
        # So many numbers that the lists were read as one leaf: their sizes show when the tensor is made.
        return isinstance(given.value, PlainValue) and given.value.type == "list"
    shape = _sizes(given)
    if shape is None or len(shape) != spec.rank or not shape:
        return False
    return all(allows(dim, size) for dim, size in zip(spec.dims or (), shape, strict=False))


def _sizes(given: Tree[LeafValue]) -> tuple[int, ...] | None:
    """Sizes of regular lists of numbers, ``()`` of a number, None of anything else."""
    if isinstance(given, Leaf):
        return () if isinstance(given.value, PlainValue) and given.value.type in _NUMBERS else None
    inner = {_sizes(child) for child in given.children} if given.type in ("list", "tuple") else set()
    one = next(iter(inner)) if len(inner) == 1 else None
    return None if one is None else (len(given.children), *one)


def _children(given: Container[LeafValue], path: str) -> list[Given]:
    return [(child_path(path, given, at), child) for at, child in enumerate(given.children)]
