"""What are the smallest inputs with which it still fails?

What it does
    Cuts the batch and the other dynamic sizes of the inputs, from their end and from their start, and calls the package
    with the rest, each time in a fresh child. A size counts as failing only if the run ends in the same way: same
    exception or signal, same message, same kernel. The remaining entries keep their values, order and strides.

Why it matters
    A failure with one row makes a bug report that others can run; the remaining row is the one to examine.

Example:
    args[0].shape[0]: observed fails with 1 (entry 700 of 800), gone with entry 700 left out

When it is wrong
    Each size is tried once: an intermittent failure is reduced to the wrong place. Sizes that fail only in the middle
    of a range are not found. Static dims are compiled in and do not change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.localize.bisection import CuttableSize, SmallestSizes, dim_cuts, lines_of, sizes_of
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.run import NotStarted, Outcome, Request
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-031", "shrink"
FIND = RunFinder(CODE, NAME, __doc__)
Signature = tuple[FactValue, ...]
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan the plain run again, with inputs that the search cuts, if --shrink was given."""
    plain = history.plain
    if not case.options.shrink:
        reason = "run this with --shrink"
    elif plain is None or isinstance(plain.ending, NotStarted):
        reason = "the package could not be run on this host"
    elif succeeded(plain):
        reason = "the plain run returned: there is no failure to keep"
    elif not plain.stage.startswith(("run", "scan")):
        reason = f"it failed at the stage {plain.stage}, before the sizes of the inputs mattered"
    elif case.inputs is None or case.contract is None:
        reason = "the sizes of the inputs are unknown"
    elif not sizes_of(case):
        reason = "no dynamic size is larger than the least that was compiled"
    else:
        return run_request(case, NAME, "with smaller inputs")
    return FIND.unchecked(reason)


def signature_of(case: Case, outcome: Outcome) -> Signature | None:
    """The failure of a run without the numbers in its message; None if it returned or did not start."""
    if succeeded(outcome) or isinstance(outcome.ending, NotStarted):
        return None
    item = read_ending(CODE, case, outcome)
    line = item.facts.get("line")
    words = _NUMBER.sub("#", line) if isinstance(line, str) and item.facts.get("symptom") == "other" else ""
    facts = (item.facts.get(key) for key in ("signal", "type", "symptom", "kernel", "op", "variable"))
    return (item.kind, *facts, words)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """No finding: the search makes it."""
    return []


def finding(
    sizes: Sequence[CuttableSize], end: SmallestSizes, outcome: Outcome, runs: int, *, finished: bool = True
) -> Evidence:
    """The finding with the smallest sizes so far. ``outcome`` is the last run that failed in the same way."""
    found = dim_cuts(sizes, end.parts)
    parts = {one.name: end.parts[one.name] for one in sizes}
    named = {one.name: str(one.places[0]) for one in sizes}
    smaller = [one for one in sizes if parts[one.name].size < one.value]
    facts: dict[str, FactValue] = {
        "runs": runs,
        "sizes": tuple(f"{named[one.name]} = {parts[one.name].size}" for one in sizes),
        "starts": tuple(parts[one.name].start for one in sizes),
        "given": tuple(one.value for one in sizes),
        "gone": tuple(f"{named[name]} = {size}" for name, size in end.gone.items()),
        "command": lines_of(found),
    }
    observed = "; ".join(_text(one, end) for one in sizes)
    kind = "smaller" if smaller else "needs-all"
    return FIND.info(outcome)(
        kind if finished else "unfinished",
        named[smaller[0].name] if smaller else named[sizes[0].name],
        observed=f"fails in the same way with {observed}" + ("" if finished else "; the search was not finished"),
        expected="the smallest inputs that still fail",
        facts=facts,
    )


def _text(size: CuttableSize, end: SmallestSizes) -> str:
    part = end.parts[size.name]
    if part.size == size.value:
        return f"all {size.value} of {size.places[0]}"
    rows = f"entry {part.start}" if part.size == 1 else f"entries {part.start} to {part.start + part.size - 1}"
    gone = f", not with {end.gone[size.name]}" if size.name in end.gone else ""
    return f"{part.size} of {size.value} in {size.places[0]} ({rows}{gone})"


PROBE = FIND.probe(plan, read, "with --shrink, when the plain run failed in a call with dynamic sizes")
