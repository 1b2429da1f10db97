"""The rungs that repeat a failing CUDA run under one environment variable: asked alike, read alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, evidence, succeeded, unasked


def cuda_probe(code: str, name: str, *, variable: str, asks: str) -> Probe:
    """A rung that sets ``variable`` to 1 in a fresh interpreter, before there is a CUDA context."""

    def plan(case: Case, history: History) -> Request | NotChecked:
        reason = _why_not(case, history)
        if reason is not None:
            return unasked(code, name, reason)
        request = run_request(case, name, f"with {variable}=1", calls=1)
        return replace(request, env={variable: "1"}, fresh=True)

    def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
        return [_vanished(code, variable, outcome) if succeeded(outcome) else read_ending(code, case, outcome)]

    return Probe(
        code=code,
        name=name,
        asks=asks,
        asked_when="when a CUDA package failed on a CUDA host",
        plan=plan,
        read=read,
    )


def _why_not(case: Case, history: History) -> str | None:
    if device_of(case) != "cuda":
        return "the package does not run on CUDA"
    plain = history.outcomes.get("plain_run")
    if plain is None:
        return "the package could not be run on this host"
    if succeeded(plain):
        return "the plain run returned"
    return "the set-up failed before the GPU was used" if plain.stage in ("start", "import", "setup") else None


def _vanished(code: str, variable: str, outcome: Outcome) -> Evidence:
    return evidence(
        code,
        "vanishes",
        Severity.WARN,
        outcome,
        observed=f"no failure with {variable}=1",
        expected="the same failure",
        facts={"variable": variable},
    )
