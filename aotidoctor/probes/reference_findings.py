"""Turn the comparison with the reference into findings; also used to judge a saved report again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from aotidoctor.localize.comparison import FINE, STRUCTURAL, WeightsCompared
from aotidoctor.model.evidence import Evidence, FactValue, Maker, Severity, Source
from aotidoctor.model.localization import OutputComparison

CODE = "AD-RUN-011"
EXPECTED = "the reference's outputs"
FURTHER = 64
# From such a relative error on, not even the first digit is right.
HOPELESS = 0.1
_EPS = {"float64": 2**-52, "float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}
_REMEDIES = {
    "flipped-bit": "The file is damaged: get the package again, and compare checksums after the copy.",
    "cast": "Cast the model before the export, and compile from that export.",
    "stale-one": "Export and compile again, after the last change to the weights.",
}
# Kinds of findings of the outputs; the others remain when tolerances change.
OUTPUT_KINDS = ("agrees", "precision", "differs", "nan", "dtype", "structure")


def output_finding(
    found: Sequence[OutputComparison], source: Source | None, *, note: str = "", another: bool = False
) -> Evidence:
    """One finding for all outputs: agrees, precision, structure, dtype, nan or differs, the worst there is.

    ``note`` is appended to the observation. ``another``: the package is known to come from another program, so that
    rounding does not excuse outputs that are further from float64 than the reference's.
    """
    wrong = []
    for item in found:
        ours, theirs = item.error, item.reference_error
        # Far enough for the other operator to be the reason: compiling changes rounding less.
        further = ours is not None and theirs is not None and ours > FURTHER * max(theirs, 1.0)
        if item.verdict not in FINE or (another and further and item.verdict == "both-within"):
            wrong.append(item)
    imprecise = [item for item in found if item.verdict in FINE[1:] and item not in wrong]
    if not wrong and not imprecise:
        facts: dict[str, FactValue] = {"outputs": len(found), "max_abs_diff": max(map(_size, found), default=0.0)}
        return Maker(CODE, Severity.INFO)(
            "agrees", None, observed=f"within tolerance{note}", expected="agreement", source=source, facts=facts
        )
    worst = max(wrong or imprecise, key=_rank)
    # Rounding is no fault; a wrong reference, numbers without a right digit, or a tolerance of the user's that is not
    # met, is a warning.
    loud = any(item.asked or item.verdict == "reference-imprecise" or _is_noise(item) for item in imprecise)
    kind, severity = "precision", Severity.WARN if loud else Severity.INFO
    if wrong:
        kind, severity = "nan" if worst.nan_differs else "differs", Severity.ERROR
        kind = "structure" if worst.verdict in STRUCTURAL else "dtype" if worst.verdict == "dtype" else kind
    observed = _describe_measured(worst) + note
    return Maker(CODE, severity)(
        kind, worst.path, observed=observed, expected=EXPECTED, source=source, facts=facts_of(worst)
    )


_OPEN_SIZE = (
    "Compare the values before the operator that decides the size (unique, nonzero, a mask): where they differ by "
    "rounding alone, so may the size."
)


def is_another_program(findings: Iterable[Evidence]) -> bool:
    """Whether the reference was found to be a different program from the one that was compiled."""
    return any((item.code, item.kind) == ("AD-REF-001", "another-program") for item in findings)


def weights_finding(weights: WeightsCompared, found: Sequence[OutputComparison], source: Source | None) -> Evidence:
    """The finding for weights that differ: they explain outputs that differ; with equal outputs it is a warning."""
    wrong = any(item.verdict not in FINE for item in found)
    worst = max(found, key=_rank, default=None)
    facts: dict[str, FactValue] = {
        "weights": weights.names,
        "what": weights.kind,
        "sentence": weights.sentence,
        "remedy": _REMEDIES.get(weights.kind),
        "equal": weights.equal,
        "max_abs_diff": _size(worst) if worst is not None else None,
        "output": worst.path if worst is not None else None,
    }
    subject = ", ".join(weights.names[:4])
    severity = Severity.ERROR if wrong else Severity.WARN
    return Maker(CODE, severity)(
        "weights", subject, observed=weights.sentence, expected="the reference's weights", source=source, facts=facts
    )


def facts_of(item: OutputComparison) -> dict[str, FactValue]:
    """The facts of one output for playbooks and reports."""
    open_size = {"remedy": _OPEN_SIZE} if item.verdict == "unknown" and item.shape != item.reference_shape else {}
    return {
        **open_size,
        "output": item.path,
        "verdict": item.verdict,
        "max_abs_diff": item.max_abs,
        "dtype": item.reference_dtype,
        "error": item.error,
        "reference_error": item.reference_error,
        "noise": item.noise,
        "allowed": item.allowed,
        "nan": item.nan,
        "reference_nan": item.reference_nan,
        "reason": item.reason,
        "judged": item.verdict in ("package-wrong", "reference-imprecise", "both-within"),
    }


def _describe_measured(item: OutputComparison) -> str:
    """The measurement of one output, in words."""
    match item.verdict:
        case "missing":
            return f"no {item.path}"
        case "extra":
            return f"{item.path}, which the reference does not have"
        case "structure":
            return f"a different structure: {item.reason}"
        case "type":
            return "another type"
        case "shape":
            return _shapes(item)
        case "unknown" if item.shape != item.reference_shape:
            return f"{_shapes(item)}; {item.reason}"
        case "dtype":
            return f"{item.dtype}, the reference's is {item.reference_dtype}"
    difference = f"max |difference| {_size(item):.3g}"
    if item.nan != item.reference_nan or item.inf != item.reference_inf:
        theirs = f"{item.reference_nan} and {item.reference_inf}"
        difference = f"{item.nan} NaN and {item.inf} Inf, the reference has {theirs}"
    elif item.nan_differs:
        difference = "NaN or Inf at different positions"
    return f"{difference}; {_judge_output(item)}"


def _judge_output(item: OutputComparison) -> str:
    if item.error is None or item.reference_error is None:
        reason = "which hang on rounding" if item.verdict == "both-within" else item.reason
        if item.verdict in ("package-wrong", "reference-imprecise"):
            reason = f"a float64 run has the {'reference' if item.verdict == 'package-wrong' else 'package'}'s values"
        return reason or "there is no float64 run to judge by"
    errors = f"off by {_eps(item.error)} eps from float64, the reference by {_eps(item.reference_error)}"
    explains = f"rounding in {item.reference_dtype} explains {_eps(item.allowed)}"
    match item.verdict:
        case "both-within" if _is_noise(item):
            return f"{errors}: no digit of either is right, the model magnifies rounding (is a matrix singular?)"
        case "both-within":
            return f"{errors}: both within what {item.reference_dtype} can do here ({_eps(item.allowed)})"
        case "reference-imprecise":
            return f"{errors}: the package is the closer one ({explains})"
        case "package-wrong":
            return f"{errors} ({explains})"
    return f"{errors}: {item.reason} ({_eps(item.allowed)})"


def _is_noise(item: OutputComparison) -> bool:
    """Whether package and reference are both so far from float64 that what they return is rounding."""
    nearer = min(item.error or 0.0, item.reference_error or 0.0)
    return item.verdict == "both-within" and nearer * _EPS.get(item.reference_dtype, 0.0) > HOPELESS


def _eps(value: float | None) -> str:
    return "?" if value is None else f"{value:.2g}" if value < 100 else f"{value:.3g}"


def _shapes(item: OutputComparison) -> str:
    return f"shape {_shape(item.shape)}, the reference's is {_shape(item.reference_shape)}"


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _rank(item: OutputComparison) -> tuple[int, float]:
    """Structure first, then the package's faults, then by size."""
    order = ("agrees", "both-within", "reference-imprecise", "unknown", "package-wrong", "dtype")
    return order.index(item.verdict) if item.verdict in order else len(order), _size(item)


def _size(item: OutputComparison) -> float:
    if item.nan_differs:
        return math.inf
    return item.max_abs if item.max_abs is not None else 0.0
