"""``python -m aotidoctor`` and the ``aotidoctor`` script."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from typing import NoReturn

from aotidoctor.interruption import receive_requests, signal_status

# Objects made between two looks for cycles. A static command makes fewer and leaves next to none; one that goes on for
# hours still gets rid of them.
COLLECT_EVERY = 200_000


def main() -> None:
    """Run the command line; ends the process with the exit status."""
    gc.set_threshold(COLLECT_EVERY)
    _open_standard_streams()
    receive_requests()
    try:
        # Imported here, so that an interrupt during start-up ends like any other.
        from aotidoctor.cli import build_app

        build_app()(prog_name="aotidoctor")
    except SystemExit as ended:
        _leave(ended)
    finally:
        # What is left goes with the process: the interpreter need not look through all of it first.
        gc.freeze()
        # The interpreter takes our handlers away before it ends, and an impatient user's last one would kill it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _open_standard_streams() -> None:
    """Open /dev/null for each of the three that is closed: the first file of ours would take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # noqa: PERF203 - three times
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _leave(ended: SystemExit) -> NoReturn:
    """End without taking thousands of modules and objects apart one by one: a tenth of what ``check`` takes.

    What is registered for the end is called, and what is buffered is written. Where a thread still runs, unless a
    signal asked for the end, or where the output cannot be written, the interpreter ends as it always does.
    """
    requested = signal_status(0)
    code = requested or (0 if ended.code is None else ended.code)
    # WebAssembly's only process is the page.
    if not isinstance(code, int) or sys.platform == "emscripten" or (threading.active_count() > 1 and not requested):
        raise SystemExit(code) from None
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        raise SystemExit(code) from None
    os._exit(signal_status(code) & 0xFF)


if __name__ == "__main__":
    main()
