"""When there is no verdict: what was asked for is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands import diagnose_package
from aotidoctor.model.case import Host, Options, TorchBuild
from aotidoctor.model.errors import CANNOT_EXAMINE
from aotidoctor.model.run import NotStarted, TimedOut
from aotidoctor.reports.text import exit_status
from aotidoctor.triage import open_case
from tests.artifacts.packages import package_parts, write_zip
from tests.unit.probes.outcomes import outcome


@pytest.fixture
def package(tmp_path):
    return write_zip(tmp_path / "model.pt2", package_parts())


@pytest.mark.parametrize("reference", ["nope.pt2", "nope.py:forward", "no:where.pt2"])
def test_a_reference_that_is_not_there(package, reference):
    report = diagnose_package.diagnose(package, None, Options(reference=reference), environ={}, static_only=True)
    assert report.cannot_examine.startswith(f"no such file: {reference.removesuffix(':forward')} (--reference)")
    assert exit_status(report, "never") == CANNOT_EXAMINE


def test_a_reference_that_is_there(package, tmp_path):
    (tmp_path / "make.py").write_text("def forward(x): return x\n")
    for reference in (package, f"{tmp_path}/make.py:forward"):
        report = diagnose_package.diagnose(package, None, Options(reference=reference), environ={}, static_only=True)
        assert report.cannot_examine is None


def test_without_a_path_nothing_is_missing(package):
    assert diagnose_package.diagnose(package, None, Options(), environ={}, static_only=True).cannot_examine is None


class Lost:
    """A runner whose children never start."""

    unseen = ""

    def prewarm(self):
        return

    def forget(self):
        pass

    def run(self, request):
        return outcome(request.probe, ending=NotStarted(reason="fork: Resource temporarily unavailable"), stage="start")


def examined(package, monkeypatch, *, torch, **options):
    host = Host(system="Linux", machine="x86_64", python="3.11", torch=torch, torch_problem="there is no torch")
    monkeypatch.setattr(open_case, "read_host", lambda **_: host)
    return diagnose_package.diagnose(package, None, Options(**options), environ={}, runner=Lost())


def test_no_process_could_be_started(package, monkeypatch):
    report = examined(package, monkeypatch, torch=TorchBuild(version="2.13.0", path="/x"))
    assert report.cannot_examine == "nothing was run: fork: Resource temporarily unavailable"


def test_no_torch_to_run_with(package, monkeypatch):
    report = examined(package, monkeypatch, torch=None)
    assert report.cannot_examine.startswith("nothing was run: there is no torch")
    assert (report.verdict, exit_status(report, "never")) == ("unknown", CANNOT_EXAMINE)


def test_nothing_was_to_be_run(package, monkeypatch):
    assert examined(package, monkeypatch, torch=None, skip_rungs=("plain_run",)).cannot_examine is None


class Failing:
    """A runner whose plain run dies while results are looked at, and then with whatever ``left`` says."""

    unseen = ""

    def __init__(self, left):
        self.left = list(left)

    def prewarm(self):
        return

    def forget(self):
        pass

    def run(self, request):
        ended = self.left.pop(0) if self.left else {"outputs": [[{}]]}
        return replace(outcome(request.probe, **ended), request=request)


@pytest.mark.parametrize(("stage", "status"), [("scan", CANNOT_EXAMINE), ("import", 0), ("constants", 0)])
def test_what_aotidoctor_failed_to_look_at_is_not_healthy(package, monkeypatch, tmp_path, stage, status):
    torch = TorchBuild(version="2.13.0", path="/x")
    host = Host(system="Linux", machine="x86_64", python="3.11", torch=torch)
    monkeypatch.setattr(open_case, "read_host", lambda **_: host)
    runner = Failing([{"stage": stage, "ending": TimedOut(limit=60)}])
    report = diagnose_package.diagnose(package, None, Options(rungs=("plain_run",)), environ={}, runner=runner)
    assert exit_status(report, "error") == status
    assert (report.cannot_examine is None) == (status == 0)
    assert not report.diagnoses
