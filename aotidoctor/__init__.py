"""Finds out why a PyTorch AOTInductor package fails, and proves it.

The public names are here; they are imported when they are first used, so that ``import aotidoctor`` costs nothing.

    import os
    from aotidoctor import Options, diagnose

    report = diagnose("model.pt2", "sample.pt", Options(), environ=os.environ)
    print(report.verdict, [diagnosis.cause for diagnosis in report.diagnoses])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.commands.diagnose import check, diagnose, inspect
    from aotidoctor.commands.guard import guard
    from aotidoctor.model.case import Options
    from aotidoctor.model.errors import AotidoctorError, CannotExamineError, InputsError, UsageError
    from aotidoctor.model.report import Report

__all__ = [
    "AotidoctorError",
    "CannotExamineError",
    "InputsError",
    "Options",
    "Report",
    "UsageError",
    "__version__",
    "check",
    "diagnose",
    "guard",
    "inspect",
]

_PLACES = {
    "AotidoctorError": "aotidoctor.model.errors",
    "CannotExamineError": "aotidoctor.model.errors",
    "InputsError": "aotidoctor.model.errors",
    "Options": "aotidoctor.model.case",
    "Report": "aotidoctor.model.report",
    "UsageError": "aotidoctor.model.errors",
    "check": "aotidoctor.commands.diagnose",
    "diagnose": "aotidoctor.commands.diagnose",
    "guard": "aotidoctor.commands.guard",
    "inspect": "aotidoctor.commands.diagnose",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'aotidoctor' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for those who use the library

    return getattr(import_module(_PLACES[name]), name)
