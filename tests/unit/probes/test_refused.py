"""Which input an operator refused: messages as PyTorch 2.6 to 2.13 raise them, with inputs of which one may be meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.treatments import plan_treatment
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.inputs import Container, InputSet, Leaf
from aotidoctor.probes import refused_operator
from aotidoctor.probes.probe import Reuse
from aotidoctor.probes.probe import evidence as made
from tests.unit.checks.input_builders import tensor
from tests.unit.probes.outcomes import case, history, raised

WEIGHTS = (ConstantSpec(name="w", original_fqn="w", dtype="float32", shape=(20, 12)),)


def asked(*given, constants=WEIGHTS):
    children = tuple(Leaf(value=one) for one in given)
    inputs = replace(case().inputs, args=Container(type="tuple", children=children))
    assert isinstance(inputs, InputSet)
    base = case()
    return replace(base, inputs=inputs, contract=replace(base.contract, constants=constants))


def read(message, *given, **more):
    """Kind and subject of the finding, and the steps of the treatment that it leads to."""
    plain = raised(message)
    first = made("AD-RUN-001", "raised", Severity.ERROR, plain, observed=message, expected="", facts={"line": message})
    seen = replace(history(plain_run=plain), findings=(first,))
    what = asked(*given, **more)
    assert isinstance(refused_operator.plan(what, seen), Reuse)
    found = refused_operator.read(what, seen, plain)
    if not found:
        return None
    plan = plan_treatment(f"input-{found[0].kind}", what, found)
    return found[0].kind, found[0].subject, plan.steps[0] if plan is not None else None


X, Y = tensor(5, 12), tensor(5, 20)
PRODUCT = "mat1 and mat2 shapes cannot be multiplied (5x13 and 12x20)"
DTYPE = "mat1 and mat2 must have the same dtype, but got Double and Float"


def cut(path, dim, size):
    return {"op": "clamp_dim", "path": path, "dim": dim, "size": size}


def shaped(path, *shape):
    return {"op": "reshape", "path": path, "shape": list(shape)}


@pytest.mark.parametrize(
    ("message", "given", "expected"),
    [
        pytest.param(PRODUCT, (tensor(5, 13), Y), ("shape", "args[0].shape[1]", cut("args[0]", 1, 12)), id="columns"),
        pytest.param(PRODUCT, (Y, tensor(1, 5, 13)), ("shape", "args[1].shape[2]", cut("args[1]", 2, 12)), id="batch"),
        pytest.param(PRODUCT, (tensor(5, 9), tensor(12, 20)), ("shape", "args[1].shape[0]", cut("args[1]", 0, 13))),
        pytest.param(
            "Expected size for first two dimensions of batch2 tensor to be: [2, 8] but got: [2, 9].",
            (tensor(2, 9, 4), tensor(2, 7, 8)),
            ("shape", "args[0].shape[1]", cut("args[0]", 1, 8)),
            id="batches",
        ),
        pytest.param(
            "mat1 must be a matrix, got 1-D tensor", (tensor(12), Y), ("rank", "args[0]", shaped("args[0]", 1, 12))
        ),
        pytest.param(
            "linalg.qr: The input tensor A must have at least 2 dimensions.",
            (tensor(3, 3), tensor(8)),
            ("rank", "args[1]", shaped("args[1]", 1, 8)),
        ),
        pytest.param(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
            (X, tensor(8)),
            ("rank", "args[1]", shaped("args[1]", 1, 8)),
        ),
        pytest.param(
            "Dimension out of range (expected to be in range of [-2, 1], but got -4)",
            (X, tensor(8)),
            ("rank", "args[0]", shaped("args[0]", 1, 1, 5, 12)),
        ),
        pytest.param(
            DTYPE,
            (tensor(5, 12, dtype="float64"), Y),
            ("dtype", "args[0]", {"op": "cast", "path": "args[0]", "dtype": "float32"}),
        ),
        pytest.param(
            "expected m1 and m2 to have the same dtype, but got: float != c10::Half",
            (tensor(5, 12, dtype="float16"), Y),
            ("dtype", "args[0]", {"op": "cast", "path": "args[0]", "dtype": "float32"}),
            id="a-name-of-c10",
        ),
        pytest.param(
            "expected scalar type Float but found Half",
            (tensor(5, 12, dtype="float16"), Y),
            ("dtype", "args[0]", {"op": "cast", "path": "args[0]", "dtype": "float32"}),
        ),
    ],
)
def test_the_one_input_that_can_be_meant(message, given, expected):
    assert read(message, *given) == expected


@pytest.mark.parametrize(
    ("message", "given"),
    [
        pytest.param(PRODUCT, (tensor(5, 13), tensor(5, 13)), id="two-of-them"),
        pytest.param(PRODUCT, (tensor(5, 13), tensor(12, 20)), id="both-factors"),
        pytest.param(PRODUCT, (X, Y), id="none"),
        pytest.param("mat1 must be a matrix, got 1-D tensor", (tensor(12), tensor(9)), id="two-rows"),
        pytest.param(DTYPE, (tensor(5, 12, dtype="float64"), tensor(5, 20, dtype="float64")), id="two-of-a-dtype"),
        pytest.param("something else entirely", (X, Y), id="unknown-words"),
    ],
)
def test_no_guess(message, given):
    assert read(message, *given) is None


def test_without_constants_no_dtype_is_the_right_one():
    assert read(DTYPE, tensor(5, 12, dtype="float64"), Y, constants=()) is None


def test_described_inputs_are_not_guessed_at():
    known = asked(X)
    leaves = tuple(replace(leaf, dtype="float32", rank=2, dims=()) for leaf in known.contract.leaves)
    known = replace(known, contract=replace(known.contract, leaves=leaves))
    plain = raised(PRODUCT)
    first = made("AD-RUN-001", "raised", Severity.ERROR, plain, observed="", expected="", facts={"line": PRODUCT})
    answer = refused_operator.plan(known, replace(history(plain_run=plain), findings=(first,)))
    assert isinstance(answer, NotChecked)
    assert answer.reason == "the package records the properties of its inputs"
