from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import build_app
from aotidoctor.commands import explain
from aotidoctor.commands.explain import SYMPTOMS
from aotidoctor.diagnosis.playbooks import load_playbooks
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


def test_every_page_is_found_by_its_name():
    hidden = [page.name for page in explain.pages() if (found := explain.find(page.name)) and found.name != page.name]
    assert hidden == []


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


def explained(*words):
    done = CliRunner().invoke(build_app(), ["explain", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_without_a_topic_causes_are_listed_by_symptom():
    listed = explained("--format", "md")
    for title in ("crashes", "hangs", "Wrong numbers", "not load", "not compile", "slow", "memory", "not there"):
        assert re.search(rf"^## .*{title}", listed, re.M), title
    for path in playbook_files():
        assert re.search(rf"\b{path.stem}\b", listed), f"{path.stem} is listed under no symptom"
    assert json.loads(explained("--json"))["kind"] == "symptoms"


@pytest.mark.parametrize(
    ("words", "name", "cause"),
    [
        ("segfault", "crash", "weights-not-loaded"),
        ("SIGSEGV", "crash", "input-device"),
        ("core dump", "crash", "kernel-crash"),
        ("nan", "wrong-numbers", "nan-produced"),
        ("oom", "memory", "out-of-memory"),
        ("hang", "hang", "custom-op-hang"),
        ("works here, not there", "elsewhere", "executable-stack"),
    ],
)
def test_a_symptom_leads_to_its_causes_and_a_first_command(words, name, cause):
    page = json.loads(explained(words, "--json"))
    assert (page["kind"], page["name"], page["code"]) == ("symptom", name, None)
    assert f"- `{cause}`: " in page["text"]
    assert "    aotidoctor " in page["text"]
    assert "{" not in page["text"]


def test_no_word_means_two_symptoms_and_playbooks_name_symptoms_only():
    words = [word for symptom in SYMPTOMS for word in (symptom.name, *symptom.words)]
    assert len(words) == len(set(words))
    assert {name for book in load_playbooks() for name in book.symptoms} == {symptom.name for symptom in SYMPTOMS}


def test_explain_suggests():
    result = CliRunner().invoke(build_app(), ["explain", "artifact-corupt"])
    assert result.exit_code == 2
    assert "artifact-corrupt" in result.stderr
