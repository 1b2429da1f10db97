"""How long a fleet waits for machines that may be gone, and a way to wait no longer than that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

from aotidoctor.model.record import record

T = TypeVar("T")


@record
class Patience:
    """Seconds. With no worker at all the user is told after ``tell``, and the cluster is lost after ``workers``.

    A scheduler is asked every ``look`` who is there. It is lost when it cannot be reached at first within ``connect``,
    or later within ``silence``, or when a question has had no answer for ``answer``: one that is stopped keeps its
    connections and says nothing. ``close`` is what parting may take.
    """

    tell: float = 60.0
    workers: float = 300.0
    look: float = 5.0
    connect: float = 10.0
    silence: float = 15.0
    answer: float = 60.0
    close: float = 60.0


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What ``ask`` returns or raises. Raises TimeoutError where it does neither in time.

    For calls that know no limit of their own. The thread of one that is late is left to itself, and ends with the
    process.
    """
    answer: futures.Future[T] = futures.Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            answer.set_exception(error)

    threading.Thread(target=run, name="aotidoctor-ask", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except futures.TimeoutError as error:
        # Of Python 3.10 this is no OSError.
        raise TimeoutError(f"no answer within {seconds:g} s") from error
