from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model import record_json
from aotidoctor.model.case import Case, Host
from aotidoctor.model.contract import Dim, ModelContract
from aotidoctor.model.inputs import Container, InputSet, Leaf, TensorDesc, ValueStats
from aotidoctor.model.localization import OutputComparison
from aotidoctor.model.record import to_json
from tests.unit.reports import builders


def there_and_back(kind, value):
    return record_json.from_json(kind, json.loads(json.dumps(to_json(value), allow_nan=False)))


@pytest.mark.parametrize("name", builders.GOLDEN)
def test_every_case_comes_back(name):
    case = replace(builders.GOLDEN[name]().case, inputs_error=None)
    assert there_and_back(Case, case) == case


def test_trees_expressions_and_odd_numbers_come_back():
    dim = Dim(expr=parse_expr("8*s39 + (1/2)*s1"), min=2)
    assert dim.expr is not None
    contract = ModelContract(
        model_name="m",
        source="recovered",
        args=Container(
            type="tuple", children=(Leaf(value=0), Container(type="dict", children=(Leaf(value=1),), keys=("a",)))
        ),
        kwargs=Container(type="dict", children=(Leaf(value=2),), keys=(3,)),
        leaves=(replace(builders.X, dims=(dim,)),),
        n_inputs=3,
        readings=((0, None, 1),),
        views=frozenset({"b", "a"}),
    )
    assert there_and_back(ModelContract, contract) == contract
    comparison = OutputComparison(path="result", verdict="unknown", max_abs=float("inf"), needed=((0.0, 1e-5),))
    assert there_and_back(OutputComparison, comparison) == comparison


def test_functions_are_not_written():
    tensor = TensorDesc(
        dtype="int64",
        shape=(2,),
        stride=(1,),
        stats=ValueStats(low=1, high=2, nan=0, inf=0, zeros=0),
        elements=lambda: (7, 8),
    )
    inputs = InputSet(
        path=None,
        format="pt",
        form="args",
        args=Container(type="tuple", children=(Leaf(value=tensor),)),
        kwargs=Container(type="dict", children=()),
    )
    assert "8" not in json.dumps(to_json(inputs)).replace("int64", "")
    back = there_and_back(InputSet, inputs)
    assert back == inputs
    assert back.tensors()[0][1].elements is None


def test_a_newer_version_may_have_written_more_and_less():
    document = {"system": "Linux", "machine": "x86_64", "python": "3", "future": {"a": [1]}}
    assert record_json.from_json(Host, document) == Host(system="Linux", machine="x86_64", python="3")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"system": None}, "Host.system"),
        ({"cores": "two"}, "Host.cores"),
        ({"cores": True}, "Host.cores"),
        ({"cores": 1 << 70}, "Host.cores"),
        ({"gpus": [{"index": 0}]}, "Host.gpus"),
        ({"libraries": {"a": 3}}, "Host.libraries"),
        ({"tmpdir": [1]}, "Host.tmpdir"),
    ],
)
def test_what_does_not_fit_is_named(change, place):
    document = {"system": "Linux", "machine": "x86_64", "python": "3", **change}
    with pytest.raises(record_json.RecordError, match=place):
        record_json.from_json(Host, document)


def test_nesting_without_end_is_an_error():
    tree = {"value": 1}
    for _ in range(3000):
        tree = {"type": "list", "children": [tree], "keys": []}
    with pytest.raises(record_json.RecordError):
        record_json.from_json(Container, tree)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "kind", "artifact", "host", "args", "value", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([Case, ModelContract, InputSet, OutputComparison]))
def test_any_json_is_a_record_or_a_record_error(value, kind):
    with contextlib.suppress(record_json.RecordError):
        assert isinstance(record_json.from_json(kind, value), kind)


def test_a_record_of_the_reader_itself_is_strict_about_tuples():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Pair:
        both: tuple[int, str]

    assert record_json.from_json(Pair, {"both": [1, "a"]}) == Pair(both=(1, "a"))
    with pytest.raises(record_json.RecordError, match="1 items, expected 2"):
        record_json.from_json(Pair, {"both": [1]})
