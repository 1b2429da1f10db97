"""Finds out why a PyTorch AOTInductor package fails, and proves it.

The public names are here; they are imported when they are first used, so that ``import aotidoctor`` costs nothing.

    import aotidoctor

    report = aotidoctor.diagnose("model.pt2", args=(x,), kwargs={"ids": ids})
    print(report.verdict, report.cause)
    report.show()
"""

from __future__ import annotations

from aotidoctor.version import __version__

# What typing has under this name; importing it would be most of the cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from aotidoctor.api import Contract, Report, check, classify, compare, compat, contract, diagnose, inspect
    from aotidoctor.api.returned_report import ProblemFoundError
    from aotidoctor.commands.guard import guard
    from aotidoctor.commands.stamp_and_fix import stamp
    from aotidoctor.model.case import Options
    from aotidoctor.model.errors import AotidoctorError, ArgumentError, CannotExamineError, InputsError, UsageError
    from aotidoctor.testing import AotiUnhealthyError, assert_aoti_healthy

__all__ = [
    "AotiUnhealthyError",
    "AotidoctorError",
    "ArgumentError",
    "CannotExamineError",
    "Contract",
    "InputsError",
    "Options",
    "ProblemFoundError",
    "Report",
    "UsageError",
    "__version__",
    "assert_aoti_healthy",
    "check",
    "classify",
    "compare",
    "compat",
    "contract",
    "diagnose",
    "guard",
    "inspect",
    "stamp",
]

_ERRORS = "aotidoctor.model.errors"
_PLACES = {
    "AotiUnhealthyError": "aotidoctor.testing",
    "AotidoctorError": _ERRORS,
    "ArgumentError": _ERRORS,
    "CannotExamineError": _ERRORS,
    "Contract": "aotidoctor.api",
    "InputsError": _ERRORS,
    "Options": "aotidoctor.model.case",
    "ProblemFoundError": "aotidoctor.api.returned_report",
    "Report": "aotidoctor.api",
    "UsageError": _ERRORS,
    "assert_aoti_healthy": "aotidoctor.testing",
    "check": "aotidoctor.api",
    "classify": "aotidoctor.api",
    "compare": "aotidoctor.api",
    "compat": "aotidoctor.api",
    "contract": "aotidoctor.api",
    "diagnose": "aotidoctor.api",
    "guard": "aotidoctor.commands.guard",
    "inspect": "aotidoctor.api",
    "stamp": "aotidoctor.commands.stamp_and_fix",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'aotidoctor' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """The public names, also for completion in a notebook."""
    return sorted({*globals(), *__all__})
