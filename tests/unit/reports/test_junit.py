from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.cli.document_output import Format, Show, render_report
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.reports import junit
from tests.unit.reports import builders

XSD = Path(__file__).parents[2] / "data/schemas/junit-10.xsd"


@cache
def xsd():
    import xmlschema

    return xmlschema.XMLSchema(str(XSD))


REPORTS = {**builders.GOLDEN, "hostile": builders.hostile}


def rendered(report, *more):
    text = junit.render_junit(report, *more)
    xsd().validate(text)
    return ET.fromstring(text.encode()).find("testsuite")


def outcomes(suite):
    return {
        case.get("name"): next((child.tag for child in case if child.tag != "system-out"), "passed")
        for case in suite.iter("testcase")
    }


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_what_jenkins_takes_in(name):
    suite = rendered(REPORTS[name]())
    counted = list(outcomes(suite).values())
    assert int(suite.get("tests")) == len(list(suite.iter("testcase")))
    assert int(suite.get("failures")) == counted.count("failure")
    assert int(suite.get("errors")) == counted.count("error")
    assert int(suite.get("skipped")) == counted.count("skipped")


def test_cases_of_a_problem():
    suite = rendered(builders.misleading(), "error", {"AD-IN-010": "input_dtype", "AD-IN-014": "input_stride"})
    assert outcomes(suite) == {
        "AD-IN-010 input_dtype": "failure",
        "AD-IN-014 input_stride": "passed",
        "AD-RUN-001": "failure",
        "AD-IN-016 input_shape_disagree": "skipped",
        "R1 plain-run": "passed",
        "R2 check-inputs": "passed",
        "R3 treatment: cast": "passed",
    }
    told = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert told["verdict"] == "problem"
    assert told["signature"] == "sig1:input-dtype:1234abcd"
    assert told["command"] == "aotidoctor run model.pt2 --inputs sample.pt"
    assert suite.find("testcase/failure").get("message") == "kwargs['ids']: observed int32, expected int64"
    assert "cause: input-dtype" in suite.find("testcase/failure").text
    assert "PROBLEM: input-dtype" in suite.find("system-out").text


def test_fail_on_decides_what_fails():
    base = builders.misleading()
    mild = replace(base, findings=tuple(replace(item, severity=Severity.WARN) for item in base.findings))
    assert "failure" not in outcomes(rendered(mild)).values()
    assert outcomes(rendered(mild, "warn"))["AD-IN-010"] == "failure"
    assert "failure" not in outcomes(rendered(base, "never")).values()


def test_what_was_not_looked_at_is_skipped_with_its_reason_and_what_broke_is_an_error():
    unseen = (
        NotChecked(code="AD-IN-016", name="a", reason="no inputs"),
        NotChecked(code="AD-IN-017", name="b", reason="aotidoctor failed here: Traceback"),
    )
    suite = rendered(replace(builders.healthy(), not_checked=unseen))
    assert [(case.get("name"), case[0].tag, case[0].get("message")) for case in suite.iter("testcase") if len(case)][
        :2
    ] == [("AD-IN-016 a", "skipped", "no inputs"), ("AD-IN-017 b", "error", "aotidoctor failed here: Traceback")]


def test_an_examination_that_did_not_take_place_is_one_error():
    report = replace(builders.healthy(), cannot_examine="no such file", runs=(), not_checked=())
    assert outcomes(rendered(report)) == {"examination": "error"}
    report = replace(builders.healthy(), internal_error="Traceback\nKeyError: 1", runs=(), not_checked=())
    assert rendered(report).find("testcase/error").get("message") == "KeyError: 1"


def test_checks_that_passed_are_named():
    found = outcomes(
        ET.fromstring(render_report(builders.healthy(), Format.JUNIT, Show(), {}).encode()).find("testsuite")
    )
    assert found["AD-IN-014 input_stride"] == "passed"
    assert len(found) > 40
    few = render_report(builders.inspected(), Format.JUNIT, Show(), {})
    assert "AD-ART-001" in few
    assert "AD-IN-014" not in few
    assert "AD-ART-001" not in render_report(builders.environment(), Format.JUNIT, Show(), {})


@settings(max_examples=40)
@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_any_text_is_xml(text):
    base = builders.misleading()
    finding = Evidence(
        code="AD-IN-010", kind=text, severity=Severity.ERROR, subject=text, observed=text, expected=text, id="E1"
    )
    run = replace(base.runs[0], stdout_tail=text, stderr_tail=f"]]>{text}")
    rendered(replace(base, findings=(finding,), runs=(run,), signature=text, argv=("aotidoctor", text)))
