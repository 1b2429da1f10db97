"""Name tables of recorded packages, release by release, and the nearest name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.serving_config import NameRow
from aotidoctor.readers.contract.read_contract import read_contract
from aotidoctor.triton.call_spec import find_release
from aotidoctor.triton.tensor_names import name_places, name_table, nearest_name, resolve
from tests.unit.readers.contract.conftest import artifact_of, entry_of
from tests.unit.triton.specs import T, call, dic, respecced


def table_of(wrapper, release="26.05", in_spec=None, out_spec=None):
    entry = entry_of(respecced(wrapper, in_spec, out_spec))
    return name_table(read_contract(artifact_of(entry), entry), find_release(release))


def test_rows_join_the_names_with_the_contract():
    table = table_of("joint")
    assert [(row.names, row.path, row.data_type) for row in table.inputs] == [
        (("INPUT__0", "ARGS[0]"), "args[0]", "TYPE_FP32"),
        (("INPUT__1", "ARGS[1]"), "args[1]", "TYPE_FP32"),
    ]
    assert [(str(dim.expr), dim.min, dim.max) for dim in table.inputs[0].dims] == [("s17", 2, 4096), ("3", None, None)]
    # The bounds of an output's dim are those of the input's that is the same size.
    assert (table.outputs[1].path, table.outputs[1].dims[0].max) == ("result[1]", 4096)
    assert table.servable


def test_outputs_that_are_no_tensors_keep_their_numbers():
    rows = table_of("odd_outputs").outputs
    assert [(row.ordinal, row.forward, row.kind) for row in rows] == [
        ("OUTPUT__0", "RESULT[y]", "tensor"),
        ("OUTPUT__1", "RESULT[none]", "none"),
        ("OUTPUT__2", "RESULT[three]", "number"),
        ("OUTPUT__3", "RESULT[total]", "tensor"),
        ("OUTPUT__4", "RESULT[z]", "tensor"),
    ]


def test_before_the_spec_is_parsed_there_are_tensors_only():
    table = table_of("nested_kwargs", "26.04")
    assert [(row.names, row.path) for row in table.inputs] == [
        (("INPUT__0",), "args[0]"),
        (("INPUT__1",), "kwargs['opts']['b']"),
        (("INPUT__2",), "kwargs['opts']['a']"),
        (("INPUT__3",), "kwargs['bias']"),
    ]
    assert [item.rule for item in table.obstacles] == ["R16"]


@pytest.mark.parametrize(
    ("wrapper", "release", "rules"),
    [
        ("joint", "26.02", ["R2"]),
        ("joint", "26.03", []),
        ("nested_kwargs", "26.05", ["R13"]),
        ("trail_int", "26.05", ["R14"]),
        ("defaultdict", "26.05", ["R9"]),
        ("intkeys", "26.05", ["R11"]),
        ("empty_output", "26.05", []),
        ("nested", "26.05", ["R9", "R9", "R9", "R11"]),
    ],
)
def test_what_no_config_can_mend(wrapper, release, rules):
    assert [item.rule for item in table_of(wrapper, release).obstacles] == rules


def test_two_inputs_of_one_name():
    table = table_of("joint", in_spec=call(dic({"a": dic({"b": T}), "a][b": T})))
    assert [(row.forward, row.names, row.lost) for row in table.inputs] == [
        ("ARGS[0][a][b]", (), True),
        ("ARGS[0][a][b]", ("INPUT__1", "ARGS[0][a][b]"), False),
    ]
    assert [item.kind for item in table.obstacles] == ["collision"]


def test_numbers_that_agree_by_chance_are_wrong_all_the_same():
    (obstacle,) = table_of("joint", in_spec=call(T, opts=dic({"a": T}))).obstacles
    assert (obstacle.kind, obstacle.letter) == ("by-chance", "S")


def test_without_a_spec_there_is_no_table():
    entry = entry_of(respecced("joint"))
    contract = replace(read_contract(artifact_of(entry), entry), in_spec=None)
    assert name_table(contract, find_release("26.05")) is None
    assert name_table(contract, find_release("26.04")) is not None


def test_bfloat16_has_a_type_since_26_11():
    assert find_release("26.11").since("26.11")
    entry = entry_of(respecced("joint"))
    contract = read_contract(artifact_of(entry), entry)
    contract = replace(contract, leaves=tuple(replace(leaf, dtype="bfloat16") for leaf in contract.leaves))
    old, new = (name_table(contract, find_release(name)) for name in ("26.10", "26.11"))
    assert [item.kind for item in old.obstacles] == ["no-type", "no-type"]
    assert [row.data_type for row in new.inputs] == ["TYPE_BF16", "TYPE_BF16"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["x__1", "x__0"], (1, 0)),
        (["x__1", "y"], (0, 1)),
        (["a__b__1", "x__0"], (0, 1)),
        (["x__", "x__1"], (0, 1)),
        (["ARGS[1]", "ARGS[0]"], (0, 1)),
        ([], ()),
    ],
)
def test_places_in_26_03_and_26_04(names, found):
    assert name_places(names) == found


def test_a_number_beyond_the_tensors_finds_nothing():
    assert [row and row.path for row in resolve(table_of("joint", "26.04").inputs, ["x__5", "x__0"])] == [
        None,
        "args[0]",
    ]


ROWS = tuple(
    NameRow(slot=slot, ordinal=f"INPUT__{slot}", forward=forward, path=path, generated_name=f"arg{slot}_1")
    for slot, (forward, path) in enumerate(
        [("ARGS[0]", "args[0]"), ("ARGS[1][ids]", "args[1]['ids']"), ("KWARGSmask", "kwargs['mask']")]
    )
)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("args[0]", "ARGS[0]"),
        ("INPUT__00", "INPUT__0"),
        ("INPUT_1", "INPUT__1"),
        ("input__2", "INPUT__2"),
        ("ARGS[1]['ids']", "ARGS[1][ids]"),
        ('ARGS[1]["ids"]', "ARGS[1][ids]"),
        ("ARGS [ 1 ] [ids]", "ARGS[1][ids]"),
        ("ids", "ARGS[1][ids]"),
        ("mask", "INPUT__2"),
        ("kwargs['mask']", "INPUT__2"),
        ("arg0_1", "ARGS[0]"),
        ("ARGS[1][idz]", "ARGS[1][ids]"),
        ("image_pixels", None),
        ("", None),
    ],
)
def test_the_name_that_was_meant(name, meant):
    assert nearest_name(name, ROWS) == meant


def test_a_single_result_and_the_first_of_several():
    bare = (NameRow(slot=0, ordinal="OUTPUT__0", forward="RESULT", path="result"),)
    first = (NameRow(slot=0, ordinal="OUTPUT__0", forward="RESULT[0]", path="result[0]"),)
    assert (nearest_name("RESULT[0]", bare), nearest_name("RESULT", first)) == ("RESULT", "RESULT[0]")
