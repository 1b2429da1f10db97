"""Which arguments does the failing kernel receive, and do they fit?

What it does
    Once a kernel is named, lists its tensor arguments with the type that its code takes: the caller's inputs, each
    compared with the contract, the constants, and the calls that wrote the buffers.

Why it matters
    A kernel may fail because of its arguments. If an input does not fit, the kernel is not at fault; if all inputs fit,
    examine the kernel or the call that wrote its buffer.

Example:
    triton_poi_fused_add_index_0: in_ptr0 (*i64) = args[0], which does not fit: dtype int32, expected int64

When it is wrong
    The arguments are read from the sources in the package. A kernel that is called several times is shown at its first
    call.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.localize.comparison import kernel_inputs
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.run import Outcome
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded

CODE, NAME = "AD-RUN-032", "kernel_inputs"
FIND = RunFinder(CODE, NAME, __doc__)
# The probes that name a kernel, the most certain first.
NAMED_BY = (
    "AD-RUN-026",
    "AD-RUN-027",
    "AD-RUN-028",
    "AD-RUN-022",
    "AD-RUN-012",
    "AD-RUN-023",
    "AD-RUN-024",
    "AD-RUN-001",
)


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Reuse the plain run if a failed run named a kernel of the package."""
    plain = history.plain
    if plain is None or succeeded(plain):
        return FIND.unchecked("no run failed")
    kernel = kernel_of(case, history)
    if kernel is None:
        return FIND.unchecked("no kernel of the package was named")
    return Reuse(probe="plain_run")


def kernel_of(case: Case, history: History) -> str | None:
    """The kernel of the package that failed, by the most certain finding that names one."""
    known = {call.name for call in case.contract.kernels} if case.contract is not None else set()
    for code in NAMED_BY:
        for item in history.findings:
            names = (item.facts.get("kernel"), item.subject)
            found = next((name for name in names if item.code == code and name in known), None)
            if isinstance(found, str):
                return found
    return None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: ``fits`` or ``differs``."""
    kernel = kernel_of(case, history)
    found = tuple(kernel_inputs(case, kernel)) if kernel is not None else ()
    if kernel is None or not found:
        return []
    wrong = [one for one in found if one.differs]
    return [
        FIND.info(outcome)(
            "differs" if wrong else "fits",
            kernel,
            observed="; ".join(map(str, found)),
            expected="inputs that fit the contract",
            facts={
                "kernel": kernel,
                "inputs": tuple(one.name for one in found if one.source == "input"),
                "constants": tuple(one.name for one in found if one.source == "constant"),
                "wrong": tuple(one.name for one in wrong),
            },
        )
    ]


PROBE = FIND.probe(plan, read, "when a failed run named a kernel of the package (no further run)")
