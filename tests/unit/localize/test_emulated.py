"""What an emulation found, in the words of the user: buffers, elements, the check that failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.blame.failing_elements import Failure
from aotidoctor.localize.memory_errors import buffer_text, element_text, failure_of
from aotidoctor.model.contract import ConstantSpec, LeafSpec
from aotidoctor.model.localization import EmulationFault
from tests.unit.localize.kernels import case_of, floats


@pytest.mark.parametrize(
    ("message", "variable", "bound"),
    [
        ("index out of bounds: 0 <= tmp4 < 40", "tmp4", "40"),
        ("index out of bounds: tmp2 < ks0", "tmp2", "ks0"),
        ('index out of bounds: 0 <= tmp4 < ks0 + 2"', "tmp4", "ks0 + 2"),
    ],
)
def test_a_check_of_an_index(message, variable, bound):
    found = EmulationFault(kind="device-assert", kernel="triton_poi_0", wrapper_line=31, message=message)
    expected = Failure(kind="index", kernel="triton_poi_0", line=31, variable=variable, bound=bound)
    assert failure_of(found) == expected
    assert failure_of(replace(found, kind="nan")) is None


def test_another_assertion_is_no_check_of_an_index():
    assert failure_of(EmulationFault(kind="device-assert", message="a divisor is zero")) is None


def test_buffers_are_called_what_people_call_them():
    case = case_of("provenance", floats(8, 16))
    leaf = LeafSpec(index=0, path="kwargs['x']", kind="tensor", input_index=0, generated_name="arg0_1")
    constants = (ConstantSpec(name="w_0", original_fqn="layer.weight"), ConstantSpec(name="c1", original_fqn=""))
    case = replace(case, contract=replace(case.contract, leaves=(leaf,), constants=constants))
    assert buffer_text(case, "arg0_1") == ("kwargs['x']", "kwargs['x']")
    assert buffer_text(case, "kwargs['x']") == ("kwargs['x']", "kwargs['x']")
    assert [buffer_text(case, name)[0] for name in ("w_0", "c1", "buf7")] == ["layer.weight", "c1", "buf7"]
    assert buffer_text(case, "w_0")[1] is None
    assert buffer_text(case, None) == ("a null pointer", None)
    assert buffer_text(replace(case, contract=None), "arg0_1") == ("arg0_1", None)


@pytest.mark.parametrize(
    ("sizes", "strides", "offset", "extent", "expected"),
    [
        ((100, 24), (24, 1), 2400, 2400, "[100, 0] of 100 rows"),
        ((100, 24), (24, 1), 2405, 2400, "[100, 5] of 100 rows"),
        ((4, 3, 2), (6, 2, 1), 25, 24, "[4, 0, 1] of 4 rows"),
        ((100, 24), (1, 100), 2400, 2400, "[2400] of 2400 elements"),
        ((100, 24), (24, 1), 4800, 4800, "[4800] of 4800 elements"),
        ((100, 24), (24, 1), -3, 2400, "[-3] of 2400 elements"),
        ((7,), (1,), 9, 7, "[9] of 7 elements"),
        ((0, 24), (24, 1), 0, 0, "[0] of 0 elements"),
        ((100, 24), (24, 1), None, 2400, ""),
        ((100, 24), (24, 1), 2400, None, ""),
    ],
)
def test_an_element(sizes, strides, offset, extent, expected):
    found = EmulationFault(kind="out-of-bounds", sizes=sizes, strides=strides, offset=offset, extent=extent)
    assert element_text(found) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"launch": 3, "kernel": "k", "program": (0, 0), "lane": 5}, "launch 3 k, program 0, lane 5"),
        ({"launch": 3, "kernel": "k", "program": (2, 1, 0)}, "launch 3 k, program 2x1x0"),
        ({"launch": 1, "kernel": "k"}, "launch 1 k"),
        ({"kernel": "aten.mm"}, "aten.mm"),
        ({"output": "result[0]"}, "result[0]"),
        ({}, "the wrapper"),
    ],
)
def test_a_place(fields, expected):
    assert EmulationFault(kind="nan", **fields).place == expected
