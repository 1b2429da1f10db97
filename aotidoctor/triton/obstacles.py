"""What makes a package unservable whatever the config says, in the words of the release."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.contract import Contract
from aotidoctor.model.serving import PLATFORM, Release
from aotidoctor.model.serving_names import NameRow, Obstacle
from aotidoctor.triton.call_spec import ParsedSpec, SpecFailure
from aotidoctor.triton.data_types import BFLOAT16_SINCE
from aotidoctor.triton.releases import FIRST

# 26.03 and 26.04 compare the number of inputs with the number of strings in the call spec, which is always two.
OLD_COUNT = 2
_REMEDIES = {
    "R9": "Export a model that takes and returns tuples, lists and dicts only: wrap it in a module that converts.",
    "R10": "Export with at least one positional argument and without empty lists and tuples: wrap the model.",
    "R11": "Use strings as keys: wrap the model.",
}
_KINDS = {"R9": "type", "R10": "empty-sequence", "R11": "key"}


def old_obstacles(contract: Contract, inputs: Sequence[NameRow], release: Release) -> tuple[Obstacle, ...]:
    """Everything that no config can mend in a release before 26.05, which does not look at the call spec."""
    if release.before(FIRST):
        return (_unknown_platform(release),)
    return (*_old_count(contract, release), *_types(inputs, release))


def spec_obstacles(inputs: ParsedSpec, outputs: ParsedSpec) -> tuple[Obstacle, ...]:
    """What the server does not parse: it gets no further than that."""
    failures = [_failure(item, "input") for item in inputs.failures]
    return (*failures, *(_failure(item, "output") for item in outputs.failures))


def find_obstacles(
    contract: Contract, inputs: Sequence[NameRow], outputs: Sequence[NameRow], release: Release
) -> tuple[Obstacle, ...]:
    """Everything else that no config can mend, the first that the server would meet first."""
    return (*_no_tensors(contract, inputs), *_collisions(inputs), *_types(inputs, release), *_nothing_back(outputs))


def _unknown_platform(release: Release) -> Obstacle:
    return Obstacle(
        rule="R2",
        kind="platform",
        letter="F",
        path="model.pt2",
        observed=f"Triton {release.name}",
        expected="26.03 or later",
        message=f"the model is not loaded: unexpected platform type '{PLATFORM}'.",
        remedy="Serve with Triton 26.05 or later.",
    )


def _old_count(contract: Contract, release: Release) -> tuple[Obstacle, ...]:
    if contract.n_inputs == OLD_COUNT:
        return ()
    return (
        Obstacle(
            rule="R16",
            kind="two-inputs",
            letter="F",
            path="inputs",
            observed=f"{contract.n_inputs} inputs",
            expected=f"{OLD_COUNT} inputs",
            message=f"Triton {release.name} treats every model as one with {OLD_COUNT} inputs: with a different number "
            f"the model is not loaded (configuration expects N inputs, but model expects {OLD_COUNT} inputs), and with "
            f"{OLD_COUNT} every request fails.",
            remedy="Serve with Triton 26.05 or later.",
        ),
    )


def _failure(failure: SpecFailure, side: str) -> Obstacle:
    return Obstacle(
        rule=failure.rule,
        kind=f"{_KINDS[failure.rule]}-{side}",
        letter="F",
        path=failure.path,
        observed=failure.found,
        expected="tuples, lists and dicts with string keys, none of them empty",
        message=f"the model is not loaded: Failed to parse {side} call specification. The server's log says: "
        f"{failure.detail}",
        remedy=_REMEDIES[failure.rule],
    )


def _no_tensors(contract: Contract, inputs: Sequence[NameRow]) -> tuple[Obstacle, ...]:
    """Inputs by the names that are no tensors in the compiled code (R13, R14, R15)."""
    wanted, named = contract.n_inputs, len(inputs)
    odd = [row for row in inputs if row.kind in _NO_TENSORS]
    if not odd and wanted != named:
        # Which ones are no tensors cannot be told; that some are, can.
        odd = [row for row in inputs if row.kind == "unknown"][:1] or list(inputs[:1])
    groups: dict[str, list[NameRow]] = {}
    for row in odd:
        groups.setdefault(_NO_TENSORS.get(row.kind, "R14"), []).append(row)
    return tuple(_no_tensor(rule, rows, named, wanted) for rule, rows in groups.items())


_NO_TENSORS = {"value": "R14", "unknown": "R14", "empty": "R15", "nested": "R13"}
_OBSERVED = {
    "value": "no tensor: a value baked in at export",
    "empty": "an empty dict",
    "nested": "a container inside a keyword argument",
}
_ODD_REMEDIES = {
    "R13": "Pass what is in the keyword as separate arguments: wrap the model.",
    "R14": "Export without the argument (its value is baked in anyway): wrap the model.",
    "R15": "Export without the empty dict: wrap the model.",
}


def _no_tensor(rule: str, rows: Sequence[NameRow], named: int, wanted: int) -> Obstacle:
    counts = (
        f"{', '.join(row.label for row in rows)} {'counts as one input' if len(rows) == 1 else 'count as inputs'}; the "
        f"server counts {named} in all, the compiled code takes {wanted}: "
    )
    if named == wanted:
        message = f"{counts}the numbers agree by chance, so it loads, and tensors reach the wrong arguments."
    else:
        message = (
            f"{counts}with {named} inputs the model loads, then every request fails with: expected inputs vector size "
            f"to be {wanted}, but got {named}; with {wanted} it is not loaded (configuration expects {wanted} inputs, "
            f"but model expects {named} inputs)."
        )
    return Obstacle(
        rule=rule,
        kind="by-chance" if named == wanted else {"R13": "nested", "R14": "no-tensor", "R15": "empty-dict"}[rule],
        letter="S" if named == wanted else "F",
        path=", ".join(row.path for row in rows),
        observed=_OBSERVED.get(rows[0].kind, "an argument that may not be a tensor"),
        expected="a tensor",
        message=message,
        remedy=_ODD_REMEDIES[rule],
    )


def _collisions(inputs: Sequence[NameRow]) -> tuple[Obstacle, ...]:
    return tuple(
        Obstacle(
            rule="R28",
            kind="collision",
            letter="F",
            path=row.path,
            observed=f"{row.forward}, as a different input",
            expected="unique names",
            message=f"two inputs are both called {row.forward}, so {row.ordinal} is lost: the server counts one input "
            "less than the compiled code takes, and every request fails.",
            remedy="Choose keys without brackets.",
        )
        for row in inputs
        if row.lost
    )


def _types(inputs: Sequence[NameRow], release: Release) -> tuple[Obstacle, ...]:
    return tuple(
        Obstacle(
            rule="R18",
            kind="no-type",
            letter="E",
            path=row.path,
            observed=str(row.dtype),
            expected=f"a dtype that Triton {release.name} has a type for",
            message=f"no data_type of Triton {release.name} represents {row.dtype}, so {row.label} cannot be sent.",
            remedy=f"Serve with Triton {BFLOAT16_SINCE} or later, or wrap the model with a cast."
            if row.dtype == "bfloat16"
            else "Wrap the model in one that takes a different dtype and converts it, and export that.",
        )
        for row in inputs
        if row.kind == "tensor" and row.dtype is not None and row.data_type is None
    )


def _nothing_back(outputs: Sequence[NameRow]) -> tuple[Obstacle, ...]:
    """No output that a response can hold: a config must list at least one."""
    if not outputs or any(map(listable, outputs)):
        return ()
    row = outputs[0]
    return (
        Obstacle(
            rule="R23",
            kind="nothing-left",
            letter="E",
            path=row.path,
            observed="no output with at least one dim and a type that Triton supports",
            expected="at least one output that a response can contain",
            message="a config must list an output, and every request fails with each available output.",
            remedy="Wrap the model to return a tensor with a dim and a type that Triton supports (unsqueeze, to).",
        ),
    )


def listable(row: NameRow) -> bool:
    """Whether the output can stand in a config: a tensor of one dim or more with a type of Triton's."""
    typed = row.dtype is None or row.data_type is not None
    return row.may_be_tensor and typed and row.dims != () and not row.lost
