"""Who asked this process to end, for the exit status of the report that it still writes."""

from __future__ import annotations


class TerminatedError(KeyboardInterrupt):
    """Somebody ends this process by a signal: the report of what is known is written first, as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_BY: list[int] = []


def note(number: int) -> None:
    """The signal ``number`` asked this process to end."""
    _BY[:] = [number]


def status(otherwise: int) -> int:
    """128 and the number of the signal that asked, as shells count; ``otherwise`` where none was noted."""
    return 128 + _BY[0] if _BY else otherwise
