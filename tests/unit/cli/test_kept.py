"""What was there once is there still: every command, option, check, probe and cause, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import aotidoctor
from aotidoctor.checks.registry import CHECKS
from aotidoctor.cli import CASES_WORDS, COMMANDS, TRITON_WORDS
from aotidoctor.cli.lazy import CONTEXT, load
from aotidoctor.model.report import playbook_files
from aotidoctor.probes import LATER, PROBES

KEPT = json.loads((Path(__file__).parents[2] / "data" / "kept.json").read_text(encoding="utf-8"))


def test_checks_probes_and_causes():
    assert set(KEPT["checks"]) <= {check.code for check in CHECKS}
    assert set(KEPT["probes"]) <= {probe.name for probe in (*PROBES, *LATER)}
    assert set(KEPT["causes"]) <= {path.stem for path in playbook_files()}


def test_library():
    assert set(KEPT["library"]) <= set(aotidoctor.__all__)


# Names of JSON documents: programs of others look for them.
DOCUMENTS = ("bundle", "case", "cases", "clusters", "demo", "diff", "explain", "map", "plugins", "report")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name):
    package = Path(aotidoctor.__file__).parent
    assert any(f'"aotidoctor.{name}/1"' in path.read_text(encoding="utf-8") for path in package.rglob("*.py"))


@pytest.mark.parametrize("name", KEPT["commands"])
def test_options(name):
    word = name.split()[-1]
    command = load(word, {**TRITON_WORDS, **CASES_WORDS}[word] if " " in name else COMMANDS[word])
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    current = CONTEXT["token_normalize_func"]
    former = {
        f"--{current(option.removeprefix('--'))}" if option.startswith("--") else option
        for option in KEPT["commands"][name]
    }
    assert former <= known
