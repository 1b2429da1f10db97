"""The g++ of the tests takes what it made before, wherever that is to lie, and leaves alone what may have changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import COMPILER

CXX = next(
    (path for folder in os.get_exec_path() if (path := Path(folder) / "g++").exists() and path.parent != COMPILER), None
)
pytestmark = pytest.mark.skipif(CXX is None or shutil.which("bash") is None, reason="there is no g++")


@pytest.fixture
def compile_in(tmp_path, monkeypatch):
    """``compile_in(room, words...)``: the compiler of the tests in a folder of its own; how often the real one ran."""
    torch = tmp_path / "torch"
    (torch / "include").mkdir(parents=True)
    (torch / "version.py").write_text("__version__ = '2.13.0'\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/g++").write_text(f'#!/bin/sh\necho >> {tmp_path}/calls\nexec {CXX} "$@"\n')
    (tmp_path / "bin/g++").chmod(0o755)
    monkeypatch.setenv("AOTIDOCTOR_TEST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{COMPILER}{os.pathsep}{tmp_path}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")

    def run(room, source, *words, text="int one() { return 1; }\n"):
        (tmp_path / room).mkdir(exist_ok=True)
        path = tmp_path / room / source
        if text is not None:
            path.write_text(text)
        target = path.with_name(words[-1])
        words = [word.replace("HERE", str(path.parent)) for word in words[:-1]]
        done = subprocess.run(
            ["g++", f"-I{torch}/include", *words, *([str(path)] if text else []), "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        calls = tmp_path / "calls"
        return target.read_bytes(), len(calls.read_text()) if calls.exists() else 0

    return run


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("one.cpp", ("-c", "one.o")),
        ("one.cpp", ("-c", "-include", "HERE/precompiled_headers/none.h", "one.o")),
        ("one.cpp", ("-shared", "-fPIC", "one.so")),
        ("one.hpp", ("-E", "-P", "one.i")),
        ("one.h", ("-x", "c++-header", "one.h.gch")),
    ],
)
def test_the_same_is_made_once_for_all_folders(source, words, compile_in, tmp_path):
    for room in "ab":
        (tmp_path / room / "precompiled_headers").mkdir(parents=True)
        (tmp_path / room / "precompiled_headers/none.h").touch()
    first, second = compile_in("a", source, *words), compile_in("b", source, *words)
    assert first == second
    assert second[1] == 1
    assert compile_in("b", source, "-DOTHER", *words)[1] == 2
    assert compile_in("b", source, *words, text="int two() { return 2; }\n")[1] == 3


def test_objects_are_put_together_once_for_all_folders(compile_in, tmp_path):
    def link(room, value):
        compile_in(room, "part.cpp", "-c", "-fPIC", "part.o", text=f"int part() {{ return {value}; }}\n")
        return compile_in(room, "none", "-shared", str(tmp_path / room / "part.o"), "all.so", text=None)

    (made, calls), (again, after) = link("a", 1), link("b", 1)
    assert (made, calls, after) == (again, 2, 2)
    assert link("b", 2)[1] == 4


def test_what_reads_a_file_beside_it_is_made_each_time(compile_in, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/part.cpp").touch()
    for calls in (1, 2):
        text = '#include "part.cpp"\n'
        assert compile_in("a", "beside.cpp", "-shared", "-fPIC", "beside.so", text=text)[1] == calls
