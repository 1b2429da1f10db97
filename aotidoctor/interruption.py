"""Requests to end this process: SIGINT, SIGTERM, SIGHUP.

Inside ``interruptible`` the first request raises KeyboardInterrupt: what is running is dropped, and the report of what
is known is written. Everywhere else, and inside ``held``, it is only noted: imports, options and the writing of a
document are not cut in half. What was noted is raised where the next ``interruptible`` begins, or half a second later
where one is open again. In any case the exit status says which signal it was. A second request ends the process at
once; so does the time, when nothing else has.

In a program that uses aotidoctor as a library nothing is received, and nothing here has an effect.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# SIGHUP is not on Windows.
NUMBERS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
# A signal so soon after the first is the same request, sent to the process and to its group.
SAME_REQUEST_S = 0.05
# From the first request to the end of the process, whatever it does: a reader of stdout may have stopped reading.
LONGEST_END_S = 20.0
_LOOK_S = 0.5


@dataclass(slots=True)
class _State:
    number: int | None = None
    since: float = 0.0
    raises: bool = False
    pending: bool = False


_state = _State()


def receive_requests() -> None:
    """From now on requests are noted. A signal that is ignored stays so: a shell's background job, ``nohup``."""
    for number in NUMBERS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _on_request)
    sys.unraisablehook = _on_unraisable


def requested_signal() -> str | None:
    """The name of the signal that asked this process to end; None where none did."""
    return None if _state.number is None else signal.Signals(_state.number).name


def signal_status(otherwise: int = 128 + signal.SIGINT) -> int:
    """128 and the number of the signal that asked this process to end, as shells count; else ``otherwise``.

    Without ``otherwise`` that of an interrupt, for a KeyboardInterrupt that no signal raised.
    """
    return otherwise if _state.number is None else 128 + _state.number


@contextmanager
def interruptible() -> Iterator[None]:
    """A block that a request ends by KeyboardInterrupt, also one that came before it."""
    before, _state.raises = _state.raises, True
    try:
        _raise_pending()
        yield
    finally:
        _state.raises = before


@contextmanager
def held() -> Iterator[None]:
    """A block that no request ends: what is in it is finished first, but for ``interruptible`` blocks in it."""
    before, _state.raises = _state.raises, False
    try:
        yield
    finally:
        _state.raises = before


def _raise_pending() -> None:
    if _state.pending and _state.raises:
        _state.pending = False
        raise KeyboardInterrupt


def _on_request(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if _state.number is None:
        _state.number, _state.since, _state.pending = number, now, True
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, _on_tick)
            signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
        _raise_pending()
    elif now - _state.since >= SAME_REQUEST_S:
        # The warm worker sees it, kills what it has started and removes the files.
        os._exit(signal_status(0))


def _on_tick(_number: int, _frame: FrameType | None) -> None:
    if time.monotonic() - _state.since >= LONGEST_END_S:
        os._exit(signal_status(0))
    _raise_pending()


def _on_unraisable(lost: UnraisableHookArgs) -> None:
    """What is raised in a finalizer or a callback goes no further: it is raised once more, somewhere else."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _state.pending = True
    else:
        sys.__unraisablehook__(lost)
