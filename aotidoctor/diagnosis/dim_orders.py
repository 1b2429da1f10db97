"""Treatments of sizes that the contract does not have: put the dims in its order, or resize them as a proof.

An order fits where all sizes and symbols agree. Several may: a square image given channels last has two. The one that
moves the fewest dims is the likeliest, and the others are named: no run shows which is right, because a reference that
gets the same tensor agrees with the package in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from aotidoctor.diagnosis.treat_tensors import REFUSED, allows, known_sizes
from aotidoctor.diagnosis.treat_values import evidence_of_code, path_of, paths_of, plan_agree, spec_at, tensor_at
from aotidoctor.diagnosis.treatment_steps import TreatmentPlan, leaf_plan, merge_plans, resize_step
from aotidoctor.model.case import Case
from aotidoctor.model.contract import Dim
from aotidoctor.model.evidence import Evidence

# More dims are hardly permuted by mistake, and have too many orders.
MAX_PERMUTED = 6

Order = tuple[int, ...]


def fitting_orders(case: Case, path: str) -> list[Order]:
    """The orders of the dims of ``path`` in which it fits best, those that move the fewest dims first."""
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    dims = spec.dims if spec is not None else None
    if dims is None or tensor is None or len(dims) != len(tensor.shape) or len(dims) > MAX_PERMUTED:
        return []
    shape = tensor.shape
    known = known_sizes(case, path)
    found: dict[object, tuple[int, int, Order]] = {}
    for order in permutations(range(len(shape))):
        sizes = tuple(shape[at] for at in order)
        if order == tuple(sorted(order)) or not all(map(allows, dims, sizes)):
            continue
        # Dims of one element may be anywhere among the others: the tensor is the same.
        same = (sizes, tuple(at for at in order if shape[at] != 1))
        rank = (_disagreements(dims, sizes, known), _moved(order), order)
        found[same] = min(rank, found.get(same, rank))
    least = min((rank[0] for rank in found.values()), default=0)
    return [order for misfits, _, order in sorted(found.values()) if misfits == least]


def _disagreements(dims: Sequence[Dim], sizes: Sequence[int], known: Mapping[str, int]) -> int:
    """How many symbolic sizes are not those of the other tensors, or of another dim."""
    values, count = dict(known), 0
    for dim, size in zip(dims, sizes, strict=True):
        if dim.static is None and dim.expr is not None:
            count += values.setdefault(str(dim.expr), size) != size
    return count


def _moved(order: Order) -> int:
    """How many dims leave their place among the others: all but the longest run that keeps its order."""
    longest = [1] * len(order)
    for at, dim in enumerate(order):
        longest[at] += max((longest[before] for before in range(at) if order[before] < dim), default=0)
    return len(order) - max(longest)


def plan_order(case: Case, path: str) -> TreatmentPlan | None:
    """Put the dims of ``path`` in the likeliest order that fits; None where none does."""
    orders = fitting_orders(case, path)
    if not orders:
        return None
    plan = leaf_plan(
        f"put the dims of {path} in the order {orders[0]}",
        {"op": "permute", "path": path, "dims": [*orders[0]]},
        {"op": "contiguous", "path": path, "stride": None},
    )
    return replace(plan, others=tuple(map(str, orders[1:])))


def plan_permute(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Put dims in an order that fits the contract; where none does, cut or fill them."""
    paths = paths_of(evidence_of_code(findings, "AD-IN-013", "static"))
    plans = [plan_order(case, path) or _resize_one(case, path) for path in paths]
    return merge_plans(plans or [_resize_refused_dim(item) for item in evidence_of_code(findings, REFUSED, "shape")])


def plan_disagreement(case: Case, findings: Sequence[Evidence]) -> TreatmentPlan | None:
    """Put the dims of the first tensor in an order in which all sizes agree; where none does, cut them."""
    paths = paths_of(evidence_of_code(findings, "AD-IN-016", "symbol"))
    for path in paths[:1]:
        known, spec, tensor = known_sizes(case, path), spec_at(case, path), tensor_at(case, path)
        orders = fitting_orders(case, path)
        if spec is None or tensor is None or not orders:
            break
        sizes = [tensor.shape[at] for at in orders[0]]
        if not _disagreements(spec.dims or (), sizes, known):
            return plan_order(case, path)
    return plan_agree(case, findings)


def _resize_refused_dim(item: Evidence) -> TreatmentPlan | None:
    """Resize the dim that an operator refuses: cut it, or repeat its last entry."""
    path, dim, wanted = path_of(item), item.facts.get("dim"), item.facts.get("expected_size")
    if path is None or not isinstance(dim, int) or not isinstance(wanted, int):
        return None
    text = f"cut or fill {path}: dim {dim} from {item.facts.get('size')} to {wanted}"
    return TreatmentPlan(text=text, steps=(resize_step(path, dim, wanted),))


def _resize_one(case: Case, path: str) -> TreatmentPlan | None:
    """Resize each wrong static dim: cut it, or repeat its last entry. A proof, no remedy: no command."""
    spec, tensor = spec_at(case, path), tensor_at(case, path)
    if spec is None or tensor is None or len(spec.dims or ()) != len(tensor.shape):
        return None
    wrong = [
        (at, size, dim.static)
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=True))
        if dim.static not in (None, size)
    ]
    steps = [resize_step(path, at, wanted) for at, _, wanted in wrong]
    strides = spec.strides or ()
    if strides and None not in strides:
        steps.append({"op": "contiguous", "path": path, "stride": [*strides]})
    text = ", ".join(f"dim {at} from {size} to {wanted}" for at, size, wanted in wrong)
    return TreatmentPlan(text=f"cut or fill {path}: {text}", steps=tuple(steps)) if wrong else None
