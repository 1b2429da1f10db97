"""The scripts of ``completion`` in the shells that they are for, where these are installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# A cause and a format: values that only aotidoctor knows.
CASES = [("explain input-dt", "input-dtype"), ("check --format rich --format m", "md")]
LONGEST_S = 60


@pytest.fixture
def environ(tmp_path):
    """An environment in which ``aotidoctor`` is the one that is tested."""
    command = tmp_path / "bin" / "aotidoctor"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m aotidoctor "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"}


def installed(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def printed(environ, *words):
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@installed("bash")
@pytest.mark.parametrize(("line", "value"), CASES)
def test_bash(environ, line, value):
    words = f"COMP_WORDS=(aotidoctor {line}); COMP_CWORD={len(line.split())}; _aotidoctor_completion aotidoctor"
    script = f'source <(aotidoctor completion bash); {words}; echo "${{COMPREPLY[@]}}"'
    assert printed(environ, "bash", "--norc", "-c", script).split() == [value]


@installed("fish")
@pytest.mark.parametrize(("line", "value"), CASES)
def test_fish(environ, line, value):
    script = f"aotidoctor completion fish | source; complete -C 'aotidoctor {line}'"
    assert [
        found.partition("\t")[0] for found in printed(environ, "fish", "--no-config", "-c", script).split("\n")
    ] == [value, ""]


@installed("zsh")
@pytest.mark.parametrize(("line", "value"), CASES)
@pytest.mark.parametrize("way", ["a folder of fpath", "sourced"])
def test_zsh(environ, tmp_path, line, value, way):
    """The first TAB that is ever pressed."""
    folder = tmp_path / "functions"
    folder.mkdir()
    script = folder / ("_aotidoctor" if way != "sourced" else "script")
    script.write_text(printed(environ, "aotidoctor", "completion", "zsh"))
    begin = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; "
    begin += f"source {script}; " if way == "sourced" else ""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], environ)
    try:
        os.write(terminal, f"{begin}print READ''Y\n".encode())
        assert reads(terminal, b"READY")
        os.write(terminal, f"aotidoctor {line}\t".encode())
        assert reads(terminal, f" {value} ".encode())
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def reads(terminal, text):
    """Whether ``text`` comes from the terminal."""
    data, end = b"", time.monotonic() + LONGEST_S
    while text not in data and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            data += os.read(terminal, 4096)
    return text in data
