"""Keyword arguments are missing, extra, renamed, or given by position (or the reverse).

What it does
    Compares the keyword names of the call with the keyword names of the call spec.

Why it matters
    The Python loader checks these names but nothing else in the tree; C++ and serving callers check nothing.

Example:
    kwargs['offset']: observed keyword 'offset', expected keyword 'bias'

When it is wrong
    The order of keyword arguments never matters: the loader puts them in order. This check does not look at it.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.leaves import call_error, difference_facts, missing_reason, overlay_of
from aotidoctor.model.case import Case

FIND = Finder("AD-IN-003", "input_kwargs")


def run(case: Case) -> Observations:
    """One finding per keyword that is out of place."""
    overlay = overlay_of(case)
    if overlay is None:
        yield FIND.unchecked(missing_reason(case))
        return
    raises = call_error(case)
    for difference in overlay.of("kwargs"):
        yield FIND.error(
            difference.kind,
            difference.path,
            observed=difference.observed,
            expected=difference.expected,
            facts=difference_facts(difference, raises),
        )


CHECK = FIND.check(run, needs=("inputs_file",), facts=("call-spec",))
