"""With blocking launches, where does the fault surface?

What it does
    Repeats the run in a fresh interpreter with CUDA_LAUNCH_BLOCKING=1, set before the CUDA context exists:
    later it has no effect.

Why it matters
    CUDA reports a fault at a later, innocent call; with blocking launches it surfaces at the launch itself, as an
    exception or as an abort.

Example:
    run1: observed "an illegal memory access was encountered" at the launch of the first failing kernel

When it is wrong
    A fault that vanishes here points at a race or at ordering; that is evidence too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.cuda import plan_cuda, read_cuda
from aotidoctor.probes.probe import History, Probe

CODE, NAME = "AD-RUN-012", "cuda_blocking"
VARIABLE = "CUDA_LAUNCH_BLOCKING"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Asked on a CUDA host when the plain run of a CUDA package failed."""
    request = plan_cuda(CODE, NAME, case, history)
    return replace(request, env={VARIABLE: "1"}) if isinstance(request, Request) else request


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: how it ended under the setting."""
    return read_cuda(CODE, VARIABLE, case, outcome)


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="where does it surface with blocking launches?",
    asked_when="when a CUDA package failed on a CUDA host",
    plan=plan,
    read=read,
)
