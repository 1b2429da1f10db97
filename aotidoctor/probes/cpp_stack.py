"""Where in C++ was it raised?

What it does
    Repeats an unexplained exception with C++ stack traces switched on (TORCH_SHOW_CPP_STACKTRACES=1).

Why it matters
    Exceptions of the package's own checks carry no frames by default; with frames, the function that raised is named.

Example:
    run1: observed raised from cpp_fused_add_0, expected a known error

When it is wrong
    Errors that already carry frames only get longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import CPP_STACKS
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder

CODE, NAME = "AD-RUN-007", "cpp_stack"
FIND = RunFinder(CODE, NAME, __doc__)


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run for an exception that nothing explains and that carries no C++ frames yet."""
    raised = history.of("AD-RUN-001", "raised")
    if not raised or raised[0].facts.get("symptom") != "other" or history.errors("AD-IN", "AD-ART", "AD-HOST"):
        return FIND.unchecked("there is no unexplained exception")
    if "function" in raised[0].facts:
        return FIND.unchecked("the exception already names where it was raised")
    if history.of("AD-RUN-015", "raised"):
        return FIND.unchecked("a custom operator raises it when called alone, too")
    request = run_request(case, NAME, "with C++ stack traces", calls=1)
    return replace(request, env={CPP_STACKS: "1"}, fresh=True)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: the frame, or that there is still none."""
    ending = read_ending(CODE, case, outcome)
    function = ending.facts.get("function")
    return [
        FIND.info(outcome)(
            "frame" if function else "no-frame",
            str(function) if function else None,
            observed=f"raised from {function}" if function else "no C++ frame",
            expected="the function that raised",
            facts=ending.facts,
        )
    ]


PROBE = FIND.probe(plan, read, "for an unexplained exception that names no function and that no operator raises alone")
