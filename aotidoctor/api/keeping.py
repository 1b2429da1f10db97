"""``cases=``: the store of a desk, which keeps what was diagnosed and knows what was seen before."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aotidoctor.api.arguments import PathLike, path
from aotidoctor.model.report import Report

Keep = Callable[[Report, Mapping[str, str]], Report]


def keeper_of(cases: PathLike | None) -> Keep:
    """A function that keeps a report in ``cases`` and returns it with what was known before; None keeps nothing.

    Raises:
        ArgumentError: no path.
        CannotExamineError: no store, or one that cannot be used: said before anything is examined.
    """
    if cases is None:
        return lambda report, _environ: report
    from aotidoctor.commands.cases.remember import remember  # noqa: PLC0415 - with cases only
    from aotidoctor.commands.cases.store import open_store  # noqa: PLC0415 - likewise

    place = path("cases", cases)
    with open_store(place, make=True):
        pass
    return lambda report, environ: remember(place, report, environ)
