"""torch.export archives, from their JSON alone."""

from __future__ import annotations

import json

import pytest

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.exported_program import leaf_paths
from aotidoctor.readers.package.read_package import read_artifact, read_exported
from tests.artifacts.packages import LEAF, package_parts, program_json, program_parts, write_zip
from tests.artifacts.zips import Part


def test_facts_of_a_program(tmp_path):
    path = write_zip(tmp_path / "e.pt2", program_parts())
    (facts,) = read_exported(path)
    assert facts.name == "model"
    assert dict(facts.constant_inputs) == {"args[1]": "3", "args[2]['mode']": "'fast'", "kwargs['scale']": "None"}
    assert facts.custom_ops == ("lab::scale", "lab::inner")
    assert facts.ops["aten.mul.Tensor"] == 2
    assert facts.ops["lab.inner.default"] == 1
    assert facts.torch_version == "2.13.0+cpu"
    assert facts.in_spec.startswith("[1, ")
    assert read_artifact(path).exported == (facts,)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"as_int": 3}, "3"),
        ({"as_float": 2.5}, "2.5"),
        ({"as_float": 2}, "2.0"),
        ({"as_float": "Infinity"}, "inf"),
        ({"as_bool": True}, "True"),
        ({"as_string": "a"}, "'a'"),
        ({"as_none": True}, "None"),
        ({"as_device": {"type": "cpu"}}, "<device>"),
        (None, "<unknown>"),
    ],
)
def test_values(tmp_path, value, expected):
    program = program_json()
    program["graph_module"]["signature"]["input_specs"] = [{"constant_input": {"name": "n", "value": value}}]
    (facts,) = read_exported(write_zip(tmp_path / "e.pt2", program_parts(program=program)))
    assert dict(facts.constant_inputs) == {"n": expected}


def test_paths_of_containers():
    def node(kind, context, *children):
        return {"type": kind, "context": context, "children_spec": list(children)}

    spec = [
        1,
        node(
            "builtins.tuple",
            "null",
            node("builtins.tuple", "null", LEAF, node("builtins.list", "null", LEAF, LEAF)),
            node(
                "builtins.dict",
                '["a", "b", "c"]',
                node("collections.OrderedDict", "[1, 2]", LEAF, LEAF),
                node("collections.namedtuple", '["x", "y"]', LEAF, LEAF),
                node("shop.Batch", '[["x", "ids"], ["w"]]', LEAF, LEAF),
            ),
        ),
    ]
    assert leaf_paths(json.dumps(spec)) == (
        "args[0]",
        "args[1][0]",
        "args[1][1]",
        "kwargs['a'][1]",
        "kwargs['a'][2]",
        "kwargs['b'].x",
        "kwargs['b'].y",
        "kwargs['c'].x",
        "kwargs['c'].ids",
    )


def test_a_program_may_have_more_leaves_than_a_contract():
    def node(kind, *children):
        return {"type": kind, "context": "null", "children_spec": list(children)}

    call = node("builtins.tuple", node("builtins.tuple", *[LEAF] * 10_001), node("builtins.dict"))
    assert leaf_paths(json.dumps([1, call]))[-1] == "args[10000]"


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "[1, 5]", '[1, {"children_spec": [1]}]', "[" * 5000])
def test_strange_call_specs(text):
    assert leaf_paths(text) == ()


def test_several_programs_and_damaged_ones(tmp_path):
    parts = [*program_parts("a"), *program_parts("b")[:1], Part("exported/models/c.json", b"{nope")]
    found = read_artifact(write_zip(tmp_path / "e.pt2", parts))
    assert [facts.name for facts in found.exported] == ["a", "b"]
    assert found.counts == {"unread_programs": 1}


def test_old_layout(tmp_path):
    text = json.dumps(program_json()).encode()
    path = write_zip(tmp_path / "e.pt2", [Part("serialized_exported_program.json", text), Part("version", b"5.1")])
    assert read_artifact(path).kind is ArtifactKind.EXPORTED_PROGRAM
    assert len(read_exported(path)) == 1


def test_not_an_export(tmp_path):
    assert read_exported(str(tmp_path / "missing")) == ()
    assert read_exported(str(tmp_path)) == ()
    assert read_exported(write_zip(tmp_path / "p.pt2", package_parts())) == ()
    (tmp_path / "x").write_bytes(b"PK\3\4 nothing")
    assert read_exported(str(tmp_path / "x")) == ()
