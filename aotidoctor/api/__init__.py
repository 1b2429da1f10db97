"""The library: what ``import aotidoctor`` offers. The commands, called from Python with objects instead of files.

Nothing here changes the process it runs in: no signal handler, no variable, no folder, no filter of warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.api.calls import check, compare, diagnose
    from aotidoctor.api.expected import Contract, contract
    from aotidoctor.api.reading import classify, compat, inspect
    from aotidoctor.api.report import Report

__all__ = ["Contract", "Report", "check", "classify", "compare", "compat", "contract", "diagnose", "inspect"]

_PLACES = {
    "Contract": "expected",
    "Report": "report",
    "check": "calls",
    "classify": "reading",
    "compare": "calls",
    "compat": "reading",
    "contract": "expected",
    "diagnose": "calls",
    "inspect": "reading",
}
__getattr__ = names_of(__name__, _PLACES)
