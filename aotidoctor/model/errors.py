"""Errors that carry the exit status; the command line turns them into one line on stderr."""

from __future__ import annotations


class AotidoctorError(Exception):
    """Base of everything that aotidoctor raises on purpose."""

    exit_status = 5


class UsageError(AotidoctorError):
    """The caller asked for something that cannot be meant: unknown rung, unknown treatment, contradicting options."""

    exit_status = 2


class CannotExamineError(AotidoctorError):
    """There is nothing to examine, so no check is possible."""

    exit_status = 4


class InputsError(AotidoctorError):
    """The inputs file cannot be read as inputs; ``cause`` is the slug that explains why.

    ``kind`` is ``corrupt``, ``unsafe``, ``format`` or ``missing`` (no such file, or not readable by this user).
    """

    exit_status = 4

    def __init__(
        self, message: str, *, cause: str, subject: str, observed: str = "", expected: str = "", kind: str = ""
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.kind = kind or cause.removeprefix("inputs-file-")
        self.subject = subject
        self.observed = observed
        self.expected = expected


class LimitReachedError(BaseException):
    """The examination took the CPU time or the memory that it may take; the message says which, and how much.

    No ``Exception``: nobody who reads a damaged file may take it for damage. The guards of stages and checks turn it
    into ``NotChecked`` and go on, except when it is ``final``: then only the report is left to make.
    """

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


def too_many(what: str, most: int) -> LimitReachedError:
    """``what`` is not read because there are more than ``most`` of them, as nobody's model has."""
    return LimitReachedError(f"more than {most:,} {what}: not read beyond {most:,}", final=False)
