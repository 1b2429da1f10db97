from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.checks.registry import CHECKS
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.diagnosis.treatments import combine, plan_treatment
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import HostNeeds
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.inputs import PlainValue, ValueStats
from tests.unit.checks.input_builders import CONSTANT, Spec, call, case_of, contract_of, tensor

BATCH = ("s0", 2, 64)


def findings_of(case):
    """What the input checks say about the case, without the ladder's blocking."""
    results = [check.run(case) for check in CHECKS if check.stage == "inputs"]
    return [item for result in results if not isinstance(result, NotChecked) for item in result]


def steps(cause, case, findings=None):
    plan = plan_treatment(cause, case, findings_of(case) if findings is None else findings)
    return None if plan is None else list(plan.steps)


def run_evidence(symptom, **facts):
    return Evidence(
        code="AD-RUN-001",
        kind="raised",
        severity=Severity.ERROR,
        subject=None,
        observed="",
        expected="",
        facts={"symptom": symptom, "stage": "run1", **facts},
    )


def test_cast_goes_to_the_dtype_of_the_contract():
    case = case_of(contract_of(Spec(8, dtype="int64")), call(tensor(8, dtype="int32")))
    plan = plan_treatment("input-dtype", case, findings_of(case))
    assert list(plan.steps) == [{"op": "cast", "path": "args[0]", "dtype": "int64"}]
    assert (plan.name, plan.cause) == ("cast", "input-dtype")
    assert "args[0].to(torch.int64)" in plan.command


def test_quantized_tensors_are_made_plain_first():
    case = case_of(contract_of(Spec(4)), call(tensor(4, dtype="quint8", quantized=True)))
    assert [step["op"] for step in steps("input-dtype", case)] == ["dense", "cast"]


@pytest.mark.parametrize(
    ("strides", "given", "wanted"), [((8, 1), (1, 8), None), ((1, 8), (8, 1), [1, 8]), ((None, 1), (1, 8), None)]
)
def test_restride_to_the_strides_of_the_contract(strides, given, wanted):
    case = case_of(contract_of(Spec(8, 8, strides=strides)), call(tensor(8, 8, stride=given)))
    assert steps("input-stride", case) == [{"op": "contiguous", "path": "args[0]", "stride": wanted}]


@pytest.mark.parametrize(
    ("dims", "shape", "wanted"),
    [
        ((16, 16), (256,), [16, 16]),
        ((BATCH, 1024), (1, 8, 1024), [8, 1024]),
        ((BATCH, "s1"), (1, 8, 1024), [8, 1024]),
        (("s0", "s1"), (3, 1, 1, 7), None),
        ((16, 16), (3, 16, 16), None),
        ((("s0", 2, 4), 16), (1, 8, 16), None),
    ],
)
def test_reshape_only_where_one_way_is_left(dims, shape, wanted):
    case = case_of(contract_of(Spec(*dims)), call(tensor(*shape)))
    expected = None if wanted is None else [{"op": "reshape", "path": "args[0]", "shape": wanted}]
    assert steps("input-rank", case) == expected


@pytest.mark.parametrize(
    ("dims", "shape", "order"),
    [
        ((4, 16), (16, 4), [1, 0]),
        ((3, 32, 32), (32, 32, 3), [2, 0, 1]),
        ((2, 3, 16, 16), (2, 16, 16, 3), [0, 3, 1, 2]),
        (("s0", 3, "s1", "s2"), (2, 12, 20, 3), [0, 3, 1, 2]),
        (("s0", 3, "s1", "s1"), (2, 12, 12, 3), [0, 3, 1, 2]),
        (("s0", "s1", 3), (3, 5, 7), [1, 2, 0]),
        ((1, 3, 16, 16), (16, 16, 3, 1), [3, 2, 0, 1]),
        ((4, 16), (4, 17), None),
        ((1, 3, 8), (3, 8, 1), [2, 0, 1]),
    ],
)
def test_permute_to_the_order_that_moves_the_fewest_dims(dims, shape, order):
    case = case_of(contract_of(Spec(*dims)), call(tensor(*shape)))
    found = steps("input-shape", case)
    if order is None:
        assert "permute" not in [step["op"] for step in found]
    else:
        assert found[0] == {"op": "permute", "path": "args[0]", "dims": order}


@pytest.mark.parametrize(
    ("dims", "shape", "others"),
    [
        ((4, 16), (16, 4), ()),
        ((2, 3, 16, 20), (2, 16, 20, 3), ()),
        ((1, 3, 8, 8), (8, 8, 3, 1), ("(3, 2, 1, 0)",)),
        ((2, 3, 16, 16), (2, 16, 16, 3), ("(0, 3, 2, 1)",)),
        # Dims of one element make no other tensor.
        ((1, 1, 3, 8), (1, 1, 8, 3), ()),
    ],
)
def test_the_orders_that_fit_as_well_are_named(dims, shape, others):
    case = case_of(contract_of(Spec(*dims)), call(tensor(*shape)))
    assert plan_treatment("input-shape", case, findings_of(case)).others == others


def test_an_order_agrees_with_the_symbols_of_the_other_inputs():
    contract = contract_of(Spec("s0", 3, "s1"), Spec("s1", "s0"))
    case = case_of(contract, call(tensor(5, 7, 3), tensor(7, 5)))
    assert steps("input-shape", case)[0]["dims"] == [0, 2, 1]
    assert plan_treatment("input-shape", case, findings_of(case)).others == ()
    case = case_of(contract, call(tensor(5, 7, 3), tensor(5, 7)))
    assert steps("input-shape", case)[0]["dims"] == [1, 2, 0]


def test_sizes_that_disagree_are_put_in_order_before_they_are_cut():
    case = case_of(contract_of(Spec("s0", "s1"), Spec("s0", "s1")), call(tensor(4, 6), tensor(6, 4)))
    plan = plan_treatment("input-shape-disagree", case, findings_of(case))
    assert (plan.name, plan.steps[0]["dims"], plan.others) == ("permute", [1, 0], ())
    case = case_of(contract_of(Spec("s0", "s1"), Spec("s0", "s1")), call(tensor(4, 6), tensor(6, 5)))
    assert {step["op"] for step in steps("input-shape-disagree", case)} == {"clamp_dim"}


def test_sizes_that_no_order_explains_are_cut_or_filled():
    case = case_of(contract_of(Spec("s0", 4, 16)), call(tensor(5, 3, 17)))
    plan = plan_treatment("input-shape", case, findings_of(case))
    assert list(plan.steps) == [
        {"op": "clamp_dim", "path": "args[0]", "dim": 1, "size": 4},
        {"op": "clamp_dim", "path": "args[0]", "dim": 2, "size": 16},
        {"op": "contiguous", "path": "args[0]", "stride": [64, 16, 1]},
    ]
    assert plan.command == ""


def test_a_missing_dim_is_put_in_as_wide_as_the_other_inputs_have_it():
    contract = contract_of(Spec("s0", "s1"), Spec("s0", "s1"))
    case = case_of(contract, call(tensor(12), tensor(2, 12)))
    assert steps("input-rank", case) == [
        {"op": "reshape", "path": "args[0]", "shape": [1, 12]},
        {"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 2},
    ]
    alone = case_of(contract_of(Spec("s0", "s1", 8)), call(tensor(12, 8)))
    assert steps("input-rank", alone) == [{"op": "reshape", "path": "args[0]", "shape": [1, 12, 8]}]
    assert steps("input-rank", case_of(contract_of(Spec(5, 8)), call(tensor(7)))) is None


def test_a_batch_of_one_that_the_checks_refuse_is_filled_to_the_least_size():
    """An image without its batch, as the package takes no batch of 1 under its own checks."""
    alone = case_of(contract_of(Spec(BATCH, 3, 64)), call(tensor(3, 64)))
    whole = {"op": "reshape", "path": "args[0]", "shape": [1, 3, 64]}
    assert steps("input-rank", alone) == [whole, {"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 2}]
    beside = case_of(contract_of(Spec(BATCH, 3, 64), Spec(BATCH)), call(tensor(3, 64), tensor(1)))
    assert steps("input-rank", beside) == [whole]


@pytest.mark.parametrize(("given", "rows"), [((12,), 1), ((36,), 3), ((24,), 2)])
def test_a_tensor_in_one_dim_is_brought_to_the_batch_of_the_others(given, rows):
    """Else the reshaped call disagrees with itself, fails as before, and clears the rank of what it did."""
    case = case_of(contract_of(Spec("s0", 3, 64), Spec("s0", 12)), call(tensor(2, 3, 64), tensor(*given)))
    to_batch = [{"op": "clamp_dim", "path": "args[1]", "dim": 0, "size": 2}] if rows != 2 else []
    assert steps("input-rank", case) == [{"op": "reshape", "path": "args[1]", "shape": [rows, 12]}, *to_batch]
    # What is not all that was tried is not offered as what was.
    assert bool(plan_treatment("input-rank", case, findings_of(case)).command) == (rows == 2)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((5, 70), [5, 7, 10]), ((350,), [5, 7, 10]), ((5, 7, 5, 2), [5, 7, 10]), ((4, 70), None), ((7, 70), None)],
)
def test_dims_run_together_are_parted_as_the_other_inputs_say(shape, wanted):
    """Two free dims: the number of elements alone leaves a choice, the sizes of the other inputs do not."""
    contract = contract_of(Spec("s0", "s1", 10), Spec("s0", "s1", 10))
    expected = None if wanted is None else [{"op": "reshape", "path": "args[1]", "shape": wanted}]
    assert steps("input-rank", case_of(contract, call(tensor(5, 7, 10), tensor(*shape)))) == expected
    half = contract_of(Spec("s0"), Spec("s0", "s1", 10))
    assert steps("input-rank", case_of(half, call(tensor(6), tensor(5, 70)))) is None


def test_a_batch_above_its_range_is_cut_in_all_inputs_that_share_it():
    contract = contract_of(Spec(BATCH, 16), Spec(BATCH), Spec("t0"))
    case = case_of(contract, call(tensor(100, 16), tensor(100), tensor(100)))
    assert steps("input-range", case) == [
        {"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 64},
        {"op": "clamp_dim", "path": "args[1]", "dim": 0, "size": 64},
    ]


def test_a_batch_below_its_range_is_filled_in_all_inputs_that_share_it():
    least = ("s0", 4, 64)
    case = case_of(contract_of(Spec(least, 16), Spec(least), Spec("t0")), call(tensor(3, 16), tensor(3), tensor(3)))
    assert steps("input-range", case) == [
        {"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 4},
        {"op": "clamp_dim", "path": "args[1]", "dim": 0, "size": 4},
    ]
    # Zeros, where there is nothing to repeat.
    empty = case_of(contract_of(Spec(least)), call(tensor(0)))
    assert steps("input-range", empty) == [{"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 4}]


def test_disagreeing_sizes_are_cut_to_the_smaller_one():
    contract = contract_of(Spec(BATCH, 4), Spec(BATCH, 4))
    case = case_of(contract, call(tensor(8, 4), tensor(16, 4)))
    assert steps("input-shape-disagree", case) == [{"op": "clamp_dim", "path": "args[1]", "dim": 0, "size": 8}]
    case = case_of(contract, call(tensor(8, 4), tensor(5, 4)))
    assert steps("input-shape-disagree", case) == [{"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 5}]


def test_derived_dims_follow_their_symbol():
    case = case_of(contract_of(Spec("s0"), Spec("8*s0")), call(tensor(4), tensor(24)))
    assert steps("input-shape-disagree", case) == [{"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 3}]


def test_a_remainder_is_cut_off():
    case = case_of(contract_of(Spec("8*s0")), call(tensor(30)))
    assert steps("input-divisibility", case) == [{"op": "clamp_dim", "path": "args[0]", "dim": 0, "size": 24}]


@pytest.mark.parametrize(
    ("cause", "given", "op"),
    [
        ("input-lazy-bit", tensor(4, conj=True), "resolve"),
        ("input-layout", tensor(4, layout="sparse_csr"), "dense"),
        ("input-device", tensor(4, device="cuda:0"), "to"),
        ("input-device", tensor(4, device="meta"), "to"),
    ],
)
def test_single_tensors(cause, given, op):
    case = case_of(contract_of(Spec(4)), call(given))
    (step,) = steps(cause, case)
    assert (step["op"], step["path"]) == (op, "args[0]")


def test_nested_tensors_are_left_to_the_caller():
    case = case_of(contract_of(Spec(4)), call(tensor(4, layout="nested")))
    assert steps("input-layout", case) is None


def leaf(path):
    return {"leaf": path}


def test_dict_keys_are_put_in_the_order_of_the_spec():
    contract = contract_of(Spec(4), {"a": Spec(4), "b": Spec(4)})
    case = case_of(contract, call(tensor(4), {"b": tensor(4), "a": tensor(4)}))
    (step,) = steps("input-tree", case)
    assert step["args"]["tuple"][1] == {"dict": [["a", leaf("args[1]['a']")], ["b", leaf("args[1]['b']")]]}


def test_an_extra_key_is_dropped_and_a_renamed_one_is_moved():
    contract = contract_of({"a": Spec(4), "b": Spec(4)})
    extra = case_of(contract, call({"a": tensor(4), "b": tensor(4), "c": tensor(4)}))
    assert steps("input-tree", extra)[0]["args"]["tuple"][0]["dict"] == [
        ["a", leaf("args[0]['a']")],
        ["b", leaf("args[0]['b']")],
    ]
    renamed = case_of(contract, call({"a": tensor(4), "z": tensor(4)}))
    assert steps("input-tree", renamed)[0]["args"]["tuple"][0]["dict"][1] == ["b", leaf("args[0]['z']")]


def test_kwargs_renamed_and_given_the_other_way():
    contract = contract_of(Spec(4, 16), scale=Spec(16), bias=Spec(16))
    renamed = case_of(contract, call(tensor(4, 16), scale=tensor(16), offset=tensor(16)))
    assert steps("input-kwargs", renamed)[0]["kwargs"]["dict"] == [
        ["scale", leaf("kwargs['scale']")],
        ["bias", leaf("kwargs['offset']")],
    ]
    positional = case_of(contract, call(tensor(4, 16), tensor(16), tensor(16)))
    assert steps("input-kwargs", positional)[0]["kwargs"]["dict"] == [
        ["scale", leaf("args[1]")],
        ["bias", leaf("args[2]")],
    ]
    keyword = case_of(contract, call(x=tensor(4, 16), scale=tensor(16), bias=tensor(16)))
    assert steps("input-kwargs", keyword)[0]["args"] == {"tuple": [leaf("kwargs['x']")]}


def test_an_extra_keyword_is_dropped():
    contract = contract_of(Spec(4), scale=Spec(4))
    case = case_of(contract, call(tensor(4), scale=tensor(4), gamma=tensor(4)))
    plan = plan_treatment("input-kwargs", case, findings_of(case))
    assert plan.steps[0]["kwargs"]["dict"] == [["scale", leaf("kwargs['scale']")]]
    assert "kwargs['gamma']" in plan.text


def test_a_missing_keyword_gets_a_stand_in_that_says_so():
    contract = contract_of(Spec(BATCH, 16), scale=Spec(16), bias=Spec(BATCH))
    case = case_of(contract, call(tensor(8, 16), scale=tensor(16)))
    plan = plan_treatment("input-kwargs", case, findings_of(case))
    assert plan.steps[1]["op"] == "insert"
    assert plan.steps[1]["path"] == "kwargs['bias']"
    assert plan.steps[1]["tensor"]["tensor"]["shape"] == [8]
    assert "stand-in" in plan.text


def test_a_tensor_for_a_constant_becomes_a_plain_value():
    case = case_of(contract_of(Spec(4), CONSTANT), call(tensor(4), tensor(dtype="int64")))
    assert steps("input-count", case)[0]["args"] == {"tuple": [leaf("args[0]"), {"value": None}]}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([[1, 2, 3], [4, 5, 6]], True),
        ([[1, 2, 3], [4, 5]], False),
        ([[1, 2, "x"], [4, 5, 6]], False),
        ([1, 2, 3], False),
        ([[1, 2, 3]] * 65, False),
        (PlainValue(type="list", text="lists of 4 x 4096 numbers"), True),
    ],
)
def test_lists_of_numbers_are_made_the_tensor_that_they_spell(given, made):
    case = case_of(contract_of(ids=Spec(BATCH, "s1", dtype="int64")), call(ids=given))
    plan = plan_treatment("input-tree", case, findings_of(case))
    wanted = {"tensor_of": "kwargs['ids']", "dtype": "int64"}
    assert (plan.steps[0]["kwargs"]["dict"] if plan else None) == ([["ids", wanted]] if made else None)
    if made:
        assert plan.command == "kwargs['ids'] = torch.as_tensor(kwargs['ids'], dtype=torch.int64)"


def test_a_constant_that_the_code_does_not_read_takes_a_plain_value():
    """Without the exported program nothing tells whether such a leaf was a tensor."""
    contract = contract_of(ids=Spec(BATCH, 16), use_cache=CONSTANT)
    untold = replace(contract.leaves[1], kind="unknown")
    case = case_of(replace(contract, leaves=(contract.leaves[0], untold)), call(tensor(8, 16), False))
    assert steps("input-kwargs", case)[0]["kwargs"]["dict"] == [
        ["ids", leaf("args[0]")],
        ["use_cache", leaf("args[1]")],
    ]


def test_leaves_that_cannot_be_told_apart_are_not_guessed():
    contract = contract_of({"a": Spec(4), "b": Spec(4), "c": Spec(4)})
    case = case_of(contract, call({"x": tensor(4), "y": tensor(4)}))
    assert steps("input-tree", case) is None


def test_swapped_arguments_are_exchanged():
    case = case_of(contract_of(Spec(4, 16), Spec(3, dtype="int64")), call(tensor(3, dtype="int64"), tensor(4, 16)))
    assert steps("input-order", case) == [
        {"op": "tree", "args": {"tuple": [leaf("args[1]"), leaf("args[0]")]}, "kwargs": {"dict": []}}
    ]


def test_numbers_become_tensors_and_none_gets_a_stand_in():
    contract = contract_of(Spec(4), Spec())
    assert steps("input-nontensor", case_of(contract, call(tensor(4), 2.0))) == [
        {"op": "to_tensor", "path": "args[1]", "dtype": "float32"}
    ]
    plan = plan_treatment(
        "input-nontensor",
        case := case_of(contract_of(Spec(4, "s0"), Spec("s0")), call(None, tensor(7))),
        findings_of(case),
    )
    made = {"dtype": "float32", "shape": [4, 7], "seed": 0, "low": 0.0, "high": 1.0}
    assert list(plan.steps) == [{"op": "stand_in", "path": "args[0]", "tensor": made}]
    assert plan.command == ""
    assert steps("input-nontensor", case_of(contract_of(Spec(4)), call(2.0))) is None


def test_nan_and_overlap():
    stats = ValueStats(low=0.0, high=1.0, nan=2, inf=0, zeros=0)
    case = case_of(contract_of(Spec(4)), call(tensor(4, stats=stats)))
    assert steps("input-nan", case) == [{"op": "nan_to_num", "path": "args[0]"}]
    shared = case_of(contract_of(Spec(4), Spec(4)), call(tensor(4, storage="0"), tensor(4, storage="0")))
    assert [step["op"] for step in steps("input-alias", shared)] == ["clone"]


@pytest.mark.parametrize("bound", ["100L", "100", 100])
def test_bad_indices_are_clamped_below_the_bound(bound):
    stats = ValueStats(low=0, high=100, nan=0, inf=0, zeros=1)
    fine = ValueStats(low=0, high=99, nan=0, inf=0, zeros=1)
    contract = contract_of(Spec(8, dtype="int64"), Spec(8, dtype="int64"))
    case = case_of(contract, call(tensor(8, dtype="int64", stats=stats), tensor(8, dtype="int64", stats=fine)))
    found = steps("index-out-of-range", case, [run_evidence("index-out-of-bounds", bound=bound)])
    assert found == [{"op": "clamp_values", "path": "args[0]", "low": 0, "high": 99}]


def test_a_cause_that_lies_in_values_names_the_input():
    stats = ValueStats(low=0, high=100, nan=0, inf=0, zeros=1)
    case = case_of(contract_of(Spec(8), Spec(8, dtype="int64")), call(tensor(8), tensor(8, dtype="int64", stats=stats)))
    for symptom in ("index-out-of-bounds", "integer-division"):
        found = diagnose([run_evidence(symptom, bound="100L")], load_playbooks(), case=case)
        assert found[0].subject == "args[1]"


def test_a_symbolic_bound_is_not_clamped_to():
    stats = ValueStats(low=0, high=100, nan=0, inf=0, zeros=1)
    case = case_of(contract_of(Spec(8, dtype="int64")), call(tensor(8, dtype="int64", stats=stats)))
    assert steps("index-out-of-range", case, [run_evidence("index-out-of-bounds", bound="ks0")]) is None


def test_zeros_of_integer_inputs_are_replaced():
    stats = ValueStats(low=0, high=5, nan=0, inf=0, zeros=2)
    contract = contract_of(Spec(8, dtype="int64"), Spec(8))
    case = case_of(contract, call(tensor(8, dtype="int64", stats=stats), tensor(8, stats=stats)))
    found = steps("integer-division", case, [run_evidence("integer-division")])
    assert found == [{"op": "replace_value", "path": "args[0]", "old": 0, "new": 1}]


def finding(code, kind, **facts):
    return Evidence(code=code, kind=kind, severity=Severity.ERROR, subject=None, observed="", expected="", facts=facts)


def test_around_the_model():
    contract = replace(contract_of(Spec(4)), needs=HostNeeds(device_type="cpu", baked_threads={"a": 4, "b": 2}))
    case = case_of(contract, call(tensor(4)), reference="exported.pt2")
    case = replace(
        case, artifact=replace(case.artifact, models=(ModelEntry(name="encoder", layout="pt2", members=()),))
    )
    assert steps("threads-exceed-build", case) == [{"op": "threads", "n": 2}]
    assert steps("threading", case) == [{"op": "threads", "n": 1}]
    assert steps("model-name", case) == [{"op": "model_name", "name": "encoder"}]
    assert steps("tmpdir", case) == [{"op": "tmpdir"}]
    assert steps("load-device", case) == [{"op": "device", "device": "cpu"}]
    assert steps("weights-not-loaded", case, [finding("AD-LOAD-002", "on-disk")]) == [
        {"op": "load_weights", "from": "disk"}
    ]
    assert steps("weights-not-loaded", case, [finding("AD-LOAD-002", "external")]) == [
        {"op": "load_weights", "from": "exported.pt2"}
    ]


def test_what_only_the_user_knows_is_not_treated():
    case = case_of(contract_of(Spec(4)), call(tensor(4)))
    models = tuple(ModelEntry(name=name, layout="pt2", members=()) for name in ("encoder", "decoder"))
    several = replace(case, artifact=replace(case.artifact, models=models))
    assert steps("model-name", several) is None
    assert steps("weights-not-loaded", case, [finding("AD-LOAD-002", "external")]) is None
    assert steps("kernel-crash", case) is None


def test_half_a_treatment_is_none():
    case = case_of(contract_of(Spec(16, 16), Spec(16, 16)), call(tensor(256), tensor(5, 5, 5)))
    assert steps("input-rank", case) is None


def test_treatments_combine_in_order():
    case = case_of(contract_of(Spec(8, 8, dtype="int64")), call(tensor(8, 8, dtype="int32", stride=(1, 8))))
    dtype = Evidence(
        code="AD-IN-010", kind="dtype", severity=Severity.ERROR, subject="args[0]", observed="int32", expected="int64"
    )
    stride = Evidence(
        code="AD-IN-014", kind="stride", severity=Severity.ERROR, subject="args[0].stride", observed="", expected=""
    )
    plans = [plan_treatment(cause, case, [dtype, stride]) for cause in ("input-dtype", "input-stride")]
    both = combine(plans)
    assert [step["op"] for step in both.steps] == ["cast", "contiguous"]
    assert both.name == "cast+restride"
    assert combine([]) is None
    assert combine(plans[:1]) is plans[0]


def alone(kind, subject, severity=Severity.ERROR):
    return Evidence(code="AD-RUN-015", kind=kind, severity=severity, subject=subject, observed="", expected="")


def test_a_stand_in_for_the_one_operator_that_fails_alone():
    case = case_of(contract_of(Spec(4)), call(tensor(4)))
    findings = [alone("signalled", "zoo::bad"), alone("ok", "zoo::good", Severity.INFO)]
    assert steps("custom-op-crash", case, findings) == [{"op": "stand_in_operator", "target": "zoo::bad"}]
    assert plan_treatment("custom-op-crash", case, findings).command == ""
    assert steps("custom-op-crash", case, [*findings, alone("raised", "zoo::other")]) is None
    assert steps("custom-op-crash", case, findings[1:]) is None


def position(**facts):
    return Evidence(code="AD-RUN-022", kind="index", severity=Severity.INFO, subject=None, observed="", expected="",
                    facts={"position": True, "bound": 64, "origin": "wpe.weight.shape[0]", **facts}, id="E2")  # fmt: skip


def test_positions_beyond_a_table_are_cut_and_values_are_left_alone():
    stats = ValueStats(low=0, high=5000, nan=0, inf=0, zeros=1)
    contract = contract_of(Spec("s0", "s1", dtype="int64"), Spec("s0", "s1"))
    case = case_of(contract, call(tensor(2, 70, dtype="int64", stats=stats), tensor(2, 70)))
    failed = replace(run_evidence("index-out-of-bounds", bound="64L"), id="E1")
    blamed = position(sizes=("args[0].shape[1]", "args[1].shape[1]"), most=64)
    assert steps("index-out-of-range", case, [failed, blamed]) == [
        {"op": "clamp_dim", "path": "args[0]", "dim": 1, "size": 64},
        {"op": "clamp_dim", "path": "args[1]", "dim": 1, "size": 64},
    ]
    (found,) = diagnose([failed, blamed], load_playbooks(), case=case)
    assert (found.cause, found.subject) == ("index-out-of-range", "args[0].shape[1], args[1].shape[1]")
    assert "at most 64" in found.remedy.text
    assert "wpe.weight.shape[0]" in found.remedy.text
    # Which size it is may be unknown; that it is none of the values is known all the same.
    assert steps("index-out-of-range", case, [failed, position(sizes=(), most=None)]) is None
    (found,) = diagnose([failed, position(sizes=(), most=None)], load_playbooks(), case=case)
    assert found.subject is None


def wrong_values(kind, **facts):
    known = {"kernel": "cpp_fused_relu_1", "symbol": "cpp_fused_relu_1", "index": 1, "beyond": True}
    return Evidence(
        code="AD-RUN-016",
        kind=kind,
        severity=Severity.ERROR,
        subject="cpp_fused_relu_1",
        observed="",
        expected="",
        facts={**known, **facts},
    )


@pytest.mark.parametrize(
    ("reference", "facts", "planned"),
    [
        ("exported.pt2", {}, True),
        ("exported.pt2", {"beyond": False}, False),
        ("exported.pt2", {"symbol": None}, False),
        ("model.py:function", {}, False),
        (None, {}, False),
    ],
)
def test_the_program_s_values_in_place_of_what_a_kernel_wrote_in_the_middle(reference, facts, planned):
    case = case_of(contract_of(Spec(8)), call(tensor(8)))
    case = replace(case, options=replace(case.options, reference=reference))
    step = {"op": "put_nodes", "call": 1, "symbol": "cpp_fused_relu_1"}
    assert steps("numeric-difference", case, [wrong_values("diverges", **facts)]) == ([step] if planned else None)


@pytest.mark.parametrize(("custom", "reference"), [(True, "exported.pt2"), (False, "exported.pt2"), (True, None)])
def test_the_program_s_values_in_place_of_what_a_custom_operator_gave(custom, reference):
    case = case_of(contract_of(Spec(8)), call(tensor(8)))
    case = replace(case, options=replace(case.options, reference=reference))
    step = {"op": "put_nodes", "call": 1, "symbol": "aoti_torch_proxy_executor_call_function"}
    item = wrong_values("diverges", custom=custom, symbol=step["symbol"])
    assert steps("custom-op-contract", case, [item]) == ([step] if custom and reference else None)


@pytest.mark.parametrize(("cause", "kind"), [("nan-produced", "nan"), ("overflow", "inf")])
def test_zeros_need_no_reference(cause, kind):
    case = case_of(contract_of(Spec(8)), call(tensor(8)))
    step = {"op": "put_zeros", "call": 1, "symbol": "cpp_fused_relu_1"}
    assert steps(cause, case, [wrong_values(kind)]) == [step]
    assert steps(cause, case, [wrong_values(kind, beyond=False)]) is None


def test_what_was_followed_in_emulation_cannot_be_called():
    case = case_of(contract_of(Spec(8)), call(tensor(8)))
    contract = replace(case.contract, needs=replace(case.contract.needs, device_type="cuda"))
    assert steps("nan-produced", replace(case, contract=contract), [wrong_values("nan")]) is None
