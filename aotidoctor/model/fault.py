"""How a failure of aotidoctor itself is worded: it is never evidence about the model."""

from __future__ import annotations

import traceback

FAILED_HERE = "aotidoctor failed here"


class OwnCodeError(Exception):
    """A module of aotidoctor itself could not be imported."""


def whereabouts(error: Exception) -> str:
    """``KeyError at session.py:12``: the type and the place alone, as the message may hold what is private."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {where.filename.rpartition('/')[2]}:{where.lineno}"


def failure(frames: int = 4) -> str:
    """The reason for ``NotChecked`` within an ``except`` block: the exception, with its innermost ``frames``."""
    return f"{FAILED_HERE}: {traceback.format_exc(limit=-frames)}"
