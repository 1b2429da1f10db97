"""What a demo says where something is missing, and how it names this program."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app, tool_commands
from aotidoctor.commands import demo

# What is there on a machine where something is missing.
WITHOUT = {(): ("torch",), ("--fleet",): ("pandas", "torch, pandas"), ("--cuda",): ("triton", "torch, triton")}


@pytest.mark.parametrize("words", WITHOUT)
@pytest.mark.parametrize("all_", [False, True])
def test_what_is_missing_is_said_before_anything_begins(words, all_, monkeypatch, tmp_path):
    missing = ("torch", "pandas", "triton") if all_ else WITHOUT[words][0]
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name in missing else object())
    monkeypatch.setattr(demo, "prepare_demo", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if not words:
        monkeypatch.setattr(demo, "prepare_demo", lambda environ, _: demo.demo_folder(environ))
    done = CliRunner().invoke(build_app(), ["demo", *words])
    assert done.exit_code == 4
    told = " ".join((done.stdout + done.stderr).split())
    names = WITHOUT[words][-1 if all_ else 0]
    extras = ",".join({"torch": "torch", "pandas": "fleet", "triton": "emulate"}[name] for name in names.split(", "))
    assert f"this demo needs {names}: " in told
    assert f"pip install 'aotidoctor[{extras}]'" in told
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_nothing_is_built(monkeypatch, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path)}
    with pytest.raises(demo.CannotExamineError, match="needs a C\\+\\+ compiler, g\\+\\+: apt install"):
        demo.prepare_demo(environ, None)
    assert not list(tmp_path.iterdir())


def test_the_program_is_called_as_the_user_called_it(monkeypatch, tmp_path):
    script = tmp_path / ".venv" / "bin" / "aotidoctor"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    def called(word, path):
        monkeypatch.setattr(sys, "argv", [word, "demo"])
        return tool_commands._own_command({"PATH": str(path), "HOME": "/nowhere"})

    assert called(".venv/bin/aotidoctor", "/usr/bin") == str(script)
    assert called(str(script), script.parent) == "aotidoctor"
    module = Path(tool_commands.__file__).parents[1] / "__main__.py"
    assert called(str(module), "/nowhere") == f"{sys.executable} -m aotidoctor"
    name = Path(sys.executable).name
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None
    assert called(str(module), Path(sys.executable).parent) == f"{name} -m aotidoctor"
