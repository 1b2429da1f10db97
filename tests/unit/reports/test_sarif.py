from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.cli.document_output import Format, Show, render_report
from aotidoctor.model.evidence import Evidence, FileSource, NotChecked, RunSource, Severity
from aotidoctor.model.localization import Frame, Localization
from aotidoctor.model.report import Remedy
from aotidoctor.reports import sarif
from tests.unit.reports import builders

SCHEMA = json.loads((Path(__file__).parents[2] / "data/schemas/sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


def rendered(report, **more):
    text = sarif.render_sarif(report, **more)
    document = json.loads(text)
    VALID.validate(document)
    return document["runs"][0]


def with_source(source, **more):
    base = builders.misleading()
    first = replace(base.findings[0], source=source, **more)
    return replace(base, findings=(first, *base.findings[1:]))


REPORTS = {**builders.GOLDEN, "hostile": builders.hostile}


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_what_the_schema_and_github_take_in(name):
    run = rendered(REPORTS[name]())
    rules = run["tool"]["driver"]["rules"]
    for rule in rules:
        assert rule["id"]
        assert len(rule["name"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert rule["help"]["text"]
        assert len(rule["properties"]["tags"]) <= 20
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("note", "warning", "error")
        (place,) = [location["physicalLocation"] for location in result["locations"]]
        assert place["region"]["startLine"] >= 1
        assert re.fullmatch(r"[\x21-\x7e]+", place["artifactLocation"]["uri"])
        assert not re.match(r"[a-z]+:(?!//)", place["artifactLocation"]["uri"])
        assert re.fullmatch(r"[0-9a-f]{16}:\d+", result["partialFingerprints"]["primaryLocationLineHash"])
        assert len(result.get("relatedLocations", [])) <= 1000
    prints = [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]
    assert len(prints) == len(set(prints))
    ids = [rule["id"] for rule in rules]
    assert len(ids) == len(set(ids))


def test_a_finding_in_the_wrapper_points_into_the_member_of_the_package():
    member = builders.CONTRACT.member
    base = builders.misleading()
    model = replace(base.case.model, members=(replace(base.case.model.members[0], name=member),))
    artifact = replace(base.case.artifact, models=(model,))
    report = with_source(FileSource(file=member, line=412))
    run = rendered(replace(report, case=replace(report.case, artifact=artifact)))
    result = next(item for item in run["results"] if item["ruleId"] == "AD-IN-010")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == member
    assert place["region"]["startLine"] == 412
    held = run["artifacts"][place["artifactLocation"]["index"]]
    assert run["artifacts"][held["parentIndex"]]["location"]["uri"] == "model.pt2"
    assert run["artifacts"][held["parentIndex"]]["hashes"] == {"sha-256": "0" * 64}


@pytest.mark.parametrize(("subject", "line"), [("cpp_fused_embedding_relu_0", 812), ("kwargs['ids'].dtype", 733)])
def test_what_a_run_said_of_a_kernel_or_an_input_is_about_its_line(subject, line):
    base = with_source(RunSource(run="R1", stream="stderr", line=1), subject=subject)
    leaves = (*builders.CONTRACT.leaves[:2], replace(builders.IDS, check_line=733))
    contract = replace(builders.CONTRACT, leaves=leaves)
    run = rendered(replace(base, case=replace(base.case, contract=contract)))
    for result in (run["results"][0], run["results"][2]):
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == builders.CONTRACT.member
        assert place["region"]["startLine"] == line
    assert run["results"][2]["locations"][0]["logicalLocations"][1]["name"] == "R1 stderr:1"


def test_config_pbtxt_is_told_with_line_and_column():
    run = rendered(with_source(FileSource(file="models/a b/config.pbtxt", line=7, column=3)))
    place = run["results"][2]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "models/a%20b/config.pbtxt"
    assert place["region"] == {"startLine": 7, "startColumn": 3}


def test_a_file_with_an_absolute_path_is_a_file_uri():
    run = rendered(with_source(FileSource(file="/tmp/#1/run.log", line=3)))
    place = run["results"][2]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "file:///tmp/%231/run.log"
    assert "uriBaseId" not in place


def test_levels_and_rank():
    run = rendered(builders.misleading())
    assert [(item["ruleId"], item["level"]) for item in run["results"]] == [
        ("input-dtype", "error"),
        ("index-out-of-range", "note"),
        ("AD-IN-010", "error"),
        ("AD-RUN-001", "error"),
    ]
    assert [place["id"] for place in run["results"][0]["relatedLocations"]] == [1, 2]


def test_the_invocation_states_the_status_and_what_was_not_checked():
    (invocation,) = rendered(builders.misleading())["invocations"]
    assert invocation["exitCode"] == 1
    assert invocation["executionSuccessful"] is True
    assert [(item["descriptor"]["id"], item["level"]) for item in invocation["toolExecutionNotifications"]] == [
        ("AD-IN-016", "note")
    ]
    assert rendered(builders.misleading(), fail_on="never")["invocations"][0]["exitCode"] == 0
    broken = rendered(replace(builders.unknown(), internal_error="Traceback\nValueError: x"))["invocations"][0]
    assert (broken["exitCode"], broken["executionSuccessful"]) == (5, False)


def test_nothing_is_suppressed():
    assert all(item["suppressions"] == [] for item in rendered(builders.misleading())["results"])


def test_the_fingerprint_is_that_of_the_fault_not_of_the_run():
    def prints(report):
        return [item["partialFingerprints"]["primaryLocationLineHash"] for item in rendered(report)["results"]]

    one = with_source(FileSource(file="a.wrapper.cpp", line=5), subject="cpp_fused_add_0")
    again = with_source(FileSource(file="b.wrapper.cpp", line=9), subject="cpp_fused_add_7")
    other = with_source(FileSource(file="a.wrapper.cpp", line=5), subject="args[1]")
    third = with_source(FileSource(file="a.wrapper.cpp", line=5), subject="args[2]")
    assert prints(one) == prints(again)
    assert prints(other) != prints(third)
    assert prints(one) != prints(replace(one, signature="sig1:other:1"))
    assert len(set(prints(builders.misleading()))) == 4


def test_help_is_the_manual():
    run = json.loads(render_report(builders.misleading(), Format.SARIF, Show(), {}))["runs"][0]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert "What it does" in rules["AD-IN-010"]["help"]["text"]
    assert "## What happened" in rules["input-dtype"]["help"]["markdown"]
    assert not rules["input-dtype"]["fullDescription"]["text"].startswith("#")
    assert "toml" not in rules["input-dtype"]["help"]["text"]


def test_ten_thousand_findings_are_cut_and_counted():
    one = Evidence(code="AD-IN-010", kind="k", severity=Severity.WARN, subject="s", observed="o", expected="e")
    unseen = tuple(NotChecked(code="AD-IN-016", name="n", reason="r") for _ in range(3))
    report = replace(builders.misleading(), findings=(one,) * 10_000, not_checked=unseen)
    (run,) = json.loads(sarif.render_sarif(report))["runs"]
    assert len(run["results"]) == sarif.RESULTS
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert notes[-1]["message"]["text"] == "5002 more findings are not listed here"


def test_the_native_stack_is_told_with_its_lines():
    frames = (
        Frame(index=0, function="cpp_fused_add_0", member=builders.CONTRACT.member, line=77, library="/p/a.so"),
        Frame(index=1, function=None, library="libtorch_cpu.so"),
    )
    report = replace(builders.misleading(), localization=Localization(culprit="cpp_fused_add_0", frames=frames))
    run = rendered(report)
    (stack,) = run["results"][0]["stacks"]
    first, second = stack["frames"]
    assert first["location"]["physicalLocation"]["region"] == {"startLine": 77}
    assert first["location"]["message"]["text"] == "cpp_fused_add_0"
    assert second == {
        "location": {"message": {"text": "?"}, "logicalLocations": [{"name": "?"}]},
        "module": "libtorch_cpu.so",
    }
    assert "stacks" not in run["results"][1]


@settings(max_examples=30)
@given(st.text(alphabet=st.characters(codec=None), max_size=30))
def test_any_text_is_sarif(text):
    base = builders.misleading()
    source = FileSource(file=text, line=0, column=0)
    finding = replace(base.findings[0], kind=text, subject=text, observed=text, message=text, source=source)
    first = replace(base.diagnoses[0], title=text, subject=text, remedy=Remedy(text=text, command=text))
    artifact = replace(base.case.artifact, path=text)
    report = replace(
        base,
        findings=(finding,),
        diagnoses=(first,),
        not_checked=(NotChecked(code="AD-IN-016", name=text, reason=text),),
        argv=("aotidoctor", text),
        signature=text,
        started=text,
        case=replace(base.case, artifact=artifact),
    )
    run = rendered(report)
    assert len(run["results"]) == 2
