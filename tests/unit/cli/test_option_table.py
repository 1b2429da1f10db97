"""Completion and man pages: made of the commands, and understood by the shells and by man."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import CASES_WORDS, COMMANDS, TRITON_WORDS, build_app
from aotidoctor.cli.completion_and_man import bash, describe_commands, fish, zsh

ALL = [(name,) for name in COMMANDS] + [("triton", name) for name in TRITON_WORDS]
ALL += [("cases", name) for name in CASES_WORDS]


@pytest.fixture(scope="module")
def commands():
    return describe_commands()


def invoke(*words):
    return CliRunner().invoke(build_app(), words)


def test_every_command_with_its_options(commands):
    assert {one.path for one in commands} == set(ALL)
    for one in commands:
        assert one.summary.endswith(".")
        assert all(option.help for option in one.options), one.path
    check = next(one for one in commands if one.path == ("check",))
    inputs = next(option for option in check.options if "--inputs" in option.names)
    assert (inputs.names, inputs.value, inputs.is_file) == (("--inputs", "-i"), "FILE", True)
    form = next(option for option in check.options if "--format" in option.names)
    assert "sarif" in form.choices


@pytest.fixture(scope="module")
def complete(commands, tmp_path_factory):
    """``complete("aotidoctor", "check", "--fo")``: what bash offers for the last word."""
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("there is no bash")
    folder = tmp_path_factory.mktemp("bash")
    (folder / "script").write_text(bash(commands))
    (folder / "model.pt2").touch()

    def ask(*words):
        given = " ".join(f"'{word}'" for word in words)
        code = f"source ./script; COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _aotidoctor; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run([shell, "--norc", "-c", code], capture_output=True, text=True, cwd=folder, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    return ask


def test_bash(complete, commands):
    assert complete("aotidoctor", "") == set(COMMANDS)
    assert complete("aotidoctor", "c") == {name for name in COMMANDS if name.startswith("c")}
    for one in commands:
        offered = complete("aotidoctor", *one.path, "-") if len(one.path) == 1 else None
        if offered is not None:
            assert offered == {name for option in one.options for name in option.names}
    assert "names" in complete("aotidoctor", "triton", "")
    assert "--max-batch-size" in complete("aotidoctor", "triton", "init", "--")
    assert complete("aotidoctor", "check", "x", "--format", "s") == {"sarif"}
    assert complete("aotidoctor", "check", "x", "--inputs", "mod") == {"model.pt2"}
    assert complete("aotidoctor", "check", "mod") == {"model.pt2"}
    assert complete("aotidoctor", "check", "--seed", "") == set()
    assert complete("aotidoctor", "explain", "input-str") == {"input-stride"}
    assert complete("aotidoctor", "explain", "segf") == {"segfault"}
    assert complete("aotidoctor", "explain", "AD-IN-014") == {"AD-IN-014"}
    assert complete("aotidoctor", "cases", "--cause", "exec") == {"executable-stack"}
    assert complete("aotidoctor", "compat", "m.pt2", "--host", "debian-1") == {"debian-12", "debian-13"}
    assert complete("aotidoctor", "compat", "m.pt2", "--host", "mod") == {"model.pt2"}
    assert complete("aotidoctor", "check", "m.pt2", "--report", "sa") == {"sarif:"}
    assert complete("aotidoctor", "check", "m.pt2", "--report", "sarif", ":", "mod") == {"model.pt2"}
    assert complete("aotidoctor", "run", "m.pt2", "--skip-probes", "plain") == {"plain_run"}
    assert complete("aotidoctor", "fix", "ex") == {"execstack"}
    assert complete("aotidoctor", "fix", "execstack", "mod") == {"model.pt2"}
    assert complete("aotidoctor", "schema", "") == {"report", "diff"}
    assert complete("aotidoctor", "env", "mod") == set()


@pytest.mark.parametrize(("shell", "make"), [("bash", bash), ("zsh", zsh), ("fish", fish)])
def test_the_shell_can_read_it(shell, make, commands, tmp_path):
    script = make(commands)
    for path in ALL:
        assert path[-1] in script
    assert "--inputs" in script or "-l inputs" in script
    assert "@" not in script.replace('"$@"', "").replace("[@]", "")
    assert invoke("completion", shell).stdout == script
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here: only the words were looked at")
    (tmp_path / "script").write_text(script)
    subprocess.run([found, "-n", str(tmp_path / "script")], check=True, capture_output=True)


def test_fish(commands, tmp_path):
    shell = shutil.which("fish")
    if shell is None:
        pytest.skip("there is no fish")
    (tmp_path / "script").write_text(fish(commands))

    def complete(line):
        code = f"source {tmp_path / 'script'}; complete -C '{line}'"
        done = subprocess.run(
            [shell, "--no-config", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    assert complete("aotidoctor c") == {name for name in COMMANDS if name.startswith("c")}
    assert complete("aotidoctor check --inp") == {"--inputs"}
    assert complete("aotidoctor check x --format sar") == {"sarif"}


def test_zsh(commands, tmp_path):
    """Asked as the shell asks: the words and the place of the cursor are given, what is offered is printed."""
    shell = shutil.which("zsh")
    if shell is None:
        pytest.skip("there is no zsh")
    (tmp_path / "script").write_text(zsh(commands))

    def complete(*words):
        given = " ".join(f"'{word}'" for word in words)
        offered = "_describe() { for name in ${@[2,-1]}; do print -l -- ${(P)name}; done }; compadd() { print -l -- $@ }; compdef() { }"
        code = f"{offered}; words=(); CURRENT=1; source ./script 2>/dev/null; words=({given}); CURRENT={len(words)}; _aotidoctor"
        done = subprocess.run([shell, "-f", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.stdout.split("\n")

    assert any(line.startswith("classify:") for line in complete("aotidoctor", ""))
    assert any(line.startswith("--inputs:") for line in complete("aotidoctor", "check", "-"))
    assert any(line.startswith("init:") for line in complete("aotidoctor", "triton", ""))


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
        "aotidoctor-check": ("--inputs, -i FILE", "Executes nothing from PACKAGE", "aotidoctor check model.pt2"),
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
