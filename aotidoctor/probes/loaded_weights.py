"""The weights that were loaded do not fit the compiled code.

What it does
    Compares the tensors that --setup handed to load_constants with the constants the package was compiled for: names,
    dtype, shape, strides.

Why it matters
    load_constants checks names only. A float64 weight overflows the heap and the abort comes in a later call; a
    transposed or too small one gives wrong numbers without a word.

Example
    l.weight: observed float64, expected float32

When it is wrong
    Weights loaded by other means than the model handed to after_load are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.json_types import JsonObject, JsonValue, objects
from aotidoctor.model.run import Outcome
from aotidoctor.probes.probe import History, Probe, Reuse, evidence, unasked

CODE, NAME = "AD-LOAD-005", "loaded_weights"


def plan(case: Case, history: History) -> Reuse | NotChecked:
    """Answered by the plain run, where --setup loaded weights."""
    plain = history.outcomes.get("plain_run")
    if plain is None:
        return unasked(CODE, NAME, "there was no plain run")
    if not _given(plain):
        return unasked(CODE, NAME, "--setup loaded no weights")
    if case.contract is None or not case.contract.constants:
        return unasked(CODE, NAME, "the package tells no constants to compare them with", moot=False)
    return Reuse(probe="plain_run")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding per constant that does not fit."""
    wanted = {spec.original_fqn or spec.name: spec for spec in (case.contract.constants if case.contract else ())}
    return list(_compare(wanted, _given(outcome), outcome))


def _given(outcome: Outcome) -> list[JsonObject]:
    return objects(outcome.result.get("loaded_constants"))


def _compare(wanted: dict[str, ConstantSpec], given: list[JsonObject], outcome: Outcome) -> Iterator[Evidence]:
    for item in given:
        name = str(item.get("name"))
        spec = wanted.get(name)
        if spec is None:
            yield _finding("name", name, "a constant of this name", f"one of {', '.join(wanted)}", outcome)
            continue
        difference = _difference(spec, item)
        if difference is not None:
            kind, observed, expected = difference
            yield _finding(kind, name, observed, expected, outcome, expected_dtype=spec.dtype)


def _difference(spec: ConstantSpec, item: JsonObject) -> tuple[str, str, str] | None:
    """``(kind, observed, expected)`` of the first property that differs: dtype, shape, stride."""
    shape, stride = _numbers(item.get("shape")), _numbers(item.get("stride"))
    if spec.dtype is not None and item.get("dtype") != spec.dtype:
        return "dtype", str(item.get("dtype")), spec.dtype
    if spec.shape is not None and shape != spec.shape:
        return "shape", str(shape), str(spec.shape)
    used = [at for at, size in enumerate(shape) if size != 1]
    if spec.stride is not None and any(stride[at] != spec.stride[at] for at in used):
        return "stride", f"strides {stride}", f"strides {spec.stride}"
    return None


def _numbers(value: JsonValue) -> tuple[int, ...]:
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, list) else ()


def _finding(kind: str, name: str, observed: str, expected: str, outcome: Outcome, **facts: FactValue) -> Evidence:
    return evidence(
        CODE,
        kind,
        Severity.ERROR,
        outcome,
        subject=name,
        observed=observed,
        expected=expected,
        facts={"constant": name, **facts},
    )


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="do the loaded weights fit the compiled code?",
    asked_when="when --setup loaded weights (no further run)",
    plan=plan,
    read=read,
)
