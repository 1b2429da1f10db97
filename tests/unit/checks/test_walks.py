"""Tensors that kernels do not go through as their shape and strides have it: which are suspected, and which never."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from aotidoctor.checks.matching.kernel_reads import WalkSteps, bears, misfits
from aotidoctor.checks.matching.leaves import TensorPair
from aotidoctor.model.contract import Dim, LeafSpec, Turn, Walk
from aotidoctor.model.expr import Num, Sym
from tests.every import every
from tests.unit.checks.input_builders import tensor


def contiguous(shape):
    return [prod(shape[at + 1 :]) for at in range(len(shape))]


def changed(view: np.ndarray, random: random.Random, kind: str) -> np.ndarray:
    """Another view of the same memory from its first element on, as programs make them."""
    at = random.randrange(view.ndim) if view.ndim else 0
    match kind:
        case "slice":
            keep = [slice(None)] * view.ndim
            keep[at] = slice(0, random.randint(2, max(2, view.shape[at])), random.choice((1, 1, 2)))
            return view[tuple(keep)]
        case "transpose":
            return view.transpose(random.sample(range(view.ndim), view.ndim))
        case "split" if view.shape[at] % 2 == 0:
            shape = [*view.shape[:at], *random.choice([(2, view.shape[at] // 2), (view.shape[at] // 2, 2)])]
            shape += view.shape[at + 1 :]
        case "join" if view.ndim > 1:
            at = random.randrange(view.ndim - 1)
            shape = [*view.shape[:at], view.shape[at] * view.shape[at + 1], *view.shape[at + 2 :]]
        case "row" if view.ndim > 1:
            return view[tuple(0 if one == at else slice(None) for one in range(view.ndim))]
        case _:
            return view
    # numpy says itself whether that needs a copy, which no kernel that reads the input would be given.
    shaped = view.reshape(shape)
    return shaped if np.shares_memory(shaped, view) else view


@every("seed", range(300))
def test_every_view_of_a_tensor_is_borne_by_it(seed):
    choose = random.Random(seed)
    whole = np.zeros([choose.choice((2, 3, 4, 5, 6, 8)) for _ in range(choose.randint(1, 4))], dtype=np.int64)
    if choose.random() < 0.4:
        whole = whole.transpose(choose.sample(range(whole.ndim), whole.ndim))
    view = whole
    for _ in range(choose.randint(0, 3)):
        view = changed(view, choose, choose.choice(("slice", "transpose", "split", "row")))
    for _ in range(choose.randint(0, 2)):
        # What is joined is not divided again: that may cut rows.
        view = changed(view, choose, "join")
    turns = [(size, step // 8) for size, step in zip(view.shape, view.strides, strict=True) if size > 1]
    steps = WalkSteps(start=0, turns=tuple(sorted(turns, key=lambda one: -one[1])), parted=True)
    assert bears(tuple((size, step // 8) for size, step in zip(whole.shape, whole.strides, strict=True)), steps), (
        view.shape
    )


def leaf(*walks: Walk, dims: tuple[Dim, ...] = (), walked: bool = True) -> LeafSpec:
    return LeafSpec(
        index=0, path="args[0]", kind="tensor", input_index=0, dims=dims, strides=(), walks=walks, walked=walked
    )


def walk(*turns, sizes=(), start=0) -> Walk:
    """Turns as (trips, step) or (trips, step, step in the buffer); the buffer is contiguous."""
    return Walk(
        start=start,
        turns=tuple(
            Turn(trips=Num(one[0]), step=Num(one[1]), beside=Num(one[2]) if one[2:] else None) for one in turns
        ),
        sizes=tuple(map(Num, sizes)),
        strides=tuple(map(Num, contiguous(sizes))),
    )


def told(spec: LeafSpec, given) -> tuple[str, int | None] | None:
    found = misfits([TensorPair(spec=spec, path="args[0]", tensor=given)])
    return (found[0].kind, found[0].dim) if found else None


FLAT = walk((21, 1, 1), sizes=(3, 7))
IMAGE = walk((2, 429), (3, 143), (143, 1))


@pytest.mark.parametrize(
    ("spec", "given", "expected"),
    [
        pytest.param(leaf(FLAT), tensor(3, 7), None, id="fits"),
        pytest.param(leaf(FLAT), tensor(21), None, id="as-a-row"),
        pytest.param(leaf(FLAT), tensor(7, 3), None, id="reshaped"),
        pytest.param(leaf(FLAT), tensor(5, 7), None, id="rows-of-it"),
        pytest.param(leaf(FLAT), tensor(3, 7, stride=(1, 3)), ("stride", None), id="transposed"),
        pytest.param(leaf(walk((21, 1))), tensor(3, 7, stride=(1, 3)), None, id="transposed-no-buffer"),
        pytest.param(leaf(FLAT), tensor(3, 8), ("shape", 1), id="wider"),
        pytest.param(leaf(FLAT, walked=False), tensor(3, 8), None, id="read-in-another-way-too"),
        pytest.param(leaf(FLAT, walk((24, 1))), tensor(3, 8), None, id="all-of-it-is-read"),
        pytest.param(leaf(FLAT), tensor(3, 7, 2), ("rank", None), id="a-dim-more"),
        pytest.param(leaf(IMAGE), tensor(2, 3, 11, 13), None, id="image"),
        pytest.param(leaf(IMAGE), tensor(2, 3, 11, 13, stride=(429, 1, 39, 3)), ("stride", None), id="channels-last"),
        pytest.param(leaf(walk((8, 8), (8, 1))), tensor(8, 9), ("shape", 1), id="rows-of-eight"),
        pytest.param(
            leaf(walk((4, 4), (4, 1), sizes=(4, 4))), tensor(4, 4, stride=(1, 4)), None, id="square-transposed"
        ),
        pytest.param(leaf(walk((3, 7), (7, 1), start=2)), tensor(3, 8), None, id="from-somewhere"),
    ],
)
def test_what_is_suspected(spec, given, expected):
    assert told(spec, given) == expected


OWN = (Dim(expr=Sym("s0")),)


@pytest.mark.parametrize(
    ("step", "given", "expected"),
    [
        pytest.param(1, tensor(6), None, id="one-dim"),
        pytest.param(1, tensor(2, 3), ("rank", None), id="two-dims"),
        pytest.param(3, tensor(2, 3), None, id="rows"),
        pytest.param(1, tensor(2, 3, stride=(1, 2)), None, id="rows-of-a-transposed-one"),
        pytest.param(4, tensor(3, 3), None, id="diagonal"),
    ],
)
def test_a_loop_over_the_size_of_its_own_dim(step, given, expected):
    one = Walk(start=0, turns=(Turn(trips=Sym("s0"), step=Num(step)),))
    assert told(leaf(one, dims=OWN), given) == expected
