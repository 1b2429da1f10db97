"""The search for the smallest inputs: what is asked, what is left, and what it says when the time is up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.bisection import DimRange, dim_cuts, search_smallest, sizes_of, steps_of
from aotidoctor.model.case import Options
from aotidoctor.model.run import Signalled
from aotidoctor.probes.probe import History
from aotidoctor.probes.shrink import plan, signature_of
from aotidoctor.triage import examine
from aotidoctor.triage.state import Session
from tests.unit.checks.input_builders import Spec, call, case_of, contract_of, tensor
from tests.unit.probes.outcomes import outcome, raised

FAILED = raised("index out of bounds: 0 <= tmp2 < 100L\nException raised from cpp_fused_embedding_0 at /x/y.cpp:22")
FINE = outcome(outputs=[[{}], [{}]])
BATCH = ("s0", 2, 1024)


def case(*specs, sizes, **options):
    made = case_of(contract_of(*specs), call(*(tensor(*shape) for shape in sizes)))
    return replace(made, options=Options(shrink=True, **options))


def two(rows=800, columns=32, **options):
    return case(Spec(BATCH), Spec(BATCH, ("s1", 2, 64)), sizes=[(rows,), (rows, columns)], **options)


class Package:
    """A runner whose package fails where ``fails`` says so of what is kept of each dim; ``limit`` runs at most."""

    def __init__(self, fails, limit=1000):
        self.fails, self.limit, self.requests = fails, limit, []

    def run(self, request):
        self.requests.append(request)
        kept = {(step["path"], step["dim"]): range(step["start"], step["start"] + step["size"])
                for step in request.payload.treatment}  # fmt: skip
        known = FAILED if self.fails(kept) else FINE
        return replace(known, id=f"R{len(self.requests) + 1}", request=request)


def shrunk(of, fails, plain=FAILED, **more):
    session = Session(case=of, runner=Package(fails, **more))
    session.outcomes["plain_run"] = plain
    examine.shrink_inputs(session)
    return session


def row(number, rows=800):
    return lambda kept: number in kept.get(("args[0]", 0), range(rows))


@pytest.mark.parametrize(
    ("number", "start"), [(0, 0), (1, 0), (2, 1), (399, 398), (400, 399), (700, 699), (798, 797), (799, 798)]
)
def test_a_failure_of_one_row(number, start):
    (found,) = shrunk(two(), row(number)).findings
    assert (found.kind, found.facts["sizes"]) == ("smaller", ("args[0].shape[0] = 2", "args[1].shape[1] = 2"))
    assert found.facts["starts"] == (start, 0)
    assert f"args[1] = args[1].narrow(0, {start}, 2)" in found.facts["command"]


@pytest.mark.parametrize("least", [2, 3, 17, 255, 256, 799, 800])
def test_a_failure_of_size(least):
    def fails(kept):
        return len(kept.get(("args[0]", 0), range(800))) >= least

    session = shrunk(two(), fails)
    (found,) = session.findings
    assert found.facts["sizes"][0] == f"args[0].shape[0] = {least}"
    # What is named as gone was tried.
    assert found.facts["gone"] == ((f"args[0].shape[0] = {least - 1}",) if least > 2 else ())
    assert found.facts["runs"] == len(session.runs) <= 30


def test_all_of_it_is_needed():
    session = shrunk(two(), lambda kept: not kept)
    (found,) = session.findings
    assert (found.kind, found.facts["command"]) == ("needs-all", "")
    assert "all 800 of args[0].shape[0]" in found.observed


def test_another_failure_is_not_the_same():
    other = raised("something else went wrong")
    session = Session(case=two(), runner=Package(lambda kept: False))
    session.outcomes["plain_run"] = other
    examine.shrink_inputs(session)
    assert session.findings[0].kind == "needs-all"


def test_the_run_it_points_at_failed():
    session = shrunk(two(), row(700))
    by_id = {run.id: run for run in session.runs}
    error = by_id[session.findings[0].source.run].error
    assert error is not None
    assert error.type == "RuntimeError"
    assert error.message.startswith("index out of bounds: ")


def test_no_time_left():
    session = Session(case=two(), runner=Package(row(700)), deadline=0.0)
    session.outcomes["plain_run"] = FAILED
    examine.shrink_inputs(session)
    assert session.findings[0].kind == "unfinished"
    assert [item.code for item in session.not_checked] == ["AD-RUN-031"]


@pytest.mark.parametrize(
    ("of", "plain", "reason"),
    [
        (two(), FINE, "returned"),
        (two(), raised("no", stage="load"), "stage load"),
        (two(rows=2, columns=2), FAILED, "no dynamic size"),
        (case(Spec(8), sizes=[(8,)]), FAILED, "no dynamic size"),
        (replace(two(), inputs=None), FAILED, "unknown"),
    ],
)
def test_not_asked(of, plain, reason):
    assert reason in plan(of, History(outcomes={"plain_run": plain})).reason


def test_without_the_option_it_says_nothing():
    of = two()
    session = shrunk(replace(of, options=Options()), row(700))
    assert (session.findings, session.not_checked, session.runs) == ([], [], [])
    assert "--shrink" in plan(session.case, History(outcomes={"plain_run": FAILED})).reason


def test_derived_sizes_are_cut_in_their_steps():
    of = case(Spec(("8*s0", 16, 512)), Spec(("s0", 2, 64)), sizes=[(80,), (10,)])
    (size,) = sizes_of(of)
    assert (size.name, size.value, size.low) == ("s0", 10, 2)
    steps = steps_of(dim_cuts((size,), {"s0": DimRange(start=3, size=2)}))
    assert [(step["path"], step["start"], step["size"]) for step in steps] == [("args[0]", 24, 16), ("args[1]", 3, 2)]


def test_sizes_that_inputs_disagree_about_are_not_cut():
    assert sizes_of(case(Spec(BATCH), Spec(BATCH), sizes=[(8,), (9,)])) == ()


def test_sizes_of_two_symbols_keep_both():
    assert sizes_of(case(Spec("s0*s1"), Spec(BATCH), Spec(("s1", 2, 64)), sizes=[(32,), (8,), (4,)])) == ()


def test_the_batch_comes_first():
    assert [size.name for size in sizes_of(two(rows=8, columns=32))] == ["s0", "s1"]


def test_a_search_without_sizes_ends_at_once():
    search = search_smallest(())
    with pytest.raises(StopIteration) as end:
        next(search)
    assert end.value.value.parts == {}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (raised("weird 12 at 0xff"), raised("weird 13 at 0xab"), True),
        (raised("weird"), raised("odd"), False),
        (raised("weird"), raised("weird", type="KeyError"), False),
        (FAILED, raised(FAILED.error.message.replace("tmp2", "tmp3")), False),
        (outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1"), FAILED, False),
        (
            outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1"),
            outcome(ending=Signalled(signal=6, name="SIGABRT"), stage="run1"),
            False,
        ),
        (FINE, FINE, True),
    ],
)
def test_when_two_failures_are_alike(one, other, same):
    assert (signature_of(two(), one) == signature_of(two(), other)) is same
