"""Define the exit statuses, and the errors that carry one; the command line prints each as one line on stderr.

Also here: the signal by which this process ends, for the exit status of the report that it still writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


# Those of every command, in the order of the documentation.
OK, PROBLEM, USAGE, UNKNOWN, CANNOT_EXAMINE, INTERNAL_ERROR, OUT_OF_TIME = range(7)


class AotidoctorError(Exception):
    """Base of everything that aotidoctor raises on purpose."""

    exit_status = INTERNAL_ERROR


class UsageError(AotidoctorError):
    """The request makes no sense: unknown probe, unknown treatment, contradicting options."""

    exit_status = USAGE


class ArgumentError(UsageError):
    """A value given to a function of the library has the wrong type or is out of range.

    ``where`` is the argument (``args[0]``, ``timeout``), ``observed`` what was given, ``expected`` what is possible.
    """

    def __init__(self, where: str, observed: str, expected: str) -> None:
        super().__init__(f"{where}: observed {observed}, expected {expected}")
        self.where = where
        self.observed = observed
        self.expected = expected

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, str, str]]:
        """Arguments for unpickling in another process of the caller's."""
        return type(self), (self.where, self.observed, self.expected)


class CannotExamineError(AotidoctorError):
    """There is nothing to examine, so no check is possible."""

    exit_status = CANNOT_EXAMINE


@contextmanager
def examining(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the block into CannotExamineError, with the path and the reason."""
    try:
        yield
    except OSError as error:
        raise CannotExamineError(f"{path}: {error.strerror or error}") from error


class InputsError(AotidoctorError):
    """The inputs file cannot be read as inputs; ``cause`` is the slug that explains why.

    ``kind`` is ``corrupt``, ``unsafe``, ``format``, ``missing`` or ``unreadable`` (by this user).
    """

    exit_status = CANNOT_EXAMINE

    def __init__(
        self, message: str, *, cause: str, subject: str, observed: str = "", expected: str = "", kind: str = ""
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.kind = kind or cause.removeprefix("inputs-file-")
        self.subject = subject
        self.observed = observed
        self.expected = expected

    def __reduce__(self) -> tuple[partial[InputsError], tuple[str]]:
        """Arguments for unpickling in another process of the caller's."""
        made = partial(
            InputsError,
            cause=self.cause,
            subject=self.subject,
            observed=self.observed,
            expected=self.expected,
            kind=self.kind,
        )
        return made, (str(self),)

    @property
    def where(self) -> str:
        """The file or leaf, by the name that other errors have for it."""
        return self.subject


class LimitReachedError(BaseException):
    """The examination took the CPU time or the memory that it may take; the message says which, and how much.

    No ``Exception``: nobody who reads a damaged file may take it for damage. The guards of stages and checks turn it
    into ``NotChecked`` and go on, except when it is ``final``: then only the report is left to make.
    """

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


def too_many(what: str, most: int) -> LimitReachedError:
    """The error for more than ``most`` of ``what``, far above any real model."""
    return LimitReachedError(f"more than {most:,} {what}: not read beyond {most:,}", final=False)
