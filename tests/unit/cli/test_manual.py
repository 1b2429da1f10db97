from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import build_app
from aotidoctor.commands import explain
from aotidoctor.model.report import playbook_files
from aotidoctor.probes import LATER, PROBES


def test_a_playbook_without_its_head_and_tests():
    page = explain.find("artifact-corrupt")
    assert (page.kind, page.name, page.code) == ("playbook", "artifact-corrupt", None)
    assert "any_of" not in page.text
    assert "toml matches" not in page.text
    assert "## Fix" in page.text


@pytest.mark.parametrize("topic", ["AD-IN-014", "ad-in-014", "input_stride"])
def test_the_page_of_a_check(topic):
    page = explain.find(topic)
    assert (page.kind, page.name, page.code) == ("check", "input_stride", "AD-IN-014")
    assert "## Why it matters" in explain.markdown(page)


def test_the_page_of_a_probe():
    assert explain.find("AD-RUN-001").kind == "probe"


def test_every_check_and_probe_has_a_page_by_its_code():
    for known in (*CHECKS, *PROBES, *LATER):
        page = explain.find(known.code)
        assert page is not None, known.code
        assert page.code == known.code


def test_near_matches():
    assert "artifact-corrupt" in explain.near("artifact-corupt")
    assert explain.near("qqqqqqqq") == ()


def test_every_playbook_has_a_page():
    for path in playbook_files():
        assert explain.find(path.stem).text.strip()


def test_explain_in_every_format():
    runner = CliRunner()
    for form in ("rich", "md", "json"):
        result = runner.invoke(build_app(), ["explain", "AD-IN-014", "--format", form])
        assert result.exit_code == 0
        assert "input_stride" in result.stdout
    assert json.loads(result.stdout)["kind"] == "check"


def test_explain_suggests():
    result = CliRunner().invoke(build_app(), ["explain", "artifact-corupt"])
    assert result.exit_code == 2
    assert "artifact-corrupt" in result.stderr
