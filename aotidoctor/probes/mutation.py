"""Does the model write to its inputs or return them as outputs?

What it does
    Compares the input tensors before and after the calls of the plain run, and checks whether outputs share memory with
    inputs or with each other.

Why it matters
    A caller that reuses its buffers passes different inputs in the next call; an output that is a view changes when the
    input does.

Example:
    args[0]: observed changed by the call, expected unchanged

When it is wrong
    The eager model may do the same, and the caller may want it, so this is a warning; it is a note if the reference
    does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import ObservedTensor
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import objects
from aotidoctor.model.run import Outcome
from aotidoctor.probes.payload import call_outputs, reference_comparison, seen_inputs
from aotidoctor.probes.probe import History, Probe, Reuse, evidence, succeeded, unasked

CODE, NAME = "AD-RUN-004", "mutation"


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Answered by the plain run."""
    if case.inputs is None or not succeeded(history.plain):
        return unasked(CODE, NAME, "the plain run returned no outputs")
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per changed input, and one per piece of memory that outputs share."""
    given, results = seen_inputs(outcome), call_outputs(outcome, 0)
    changed = [value for value in given if value.changed]
    found = [_changed(value, history, outcome) for value in changed]
    return [*found, *(_alias(group, given, outcome) for group in _sharing(results))]


def _sharing(results: Sequence[ObservedTensor]) -> list[list[ObservedTensor]]:
    """Outputs that share memory, those with the same memory together."""
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[ObservedTensor]] = {}
    for index, value in enumerate(results):
        if value.aliases_inputs or value.aliases_outputs:
            same = tuple(sorted({index, *value.aliases_outputs}))
            groups.setdefault((value.aliases_inputs, same), []).append(value)
    return list(groups.values())


def _changed(value: ObservedTensor, history: History, outcome: Outcome) -> Evidence:
    aliased = any(value.path in (item.subject or "") for item in history.of("AD-IN-018"))
    return evidence(
        CODE,
        "input-changed",
        Severity.ERROR if aliased else Severity.WARN,
        outcome,
        subject=value.path,
        observed="changed by the call" + (", and it shares memory with another input" if aliased else ""),
        expected="unchanged",
        facts={"path": value.path, "aliased": aliased},
    )


def _alias(group: list[ObservedTensor], given: Sequence[ObservedTensor], outcome: Outcome) -> Evidence:
    """Outputs that have one piece of memory, and the inputs whose it is.

    Views of one result are what the model returns: a note. A view of an input changes when a server fills that again.
    """
    paths = [value.path for value in group]
    partners = [given[index].path for index in group[0].aliases_inputs if index < len(given)]
    among = ["one another"] if len(group) > 1 else []
    return evidence(
        CODE,
        "output-alias",
        Severity.WARN if partners else Severity.INFO,
        outcome,
        subject=", ".join(paths),
        observed=f"share{'' if among else 's'} memory with {' and '.join([*partners, *among])}",
        expected="separate memory",
        facts={"outputs": tuple(paths), "partners": tuple(partners)},
    )


def as_the_program(findings: Sequence[Evidence], compared: Outcome | None) -> list[Evidence]:
    """With the reference seen to write to the same inputs and to share the same memory, this is what the model does."""
    facts = reference_comparison(compared) if compared is not None else {}
    if compared is None or not {"mutation", "alias"} <= facts.keys():
        return list(findings)
    told = [*objects(facts.get("mutation")), *objects(facts.get("alias"))]
    other = {str(item.get("path")) for item in told if item.get("agrees") is not True}
    return [_intended_mutation(item) if _is_same(item, other) else item for item in findings]


def _is_same(item: Evidence, other: set[str]) -> bool:
    """A warning of this probe, none of whose leaves differs from the reference's."""
    paths = item.facts.get("outputs") or (item.facts.get("path"),)
    named = paths if isinstance(paths, tuple) else ()
    return item.code == CODE and item.severity is Severity.WARN and not other & {str(path) for path in named}


def _intended_mutation(item: Evidence) -> Evidence:
    message = f"{item.message} (so does the program itself)"
    return replace(item, severity=Severity.INFO, message=message, facts={**item.facts, "as_the_program": True})


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="does the model write to its inputs or return them as outputs?",
    asked_when="when the plain run returned (no further run)",
    plan=plan,
    read=read,
)
