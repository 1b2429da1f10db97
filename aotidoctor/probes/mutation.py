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
from aotidoctor.probes.payload import call_outputs, called, reference_comparison
from aotidoctor.probes.probe import History, Reuse, RunFinder, succeeded

CODE, NAME = "AD-RUN-004", "mutation"
FIND = RunFinder(CODE, NAME, __doc__)


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Reuse the plain run if it returned."""
    if case.inputs is None or not succeeded(history.plain):
        return FIND.unchecked("the plain run returned no outputs")
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per changed input, and one per piece of memory that outputs share."""
    given, found = called(outcome).inputs, []
    for value in given:
        if value.changed:
            aliased = any(value.path in (item.subject or "") for item in history.of("AD-IN-018"))
            found.append(
                FIND.at(Severity.ERROR if aliased else Severity.WARN, outcome)(
                    "input-changed",
                    value.path,
                    observed="changed by the call" + (", and it shares memory with another input" if aliased else ""),
                    expected="unchanged",
                    facts={"path": value.path, "aliased": aliased},
                )
            )
    # Outputs that share memory, those with the same memory together.
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[ObservedTensor]] = {}
    for index, value in enumerate(call_outputs(outcome, 0)):
        if value.aliases_inputs or value.aliases_outputs:
            same = tuple(sorted({index, *value.aliases_outputs}))
            groups.setdefault((value.aliases_inputs, same), []).append(value)
    return [*found, *(_alias(group, given, outcome) for group in groups.values())]


def _alias(group: list[ObservedTensor], given: Sequence[ObservedTensor], outcome: Outcome) -> Evidence:
    """The finding for outputs that share one piece of memory, possibly that of inputs.

    Views of one result are a note: the model returns them. A view of an input changes when a server refills the input.
    """
    paths = [value.path for value in group]
    partners = [given[index].path for index in group[0].aliases_inputs if index < len(given)]
    among = ["one another"] if len(group) > 1 else []
    return FIND.at(Severity.WARN if partners else Severity.INFO, outcome)(
        "output-alias",
        ", ".join(paths),
        observed=f"share{'' if among else 's'} memory with {' and '.join([*partners, *among])}",
        expected="separate memory",
        facts={"outputs": tuple(paths), "partners": tuple(partners)},
    )


def as_the_program(findings: Sequence[Evidence], compared: Outcome | None) -> list[Evidence]:
    """The findings, a warning of this probe reduced to a note if the reference does the same to inputs and memory."""
    facts = reference_comparison(compared) if compared is not None else {}
    if not {"mutation", "alias"} <= facts.keys():
        return list(findings)
    effects = [*objects(facts.get("mutation")), *objects(facts.get("alias"))]
    other = {str(item.get("path")) for item in effects if item.get("agrees") is not True}
    found = []
    for item in findings:
        paths = item.facts.get("outputs") or (item.facts.get("path"),)
        named = {str(path) for path in paths} if isinstance(paths, tuple) else set()
        if item.code == CODE and item.severity is Severity.WARN and not other & named:
            message, agreeing = f"{item.message} (so does the program itself)", {**item.facts, "as_the_program": True}
            found.append(replace(item, severity=Severity.INFO, message=message, facts=agreeing))
        else:
            found.append(item)
    return found


PROBE = FIND.probe(plan, read, "when the plain run returned (no further run)")
