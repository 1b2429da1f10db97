"""The library: what ``import aotidoctor`` offers. The commands, called from Python with objects instead of files.

Nothing here changes the process it runs in: no signal handler, no variable, no folder, no filter of warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model import names_of

if TYPE_CHECKING:
    from aotidoctor.api.calls_with_inputs import check, compare, diagnose
    from aotidoctor.api.calls_without_inputs import Contract, classify, compat, contract, inspect
    from aotidoctor.api.returned_report import Report

__all__ = ["Contract", "Report", "check", "classify", "compare", "compat", "contract", "diagnose", "inspect"]

_PLACES = {
    "Contract": "calls_without_inputs",
    "Report": "returned_report",
    "check": "calls_with_inputs",
    "classify": "calls_without_inputs",
    "compare": "calls_with_inputs",
    "compat": "calls_without_inputs",
    "contract": "calls_without_inputs",
    "diagnose": "calls_with_inputs",
    "inspect": "calls_without_inputs",
}
__getattr__ = names_of(__name__, _PLACES)
