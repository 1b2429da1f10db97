"""A slip in the command line is answered in a line or two: what, where, and what was perhaps meant."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA / "releases" / "2.12.1" / "custop" / "model.pt2", "ranker.pt2")
    shutil.copy(DATA / "inputs" / "args.pt", "sample.pt")
    for name in ("host.json", "crash.log", "case.zip", "cases.pt2"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "server.log").write_text("RuntimeError: index out of bounds: 0 <= tmp7 < 100L\n")
    return tmp_path


def ask(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


SLIPS = {
    "another letter": (("check", "rankr.pt2"), "no such file: rankr.pt2; did you mean ranker.pt2?"),
    "capitals": (("run", "Ranker.PT2"), "no such file: Ranker.PT2; did you mean ranker.pt2?"),
    "inspect": (("inspect", "ranker.pt"), "no such file: ranker.pt; did you mean ranker.pt2?"),
    "compat": (("compat", "rankr.pt2"), "did you mean ranker.pt2?"),
    "verify": (("verify", "rankr.pt2"), "did you mean ranker.pt2?"),
    "nothing alike": (("check", "zebra"), "no such file: zebra"),
    "no folder": (("check", "models/ranker.pt2"), "no such file: models/ranker.pt2; models is not there"),
    "below a file": (("check", "ranker.pt2/x"), "no such file: ranker.pt2/x; ranker.pt2 is no folder"),
    "inputs": (
        ("check", "ranker.pt2", "--inputs", "smple.pt"),
        "no such file: smple.pt (--inputs); did you mean sample.pt?",
    ),
    "inputs of a run": (
        ("run", "ranker.pt2", "--inputs", "smple.pt"),
        "no such file: smple.pt (--inputs); did you mean sample.pt?",
    ),
    "reference": (("check", "ranker.pt2", "--reference", "gone.pt2"), "no such file: gone.pt2 (--reference)"),
    "weights": (("check", "ranker.pt2", "--weights", "gone.pt"), "no such file: gone.pt (--weights)"),
    "setup": (("run", "ranker.pt2", "--generate", "--setup", "ops.py"), "no such file: ops.py (--setup)"),
    "setup of a check": (("check", "ranker.pt2", "--setup", "ops.py"), "no such file: ops.py (--setup)"),
    "operators": (
        ("run", "ranker.pt2", "--generate", "--custom-op-library", "ops.so"),
        "no such file: ops.so (--custom-op-library)",
    ),
    "exchanged": (
        ("run", "sample.pt", "--inputs", "ranker.pt2"),
        "sample.pt is no package, but ranker.pt2 is one: did you mean ranker.pt2 --inputs sample.pt?",
    ),
    "setup of verify": (("verify", "program.pt2", "--setup", "ops.py"), "no such file: ops.py (--setup)"),
    "no log": (("classify", "gone.log"), "no such file: gone.log"),
    "a log": (("classify", "crsh.log"), "no such file: crsh.log; did you mean crash.log?"),
    "package of a log": (
        ("classify", "server.log", "--package", "rankr.pt2"),
        "no such file: rankr.pt2 (--package); did you mean ranker.pt2?",
    ),
    "inputs of a log": (
        ("classify", "server.log", "--package", "ranker.pt2", "--inputs", "smple.pt"),
        "no such file: smple.pt (--inputs); did you mean sample.pt?",
    ),
    "no bundle": (("analyze", "cse.zip"), "no such file: cse.zip; did you mean case.zip?"),
    "of its kind": (("check", "cse.pt2"), "no such file: cse.pt2; did you mean cases.pt2?"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_answered_in_one_line(slip):
    words, answer = SLIPS[slip]
    done = ask(*words)
    assert done.exit_code == 4
    lines = done.stdout.strip().splitlines()
    assert " ".join(line.strip() for line in lines).startswith("CANNOT EXAMINE")
    assert len(lines) <= 2
    assert answer in " ".join(line.strip() for line in lines)


@pytest.mark.parametrize("form", ["md", "html"])
def test_no_host_is_invented(form):
    for words in (("classify", "gone.log"), ("run", "ranker.pt2", "--setup", "ops.py")):
        text = ask(*words, "--format", form).stdout
        assert "not installed" not in text
        assert "1 cores" not in text
        assert "Host" not in text
    host = json.loads(ask("classify", "gone.log", "--json").stdout)["host"]
    assert {"torch", "cores", "gpus"} <= {*host["unstated"]}


MISUSES = {
    "a folder": (("check", "folder"), 1, "find folder -name '*.pt2'"),
    "a state dict": (("run", "weights.pt", "--inputs", "sample.pt"), 1, "torch.load('weights.pt')"),
    "a reference that is not there": (
        ("run", "ranker.pt2", "--inputs", "sample.pt", "--reference", "rankr.pt2"),
        4,
        "no such file: rankr.pt2 (--reference); did you mean ranker.pt2?",
    ),
    "an unknown option": (("check", "ranker.pt2", "--inputz", "x"), 2, "--inputs"),
    "an unknown command": (("chek", "ranker.pt2"), 2, "'check'"),
    "an unknown option of all": (("--verbos",), 2, "Try 'aotidoctor -h' for help."),
    "an argument too many": (("check", "ranker.pt2", "sample.pt"), 2, "Did you mean --inputs sample.pt?"),
    "no argument": (("diff", "ranker.pt2"), 2, "Missing argument 'B'."),
    "a word of a command": (("triton", "names"), 2, "Usage: aotidoctor triton names [OPTIONS] {PACKAGE}"),
    "no duration": (("run", "ranker.pt2", "--timeout", "long"), 2, "write 90, 90s, 5m or 1h"),
    "no program behind it": (("compare", "ranker.pt2", "--inputs", "sample.pt"), 2, "such as exported.pt2"),
    "a package to a server": (("triton", "ranker.pt2"), 4, "with config.pbtxt and 1/model.pt2"),
    "nobody listens": (("check", "http://127.0.0.1:9/m.pt2"), 4, "does a server listen at this host and port?"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_misuse_is_answered_in_three_lines(folder, misuse):
    (folder / "folder").mkdir()
    with zipfile.ZipFile(folder / "weights.pt", "w") as archive:
        archive.writestr("weights/data.pkl", b"\x80\x02}.")
        archive.writestr("weights/version", b"3")
    words, status, next_step = MISUSES[misuse]
    done = CliRunner().invoke(build_app(), words, prog_name="aotidoctor", env={"COLUMNS": "160"})
    assert done.exit_code == status, done.output
    assert next_step in done.output
    assert len(done.output.splitlines()) <= 3


def test_what_was_read_is_shown_where_it_is_wanted():
    assert "Contract" in ask("check", "ranker.pt2", "--inputs", "gone.pt", "-v").stdout


@pytest.mark.parametrize("command", ["check", "run", "localize"])
def test_inputs_without_their_option(command):
    done = ask(command, "ranker.pt2", "sample.pt")
    assert done.exit_code == 2
    assert "Did you mean --inputs sample.pt?" in done.output
    assert "Did you mean" not in ask(command, "ranker.pt2", "zebra").output


def test_commands_with_messages_of_their_own():
    for words in (("contract", "rankr.pt2"), ("sweep", "rankr.pt2"), ("bundle", "rankr.pt2")):
        done = ask(*words)
        assert done.exit_code == 4
        assert "did you mean ranker.pt2?" in done.output
        assert len(done.output.strip().splitlines()) <= 2


def test_compat_shows_the_way_out_of_each_cause(folder):
    host = {"system": "Linux", "machine": "x86_64", "glibc": "2.41", "cpu_flags": ["sse2"], "executable_stack": False}
    (folder / "old.json").write_text(json.dumps({"schema": "aotidoctor.host/1", "name": "old", "host": host}))
    text = ask("compat", "ranker.pt2", "--host", "old.json").stdout
    advice = text[text.index("What to do") : text.index("Answers")]
    assert "executable-stack: Clear" in advice
    assert "aotidoctor fix execstack ranker.pt2" in advice
    assert "isa-mismatch: Compile" in advice


def test_compat_says_how_to_state_what_a_profile_leaves_open():
    profiles = "debian-12+x86-64-v3+torch-2.13-cpu"
    done = ask("compat", "ranker.pt2", "--host", "debian-12")
    assert (done.exit_code, "cpu_flags" in done.stdout, profiles in done.stdout) == (3, True, True)
    assert "aotidoctor env --save host.json" in done.stdout
    # What it proposes states all that was left open.
    assert "not stated" not in ask("compat", "ranker.pt2", "--host", profiles).stdout


def test_diff_names_the_file_that_was_perhaps_meant():
    done = ask("diff", "rankr.pt2", "host.json")
    assert done.exit_code == 4
    assert "no such file: rankr.pt2; did you mean ranker.pt2?" in " ".join(done.stdout.split())


def test_diff_reads_a_saved_host(folder):
    assert ask("env", "--save", "here.json").exit_code == 0
    same = ask("diff", "here", "here.json", "--json")
    assert (same.exit_code, json.loads(same.stdout)["differences"]) == (0, [])
    fits = json.loads(ask("diff", "ranker.pt2", "here.json", "--json").stdout)
    assert [side["kind"] for side in (fits["a"], fits["b"])] == ["package", "host"]
    host = {"system": "Linux", "machine": "x86_64", "glibc": "1.0"}
    (folder / "partial.json").write_text(json.dumps({"schema": "aotidoctor.host/1", "host": host}))
    found = json.loads(ask("diff", "partial.json", "here.json", "--json").stdout)
    assert [item["subject"] for item in found["differences"]] == ["glibc"]
    assert any("torch (a profile does not state it)" in line for line in found["unknown"])
