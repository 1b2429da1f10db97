"""``assert_aoti_healthy``: a package works, or the test fails with the report as its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.api.calls import check, diagnose
from aotidoctor.model.errors import AotidoctorError, UsageError

if TYPE_CHECKING:
    from aotidoctor.api.arguments import PathLike
    from aotidoctor.api.report import Report

# Where the writer of reports listens; None where nobody does.
_kept: list[Report] | None = None


class AotiUnhealthyError(AssertionError):
    """The package is not healthy, or could not be examined; ``report`` is the whole report, the message its text."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report

    def __reduce__(self) -> tuple[type[AotiUnhealthyError], tuple[str, Report]]:
        """How it travels to another process."""
        return type(self), (str(self), self.report)


def assert_aoti_healthy(
    package: PathLike,
    inputs: object = None,
    reference: PathLike | None = None,
    host: PathLike | None = None,
    *,
    args: object = None,
    kwargs: object = None,
    run: bool | None = None,
    fail_on: str = "error",
    **options: object,
) -> Report:
    """Examine ``package`` and fail the test unless it is healthy; else the report is returned.

    With inputs (a file, or ``args`` and ``kwargs``) the package is run in child processes as by ``diagnose``, with a
    ``reference`` also compared; without inputs, for another ``host``, or with ``run=False`` it is only read, as by
    ``check``. ``fail_on`` is the least severity that fails; ``options`` are those of the two functions.

    Raises:
        AotiUnhealthyError: an ``AssertionError`` with the report as its message.
        UsageError: wrong arguments, as of ``diagnose``.

    >>> aotidoctor.assert_aoti_healthy("model.pt2", args=args, kwargs={"ids": ids}).verdict
    'healthy'
    """
    # pytest shows the caller's line instead of these.
    __tracebackhide__ = True
    given = inputs is not None or args is not None or kwargs is not None or options.get("generate") is True
    wanted = {"args": args, "kwargs": kwargs, "reference": reference, **options}
    if run is None:
        run = given and host is None
    if run and host is not None:
        raise UsageError("host: nothing can be run on a different machine")
    function = diagnose if run else check
    extra = {} if run else {"host": host}
    report = kept(function(package, inputs, **wanted, **extra))  # type: ignore[arg-type]  # each is checked there
    try:
        return report.raise_for_problem(fail_on)
    except AotidoctorError:
        raise AotiUnhealthyError(report.to_text().strip(), report) from None


def kept(report: Report) -> Report:
    """``report``, which the writer of reports gets to know of."""
    if _kept is not None:
        _kept.append(report)
    return report


def listen(into: list[Report] | None) -> None:
    """Put every report from now on into a list; None ends it."""
    global _kept  # noqa: PLW0603 - one test at a time runs in a process
    _kept = into
