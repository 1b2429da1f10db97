"""Completion and man pages: made of the commands, and understood by bash and by man."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import CASES_WORDS, COMMANDS, TRITON_WORDS, build_app
from aotidoctor.cli.completion_and_man import man_pages

ALL = [(name,) for name in COMMANDS] + [("triton", name) for name in TRITON_WORDS]
ALL += [("cases", name) for name in CASES_WORDS]


def invoke(*words, **environ):
    return CliRunner().invoke(build_app(), words, prog_name="aotidoctor", env=environ)


def complete(*words):
    """What is offered for the last word, as bash asks for it."""
    given = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = invoke(_AOTIDOCTOR_COMPLETE="complete_bash", **given)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return set(done.stdout.split())


def test_commands_options_and_their_values_are_completed(tmp_path, monkeypatch):
    assert complete("aotidoctor", "") == set(COMMANDS)
    assert complete("aotidoctor", "c") == {name for name in COMMANDS if name.startswith("c")}
    assert {"--inputs", "-i", "--format", "--seed"} <= complete("aotidoctor", "check", "-")
    assert complete("aotidoctor", "triton", "") == set(TRITON_WORDS)
    assert complete("aotidoctor", "cases", "") == set(CASES_WORDS)
    assert complete("aotidoctor", "cases", "ex") == {"export"}
    assert "--max-batch-size" in complete("aotidoctor", "triton", "init", "--")
    assert complete("aotidoctor", "check", "x", "--format", "s") == {"sarif"}
    assert complete("aotidoctor", "explain", "input-str") == {"input-stride"}
    assert complete("aotidoctor", "explain", "segf") == {"segfault"}
    assert complete("aotidoctor", "explain", "AD-IN-014") == {"AD-IN-014"}
    assert complete("aotidoctor", "cases", "--cause", "exec") == {"executable-stack"}
    assert complete("aotidoctor", "compat", "m.pt2", "--host", "debian-1") == {"debian-12", "debian-13"}
    assert complete("aotidoctor", "check", "m.pt2", "--report", "sa") == {"sarif:"}
    assert complete("aotidoctor", "run", "m.pt2", "--skip-probes", "plain") == {"plain_run"}
    assert complete("aotidoctor", "fix", "ex") == {"execstack"}
    assert complete("aotidoctor", "schema", "") == {"report", "diff"}
    assert complete("aotidoctor", "man", "class") == {"classify"}
    # Nothing of its own: the shell completes files.
    (tmp_path / "model.pt2").touch()
    monkeypatch.chdir(tmp_path)
    for words in (["check", "mod"], ["check", "x", "-i", "mod"], ["compat", "m", "--host", "mod"]):
        assert complete("aotidoctor", *words) == set()
    # A file where a command belongs.
    assert complete("aotidoctor", "model.pt2", "") == set(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_read_the_script(shell, tmp_path):
    script = invoke("completion", shell).stdout
    assert f"_AOTIDOCTOR_COMPLETE=complete_{shell}" in script
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here: only the words were looked at")
    (tmp_path / "script").write_text(script)
    subprocess.run([found, "-n", str(tmp_path / "script")], check=True, capture_output=True)


def test_bash_completes_with_the_script(tmp_path):
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")
    (tmp_path / "script").write_text(invoke("completion", "bash").stdout)
    (tmp_path / "aotidoctor").write_text(f'#!{shell}\nexec {sys.executable} -m aotidoctor "$@"\n')
    (tmp_path / "aotidoctor").chmod(0o700)
    given = "COMP_WORDS=(./aotidoctor check x --format s); COMP_CWORD=4; _aotidoctor_completion ./aotidoctor"
    code = f"source ./script; {given}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run([shell, "--norc", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert (done.stdout, done.stderr) == ("sarif\n", "")


def test_no_option_is_without_help():
    assert [name for name, text in man_pages().items() if "\n\\&\n" in text] == []


def test_man_pages(tmp_path):
    done = invoke("man", "-o", str(tmp_path))
    assert done.exit_code == 0
    names = {"aotidoctor.1", *(f"aotidoctor-{'-'.join(path)}.1" for path in ALL)}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert invoke("man", "check").stdout == (tmp_path / "aotidoctor-check.1").read_text()
    assert invoke("man").stdout == (tmp_path / "aotidoctor.1").read_text()
    assert invoke("man", "nonsense").exit_code == 2
    assert invoke("man", "check", "-o", str(tmp_path)).exit_code == 2
    (tmp_path / "file").touch()
    assert invoke("man", "-o", str(tmp_path / "file" / "man1")).exit_code == 4


def test_man_shows_them_without_a_complaint(tmp_path):
    man = shutil.which("man")
    if man is None or shutil.which("groff") is None:
        pytest.skip("there is no man with groff")
    invoke("man", "-o", str(tmp_path))
    for name, words in {
        "aotidoctor": ("aotidoctor-check(1)", "classify", "EXIT STATUS"),
        "aotidoctor-check": ("-i, --inputs FILE", "Executes nothing from PACKAGE", "aotidoctor check model.pt2"),
        "aotidoctor-triton-init": ("--max-batch-size", "aotidoctor triton init"),
    }.items():
        done = subprocess.run(
            [man, "--warnings", "-E", "UTF-8", "-l", str(tmp_path / f"{name}.1")],
            capture_output=True, text=True, check=True, env={"MANWIDTH": "200", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert done.stderr == ""
        shown = " ".join(done.stdout.replace("\u2010", "-").split())
        for word in words:
            assert word in shown, (name, word)


@pytest.mark.parametrize(
    "option", ["--reference", "--host", "--setup", "--custom-op-library", "--weights", "--data", "--model"]
)
def test_a_file_that_an_option_names_is_not_overwritten(tmp_path, option):
    named = tmp_path / "named"
    named.write_bytes(b"it stays")
    commands = [("run", "model.pt2", "--plan", "--report", f"json:{named}")]
    if option not in ("--host", "--data", "--model"):
        commands += [("map", "model.pt2", "-o", str(named)), ("map", "model.pt2", "--report", f"json:{named}")]
    for words in commands:
        done = invoke(*words, option, str(named))
        assert done.exit_code == 2
        assert "is not overwritten" in " ".join(done.stderr.replace("│", " ").split())
        assert named.read_bytes() == b"it stays"


def test_the_file_of_a_function_that_an_option_names_is_not_overwritten(tmp_path):
    named = tmp_path / "model.py"
    named.write_bytes(b"it stays")
    words = ("run", "model.pt2", "--plan", "--reference", f"{named}:function", "--report", f"json:{named}")
    assert invoke(*words).exit_code == 2
    assert named.read_bytes() == b"it stays"
