"""A smaller batch against the whole: when the contract allows it, and what the answer says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, LeafSpec, OutputSpec
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.inputs import Container, Leaf, TensorDesc
from aotidoctor.model.jobs import SubBatch
from aotidoctor.model.run import Exited, Request
from aotidoctor.probes import sub_batch
from tests.unit.probes.outcomes import case, history, outcome

OK = outcome(outputs=[[{}]])
NOT_SHARED = "dim 0 is not a size that inputs and outputs share"
NOT_SMALLER = "no smaller batch (s0) is within what was compiled"


def leaf(at, *sizes, low=2):
    dims = tuple(
        Dim(static=size if isinstance(size, int) else None, expr=parse_expr(str(size)), min=None if at else low)
        for at, size in enumerate(sizes)
    )
    return LeafSpec(index=at, path=f"args[{at}]", kind="tensor", input_index=at, rank=len(sizes), dims=dims)


def package(leaves, outputs, shapes, **options):
    made = case(**options)
    described = [TensorDesc(dtype="float32", shape=shape, stride=(1,) * len(shape)) for shape in shapes]
    args = Container(type="tuple", children=tuple(Leaf(value=one) for one in described))
    contract = replace(
        made.contract,
        leaves=tuple(leaf(at, *sizes) for at, sizes in enumerate(leaves)),
        outputs=tuple(OutputSpec(index=at, path=f"result[{at}]", shape=shape) for at, shape in enumerate(outputs)),
    )
    return replace(made, contract=contract, inputs=replace(made.inputs, args=args))


def odd(code="AD-RUN-011", kind="differs", severity=Severity.ERROR):
    return Evidence(code=code, kind=kind, severity=severity, subject=None, observed="", expected="")


BATCH = package([("s0", 16), ("s0",), (16, 16)], [("s0", "4"), ("16",)], [(8, 16), (8,), (16, 16)])


def test_half_of_the_rows_of_all_that_share_the_size():
    request = sub_batch.plan(BATCH, history(odd(), plain_run=OK))
    assert request.payload.sub_batch == SubBatch(rows=4, inputs=("args[0]", "args[1]"), outputs=("result[0]",))


@pytest.mark.parametrize(
    ("leaves", "outputs", "shapes", "why"),
    [
        ([(8, 16)], [("8", "16")], [(8, 16)], NOT_SHARED),
        ([("8*s0",)], [("s0",)], [(32,)], NOT_SHARED),
        ([("s0",)], [("s0", "s0")], [(8,)], NOT_SHARED),
        ([("s0", "s0")], [("s0",)], [(8, 8)], NOT_SHARED),
        ([("s0", 4), ("4*s0",)], [("s0",)], [(8, 4), (32,)], NOT_SHARED),
        ([("s0", 4)], [("2*s0",)], [(8, 4)], NOT_SHARED),
        ([("s0", 4)], [("4",)], [(8, 4)], NOT_SHARED),
        ([("s0", 4)], [("s0", "4")], [(2, 4)], NOT_SMALLER),
        ([("s0",), ("s0",)], [("s0",)], [(8,), (4,)], NOT_SMALLER),
    ],
)
def test_unasked_where_dim_0_is_no_shared_size(leaves, outputs, shapes, why):
    answer = sub_batch.plan(package(leaves, outputs, shapes), history(odd(), plain_run=OK))
    assert isinstance(answer, NotChecked)
    assert answer.reason == why


def test_never_one_row_and_never_below_the_compiled_bound():
    small = package([("s0",)], [("s0",)], [(3,)])
    assert sub_batch.plan(small, history(odd(), plain_run=OK)).payload.sub_batch.rows == 2
    bound = package([("s0",)], [("s0",)], [(8,)])
    bound = replace(bound, contract=replace(bound.contract, leaves=(leaf(0, "s0", low=6),)))
    assert sub_batch.plan(bound, history(odd(), plain_run=OK)).payload.sub_batch.rows == 6


@pytest.mark.parametrize(
    ("findings", "options"),
    [
        ((), {"localize": True}),
        ((), {"rungs": ("sub_batch",)}),
        ((odd("AD-RUN-002"),), {}),
        ((odd("AD-RUN-009", "depends"),), {}),
        ((odd("AD-OUT-001", "batch-norm"),), {}),
    ],
)
def test_asked_on_suspicion_or_by_name(findings, options):
    one = package([("s0", 16)], [("s0",)], [(8, 16)], **options)
    assert isinstance(sub_batch.plan(one, history(*findings, plain_run=OK)), Request)


@pytest.mark.parametrize(
    ("findings", "why"),
    [
        ((), "the numbers are not suspicious"),
        ((odd("AD-RUN-002", severity=Severity.INFO),), "the numbers are not suspicious"),
        ((odd("AD-RUN-011", "agrees", Severity.INFO),), "the numbers are not suspicious"),
        ((odd(), odd("AD-IN-010", "x")), "a static finding already explains wrong numbers"),
    ],
)
def test_unasked_where_nothing_is_suspicious_or_all_is_explained(findings, why):
    answer = sub_batch.plan(package([("s0", 16)], [("s0",)], [(8, 16)]), history(*findings, plain_run=OK))
    assert isinstance(answer, NotChecked)
    assert answer.reason.startswith(why)


@pytest.mark.parametrize(
    ("told", "kind", "subject"),
    [
        ({"repeatable": True, "agrees": True, "outputs": []}, "same", None),
        (
            {
                "repeatable": True,
                "agrees": False,
                "outputs": [
                    {"path": "result[0]", "agrees": True, "max_abs_diff": 0.0},
                    {"path": "result[1]", "agrees": False, "max_abs_diff": 0.5},
                ],
            },
            "differs",
            "result[1]",
        ),
        ({"repeatable": False, "agrees": False, "outputs": []}, "undecided", None),
    ],
)
def test_is_information_whatever_it_says(told, kind, subject):
    result = outcome(result={"sub_batch": {"rows": 4, "of": 8, **told}})
    (item,) = sub_batch.read(BATCH, history(), result)
    assert (item.kind, item.subject, item.severity) == (kind, subject, Severity.INFO)


def test_a_smaller_batch_that_fails_is_information():
    """The call was made up: indices may refer to rows that were cut off."""
    (item,) = sub_batch.read(BATCH, history(), outcome(ending=Exited(code=1, done=False), stage="run2"))
    assert (item.kind, item.severity) == ("undecided", Severity.INFO)
