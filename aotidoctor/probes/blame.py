"""Which element of which input made the check fail, and where does the bound come from?

What it does
    Follows the check that ended the plain run through the text of its kernel, back to what the caller passed: the index
    or divisor as the kernel computes it, for every iteration of its loops, from the integers in the inputs file. Adds
    the dim that the bound comes from, the ATen operator, and the source line if the package records it. If the code was
    compiled without index checks, the indices are compared with the memory of the tables.

Why it matters
    "index out of bounds: 0 <= tmp4 < 100L" names a temporary of generated code. The element to correct is in the data.

Example:
    cpp_fused_embedding_0: index 100 of 100 ← kwargs['ids'][3] = 100; bound from e.weight.shape[0]; from aten.embedding

When it is wrong
    It needs the sources inside the package and integers from the inputs file. After a sort, a cumulative sum or a
    custom operator, only the inputs are named, not the element. What cannot be traced is omitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failing_elements import INDEX, OFFSETS, OPERATOR, Failure, failure_of
from aotidoctor.localize.blame.indirect_failures import operator_chain, unchecked_chain
from aotidoctor.localize.blame.package_program import program_of
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.localization import Chain
from aotidoctor.model.run import Outcome
from aotidoctor.probes.probe import History, Reuse, RunFinder
from aotidoctor.probes.symptoms import recognise

CODE, NAME = "AD-RUN-022", "blame"
FIND = RunFinder(CODE, NAME, __doc__)
_EXPECTED = {
    "index": "an index inside the bound",
    "offsets": "offsets that start at 0, do not decrease, and stay within the indices",
    "division": "no zero",
    "assertion": "what the model asserts",
}


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Reuse the plain run if it ended in a check whose text is in the package, or if the code has no check."""
    contract = case.contract
    raised = any(item.kind == "raised" for item in history.errors("AD-RUN-001"))
    checks_no_index = contract is not None and bool(contract.kernels) and not contract.bound_checks
    if _failure(history) is None and (raised or not checks_no_index):
        return FIND.unchecked("the plain run did not end in a bounds check, an integer division or an assertion")
    if contract is None or not contract.kernels:
        return FIND.unchecked("the package contains no sources to trace", moot=False)
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: the chain, as far as it could be followed."""
    failure = _failure(history)
    if failure is None:
        # An index out of range that nothing in the code checks.
        unchecked = unchecked_chain(case)
        if unchecked is None:
            return []
        found = finding(*unchecked, outcome)
        facts = {**found.facts, "symptom": "index-out-of-bounds", "unchecked": True}
        return [replace(found, severity=Severity.ERROR, facts=facts)]
    if failure.kind == OPERATOR:
        program = program_of(case)
        traced = operator_chain(program, failure) if program is not None else None
        return [] if traced is None else [finding(replace(failure, kind=traced[0]), traced[1], outcome)]
    chain = chain_of(case, failure)
    if chain is None:
        return []
    found = finding(failure, chain, outcome)
    return [replace(found, facts={**found.facts, "nan": _is_nan(chain, history)})]


def _is_nan(chain: Chain, history: History) -> bool:
    """Whether the index was computed from inputs that hold NaN, which is no index when it is made a number."""
    holding = {item.subject for item in history.of("AD-IN-019", "nan")}
    return bool(chain.sources) and not chain.elements and holding.issuperset(chain.sources)


def lost_check(case: Case, crash: Evidence, outcome: Outcome) -> list[Evidence]:
    """The bounds check on the source line at which a process aborted and whose message was lost.

    Two threads that throw at once end in "terminate called recursively", without a message.
    """
    source, kernel = crash.facts.get("source"), crash.facts.get("kernel")
    if crash.facts.get("signal") != "SIGABRT" or not isinstance(source, str) or not isinstance(kernel, str):
        return []
    symptom = recognise(source)
    if symptom.name != "index-out-of-bounds" or "variable" not in symptom.facts:
        return []
    variable, bound, line = str(symptom.facts["variable"]), symptom.facts.get("bound"), crash.facts.get("line")
    at, bound = line if isinstance(line, int) else None, str(bound) if bound is not None else None
    failure = Failure(kind=INDEX, kernel=kernel, line=at, variable=variable, bound=bound)
    chain = chain_of(case, failure)
    if chain is None:
        return []
    found = finding(failure, chain, outcome)
    return [replace(found, severity=Severity.ERROR, facts={**found.facts, "bound": bound, "symptom": symptom.name})]


def _failure(history: History) -> Failure | None:
    found = (failure_of(item) for item in history.errors("AD-RUN-001"))
    return next((one for one in found if one is not None), None)


def finding(failure: Failure, chain: Chain, outcome: Outcome) -> Evidence:
    """The evidence of a chain, from any run."""
    paths, element = chain.paths, chain.element
    facts: dict[str, FactValue] = {
        "chain": chain.text,
        "kernel": chain.kernel,
        "paths": paths,
        "path": paths[0] if len(paths) == 1 else None,
        "element": element.place if element is not None else None,
        "index": element.index if element is not None else None,
        "value": element.value if element is not None else None,
        "count": chain.count,
        "direct": chain.direct,
        "bound": chain.bound,
        "origin": chain.origin,
        "through": chain.through,
        "operators": chain.operators,
        "where": chain.where,
        "sizes": chain.sizes,
        "most": chain.most,
        "position": not chain.elements and chain.index is not None,
        "found": _chain_title(failure, chain),
        "on_device": failure.source_line is not None,
        "check_member": chain.member,
        "check_line": chain.line,
    }
    return FIND.info(outcome)(
        failure.kind,
        paths[0] if len(paths) == 1 else chain.sizes[0] if chain.sizes else chain.kernel,
        observed=chain.text,
        expected=_EXPECTED.get(failure.kind, "no failure"),
        facts=facts,
    )


def _chain_title(failure: Failure, chain: Chain) -> str | None:
    """The text of a title; None if no input is named."""
    origin = f" ({chain.origin})" if chain.origin is not None else ""
    if not chain.elements and chain.sizes:
        return f"{chain.sizes[0]} is more than {chain.most}: {chain.what}{origin}"
    if not chain.elements:
        via = f" through {', '.join(chain.through)}" if chain.through else ""
        return f"{chain.what}{origin}, computed from {', '.join(chain.sources)}{via}" if chain.sources else None
    named = " and ".join(map(str, chain.elements)) + (f", the first of {chain.count}," if chain.count > 1 else "")
    if failure.kind == OFFSETS:
        return f"{named}: {chain.what}"
    if failure.kind == "assertion":
        return f"{named}, expected {failure.condition}{origin}"
    if failure.kind == "division":
        return f"{named} in {chain.kernel}" if chain.direct else f"{named} gives a zero in {chain.kernel}"
    same = [element.value for element in chain.elements] == [chain.index]
    wrong = f"is not in 0..{chain.bound - 1}" if same and chain.bound else f"gives {chain.what}"
    return f"{named} {wrong}{origin}"


_WHEN = (
    "when the plain run ended in a bounds check, an integer division or an assertion, or its code checks no index "
    "(no further run)"
)
PROBE = FIND.probe(plan, read, _WHEN)
