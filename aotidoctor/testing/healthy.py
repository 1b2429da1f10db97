"""``assert_aoti_healthy`` and ``@pytest.mark.aoti``: fail a test with the report where a package does not work."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.api.calls_with_inputs import check, diagnose
from aotidoctor.model.errors import AotidoctorError, UsageError

if TYPE_CHECKING:
    import pytest

    from aotidoctor.api.option_arguments import PathLike
    from aotidoctor.api.returned_report import Report


# The lists that the writer of reports reads; empty where no reports are written.
_LISTENING: list[list[Report]] = []


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
    report = register_report(function(package, inputs, **wanted, **extra))  # type: ignore[arg-type]  # each is checked there
    try:
        return report.raise_for_problem(fail_on)
    except AotidoctorError:
        raise AotiUnhealthyError(report.to_text().strip(), report) from None


def register_report(report: Report) -> Report:
    """``report``, which the writer of reports gets to know of."""
    for reports in _LISTENING:
        reports.append(report)
    return report


def listen(into: list[Report] | None) -> None:
    """Put every report from now on into a list; None ends it."""
    _LISTENING[:] = [] if into is None else [into]


# `@pytest.mark.aoti("models/*.pt2")`: one test per package.

FIXTURE = "aoti_package"
# Of the marker and not of ``assert_aoti_healthy``.
_PLACED = ("inputs", "reference")


def parametrize(metafunc: pytest.Metafunc) -> None:
    """A test for every file that matches. Raises UsageError of pytest where none does: it would pass unseen."""
    import pytest

    root = metafunc.config.rootpath
    markers = list(metafunc.definition.iter_markers("aoti"))
    patterns = [pattern for marker in markers for pattern in marker.args]
    if not patterns or not all(isinstance(pattern, str) and pattern for pattern in patterns):
        raise pytest.UsageError(f'{metafunc.definition.nodeid}: observed aoti{patterns}, expected aoti("models/*.pt2")')
    # An absolute pattern is one below the root of the file system.
    bases = [(Path(pattern).anchor or root, pattern.removeprefix(Path(pattern).anchor)) for pattern in patterns]
    found = sorted({path for base, pattern in bases for path in Path(base).glob(pattern)})
    if not found:
        text = ", ".join(patterns)
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: no file below {root} matches {text}")
    metafunc.parametrize(
        FIXTURE,
        found,
        indirect=True,
        ids=[(path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()) for path in found],
    )


def package_of(request: pytest.FixtureRequest) -> Path:
    """The package of the test; examined first where the test's function does not ask for it."""
    __tracebackhide__ = True
    import pytest

    if not hasattr(request, "param"):
        raise pytest.UsageError(f'{request.node.nodeid}: aoti_package needs @pytest.mark.aoti("models/*.pt2")')
    package: Path = request.param
    if FIXTURE not in inspect.signature(request.function).parameters:
        options = {name: value for marker in request.node.iter_markers("aoti") for name, value in marker.kwargs.items()}
        placed = {name: _expand_place(request, package, options[name]) for name in _PLACED if name in options}
        assert_aoti_healthy(package, **{**options, **placed})
    return package


def _expand_place(request: pytest.FixtureRequest, package: Path, value: object) -> object:
    """``samples/{stem}.pt``: the file that belongs to this package, from the root folder."""
    if not isinstance(value, str):
        return value
    text = value.replace("{stem}", package.stem).replace("{name}", package.name).replace("{dir}", str(package.parent))
    return str(request.config.rootpath / text)
