"""The fixture ``aotidoctor``: the functions of the library, whose reports ``--aoti-report`` writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from aotidoctor.api import Contract, Report, check, classify, compare, compat, contract, diagnose, inspect
from aotidoctor.testing.healthy import assert_aoti_healthy, kept

P = ParamSpec("P")


def _known(function: Callable[P, Report]) -> Callable[P, Report]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Report:
        return kept(function(*args, **kwargs))

    return call


class Doctor:
    """``aotidoctor.check(...)`` and the others as in ``import aotidoctor``, and ``assert_aoti_healthy``."""

    Contract = Contract
    Report = Report
    assert_aoti_healthy = staticmethod(assert_aoti_healthy)
    check = staticmethod(_known(check))
    classify = staticmethod(_known(classify))
    compare = staticmethod(_known(compare))
    compat = staticmethod(_known(compat))
    contract = staticmethod(contract)
    diagnose = staticmethod(_known(diagnose))
    inspect = staticmethod(_known(inspect))
