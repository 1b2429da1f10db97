"""What it costs to have aotidoctor installed: its import, and its pytest plugin in a suite that does not use it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.bench.measure import timed

pytestmark = [pytest.mark.bench]
ROOT = Path(__file__).parents[2]


def least(rounds, environ, *commands):
    """The least processor time of each command in seconds, asked in turn: other load moves that less than a mean."""
    spent = [[] for _ in commands]
    for _ in range(rounds):
        for command, seconds in zip(commands, spent, strict=True):
            done = timed(command, environ)
            assert done.status == 0, done.stdout
            seconds.append(done.cpu)
    return [min(seconds) for seconds in spent]


@pytest.fixture
def environ():
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHONDONT"))},
        "PYTHONPATH": str(ROOT),
    }


def test_import(environ):
    nothing, ours = least(30, environ, [sys.executable, "-c", "pass"], [sys.executable, "-c", "import aotidoctor"])
    print(f"import aotidoctor: {1000 * (ours - nothing):.1f} ms over {1000 * nothing:.1f} ms")
    assert ours - nothing <= 0.005


def test_pytest_plugin_that_is_not_used(environ, tmp_path):
    (tmp_path / "test_x.py").write_text("".join(f"def test_{n}(): pass\n" for n in range(200)))
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:aotidoctor", str(tmp_path)]
    with_it = [*plain[:-3], "-p", "aotidoctor.pytest_plugin", str(tmp_path)]
    without, having = least(8, environ, plain, with_it)
    print(f"pytest, 200 tests: {having / without:.3f} of the time without the plugin")
    assert having / without < 1.05
