"""The archive's own answer against the child's: the same rules, nodes, source lines and sentences wherever both can tell."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from foundry.models import BY_NAME as MODELS
from programs.cases import CASES

from aotidoctor.model.evidence import Severity
from aotidoctor.program.rules import BY_CODE
from aotidoctor.program.static_verify import judge_static
from aotidoctor.program.verify_stages import open_program

AGREE = Path(__file__).parent / "programs" / "agree.py"
ARCHIVES = sorted({case.name for case in CASES if case.source == "archive" and case.name != "json"})
HEALTHY = sorted({case.name for case in CASES if case.source == "healthy" and case.declared is None})
# Those of a program that there is; of loading, only what the archive has lost.
RULES = {code for code in BY_CODE if code[7] in "GSA"} | {"VERIFY-L03"}
# Custom operators are looked up by the child alone: whether they are there, and have fake kernels.
BY_NAME_ONLY = {"VERIFY-A03"}
# Models that are compiled all the same.
WRITES_TO_ITS_WEIGHTS = {"rescaled": {"parameter-mutation"}}
# What the archive tells of PyTorch's own operators.
PARTLY = {"VERIFY-G04", "VERIFY-A08"}
# The child has the error where the archive has a gap, and widens the range that the sample lies outside of.
OWN_WORDS = {"L03", "A06 example_outside"}

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture(scope="module")
def folder(made_once, packages):
    return made_once("agree", "records.json", AGREE, *(str(packages.exported(name)) for name in MODELS))


@pytest.fixture(scope="module")
def said(folder):
    return json.loads((folder / "records.json").read_text())


def both(path, said):
    """What each says, as far as both can: code, kind, node, target, graph, line, and the sentence."""
    archive = open_program(str(path))
    reading = judge_static(archive)
    child = said[str(path)]
    codes = (RULES - {note.code for note in reading.not_checked} | PARTLY) - BY_NAME_ONLY
    assert "VERIFY-A02" not in codes, "agree.py leaves it out"
    own = {code for code in codes if {code[7:], f"{code[7:]} {path.stem}"} & OWN_WORDS}
    ours = {
        (
            v.code,
            v.kind,
            v.node,
            v.target,
            v.graph,
            None if v.where is None else (v.where.file, v.where.line),
            v.code in own or (v.observed, v.expected),
        )
        for v in reading.violations
        if v.code in codes
    }
    theirs = {
        (
            r["code"],
            r["kind"],
            r["node"],
            r["target"],
            r["graph"],
            r["where"] and (r["where"]["file"], r["where"]["line"]),
            r["code"] in own or (r["observed"], r["expected"]),
        )
        for r in child["records"]
        if r["code"] in codes
    }
    return ours, theirs, child["rebuilt"]


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_archives(name, folder, said):
    ours, theirs, rebuilt = both(folder / f"{name}.pt2", said)
    # Where torch could not rebuild the program, the archive still tells what it can.
    assert ours == theirs if rebuilt else theirs <= ours


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_programs(name, folder, said):
    ours, theirs, rebuilt = both(folder / f"healthy_{name}.pt2", said)
    assert rebuilt
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(MODELS))
def test_base_models(name, packages, said):
    path = packages.exported(name)
    ours, theirs, rebuilt = both(path, said)
    assert rebuilt
    assert ours == theirs
    found = judge_static(open_program(str(path))).violations
    wrong = {v.kind for v in found if BY_CODE[v.code].severities[v.kind] is Severity.ERROR}
    assert wrong == WRITES_TO_ITS_WEIGHTS.get(name, set())


def test_what_only_the_archive_tells(folder, said):
    ours, theirs, rebuilt = both(folder / "program.pt2", said)
    assert not rebuilt
    assert {item[0] for item in ours - theirs} == {"VERIFY-S09"}
