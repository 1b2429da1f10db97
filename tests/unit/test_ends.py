"""A test that hangs fails, says where, and the run goes on and ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

CONFTEST = """
from tests.ends import Ends

def pytest_configure(config):
    config.pluginmanager.register(Ends(spare=1.0, ending=1.0, compiling=3.0))
"""
HANGS = """
import threading

def test_that_hangs():
    threading.Thread(target=threading.Event().wait, name="beside", daemon=True).start()
    threading.Event().wait()

def test_that_passes():
    pass
"""
DEAF = """
import threading

def test_that_is_deaf():
    while True:
        try:
            threading.Event().wait()
        except BaseException:
            pass
"""
TEARS_DOWN = """
import threading, pytest

@pytest.fixture
def torn_down():
    yield
    threading.Event().wait()

def test_that_fails(torn_down):
    assert False
"""
LEAVES_A_THREAD = """
import threading

def test_that_leaves_a_thread():
    threading.Thread(target=threading.Event().wait).start()
"""


def run(folder, *more, **files):
    for name, code in {"conftest": CONFTEST, **files}.items():
        (folder / f"{name}.py").write_text(code)
    (folder / "pytest.ini").write_text("[pytest]\ntimeout = 1\ntimeout_method = signal\n")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:anyio", *more, str(folder)]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_that_hang_fail_with_stacks_and_the_others_are_run(tmp_path):
    status, out, err = run(tmp_path, "-n", "1", test_1=HANGS, test_2=DEAF, test_3=TEARS_DOWN, test_4="def test(): pass")
    assert status == 1, out
    assert "Failed: Timeout (>1.0s) from pytest-timeout" in out
    assert "Stack of beside" in out
    assert "test_1.py:6: " in out
    for name in ("test_2.py::test_that_is_deaf", "test_3.py::test_that_fails"):
        assert f"crashed while running '{name}'" in out
    assert "in test_that_is_deaf" in err
    assert "in torn_down" in err
    # Of the test whose tearing down hung there are two results.
    assert "2 passed" in out


@pytest.mark.parametrize(("code", "where"), [(DEAF, "in test_that_is_deaf"), (LEAVES_A_THREAD, "in _shutdown")])
def test_without_other_processes_the_run_ends(tmp_path, code, where):
    status, _, err = run(tmp_path, "-p", "no:xdist", test_1=code)
    assert status == 1
    assert "most recent call first" in err
    assert where in err


def test_this_run_has_a_limit(request):
    assert request.config.pluginmanager.hasplugin("timeout")
    assert request.config.pluginmanager.hasplugin("ends")
    assert float(request.config.getini("timeout")) > 0
    assert request.config.getini("timeout_method") == "signal"


COMPILES = """
import time, threading, pytest

@pytest.fixture
def packages(request):
    time.sleep(2)
    if request.node.name == "test_that_waits_for_ever":
        threading.Event().wait()

def test_that_waits(packages):
    pass

def test_that_hangs_behind_it(packages):
    threading.Event().wait()

def test_that_waits_for_ever(packages):
    pass
"""


def test_the_time_in_which_models_are_compiled_is_not_that_of_a_test_and_has_an_end(tmp_path):
    status, out, _ = run(tmp_path, "-n", "1", test_1=COMPILES)
    assert status == 1, out
    assert "1 passed" in out
    assert "2 failed" in out
    assert "Failed: Timeout (>1.0s) from pytest-timeout" in out
    assert "crashed while running 'test_1.py::test_that_waits_for_ever'" in out
