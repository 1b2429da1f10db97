"""Operators of ATen that refuse an index: the element is found in the arguments of the call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.blame.failing_elements import Failure
from aotidoctor.localize.blame.indirect_failures import operator_chain
from aotidoctor.localize.blame.package_program import program_of
from aotidoctor.model.contract import ConstantSpec, KernelCall, LeafSpec
from aotidoctor.model.localization import Element
from tests.unit.localize.kernels import case_of, floats, integers

BAG, INDEX = "aoti_torch_cpu__embedding_bag", "aoti_torch_cpu_index_Tensor"
WEIGHT = ConstantSpec(name="bag_weight", original_fqn="bag.weight", dtype="float32", shape=(10, 3))


def chain(*calls, at=-1, tensors=(), constants=(WEIGHT,), **failure):
    """Kind and chain where the call at ``at`` refuses; the inputs are called ``arg0_1``, ``arg1_1``..."""
    case = case_of("provenance", *tensors)
    leaves = tuple(
        LeafSpec(index=at, path=f"args[{at}]", kind="tensor", input_index=at, generated_name=f"arg{at}_1")
        for at in range(len(tensors))
    )
    lines = tuple(replace(call, line=10 + place) for place, call in enumerate(calls))
    contract = replace(case.contract, leaves=leaves, constants=constants, kernels=lines, bodies=(), renamed={})
    failing = lines[at]
    asked = Failure(**{"kind": "operator", "kernel": failing.name, "line": failing.line, **failure})
    return operator_chain(program_of(replace(case, contract=contract)), asked)


def bag(*arguments, origins=("aten._embedding_bag",)):
    return KernelCall(name=BAG, kind="extern", arguments=arguments, origins=origins)


def index(*arguments):
    return KernelCall(name=INDEX, kind="extern", arguments=arguments, origins=("aten.index",))


@pytest.mark.parametrize(
    ("offsets", "place", "what"),
    [
        ((1, 3), 0, "offset 1, which has to be 0"),
        ((0, 4, 2), 2, "offset 2 after 4, which must not decrease"),
        ((0, 2, 7), 2, "offset 7 beyond the 6 indices"),
    ],
)
def test_an_offset_of_a_bag_that_breaks_a_rule(offsets, place, what):
    given = (integers(0, 1, 2, 3, 4, 5), integers(*offsets))
    kind, found = chain(bag("bag_weight", "arg0_1", "arg1_1"), tensors=given)
    assert (kind, found.what, found.bound, found.origin) == ("offsets", what, 6, "args[0].shape[0]")
    assert found.elements == (Element(path="args[1]", index=(place,), value=offsets[place]),)


def test_offsets_are_judged_without_the_indices_as_well():
    """The indices are computed: nobody knows how many there are, but offsets may still not fall."""
    made = KernelCall(name="aoti_torch_cpu_arange", kind="extern", arguments=("&buf0_handle",))
    call = bag("bag_weight", "buf0", "arg0_1")
    kind, found = chain(made, call, tensors=(integers(0, 900, 2),))
    assert (kind, found.what, found.bound, found.origin) == (
        "offsets",
        "offset 2 after 900, which must not decrease",
        None,
        None,
    )
    kind, found = chain(made, call, tensors=(integers(0, 2, 900),))
    assert (kind, found.elements, found.bound) == ("index", (), 10)


@pytest.mark.parametrize("offsets", [(0, 2, 6), (0, 0, 3), ()], ids=["last is empty", "first is empty", "none"])
def test_an_index_of_a_bag_beyond_the_rows(offsets):
    given = (integers(9, 0, 10, 3, -1, 2), integers(*offsets))
    kind, found = chain(bag("bag_weight", "arg0_1", "arg1_1"), tensors=given)
    assert (kind, found.what, found.index, found.bound) == ("index", "index 10 of 10", 10, 10)
    assert (found.elements, found.count) == ((Element(path="args[0]", index=(2,), value=10),), 2)
    assert (found.origin, found.operators, found.direct) == ("bag.weight.shape[0]", ("aten._embedding_bag",), True)


def test_the_place_in_a_matrix():
    """Indices by rows have no offsets: the sixth of 2 x 4 is [1, 1]."""
    _, found = chain(bag("bag_weight", "arg0_1"), tensors=(integers(0, 1, 2, 3, 4, 77, 6, 7, shape=(2, 4)),))
    assert found.elements == (Element(path="args[0]", index=(1, 1), value=77),)


def test_a_table_that_is_an_input_itself():
    given = (floats(5, 2), integers(0, 5))
    _, found = chain(bag("arg0_1", "arg1_1"), tensors=given)
    assert (found.what, found.origin) == ("index 5 of 5", "args[0].shape[0]")


@pytest.mark.parametrize("table", ["buf7", "arg0_1"], ids=["a buffer", "a tensor without dims"])
def test_without_the_rows_only_negative_indices_are_wrong(table):
    _, found = chain(bag(table, "arg1_1"), tensors=(floats(), integers(4000, -3)))
    assert (found.elements, found.bound) == ((Element(path="args[1]", index=(1,), value=-3),), None)


def test_a_bag_whose_indices_are_all_fine_names_the_input_only():
    kind, found = chain(bag("bag_weight", "arg0_1"), tensors=(integers(0, 9),))
    assert (kind, found.what, found.elements, found.sources) == ("index", "index out of 0..9", (), ("args[0]",))


def test_indices_that_were_made_of_an_input_lead_back_to_it():
    made = KernelCall(name="aoti_torch_cpu_abs", kind="extern", arguments=("arg0_1", "&buf0_handle"))
    _, found = chain(made, bag("bag_weight", "buf0"), tensors=(integers(-90, 3),))
    assert (found.elements, found.sources, found.through) == ((), ("args[0]",), ("aoti_torch_cpu_abs",))


def test_the_value_that_an_index_was_refused_for():
    tensors = (floats(8, 3), integers(1, 2), integers(3, 9, 9))
    kind, found = chain(index("arg0_1", "{arg1_1_handle, arg2_1_handle}"), tensors=tensors, value=9, bound="8")
    assert (kind, found.what, found.index, found.bound, found.count) == ("index", "index 9 of 8", 9, 8, 2)
    assert found.elements == (Element(path="args[2]", index=(1,), value=9),)


def test_a_bound_alone_tells_who_is_beyond_it():
    tensors = (floats(8, 3), integers(1, 2), integers(3, 8))
    _, found = chain(index("arg0_1", "{arg1_1_handle, arg2_1_handle}"), tensors=tensors, bound="8")
    assert found.elements == (Element(path="args[2]", index=(1,), value=8),)


def test_without_value_and_bound_a_negative_index_is_all_there_is():
    _, found = chain(index("arg0_1", "arg1_1"), tensors=(floats(8, 3), integers(1, 70, -2)))
    assert (found.what, found.elements[0].value, found.bound) == ("index -2", -2, None)


@pytest.mark.parametrize(
    "tensors",
    [
        (floats(8, 3), integers(9, 2), integers(3, 9)),
        (floats(8, 3), integers(1, 2), integers(3, 7)),
        (floats(8, 3), floats(2), replace(integers(9), elements=None)),
        (floats(8, 3), floats(2), replace(integers(9), elements=lambda: None)),
    ],
    ids=["both hold it", "none holds it", "values unknown", "values not to be read"],
)
def test_who_is_not_sure_is_not_named(tensors):
    kind, found = chain(index("arg0_1", "arg1_1", "arg2_1"), tensors=tensors, value=9)
    assert (kind, found.elements, found.index) == ("index", (), None)
    assert found.what == "an index that the operator refuses"


def test_an_input_that_was_written_to_before_is_not_judged_by_its_old_values():
    wrote = KernelCall(name="aoti_torch_cpu_add_", kind="extern", arguments=("arg1_1",))
    tensors = (floats(8, 3), integers(9, 2))
    assert chain(index("arg0_1", "arg1_1"), tensors=tensors, value=9)[1].elements
    assert chain(wrote, index("arg0_1", "arg1_1"), tensors=tensors, value=9)[1].elements == ()


def test_the_call_is_the_one_on_the_line_or_the_only_one():
    tensors = (floats(8, 3), integers(9, 2), integers(1, 9))
    calls = (index("arg0_1", "arg1_1"), index("arg0_1", "arg2_1"))
    for at, path in ((0, "args[1]"), (1, "args[2]")):
        assert chain(*calls, at=at, tensors=tensors, value=9)[1].elements[0].path == path
    assert chain(*calls, tensors=tensors, value=9, line=99) is None
    assert chain(calls[0], tensors=tensors, value=9, line=99)[1].elements[0].path == "args[1]"
    assert chain(calls[0], tensors=tensors, value=9, kernel="aoti_torch_cpu_gather") is None
