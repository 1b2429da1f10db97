"""Judge a custom operator that was called alone: how it ended, what it returned, and which promises it broke.

The promises are the properties that compiled code relies on: dtype, shape, strides, device and number of tensors.
The manual page is that of ``op_alone``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.answers import ObservedTensor, OperatorAlone, OperatorCall, SavedCall, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.contract import CustomCall, PromisedResult
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.expr import Sym, evaluate
from aotidoctor.model.jobs import OneOperator
from aotidoctor.model.record import record
from aotidoctor.model.run import NotStarted, Outcome
from aotidoctor.probes import op_inputs
from aotidoctor.probes.growth import LEAST_BYTES_PER_CALL, growth_rate
from aotidoctor.probes.payload import called
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, evidence, succeeded

# Promises about a result, compared with the result. A size that the operator itself decides: nothing can be promised.
_UNBACKED = re.compile(r"\bu\d+\b")
Sizes = tuple[int | None, ...]


@record
class Promised:
    """A tensor, or the promise about one; None is "not stated". ``used``: compiled code reads it."""

    dtype: str | None
    shape: Sizes | None
    stride: Sizes | None
    device: str | None = None
    used: bool = True

    @property
    def complete(self) -> bool:
        """Whether everything that compiled code relies on is stated."""
        return not self.used or (self.dtype is not None and self.shape is not None and self.stride is not None)


UNKNOWN = Promised(dtype=None, shape=None, stride=None)


@record
class PromiseDifference:
    """``what`` differs: dtype, shape, stride, device or count."""

    what: str
    observed: str
    expected: str
    path: str


def broken_argument(case: Case, plain: Outcome | None, call: CustomCall, given: Sequence[Promised]) -> bool:
    """Whether an argument comes from another operator that broke its promise: this one need not keep its own then."""
    sizes = symbol_values(case, plain)
    promised = [UNKNOWN if one is None else _compiled(one, sizes) for one in call.arguments]
    return len(given) == len(promised) and promise_difference(given, promised) is not None


def symbol_values(case: Case, plain: Outcome | None) -> Mapping[str, int]:
    """Symbols of the contract by the shapes of the inputs that the plain run saw."""
    given = {value.path: value.sizes for value in called(plain).inputs} if plain is not None else {}
    found: dict[str, int] = {}
    for leaf in case.contract.leaves if case.contract is not None else ():
        for dim, size in zip(leaf.dims or (), given.get(leaf.path, ()), strict=False):
            if isinstance(dim.expr, Sym):
                found.setdefault(dim.expr.name, size)
    return found


def _compiled(result: PromisedResult, sizes: Mapping[str, int]) -> Promised:
    def value(text: str) -> int | None:
        return None if _UNBACKED.search(text) else evaluate(parse_expr(text), sizes)

    def values(texts: Sequence[str] | None) -> Sizes | None:
        return None if texts is None else tuple(map(value, texts))

    return Promised(dtype=result.dtype, shape=values(result.shape), stride=values(result.stride), used=result.used)


def promised_tensors(found: Sequence[ObservedTensor]) -> list[Promised]:
    """Tensors as the worker describes them."""
    return [
        Promised(dtype=item.dtype or None, shape=item.shape, stride=item.stride, device=item.device) for item in found
    ]


def promise_difference(
    given: Sequence[Promised], promised: Sequence[Promised], *, strides: bool = True
) -> PromiseDifference | None:
    """The first difference between the results and the promises; None when they fit."""
    if len(given) != len(promised):
        return PromiseDifference(
            what="count", observed=f"{len(given)} tensors", expected=str(len(promised)), path="result"
        )
    for at, (one, wanted) in enumerate(zip(given, promised, strict=True)):
        path = "result" if len(given) == 1 else f"result[{at}]"
        found = _tensor_difference(one, wanted, strides=strides) if wanted.used else None
        if found is not None:
            return PromiseDifference(what=found[0], observed=found[1], expected=found[2], path=path)
    return None


def _tensor_difference(one: Promised, wanted: Promised, *, strides: bool) -> tuple[str, str, str] | None:
    device, wanted_device = ((item.device or "").partition(":")[0] for item in (one, wanted))
    for what, observed, expected in (("dtype", one.dtype, wanted.dtype), ("device", device, wanted_device)):
        if observed and expected and observed != expected:
            return what, observed, expected
    if one.shape is None or wanted.shape is None:
        fits = True
    else:
        sizes = zip(one.shape, wanted.shape, strict=False)
        fits = len(one.shape) == len(wanted.shape) and all(b is None or a == b for a, b in sizes)
    if not fits:
        return "shape", _describe_sizes(one.shape), _describe_sizes(wanted.shape)
    # Strides of dims with one element are never used, and none are in an empty tensor.
    if (
        strides
        and one.shape is not None
        and one.stride is not None
        and wanted.stride is not None
        and 0 not in one.shape
    ):
        pairs = zip(one.shape, one.stride, wanted.stride, strict=False)
        if any(size != 1 and b is not None and a != b for size, a, b in pairs):
            return "stride", _describe_sizes(one.stride), _describe_sizes(wanted.stride)
    return None


def _describe_sizes(sizes: Sizes | None) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in sizes or ()) + ")"


# Operators that did not survive being called alone.
CALL_STAGES = ("run1", "again", "loop")
KILLS = ("SIGKILL", "SIGTERM", "SIGXCPU")
MEMORY = ("alloc-failed", "storage-overflow", "cuda-oom")
# The error of pybind for a result of a Python kernel that is no tensor.
NO_TENSOR = re.compile(r"Unable to cast .* to (?:Tensor|List\[Tensor\])", re.DOTALL)
ENDINGS = ("signalled", "raised", "exited", "timed-out", "out-of-memory", "flaky")
RUNS = ("AD-RUN-001", "AD-RUN-002", "AD-RUN-008", "AD-RUN-009")


def operator_job(outcome: Outcome) -> OneOperator:
    """The job of the run."""
    payload = outcome.request.payload
    return payload if isinstance(payload, OneOperator) else OneOperator(target="")


def died_in_operator(outcome: Outcome) -> bool:
    """Whether the run ended in a call of the operator, or in the first look at its result."""
    if succeeded(outcome) or isinstance(outcome.ending, NotStarted):
        return False
    return outcome.stage in (*CALL_STAGES, "look")


def read_operator_ending(code: str, case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """One finding: the ending. It is an error only if the package failed as well."""
    ending = read_ending(code, case, outcome)
    target = operator_job(outcome).target
    kind, observed, symptom = ending.kind, ending.observed, ending.facts.get("symptom")
    no_tensor = outcome.error is not None and NO_TENSOR.search(outcome.error.message)
    # A damaged heap may break while results are examined; the results are not the fault then.
    if no_tensor or (outcome.stage == "look" and symptom != "heap-corruption"):
        kind = "bad-return"
    elif ending.facts.get("signal") in KILLS:
        kind = "killed"
    elif symptom in MEMORY:
        kind = "out-of-memory"
    stage = {"again": "in the second call", "loop": "in a later call"}.get(outcome.stage, "")
    failed = any(
        item.code in RUNS and item.severity is Severity.ERROR and item.kind in ENDINGS for item in history.findings
    )
    return [
        replace(
            ending,
            kind=kind,
            severity=Severity.ERROR if failed else Severity.WARN,
            subject=target,
            observed=f"{observed} when called alone{stage and ', ' + stage}",
            expected="the operator to return",
            message=f"{target}, called alone: {observed}",
            facts={**ending.facts, "op": target, "stage": outcome.stage, "package_failed": failed},
        )
    ]


def late_damage(history: History) -> bool:
    """Whether one call may be too few: memory grew, the heap was damaged, or it died late or intermittently."""
    return history.has("AD-RUN-008", "grows") or any(_is_late(item) for item in history.findings)


def is_doubtful(history: History) -> bool:
    """Whether calls alone that went well do not clear an operator: a damaged heap, or the package died inside one."""
    return history.has("AD-RUN-024", "custom") or any(_is_late(item) for item in history.findings)


def _is_late(item: Evidence) -> bool:
    if item.code not in RUNS or item.severity is not Severity.ERROR:
        return False
    if item.kind == "flaky" or item.facts.get("symptom") == "heap-corruption":
        return True
    return item.kind == "signalled" and (item.code != "AD-RUN-001" or item.facts.get("stage") != "run1")


def contract_in_doubt(history: History) -> bool:
    """Whether the fault may come from an operator that breaks its schema: then PyTorch's own check is worth its time.

    It takes longer than all other steps together.
    """
    silent = history.has("AD-RUN-004", "input-changed", "output-alias") or history.has("AD-RUN-011", "differs")
    return silent or history.has("AD-RUN-001", "signalled") or history.has("AD-RUN-002", "flaky")


# Faults of operators that returned.
SEEDED = "nondeterministic_seeded"


def read_operator_result(code: str, case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """All faults, each kind once; empty without any."""
    reader = OperatorResultReader(code, case, history, outcome)
    found: dict[str, Evidence] = {}
    for call in reader.answer.calls:
        for item in reader.call(call):
            found.setdefault(item.kind, item)
    for item in reader.whole(bool(found)):
        found.setdefault(item.kind, item)
    return list(found.values())


def promises_of(case: Case, history: History, saved: SavedCall) -> list[Promised] | None:
    """The promises that the compiled code relies on in the saved call; None if the package states none."""
    found, sizes = _compiled_call(case, history, saved), symbol_values(case, history.plain)
    return None if found is None else [_compiled(result, sizes) for result in found.results]


def _compiled_call(case: Case, history: History, saved: SavedCall) -> CustomCall | None:
    """The saved call in the wrapper."""
    source = op_inputs.saved_calls(history)
    calls = case.contract.custom_calls if case.contract is not None else ()
    same = [call for call in calls if call.target == saved.target]
    if source.by == "hooks":
        same = [call for call in same if call.index == saved.index]
    return same[0] if len(same) == 1 else None


class OperatorResultReader:
    """Reads the calls of one operator."""

    def __init__(self, code: str, case: Case, history: History, outcome: Outcome) -> None:
        self._code = code
        self._case = case
        self._history = history
        self._outcome = outcome
        self._target = operator_job(outcome).target
        self.answer = parse_answer(OperatorAlone, outcome.result)
        source = op_inputs.saved_calls(history)
        self._saved = {call.file: call for call in source.captured}
        # Arguments from the exported program may have other strides than those of the compiled code.
        self._strides = source.by == "hooks"

    def call(self, call: OperatorCall) -> Iterator[Evidence]:
        """Findings of one call; only the bad result of a call that did not finish."""
        if call.bad is not None:
            yield self._make("bad-return", self._at_worst_warn(), call.bad, "a tensor with separate memory")
            return
        if call.outputs is None:
            return
        yield from self._promise(call)
        if call.writes:
            observed = f"writes to {', '.join(call.writes)}"
            yield self._make("mutates", Severity.ERROR, observed, "no write that its schema does not declare")
        if call.aliases:
            one, other = (call.aliases[0] * 2)[:2]
            observed = f"{one} shares the memory of {other}"
            yield self._make("aliases", self._at_worst_warn(), observed, "no alias that its schema does not declare")
        yield from self._values(call)

    def whole(self, wrong: bool) -> Iterator[Evidence]:
        """Findings of the loop, and of PyTorch's own check if nothing else was found."""
        speed = growth_rate(called(self._outcome).rss)
        if speed >= LEAST_BYTES_PER_CALL:
            facts: dict[str, FactValue] = {"bytes_per_call": int(speed)}
            observed = f"+{speed / 1024:.1f} KiB per call, called alone"
            yield self._make("grows", Severity.ERROR, observed, "a steady resident size", facts)
        failed = {key: text for key, text in self.answer.opcheck.items() if text != "SUCCESS"}
        for test, text in failed.items() if not wrong else ():
            yield self._make("opcheck", Severity.WARN, f"{test}: {text}"[:400], "SUCCESS", {"test": test})

    def _promise(self, call: OperatorCall) -> Iterator[Evidence]:
        """Compare with the promise in the package, or with the fake kernel if the package has none."""
        saved, plain = self._saved.get(call.file, SavedCall()), self._history.plain
        found, arguments = _compiled_call(self._case, self._history, saved), promised_tensors(call.arguments)
        if found is not None and broken_argument(self._case, plain, found, arguments):
            return
        given = promised_tensors(call.outputs or ())
        compiled = promises_of(self._case, self._history, saved)
        fake = promised_tensors(call.fake) if call.fake is not None else None
        by_package = None if compiled is None else promise_difference(given, compiled, strides=self._strides)
        by_fake = None if fake is None else promise_difference(given, fake, strides=self._strides)
        if by_package is not None:
            agrees = fake is not None and by_fake is None
            yield self._broken(by_package, "as compiled", promised_by="package", fake_agrees=agrees)
        elif by_fake is not None and compiled is not None and all(one.complete for one in compiled):
            observed = f"{by_fake.what} {by_fake.observed}"
            expected = f"{by_fake.expected} by the fake kernel (the package relies on the real result)"
            yield self._make("fake-differs", Severity.INFO, observed, expected)
        elif by_fake is not None:
            yield self._broken(by_fake, "by its fake kernel", promised_by="fake kernel", fake_agrees=False)

    def _broken(self, found: PromiseDifference, who: str, *, promised_by: str, fake_agrees: bool) -> Evidence:
        more = "; the fake kernel registered here agrees with the result" if fake_agrees else ""
        return self._make(
            "fake-kernel",
            Severity.ERROR,
            f"{found.what} {found.observed} of {found.path}{more}",
            f"{found.expected} {who}",
            {"what": found.what, "promised_by": promised_by, "fake_agrees": fake_agrees, "output": found.path},
        )

    def _values(self, call: OperatorCall) -> Iterator[Evidence]:
        first, second = ([one for one in many if one is not None] for many in (call.digests, call.again))
        if first and second and first != second:
            design = SEEDED in self.answer.tags or call.generator
            why = "; it draws from PyTorch's random generator" if design else ""
            observed = f"different values in the second call with equal arguments{why}"
            severity = self._as_bad_as("AD-RUN-002", "differs")
            yield self._make(
                "random", severity, observed, "the same bits", {"by_design": design, "random_ops": (self._target,)}
            )
        results = call.outputs or ()
        nan, inf = sum(one.nan or 0 for one in results), sum(one.inf or 0 for one in results)
        if call.clean and (nan or inf):
            severity = self._as_bad_as("AD-RUN-005", "nan-output" if nan else "inf-output")
            observed = f"{nan} NaN and {inf} Inf from clean arguments"
            yield self._make("nan", severity, observed, "finite values", {"nan": nan, "inf": inf, "clean": True})

    def _as_bad_as(self, code: str, kind: str) -> Severity:
        """The severity of the same sign in the model's outputs; a note without one."""
        same = self._history.of(code, kind)
        blamed = [item.severity for item in same if item.facts.get("clean") is not False]
        return max(blamed, key=lambda severity: severity.rank, default=Severity.INFO)

    def _at_worst_warn(self) -> Severity:
        """An error if any run failed, else a warning: the fault does harm only sometimes."""
        harm = [item for item in self._history.errors("AD-RUN-0") if item.code != self._code]
        return Severity.ERROR if harm else Severity.WARN

    def _make(
        self, kind: str, severity: Severity, observed: str, expected: str, facts: dict[str, FactValue] | None = None
    ) -> Evidence:
        return evidence(
            self._code,
            kind,
            severity,
            self._outcome,
            subject=self._target,
            observed=observed,
            expected=expected,
            facts={"op": self._target, "has_custom_ops": True, **(facts or {})},
        )
