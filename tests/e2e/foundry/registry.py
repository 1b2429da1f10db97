"""All cases, one family after the other."""

from __future__ import annotations

from collections.abc import Mapping

from foundry import cases_artifact, cases_healthy, cases_host, cases_load, cases_run, cases_tensor, cases_tree
from foundry.cases import Case

CASES: tuple[Case, ...] = (
    *cases_artifact.CASES,
    *cases_host.CASES,
    *cases_load.CASES,
    *cases_tree.CASES,
    *cases_tensor.CASES,
    *cases_run.CASES,
    *cases_healthy.CASES,
)

FAULTS: tuple[Case, ...] = tuple(case for case in CASES if case.cause is not None)
HEALTHY: tuple[Case, ...] = tuple(case for case in CASES if case.cause is None)
BY_NAME: Mapping[str, Case] = {case.name: case for case in CASES}

assert len(BY_NAME) == len(CASES), "two cases share a name"
