from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aotidoctor.commands.analyze.analyze import analyze, compare_verdicts
from aotidoctor.commands.analyze.saved_report import SavedCause, read_runs
from aotidoctor.commands.bundle.bundle_members import BundleContents
from aotidoctor.commands.bundle.collect import NO_RUN
from aotidoctor.model.case import Case
from aotidoctor.model.run import Exited, NotStarted, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.page.report_view import headline
from tests.unit.commands.bundle.conftest import made, members, packed
from tests.unit.reports import builders


def sent(at, report):
    return analyze(at(made(report).data))


def test_a_bare_report_keeps_its_cause(at):
    report = builders.misleading()
    again = analyze(at(json_.render_json(report), "report.json"))
    assert again.command == "analyze"
    kept = [(item.code, item.kind, item.subject, item.observed) for item in again.findings if item.code != "AD-BUN-001"]
    assert kept == [(item.code, item.kind, item.subject, item.observed) for item in report.findings]
    assert [run.id for run in again.runs] == [run.id for run in report.runs]
    assert again.case.host.torch == report.case.host.torch


@pytest.mark.parametrize(
    "ending",
    [
        Signalled(signal=0, name="SIGSEGV", core_dumped=True),
        Exited(code=3, done=True),
        Exited(code=0, done=False),
        TimedOut(limit=2.5),
        OutOfMemory(reason="cgroup"),
        NotStarted(reason="no torch"),
    ],
)
def test_endings_come_back(ending):
    report = builders.report(runs=(builders.outcome(ending=ending),))
    [run] = read_runs(json.loads(json_.render_json(report)))
    assert run.ending == ending


@pytest.mark.parametrize(
    ("before", "now", "kind", "severity"),
    [
        ("a", "a", "same", "info"),
        (None, None, "none", "info"),
        (None, "a", "named-now", "warn"),
        ("a", "b", "another", "warn"),
        ("a", None, "not-named", "warn"),
    ],
)
def test_what_changed(before, now, kind, severity):
    old = [SavedCause(cause=before, status="suspected", confirmation="")] if before else []
    new = [replace(builders.misleading().diagnoses[0], cause=now)] if now else []
    change = compare_verdicts(old, new, tool="0.0.1", path="b.zip")
    assert (change.kind, change.severity.value) == (kind, severity)
    assert "0.0.1" in change.expected


def test_a_case_that_is_not_there_or_odd_leaves_the_findings(at):
    document = json_.render_json(builders.misleading()).encode()
    for case in (None, b"{}", b'{"schema": "aotidoctor.case/1", "case": {"artifact": 3}}', b"[" * 9000):
        contents = {"report.json": document} | ({"case.json": case} if case is not None else {})
        again = analyze(at(packed(contents)))
        assert any("case.json" in item.observed for item in again.findings if item.code == "AD-BUN-002")
        assert {item.code for item in builders.misleading().findings} <= {item.code for item in again.findings}


def test_the_sent_case_is_examined_again(at):
    """A finding that the report lost comes back: the checks look at the case, not at the report."""
    bundle = made(builders.bad_inputs())
    contents = {name: data for name, data in members(bundle.data).items() if name != "bundle.json"}
    report = json.loads(contents["report.json"])
    lost = {item["code"] for item in report["findings"]}
    report |= {"findings": [], "diagnoses": [], "command": "check"}
    again = analyze(at(packed(contents | {"report.json": json.dumps(report).encode()})))
    found = {item.code for item in again.findings}
    assert isinstance(again.case, Case)
    assert found & lost
    assert [item.kind for item in again.findings if item.code == "AD-BUN-001"] == ["named-now"]


def test_partial_reports_are_not_called_healthy(at):
    document = json.loads(json_.render_json(builders.healthy())) | {"interrupted": True}
    assert analyze(at(json.dumps(document))).verdict == "unknown"
    document = json.loads(json_.render_json(builders.healthy())) | {"cannot_examine": "no such file: x"}
    assert analyze(at(json.dumps(document))).cannot_examine == "no such file: x"


def test_what_was_not_checked_there_is_said(at):
    again = analyze(at(made(builders.misleading()).data))
    [own] = [item for item in again.not_checked if item.code == "AD-RUN"]
    assert "does not execute anything" in own.reason


def test_hostile_values_in_a_report(at):
    document = {
        "schema": "aotidoctor.report/1",
        "command": "run",
        "findings": [3, {"code": 3, "facts": [1], "severity": "x", "source": {"file": 1}}, {"facts": {"a": [[1], {}]}}],
        "runs": [
            {"ending": "timed-out", "ending_why": "limit x s", "seconds": 1e400, "env": [], "stages_s": {"a": "b"}},
            7,
        ],
        "diagnoses": [{"cause": 3}],
        "host": {"system": 3},
        "artifact": [],
        "localization": {"timeline": "x"},
        "log": 3,
        "tool": 3,
    }
    again = analyze(at(json.dumps(document)))
    json_.render_json(again)
    assert again.localization is None


def test_a_bundle_without_a_run_is_not_called_healthy(at):
    """A crash that only a run shows is nowhere in it."""
    quiet = replace(builders.healthy(), runs=(), command="check")
    bundle = made(quiet)
    assert [item.name for item in bundle.absent if "--run" in item.reason] == [NO_RUN]
    # Without the case: the checks would judge a package that was never there.
    again = analyze(at(packed({"report.json": json_.render_json(quiet).encode()})))
    assert (again.verdict, again.diagnoses) == ("unknown", ())
    assert "--run" in headline(again).text
    ran = builders.healthy()
    assert ran.runs
    assert analyze(at(packed({"report.json": json_.render_json(ran).encode()}))).verdict == "healthy"
    # The report of a check, by itself, is what it was.
    assert analyze(at(json_.render_json(quiet))).verdict == "healthy"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("LLVM ERROR: unsupported opcode found in DIExpression", "unknown"),
        ("RuntimeError: index out of bounds: 0 <= tmp2 < 100L", "problem"),
    ],
)
def test_a_cause_that_a_log_in_the_bundle_only_suggests_is_perhaps(at, tmp_path, monkeypatch, line, verdict):
    # Of files and runs there are none here.
    monkeypatch.setattr("aotidoctor.commands.analyze.analyze.name_causes", lambda session, refuted: ())
    (tmp_path / "x.log").write_text(f"{line}\n")
    bundle = made(builders.report(), BundleContents(logs=(str(tmp_path / "x.log"),)))
    again = analyze(at(bundle.data))
    assert (again.verdict, len(again.diagnoses)) == (verdict, 1)
    assert headline(again).text.startswith("perhaps ") == (verdict == "unknown")
