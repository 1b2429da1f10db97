"""Faults that users make with the inputs of any model, and the causes that are right for each.

Every function gets the sample's leaves and yields ``Fault``s; nothing of aotidoctor is asked.
"""

from __future__ import annotations

import copy
import json
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_unflatten


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``causes`` are right at rank 1; ``subjects`` are the paths of leaves, any of which is right (empty: no leaf)."""

    name: str
    args: tuple
    kwargs: dict
    causes: tuple[str, ...]
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    path: str
    tensor: torch.Tensor
    number: int


@dataclass(slots=True)
class Sample:
    args: tuple
    kwargs: dict
    facts: dict
    leaves: list[Leaf] = field(default_factory=list)

    def __post_init__(self):
        flat, _ = tree_flatten_with_path((self.args, self.kwargs))
        for number, (path, value) in enumerate(flat):
            if isinstance(value, torch.Tensor):
                name = ("args" if path[0].idx == 0 else "kwargs") + keystr(path[1:])
                self.leaves.append(Leaf(path=name, tensor=value, number=number))

    def with_leaf(self, number: int, value) -> tuple[tuple, dict]:
        flat, spec = torch.utils._pytree.tree_flatten((self.args, self.kwargs))
        flat = list(flat)
        flat[number] = value
        return tree_unflatten(flat, spec)

    def sizes(self, leaf: Leaf) -> list[str] | None:
        """The symbolic shape of a leaf, as the program has it."""
        users = self.facts["users"]
        return users[leaf.number]["shape"] if leaf.number < len(users) else None


def _fault(sample: Sample, leaf: Leaf, name: str, value, *causes: str, also: tuple[str, ...] = ()) -> Fault:
    args, kwargs = sample.with_leaf(leaf.number, value)
    return Fault(name=f"{name}:{leaf.path}", args=args, kwargs=kwargs, causes=causes, subjects=(leaf.path, *also))


def _dtypes(sample: Sample) -> Iterator[Fault]:
    for leaf in sample.leaves:
        tensor = leaf.tensor
        if tensor.dtype == torch.int64:
            yield _fault(sample, leaf, "int32", tensor.int(), "input-dtype")
            yield _fault(sample, leaf, "float_ids", tensor.float(), "input-dtype")
        elif tensor.dtype == torch.float32:
            yield _fault(sample, leaf, "float64", tensor.double(), "input-dtype")
            yield _fault(sample, leaf, "float16", tensor.half(), "input-dtype")
        else:
            yield _fault(sample, leaf, "float32", tensor.float(), "input-dtype")


def _ranks(sample: Sample) -> Iterator[Fault]:
    for leaf in sample.leaves:
        yield _fault(sample, leaf, "rank_up", leaf.tensor.unsqueeze(0), "input-rank")
        if leaf.tensor.dim() > 1:
            yield _fault(sample, leaf, "rank_down", leaf.tensor[0].clone(), "input-rank")


def _layouts(sample: Sample) -> Iterator[Fault]:
    for leaf in sample.leaves:
        tensor = leaf.tensor
        if tensor.dim() >= 2 and min(tensor.shape[-2:]) > 1:
            yield _fault(
                sample, leaf, "non_contiguous", tensor.transpose(-1, -2).contiguous().transpose(-1, -2), "input-stride"
            )
            if tensor.shape[-1] != tensor.shape[-2]:
                yield _fault(
                    sample,
                    leaf,
                    "transposed",
                    tensor.transpose(-1, -2),
                    "input-stride",
                    "input-shape",
                    "input-shape-disagree",
                    "input-range",
                )
        if tensor.dim() == 4 and tensor.shape[1] > 1:
            yield _fault(
                sample, leaf, "channels_last", tensor.contiguous(memory_format=torch.channels_last), "input-stride"
            )
            yield _fault(sample, leaf, "nhwc", tensor.permute(0, 2, 3, 1).contiguous(), "input-shape")


def _sizes(sample: Sample) -> Iterator[Fault]:
    for leaf in sample.leaves:
        shape = sample.sizes(leaf)
        if shape is None:
            continue
        for dim, size in enumerate(shape):
            if size.isdigit() and int(size) > 1:
                value = leaf.tensor.narrow(dim, 0, int(size) - 1).clone()
                yield _fault(sample, leaf, f"static_dim{dim}", value, "input-shape")
                break
        for dim, size in enumerate(shape):
            others = [other for other in sample.leaves if other is not leaf and size in (sample.sizes(other) or ())]
            if not size.isdigit() and others and leaf.tensor.shape[dim] > 2:
                value = leaf.tensor.narrow(dim, 0, leaf.tensor.shape[dim] - 1).clone()
                yield _fault(sample, leaf, f"disagree_dim{dim}", value, "input-shape-disagree", "input-shape", "input-divisibility",
                             also=tuple(other.path for other in others))  # fmt: skip
                break


def _values(sample: Sample) -> Iterator[Fault]:
    for leaf in sample.leaves:
        tensor = leaf.tensor
        bound = sample.facts["index_bounds"].get(leaf.path)
        if bound is not None and tensor.numel():
            high, low = tensor.clone(), tensor.clone()
            high.view(-1)[-1] = bound
            low.view(-1)[0] = -bound - 7
            yield _fault(sample, leaf, "index_high", high, "index-out-of-range")
            yield _fault(sample, leaf, "index_low", low, "index-out-of-range")
        if tensor.is_floating_point():
            spoilt = tensor.clone()
            spoilt.view(-1)[spoilt.numel() // 2] = float("nan")
            yield _fault(sample, leaf, "nan", spoilt, "input-nan")
        yield _fault(sample, leaf, "none", None, "input-nontensor", "input-tree", "input-count")
        yield _fault(sample, leaf, "meta", tensor.to("meta"), "input-layout", "input-device")
        if tensor.dim() >= 2:
            yield _fault(sample, leaf, "list", tensor.tolist(), "input-nontensor", "input-tree", "input-count")


def _calls(sample: Sample) -> Iterator[Fault]:
    for name in sample.kwargs:
        rest = {key: value for key, value in sample.kwargs.items() if key != name}
        yield Fault(
            name=f"missing:{name}",
            args=sample.args,
            kwargs=rest,
            causes=("input-kwargs", "input-count"),
            subjects=(f"kwargs['{name}']",),
        )
        if isinstance(sample.kwargs[name], torch.Tensor):
            renamed = {(f"{key}s" if key == name else key): value for key, value in sample.kwargs.items()}
            yield Fault(name=f"renamed:{name}", args=sample.args, kwargs=renamed, causes=("input-kwargs",),
                        subjects=(f"kwargs['{name}']", f"kwargs['{name}s']"))  # fmt: skip
    if sample.kwargs:
        extra = {**sample.kwargs, "return_dict": True}
        yield Fault(
            name="extra",
            args=sample.args,
            kwargs=extra,
            causes=("input-kwargs", "input-count"),
            subjects=("kwargs['return_dict']",),
        )
        yield Fault(
            name="positional",
            args=(*sample.args, *sample.kwargs.values()),
            kwargs={},
            causes=("input-kwargs", "input-tree"),
        )
    if len(sample.args) > 1:
        yield Fault(name="dropped", args=sample.args[:-1], kwargs=sample.kwargs, causes=("input-count", "input-tree"))
        yield Fault(
            name="nested", args=(list(sample.args),), kwargs=sample.kwargs, causes=("input-tree", "input-count")
        )
    if len(sample.args) >= 1:
        yield Fault(
            name="one_more",
            args=(*sample.args, copy.copy(sample.args[-1])),
            kwargs=sample.kwargs,
            causes=("input-count", "input-tree"),
        )


def _order(sample: Sample) -> Iterator[Fault]:
    for first, second in zip(sample.leaves, sample.leaves[1:], strict=False):
        alike = first.tensor.shape == second.tensor.shape and first.tensor.dtype == second.tensor.dtype
        if alike:
            continue
        flat, spec = torch.utils._pytree.tree_flatten((sample.args, sample.kwargs))
        flat = list(flat)
        flat[first.number], flat[second.number] = flat[second.number], flat[first.number]
        args, kwargs = tree_unflatten(flat, spec)
        yield Fault(
            name=f"swapped:{first.path}",
            args=args,
            kwargs=kwargs,
            causes=("input-order", "input-shape-disagree"),
            subjects=(first.path, second.path),
        )


GROUPS: tuple[Callable[[Sample], Iterator[Fault]], ...] = (_dtypes, _values, _calls, _sizes, _layouts, _ranks, _order)


def faults(args: tuple, kwargs: dict, facts: dict, *, turn: int, count: int) -> list[Fault]:
    """``count`` faults of the sample, by turns from each group, starting elsewhere for each model (``turn``)."""
    sample = Sample(args=args, kwargs=kwargs, facts=facts)
    groups = [list(group(sample)) for group in GROUPS]
    found: list[Fault] = []
    step = 0
    while len(found) < count and any(groups):
        group = groups[(turn + step) % len(groups)]
        step += 1
        if group:
            found.append(group.pop(turn % len(group)))
    return found


def write(folder: Path, base: Path, *, count: int, turn: int) -> None:
    """The inputs of ``count`` faults of the model in ``base``, and ``faults.json`` that says which they are."""
    facts = json.loads((base / "facts.json").read_text())
    if (base / "setup.py").exists():
        runpy.run_path(str(base / "setup.py"))
    value = torch.load(base / "sample0.pt", weights_only=False)
    made = []
    for number, fault in enumerate(faults(value["args"], value["kwargs"], facts, turn=turn, count=count)):
        path = folder / f"fault{number}.pt"
        torch.save({"args": fault.args, "kwargs": fault.kwargs}, path)
        made.append({"name": fault.name, "inputs": str(path), "causes": fault.causes, "subjects": fault.subjects})
    (folder / "faults.json").write_text(json.dumps(made, indent=1))
