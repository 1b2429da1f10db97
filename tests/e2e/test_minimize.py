"""The silent fault of the demo, cut down to one operator, and a script of it. What was compiled once is kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from foundry.place import cache_dir
from warm import line

from aotidoctor.commands import demo
from aotidoctor.commands.minimize import RESULT_FILES, STATE_FILE, minimize
from aotidoctor.model.case import Options
from aotidoctor.version import __version__

pytestmark = pytest.mark.torch
ENVIRON = {**os.environ, "XDG_CACHE_HOME": str(cache_dir())}


@pytest.fixture(scope="module")
def folder() -> Path:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile with")
    return demo.prepare_demo(ENVIRON, lambda _event: None)


def test_one_operator_is_left(folder: Path, tmp_path: Path) -> None:
    import torch

    kept = cache_dir() / f"minimized-{__version__}-{folder.name}"
    package, inputs = str(folder / "model.pt2"), str(folder / "transposed.pt")
    options = Options(reference=str(folder / "exported.pt2"))
    found = minimize(package, inputs, options, kept, environ=ENVIRON, with_repro=False)
    assert (found.ending, found.manner) == ("smallest", ("wrong", "numbers"))
    assert found.targets == ("aten.mul.Tensor",)
    program = torch.export.load(kept / "exported.pt2")
    calls = [node for node in program.graph.nodes if node.op == "call_function" and "mul" in str(node.target)]
    assert len(calls) == 1
    # In a folder of its own: a script is written beside the files.
    for name in (*RESULT_FILES, STATE_FILE):
        (tmp_path / name).write_bytes((kept / name).read_bytes())
    with line().lent():
        again = minimize(package, inputs, options, tmp_path, environ=ENVIRON)
    assert (again.asked, again.operators) == (0, found.operators)
    assert again.repro is not None
    assert "certified" in again.repro
    assert (tmp_path / "repro" / "repro.py").is_file()


def test_a_budget_ends_it_and_nothing_is_claimed(folder: Path, tmp_path: Path) -> None:
    options = Options(reference=str(folder / "exported.pt2"), budget=0.2)
    found = minimize(
        str(folder / "model.pt2"), str(folder / "transposed.pt"), options, tmp_path / "out", environ=ENVIRON
    )
    assert (found.ending, found.operators, found.repro) == ("unfinished", (), None)


def test_a_relative_folder_is_where_the_caller_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("model.pt2", "transposed.pt", "exported.pt2"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    steps: list[str] = []

    def after_the_whole(text: str) -> None:
        steps.append(text)
        if "operators" in text:
            raise KeyboardInterrupt

    with line().lent():
        found = minimize(
            "model.pt2",
            "transposed.pt",
            Options(reference="exported.pt2"),
            Path("minimized"),
            environ=ENVIRON,
            on_step=after_the_whole,
        )
    assert (found.ending, found.directory, found.asked) == ("unfinished", "minimized", 1), (found, steps)
    assert found.of == 7
    assert {path.name for path in (tmp_path / "minimized").iterdir()} == {*RESULT_FILES, STATE_FILE}
