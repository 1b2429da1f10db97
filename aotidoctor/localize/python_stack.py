"""Python frames of what ``faulthandler`` wrote to stderr: an operator in Python has no frame of its own in C."""

from __future__ import annotations

import re

from aotidoctor.model.localization import Frame

_BLOCK = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\):\n((?:  .*\n?)+)", re.MULTILINE
)
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_OURS = "/aotidoctor/worker/"
# Helpers of Python's and PyTorch's own: the operator is whoever called them.
_HELPERS = re.compile(r"/torch/|/lib/python3[\d.]*/(?!(?:site|dist)-packages/)")


def python_frames(stderr: str) -> tuple[Frame, ...]:
    """Frames of the last stack of the thread that called the model, innermost first; empty where there is none."""
    blocks = [block for block in _BLOCK.findall(stderr) if _OURS in block]
    if not blocks:
        return ()
    found = enumerate(_FRAME.finditer(blocks[-1]))
    return tuple(
        Frame(index=index, function=one["function"], file=one["file"], line=int(one["line"])) for index, one in found
    )


def operator_frame(stderr: str) -> Frame | None:
    """The frame of an operator in Python that the model had called; None when the model was in compiled code."""
    frames = python_frames(stderr)
    call = next((frame for frame in frames if frame.function == "__call__" and _OURS in (frame.file or "")), None)
    if call is None:
        return None
    inside = frames[: call.index]
    return next((frame for frame in inside if not _HELPERS.search(frame.file or "")), None)
