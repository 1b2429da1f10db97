"""ACME-001: the serving layer never sends more than 512 rows, so a package for more wastes memory."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.checks import Check, Finder
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked

AOTIDOCTOR_API = 1

LIMIT = 512
FIND = Finder("ACME-001", "acme_batch_limit")


def run(case: Case) -> Sequence[Evidence] | NotChecked:
    """The upper bound of the first dimension of every tensor input."""
    if case.contract is None:
        return FIND.unchecked("the package has no contract that can be read")
    found = []
    for leaf in case.contract.tensor_leaves():
        bound = leaf.dims[0].max if leaf.dims else None
        if bound is not None and bound > LIMIT:
            found.append(FIND.error("bound", leaf.path, observed=f"batches up to {bound}", expected=f"at most {LIMIT}"))
    return found


CHECKS = [Check(code=FIND.code, name=FIND.name, cause="acme-batch-limit", stage="inputs", needs=(), run=run)]
