"""``python -m aotidoctor`` and the ``aotidoctor`` script."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
# Objects made between two looks for cycles. A static command makes fewer and leaves next to none; one that goes on for
# hours still gets rid of them.
COLLECT_EVERY = 200_000
# Both end the process as they would have, but not before the files are gone.
ENDING = (signal.SIGTERM, signal.SIGHUP)


class TerminatedError(BaseException):
    """Somebody ends this process by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> None:
    """Run the command line; ends the process with the exit status."""
    gc.set_threshold(COLLECT_EVERY)
    # A shell that starts a job in the background has it ignore interrupts: that stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _first_interrupt)
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminated)
    try:
        # Imported here, so that an interrupt during start-up ends like any other.
        from aotidoctor.cli import build_app  # noqa: PLC0415

        build_app()(prog_name="aotidoctor")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except TerminatedError as ended:
        os.kill(os.getpid(), ended.number)
    finally:
        # What is left goes with the process: the interpreter need not look through all of it first.
        gc.freeze()
        # The interpreter takes our handlers away before it ends, and an impatient user's last one would kill it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _first_interrupt(_number: int, _frame: FrameType | None) -> None:
    """Drop what is running, so that the report of what is known can be written; the next interrupt ends it all."""
    signal.signal(signal.SIGINT, _second_interrupt)
    raise KeyboardInterrupt


def _second_interrupt(_number: int, _frame: FrameType | None) -> None:
    """Leave at once. The warm worker sees it, kills what it has started and removes the files."""
    os._exit(INTERRUPTED)


def _terminated(number: int, _frame: FrameType | None) -> None:
    """Tidy up, and end by this signal then; the next one ends it at once."""
    for one in ENDING:
        signal.signal(one, signal.SIG_DFL)
    raise TerminatedError(number)


if __name__ == "__main__":
    main()
