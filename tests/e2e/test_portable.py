"""Static commands where there is no POSIX: each answers as on Linux, and what needs Linux says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from foundry.registry import FAULTS, HEALTHY

from tests.e2e.warm import line  # noqa: F401 - finds the interpreter

ROOT = Path(__file__).parents[2]
PORTABLE = ROOT / "tests" / "portable"
DATA = ROOT / "tests" / "data"
LIMIT_S = 900
# The folder that has node_modules/pyodide, made by `make test-portable`.
PYODIDE = os.environ.get("AOTIDOCTOR_PYODIDE")
# Differ from one run to the next, or are the host's.
VARYING = frozenset(("host", "started", "duration_s", "tool", "seconds", "created", "digest"))


def answers(commands, where, *words, program=(sys.executable, "-B")):
    """What each command printed, in a process that ``program`` starts."""
    where.mkdir(exist_ok=True)
    (where / "commands.json").write_text(json.dumps(commands))
    done = subprocess.run(
        [*program, where / "commands.json", where / "answers.json", *words],
        check=False, capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "AOTIDOCTOR_CASES": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((where / "answers.json").read_text())


def without_posix(commands, where):
    return answers(
        commands, where, "without-posix", program=(sys.executable, "-B", PORTABLE / "commands_in_process.py")
    )


def on_linux(commands, where):
    return answers(commands, where, program=(sys.executable, "-B", PORTABLE / "commands_in_process.py"))


def in_webassembly(commands, where):
    site = Path(typer.__file__).parents[1]
    return answers(commands, where, ROOT, site, program=(shutil.which("node"), PORTABLE / "in_node.mjs", PYODIDE))


def steady(value):
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if name not in VARYING}
    return [steady(one) for one in value] if isinstance(value, list) else value


def alike(commands, here, there):
    """Assert that the reports are the same but for the host."""
    assert len(here) == len(there) == len(commands)
    for words, mine, theirs in zip(commands, here, there, strict=True):
        assert (theirs["status"], theirs["stderr"]) == (mine["status"], mine["stderr"]), words
        if mine["stdout"].startswith("{"):
            assert steady(json.loads(theirs["stdout"])) == steady(json.loads(mine["stdout"])), words
        else:
            assert theirs["stdout"] == mine["stdout"], words


@pytest.fixture(scope="module")
def cases(packages, tmp_path_factory):
    """``check`` of every case that can be judged without running it, for the machine that this one is."""
    room = tmp_path_factory.mktemp("cases")
    profile = room / "host.json"
    command = [sys.executable, "-m", "aotidoctor", "env", "--save", profile, "--json"]
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT_S, cwd=ROOT)
    found = []
    for case in (*FAULTS, *HEALTHY):
        (room / case.name).mkdir()
        call = case.make(packages, room / case.name)
        if not call.env:
            found.append(["check", *call.arguments(), "--host", str(profile), "--json"])
    assert len(found) > 400
    return found


@pytest.fixture(scope="module")
def cases_on_linux(cases, tmp_path_factory):
    return on_linux(cases, tmp_path_factory.mktemp("linux"))


@pytest.mark.torch
def test_every_static_case_has_the_same_answer_without_posix(cases, cases_on_linux, tmp_path):
    alike(cases, cases_on_linux, without_posix(cases, tmp_path))


@pytest.mark.torch
@pytest.mark.skipif(PYODIDE is None or shutil.which("node") is None, reason="no Pyodide: make test-portable")
def test_every_static_case_has_the_same_answer_in_webassembly(cases, cases_on_linux, tmp_path):
    alike(cases, cases_on_linux, in_webassembly(cases, tmp_path))


def test_logs_explanations_and_documents_are_the_same_without_posix(tmp_path):
    commands = [
        *(["classify", str(log), "--json"] for log in sorted((DATA / "logs").iterdir())),
        ["explain"], ["explain", "input-dtype"], ["explain", "segfault"],
        ["schema"], ["man", "check"], ["completion", "bash"], ["plugins", "--list"],
        ["check", "absent.pt2"], ["check"], ["nonsense"],
    ]  # fmt: skip
    alike(commands, on_linux(commands, tmp_path / "linux"), without_posix(commands, tmp_path / "other"))


@pytest.mark.torch
def test_every_static_command_works_without_posix(packages, tmp_path):
    model, sample, program = (
        str(packages.package("mlp")),
        str(packages.sample_path("mlp")),
        str(packages.exported("mlp")),
    )
    night, bundle, report, store = (str(tmp_path / name) for name in ("night", "b.zip", "r.json", "cases.sqlite"))
    host = str(tmp_path / "h.json")
    expected = [
        (["env", "--save", host, "--json"], 0),
        (["inspect", model, "--json"], 0),
        (["check", model, "--inputs", sample, "--host", "ubuntu-24.04", "--report", f"json:{report}", "-o", str(tmp_path / "o")], 0),
        (["bundle", model, "--inputs", sample, "-o", bundle], 1),
        (["analyze", bundle, "--json"], 1),
        (["diff", report, str(tmp_path / "o" / "report.json"), "--json"], 0),
        (["compat", model, "--host", "here", "--json"], 1),
        (["contract", model, "-o", str(tmp_path / "v.py")], 0),
        (["stamp", model, "--reference", program, "-o", str(tmp_path / "stamped.pt2")], 0),
        (["fix", "execstack", model, "-o", str(tmp_path / "fixed.pt2")], 0),
        (["batch", model, str(tmp_path / "stamped.pt2"), "--host", "ubuntu-24.04", "-o", night, "--no-cache"], 0),
        (["batch", model, str(tmp_path / "stamped.pt2"), "--host", "ubuntu-24.04", "-o", night, "--no-cache"], 0),
        (["classify", str(DATA / "logs" / "cpp.log"), "--cases", store, "--json"], 1),
        (["cases", "--cases", store, "--json"], 0),
    ]  # fmt: skip
    commands = [words for words, _ in expected]
    given = without_posix(commands, tmp_path / "work")
    for (words, status), answer in zip(expected, given, strict=True):
        assert answer["status"] == status, (words, answer)
    # The machine is read, and the package of Linux does not fit it.
    profile = json.loads(Path(host).read_text())["host"]
    assert (profile["system"], profile["machine"]) == ("Windows", "AMD64")
    assert profile["glibc"] is None
    assert json.loads(given[4]["stdout"])["diagnoses"][0]["cause"] == "platform-mismatch"
    lines = (Path(night) / "results.jsonl").read_text().splitlines()
    assert [json.loads(one)["verdict"] for one in lines] == ["healthy", "healthy"]


def test_what_needs_linux_says_so_and_what_runs_here(tmp_path):
    [answer] = without_posix([["watch", "--", "python", "app.py"]], tmp_path)
    assert answer["status"] == 4, answer
    page = " ".join((answer["stdout"] + answer["stderr"]).split())
    assert "this is Windows" in page
    assert "`aotidoctor run`" in page
    assert len((answer["stdout"] + answer["stderr"]).strip().splitlines()) <= 3


def test_commands_that_run_a_package_need_no_posix_themselves(tmp_path):
    package, inputs = tmp_path / "model.pt2", tmp_path / "x.json"
    package.write_bytes(b"")
    inputs.write_text("[1]")
    commands = [[name, str(package), "--inputs", str(inputs), "--json"] for name in ("run", "localize")]
    commands.append(["verify", str(package), "--json"])
    for words, answer in zip(commands, without_posix(commands, tmp_path), strict=True):
        assert answer["status"] == 1, (words, answer)
        assert json.loads(answer["stdout"])["diagnoses"][0]["cause"] == "artifact-corrupt"


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("ok_pointwise", None), ("index_embedding_100", "index-out-of-range"),
        # Finite inputs give the NaN too, so that it is not the input's, whoever makes it.
        ("nan_from_log_beside_inf", "nan-produced"),
    ],
)  # fmt: skip
def test_a_case_is_answered_alike_by_the_portable_runner(name, cause, packages, tmp_path):
    [case] = [case for case in (*FAULTS, *HEALTHY) if case.name == name]
    call = case.make(packages, tmp_path)
    command = [sys.executable, "-m", "aotidoctor", "run", *call.arguments(), "--json"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "AOTIDOCTOR_RUNNER": "portable", "AOTIDOCTOR_CASES": ""}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S, env=environ)
    report = json.loads(done.stdout)
    assert [one["cause"] for one in report["diagnoses"]][:1] == ([] if cause is None else [cause])
    assert "traces no compiled calls" in "".join(one["reason"] for one in report["not_checked"])
    assert all(run["argv"][-2] == "--once" for run in report["runs"])
