"""The workflows and issue forms of the repository: they can be read, and name what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from aotidoctor.cli import COMMANDS

ROOT = Path(__file__).parents[3]
GITHUB = ROOT / ".github"
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((GITHUB / "workflows").glob("*.yml"))}
FORMS = {
    path.stem: yaml.safe_load(path.read_text())
    for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.stem != "config"
}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def _lines(workflow):
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def test_there_is_a_workflow_for_each_thing():
    assert set(WORKFLOWS) == {"tests", "lint", "docs", "release"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_job_has_a_limit_and_no_more_rights_than_it_needs(name):
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_targets_and_variables_of_make_are_there(name):
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for words in (shlex.split(line) for line in _lines(WORKFLOWS[name]) if line.startswith("make ")):
        assert words[1] in targets
        variables = [word.partition("=")[0] for word in words[2:]]
        assert [one for one in variables if f"$({one})" not in MAKEFILE] == []


def test_the_pythons_begin_with_the_oldest_that_is_supported():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = WORKFLOWS["tests"]["jobs"]["suite"]["strategy"]["matrix"]["python"]
    assert f'requires-python = ">={pythons[0]}"' in project


def test_the_oldest_release_of_torch_is_that_of_the_extra():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = WORKFLOWS["tests"]["jobs"]["releases"]["strategy"]["matrix"]["torch"][0]
    assert f'torch = ["torch>={oldest.removesuffix(".0")}"' in project


@pytest.mark.parametrize("name", FORMS)
def test_a_form_asks_for_a_bundle_with_commands_that_there_are(name):
    text = (GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8")
    assert "aotidoctor bundle" in text
    assert set(re.findall(r"aotidoctor ([a-z]+) ", text)) - {"named", "said", "should"} <= set(COMMANDS)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_what_github_wants(name):
    form = FORMS[name]
    assert {"name", "description", "body"} <= set(form)
    fields = [item for item in form["body"] if item["type"] != "markdown"]
    assert len({item["id"] for item in fields}) == len(fields)
    assert any(item.get("validations", {}).get("required") for item in fields)
