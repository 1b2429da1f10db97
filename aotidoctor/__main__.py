"""``python -m aotidoctor`` and the ``aotidoctor`` script."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import NoReturn

from aotidoctor.model.errors import TerminatedError, note_signal, signal_status

INTERRUPTED = 130
# Objects made between two looks for cycles. A static command makes fewer and leaves next to none; one that goes on for
# hours still gets rid of them.
COLLECT_EVERY = 200_000
# Like an interrupt: what is running is dropped, and the report of what is known is written.
ENDING = (signal.SIGTERM, signal.SIGHUP)
# A signal so soon after the first is the same wish, sent to the process and to its group.
SAME_REQUEST_S = 0.05
_requests: list[float] = []


def main() -> None:
    """Run the command line; ends the process with the exit status."""
    gc.set_threshold(COLLECT_EVERY)
    # A shell that starts a job in the background has it ignore interrupts: that stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _on_termination)
    try:
        # Imported here, so that an interrupt during start-up ends like any other.
        from aotidoctor.cli import build_app

        build_app()(prog_name="aotidoctor")
    except SystemExit as ended:
        _leave(ended)
    except KeyboardInterrupt:
        sys.exit(signal_status(INTERRUPTED))
    finally:
        # What is left goes with the process: the interpreter need not look through all of it first.
        gc.freeze()
        # The interpreter takes our handlers away before it ends, and an impatient user's last one would kill it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(ended: SystemExit) -> NoReturn:
    """End without taking thousands of modules and objects apart one by one: a tenth of what ``check`` takes.

    What is registered for the end is called, and what is buffered is written. Where a thread still runs, or where the
    output cannot be written, the interpreter ends as it always does.
    """
    code = 0 if ended.code is None else ended.code
    if not isinstance(code, int) or threading.active_count() > 1:
        raise ended
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        raise ended from None
    os._exit(code & 0xFF)


def _is_first() -> bool:
    """Whether this is the first request to end. The second ends the process here, unless it is the first one again."""
    now = time.monotonic()
    if _requests and now - _requests[0] >= SAME_REQUEST_S:
        # The warm worker sees it, kills what it has started and removes the files.
        os._exit(signal_status(INTERRUPTED))
    _requests.append(now)
    return len(_requests) == 1


def _on_interrupt(_number: int, _frame: FrameType | None) -> None:
    """Drop what is running, so that the report of what is known can be written; the next interrupt ends it all."""
    if _is_first():
        raise KeyboardInterrupt


def _on_termination(number: int, _frame: FrameType | None) -> None:
    """Do the same for a termination signal, with an exit status of its own."""
    if _is_first():
        note_signal(number)
        raise TerminatedError(number)


if __name__ == "__main__":
    main()
