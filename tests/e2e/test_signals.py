"""What executes a package is interrupted where it has found something: what it has found is in its document."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from foundry.place import cache_dir

from aotidoctor.commands import demo
from tests.waiting import soon

pytestmark = [pytest.mark.torch, pytest.mark.slow]
ENVIRON = {**os.environ, "XDG_CACHE_HOME": str(cache_dir()), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
HANGS = "import time\nprint('setup runs', flush=True)\ntime.sleep(3600)\n"


@pytest.fixture(scope="module")
def folder() -> Path:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile with")
    return demo.prepare_demo(ENVIRON, lambda _event: None)


def interrupted(words: list[object], line: str, number: int, room: Path) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command that gets the signal when ``line`` is on its stderr."""
    command = [sys.executable, "-m", "aotidoctor", *map(str, words)]
    out, err = room / "stdout", room / "stderr"
    temporary = room / "tmp"
    temporary.mkdir()
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=room, env={**ENVIRON, "TMPDIR": str(temporary)}, stdout=stdout, stderr=stderr
        )
    try:
        assert soon(lambda: line in err.read_text() or process.poll() is not None)
        process.send_signal(number)
        status = process.wait(60)
    finally:
        process.kill()
        process.wait(60)
    assert soon(lambda: not any(temporary.iterdir())), list(temporary.iterdir())
    return status, out.read_text(), err.read_text()


@pytest.mark.parametrize(
    ("number", "form"), [(signal.SIGINT, "json"), (signal.SIGTERM, "rich"), (signal.SIGHUP, "json")]
)
def test_sweep_shows_the_calls_that_were_made(folder: Path, tmp_path: Path, number: int, form: str) -> None:
    words = ["sweep", folder / "model.pt2", "--format", form]
    status, out, _ = interrupted(words, "\n7/", number, tmp_path)
    assert status == 128 + number
    if form == "rich":
        assert "Not run" in out
        assert "calls: interrupted" in out
        assert "no time" not in out
        return
    document = json.loads(out)
    assert document["interrupted"] is True
    assert 7 <= len(document["rows"]) < document["planned"]
    assert any("calls: interrupted" in reason for reason in document["unasked"])


def test_minimize_says_that_it_is_unfinished(folder: Path, tmp_path: Path) -> None:
    package, inputs, program = (folder / name for name in ("model.pt2", "transposed.pt", "exported.pt2"))
    words = ["minimize", package, "--inputs", inputs, "--reference", program, "-o", "out", "--json"]
    status, out, _ = interrupted(words, "the unchanged package", signal.SIGTERM, tmp_path)
    document = json.loads(out)
    assert (status, document["ending"], document["reason"]) == (143, "unfinished", "interrupted")


@pytest.mark.parametrize("command", ["run", "localize", "repro", "compare"])
def test_a_child_that_hangs_is_left(folder: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    words = [command, folder / "model.pt2", "--inputs", folder / "good.pt", "--setup", "hangs.py", "--timeout", "1h"]
    more = ["--reference", folder / "exported.pt2"] if command == "compare" else []
    status, out, _ = interrupted([*words, *more, "--json"], "plain_run", signal.SIGTERM, tmp_path)
    document = json.loads(out)
    assert (status, document["interrupted"], document["verdict"]) == (143, True, "unknown")
    assert any(item["reason"] == "interrupted" for item in document["not_checked"])
    if command == "repro":
        assert "interrupted" in document["extra"]["repro"]
        assert not (tmp_path / "repro").exists()


def test_verify_says_that_it_has_no_verdict(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    words = ["verify", folder / "exported.pt2", "--setup", "hangs.py", "--json"]
    status, out, _ = interrupted(words, "verify", signal.SIGHUP, tmp_path)
    document = json.loads(out)
    assert (status, document["interrupted"], document["verdict"]) == (129, True, "unknown")


def test_the_budget_of_repro_bounds_the_attempts_too(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    words = ["repro", folder / "model.pt2", "--inputs", folder / "good.pt", "--setup", "hangs.py", "--json"]
    command = [sys.executable, "-m", "aotidoctor", *map(str, words), "--timeout", "2s", "--budget", "12s"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRON, capture_output=True, timeout=250, check=False)
    document = json.loads(done.stdout)
    assert done.returncode == 6, done.stderr
    assert document["out_of_time"] is True
    assert "the time budget was spent" in document["extra"]["repro"]
    assert not (tmp_path / "repro").exists()
