"""Judge whether a package was compiled from an exported program: findings VERIFY-P.. and the verdict.

The bytes of constants are compared a piece at a time: two gigabytes cost time, not memory. The facts of a pair are
those of ``worker.weight_differences``, as far as they can be had without torch: ``flipped-bit``, ``few`` and
``values``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from aotidoctor.localize.comparison import WeightsCompared, judge_weights
from aotidoctor.model.artifact import ModelEntry, ProgramArchive, StoredTensor
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import Evidence, FactValue, FileSource, NotChecked, list_names
from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.model.torch_names import ITEMSIZE, index_at, is_row_major
from aotidoctor.program.rules import BY_CODE
from aotidoctor.readers.inputs.tensor_values import decode
from aotidoctor.readers.provenance.compare_interface import ProgramComparison
from aotidoctor.readers.provenance.compare_program import compare_program

# Bytes of constants.
CHUNK = 1 << 20
# Elements to compare one by one: where the layouts differ, and where pieces are not equal.
MAX_SINGLE = 1 << 22
FEW = 8


@dataclass(slots=True)
class _Tally:
    """Differences so far. ``looked`` counts elements of pieces that are not equal."""

    differing: int = 0
    looked: int = 0
    places: list[tuple[int, bytes, bytes]] = field(default_factory=list)


def compare_contents(ours: StoredTensor, theirs: StoredTensor) -> JsonObject | str:
    """Compare two constants of one dtype and shape: facts, or the reason why they cannot be compared."""
    if ours.content is None or theirs.content is None:
        return ours.problem or theirs.problem or "no bytes to compare"
    if ours.dtype is None or ours.shape is None or ours.dtype not in ITEMSIZE:
        return f"dtype {ours.dtype} of an unknown size"
    if _numel(ours) == 0:
        return {"name": ours.fqn, "equal": True, "what": None}
    tally = _Tally()
    try:
        for piece in _pieces(ours, theirs):
            _look(*piece, ITEMSIZE[ours.dtype], tally)
            if tally.looked > MAX_SINGLE:
                break
    except _UnreadableError as error:
        return str(error)
    return _facts(ours, tally)


class _UnreadableError(Exception):
    """The bytes cannot be compared."""


def _pieces(ours: StoredTensor, theirs: StoredTensor) -> Iterator[tuple[int, bytes, bytes]]:
    """Index of the first element, and the bytes of both, element by element in the same order."""
    size = ITEMSIZE[ours.dtype or ""]
    if _is_contiguous(ours) and _is_contiguous(theirs):
        total = _numel(ours) * size
        for at in range(0, total, CHUNK):
            length = min(CHUNK, total - at)
            yield (
                at // size,
                _read(ours, ours.offset * size + at, length),
                _read(theirs, theirs.offset * size + at, length),
            )
        return
    count = _numel(ours)
    if count > MAX_SINGLE:
        raise _UnreadableError(f"{count} elements in a different order: too many to compare one by one")
    for at, (one, other) in enumerate(zip(_places(ours), _places(theirs), strict=True)):
        yield at, _read(ours, one * size, size), _read(theirs, other * size, size)


def _read(tensor: StoredTensor, start: int, length: int) -> bytes:
    data = tensor.content.read_at(start, length) if tensor.content is not None else b""
    if len(data) < length:
        raise _UnreadableError(f"the storage ends after {tensor.content.size if tensor.content else 0} bytes")
    return data


def _places(tensor: StoredTensor) -> Iterator[int]:
    """Positions in the storage, in row-major order."""
    shape, stride = tensor.shape or (), tensor.stride or ()
    if len(stride) != len(shape):
        raise _UnreadableError("its strides are unknown")
    for index in product(*map(range, shape)):
        yield tensor.offset + sum(at * step for at, step in zip(index, stride, strict=True))


def _is_contiguous(tensor: StoredTensor) -> bool:
    return tensor.stride is None or is_row_major(tensor.shape or (), tensor.stride)


def _numel(tensor: StoredTensor) -> int:
    return prod(tensor.shape or ())


def _look(first: int, one: bytes, other: bytes, size: int, tally: _Tally) -> None:
    if one == other:
        return
    # Halves, until the pieces that differ are small: one bit in a gigabyte must not cost a gigabyte of steps.
    count = len(one) // size
    if count > 64:
        middle = count // 2 * size
        _look(first, one[:middle], other[:middle], size, tally)
        _look(first + count // 2, one[middle:], other[middle:], size, tally)
        return
    tally.looked += count
    for at in range(count):
        left, right = one[at * size : (at + 1) * size], other[at * size : (at + 1) * size]
        if left != right:
            tally.differing += 1
            if len(tally.places) <= FEW:
                tally.places.append((first + at, left, right))


def _facts(ours: StoredTensor, tally: _Tally) -> JsonObject:
    shape = list(ours.shape or ())
    tensor: JsonObject = {"name": ours.fqn, "dtype": ours.dtype, "shape": [*shape]}
    if not tally.differing:
        return {**tensor, "equal": True, "what": None}
    count = _numel(ours)
    elements: list[JsonObject] = []
    for at, left, right in tally.places[:FEW]:
        apart = int.from_bytes(left, "little") ^ int.from_bytes(right, "little")
        index: list[JsonValue] = [*index_at(at, ours.shape or ())]
        flipped: list[JsonValue] = [bit for bit in range(len(left) * 8) if apart >> bit & 1]
        values = {"observed": _value(ours.dtype, left), "expected": _value(ours.dtype, right)}
        elements.append({"index": index, **values, "bits": flipped})
    few = tally.differing <= FEW and (tally.differing == 1 or tally.differing * 2 <= count)
    single = few and all(isinstance(bits := item["bits"], list) and len(bits) == 1 for item in elements)
    return {
        **tensor,
        "equal": False,
        "what": "flipped-bit" if single else "few" if few else "values",
        "differing": tally.differing,
        "numel": count,
        "share": tally.differing / count if tally.looked <= MAX_SINGLE else tally.differing / tally.looked,
        "elements": [*elements],
    }


def _value(dtype: str | None, data: bytes) -> JsonValue:
    """The number; of dtypes that Python has no name for, the bytes."""
    values = decode(dtype or "", data)
    if values is None:
        return f"0x{int.from_bytes(data, 'little'):0{len(data) * 2}x}"
    return bool(values[0]) if dtype == "bool" else values[0]


# Findings and verdict.
ORIGIN_VERDICT = "VERIFY-P00"
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
class OriginCase:
    """A package and the program that it may come from; ``stored`` are the package's constants with their bytes."""

    package: str
    archive: ProgramArchive
    contract: ModelContract
    stored: Mapping[str, StoredTensor]
    model: ModelEntry | None = None


def judge_origin(question: OriginCase) -> tuple[list[Evidence], list[NotChecked]]:
    """Findings about differences, the verdict last; and what could not be compared."""
    compared = compare_program(question.contract, question.archive.facts, question.model)
    other = {item.subject for item in compared.differences if item.aspect == "constants"}
    items, unread = _contents(question, other)
    weights = judge_weights(items)
    found = [
        _evidence(
            question,
            _CODES[item.aspect],
            item.kind if item.decisive else f"{item.kind}-hint",
            subject=item.subject,
            observed=item.package,
            expected=f"{item.program}, as in the program",
            facts={"package": item.package, "program": item.program, "decisive": item.decisive},
        )
        for item in compared.differences[:MAX_FINDINGS]
    ]
    if weights.names:
        found.append(_weights(question, weights))
    left_out = [*compared.left_out, *unread]
    if len(compared.differences) > MAX_FINDINGS:
        left_out.append(f"{len(compared.differences) - MAX_FINDINGS} more differences are not listed")
    kind, observed = _judge(question, compared, weights, left_out)
    # Operators that the package calls, by the names of their shims or their own.
    called = sorted({call.name for call in question.contract.kernels if call.kind in ("extern", "custom")})
    facts: dict[str, FactValue] = {
        "compared": compared.aspects,
        "equal_constants": weights.equal,
        "differing_constants": len(weights.names),
        "decisive": tuple(f"{item.aspect}: {item.subject}" for item in compared.decisive[:_LISTED]),
        "left_out": len(left_out),
        "called": tuple(called[:MOST_CALLED]),
    }
    verdict = _evidence(
        question,
        ORIGIN_VERDICT,
        kind,
        subject=question.package,
        observed=observed,
        expected=f"a package that was compiled from {question.archive.path}",
        facts=facts,
    )
    found.append(verdict)
    return found, [NotChecked(code=ORIGIN_VERDICT, name=BY_CODE[ORIGIN_VERDICT].name, reason=text) for text in left_out]


def _contents(question: OriginCase, other: set[str]) -> tuple[list[JsonObject], list[str]]:
    """Facts of each pair of constants, and each reason why some could not be compared."""
    theirs = {**(question.archive.constants or {}), **(question.archive.weights or {})}
    items: list[JsonObject] = []
    reasons: dict[str, list[str]] = {}
    for name, ours in question.stored.items():
        if name in other:
            continue
        payload = theirs.get(name)
        if payload is None:
            answer: JsonObject | str = "not in the program under this name"
        elif None not in (ours.shape, payload.stored.shape) and ours.shape != payload.stored.shape:
            answer = f"a different shape in the program's list ({ours.shape}, {payload.stored.shape})"
        elif None not in (ours.dtype, payload.stored.dtype) and ours.dtype != payload.stored.dtype:
            answer = f"a different dtype in the program's list ({ours.dtype}, {payload.stored.dtype})"
        else:
            answer = compare_contents(ours, payload.stored)
        if isinstance(answer, str):
            reasons.setdefault(answer, []).append(name)
        else:
            items.append(answer)
    for what, payloads in (("weights", question.archive.weights), ("constants", question.archive.constants)):
        if payloads is None and question.stored:
            reasons.setdefault("the archive has no list of them that can be read", []).append(f"the program's {what}")
    return items, [f"content of {list_names(names, _LISTED)}: {reason}" for reason, names in reasons.items()]


def _weights(question: OriginCase, weights: WeightsCompared) -> Evidence:
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


def calls_operator(verdict: Evidence, target: str) -> bool:
    """Whether the package of this verdict calls ``aten.sort.stable``, by a shim or by name."""
    called = verdict.facts.get("called")
    bare = "_".join(part for part in target.split(".")[1:] if part != "default")
    packet = target.split(".")[1] if "." in target else target
    names = called if isinstance(called, tuple) else ()
    ends = tuple(f"_{name}" for name in (bare, packet))
    return any(str(name).removeprefix("torch.ops.") == target or str(name).endswith(ends) for name in names)


def _judge(
    question: OriginCase, compared: ProgramComparison, weights: WeightsCompared, left_out: Sequence[str]
) -> tuple[str, str]:
    if compared.decisive:
        first = compared.decisive[0]
        others = len(compared.decisive) - 1
        more = f"; {others} more difference{'s' if others > 1 else ''}" if others else ""
        observed = f"a different program: {first.subject}: {first.package}, not {first.program}{more}"
        return "other-program", observed
    if weights.names:
        return "other-weights", f"this program with different weights: {weights.sentence}"
    hints = [
        item
        for item in compared.differences
        if item.kind != "containers"
        and not (item.kind == "range" and not item.decisive and bool(weights.equal) and not weights.names)
    ]
    words = {"call": "call spec", "inputs": "inputs", "outputs": "outputs", "operators": "operators"}
    differing = {item.aspect for item in compared.differences}
    agreeing = [word for aspect, word in words.items() if aspect in compared.aspects and aspect not in differing]
    if weights.equal:
        agreeing.append(f"the content of {weights.equal} constant{'s' if weights.equal > 1 else ''}")
    agreed = ", ".join(agreeing)
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


def _evidence(
    question: OriginCase,
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
