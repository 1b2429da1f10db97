"""Treatments of single tensors: dtype, device, layout, lazy bits, rank, shape, strides, shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import prod

from aotidoctor.diagnosis.treat_plan import (
    Plan,
    couples,
    each_leaf,
    found,
    merged,
    path_of,
    paths_of,
    spec_at,
    tensor_at,
)
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.json_types import JsonObject

# More dims than this are never permuted by mistake, and their permutations are many.
MAX_PERMUTED = 6
# What an operator of PyTorch says of an input that no check describes.
REFUSED = "AD-RUN-037"


def cast(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Cast each tensor to the dtype of the contract, quantized ones to plain numbers first."""
    items = found(findings, "AD-IN-010", "dtype") or found(findings, REFUSED, "dtype")
    return merged([_cast_one(case, item) for item in items])


def _cast_one(case: Case, item: Evidence) -> Plan | None:
    path = path_of(item)
    wanted = item.facts.get("expected_dtype") or item.expected
    if path is None or not isinstance(wanted, str):
        return None
    tensor = tensor_at(case, path)
    step: JsonObject = {"op": "cast", "path": path, "dtype": wanted}
    if tensor is not None and tensor.quantized:
        whole: JsonObject = {"op": "dense", "path": path}
        return Plan(
            text=f"dequantize {path}", steps=(whole, step), command=f"{path} = {path}.dequantize().to(torch.{wanted})"
        )
    return Plan(text=f"cast {path} to {wanted}", steps=(step,), command=f"{path} = {path}.to(torch.{wanted})")


def restride(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Copy each tensor into the strides of the contract, contiguous where those are not all known."""
    return merged([_restride_one(case, item) for item in found(findings, "AD-IN-014")])


def _restride_one(case: Case, item: Evidence) -> Plan | None:
    path = path_of(item)
    if path is None:
        return None
    strides = _expected_strides(case, item, path)
    tensor = tensor_at(case, path)
    plain = strides is None or (tensor is not None and strides == contiguous_stride(tensor.shape))
    step: JsonObject = {"op": "contiguous", "path": path, "stride": None if plain else [*(strides or ())]}
    if plain:
        return Plan(text=f"make {path} contiguous", steps=(step,), command=f"{path} = {path}.contiguous()")
    copy = f"torch.empty_strided({path}.shape, {strides}, dtype={path}.dtype).copy_({path})"
    return Plan(text=f"copy {path} into strides {strides}", steps=(step,), command=f"{path} = {copy}")


def _expected_strides(case: Case, item: Evidence, path: str) -> tuple[int, ...] | None:
    """All strides as numbers; None when one is not constant and the tensor is meant to be contiguous."""
    value = item.facts.get("expected_stride")
    spec = spec_at(case, path)
    strides = (
        value if isinstance(value, tuple) else spec.strides if spec is not None and spec.rank is not None else None
    )
    if strides is None:
        return None
    known = tuple(step for step in strides if isinstance(step, int))
    return known if len(known) == len(strides) else None


def to_device(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Move each tensor to the device type of the package; a meta tensor, which has no values, becomes zeros there."""
    return merged([_move(item) for item in found(findings, "AD-IN-008")])


def _move(item: Evidence) -> Plan | None:
    path, wanted = path_of(item), item.facts.get("expected_device")
    if path is None or not isinstance(wanted, str):
        return None
    step: JsonObject = {"op": "to", "path": path, "device": wanted}
    if item.kind == "meta":
        text = f"put zeros on {wanted} in place of {path}, which has no values"
        return Plan(text=text, steps=(step,), command=f"{path} = torch.zeros_like({path}, device={wanted!r})")
    return Plan(text=f"move {path} to {wanted}", steps=(step,), command=f"{path} = {path}.to({wanted!r})")


def resolve(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Carry out conj and neg bits."""
    paths = paths_of(found(findings, "AD-IN-011"))
    return each_leaf(paths, "resolve", "resolve the lazy bits of {0}", "{0} = {0}.resolve_conj().resolve_neg()")


def dense(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Sparse and mkldnn to dense. How to pad a nested tensor is the caller's choice."""
    items = found(findings, "AD-IN-007")
    if any(item.kind not in ("sparse", "quantized") for item in items):
        return None
    return merged(
        [
            Plan(
                text=f"make {path} dense",
                steps=({"op": "dense", "path": path},),
                command=f"{path} = {path}.{'dequantize' if item.kind == 'quantized' else 'to_dense'}()",
            )
            for item in items
            if (path := path_of(item)) is not None
        ]
    )


def clone(_case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Give each of the overlapping inputs its own memory."""
    paths = paths_of(found(findings, "AD-IN-018", "overlap"))
    return each_leaf(paths, "clone", "clone {0}", "{0} = {0}.clone()")


def reshape(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Reshape where the number of elements, or what other inputs have, leaves one way; else take out or put in a 1."""
    items = found(findings, "AD-IN-012", "rank")
    return merged(
        [_reshape_one(case, item) for item in items] or [_led(case, item) for item in found(findings, REFUSED)]
    )


def _led(case: Case, item: Evidence) -> Plan | None:
    """As many dims as an operator asks for, by sizes of 1 in front."""
    path, wanted = path_of(item), item.facts.get("expected_rank")
    tensor = tensor_at(case, path)
    if path is None or tensor is None or not isinstance(wanted, int) or wanted <= len(tensor.shape):
        return None
    shape = (1,) * (wanted - len(tensor.shape)) + tensor.shape
    return _reshaped(path, shape)


def _reshaped(path: str, shape: tuple[int, ...], *after: JsonObject) -> Plan:
    step: JsonObject = {"op": "reshape", "path": path, "shape": [*shape]}
    return Plan(text=f"reshape {path} to {shape}", steps=(step, *after), command=f"{path} = {path}.reshape({shape})")


def _reshape_one(case: Case, item: Evidence) -> Plan | None:
    path = path_of(item)
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if path is None or spec is None or spec.dims is None or tensor is None:
        return None
    known = known_sizes(case, path)
    shape = (
        fitting_shape(spec.dims, tensor.numel)
        or _squeezed(spec.dims, tensor.shape, known)
        or _told(spec.dims, tensor.numel, known)
    )
    if shape is not None:
        plan = _reshaped(path, shape, *_grown(path, spec.dims, shape, known))
        # Where the other inputs have another size, the reshape alone does not heal: it is no remedy.
        return plan if _fits(spec.dims, shape, known) else Plan(text=plan.text, steps=plan.steps)
    return _unsqueezed(path, spec.dims, tensor.shape, known)


def _grown(path: str, dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> tuple[JsonObject, ...]:
    """A size brought to the one that another input has, or else up to the least that the package's checks accept."""
    wanted = [
        size if dim.static is not None else known.get(str(dim.expr), max(size, dim.min or 0))
        for dim, size in zip(dims, shape, strict=True)
    ]
    return tuple(
        {"op": "clamp_dim", "path": path, "dim": at, "size": right}
        for at, (right, size) in enumerate(zip(wanted, shape, strict=True))
        if right != size
    )


def _squeezed(dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> tuple[int, ...] | None:
    """``shape`` without one of its sizes of 1, if that fits in one way only."""
    rests = {(*shape[:at], *shape[at + 1 :]) for at, size in enumerate(shape) if size == 1}
    fitting = [rest for rest in rests if len(rest) == len(dims) and _fits(dims, rest, known)]
    return fitting[0] if len(fitting) == 1 else None


def _told(dims: Sequence[Dim], numel: int, known: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape whose every size is static or what the other inputs have, if it has ``numel`` elements."""
    shape = [dim.static if dim.static is not None else known.get(str(dim.expr)) for dim in dims]
    sizes = tuple(size for size in shape if size is not None)
    return sizes if len(sizes) == len(dims) and prod(sizes) == numel else None


def _unsqueezed(path: str, dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> Plan | None:
    """One dimension more, in the first place where the others then fit, as long as the other inputs have it."""
    for at, dim in enumerate(dims):
        size = dim.static if dim.static is not None else known.get(str(dim.expr), 1)
        whole = (*shape[:at], size, *shape[at:])
        if len(whole) == len(dims) and _fits(dims, whole, known):
            steps: tuple[JsonObject, ...] = (
                {"op": "reshape", "path": path, "shape": [*shape[:at], 1, *shape[at:]]},
                {"op": "clamp_dim", "path": path, "dim": at, "size": size},
            )
            return Plan(text=f"repeat {path} along a new dim {at}, to {whole}", steps=steps[: 1 if size == 1 else 2])
    return None


def _fits(dims: Sequence[Dim], shape: Sequence[int], known: Mapping[str, int]) -> bool:
    """Sizes that the dims allow, and that agree with those of the other inputs."""
    pairs = list(zip(dims, shape, strict=True))
    return all(allows(dim, size) and known.get(str(dim.expr), size) == size for dim, size in pairs)


def known_sizes(case: Case, without: str) -> dict[str, int]:
    """The value of each symbolic size, as the inputs other than ``without`` have it."""
    return {
        str(dim.expr): size
        for path, spec, tensor in couples(case)
        if path != without and len(spec.dims or ()) == len(tensor.shape)
        for dim, size in zip(spec.dims or (), tensor.shape, strict=False)
        if dim.expr is not None
    }


def fitting_shape(dims: Sequence[Dim], numel: int) -> tuple[int, ...] | None:
    """The one shape of ``numel`` elements that ``dims`` allow; None when there is none, or a choice."""
    free = [at for at, dim in enumerate(dims) if dim.static is None]
    fixed = prod(dim.static for dim in dims if dim.static is not None)
    if len(free) > 1 or fixed == 0 or numel % fixed or (not free and numel != fixed):
        return None
    rest = numel // fixed
    if free and not allows(dims[free[0]], rest):
        return None
    return tuple(rest if dim.static is None else dim.static for dim in dims)


def allows(dim: Dim, size: int) -> bool:
    """The size is the static one, or inside the compiled range. Below a minimum of 2 a size of 1 still computes."""
    if dim.static is not None:
        return dim.static == size
    low = 1 if dim.min == 2 else dim.min
    return (low is None or size >= low) and (dim.max is None or size <= dim.max)


def permute(case: Case, findings: Sequence[Evidence]) -> Plan | None:
    """Put dims in another order, where exactly one order gives the shape of the contract; else cut or fill them."""
    paths = paths_of(found(findings, "AD-IN-013", "static"))
    plans = [_permute_one(case, path) or _resize_one(case, path) for path in paths]
    return merged(plans or [_resized_as_asked(item) for item in found(findings, REFUSED, "shape")])


def _resized_as_asked(item: Evidence) -> Plan | None:
    """The dim that an operator refuses at the size that it asks for: cut, or filled up with its last entry."""
    path, dim, wanted = path_of(item), item.facts.get("dim"), item.facts.get("expected_size")
    if path is None or not isinstance(dim, int) or not isinstance(wanted, int):
        return None
    step: JsonObject = {"op": "clamp_dim", "path": path, "dim": dim, "size": wanted}
    return Plan(text=f"cut or fill {path}: dim {dim} from {item.facts.get('size')} to {wanted}", steps=(step,))


def _resize_one(case: Case, path: str) -> Plan | None:
    """Each static dim of another size at its own: cut, or filled up with its last entry. No remedy: no command."""
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if spec is None or tensor is None or len(spec.dims or ()) != len(tensor.shape):
        return None
    wrong = [
        (at, size, dim.static)
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=True))
        if dim.static not in (None, size)
    ]
    steps: list[JsonObject] = [{"op": "clamp_dim", "path": path, "dim": at, "size": wanted} for at, _, wanted in wrong]
    strides = spec.strides or ()
    if strides and None not in strides:
        steps.append({"op": "contiguous", "path": path, "stride": [*strides]})
    text = ", ".join(f"dim {at} from {size} to {wanted}" for at, size, wanted in wrong)
    return Plan(text=f"cut or fill {path}: {text}", steps=tuple(steps)) if wrong else None


def _permute_one(case: Case, path: str) -> Plan | None:
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if spec is None or tensor is None:
        return None
    order = fitting_order(spec, tensor.shape)
    if order is None:
        return None
    steps: tuple[JsonObject, ...] = (
        {"op": "permute", "path": path, "dims": [*order]},
        {"op": "contiguous", "path": path, "stride": None},
    )
    return Plan(
        text=f"put the dims of {path} in the order {order}",
        steps=steps,
        command=f"{path} = {path}.permute{order}.contiguous()",
    )


def fitting_order(spec: LeafSpec, shape: Sequence[int]) -> tuple[int, ...] | None:
    """The only permutation of ``shape`` that the dims of ``spec`` allow; None when there is none, or a choice."""
    dims = spec.dims
    if dims is None or len(dims) != len(shape) or len(shape) > MAX_PERMUTED:
        return None
    orders = [
        order
        for order in permutations(range(len(shape)))
        if all(allows(dim, shape[at]) for dim, at in zip(dims, order, strict=True))
    ]
    return orders[0] if len(orders) == 1 else None
