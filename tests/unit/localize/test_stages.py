"""Which stage is looked at next, what a run of one means, and which one is the first that breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.localize.stages import custody, first_broken, next_stage, outcome_name, read_stage
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.jobs import Stage
from aotidoctor.model.localization import CustodyStage
from aotidoctor.model.run import Exited, Request, Signalled, TimedOut
from tests.unit.probes.outcomes import outcome


def of(**verdicts):
    return {
        name.replace("_", " "): CustodyStage(name=name.replace("_", " "), verdict=verdict)
        for name, verdict in verdicts.items()
    }


@pytest.mark.parametrize(
    ("known", "has_model", "has_program", "expected"),
    [
        ({}, True, True, ("eager", None)),
        ({}, False, True, ("decomposed", "exported")),
        ({}, False, False, None),
        ({"eager": "raises"}, True, True, None),
        ({"eager": "agrees"}, True, True, ("exported", "eager")),
        ({"eager": "agrees"}, True, False, ("not strict", "eager")),
        ({"eager": "agrees", "exported": "agrees"}, True, True, ("decomposed", "exported")),
        ({"eager": "agrees", "exported": "differs"}, True, True, ("not strict", "eager")),
        ({"eager": "agrees", "exported": "differs", "not_strict": "agrees"}, True, True, None),
        ({"eager": "agrees", "exported": "differs", "not_strict": "raises"}, True, True, ("strict", "eager")),
        ({"eager": "agrees", "exported": "not looked at", "not_strict": "agrees"}, True, True, ("decomposed", "not strict")),
        ({"eager": "agrees", "not_strict": "raises"}, True, False, ("strict", "eager")),
        ({"eager": "agrees", "not_strict": "raises", "strict": "agrees"}, True, False, ("decomposed", "strict")),
        ({"eager": "agrees", "not_strict": "raises", "strict": "raises"}, True, False, None),
        ({"decomposed": "differs"}, False, True, None),
    ],
)  # fmt: skip
def test_the_next_stage(known, has_model, has_program, expected):
    assert next_stage(of(**known), has_model=has_model, has_program=has_program) == expected


def ran(before="eager", *, reference=None, result=(), **changes):
    made = outcome("stages", result={**dict(result), **({"reference": reference} if reference is not None else {})})
    request = Request(probe="stages", job="stage", payload=Stage(stage="exported", before=before))
    return replace(made, request=request, **changes)


def leaf(**facts):
    return {"path": "result", "agrees": False, "max_abs_diff": 0.5, **facts}


@pytest.mark.parametrize(
    ("run", "verdict", "words"),
    [
        (ran(None, reference={"outputs": []}), "agrees", "returns"),
        (ran(reference={"outputs": [leaf(verdict="both-within")]}), "agrees", "0.5"),
        (ran(reference={"outputs": [leaf(verdict="package-wrong")]}), "differs", "result: max |difference| 0.5"),
        (ran(reference={"outputs": [leaf(verdict="dtype")]}), "differs", "another dtype"),
        (ran(reference={"outputs": [leaf(verdict="unknown", reason="it is random")]}), "undecided", "it is random"),
        (ran(reference={"outputs": [], "missing": ["result[1]"]}), "differs", "another missing"),
        (ran(reference={"error": "IndexError: 7\nmore", "where": "m.py:3"}), "raises", "IndexError: 7"),
        (ran(reference={"unavailable": "it takes two arguments"}), "not looked at", "two arguments"),
        (ran(stage="exported", ending=Signalled(signal=11, name="SIGSEGV")), "raises", "killed by SIGSEGV"),
        (ran(stage="eager", ending=Signalled(signal=11, name="SIGSEGV")), "not looked at", "eager"),
        (ran(stage="float64", ending=TimedOut(limit=5)), "not looked at", "in time"),
        (ran(stage="inputs", ending=Exited(code=1, done=False)), "not looked at", "inputs"),
    ],
)  # fmt: skip
def test_what_a_run_means(run, verdict, words):
    row = read_stage("exported", run)
    assert row.verdict == verdict
    assert words in row.observed


def test_the_operator_and_what_stands_in_its_place():
    facts = {"operator": "aten.relu.default", "instead": "aten.tanh.default", "where": "m.py:8"}
    row = read_stage("exported", ran(reference={"outputs": [leaf(verdict="package-wrong")]}, result=facts))
    assert (row.operator, row.where) == ("aten.relu.default", "m.py:8")
    assert row.observed.endswith("aten.tanh.default in its place")


@pytest.mark.parametrize(
    ("known", "first"),
    [
        ({"eager": "agrees", "exported": "agrees"}, None),
        ({"eager": "raises"}, "eager"),
        ({"eager": "agrees", "not_strict": "differs", "strict": "agrees"}, None),
        ({"eager": "agrees", "not_strict": "differs", "strict": "differs"}, "not strict"),
        ({"eager": "agrees", "not_strict": "raises", "strict": "raises"}, None),
        ({"eager": "agrees", "exported": "undecided", "decomposed": "differs"}, "decomposed"),
    ],
)
def test_the_first_that_breaks_it(known, first):
    found = first_broken([*of(**known).values()])
    assert (found.name if found is not None else None) == first


def finding(code, kind, severity=Severity.WARN, **facts):
    return Evidence(
        code=code, kind=kind, severity=severity, subject="aten.exp.default", observed="so", expected="", facts=facts
    )


COMPARED = outcome("reference", result={"reference": {"outputs": [leaf(verdict="package-wrong")]}})
DECOMPOSED = {outcome_name("decomposed"): ran("exported", reference={"outputs": []}), "reference": COMPARED}


@pytest.mark.parametrize(
    ("findings", "first", "others"),
    [
        ((), "package", {"lowered": "not looked at"}),
        ((finding("AD-RUN-017", "agrees"),), "package", {"lowered": "agrees"}),
        ((finding("AD-RUN-017", "differs"),), "lowered", {"without passes": "not looked at", "package": "differs"}),
        ((finding("AD-RUN-017", "differs"), finding("AD-RUN-018", "found", without_passes="good")), "lowered",
         {"without passes": "agrees", "one step off": "agrees"}),
        ((finding("AD-RUN-017", "differs"), finding("AD-RUN-018", "not-found", without_passes="bad")), "lowered",
         {"without passes": "differs"}),
    ],
)  # fmt: skip
def test_what_was_compiled(findings, first, others):
    rows = {row.name: row for row in custody(findings, DECOMPOSED)}
    assert [name for name, row in rows.items() if row.first] == [first]
    assert {name: rows[name].verdict for name in others} == others


def test_weights_that_differ_are_the_packages_fault():
    undecided = outcome("reference", result={"reference": {"outputs": [leaf(verdict="unknown")]}})
    found = finding("AD-RUN-011", "weights", Severity.ERROR)
    rows = custody((found,), {**DECOMPOSED, "reference": undecided})
    assert [(row.name, row.verdict) for row in rows if row.first] == [("package", "differs")]


def test_nothing_was_looked_at():
    assert custody((finding("AD-RUN-017", "differs"),), {"reference": COMPARED}) == ()
