"""What every test may rely on, however the suite was started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL, signal.SIGQUIT: signal.SIG_DFL}


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """A suite that is started by nohup or as a job in the background ignores signals, and so would what tests start."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ignored = [number for number in USUAL if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, USUAL[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
