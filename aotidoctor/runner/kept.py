"""Which requests may be forked from a process that has loaded the package already, and the process itself.

A request may when nothing that acts before or during the load sets it apart: the same file, loaded in the same way, and
no variable that is read earlier than the first call.
"""

from __future__ import annotations

import json
import os
import signal

from aotidoctor.model.jobs import Run, encode
from aotidoctor.model.record import record
from aotidoctor.model.run import Request
from aotidoctor.runner.places import RunDir
from aotidoctor.runner.process import send

_LOADING = (
    "package",
    "kind",
    "model_name",
    "device",
    "device_index",
    "code",
    "heap_checks",
    "share_reference",
    "weights",
)
# What a treatment changes before the first call; its other steps change the inputs.
_EARLY_STEPS = (
    *("model_name", "setup", "device", "tmpdir", "import", "stand_in_operator"),
    *("repack", "clear_execstack", "global_libtorch", "headers", "load_weights", "fit_weights", "fill_weights"),
)
# Read by the compiled code at its first call.
_LATE_VARIABLES = frozenset({"AOTI_RUNTIME_CHECK_INPUTS"})


@record
class Kept:
    """A keeper: process ``pid``, left by the run whose process was ``of``. ``run_dir`` holds the unpacked package.

    ``threads`` is the number that its run was asked to use; None for torch's own, which any other may follow.
    """

    key: str
    threads: int | None
    of: int
    pid: int
    run_dir: RunDir

    def serves(self, request: Request, key: str | None) -> bool:
        """Whether ``request``, of this ``key``, may be forked from it."""
        return key == self.key and self.threads in (None, getattr(request.payload, "threads", None))

    def end(self) -> None:
        """Kill it, and remove its files."""
        # Its number is its own: the warm worker does not wait for it before it ends itself.
        send(self.pid, signal.SIGKILL)
        self.run_dir.remove()


def load_key(request: Request) -> str | None:
    """Equal for requests that may share one load; None for one that shares none."""
    payload = request.payload
    if request.job != "run" or set(request.env) - _LATE_VARIABLES or not isinstance(payload, Run):
        return None
    early = [step for step in payload.treatment if step.get("op") in _EARLY_STEPS]
    facts = [{name: getattr(payload, name) for name in _LOADING}, early, request.memory_limit]
    try:
        file = os.stat(payload.package)  # noqa: PTH116 - of a path that may be none
    except (OSError, ValueError):
        return None
    return json.dumps([facts, file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns], sort_keys=True, default=encode)
