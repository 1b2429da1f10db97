"""What the worker says about tensors, and how it compares them. Needs torch, no package and no process."""

from __future__ import annotations

import importlib.util
import json
import math

import pytest

from aotidoctor.model.jobs import Operators
from aotidoctor.model.record import to_json

pytest.importorskip("torch")

from aotidoctor.worker.operators.op_schema import ops, split_target
from aotidoctor.worker.tensors import (
    compare_results,
    describe,
    digest,
    iterate_leaves,
    rebuild,
    value_counts,
    walk_call,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]


def test_stats_count_what_is_not_finite_and_bound_the_rest() -> None:
    import torch

    found = value_counts(torch.tensor([1.0, float("nan"), float("-inf"), 3.0]))
    assert found == {"nan": 1, "inf": 1, "min": 1.0, "max": 3.0, "mean": 2.0}


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "complex64", "float8_e4m3fn"]
)
def test_every_dtype_has_stats_and_digest(dtype: str) -> None:
    import torch

    tensor = torch.ones(3).to(getattr(torch, dtype))
    assert value_counts(tensor)["max"] == 1
    assert digest(tensor) is not None


def test_what_has_no_values() -> None:
    import torch

    meta = torch.empty(2, device="meta")
    assert value_counts(meta)["nan"] is None
    assert digest(meta) is None
    assert value_counts(torch.empty(0)) == {"nan": 0, "inf": 0, "min": None, "max": None, "mean": None}
    assert digest(torch.empty(0)) is not None


@pytest.mark.parametrize("kind", ["sparse", "quantised", "conj", "nested"])
def test_odd_layouts_are_described(kind: str) -> None:
    import torch

    tensor = {
        "sparse": lambda: torch.eye(2).to_sparse(),
        "quantised": lambda: torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8),
        "conj": lambda: torch.tensor([1j]).conj(),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
    }[kind]()
    try:
        facts = describe("x", tensor, values=True)
    except RuntimeError:
        pytest.fail("describing must not raise")
    assert facts["path"] == "x"


def test_digest_is_of_the_values_not_of_the_strides() -> None:
    import torch

    base = torch.arange(6.0).reshape(2, 3)
    assert digest(base.t()) == digest(base.t().contiguous()) != digest(base)


def test_walk_names_leaves_as_the_user_does() -> None:
    value = {"a": [1, (2,)], 3: None}
    assert list(iterate_leaves(value, "args[0]")) == [
        ("args[0]['a'][0]", 1),
        ("args[0]['a'][1][0]", 2),
        ("args[0][3]", None),
    ]
    assert walk_call((1,), {"k": 2}) == [("args[0]", 1), ("kwargs['k']", 2)]
    assert rebuild(value, "x", lambda _, leaf: leaf) == value


def test_walk_follows_the_order_of_torch() -> None:
    import torch.utils._pytree as pytree

    value = ({"b": 1, "a": [2, {}]}, {"k": (3, None)})
    assert [leaf for _, leaf in iterate_leaves(value, "x")] == pytree.tree_flatten(value)[0]


def test_compare_allows_for_rounding_only() -> None:
    import torch

    base = torch.randn(1000)
    assert compare_results(base * (1 + 1e-6), base)["agrees"] is True
    far = compare_results(base + 0.1, base)
    assert far["agrees"] is False
    assert far["outputs"][0]["what"] == "values"
    assert far["outputs"][0]["max_abs_diff"] == pytest.approx(0.1, rel=1e-3)


def test_complex_numbers_have_the_tolerance_of_their_parts() -> None:
    import torch

    base = torch.randn(1000, dtype=torch.complex64)
    assert compare_results(base * (1 + 1e-6), base)["agrees"] is True
    assert compare_results(base + 0.1, base)["agrees"] is False
    wide = torch.randn(1000, dtype=torch.complex128)
    assert compare_results(wide * (1 + 1e-6), wide)["agrees"] is False


def test_compare_sees_nan_dtype_shape_and_structure() -> None:
    import torch

    ones, nan = torch.ones(2), torch.tensor([1.0, float("nan")])
    assert compare_results(nan, nan)["agrees"] is True
    assert compare_results(nan, ones)["outputs"][0]["what"] == "nan"
    assert compare_results(ones.double(), ones)["outputs"][0]["what"] == "dtype"
    assert compare_results(torch.ones(3), ones)["outputs"][0]["what"] == "shape"
    assert compare_results([ones], [ones, ones])["same_structure"] is False
    assert compare_results(torch.tensor([1, 2]), torch.tensor([1, 3]))["agrees"] is False
    inf = torch.tensor([float("inf"), 1.0])
    assert compare_results(inf, inf)["agrees"] is True
    assert compare_results(inf, ones)["agrees"] is False


def test_plain_is_strict_json() -> None:
    text = json.dumps(to_json({"a": math.nan, "b": (1, {2}), 3: object}), allow_nan=False)
    assert json.loads(text)["a"] == "NaN"


def test_ops_tell_schema_and_kernel() -> None:
    class NoChannel:
        user_cwd = __import__("pathlib").Path()

        def enter(self, stage: str) -> None:
            pass

    found = ops(Operators(targets=("aten::add.Tensor", "no::such")), NoChannel())["ops"]
    assert found["no::such"].registered is False
    add = found["aten::add.Tensor"]
    assert [argument.name for argument in add.arguments] == ["self", "other", "alpha"]
    assert (add.returns, add.kernel) == (1, True)
    assert split_target("torch.ops.lab.my_op.out") == split_target("lab::my_op.out") == ("lab::my_op", "out")
    assert split_target("lab::my_op") == ("lab::my_op", "default")
