"""Plan treatments of single tensors, and assign the leaves of the given call to those of the call spec.

Tensors: dtype, device, layout, lazy bits, rank, shape, strides, shared memory.

Leaves are assigned by key where both have keys, by position where the numbers agree; the rest is matched by
elimination, and among several candidates by dtype and dims, if exactly one fits. A constant leaf takes any plain
value, as does one about which nothing is known. Lists of numbers for a tensor leaf become a tensor.
An ambiguous call is not assigned at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from aotidoctor.diagnosis.treat_values import couples, evidence_of_code, path_of, paths_of, spec_at, tensor_at
from aotidoctor.diagnosis.treatment_steps import TreatmentPlan, each_leaf, leaf_plan, merge_plans, resize_step, template
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim, LeafSpec, ModelContract
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.inputs import Container, InputSet, Leaf, LeafValue, PlainValue, TensorDesc, Tree, child_path
from aotidoctor.model.record import JsonObject, record
from aotidoctor.model.torch_names import contiguous_stride

# Tensors. Refusal by an operator of PyTorch of an input that no check describes.
REFUSED = "AD-RUN-037"


def plan_cast(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Cast each tensor to the dtype of the contract, quantized ones to plain numbers first."""
    items = evidence_of_code(findings, "AD-IN-010", "dtype") or evidence_of_code(findings, REFUSED, "dtype")
    return merge_plans([_cast_one(case, item) for item in items])


def _cast_one(case: Case, item: Evidence) -> TreatmentPlan | None:
    path = path_of(item)
    wanted = item.facts.get("expected_dtype") or item.expected
    if path is None or not isinstance(wanted, str):
        return None
    tensor = tensor_at(case, path)
    step: JsonObject = {"op": "cast", "path": path, "dtype": wanted}
    if tensor is not None and tensor.quantized:
        return leaf_plan(f"dequantize {path}", {"op": "dense", "path": path, "quantized": True}, step)
    return leaf_plan(f"cast {path} to {wanted}", step)


def plan_restride(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Copy each tensor into the strides of the contract, contiguous where those are not all known."""
    return merge_plans([_restride_one(case, item) for item in evidence_of_code(findings, "AD-IN-014")])


def _restride_one(case: Case, item: Evidence) -> TreatmentPlan | None:
    path = path_of(item)
    if path is None:
        return None
    if item.kind == "alignment":
        return leaf_plan(f"clone {path}", {"op": "clone", "path": path})
    strides = _expected_strides(case, item, path)
    tensor = tensor_at(case, path)
    plain = strides is None or (tensor is not None and strides == contiguous_stride(tensor.shape))
    step: JsonObject = {"op": "contiguous", "path": path, "stride": None if plain else [*(strides or ())]}
    return leaf_plan(f"make {path} contiguous" if plain else f"copy {path} into strides {strides}", step)


def _expected_strides(case: Case, item: Evidence, path: str) -> tuple[int, ...] | None:
    """All strides as numbers; None when one is not constant, as the tensor is then to be contiguous."""
    value = item.facts.get("expected_stride")
    spec = spec_at(case, path)
    strides = (
        value if isinstance(value, tuple) else spec.strides if spec is not None and spec.rank is not None else None
    )
    if strides is None:
        return None
    known = tuple(step for step in strides if isinstance(step, int))
    return known if len(known) == len(strides) else None


def plan_to_device(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Move each tensor to the device type of the package; a meta tensor, which has no values, becomes zeros there."""
    return merge_plans([_move(item) for item in evidence_of_code(findings, "AD-IN-008")])


def _move(item: Evidence) -> TreatmentPlan | None:
    path, wanted = path_of(item), item.facts.get("expected_device")
    if path is None or not isinstance(wanted, str):
        return None
    step: JsonObject = {"op": "to", "path": path, "device": wanted}
    if item.kind == "meta":
        text = f"put zeros on {wanted} in place of {path}, which has no values"
        return leaf_plan(text, step, command=f"{path} = torch.zeros_like({path}, device={wanted!r})")
    return leaf_plan(f"move {path} to {wanted}", step)


def plan_resolve(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Resolve conj and neg bits."""
    paths = paths_of(evidence_of_code(findings, "AD-IN-011"))
    return each_leaf(paths, "resolve", "resolve the lazy bits of {0}")


def plan_dense(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Make sparse, mkldnn and quantized tensors dense. How to pad a nested tensor is the caller's choice."""
    items = evidence_of_code(findings, "AD-IN-007")
    if any(item.kind not in ("sparse", "quantized") for item in items):
        return None
    return merge_plans(
        [
            leaf_plan(f"make {path} dense", {"op": "dense", "path": path, "quantized": item.kind == "quantized"})
            for item in items
            if (path := path_of(item)) is not None
        ]
    )


def plan_clone(_case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Give each of the overlapping inputs its own memory."""
    paths = paths_of(evidence_of_code(findings, "AD-IN-018", "overlap"))
    return each_leaf(paths, "clone", "clone {0}")


def plan_reshape(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Reshape where the number of elements, or what other inputs have, leaves one way; else take out or put in a 1."""
    items = evidence_of_code(findings, "AD-IN-012", "rank")
    return merge_plans(
        [_reshape_one(case, item) for item in items]
        or [_leading_dims_plan(case, item) for item in evidence_of_code(findings, REFUSED)]
    )


def _leading_dims_plan(case: Case, item: Evidence) -> TreatmentPlan | None:
    """Add leading sizes of 1, up to the rank that an operator requires."""
    path, wanted = path_of(item), item.facts.get("expected_rank")
    tensor = tensor_at(case, path)
    if path is None or tensor is None or not isinstance(wanted, int) or wanted <= len(tensor.shape):
        return None
    shape = (1,) * (wanted - len(tensor.shape)) + tensor.shape
    return _reshape_plan(path, shape)


def _reshape_plan(path: str, shape: tuple[int, ...], *after: JsonObject) -> TreatmentPlan:
    plan = leaf_plan(f"reshape {path} to {shape}", {"op": "reshape", "path": path, "shape": [*shape]})
    return replace(plan, steps=(*plan.steps, *after))


def _reshape_one(case: Case, item: Evidence) -> TreatmentPlan | None:
    path = path_of(item)
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if path is None or spec is None or spec.dims is None or tensor is None:
        return None
    known = known_sizes(case, path)
    shape = (
        fitting_shape(spec.dims, tensor.numel)
        or _squeeze_shape(spec.dims, tensor.shape, known)
        or _known_shape(spec.dims, tensor.numel, known)
    )
    if shape is not None:
        plan = _reshape_plan(path, shape, *_grown(path, spec.dims, shape, known))
        # Where the other inputs have another size, the reshape alone does not heal: it is no remedy.
        return plan if _fits(spec.dims, shape, known) else replace(plan, command="")
    # One dimension more, in the first place where the others then fit, as long as the other inputs have it.
    for at, dim in enumerate(spec.dims):
        size = dim.static if dim.static is not None else known.get(str(dim.expr), 1)
        whole = (*tensor.shape[:at], size, *tensor.shape[at:])
        if len(whole) == len(spec.dims) and _fits(spec.dims, whole, known):
            steps: tuple[JsonObject, ...] = (
                {"op": "reshape", "path": path, "shape": [*tensor.shape[:at], 1, *tensor.shape[at:]]},
                resize_step(path, at, size),
            )
            return TreatmentPlan(
                text=f"repeat {path} along a new dim {at}, to {whole}", steps=steps[: 1 if size == 1 else 2]
            )
    return None


def _grown(path: str, dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> tuple[JsonObject, ...]:
    """Steps to the size that another input has, or else to the least that the package's checks accept."""
    wanted = [
        size if dim.static is not None else known.get(str(dim.expr), max(size, dim.min or 0))
        for dim, size in zip(dims, shape, strict=True)
    ]
    return tuple(
        resize_step(path, at, right)
        for at, (right, size) in enumerate(zip(wanted, shape, strict=True))
        if right != size
    )


def _squeeze_shape(dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> tuple[int, ...] | None:
    """``shape`` without one of its sizes of 1, if that fits in one way only."""
    rests = {(*shape[:at], *shape[at + 1 :]) for at, size in enumerate(shape) if size == 1}
    fitting = [rest for rest in rests if len(rest) == len(dims) and _fits(dims, rest, known)]
    return fitting[0] if len(fitting) == 1 else None


def _known_shape(dims: Sequence[Dim], numel: int, known: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape whose every size is static or what the other inputs have, if it has ``numel`` elements."""
    shape = [dim.static if dim.static is not None else known.get(str(dim.expr)) for dim in dims]
    sizes = tuple(size for size in shape if size is not None)
    return sizes if len(sizes) == len(dims) and prod(sizes) == numel else None


def _fits(dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> bool:
    """Whether the dims allow the sizes, and the other inputs have the same."""
    pairs = list(zip(dims, shape, strict=True))
    return all(allows(dim, size) and known.get(str(dim.expr), size) == size for dim, size in pairs)


def known_sizes(case: Case, without: str) -> dict[str, int]:
    """Value of each symbolic size in the inputs other than ``without``."""
    return {
        str(dim.expr): size
        for path, spec, tensor in couples(case)
        if path != without and len(spec.dims or ()) == len(tensor.shape)
        for dim, size in zip(spec.dims or (), tensor.shape, strict=False)
        if dim.expr is not None
    }


def fitting_shape(dims: Sequence[Dim], numel: int) -> tuple[int, ...] | None:
    """The only shape of ``numel`` elements that ``dims`` allow; None when there is none, or a choice."""
    free = [at for at, dim in enumerate(dims) if dim.static is None]
    fixed = prod(dim.static for dim in dims if dim.static is not None)
    if len(free) > 1 or fixed == 0 or numel % fixed or (not free and numel != fixed):
        return None
    rest = numel // fixed
    if free and not allows(dims[free[0]], rest):
        return None
    return tuple(rest if dim.static is None else dim.static for dim in dims)


def allows(dim: Dim, size: int) -> bool:
    """Whether a size is the static one, or in the compiled range. Below a minimum of 2 a size of 1 still works."""
    if dim.static is not None:
        return dim.static == size
    low = 1 if dim.min == 2 else dim.min
    return (low is None or size >= low) and (dim.max is None or size <= dim.max)


# Leaves.
Key = str | int
_NUMBERS = ("int", "float", "bool")
Given = tuple[str, Tree[LeafValue]]


@record
class Hole:
    """A tensor leaf of the spec without a given value."""

    path: str
    spec: LeafSpec


@dataclass(slots=True)
class Assignment:
    """Templates of the rebuilt call; ``dropped`` are given leaves that it does not use."""

    args: JsonObject = field(default_factory=dict)
    kwargs: JsonObject = field(default_factory=dict)
    holes: list[Hole] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


class UnfitError(Exception):
    """The trees cannot be matched without guessing."""


def assign(contract: ModelContract, inputs: InputSet) -> Assignment | None:
    """Assign the given call to the call spec; None when that would need a guess."""
    try:
        return _Matcher(contract).call(inputs)
    except UnfitError:
        return None


class _Matcher:
    def __init__(self, contract: ModelContract) -> None:
        self.contract = contract
        self.result = Assignment()

    def call(self, inputs: InputSet) -> Assignment:
        """Assign positional arguments and keywords, where either may have been given as the other."""
        wanted_args, wanted_kwargs = self.contract.args, self.contract.kwargs
        if wanted_args is None or wanted_kwargs is None:
            raise UnfitError
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
            raise UnfitError
        self.result.args = {"tuple": [item for item in args if item is not None]}
        self.result.kwargs = {
            "dict": [[key, item] for key, item in zip(names, kwargs, strict=True) if item is not None]
        }
        return self.result

    def _fill(self, places: list[Given | None], specs: Sequence[Tree[int]], spare: list[Given]) -> None:
        """Put spare arguments into empty places: all in order if as many, otherwise only what fits one place alone."""
        needed = [not isinstance(spec, Leaf) or self.contract.leaves[spec.value].kind != "constant" for spec in specs]
        empty = [at for at, item in enumerate(places) if item is None and needed[at]]
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
                raise UnfitError
            for item in fitting:
                places[at] = item
                spare.remove(item)

    def _slot(self, spec: Tree[int], given: Given | None, path: str) -> JsonObject | None:
        """The template of one argument; None leaves a hole."""
        if given is not None:
            return self._tree(spec, given[1], given[0])
        if not isinstance(spec, Leaf):
            raise UnfitError
        leaf = self.contract.leaves[spec.value]
        if leaf.kind == "constant":
            return {"value": None}
        self.result.holes.append(Hole(path=path, spec=leaf))
        return None

    def _tree(self, spec: Tree[int], given: Tree[LeafValue], path: str) -> JsonObject:
        match spec, given:
            case Leaf(value=index), _ if _spells(self.contract.leaves[index], given):
                return {"tensor_of": path, "dtype": self.contract.leaves[index].dtype}
            case Leaf(value=index), Leaf(value=TensorDesc()) if self.contract.leaves[index].kind == "constant":
                self.result.dropped.append(path)
                return {"value": None}
            case Leaf(), Leaf():
                return {"leaf": path}
            case Leaf(), Container() if len(given.children) == 1:
                return self._tree(spec, given.children[0], child_path(path, given, 0))
            case Container(), Leaf() if len(spec.children) == 1:
                return template(spec.type, spec.keys, [self._tree(spec.children[0], given, path)])
            case Container(), Container():
                return template(spec.type, spec.keys, self._pairs(spec, given, path))
            case _:
                raise UnfitError

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
        slots = [self._slot(child, item, path) for child, item in zip(spec.children, places, strict=True)]
        filled = [slot for slot in slots if slot is not None]
        # Inside a container nothing can be inserted later without shifting its neighbours.
        if len(filled) < len(slots):
            raise UnfitError
        return filled

    def _drop(self, spare: Sequence[Given]) -> None:
        self.result.dropped.extend(path for path, _ in spare)

    def _may(self, spec: Tree[int], given: Tree[LeafValue]) -> bool:
        """Whether the given tree fits this part of the spec, leaf by leaf."""
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
    """Whether a value fits a leaf: a tensor of its dtype, rank and dims, or a plain value for a constant."""
    match value:
        case PlainValue():
            # A leaf that the code does not read: a constant, or an unused tensor.
            return spec.kind == "constant" or (
                spec.kind == "unknown" and spec.input_index is None and spec.dtype is None
            )
        case TensorDesc(dtype=dtype, shape=shape):
            if spec.kind == "constant" or spec.dtype not in (None, dtype) or spec.rank not in (None, len(shape)):
                return False
            return all(allows(dim, size) for dim, size in zip(spec.dims or (), shape, strict=False))


def _spells(spec: LeafSpec, given: Tree[LeafValue]) -> bool:
    """Whether lists of numbers have the rank and sizes of a tensor leaf."""
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
