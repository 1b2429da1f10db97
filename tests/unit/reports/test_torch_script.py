"""The script that makes a call of its metadata."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Options
from aotidoctor.model.contract import Dim
from aotidoctor.model.inputs import Container, Leaf, PlainValue, ValueStats
from aotidoctor.reports.issue import LEAVES, torch_script
from tests.unit.reports import builders


def made(**changes):
    base = builders.misleading()
    return torch_script(replace(base, case=replace(base.case, **changes)))


def artifact(**changes):
    return replace(builders.ARTIFACT, **changes)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "model = torch._inductor.aoti_load_package('model.pt2')"),
        (
            {"model": replace(builders.MODEL, name="b"), "options": Options(device="cuda:1")},
            "model = torch._inductor.aoti_load_package('model.pt2', model_name='b', device_index=1)",
        ),
        ({"options": Options(device="cuda")}, "model = torch._inductor.aoti_load_package('model.pt2')"),
        ({"model": None}, "model = torch._inductor.aoti_load_package('model.pt2')"),
        (
            {"artifact": artifact(kind=ArtifactKind.BARE_SO, path="m.so")},
            "model = torch._export.aot_load('m.so', 'cpu')",
        ),
        (
            {"artifact": artifact(kind=ArtifactKind.BARE_SO, path="m.so"), "options": Options(device="cuda:0")},
            "model = torch._export.aot_load('m.so', 'cuda:0')",
        ),
    ],
)
def test_how_it_is_loaded(changes, line):
    assert line in made(**changes).text.splitlines()


def test_there_is_no_script_without_something_to_load_and_to_call():
    assert made(artifact=artifact(kind=ArtifactKind.TORCHSCRIPT)) is None
    assert made(inputs=None, contract=None) is None
    assert made(inputs=None, contract=replace(builders.CONTRACT, args=None)) is None


def test_custom_operators_are_told():
    told = made(contract=replace(builders.CONTRACT, custom_ops=("my::op",)))
    assert "# custom operators that must be registered: my::op" in told.text
    assert any("custom operators" in note for note in told.notes)


def test_a_call_as_the_contract_wants_it():
    leaves = (builders.X, replace(builders.SCALE, kind="constant"), replace(builders.IDS, dims=(Dim(), Dim(min=0))))
    told = made(inputs=None, contract=replace(builders.CONTRACT, leaves=leaves))
    lines = told.text.splitlines()
    assert "args = (torch.rand((2, 16), dtype=torch.float32), {'scale': None},)" in lines
    assert "kwargs = {'ids': torch.ones((2, 1), dtype=torch.int64)}" in lines
    assert told.notes[0].startswith("no inputs were given")


def test_too_many_leaves_are_no_script():
    many = Container(type="tuple", children=(Leaf(value=builders.tensor()),) * (LEAVES + 1))
    given = replace(builders.inputs(), args=many)
    leaves = tuple(replace(builders.X, index=at) for at in range(LEAVES + 1))
    assert made(inputs=given, contract=replace(builders.CONTRACT, leaves=leaves)) is None
    # The contract's own call is short enough.
    assert "no inputs were given" in made(inputs=given).notes[0]


def stats(low=0, high=1, nan=0, inf=0):
    return ValueStats(low=low, high=high, nan=nan, inf=inf, zeros=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (builders.tensor(shape=(), stride=()), "torch.rand((), dtype=torch.float32)"),
        (builders.tensor(shape=(3,), stride=(1,), device="cuda:1"), "torch.rand((3,), dtype=torch.float32, device='cuda:1')"),
        (builders.tensor(shape=(3,), stride=(1,), device="odd:1"), "torch.rand((3,), dtype=torch.float32)"),
        (builders.tensor(shape=(3,), stride=(1,), stats=stats(nan=1)), "torch.full((3,), float('nan'), dtype=torch.float32)"),
        (builders.tensor(shape=(3,), stride=(1,), stats=stats(inf=1)), "torch.full((3,), float('inf'), dtype=torch.float32)"),
        (builders.tensor("odd", (3,), (1,), stats=stats()), "torch.ones((3,), dtype=torch.float32)"),
        (builders.tensor("int64", (0,), (1,), stats=stats()), "torch.ones((0,), dtype=torch.int64)"),
        (builders.tensor("int64", (3,), (1,), stats=stats(7, 7)), "torch.full((3,), 7, dtype=torch.int64)"),
        (builders.tensor("int64", (1,), (1,), stats=stats(2, 9)), "torch.full((1,), 9, dtype=torch.int64)"),
        (
            builders.tensor("int8", (3,), (1,), stats=stats(-1, 9)),
            "torch.linspace(-1, 9, 3, dtype=torch.float64).reshape((3,)).to(dtype=torch.int8)",
        ),
        (builders.tensor("int64", (3,), (1,), stats=stats(None, None)), "torch.ones((3,), dtype=torch.int64)"),
        (
            builders.tensor(shape=(3,), stride=(2,)),
            "torch.empty_strided((3,), (2,), dtype=torch.float32).copy_(torch.rand((3,), dtype=torch.float32))",
        ),
        (builders.tensor(shape=(3,), stride=(2,), layout="sparse_coo"), "torch.rand((3,), dtype=torch.float32)"),
        (PlainValue(type="int", text="3"), "3"),
        (PlainValue(type="str", text="'a\\u00e9'"), "'a\\xe9'"),
        (PlainValue(type="int", text="__import__('os')"), "None"),
        (PlainValue(type="Record", text="3"), "None"),
        (Container(type="tuple", children=()), "()"),
        (Container(type="list", children=()), "[]"),
        (Container(type="dict", children=()), "{}"),
        (Container(type="ordereddict", children=(Leaf(value=PlainValue(type="int", text="1")),), keys=(5,)), "{5: 1}"),
        (Container(type="my.Pair", children=(Leaf(value=PlainValue(type="int", text="1")),)), "[1]"),
    ],
)  # fmt: skip
def test_values(value, text):
    child = value if isinstance(value, Container) else Leaf(value=value)
    args = Container(type="list", children=(child,))
    told = made(inputs=replace(builders.inputs(), args=args, kwargs=Container(type="dict", children=())))
    assert f"args = ({text},)" in told.text.splitlines()
    assert "kwargs = {}" in told.text.splitlines()
    assert any("None replaces" in note for note in told.notes) is (text == "None")
    assert any(note == "lists replace my.Pair" for note in told.notes) is (text == "[1]")


def test_a_call_without_arguments():
    empty = Container(type="list", children=())
    assert "args = ()" in made(inputs=replace(builders.inputs(), args=empty)).text.splitlines()
