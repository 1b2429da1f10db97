"""Job ``printed``: one call of a package that was compiled with the value printer, and what that printed or saved.

Level 2 prints to stdout, more than a tail of it would hold: while the model runs, stdout is a file of the run's
directory. Level 1 saves each tensor below the current directory. What comes of it goes into the result as ``printed``
(text) or ``saved`` (one object per file). The other parts are those of job ``run``. Of a call that fails neither gets
so far: with ``unbuffered`` all goes to stdout as it is printed, and the tail of it is kept whatever the end is.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.describe import describe, digest
from aotidoctor.worker.run_model import run

_MAX_TEXT = 4 * 1024 * 1024
_MAX_FILES = 5_000
_NO_BUFFER = 2  # _IONBF
# What is kept of a longer text: headers and statistics. The values themselves are printed for small tensors only.
_TELLING = re.compile(
    r"\[  (?:before_launch|after_launch|aoti_model_inputs) - |(?:Number of elements|Dtype|Size|\w+ value): "
)
# There is no separator after the folder. Kernels may be ``at::_ops::sort::call``; buffers are ``buf0`` or ``arg1_1``.
_SAVED = re.compile(
    r"aoti_torch(?P<when>before|after)_launch_(?P<kernel>.+)_(?P<buffer>buf\d+|arg\d+_\d+)_[a-z]+\d*\.pt"
)


def printed(payload: Run, channel: Channel) -> dict[str, Any]:
    """Run ``payload`` as job ``run`` would; ``level`` is what the package was compiled with."""
    plain = replace(payload, reference=None)
    if payload.level == 1:
        result = run(plain, channel)
        return {**result, "saved": _saved(payload, channel)}
    if payload.unbuffered:
        _unbuffered()
        return run(plain, channel)
    path = channel.run_dir / "printed"
    with _stdout_in(path):
        result = run(plain, channel)
    return {**result, "printed": _bounded(path)}


def _unbuffered() -> None:
    """The C library writes each line at once: what it holds back is lost when the process aborts."""
    library = ctypes.CDLL(None)
    library.setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t]
    library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, _NO_BUFFER, 0)


@contextmanager
def _stdout_in(path: Path) -> Iterator[None]:
    """Everything that C, C++ and Python write to stdout goes to ``path``."""
    kept = os.dup(1)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.close(file)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def _bounded(path: Path) -> str:
    """The text; without the values where it is long, and only its beginning where that is long, too."""
    if path.stat().st_size <= _MAX_TEXT:
        return path.read_text(encoding="utf-8", errors="replace")
    kept, size = [], 0
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if _TELLING.search(line):
                kept.append(line)
                size += len(line)
            if size > _MAX_TEXT:
                break
    return "".join(kept)


def _saved(payload: Run, channel: Channel) -> list[dict[str, Any]]:
    """``when``, ``kernel``, ``buffer``, statistics and digest of each file; ``near``: what it is in the reference.

    A kernel that is called again has overwritten the files of its earlier calls.
    """
    import torch

    channel.enter("reference")
    nodes = _candidates(payload, channel)
    channel.enter("scan")
    found = []
    for path in sorted((Path.cwd() / "tmp").glob("aoti_torch*_launch_*.pt"))[:_MAX_FILES]:
        name = _SAVED.fullmatch(path.name)
        if name is None:
            continue
        tensor = torch.load(path, weights_only=True)
        record = {**name.groupdict(), **describe(name["buffer"], tensor, values=True), "sha256": digest(tensor)}
        if nodes is not None and name["when"] == "after":
            record["near"] = nodes.closest(tensor)
        found.append(record)
    return found


def _candidates(payload: Run, channel: Channel) -> Any:
    """The values of the exported program, node by node; None where there is none to compare with."""
    if not payload.reference or payload.inputs is None:
        return None
    import torch

    from aotidoctor.worker.values.candidates import gather

    program = torch.export.load(str(channel.user_cwd / payload.reference))
    return gather(program, read_call(payload.inputs, channel))
