"""Decide between a fork of the warm worker and a new interpreter, and start it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from aotidoctor.model.jobs import Payload, Run, encode
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.run import Request
from aotidoctor.runner.kept import Kept, load_key
from aotidoctor.runner.lost import ForkServerLostError
from aotidoctor.runner.places import RunDir, current_directory
from aotidoctor.runner.process import Watch
from aotidoctor.runner.start import ONLY_FORKSERVER, ForkServer, child_environ, start_fresh

# Read by libraries when they are loaded, or by torch when it is imported: a forked child would change them too late.
# TORCH_SHOW_CPP_STACKTRACES is one of them (torch 2.13: set after the import it changes nothing).
_READ_AT_START = re.compile(
    r"(LD|OMP|GOMP|KMP|MKL|OPENBLAS|MALLOC|GLIBC|CUDA|NVIDIA|PYTORCH|ATEN|TORCH|TORCHINDUCTOR|LC)_|PYTHON|LANG$"
)

# A loaded model is much memory to give back.
_KEEPER_ENDS_S = 3.0
# In a request: the directory of its run, which nobody knows before.
RUN_DIR = "{run_dir}"


@record
class Child:
    """A started child. ``reap`` gives wait status and peak memory in bytes, once, after its end.

    ``key`` is that of the load which it may leave to later requests, None where it leaves none.
    """

    watch: Watch
    argv: tuple[str, ...]
    forked: bool
    reap: Callable[[], tuple[int | None, int | None]]
    key: str | None = None


class Launcher:
    """Starts children; owns the warm worker. ``work_dir`` is where the warm worker keeps its output."""

    def __init__(
        self,
        *,
        python: str,
        environ: Mapping[str, str],
        work_dir: Path,
        start_timeout: float,
        preload: tuple[str, ...],
    ) -> None:
        self._python = python
        self._environ = environ
        self._work_dir = work_dir
        self._start_timeout = start_timeout
        self._preload = preload
        self._forkserver: ForkServer | None = None
        self._no_torch: ForkServerLostError | None = None
        self._kept: Kept | None = None
        self._has_kept = False

    @property
    def facts(self) -> JsonObject | None:
        """What the warm worker said of itself, None before that."""
        return self._forkserver.facts if self._forkserver is not None else None

    def warm(self) -> ForkServer:
        """The warm worker, started if need be, perhaps not ready yet.

        Raises:
            OSError: it cannot be started.
        """
        if self._forkserver is None:
            # Some modules make folders while they are imported; those must go with everything else.
            own = self._work_dir / "tmp"
            own.mkdir(mode=0o700, exist_ok=True)
            environ = child_environ(self._environ, {"TMPDIR": str(own)}, token=os.urandom(8).hex())
            self._forkserver = ForkServer(
                self._python, self._work_dir, environ, preload=self._preload, start_timeout=self._start_timeout
            )
        return self._forkserver

    def launch(self, request: Request, run_dir: RunDir) -> Child:
        """Start the child for ``request``.

        Raises:
            OSError: no process could be made.
            ForkServerLostError: torch cannot be imported, or the warm worker died twice.
        """
        if needs_fresh(request):
            return self._fresh(request, run_dir)
        try:
            return self._forked(request, run_dir)
        except ForkServerLostError as lost:
            if lost.error is not None:
                raise
            self.close()
            return self._forked(request, run_dir)

    def keep(self, child: Child, request: Request, keeper: int, run_dir: RunDir) -> None:
        """Fork later requests from ``keeper``, which ``child`` left; ``run_dir`` is then ours to remove."""
        if child.key is not None:
            self.forget()
            self._has_kept = True
            threads = getattr(request.payload, "threads", None)
            self._kept = Kept(key=child.key, threads=threads, of=child.watch.pid, pid=keeper, run_dir=run_dir)

    def needs(self, run_dir: RunDir) -> bool:
        """Whether the files in ``run_dir`` are still used."""
        return self._kept is not None and self._kept.run_dir is run_dir

    def close(self) -> None:
        """End the warm worker."""
        self.forget()
        if self._forkserver is not None:
            forkserver, self._forkserver = self._forkserver, None
            forkserver.close(wait=_KEEPER_ENDS_S if self._has_kept else 0.0)

    def forget(self) -> None:
        """End the keeper, where there is one, and remove its files."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.end()

    def _fresh(self, request: Request, run_dir: RunDir) -> Child:
        request = _placed(request, run_dir)
        changes = {**request.env, "TMPDIR": run_dir.tmp}
        _write_request(request, run_dir, changes, parent=os.getpid())
        environ = child_environ(self._environ, changes, token=run_dir.token)
        spawned = start_fresh(self._python, run_dir.path, environ, wrapper=request.wrapper)
        return Child(watch=Watch(spawned.pid), argv=spawned.argv, forked=False, reap=spawned.reap)

    def _forked(self, request: Request, run_dir: RunDir) -> Child:
        if self._no_torch is not None:
            raise self._no_torch
        forkserver = self.warm()
        try:
            forkserver.wait_ready()
        except ForkServerLostError as lost:
            self._no_torch = lost if lost.error is not None else None
            raise
        usual = {name: self._environ.get(name) for name in ONLY_FORKSERVER}
        _write_request(request, run_dir, {**usual, **request.env, "TMPDIR": run_dir.tmp}, parent=forkserver.spawned.pid)
        key = load_key(request)
        of = self._kept.of if self._kept is not None and self._kept.serves(request, key) else None
        pid = forkserver.fork_kept(run_dir.path, of) if of is not None else None
        if pid is None:
            of, pid = None, forkserver.fork(run_dir.path, keep=key is not None)
        return Child(
            watch=Watch(pid),
            argv=forkserver.spawned.argv,
            forked=True,
            reap=partial(forkserver.reap, pid, of=of),
            key=key if of is None else None,
        )


def needs_fresh(request: Request) -> bool:
    """Whether a fork of the warm worker would not be sound, or not be what was asked for."""
    early = bool(request.wrapper) or any(_READ_AT_START.match(name) for name in request.env)
    return request.fresh or early or any(not device.startswith("cpu") for device in _devices(request.payload))


def _placed(request: Request, run_dir: RunDir) -> Request:
    """The request with the directory of its run where it names that."""

    def place(text: str) -> str:
        return text.replace(RUN_DIR, str(run_dir.path))

    env = {name: place(value) if value is not None else None for name, value in request.env.items()}
    return replace(request, env=env, wrapper=tuple(place(word) for word in request.wrapper))


def _devices(payload: Payload) -> list[str]:
    """Devices that the payload or a step of its treatment names."""
    steps = payload.treatment if isinstance(payload, Run) else ()
    named = [getattr(payload, "device", None), *(step.get("device") for step in steps)]
    return [str(device) for device in named if device]


def _write_request(request: Request, run_dir: RunDir, env: Mapping[str, str | None], *, parent: int) -> None:
    document = {
        "job": request.job,
        "payload": request.payload,
        "env": dict(env),
        "asked_env": dict(request.env),
        "memory_limit": request.memory_limit,
        "debugger": request.debugger,
        "stacks": request.stacks,
        "token": run_dir.token,
        "parent": parent,
        "user_cwd": current_directory(),
        # What one run keeps for a later one; it goes when the runner is closed.
        "scratch": str(run_dir.path.parent / "scratch"),
    }
    run_dir.file("request.json").write_text(json.dumps(document, default=encode), encoding="utf-8")
