"""What every test may rely on, however the suite was started."""

from __future__ import annotations

import compileall
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from aotidoctor.__main__ import COLLECT_EVERY
from tests.e2e.foundry.place import cache_dir
from tests.ends import Ends

USUAL = {signal.SIGINT: signal.default_int_handler}
USUAL |= {getattr(signal, name): signal.SIG_DFL for name in ("SIGHUP", "SIGQUIT") if hasattr(signal, name)}

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "aotidoctor"
# Has a g++ that keeps the objects it made.
COMPILER = TESTS / "e2e" / "kept_objects"
# What takes longest begins first, so that nobody waits for it at the end: single tests of many seconds, then the rest
# of what runs packages. The others are quick.
LONGEST_FIRST = (
    "e2e/test_recompile.py", "e2e/test_minimize.py", "e2e/test_verify.py", "docs/test_readme.py", "docs/test_examples.py", "e2e/test_repro.py",
    "unit/patterns/test_linear.py", "unit/fleet/test_cluster.py", "unit/fleet/test_batch.py", "browser", "e2e/test_cases.py", "e2e",
)  # fmt: skip


# How long an example takes says more of the machine than of the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the sources once: where Python is told to write no bytecode, each of a thousand processes would do it."""
    config.pluginmanager.register(Ends(), "ends")
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(SOURCES, quiet=2)
    # The same for the tests themselves, with their assertions rewritten.
    sys.dont_write_bytecode = False
    # What a process asks of the CPU before it loads its first package takes it seconds of compiling; the answer is the same.
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    _keep_objects()
    _leave_the_users_cache_alone(config)
    # As the command does: else every some hundred objects ten thousand tests are looked at for cycles.
    gc.set_threshold(COLLECT_EVERY)


def _keep_objects() -> None:
    """What the tests compile, they compile once per machine."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if shutil.which("g++") is not None and str(COMPILER) not in folders:
        os.environ["AOTIDOCTOR_TEST_CACHE"] = str(cache_dir())
        os.environ["PATH"] = os.pathsep.join([str(COMPILER), *folders])


def _leave_the_users_cache_alone(config: pytest.Config) -> None:
    """What the program, matplotlib and others keep for their user is kept for this run, and then gone.

    What costs much to make is in ``cache_dir()``, and the CUDA torch of ``tests/cuda_sim`` where it was.
    """
    if hasattr(config, "workerinput"):
        return
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ.setdefault("AOTIDOCTOR_CUDA_CACHE", str(Path(before or Path.home() / ".cache") / "aotidoctor-cuda"))
    own = tempfile.mkdtemp(prefix="aotidoctor-tests-")
    os.environ["XDG_CACHE_HOME"] = own
    config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is thorough, before tests are chosen by marks, and the order in which tests begin; see ``LONGEST_FIRST``."""
    _mark_thorough(items, whole_files=not any("::" in name for name in config.args))
    ranks = [TESTS / name for name in LONGEST_FIRST]

    def rank(item: pytest.Item) -> int:
        return next((at for at, place in enumerate(ranks) if item.path.is_relative_to(place)), len(ranks))

    by_file = {item.path: rank(item) for item in {item.path: item for item in items}.values()}
    items.sort(key=lambda item: by_file[item.path])


def _mark_thorough(items: list[pytest.Item], *, whole_files: bool) -> None:
    """Raises pytest.UsageError where the list names a test that is in none of the collected files."""
    lines = (TESTS / "thorough.txt").read_text(encoding="utf-8").splitlines()
    named = {line.rpartition(" = ")[0] for line in lines if not line.startswith("#")}
    by_name = {item.nodeid.removeprefix(f"{TESTS.name}/"): item for item in items}
    files = {name.partition("::")[0] for name in by_name}
    for name in sorted(named & by_name.keys()):
        by_name[name].add_marker(pytest.mark.thorough)
    gone = sorted(name for name in named - by_name.keys() if name.partition("::")[0] in files)
    if gone and whole_files:
        raise pytest.UsageError(f"tests/thorough.txt names what is no test: {', '.join(gone)}")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody need look through it for cycles again."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: there is always a test that waits for something."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Of a suite that nohup, a shell's background or perf starts, some signals are ignored or blocked: no test sees it."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    ignored = [number for number in USUAL if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, USUAL[number])
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
