"""The command line in this process, with one warm worker for all its runs: a case costs no start of Python and torch.

A runner examines several packages with one warm worker as it does several questions of one. What a process of its own
must show (its start, its environment, its streams) is asked by the cases that go through the shell.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands import diagnose_package
from aotidoctor.model.run import Outcome, Request
from aotidoctor.runner import start_child
from aotidoctor.runner.runner import Runner
from tests.e2e.foundry.place import cache_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str


SECONDS = 240
# What runs that compile would each import.
COMPILER = ("torch._inductor.compile_fx",)
# Read when torch is imported: who asks for it gets a new interpreter, or one from a worker that was started with it.
STACKS = {"TORCH_SHOW_CPP_STACKTRACES": "1"}
# What torch leaves in the environment of a process that compiled something: a user's command does not find it there.
SET_BY_TORCH = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def command(*words: str | Path, env: Mapping[str, str] | None = None) -> Done:
    """``aotidoctor words``: in this process, or through the shell where the environment is changed."""
    if not env:
        return line()(*words)
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **env},
        check=False,
    )
    return Done(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)


@lru_cache(maxsize=1)
def line() -> CommandLine:
    """The command line of this test session; ``close`` ends it."""
    made = CommandLine(Path(tempfile.mkdtemp(prefix="warm-")))
    atexit.register(made.close)
    return made


@contextmanager
def forked() -> Iterator[None]:
    """Requests for a new interpreter are forked off the warm worker as well, where nothing but their wish speaks against it."""
    needs_fresh = start_child.needs_fresh
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start_child, "needs_fresh", lambda request: needs_fresh(replace(request, fresh=False)))
        yield


class WarmRunner(Runner):
    """A runner with a second warm worker, for requests that ask for C++ stacks."""

    def __init__(self, *, environ: Mapping[str, str], preload: tuple[str, ...]) -> None:
        super().__init__(environ=environ, preload=preload)
        # Nothing is compiled for the sake of a stack.
        self._verbose = Runner(environ={**environ, **STACKS}, preload=diagnose_package.REFERENCE_MODULES)

    def run(self, request: Request) -> Outcome:
        """Forked wherever the variables allow it. No part of an answer may be other than it should be."""
        outcome = self._run(request)
        assert not outcome.malformed, outcome.malformed
        return outcome

    def _run(self, request: Request) -> Outcome:
        if request.env != STACKS or request.wrapper or getattr(request.payload, "device", "cpu") != "cpu":
            return super().run(request)
        self._verbose._count = self._count
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(start_child, "needs_fresh", lambda _request: False)
            outcome = self._verbose.run(request)
        self._count = self._verbose._count
        return outcome

    @property
    def places(self) -> list[Path]:
        """Where the warm workers live."""
        return [place for place in (self._work_dir, self._verbose._work_dir) if place is not None]

    def close(self) -> None:
        """End both."""
        self._verbose.close()
        super().close()


class CommandLine:
    """``line(words...)``: one command. ``folder`` becomes TMPDIR of the commands and of what they start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # What a command compiles is kept by its content, as the models are, whichever test starts this first.
        self._environ = {**os.environ, "XDG_CACHE_HOME": str(cache_dir() / "xdg"), "TMPDIR": str(folder)}
        self.runner = WarmRunner(environ=self._environ, preload=(*diagnose_package.REFERENCE_MODULES, *COMPILER))

    def __call__(
        self, *words: str | Path, env: Mapping[str, str] = MappingProxyType({}), cwd: Path | None = None
    ) -> Done:
        """Run ``aotidoctor words``. ``env`` is for commands that run nothing: the warm worker has its own."""
        given = [str(word) for word in words]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self._environ, **env}.items():
                patch.setenv(name, value)
            for name in SET_BY_TORCH:
                patch.delenv(name, raising=False)
            if cwd is not None:
                patch.chdir(cwd)
            patch.setattr(tempfile, "tempdir", None)
            patch.setattr(sys, "argv", ["aotidoctor", *given])
            patch.setattr(diagnose_package, "runner_or_new", self.lend)
            result = CliRunner().invoke(build_app(), given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(returncode=result.exit_code, stdout=result.stdout, stderr=result.stderr)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Whoever starts a runner of its own for a diagnosis, a script or a search gets this one."""
        starts = {
            "aotidoctor.commands.minimize": ("make_runner", lambda **_: nullcontext(self.runner)),
            "aotidoctor.commands.repro.reproduce": ("start_runner", lambda _: nullcontext(self.runner)),
            "aotidoctor.commands.diagnose_package": ("runner_or_new", self.lend),
        }
        with forked(), pytest.MonkeyPatch.context() as patch:
            for module, (name, start) in starts.items():
                patch.setattr(importlib.import_module(module), name, start)
            yield

    def left(self) -> list[str]:
        """What commands left in their temporary directory; it is taken away.

        The warm worker's own directory stays, but for what it keeps from one run to the next of a command.
        """
        places = self.runner.places
        found = [path for path in self._folder.iterdir() if path not in places]
        for place in places:
            shutil.rmtree(place / "scratch", ignore_errors=True)
            found += place.glob("R*")
        for path in found:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        return sorted(str(path.relative_to(self._folder)) for path in found)

    def close(self) -> None:
        """End the warm worker, and take its folder away."""
        self.runner.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def lend(self, _given, _environ, _preload):
        """What ``diagnose.runner_or_new`` does, with this runner."""
        return nullcontext(self.runner)
