"""An operator that returned when it was called alone: what was wrong with what it did."""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.model.answers import told
from aotidoctor.model.answers.operators import OperatorAlone, OperatorCall, SavedCall
from aotidoctor.model.case import Case
from aotidoctor.model.contract import CustomCall
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.run import Outcome
from aotidoctor.probes import op_ending, op_inputs
from aotidoctor.probes.growth import LEAST_BYTES_PER_CALL, growth_rate
from aotidoctor.probes.op_promise import Difference, Promised, compiled_promises, difference, misfed, tensors
from aotidoctor.probes.probe import History, evidence
from aotidoctor.probes.results import resident_sizes

SEEDED = "nondeterministic_seeded"


def read(code: str, case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """All that is wrong, each kind once; empty when nothing is."""
    reader = _Reader(code, case, history, outcome)
    found: dict[str, Evidence] = {}
    for call in reader.told.calls:
        for item in reader.call(call):
            found.setdefault(item.kind, item)
    for item in reader.whole(bool(found)):
        found.setdefault(item.kind, item)
    return list(found.values())


def promises_of(case: Case, history: History, saved: SavedCall) -> list[Promised] | None:
    """What the compiled code relies on in the saved call; None where the package does not tell."""
    found = _compiled_call(case, history, saved)
    return None if found is None else compiled_promises(case, history.plain, found)


def _compiled_call(case: Case, history: History, saved: SavedCall) -> CustomCall | None:
    """The saved call in the wrapper."""
    source = op_inputs.saved(history)
    calls = case.contract.custom_calls if case.contract is not None else ()
    same = [call for call in calls if call.target == saved.target]
    if source.by == "hooks":
        same = [call for call in same if call.index == saved.index]
    return same[0] if len(same) == 1 else None


class _Reader:
    """Reads the calls of one operator."""

    def __init__(self, code: str, case: Case, history: History, outcome: Outcome) -> None:
        self._code = code
        self._case = case
        self._history = history
        self._outcome = outcome
        self._target = op_ending.asked(outcome).target
        self.told = told(OperatorAlone, outcome.result)
        source = op_inputs.saved(history)
        self._saved = {call.file: call for call in source.captured}
        # Arguments from the exported program may be laid out otherwise than those of the compiled code.
        self._strides = source.by == "hooks"

    def call(self, call: OperatorCall) -> Iterator[Evidence]:
        """Findings of one call; one that it died in has little to tell."""
        if call.bad is not None:
            yield self._make("bad-return", self._at_worst_warn(), call.bad, "a tensor with separate memory")
            return
        if call.outputs is None:
            return
        yield from self._promise(call)
        yield from self._schema(call)
        yield from self._values(call)

    def whole(self, wrong: bool) -> Iterator[Evidence]:
        """Findings of the loop, and of PyTorch's own check where nothing else was found."""
        speed = growth_rate(resident_sizes(self._outcome))
        if speed >= LEAST_BYTES_PER_CALL:
            facts: dict[str, FactValue] = {"bytes_per_call": int(speed)}
            observed = f"+{speed / 1024:.1f} KiB per call, called alone"
            yield self._make("grows", Severity.ERROR, observed, "a steady resident size", facts)
        failed = {key: text for key, text in self.told.opcheck.items() if text != "SUCCESS"}
        for test, text in failed.items() if not wrong else ():
            yield self._make("opcheck", Severity.WARN, f"{test}: {text}"[:400], "SUCCESS", {"test": test})

    def _promise(self, call: OperatorCall) -> Iterator[Evidence]:
        """What the package was compiled for decides; the fake kernel speaks where the package is silent."""
        if self._misfed(call):
            return
        given = tensors(call.outputs or ())
        compiled = promises_of(self._case, self._history, self._saved.get(call.file, SavedCall()))
        fake = tensors(call.fake) if call.fake is not None else None
        by_package = None if compiled is None else difference(given, compiled, strides=self._strides)
        by_fake = None if fake is None else difference(given, fake, strides=self._strides)
        if by_package is not None:
            agrees = fake is not None and by_fake is None
            yield self._broken(by_package, "as compiled", promised_by="package", fake_agrees=agrees)
        elif by_fake is not None and compiled is not None and all(one.complete for one in compiled):
            observed = f"{by_fake.what} {by_fake.observed}"
            expected = f"{by_fake.expected} by the fake kernel (the package relies on the real result)"
            yield self._make("fake-differs", Severity.INFO, observed, expected)
        elif by_fake is not None:
            yield self._broken(by_fake, "by its fake kernel", promised_by="fake kernel", fake_agrees=False)

    def _misfed(self, call: OperatorCall) -> bool:
        saved = self._saved.get(call.file, SavedCall())
        compiled = _compiled_call(self._case, self._history, saved)
        plain = self._history.plain
        return compiled is not None and misfed(self._case, plain, compiled, tensors(call.arguments))

    def _broken(self, found: Difference, who: str, *, promised_by: str, fake_agrees: bool) -> Evidence:
        more = "; the fake kernel registered here agrees with the result" if fake_agrees else ""
        return self._make(
            "fake-kernel",
            Severity.ERROR,
            f"{found.what} {found.observed} of {found.path}{more}",
            f"{found.expected} {who}",
            {"what": found.what, "promised_by": promised_by, "fake_agrees": fake_agrees, "output": found.path},
        )

    def _schema(self, call: OperatorCall) -> Iterator[Evidence]:
        if call.writes:
            observed = f"writes to {', '.join(call.writes)}"
            yield self._make("mutates", Severity.ERROR, observed, "no write that its schema does not declare")
        if call.aliases:
            one, other = (call.aliases[0] * 2)[:2]
            observed = f"{one} shares the memory of {other}"
            yield self._make("aliases", self._at_worst_warn(), observed, "no alias that its schema does not declare")

    def _values(self, call: OperatorCall) -> Iterator[Evidence]:
        first, second = ([one for one in many if one is not None] for many in (call.digests, call.again))
        if first and second and first != second:
            design = SEEDED in self.told.tags or call.generator
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
        """As bad as the same sign in the model's outputs; without one it is no more than a note."""
        same = self._history.of(code, kind)
        blamed = [item.severity for item in same if item.facts.get("clean") is not False]
        return max(blamed, key=lambda severity: severity.rank, default=Severity.INFO)

    def _at_worst_warn(self) -> Severity:
        """What does harm only here and there is an error where harm was seen."""
        harm = [item for item in self._history.errors("AD-RUN-0") if item.code != self._code]
        return Severity.ERROR if harm else Severity.WARN

    def _make(
        self,
        kind: str,
        severity: Severity,
        observed: str,
        expected: str,
        facts: dict[str, FactValue] | None = None,
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
