"""What every format for people says: rows and next steps that fit the failure."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from aotidoctor.model.case import Options
from aotidoctor.model.evidence import FileSource, RunSource, Severity
from aotidoctor.model.report import Remedy, Status
from aotidoctor.model.run import Exited
from aotidoctor.reports.page import report_view
from aotidoctor.reports.page.report_view import WATCHED
from aotidoctor.reports.terminal.terminal_report import render_terminal
from tests.unit.reports import builders


def rows(report):
    return {row.label: row.text for row in report_view.first_rows(report) if row.label}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status.CONFIRMED, "confirmed (90%): R3 ran"),
        (Status.EMULATED, "confirmed in emulation, not on hardware (90%): R3 ran"),
        (Status.SUSPECTED, "suspected (90%); to confirm: ids above 99"),
    ],
)
def test_how_sure(status, text):
    diagnosis = replace(builders.misleading().diagnoses[0], confidence=0.9, status=status)
    assert report_view.how_sure(replace(diagnosis, confirmation="R3 ran", would_confirm="ids above 99")) == text


def test_sure_without_words():
    diagnosis = replace(builders.misleading().diagnoses[0], confidence=0.5, confirmation="", would_confirm="")
    assert report_view.how_sure(diagnosis).startswith("confirmed (50%): gone with the treatment")
    assert report_view.how_sure(replace(diagnosis, status=Status.SUSPECTED)) == "suspected (50%)"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (FileSource(file="a/b.cpp", line=7), "a/b.cpp:7"),
        (FileSource(file="a/b.cpp"), "a/b.cpp"),
        (RunSource(run="R2", stream="stderr", line=3), "R2 stderr:3"),
        (RunSource(run="R2", stream="stdout"), "R2 stdout"),
        (None, ""),
    ],
)
def test_sources(source, text):
    assert report_view.source_text(source) == text
    assert report_view.short_source(source) == text.removeprefix("a/")


def test_the_name_of_a_member_is_whole_and_stands_there_once():
    name = "c" * 50 + ".wrapper.so"
    assert report_view.short_source(FileSource(file=f"x/{name}", line=12)) == f"{name}:12"
    finding = builders.misleading().findings[0]
    findings = (replace(finding, subject=f"data/{name}", source=FileSource(file=f"m/data/{name}")),)
    for width in (40, 200):
        console = Console(file=io.StringIO(), width=width)
        render_terminal(replace(builders.misleading(), findings=findings), console)
        assert "".join(console.file.getvalue().split()).count(name) == 1


def test_the_evidence_that_tells_more_than_the_symptom_goes_first():
    report = builders.misleading()
    diagnosis = replace(report.diagnoses[0], evidence=("E2", "E1", "absent"))
    assert [item.id for item in report_view.evidence_of(report, diagnosis)] == ["E2", "E1"]
    assert report_view.decisive_evidence(report, diagnosis).id == "E1"
    assert report_view.what_it_is(report, diagnosis) == "observed int32, expected int64 [E1]"
    only = replace(diagnosis, evidence=("E2",))
    assert report_view.decisive_evidence(report, only).id == "E2"
    silent = replace(report, findings=tuple(replace(item, observed="", expected="") for item in report.findings))
    assert report_view.what_it_is(silent, diagnosis) == ""


def with_case(report, **changes):
    return replace(report, case=replace(report.case, **changes))


INPUTS, PROBES, SETUP, REFERENCE = "--inputs FILE", "--probes", "--setup FILE", "--reference"


@pytest.mark.parametrize(
    ("changes", "stage", "asked"),
    [
        ({"inputs": None}, "run1", {INPUTS, REFERENCE}),
        ({"inputs": None}, "load", set()),
        ({}, "run1", {REFERENCE}),
        ({"options": Options(reference="e.pt2")}, "run1", set()),
        ({"options": Options(reference="e.pt2", skip_rungs=frozenset({"again"}))}, "run1", {PROBES}),
        ({"contract": replace(builders.CONTRACT, custom_ops=("my::op",))}, "load", {SETUP}),
        (
            {"contract": replace(builders.CONTRACT, custom_ops=("my::op",)), "options": Options(setup="s.py")},
            "load",
            set(),
        ),
    ],
)
def test_what_to_try_next_is_what_changes_something(changes, stage, asked):
    report = with_case(builders.unknown(), **changes)
    report = replace(report, runs=tuple(replace(run, stage=stage) for run in report.runs))
    steps = report_view.next_steps(report)
    assert {word for word in (INPUTS, PROBES, SETUP, REFERENCE) if any(word in step for step in steps)} == asked
    assert steps[-1].startswith("-v shows what the child printed; -o DIR")


def test_where_every_run_returned_the_first_error_is_what_is_known():
    report = builders.unknown()
    error = replace(report.findings[0], id="E7", message="the numbers differ")
    warning = replace(error, id="E6", severity=Severity.WARN)
    report = replace(report, runs=(builders.outcome(),), findings=(warning, error), stage="output")
    assert rows(report)["Known"] == "the numbers differ [E7]"
    assert rows(report)["Fails in"] == "output"
    assert "Known" not in rows(replace(report, findings=(warning,)))


def watched(**more):
    run = builders.outcome(ending=Exited(code=1, done=False), stderr_tail="KeyError: 'x'\n")
    return replace(builders.unknown(), command="watch", extra={WATCHED: "serve.py"}, runs=(run,), **more)


def test_a_program_that_was_watched_says_its_last_words():
    ended = replace(builders.unknown().findings[0], code="AD-RUN-033", subject="serve.py", observed="exit 1")
    told = rows(watched(findings=(ended,)))
    assert (told["Program"], told["Says"]) == ("serve.py: exit 1", "KeyError: 'x'")
    assert "Program" not in rows(watched(findings=()))


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        ({}, ["--rerun", "--inputs FILE"]),
        ({"runs": (builders.outcome(), builders.outcome("R2"))}, ["--inputs FILE"]),
        ({"command": "guard"}, ["guard(inputs=...)"]),
    ],
)
def test_what_to_try_next_with_a_program(change, steps):
    found = report_view.next_steps(replace(with_case(watched(), inputs=None), **change))
    asked = ("--rerun", "--inputs FILE", "--package FILE", "guard(inputs=...)")
    assert [word for word in asked if any(word in one for one in found)] == steps
    assert ("-v shows everything" in found[-1]) is ("command" not in change)


def test_a_program_whose_package_is_unknown_is_asked_for_it():
    report = with_case(watched(), artifact=builders.environment().case.artifact)
    assert any("--package FILE" in step for step in report_view.next_steps(report))


@pytest.mark.parametrize(("command", "how"), [("watch", "--rerun"), ("guard", "guard(inputs=...)")])
def test_a_diagnosis_without_inputs_says_what_was_not_asked(command, how):
    report = replace(with_case(watched(), inputs=None), command=command)
    diagnosis = replace(builders.misleading().diagnoses[0], stage="run")
    told = rows(replace(report, diagnoses=(diagnosis,)))
    assert how in told["Not checked"]
    assert "Not checked" not in rows(replace(report, diagnoses=(replace(diagnosis, stage="load"),)))


def test_a_remedy_without_a_command_has_no_line_to_copy():
    report = builders.misleading()
    first = replace(report.diagnoses[0], remedy=Remedy(text="Pass int64."))
    shown = report_view.first_rows(replace(report, diagnoses=(first,)))
    assert not [row for row in shown if row.is_code]
    assert [row.text for row in report_view.first_rows(report) if row.is_code] == [report.diagnoses[0].remedy.command]


def test_a_message_that_repeats_what_was_observed_adds_nothing():
    finding = builders.misleading().findings[0]
    assert report_view.adds_nothing(replace(finding, message="kwargs['ids']: int32, expected int64"))
    assert not report_view.adds_nothing(
        replace(finding, message="int32 " + "and a longer story of why it matters " * 2)
    )
