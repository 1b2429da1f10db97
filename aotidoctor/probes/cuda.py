"""What the CUDA rungs share: when they are asked, and how an ending under a setting becomes evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, evidence, succeeded, unasked


def plan_cuda(code: str, name: str, case: Case, history: History) -> Request | NotChecked:
    """The plain run in a fresh interpreter, for a CUDA package that failed on a CUDA host."""
    if device_of(case) != "cuda":
        return unasked(code, name, "the package does not run on CUDA")
    plain = history.outcomes.get("plain_run")
    if plain is None:
        return unasked(code, name, "the package could not be run on this host")
    if succeeded(plain):
        return unasked(code, name, "the plain run returned")
    if plain.stage in ("start", "import", "setup"):
        return unasked(code, name, "the set-up failed before the GPU was used")
    return replace(run_request(case, name, "another CUDA setting", calls=1), fresh=True)


def read_cuda(code: str, variable: str, case: Case, outcome: Outcome) -> Sequence[Evidence]:
    """``vanishes`` when it returned under the setting, else the ending with its symptom."""
    if not succeeded(outcome):
        return [read_ending(code, case, outcome)]
    return [
        evidence(
            code,
            "vanishes",
            Severity.WARN,
            outcome,
            observed=f"no failure with {variable}=1",
            expected="the same failure",
            facts={"variable": variable},
        )
    ]
