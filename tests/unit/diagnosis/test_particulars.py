"""What to do is said in the terms of the case: its own input, dimension and bound, never a stock name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import PlainValue, ValueStats
from tests.unit.checks.input_builders import CONSTANT, Spec, call, case_of, contract_of, tensor
from tests.unit.diagnosis.test_treatments import findings_of, run_evidence

PLAYBOOKS = load_playbooks()
NONE = PlainValue(type="None", text="None")
IDS = Spec("s0", "s1", dtype="int64")


def remedy(cause, case, *more):
    findings = [replace(item, id=f"E{at}") for at, item in enumerate((*findings_of(case), *more), start=1)]
    return next(item.remedy for item in diagnose(findings, PLAYBOOKS, case=case) if item.cause == cause)


@pytest.mark.parametrize(
    ("cause", "contract", "inputs", "command"),
    [
        ("input-rank", contract_of(x=Spec("s0", 8)), call(x=tensor(1, 5, 8)), "kwargs['x'] = kwargs['x'].squeeze(0)"),
        ("input-rank", contract_of(x=Spec(5, "s0")), call(x=tensor(5, 1, 7)), "kwargs['x'] = kwargs['x'].squeeze(1)"),
        ("input-nontensor", contract_of(Spec(8), Spec(8)), call(tensor(8), NONE), ""),
        ("input-device", contract_of(Spec(8)), call(tensor(8, device="meta")), ""),
        ("input-order", contract_of(Spec(8, 4), IDS), call(tensor(2, 3, dtype="int64"), tensor(8, 4)), "model(args[1], args[0])"),
        ("input-kwargs", contract_of(x=Spec(8)), call(x=tensor(8), y=tensor(8)), "model(x=kwargs['x'])"),
        ("input-kwargs", contract_of(x=Spec(8)), call(xs=tensor(8)), "model(x=kwargs['xs'])"),
        ("input-kwargs", contract_of(x=Spec(8), y=Spec(4)), call(x=tensor(8)), ""),
        ("input-count", contract_of(Spec(8)), call(tensor(8), tensor(8)), "model(args[0])"),
        ("input-count", contract_of(Spec(8), Spec(8)), call(tensor(8)), ""),
        ("input-tree", contract_of(x=Spec(2, 2, dtype="int64")), call(x=[[1, 2], [3, 4]]),
         "kwargs['x'] = torch.as_tensor(kwargs['x'], dtype=torch.int64)"),
        ("input-tree", contract_of(Spec(8), Spec(4)), call([tensor(8), tensor(5)]), "model(*args[0])"),
        ("input-shape", contract_of(x=Spec("s0", 16)), call(x=tensor(3, 15)),
         "torch.export.Dim('x_1')   # for dim 1 of kwargs['x'], at export"),
        ("input-shape", contract_of(x=Spec("s0", 16)), call(x=tensor(16, 3)),
         "kwargs['x'] = kwargs['x'].permute(1, 0).contiguous()"),
        ("input-range", contract_of(x=Spec(("s0", 2, 64), 16)), call(x=tensor(200, 16)),
         "torch.export.Dim('x_0', min=2, max=200)   # for dim 0 of kwargs['x'], at export"),
        ("input-divisibility", contract_of(x=Spec("8*s0", 4)), call(x=tensor(30, 4)),
         "kwargs['x'] = torch.nn.functional.pad(kwargs['x'], (0, 0, 0, 2))"),
        ("input-shape-disagree", contract_of(Spec("s0", 4), Spec("s0", 8), Spec("s0")), call(tensor(3, 4), tensor(5, 8), tensor(3)),
         "args[1] = args[1].narrow(0, 0, 3).contiguous()"),
        # To cut all others to the odd one is nothing that a user would do.
        ("input-shape-disagree", contract_of(Spec("s0", 4), Spec("s0", 8), Spec("s0")), call(tensor(5, 4), tensor(3, 8), tensor(5)), ""),
    ],
)  # fmt: skip
def test_the_command_names_the_users_input(cause, contract, inputs, command):
    assert remedy(cause, case_of(contract, inputs)).command == command


def test_a_tensor_that_lacks_a_dimension_is_not_squeezed():
    told = remedy("input-rank", case_of(contract_of(x=Spec("s0", 8)), call(x=tensor(8))))
    assert "unsqueeze(0)" in told.command
    last = remedy("input-rank", case_of(contract_of(x=Spec(8, "s0")), call(x=tensor(8))))
    assert "unsqueeze(1)" in last.command


def test_a_missing_input_is_described_and_a_surplus_one_is_named():
    few = remedy("input-count", case_of(contract_of(Spec(8), Spec(4, dtype="int64")), call(tensor(8))))
    assert "int64[4]" in few.text
    many = remedy("input-count", case_of(contract_of(Spec(8)), call(tensor(8), tensor(8))))
    assert "args[1]" in many.text


def test_bounds_of_an_index_are_those_of_its_table():
    ids = tensor(4, dtype="int64", stats=ValueStats(low=0, high=120, nan=0, inf=0, zeros=1, all_zero_or_one=False))
    case = case_of(contract_of(ids=Spec("s0", dtype="int64")), call(ids=ids))
    told = remedy("index-out-of-range", case, run_evidence("index-out-of-bounds", bound="100L"))
    assert told.command == "print(int(kwargs['ids'].min()), int(kwargs['ids'].max()))   # must be in 0..99"


def test_a_log_alone_names_no_input():
    """Without a case nothing is made up for the user's inputs."""
    item = Evidence(code="AD-IN-013", kind="static", severity=Severity.ERROR, subject="args[0].shape[1]", observed="3",
                    expected="4", facts={"path": "args[0]", "dim": 1}, id="E1")  # fmt: skip
    assert "Dim(" not in diagnose([item], PLAYBOOKS)[0].remedy.command


def test_a_batch_of_one_is_told_once():
    contract = contract_of(*(Spec(("s0", 2, 64), 8) for _ in range(4)))
    told = [
        item
        for item in findings_of(case_of(contract, call(*(tensor(1, 8) for _ in range(4)))))
        if item.code == "AD-IN-017"
    ]
    assert len(told) == 1
    assert told[0].facts["places"] == tuple(f"args[{at}].shape[0]" for at in range(4))
    apart = contract_of(Spec(("s0", 2, 64), 8), Spec(("s1", 2, 64), 8))
    assert (
        len(
            [item for item in findings_of(case_of(apart, call(tensor(1, 8), tensor(1, 8)))) if item.code == "AD-IN-017"]
        )
        == 2
    )


def test_a_plain_value_that_a_tensor_was_given_for_stays():
    told = remedy("input-count", case_of(contract_of(Spec(8), CONSTANT), call(tensor(8), tensor(2))))
    assert "args[1]" in told.text
