"""From the sizes in a message to the inputs that they come from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, LeafSpec, OutputSpec
from aotidoctor.model.inputs import Container, Leaf, TensorDesc
from aotidoctor.probes import plain_run
from aotidoctor.probes.plain_run import sizes_behind
from tests.unit.probes.outcomes import case, history, raised


def package(leaves, outputs, shapes, **more):
    made = case(**more)
    specs = tuple(
        LeafSpec(
            index=at,
            path=f"args[{at}]",
            kind="tensor",
            input_index=at,
            dims=tuple(Dim(expr=parse_expr(str(size))) for size in sizes),
        )
        for at, sizes in enumerate(leaves)
    )
    results = tuple(OutputSpec(index=at, path="result", dtype="float32", shape=one) for at, one in enumerate(outputs))
    tensors = [Leaf(value=TensorDesc(dtype="float32", shape=one, stride=(1,) * len(one))) for one in shapes]
    contract = replace(made.contract, leaves=specs, outputs=results)
    return replace(
        made, contract=contract, inputs=replace(made.inputs, args=Container(type="tuple", children=tuple(tensors)))
    )


CUBE = package([("s0",)], [("s0", "s0", "s0")], [(3_000_000,)])
TWO = package([("s0", 4), ("s1",)], [("s0", "8*s1")], [(1000, 4), (5000,)])


@pytest.mark.parametrize(
    ("one", "facts", "named"),
    [
        (CUBE, {"sizes": "[3000000, 3000000, 3000000]"}, ("args[0].shape[0]",)),
        (CUBE, {"bytes": str(4 * 3_000_000**3)}, ("args[0].shape[0]",)),
        # A buffer that is no output: only one size can change, and it is a multiple of that.
        (CUBE, {"bytes": str(12 * 3_000_000**2)}, ("args[0].shape[0]",)),
        (CUBE, {"bytes": "4097"}, ()),
        (TWO, {"sizes": "[1000, 40000]"}, ("args[0].shape[0]", "args[1].shape[0]")),
        (TWO, {"sizes": "[5000, 7]"}, ("args[1].shape[0]",)),
        (TWO, {"bytes": str(4 * 1000 * 40000)}, ("args[0].shape[0]", "args[1].shape[0]")),
        # Two sizes can change, and neither is told.
        (TWO, {"bytes": str(1000 * 5000)}, ()),
        (TWO, {}, ()),
        (case(), {"bytes": "4096"}, ()),
    ],
)
def test_sizes(one, facts, named):
    assert sizes_behind(one, facts) == named


def test_an_allocation_that_failed_names_the_size():
    result = raised("Storage size calculation overflowed with sizes=[3000000, 3000000, 3000000] and strides=[9, 3, 1]")
    (item,) = plain_run.read(CUBE, history(), result)
    assert item.subject == "args[0].shape[0]"


def test_an_operator_that_asks_for_too_much_stays_the_subject():
    text = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4503599627370496 bytes."
    (item,) = plain_run.read(case(custom_ops=["zoo::op"]), history(), raised(text))
    assert item.subject == "zoo::op"
