"""Compiles the base models once per machine and hands out a folder per case."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.ends import COMPILE_S

with suppress(ImportError):
    # torch imports it when it loads a package, and it refuses to be imported after the distutils of Python itself.
    import setuptools  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))

from foundry import build
from foundry.cases import Kit
from foundry.place import cache_dir
from warm import CommandLine, line
from warm_python import close, python_script

from aotidoctor.runner.runner import Runner

BUILDER = Path(build.__file__)


@pytest.fixture(scope="module", autouse=True)
def kept_compiles() -> Iterator[None]:
    """What the program itself compiles for these tests is kept by its content, as the models are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache_dir() / "xdg"))
        yield


@pytest.fixture(scope="session")
def packages() -> Kit:
    """The compiled base models; the first worker compiles what is missing, the others wait for it."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile packages with")
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = build.missing(cache)
        if missing:
            command = [sys.executable, str(BUILDER), str(cache), *missing]
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S, check=False)
            assert done.returncode == 0, done.stderr[-4000:]
    return Kit(cache=cache)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``made_once(name, file, script, words...)``: a folder for all workers of this run.

    The first worker runs the script with the folder and the words, which writes the file there; the others wait.
    """

    def make(name: str, file: str, script: Path, *words: str) -> Path:
        room = tmp_path_factory.getbasetemp()
        shared = (room.parent if os.environ.get("PYTEST_XDIST_WORKER") else room) / name
        shared.mkdir(exist_ok=True)
        with (shared / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / file).exists():
                done = python_script(script, shared, *words, seconds=COMPILE_S)
                assert done.returncode == 0, done.stderr[-4000:]
        return shared

    return make


@pytest.fixture
def command_line() -> CommandLine:
    """``command_line(words...)``: a command of aotidoctor in this process, with a worker that is warm already."""
    return line()


@pytest.fixture
def runner() -> Iterator[Runner]:
    """The runner of that command line: what is asked of a runner needs no other start of torch."""
    yield line().runner
    line().runner.forget()
    line().left()


def pytest_sessionfinish() -> None:
    """End the warm processes, if there are any."""
    close()
    if line.cache_info().currsize:
        line().close()


@pytest.fixture
def case_dir(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, removed afterwards: hundreds of packages would fill the disk."""
    room = tmp_path / "case"
    room.mkdir()
    yield room
    for folder in [room, *room.rglob("*")]:
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    shutil.rmtree(tmp_path, ignore_errors=True)
