"""Was this package compiled from this program? Findings ``VERIFY-P..``, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aotidoctor.localize.weight_differences import WeightsCompared, judge_weights
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.evidence import Evidence, FactValue, FileSource, NotChecked
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.phrases import listed
from aotidoctor.model.program_archive import Payload, ProgramArchive, StoredTensor
from aotidoctor.model.record import record
from aotidoctor.program.contents import compare_contents
from aotidoctor.program.rules import BY_CODE
from aotidoctor.readers.provenance.compare import compare
from aotidoctor.readers.provenance.difference import Compared, Difference

VERDICT = "VERIFY-P00"
_CODES = {
    "call": "VERIFY-P01",
    "inputs": "VERIFY-P02",
    "outputs": "VERIFY-P03",
    "constants": "VERIFY-P04",
    "operators": "VERIFY-P05",
}
_WEIGHTS = "VERIFY-P06"
MAX_FINDINGS = 20
_LISTED = 5
MOST_CALLED = 200


@record
class Question:
    """A package and the program that it may come from; ``stored`` are the package's constants with their bytes."""

    package: str
    archive: ProgramArchive
    contract: Contract
    stored: Mapping[str, StoredTensor]
    model: ModelEntry | None = None


def judge_origin(question: Question) -> tuple[list[Evidence], list[NotChecked]]:
    """What differs, the verdict last; and what could not be compared."""
    compared = compare(question.contract, question.archive.facts, question.model)
    other = {item.subject for item in compared.differences if item.aspect == "constants"}
    items, unread = _contents(question, other)
    weights = judge_weights(items)
    found = [_difference(question, item) for item in compared.differences[:MAX_FINDINGS]]
    if weights.names:
        found.append(_weights(question, weights))
    left_out = [*compared.left_out, *unread]
    if len(compared.differences) > MAX_FINDINGS:
        left_out.append(f"{len(compared.differences) - MAX_FINDINGS} more differences are not listed")
    found.append(_verdict(question, compared, weights, left_out))
    return found, [NotChecked(code=VERDICT, name=BY_CODE[VERDICT].name, reason=text) for text in left_out]


def _contents(question: Question, other: set[str]) -> tuple[list[JsonObject], list[str]]:
    """Facts of each pair of constants, and what could not be compared, each reason once."""
    theirs = {**(question.archive.constants or {}), **(question.archive.weights or {})}
    items: list[JsonObject] = []
    reasons: dict[str, list[str]] = {}
    for name, ours in question.stored.items():
        if name in other:
            continue
        answer = _pair(ours, theirs.get(name))
        if isinstance(answer, str):
            reasons.setdefault(answer, []).append(name)
        else:
            items.append(answer)
    for what, payloads in (("weights", question.archive.weights), ("constants", question.archive.constants)):
        if payloads is None and question.stored:
            reasons.setdefault("the archive has no list of them that can be read", []).append(f"the program's {what}")
    return items, [f"content of {listed(names, _LISTED)}: {reason}" for reason, names in reasons.items()]


def _pair(ours: StoredTensor, payload: Payload | None) -> JsonObject | str:
    if payload is None:
        return "not in the program under this name"
    theirs = payload.stored
    if None not in (ours.shape, theirs.shape) and ours.shape != theirs.shape:
        return f"a different shape in the program's list ({ours.shape}, {theirs.shape})"
    if None not in (ours.dtype, theirs.dtype) and ours.dtype != theirs.dtype:
        return f"a different dtype in the program's list ({ours.dtype}, {theirs.dtype})"
    return compare_contents(ours, theirs)


def _difference(question: Question, item: Difference) -> Evidence:
    code = _CODES[item.aspect]
    kind = item.kind if item.decisive else f"{item.kind}-hint"
    facts: dict[str, FactValue] = {"package": item.package, "program": item.program, "decisive": item.decisive}
    expected = f"{item.program}, as in the program"
    return _evidence(question, code, kind, subject=item.subject, observed=item.package, expected=expected, facts=facts)


def _weights(question: Question, weights: WeightsCompared) -> Evidence:
    facts: dict[str, FactValue] = {
        "weights": weights.names,
        "what": weights.kind,
        "sentence": weights.sentence,
        "equal": weights.equal,
    }
    subject = ", ".join(weights.names[:4])
    expected = "the program's weights"
    return _evidence(
        question, _WEIGHTS, "weights", subject=subject, observed=weights.sentence, expected=expected, facts=facts
    )


def _verdict(question: Question, compared: Compared, weights: WeightsCompared, left_out: Sequence[str]) -> Evidence:
    kind, observed = _judged(question, compared, weights, left_out)
    facts: dict[str, FactValue] = {
        "compared": compared.aspects,
        "equal_constants": weights.equal,
        "differing_constants": len(weights.names),
        "decisive": tuple(f"{item.aspect}: {item.subject}" for item in compared.decisive[:_LISTED]),
        "left_out": len(left_out),
        "called": _called(question.contract),
    }
    expected = f"a package that was compiled from {question.archive.path}"
    return _evidence(
        question, VERDICT, kind, subject=question.package, observed=observed, expected=expected, facts=facts
    )


def _called(contract: Contract) -> tuple[str, ...]:
    """The operators that the package calls, by the names of their shims or their own."""
    return tuple(sorted({call.name for call in contract.kernels if call.kind in ("extern", "custom")}))[:MOST_CALLED]


def calls(verdict: Evidence, target: str) -> bool:
    """Whether the package of this verdict calls ``aten.sort.stable``, by a shim or by name."""
    called = verdict.facts.get("called")
    bare = "_".join(part for part in target.split(".")[1:] if part != "default")
    packet = target.split(".")[1] if "." in target else target
    names = called if isinstance(called, tuple) else ()
    ends = tuple(f"_{name}" for name in (bare, packet))
    return any(str(name).removeprefix("torch.ops.") == target or str(name).endswith(ends) for name in names)


def _judged(
    question: Question, compared: Compared, weights: WeightsCompared, left_out: Sequence[str]
) -> tuple[str, str]:
    if compared.decisive:
        first = compared.decisive[0]
        others = len(compared.decisive) - 1
        more = f"; {others} more difference{'s' if others > 1 else ''}" if others else ""
        observed = f"a different program: {first.subject}: {first.package}, not {first.program}{more}"
        return "other-program", observed
    if weights.names:
        return "other-weights", f"this program with different weights: {weights.sentence}"
    hints = [item for item in compared.differences if item.kind != "containers" and not _narrowed(item, weights)]
    agreed = ", ".join(_agreed(compared, weights))
    if "call" not in compared.aspects or "inputs" not in compared.aspects:
        return "unknown", "too little can be compared" + (f" ({agreed} agree)" if agreed else "")
    if hints:
        first = hints[0]
        but = f"{first.subject}: {first.package}, not {first.program}"
        return "unknown", f"not ruled out ({agreed} agree), but {but}"
    if question.stored and not weights.equal:
        return "unknown", f"this program, as far as {agreed} show; whether with its weights is unknown"
    rest = f"; not compared: {left_out[0]}" + (" and more" if len(left_out) > 1 else "") if left_out else ""
    return "same", f"compiled from this program, as far as {agreed} show{rest}"


def _narrowed(item: Difference, weights: WeightsCompared) -> bool:
    """A smaller range of a size is what the compiler chose for it, where the package has the program's own weights."""
    return item.kind == "range" and not item.decisive and bool(weights.equal) and not weights.names


def _agreed(compared: Compared, weights: WeightsCompared) -> list[str]:
    words = {"call": "call spec", "inputs": "inputs", "outputs": "outputs", "operators": "operators"}
    differing = {item.aspect for item in compared.differences}
    agreed = [word for aspect, word in words.items() if aspect in compared.aspects and aspect not in differing]
    if weights.equal:
        agreed.append(f"the content of {weights.equal} constant{'s' if weights.equal > 1 else ''}")
    return agreed


def _evidence(
    question: Question,
    code: str,
    kind: str,
    *,
    subject: str,
    observed: str,
    expected: str,
    facts: Mapping[str, FactValue],
) -> Evidence:
    return Evidence(
        code=code,
        kind=kind,
        severity=BY_CODE[code].severities[kind],
        subject=subject,
        observed=observed,
        expected=expected,
        message=f"{BY_CODE[code].title}: {subject}",
        source=FileSource(file=question.archive.path),
        facts=facts,
    )
