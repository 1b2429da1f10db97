"""Whatever a command does when SIGINT, SIGTERM or SIGHUP comes: its exit status says so, and stdout has one document."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aotidoctor.cli import COMMANDS
from tests.artifacts.packages import package_parts, write_zip

pytestmark = pytest.mark.slow
PACKAGE = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"
PROGRAM = Path(__file__).with_name("interrupting.py")
# What executes a package, or waits for somebody: in tests/e2e/test_signals.py, test_watch.py, test_mcp.py
# and tests/browser/test_web_page.py. ``demo``
# and ``rehearse`` are ``run`` several times.
ELSEWHERE = {"run", "localize", "compare", "repro", "verify", "watch", "sweep", "map", "minimize", "mcp", "demo", "web"}
WITH_JSON = {
    "check": ("m.pt2",),
    "inspect": ("m.pt2",),
    "classify": ("crash.log",),
    "bundle": ("m.pt2", "-o", "out.zip"),
    "analyze": ("report.json",),
    "diff": ("report.json", "m.pt2"),
    "cases": ("--cases", "cases.sqlite"),
    "fleet": ("results",),
    "compat": ("m.pt2", "--host", "debian-13"),
    "batch": (".", "-o", "out"),
    "stamp": ("m.pt2", "--exported", "m.pt2", "-o", "out.pt2"),
    "fix": ("execstack", "m.pt2", "-o", "out.pt2"),
    "env": (),
    "explain": ("input-stride",),
    "plugins": ("--list",),
    "triton": (".",),
}
# Their stdout is for a program to read, so that it holds the whole of it or nothing.
WITHOUT = {"contract": (str(PACKAGE),), "schema": (), "completion": ("bash",), "man": ("check",)}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("interrupted")
    write_zip(place / "m.pt2", package_parts())
    (place / "crash.log").write_text("RuntimeError: expected scalar type Float but found Half\n")
    for words in (
        ("check", "m.pt2", "--report", "json:report.json"),
        ("batch", "m.pt2", "-o", "results"),
        ("classify", "crash.log", "--cases", "cases.sqlite"),
    ):
        command = [sys.executable, "-m", "aotidoctor", *words]
        subprocess.run(command, cwd=place, capture_output=True, timeout=120, check=False)
    return place


def ended(room: Path, words: tuple[str, ...], at: int, number: int) -> tuple[int, int, bytes, str]:
    """Exit status, calls, stdout and stderr of a command that gets the signal at one of its calls."""
    place = room / "calls"
    place.unlink(missing_ok=True)
    command = [sys.executable, str(PROGRAM), str(at), str(number), str(place), *words]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "XDG_CACHE_HOME": str(room)}
    done = subprocess.run(command, cwd=room, env=environ, capture_output=True, timeout=120, check=False)
    return done.returncode, int(place.read_text()), done.stdout, done.stderr.decode()


def test_every_command_is_here() -> None:
    assert {*WITH_JSON, *WITHOUT, *ELSEWHERE} == set(COMMANDS)


@pytest.mark.parametrize("name", [*WITH_JSON, *WITHOUT])
def test_at_any_moment(name: str, room: Path) -> None:
    words = (name, *WITH_JSON[name], "--json") if name in WITH_JSON else (name, *WITHOUT[name])
    _, calls, whole, _ = ended(room, words, 0, signal.SIGTERM)
    assert whole
    # The same moments each time; others for each command.
    draw = random.Random(name)
    for number, at in zip(
        (signal.SIGINT, signal.SIGTERM, signal.SIGHUP), (1, draw.randrange(2, calls), int(0.95 * calls)), strict=True
    ):
        status, seen, out, err = ended(room, words, at, number)
        assert seen >= at, "the signal never came"
        assert status == 128 + number, (at, err)
        assert "Traceback" not in err
        if name in WITH_JSON:
            document = json.loads(out)
            assert document.get("interrupted") or document.keys() == json.loads(whole).keys(), (at, out[:500])
        else:
            # The whole, or nothing and why.
            assert out == whole or (not out and number.name in err), (at, err)


def test_what_was_interrupted_says_what_was_not_done(room: Path) -> None:
    _, _, out, _ = ended(room, ("check", "m.pt2", "--json"), 1, signal.SIGTERM)
    (note,) = json.loads(out)["not_checked"]
    assert "SIGTERM" in note["reason"]
    _, _, out, _ = ended(room, ("diff", "report.json", "m.pt2"), 1, signal.SIGHUP)
    assert out.decode().startswith(" INTERRUPTED  diff was interrupted by SIGHUP")
