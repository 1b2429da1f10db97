"""The contract of a package as rows that every language can write, and what the package leaves open."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.contract import Contract, LeafSpec
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.record import record
from aotidoctor.triage import open_case


@record
class Shippable:
    """What is written: ``symbols`` in order of their first appearance, ``baked`` values by path, ``untold`` facts."""

    source: str
    sha256: str | None
    contract: Contract
    symbols: tuple[str, ...]
    baked: Mapping[str, str]
    untold: tuple[str, ...]


def read_contract(
    path: str, *, inputs: str | None, reference: str | None, model_name: str | None, environ: Mapping[str, str]
) -> Shippable:
    """The contract of a package.

    Raises:
        CannotExamineError: there is no package, or it does not tell what its compiled code expects.
    """
    options = Options(model_name=model_name, reference=reference)
    case, unread = open_case.open_case(path, inputs, options, environ)
    contract = _told(case, unread)
    return Shippable(
        source=os.path.basename(path),  # noqa: PTH119 - paths are texts here
        sha256=case.artifact.sha256,
        contract=contract,
        symbols=_symbols(contract),
        baked=case.reference.constant_inputs if case.reference is not None else {},
        untold=(*_untold(contract), *(f"{item.name}: {item.reason}" for item in unread)),
    )


def _told(case: Case, unread: list[NotChecked]) -> Contract:
    if case.artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(f"no such file: {case.artifact.path}")
    contract = case.contract
    if contract is None:
        reason = case.artifact.problem or next((item.reason for item in unread), "no wrapper.cpp of a model in it")
        raise CannotExamineError(f"{case.artifact.path}: it does not contain a contract: {reason}")
    if contract.args is None or contract.kwargs is None:
        raise CannotExamineError(f"{case.artifact.path}: it does not contain a call spec")
    if contract.readings:
        raise CannotExamineError(
            f"{case.artifact.path}: {contract.open_leaves}; --inputs FILE with a call that works, or --reference "
            "exported.pt2, resolves this"
        )
    return contract


def _symbols(contract: Contract) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for leaf in contract.leaves:
        for dim in leaf.dims or ():
            if dim.static is None and dim.expr is not None:
                found.update(dict.fromkeys(sorted(dim.expr.symbols)))
    return tuple(found)


def _untold(contract: Contract) -> list[str]:
    """What cannot be compared, in words."""
    found = []
    for leaf in contract.leaves:
        if leaf.kind == "unknown":
            found.append(f"{leaf.path}: whether it is a tensor")
        if leaf.input_index is None or leaf.used is False:
            continue
        found += [f"{leaf.path}: its {what}" for what in _missing(leaf)]
    found += [f"{item.count} statements of the wrapper (first: {item.example})" for item in contract.unread]
    return found


def _missing(leaf: LeafSpec) -> list[str]:
    dims = leaf.dims or ()
    missing = [f"size of dim {at}" for at, dim in enumerate(dims) if dim.is_open]
    known, exprs = leaf.strides, leaf.stride_exprs
    steps = [
        f"stride of dim {at}"
        for at, step in enumerate(known or ())
        if step is None and (exprs is None or len(exprs) != len(known or ()) or exprs[at] is None)
    ]
    return [
        *(["dtype"] if leaf.dtype is None else []),
        *(["dims"] if leaf.rank is None else missing),
        *(["strides"] if leaf.rank and known is None else steps),
        *(["device"] if leaf.device_type is None else []),
    ]
