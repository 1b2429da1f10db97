"""What a call was made of is said of that call, and not of others of its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.call_timeline import last_call, origin_of, static_calls, timeline
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.run import Trace, TracedCall
from tests.unit.probes import outcomes

ADDMM, FUSED = "aoti_torch_cpu_addmm_out", "cpp_fused_relu_1"
CALLS = (
    KernelCall(name=ADDMM, kind="extern"),
    KernelCall(name=FUSED, kind="cpp", origins=("aten.relu",)),
    KernelCall(name=ADDMM, kind="extern", origins=("aten.addmm", "aten.t")),
    KernelCall(name=ADDMM, kind="extern", origins=("aten.addmm",)),
)
INFORMATION = {f"{ADDMM}:{at}": {"stack_traces": (f'File "model.py", line {at}',)} for at in (1, 3, 4)}


def case(calls=CALLS, information=None):
    made = outcomes.case()
    model = None if made.model is None else replace(made.model, kernel_information=information or {})
    assert made.contract is not None
    return replace(made, contract=replace(made.contract, kernels=calls), model=model)


def trace(*names, runs=1):
    one = ["aoti_torch_empty_strided", *names]
    calls = tuple(TracedCall(symbol=name, argument=0, at=float(at)) for at, name in enumerate(one * runs))
    return Trace(calls=calls, total=len(calls), slots=0, marks=tuple(range(0, len(calls), len(one))))


ORDER = [call.name for call in CALLS]


def test_each_call_has_its_own():
    found = timeline(case(), trace(*ORDER, runs=2), ended=True)
    assert [entry.origins for entry in found] == [call.origins for call in CALLS] * 2


def test_a_run_that_ended_early_begins_alike():
    found = last_call(case(), trace(*ORDER[:3]), raised=False)
    assert found is not None
    assert (found.name, found.origin.operators) == (ADDMM, ("aten.addmm", "aten.t"))


@pytest.mark.parametrize("names", [[ADDMM, ADDMM, FUSED, ADDMM], [*ORDER, ADDMM]])
def test_another_order_than_the_wrappers_says_nothing_of_one_call(names):
    assert static_calls(case(), names) == (None,) * len(names)
    found = timeline(case(), trace(*names), ended=True)
    assert {entry.origins for entry in found if entry.name == ADDMM} == {()}
    assert {entry.origins for entry in found if entry.name == FUSED} == {("aten.relu",)}


def test_what_all_calls_share_is_said_of_the_name():
    assert origin_of(case(), ADDMM).operators == ()
    assert origin_of(case(CALLS[3:]), ADDMM).operators == ("aten.addmm",)


def test_the_source_line_is_that_of_the_call():
    found = timeline(case(information=INFORMATION), trace(*ORDER), ended=True)
    assert [entry.where for entry in found] == ["model.py:1", None, "model.py:3", "model.py:4"]
    assert origin_of(case(information=INFORMATION), ADDMM).where is None
