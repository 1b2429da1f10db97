"""Walk, describe and compare tensors of calls and results, leaf by leaf.

Leaves come in torch's flattening order, with the user's names for them. A description is JSON: dtype and layout of a
tensor, its values, the memory that it shares. A comparison covers structure, dtype, shape, the places of NaN, and the
distance of the values.

Against a reference a leaf *agrees* within the requested tolerance, else within a few roundings of its dtype
(``_CLOSE``, relative to the element and to the median magnitude of the tensor). A leaf that does not is judged by the
float64 run; where there is none, ``loosely`` is whether it is at least within the tolerance that two correct programs
may need.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._pytree import SUPPORTED_NODES

from aotidoctor.model.answers import ComparedOutput
from aotidoctor.model.case import GRID, Tolerances


def describe(path: str, tensor: Any, *, values: bool) -> dict[str, Any]:
    """``path``, ``dtype``, ``shape``, ``stride``, ``device``, ``numel``; with ``values`` also those of ``stats``.

    Shape and stride are None where the layout has none (nested, sparse).
    """
    facts: dict[str, Any] = {
        "path": path,
        "dtype": dtype_name(tensor),
        "shape": _ints(lambda: tensor.shape),
        "stride": _ints(tensor.stride),
        "device": str(tensor.device),
        "numel": int(tensor.numel()),
    }
    return facts | (value_counts(tensor) if values else {})


def dtype_name(tensor: Any) -> str:
    """``float32`` of a float32 tensor."""
    return short_name(tensor.dtype)


def short_name(dtype: Any) -> str:
    """``float32`` of ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def value_counts(tensor: Any) -> dict[str, Any]:
    """``nan`` and ``inf`` counts, and ``min``, ``max``, ``mean`` over the finite values (None when there are none).

    Counts and bounds are None for tensors without readable values (meta, nested).
    """
    unknown = dict.fromkeys(("nan", "inf", "min", "max", "mean"))
    try:
        # On the host: the device's kernels may be wrong, or its memory short.
        return _stats(dense(tensor).cpu()) if tensor.device.type != "meta" else unknown
    except (RuntimeError, NotImplementedError, TypeError):
        return unknown


def dense(tensor: Any) -> Any:
    """The values as a plain strided tensor: dequantised, densified, lazy bits resolved, without gradient."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def _stats(tensor: Any) -> dict[str, Any]:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    nan = inf = 0
    if tensor.is_floating_point():
        finite = torch.isfinite(tensor)
        bad = tensor.numel() - int(finite.sum())
        if bad:
            nan = int(torch.isnan(tensor).sum())
            inf = bad - nan
            tensor = tensor[finite]
    elif tensor.dtype is torch.bool or not tensor.dtype.is_signed:
        tensor = tensor.to(torch.int64)
    if tensor.numel() == 0:
        return {"nan": nan, "inf": inf, "min": None, "max": None, "mean": None}
    low, high = torch.aminmax(tensor)
    mean = torch.mean(tensor, dtype=torch.float64) if tensor.is_floating_point() else tensor.double().mean()
    return {"nan": nan, "inf": inf, "min": low.item(), "max": high.item(), "mean": mean.item()}


def digest(tensor: Any) -> str | None:
    """SHA-256 of the values' bytes in index order; None for a tensor without any (meta, nested, opaque)."""
    try:
        flat = tensor.detach()
        if flat.device.type == "meta":
            return None
        flat = flat.int_repr() if flat.is_quantized else dense(flat)
        flat = flat.cpu().contiguous().reshape(-1)
        size = flat.numel() * flat.element_size()
        if size == 0:
            return hashlib.sha256(b"").hexdigest()
        data = (ctypes.c_char * size).from_address(flat.data_ptr())
        return hashlib.sha256(data).hexdigest()
    except (RuntimeError, NotImplementedError, TypeError, torch.OutOfMemoryError):
        return None


def storage_address(tensor: Any) -> int:
    """Address of the memory that holds the values; 0 when there is none."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def nbytes(tensor: Any) -> int:
    """Bytes of the values; 0 for a layout without a size."""
    try:
        return int(tensor.numel() * tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return 0


def _ints(read: Callable[[], Iterable[Any]]) -> list[int] | None:
    try:
        return [int(number) for number in read()]
    except (RuntimeError, NotImplementedError):
        return None


# Leaves of a call or of a result.
Visit = Callable[[str, Any], Any]


def iterate_leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield ``(path, leaf)``. A dict in insertion order and a namedtuple by field, as torch's pytree does."""
    for key, child in children(value, path):
        if key is None:
            yield path, child
        else:
            yield from iterate_leaves(child, key)


def walk_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Leaves of a call: ``args[...]`` first, then ``kwargs[...]``."""
    return [*iterate_leaves(tuple(args), "args"), *iterate_leaves(dict(kwargs), "kwargs")]


def tensors(value: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The leaves that are tensors."""
    return [(path, leaf) for path, leaf in value if isinstance(leaf, torch.Tensor)]


def result_tensors(result: Any) -> list[tuple[str, Any]]:
    """Paths and tensors of the result of a call."""
    return tensors(list(iterate_leaves(result, "result")))


def children(value: Any, path: str) -> list[tuple[str | None, Any]]:
    """Paths and values of the children; a leaf is its own child, with None for its path."""
    if isinstance(value, dict | OrderedDict | defaultdict):
        return [(f"{path}[{key!r}]", child) for key, child in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f"{path}.{name}", child) for name, child in zip(value._fields, value, strict=True)]
    if type(value) in (list, tuple):
        return [(f"{path}[{index}]", child) for index, child in enumerate(value)]
    # Children of a type that is registered with torch's pytree; anything else is a leaf.
    node = SUPPORTED_NODES.get(type(value))
    if node is None:
        return [(None, value)]
    parts, _ = node.flatten_fn(value)
    return [(f"{path}[{index}]", child) for index, child in enumerate(parts)]


def rebuild(value: Any, path: str, visit: Visit) -> Any:
    """The same structure with each leaf replaced by ``visit(path, leaf)``."""
    below = children(value, path)
    if [key for key, _ in below] == [None]:
        return visit(path, value)
    new = [rebuild(child, str(key), visit) for key, child in below]
    if isinstance(value, dict):
        # A library's own mapping may forbid `update` (`ModelOutput` does): it is put together as pytree does it.
        if type(value) in (dict, OrderedDict, defaultdict):
            made = value.copy()
            made.update(zip(value, new, strict=True))
            return made
        return _rebuilt_registered(value, new) if type(value) in SUPPORTED_NODES else dict(zip(value, new, strict=True))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*new)
    if type(value) in (list, tuple):
        return type(value)(new)
    return _rebuilt_registered(value, new)


def _rebuilt_registered(value: Any, new: list[Any]) -> Any:
    node = SUPPORTED_NODES[type(value)]
    return node.unflatten_fn(new, node.flatten_fn(value)[1])


def rebuild_result(result: Any, visit: Visit) -> Any:
    """``rebuild`` the result of a call; if a library's class refuses that, a list of the leaves.

    Results are only compared leaf by leaf, so the list is enough.
    """
    try:
        return rebuild(result, "result", visit)
    except Exception:
        return [visit(path, leaf) for path, leaf in iterate_leaves(result, "result")]


def copy_result(result: Any) -> Any:
    """A copy of a result, whose memory another call may use."""
    return rebuild_result(result, lambda _, leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf)


# Two results. Relative to the value, and to the largest value of the tensor. They allow for another order of summation,
# which moves results of a long reduction by far more than one rounding.
_TOLERANCE = {"float64": 1e-7, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
# A value larger than this many times the median is left out there: it is a mask (-1e9), and would hide the rest.
_OUTLIER = 1000.0


def compare_results(ours: Any, theirs: Any) -> dict[str, Any]:
    """``agrees``, ``same_structure`` and ``outputs``, one object per leaf; ``ours`` is the package's result."""
    return _compare_structures(ours, theirs, lambda path, _, mine, other: compare_leaf(path, mine, other))


def _compare_structures(
    ours: Any, theirs: Any, compare: Callable[[str, int, Any, Any], dict[str, Any]], *, alike: bool = True
) -> dict[str, Any]:
    """``compare`` gets the path and the place of a leaf of both; without ``alike`` the structures differ anyway."""
    left, right = dict(iterate_leaves(ours, "result")), dict(iterate_leaves(theirs, "result"))
    places = {path: at for at, path in enumerate(right)}
    leaves = [compare(path, places[path], left[path], right[path]) for path in left if path in right]
    same = alike and list(left) == list(right)
    return {
        "agrees": same and all(leaf["agrees"] for leaf in leaves),
        "same_structure": same,
        "missing": sorted(right.keys() - left.keys()),
        "extra": sorted(left.keys() - right.keys()),
        "outputs": leaves,
    }


def leaf_output(leaf: dict[str, Any]) -> ComparedOutput:
    """The facts of one leaf as the parent reads them."""
    return ComparedOutput(
        path=leaf["path"], agrees=leaf["agrees"], what=leaf["what"], max_abs_diff=leaf.get("max_abs_diff")
    )


def compare_leaf(path: str, ours: Any, theirs: Any) -> dict[str, Any]:
    """One leaf: ``agrees``, ``what`` differs first (type, dtype, shape, nan, values), and the measure of it."""
    if not (isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor)):
        same = type(ours) is type(theirs) and repr(ours) == repr(theirs)
        return {"path": path, "agrees": same, "what": None if same else "type"}
    facts: dict[str, Any] = {
        "path": path,
        "dtype": [dtype_name(ours), dtype_name(theirs)],
        "shape": [list(ours.shape), list(theirs.shape)],
    }
    if ours.shape != theirs.shape:
        return facts | {"agrees": False, "what": "shape"}
    values = _compare_values(dense(ours).cpu(), dense(theirs).cpu())
    if ours.dtype != theirs.dtype:
        return facts | values | {"agrees": False, "what": "dtype"}
    return facts | values


def _compare_values(ours: Any, theirs: Any) -> dict[str, Any]:
    relative = wider_tolerance(_TOLERANCE, ours, theirs)
    if ours.is_complex() or theirs.is_complex():
        ours, theirs = torch.view_as_real(ours.to(torch.complex128)), torch.view_as_real(theirs.to(torch.complex128))
    left, right = ours.double(), theirs.double()
    nan_left, nan_right = torch.isnan(left), torch.isnan(right)
    plain = ~(nan_left | nan_right) & (left != right)
    difference = torch.where(plain, (left - right).abs(), torch.zeros_like(left)).nan_to_num(nan=torch.inf)
    # The largest magnitude, outliers left out.
    usable = (right != 0) & torch.isfinite(right)
    sizes = right[usable].abs()
    scale = min(float(sizes.max()), _OUTLIER * float(sizes.median())) if sizes.numel() else 0.0
    absolute = relative * scale
    far = difference > absolute + relative * torch.where(torch.isfinite(right), right, 0).abs()
    nan_same = bool((nan_left == nan_right).all())
    agrees = nan_same and not bool(far.any())
    return {
        "agrees": agrees,
        "what": None if agrees else ("values" if nan_same else "nan"),
        "rtol": relative,
        "atol": absolute,
        "numel": left.numel(),
        "far": int(far.sum()),
        "max_abs_diff": float(difference.max()) if difference.numel() else 0.0,
        "max_rel_diff": float((difference[usable] / sizes).max()) if sizes.numel() else 0.0,
        "nan": [int(nan_left.sum()), int(nan_right.sum())],
        "inf": [int(torch.isinf(left).sum()), int(torch.isinf(right).sum())],
    }


def wider_tolerance(tolerances: Mapping[str, float], ours: Any, theirs: Any) -> float:
    """The wider tolerance of the two dtypes; of complex numbers that of their parts; 0 for integers."""
    dtypes = (ours.dtype.to_real(), theirs.dtype.to_real())
    return max(tolerances.get(short_name(one), 0.1 if one.is_floating_point else 0.0) for one in dtypes)


# Outputs of a package against those of its reference. As torch.testing.assert_close has them.
_CLOSE = {"float64": 1e-7, "float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


def compare_outputs(ours: Any, theirs: Any, tolerances: Tolerances) -> dict[str, Any]:
    """``agrees``, ``same_structure``, ``missing``, ``extra``, ``containers`` and ``outputs``, one object per leaf."""

    def compare(path: str, at: int, mine: Any, other: Any) -> dict[str, Any]:
        return _compare_to_reference(path, mine, other, tolerances.of(path, at))

    containers = [_containers(ours), _containers(theirs)]
    alike = containers[0] == containers[1]
    unused = tolerances.missing_outputs([path for path, _ in iterate_leaves(theirs, "result")])
    facts = {"containers": None if alike else containers, "unused_tolerances": list(unused)}
    return facts | _compare_structures(ours, theirs, compare, alike=alike)


def leave_open_sizes(facts: dict[str, Any], program: Any) -> None:
    """Leave undecided an output of another size where its values decide the size: rounding before ``unique`` moves it.

    ``program`` is the exported program whose outputs these are, None without one.
    """
    shapes = [leaf for leaf in facts["outputs"] if leaf["what"] == "shape"]
    names = program.graph_signature.user_outputs if program is not None and shapes else ()
    if len(names) != len(facts["outputs"]):
        return
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    for leaf, name in zip(facts["outputs"], names, strict=True):
        made = values.get(name)
        if leaf in shapes and isinstance(made, torch.Tensor) and free_unbacked_symbols(made.shape):
            reason = "values decide how many elements it has, and rounding may move them"
            leaf |= {"what": "values", "judged": "unknown", "loosely": False, "asked": False, "reason": reason}


def settle_verdicts(facts: dict[str, Any]) -> None:
    """Set the ``verdict`` of each leaf, from that of the float64 run (``judged``), and ``agrees`` of the whole."""
    for leaf in facts["outputs"]:
        if leaf["agrees"]:
            leaf["verdict"] = "agrees"
        elif leaf["what"] not in ("values", "nan"):
            leaf["verdict"] = leaf["what"]
        elif leaf.get("judged") in (None, "unknown") and leaf["loosely"] and not leaf["asked"]:
            leaf["verdict"] = "agrees"
        else:
            leaf["verdict"] = leaf.get("judged") or "unknown"
        leaf["agrees"] = leaf["verdict"] in ("agrees", "both-within", "reference-imprecise")
    facts["agrees"] = facts["same_structure"] and all(leaf["agrees"] for leaf in facts["outputs"])


def _compare_to_reference(path: str, ours: Any, theirs: Any, requested: tuple[float, float] | None) -> dict[str, Any]:
    ours, theirs = _as_tensor(ours, theirs), _as_tensor(theirs, ours)
    loose = compare_leaf(path, ours, theirs)
    if loose["what"] in ("type", "shape") or not isinstance(theirs, torch.Tensor):
        return {**loose, "loosely": loose["agrees"], "asked": requested is not None}
    left, right = flat_doubles(ours), flat_doubles(theirs)
    if requested is not None:
        rtol, atol = requested
    else:
        # The tolerance of the coarser dtype; none for integers.
        rtol = wider_tolerance(_CLOSE, ours, theirs)
        size = right[right.isfinite() & (right != 0)].abs()
        atol = rtol * float(size.median()) if size.numel() else 0.0
    same = (left == right) | (left.isnan() & right.isnan())
    near = left.isfinite() & right.isfinite() & ((left - right).abs() <= atol + rtol * right.abs())
    needed = [[point, needed_atol(left, right, point)] for point in GRID]
    agrees = loose["what"] != "dtype" and needed_atol(left, right, rtol) <= atol
    return {
        **loose,
        "agrees": agrees,
        "what": None if agrees else loose["what"] or "values",
        "rtol": rtol,
        "atol": atol,
        "far": int((~(same | near)).sum()),
        "loosely": loose["agrees"],
        "asked": requested is not None,
        "needed": needed,
    }


def needed_atol(left: Any, right: Any, rtol: float) -> float:
    """The smallest atol with which all elements agree at this rtol; inf where NaN or Inf are at other places."""
    same = (left == right) | (left.isnan() & right.isnan())
    if not bool((same | (left.isfinite() & right.isfinite())).all()):
        return float("inf")
    excess = torch.where(same, 0.0, (left - right).abs() - rtol * right.abs())
    return max(0.0, float(excess.max())) if excess.numel() else 0.0


def real_parts(tensor: Any) -> Any:
    """The plain tensor on the CPU, complex numbers as pairs."""
    tensor = dense(tensor).cpu()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def flat_doubles(tensor: Any) -> Any:
    """The numbers in one dimension, of complex ones both parts."""
    return real_parts(tensor).double().reshape(-1)


def _as_tensor(value: Any, other: Any) -> Any:
    """A number as a tensor where the other side has a tensor without dims: packages return tensors only."""
    if isinstance(value, bool | int | float) and isinstance(other, torch.Tensor) and other.dim() == 0:
        return torch.tensor(value, dtype=other.dtype)
    return value


def _containers(value: Any) -> str:
    """Types of the lists, tuples and dicts around the leaves."""
    return str(pytree.tree_structure(value)).replace("\n", "")
