"""The pages of the site that are made from the program: one per playbook, check, probe and rule, and every command."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import COMMANDS
from aotidoctor.probes import LATER, PROBES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made():
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    return dict(hooks._reference())


def test_a_page_per_cause_check_and_probe(made):
    assert {path.stem for path in (ROOT / "playbooks").glob("*.md")} == {
        name.partition("/")[2] for name in made if name.startswith("causes/")
    }
    assert {check.code for check in CHECKS} <= {name.partition("/")[2] for name in made}
    assert {probe.code for probe in (*PROBES, *LATER)} <= {name.partition("/")[2] for name in made}


def test_what_people_call_a_symptom_is_found_by_the_search(made):
    page = made["symptoms"].lower()
    assert page.startswith("# start from your symptom")
    for words in ("segfault", "works here, not there", "nan", "oom", "deadlock"):
        assert words in page
    assert "(causes/kernel-crash.md)" in page


def test_every_command_shows_its_help(made):
    for name in COMMANDS:
        assert f"## {name}\n" in made["commands"]
        assert f"Usage: {name}" in made["commands"]


def test_the_walk_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## A walk")[2].partition("## ")[0]
    import re

    named = re.findall(r"`(?:aotidoctor/)?([a-z_]+/[a-z_/]+\.py)`", walk)
    assert len(named) >= 15
    for path in named:
        assert (ROOT / "aotidoctor" / path).is_file(), path
