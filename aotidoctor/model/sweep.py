"""What a package does at the boundary of its contract: one row per call that was tried."""

from __future__ import annotations

import enum

from aotidoctor.model.record import record


class Says(str, enum.Enum):
    """What the contract says of a call: right, outside of a compiled range, refused, or nothing (index values)."""

    ACCEPTS = "accepts"
    RANGE = "out of range"
    REFUSES = "refuses"
    SILENT = "does not say"


class Does(str, enum.Enum):
    """What the package, or the program, does with it. ``RETURNS``: there was nothing to compare with."""

    RIGHT = "right"
    WRONG = "wrong numbers"
    ERROR = "error"
    CRASH = "crash"
    HANG = "hang"
    RETURNS = "returns"
    UNKNOWN = "not known"


class Judged(str, enum.Enum):
    """What a row means, worst first.

    ``FAULT``: what the contract accepts fails or is wrong, where the program is right. ``UNGUARDED``: the package takes
    what it computes wrongly, or crashes, without a word. ``REFUSED``: the package ends with an error where the program
    computes. ``HARMLESS``: the contract refuses it, and the package is right all the same. ``FINE``: all agree.
    """

    FAULT = "fault"
    UNGUARDED = "unguarded"
    REFUSED = "refused"
    HARMLESS = "harmless"
    FINE = "fine"
    UNKNOWN = "not known"


@record
class SweepRow:
    """One call. ``subject`` is a leaf, a symbol or the call; ``change`` says what was changed of it, '' for nothing.

    ``axis`` is ``base``, ``dtype``, ``stride``, ``size``, ``divisibility``, ``rank``, ``value``, ``none``, ``keys`` or
    ``pair``. ``cause`` is why the contract refuses it. ``detail`` and ``program_detail`` are the words of an error.
    ``checked`` is what the package does under AOTI_RUNTIME_CHECK_INPUTS=1, None where that was not tried.
    """

    axis: str
    subject: str
    change: str
    says: Says
    package: Does
    program: Does
    judged: Judged
    cause: str | None = None
    detail: str = ""
    program_detail: str = ""
    checked: Does | None = None
    run: str | None = None
    seconds: float = 0.0


@record
class Sweep:
    """All rows, in the order in which they were asked. ``unasked`` says how many were not, and why."""

    package: str
    reference: str | None
    rows: tuple[SweepRow, ...]
    planned: int
    unasked: tuple[str, ...]
    seconds: float
    torch: str | None = None
