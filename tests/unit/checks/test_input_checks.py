"""Each input check: what it must find, what it must leave alone, and which question comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.checks import input_dtype, input_stride
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Reads
from aotidoctor.model.evidence import Severity
from aotidoctor.model.inputs import Container, PlainValue, ValueStats
from aotidoctor.model.other_artifacts import CompiledFunction, Precompiled
from tests.unit.checks.input_builders import CONSTANT, Spec, ask, call, case_of, contract_of, tensor

X16 = Spec(16, 16)
ROWS = Spec("s0", "s1", 8, strides=("8*s1", 8, 1))
MLP = contract_of(Spec(("s0", 2, 64), 1024), Spec(("s0", 2, 64), 1024))


def found(contract, inputs, **options):
    return ask(case_of(contract, inputs, **options))


@pytest.mark.parametrize(
    ("contract", "inputs"),
    [
        pytest.param(contract_of(X16, X16), call(tensor(16, 16), tensor(16, 16)), id="fits"),
        pytest.param(contract_of(X16), call(tensor(16, 16, requires_grad=True)), id="requires_grad"),
        pytest.param(contract_of(X16), call(tensor(16, 16, storage_offset=3)), id="misaligned"),
        pytest.param(
            contract_of(Spec(16, 16, alignment=16)), call(tensor(16, 16, storage_offset=4)), id="as-it-is-asserted"
        ),
        pytest.param(contract_of(X16), call(tensor(16, 16, subclass="Parameter")), id="parameter"),
        pytest.param(contract_of(x=X16, y=X16), call(y=tensor(16, 16), x=tensor(16, 16)), id="kwargs-reordered"),
        pytest.param(contract_of(Spec(1, 16)), call(tensor(1, 16, stride=(999, 1))), id="stride-of-one"),
        pytest.param(contract_of(Spec("s0", 16)), call(tensor(0, 16, stride=(7, 3))), id="stride-of-empty"),
        pytest.param(MLP, call(tensor(64, 1024), tensor(64, 1024)), id="upper-bound-included"),
        pytest.param(contract_of(Spec("8*s0")), call(tensor(32)), id="divides"),
        pytest.param(contract_of(ROWS), call(tensor(3, 5, 8)), id="symbolic-stride"),
        pytest.param(contract_of(ROWS), call(tensor(1, 5, 8, stride=(999, 8, 1))), id="symbolic-stride-of-one"),
    ],
)
def test_nothing_to_say(contract, inputs):
    assert found(contract, inputs) == []


@pytest.mark.parametrize(
    ("contract", "inputs", "expected"),
    [
        pytest.param(
            contract_of(Spec(4, 16, dtype="bool")),
            call(
                tensor(
                    4, 16, dtype="uint8", stats=ValueStats(low=0, high=1, nan=0, inf=0, zeros=3, all_zero_or_one=True)
                )
            ),
            ("input_dtype", "same-width-mask", "args[0]", "warn"),
            id="uint8-mask",
        ),
        pytest.param(
            contract_of(Spec()), call(tensor(1)), ("input_rank", "one-element", "args[0]", "warn"), id="one-for-0d"
        ),
        pytest.param(
            contract_of((X16, X16)),
            call([tensor(16, 16), tensor(16, 16)]),
            ("input_tree", "list-for-tuple", "args[0]", "warn"),
            id="list-for-tuple",
        ),
        pytest.param(
            MLP,
            call(tensor(1, 1024), tensor(1, 1024)),
            ("input_range", "batch-one", "args[0].shape[0]", "warn"),
            id="batch-one",
        ),
        pytest.param(
            MLP,
            call(tensor(200, 1024), tensor(200, 1024)),
            ("input_range", "high", "args[0].shape[0]", "warn"),
            id="high",
        ),
        pytest.param(
            contract_of(Spec(16, 16, used=False)),
            call(tensor(16, 16, dtype="int32")),
            ("input_dtype", "dtype", "args[0]", "warn"),
            id="unused-input",
        ),
        pytest.param(
            contract_of(X16, CONSTANT),
            call(tensor(16, 16), 3),
            ("input_constant_changed", "ignored", "args[1]", "info"),
            id="constant-ignored",
        ),
    ],
)
def test_no_error(contract, inputs, expected):
    result = found(contract, inputs)
    assert expected in result
    assert "error" not in {severity for *_, severity in result}


@pytest.mark.parametrize(
    ("contract", "inputs", "expected"),
    [
        pytest.param(
            contract_of(Spec(8, dtype="int64")),
            call(tensor(8, dtype="int32")),
            ("input_dtype", "dtype", "args[0]"),
            id="ids",
        ),
        pytest.param(
            contract_of(Spec(4, 16, dtype="bool")),
            call(tensor(4, 16, dtype="uint8", stats=ValueStats(low=0, high=7, nan=0, inf=0, zeros=3))),
            ("input_dtype", "dtype", "args[0]"),
            id="uint8-not-a-mask",
        ),
        pytest.param(contract_of(X16), call(tensor(256)), ("input_rank", "rank", "args[0]"), id="flat"),
        pytest.param(contract_of(X16), call(tensor(1, 16, 16)), ("input_rank", "rank", "args[0]"), id="extra-dim"),
        pytest.param(contract_of(X16), call(tensor(16, 17)), ("input_shape", "static", "args[0].shape[1]"), id="wider"),
        pytest.param(
            contract_of(X16), call(tensor(16, 16, stride=(1, 16))), ("input_stride", "stride", "args[0].stride"), id="t"
        ),
        pytest.param(
            contract_of(X16),
            call(tensor(16, 16, stride=(0, 1))),
            ("input_stride", "stride", "args[0].stride"),
            id="expand",
        ),
        pytest.param(
            contract_of(ROWS),
            call(tensor(3, 5, 8, stride=(80, 8, 1))),
            ("input_stride", "stride", "args[0].stride"),
            id="rows",
        ),
        pytest.param(
            contract_of(Spec("s0", "s1", strides=("s1", 1)), Spec("s0", "s1", strides=("s1", 1))),
            call(tensor(3, 5), tensor(3, 6)),
            ("input_shape_disagree", "symbol", "args[1].shape[1]"),
            id="disagree-not-strides",
        ),
        pytest.param(
            MLP,
            call(tensor(8, 1024), tensor(16, 1024)),
            ("input_shape_disagree", "symbol", "args[1].shape[0]"),
            id="disagree",
        ),
        pytest.param(
            contract_of(Spec("8*s0")),
            call(tensor(30)),
            ("input_divisibility", "remainder", "args[0].shape[0]"),
            id="div8",
        ),
        pytest.param(
            contract_of(X16), call(tensor(16, 16, device="meta")), ("input_device", "meta", "args[0]"), id="meta"
        ),
        pytest.param(
            contract_of(Spec(16, 16, device=None)),
            call(tensor(16, 16, device="meta")),
            ("input_device", "meta", "args[0]"),
            id="meta-where-no-device-is-known",
        ),
        pytest.param(
            contract_of(X16), call(tensor(16, 16, device="cuda:0")), ("input_device", "device", "args[0]"), id="cuda"
        ),
        pytest.param(
            contract_of(X16),
            call(tensor(16, 16, layout="sparse_csr", stride=None)),
            ("input_layout", "sparse", "args[0]"),
            id="sparse",
        ),
        pytest.param(contract_of(X16), call(tensor(16, 16, neg=True)), ("input_lazy_bit", "neg", "args[0]"), id="neg"),
        pytest.param(
            contract_of(X16, X16), call(tensor(16, 16), 0.5), ("input_nontensor", "number", "args[1]"), id="float"
        ),
        pytest.param(contract_of(s=X16), call(s=None), ("input_nontensor", "none", "kwargs['s']"), id="none"),
        pytest.param(contract_of(X16, X16), call(tensor(16, 16)), ("input_count", "few", "args[1]"), id="few"),
        pytest.param(
            contract_of(X16, CONSTANT),
            call(tensor(16, 16), tensor(dtype="int64")),
            ("input_count", "many", "args[1]"),
            id="tensor-for-constant",
        ),
        pytest.param(
            contract_of(X16, s=X16),
            call(tensor(16, 16), tensor(16, 16)),
            ("input_kwargs", "keyword-as-positional", "args"),
            id="keyword-as-positional",
        ),
        pytest.param(
            contract_of(X16, s=X16),
            call(x=tensor(16, 16), s=tensor(16, 16)),
            ("input_kwargs", "positional-as-keyword", "kwargs['x']"),
            id="positional-as-keyword",
        ),
        pytest.param(
            contract_of(s=X16), call(t=tensor(16, 16)), ("input_kwargs", "renamed", "kwargs['t']"), id="renamed"
        ),
        pytest.param(contract_of(s=X16), call(), ("input_kwargs", "missing", "kwargs['s']"), id="missing"),
        pytest.param(
            contract_of(s=X16),
            call(s=tensor(16, 16), g=tensor(2)),
            ("input_kwargs", "extra", "kwargs['g']"),
            id="extra",
        ),
        pytest.param(
            contract_of({"a": X16, "b": X16}),
            call({"b": tensor(16, 16), "a": tensor(16, 16)}),
            ("input_tree", "key-order", "args[0]"),
            id="key-order",
        ),
        pytest.param(
            contract_of({"a": X16}),
            call({"a": tensor(16, 16), "c": tensor(16, 16)}),
            ("input_tree", "keys", "args[0]"),
            id="extra-key",
        ),
        pytest.param(
            contract_of([X16]), call(tensor(16, 8)), ("input_tree", "nesting", "args[0]"), id="flat-for-nested"
        ),
        pytest.param(
            contract_of({"a": X16}), call([tensor(16, 16)]), ("input_tree", "type", "args[0]"), id="list-for-dict"
        ),
        pytest.param(
            contract_of(Spec(4, 16), Spec(4, 8, dtype="int64")),
            call(tensor(4, 8, dtype="int64"), tensor(4, 16)),
            ("input_order", "swapped", "args[0], args[1]"),
            id="swapped",
        ),
        pytest.param(
            contract_of(Spec(1, 1, dtype="int64"), Spec(1, dtype="int64")),
            call(tensor(1, dtype="int64"), tensor(1, 1, dtype="int64")),
            ("input_order", "swapped", "args[0], args[1]"),
            id="swapped-of-one-element",
        ),
        pytest.param(
            contract_of(X16, CONSTANT),
            call(3, tensor(16, 16)),
            ("input_order", "swapped", "args[0], args[1]"),
            id="swapped-with-constant",
        ),
    ],
)
def test_first_error(contract, inputs, expected):
    errors = [item[:3] for item in found(contract, inputs) if item[3] == "error"]
    assert errors == [expected]


def test_three_rotated_arguments_are_named_one_by_one():
    contract = contract_of(Spec(4), Spec(5, dtype="int64"), Spec(6, 6))
    inputs = call(tensor(5, dtype="int64"), tensor(6, 6), tensor(4))
    errors = [item[:3] for item in found(contract, inputs) if item[3] == "error"]
    assert errors == [
        ("input_order", "swapped", "args[0], args[2]"),
        ("input_order", "swapped", "args[1], args[0]"),
        ("input_order", "swapped", "args[2], args[1]"),
    ]


def test_an_ambiguous_order_is_not_guessed():
    contract = contract_of(Spec(4), Spec(4), Spec(6, 6))
    errors = [item[0] for item in found(contract, call(tensor(6, 6), tensor(6, 6), tensor(4))) if item[3] == "error"]
    assert "input_order" not in errors


def test_changed_constant_needs_a_reference():
    contract, inputs = contract_of(X16, CONSTANT), call(tensor(16, 16), 5)
    assert ("input_constant_changed", "changed", "args[1]", "error") in found(
        contract, inputs, constants={"args[1]": "3"}
    )
    assert found(contract, call(tensor(16, 16), 3), constants={"args[1]": "3"}) == []


def test_one_leaf_one_answer():
    """A wrong dtype hides nothing of another leaf, and asks nothing more of its own."""
    contract = contract_of(X16, X16)
    inputs = call(tensor(16, 17, dtype="int32"), tensor(16, 16, stride=(1, 16)))
    assert [item[:3] for item in found(contract, inputs)] == [
        ("input_dtype", "dtype", "args[0]"),
        ("input_stride", "stride", "args[1].stride"),
    ]


def test_where_a_tensor_lies_does_not_hide_what_it_is():
    """A package for CUDA, with tensors of the CPU: its dtype, shape and strides are told all the same."""
    asked = [
        (tensor(16, 16, dtype="float16", device="cuda:0"), "input_dtype"),
        (tensor(16, 15, device="cuda:0"), "input_shape"),
        (tensor(16, 16, stride=(1, 16), device="cuda:0"), "input_stride"),
    ]
    for given, check in asked:
        told = found(contract_of(X16), call(given))
        assert {"input_device", check} <= {item[0] for item in told}


def test_majority_decides_who_disagrees():
    spec = Spec("s0", 4)
    inputs = call(tensor(9, 4), tensor(8, 4), tensor(8, 4))
    assert [item[2] for item in found(contract_of(spec, spec, spec), inputs)] == ["args[0].shape[0]"]


def test_overlapping_inputs_are_a_note():
    inputs = call(tensor(16, 16, storage="0"), tensor(16, 16, storage="0"))
    assert found(contract_of(X16, X16), inputs) == [("input_alias", "overlap", "args[0], args[1]", "info")]


def test_nan_is_a_warning_and_inf_a_note():
    nan = ValueStats(low=0.0, high=1.0, nan=1, inf=0, zeros=0, first_nonfinite=5)
    inf = ValueStats(low=0.0, high=1.0, nan=0, inf=2, zeros=0, first_nonfinite=5)
    inputs = call(tensor(16, 16, stats=nan), tensor(16, 16, stats=inf))
    assert found(contract_of(X16, X16), inputs) == [
        ("input_nan", "nan", "args[0]", "warn"),
        ("input_nan", "inf", "args[1]", "info"),
    ]


@pytest.mark.parametrize(
    ("contract", "inputs"),
    [
        (contract_of(X16, X16), call([tensor(16, 16), tensor(16, 16)])),
        (contract_of([X16, X16]), call(tensor(16, 16), tensor(16, 16))),
        (contract_of(X16, (X16, X16)), call((tensor(16, 16), tensor(16, 16)), tensor(16, 16))),
        (contract_of(X16, s=X16), call([[tensor(16, 16)]], s=tensor(16, 16))),
        (contract_of(X16, a=X16, s=X16), call([tensor(16, 16)], s=tensor(16, 16), a=tensor(16, 16))),
    ],
)
def test_sequences_that_are_nested_in_another_way_are_a_note(contract, inputs):
    (note,) = found(contract, inputs)
    assert (*note[:2], note[3]) == ("input_tree", "nested-alike", "info")


@pytest.mark.parametrize(
    ("contract", "inputs"),
    [
        (contract_of(X16, X16), call([tensor(16, 16)])),
        (contract_of(X16, X16), call([tensor(16, 16), tensor(16, 8)])),
        (contract_of(X16, X16), call({"b": tensor(16, 16), "a": tensor(16, 16)})),
        (contract_of({"a": X16, "b": X16}), call(tensor(16, 16), tensor(16, 16))),
        (contract_of(X16, X16), call([tensor(16, 16), None])),
        (contract_of(X16, s=X16), call([tensor(16, 16), tensor(16, 16)])),
    ],
)
def test_another_number_of_tensors_keys_and_tensors_that_do_not_fit_are_faults(contract, inputs):
    assert any(item[3] == "error" for item in found(contract, inputs))


def test_object_of_a_registered_class_is_not_looked_into():
    made = contract_of(X16, (X16,))
    record = Container(type="my.Record", children=made.args.children[1].children, keys=("x",))
    made = replace(made, args=replace(made.args, children=(made.args.children[0], record)))
    opaque = PlainValue(type="Record", text="my.Record(...)")
    assert found(made, call(tensor(16, 16), opaque)) == [("input_tree", "object", "args[1]", "info")]
    assert "args[1]" in input_dtype.CHECK.run(case_of(made, call(tensor(16, 16), opaque))).reason
    other = found(made, call(tensor(16, 16, dtype="float64"), opaque))
    assert [item[:2] for item in other] == [("input_tree", "object"), ("input_dtype", "dtype")]
    assert found(made, call(tensor(16, 16), None)) == [("input_tree", "nesting", "args[1]", "error")]


def test_a_namedtuple_is_known_by_two_names():
    made = contract_of((X16,))
    pair = replace(made.args.children[0], type="namedtuple:my.Pair")
    inputs = call((tensor(16, 16),))
    given = replace(inputs.args.children[0], type="namedtuple:Pair", keys=("x",))
    made, inputs = (
        replace(one, args=replace(one.args, children=(child,))) for one, child in ((made, pair), (inputs, given))
    )
    assert found(made, inputs) == []


def untold(*reads, dims=()):
    """An input of which kernels read as far as ``reads`` elements; the package shows these dims of it, and no rank."""
    return [Reads(extent=parse_expr(extent), step=step and parse_expr(step)) for extent, step in reads], dims


def without_checks(*inputs):
    contract = contract_of(*(Spec(*dims) for _, dims in inputs))
    leaves = (
        replace(leaf, rank=None, strides=None, stride_exprs=None, reads=tuple(reads))
        for leaf, (reads, _) in zip(contract.leaves, inputs, strict=True)
    )
    return replace(contract, leaves=tuple(leaves))


ROW_SUM = (untold(("6*s0", "6"), dims=("s0",)), untold(("6*s0", "6")))


@pytest.mark.parametrize(
    ("inputs", "given", "expected"),
    [
        pytest.param([untold(("24", "8"))], [tensor(3, 8)], None, id="enough"),
        pytest.param([untold(("24", "8"))], [tensor(3, 9)], None, id="more"),
        pytest.param([untold(("24", "8"))], [tensor(3, 8, stride=(1, 3))], None, id="another-order"),
        pytest.param([untold(("24", "8"))], [tensor(3, 8, stride=(16, 2))], None, id="with-gaps"),
        pytest.param([untold(("35", "8"))], [tensor(5, 3, stride=(8, 1))], None, id="gaps-that-are-read-over"),
        pytest.param([untold(("24", "8"))], [tensor(3, 7)], ("input_shape", "elements", "args[0]"), id="too-few"),
        pytest.param([untold(("24", "8"))], [tensor(8)], ("input_rank", "slice", "args[0]"), id="a-dim-is-missing"),
        pytest.param([untold(("24", "8"))], [tensor(1, 8)], ("input_shape", "elements", "args[0]"), id="one-row"),
        pytest.param([untold(("24", None))], [tensor(0, 8)], ("input_shape", "elements", "args[0]"), id="empty"),
        pytest.param(
            [untold(("24", "8"))],
            [tensor(3, 8, stride=(0, 1))],
            ("input_stride", "span", "args[0].stride"),
            id="expanded",
        ),
        pytest.param(ROW_SUM, [tensor(4, 6), tensor(4, 6)], None, id="as-many"),
        pytest.param(ROW_SUM, [tensor(0, 6), tensor(0, 6)], None, id="nothing-is-read"),
        pytest.param(
            ROW_SUM, [tensor(4, 6), tensor(3, 6)], ("input_shape_disagree", "elements", "args[1]"), id="fewer-rows"
        ),
        # The number of rows is that of the first one, and it is the one that is too narrow.
        pytest.param(
            ROW_SUM, [tensor(4, 5), tensor(4, 5)], ("input_shape", "elements", "args[0]"), id="both-too-narrow"
        ),
    ],
)
def test_inputs_that_no_check_describes(inputs, given, expected):
    told = found(without_checks(*inputs), call(*given))
    assert told == ([(*expected, "error")] if expected else [])


@pytest.mark.parametrize(
    ("contract", "inputs", "expected"),
    [
        (
            contract_of(Spec(4, dtype="bool")),
            call(tensor(4, dtype="uint8")),
            ("input_dtype", "dtype", "args[0]", "error"),
        ),
        (contract_of(Spec()), call(tensor(1)), ("input_rank", "rank", "args[0]", "error")),
    ],
)
def test_guards_of_a_precompiled_function_take_nothing_for_harmless(contract, inputs, expected):
    case = case_of(contract, inputs)
    found = Precompiled(form="aot-compile", functions=(CompiledFunction(name="f"),))
    assert expected in ask(replace(case, artifact=replace(case.artifact, precompiled=found)))


@pytest.mark.parametrize(("device", "severity"), [("cuda", Severity.ERROR), ("cpu", Severity.WARN)])
@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1), ("float16", 4), ("float64", 3), ("int8", 8)])
def test_a_view_begins_at_another_address_than_the_code_asserts(device, severity, dtype, offset):
    contract = contract_of(Spec(16, 16, dtype=dtype, device=device, alignment=16))
    given = tensor(16, 16, dtype=dtype, device=device, storage_offset=offset)
    (finding,) = input_stride.run(case_of(contract, call(given)))
    assert (finding.kind, finding.subject, finding.severity) == ("alignment", "args[0].storage_offset", severity)
    assert (finding.facts["bytes"], finding.facts["offset"]) == (16, offset)
    case = case_of(contract, call(given))
    diagnoses = diagnose([replace(finding, id="E1")], load_playbooks(), case=case)
    if severity is Severity.WARN:
        assert diagnoses == ()
    else:
        assert (diagnoses[0].cause, diagnoses[0].remedy.command) == ("input-stride", "args[0] = args[0].clone()")
        assert "its first element at byte" in diagnoses[0].title
