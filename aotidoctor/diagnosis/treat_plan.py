"""What a planner returns, and the questions that all planners ask of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.diagnosis.wording import leaf_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.inputs import LeafValue, TensorDesc
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, Leaf, Tree, child_path


@record
class Plan:
    """Steps for the worker, the same in words, and as lines of Python for the user."""

    text: str
    steps: tuple[JsonObject, ...]
    command: str = ""


def merged(plans: Sequence[Plan | None]) -> Plan | None:
    """One plan out of several; None when any of them is missing, since half a treatment proves nothing."""
    whole = [plan for plan in plans if plan is not None]
    if not whole or len(whole) < len(plans):
        return None
    return Plan(
        text="; ".join(plan.text for plan in whole),
        steps=tuple(step for plan in whole for step in plan.steps),
        command="\n".join(plan.command for plan in whole if plan.command),
    )


def each_leaf(paths: Sequence[str], op: str, text: str, command: str, **more: JsonValue) -> Plan | None:
    """The same step for every leaf, whose path stands for ``{0}`` in ``text`` and ``command``."""
    return merged(
        [
            Plan(text=text.format(path), steps=({"op": op, "path": path, **more},), command=command.format(path))
            for path in paths
        ]
    )


def found(findings: Sequence[Evidence], code: str, *kinds: str) -> list[Evidence]:
    """Evidence of one code, the errors if there are any, else the warnings; notes only where a kind is asked for."""
    hits = [item for item in findings if item.code == code and (not kinds or item.kind in kinds)]
    errors = [item for item in hits if item.severity is Severity.ERROR]
    return errors or [item for item in hits if item.severity is Severity.WARN] or (hits if kinds else [])


def path_of(item: Evidence) -> str | None:
    """The leaf that the evidence is about, by the user's path."""
    path = item.facts.get("path")
    return path if isinstance(path, str) else leaf_of(item.subject)


def paths_of(items: Sequence[Evidence]) -> list[str]:
    """The leaves of several findings, each once, in order."""
    return list(dict.fromkeys(path for item in items if (path := path_of(item)) is not None))


def value_at(case: Case, path: str | None) -> LeafValue | None:
    """What was given at ``path``; None when nothing was."""
    leaves = case.inputs.leaves() if case.inputs is not None else ()
    return next((value for name, value in leaves if name == path), None)


def tensor_at(case: Case, path: str | None) -> TensorDesc | None:
    """The tensor given at ``path``; None when there is none."""
    value = value_at(case, path)
    return value if isinstance(value, TensorDesc) else None


def spec_at(case: Case, path: str | None) -> LeafSpec | None:
    """The leaf of the contract at the user's ``path``."""
    leaves = case.contract.leaves if case.contract is not None else ()
    return next((leaf for leaf in leaves if leaf.path == path), None)


def exported(case: Case) -> str | None:
    """The path of the exported program that is given as reference; None where there is none."""
    reference = case.options.reference
    return reference if reference is not None and reference.endswith(".pt2") else None


def couples(case: Case) -> Iterator[tuple[str, LeafSpec, TensorDesc]]:
    """``(path, leaf of the contract, tensor)`` wherever both trees have a tensor at the same place."""
    contract, inputs = case.contract, case.inputs
    if contract is None or inputs is None or contract.args is None or contract.kwargs is None:
        return
    for name, wanted, given in (("args", contract.args, inputs.args), ("kwargs", contract.kwargs, inputs.kwargs)):
        for path, index, value in _overlay(wanted, given, name):
            if isinstance(value, TensorDesc):
                yield path, contract.leaves[index], value


def _overlay(wanted: Tree[int], given: Tree[LeafValue], path: str) -> Iterator[tuple[str, int, LeafValue]]:
    match wanted, given:
        case Leaf(value=index), Leaf(value=value):
            yield path, index, value
        case Container(), Container():
            for at, child in enumerate(wanted.children):
                place = _place(wanted, given, at)
                if place is not None:
                    yield from _overlay(child, given.children[place], child_path(path, given, place))


def _place(wanted: Container[int], given: Container[LeafValue], at: int) -> int | None:
    """Where ``given`` has child ``at`` of ``wanted``: by key where both have keys, by position otherwise."""
    if wanted.keys and given.keys:
        key = wanted.keys[at]
        return given.keys.index(key) if key in given.keys else None
    return at if at < len(given.children) else None


def template(kind: str, keys: Sequence[str | int], children: Sequence[JsonObject]) -> JsonObject:
    """A template container of the family of ``kind``, which is the type of a ``Container``."""
    items: list[JsonValue] = [*children]
    if kind.endswith("dict"):
        return {"dict": [[key, item] for key, item in zip(keys, items, strict=True)]}
    return {"list" if kind == "list" else "tuple": items}
