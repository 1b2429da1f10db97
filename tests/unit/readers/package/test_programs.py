"""Archives of torch.export with their weights, in the three layouts that torch has written."""

from __future__ import annotations

import json

import pytest

from aotidoctor.readers.package.constants import read_program_archive
from aotidoctor.readers.package.exported_program import expr_text, size_text
from tests.artifacts.packages import package_parts, program_json, program_parts, write_zip
from tests.artifacts.zips import Part

META = {
    "dtype": 7,
    "sizes": [{"as_int": 2}, {"as_int": 3}],
    "strides": [{"as_int": 3}, {"as_int": 1}],
    "storage_offset": {"as_int": 1},
    "device": {"type": "cuda", "index": 1},
    "requires_grad": True,
}


def config(**changes):
    entry = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": META, **changes}
    return json.dumps({"config": {"l.weight": entry}}).encode()


def listed(tmp_path, data, *more):
    parts = [*program_parts(), Part("exported/data/weights/model_weights_config.json", data), *more]
    return read_program_archive(write_zip(tmp_path / "e.pt2", parts))


def test_listed(tmp_path):
    archive = listed(tmp_path, config(), Part("exported/data/weights/weight_0", b"12345678"))
    assert (archive.layout, archive.constants, archive.has_samples) == ("pt2", None, False)
    found = archive.weights["l.weight"]
    assert (found.member, found.nbytes, found.parameter, found.requires_grad) == (
        "exported/data/weights/weight_0",
        8,
        True,
        True,
    )
    assert (found.stored.dtype, found.stored.shape, found.stored.stride, found.stored.offset) == (
        "float32",
        (2, 3),
        (3, 1),
        1,
    )
    assert found.stored.content.read_at(2, 3) == b"345"


def test_bytes_that_are_lost_or_pickled(tmp_path):
    lost = listed(tmp_path, config()).weights["l.weight"]
    assert (lost.member, lost.stored.content, lost.stored.problem) == (
        None,
        None,
        "the archive has no member with its bytes",
    )
    weight = Part("exported/data/weights/weight_0", b"1")
    pickled = listed(tmp_path, config(use_pickle=True), weight).weights["l.weight"]
    assert pickled.stored.content is None


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"config": []}', b'{"config": {"a": 5}}', b'{"config": {"a": {"tensor_meta": {"sizes": 3}}}}']
)  # fmt: skip
def test_strange_lists(data, tmp_path):
    archive = listed(tmp_path, data)
    assert (archive.weights is None) == bool(archive.problems)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "../model_weights_config.json", 5, None])
def test_names_are_only_looked_up(name, tmp_path):
    assert listed(tmp_path, config(path_name=name)).weights["l.weight"].member is None


def test_older_layouts(tmp_path):
    program = json.dumps(program_json()).encode()
    legacy = [
        Part("serialized_exported_program.json", program),
        Part("serialized_state_dict.pt", b"weights"),
        Part("serialized_constants.pt", b"constants"),
        Part("serialized_example_inputs.pt", b"x"),
    ]
    archive = read_program_archive(write_zip(tmp_path / "old.pt2", legacy))
    assert (archive.layout, archive.weights, archive.has_samples) == ("legacy", None, True)
    assert archive.weights_pickle.member == "serialized_state_dict.pt"
    data = (tmp_path / "old.pt2").read_bytes()
    state = archive.weights_pickle
    assert data[state.offset : state.offset + state.size] == b"weights"
    parts = [*program_parts(), Part("exported/data/weights/model.pt", b"weights")]
    pickled = read_program_archive(write_zip(tmp_path / "newer.pt2", parts))
    assert (pickled.layout, pickled.weights_pickle.member) == ("pickled", "exported/data/weights/model.pt")


def test_several(tmp_path):
    path = write_zip(tmp_path / "e.pt2", [*program_parts("a"), *program_parts("b")[:1]])
    archive = read_program_archive(path)
    assert (archive.member, archive.others) == ("exported/models/a.json", ("b",))
    assert read_program_archive(path, "b").others == ("a",)
    assert read_program_archive(path, "c") == "no program called c; there is a, b"


def test_no_program(tmp_path):
    assert read_program_archive(str(tmp_path / "gone")) == "not a readable zip archive"
    assert read_program_archive(str(tmp_path)) == "not a readable zip archive"
    assert "no exported program" in read_program_archive(write_zip(tmp_path / "p.pt2", package_parts()))
    bad = write_zip(tmp_path / "bad.pt2", [Part("e/models/model.json", b"{nope")])
    assert read_program_archive(bad) == "e/models/model.json is not the JSON of a program"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Symbol('s77', positive=True, integer=True)", "s77"),
        ("Mul(Integer(8), Symbol('s40', integer=True))", "8*s40"),
        ("Add(Symbol('s0'), Integer(-1))", "s0 + -1"),
        ("Mul(Integer(2), Add(Symbol('s0'), Integer(1)))", "2*(s0 + 1)"),
        ("Pow(Symbol('s0'), Integer(2))", "s0**2"),
        ("FloorDiv(Symbol('s0'), Integer(2))", "FloorDiv(s0, 2)"),
        ("s0", "s0"),
        ("8*s0", "8*s0"),
        ("__import__('os').system('x')", "__import__('os').system('x')"),
        ("Mul(" * 3000, ("Mul(" * 3000)[:4000]),
        ("(" * 1500 + ")" * 1500, "(" * 1500 + ")" * 1500),
        ("Symbol(", "Symbol("),
    ],
)
def test_sizes_as_text(text, expected):
    assert expr_text(text) == expected


def test_sizes():
    assert size_text({"as_int": 4}) == "4"
    assert size_text({"as_int": True}) is None
    assert size_text(None) is None
