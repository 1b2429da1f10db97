"""The server's answers to the sample differ from those of the plain call, and no rule explains it.

What it does
    ``aotidoctor triton rehearse`` loads the package in a child and calls it plainly, twice, and as the server would.
    For this, each tensor gets the type in the config, goes into the slot that the release derives from its name, and is
    merged with other requests if the server does that. The answers are compared output by output. A difference that a
    rule explains has that rule's code; this code is for all other differences, and for requests like the sample that
    the server would refuse or crash on.

Why it matters
    The server compares neither types nor sizes with the package, but still answers with HTTP status 200.

Example:
    mlp: RESULT: observed 12 of 1024 values differ, expected the plain call's output

When it is wrong
    Memory beyond what a client sends contains zeros here, but anything in a server. GPUs that this host lacks, other
    clients and the network are not rehearsed. If two plain calls differ (random numbers), values are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FactValue, FileSource
from aotidoctor.model.record import JsonObject, objects, record
from aotidoctor.triton.call_spec import SPLITS_SINCE
from aotidoctor.triton.rehearsal import (
    TITLES,
    ClientTensor,
    DifferenceReasons,
    Rehearsal,
    RuleReason,
    answer_difference,
    answer_text,
    crossing_names,
    ending_words,
    facts_of,
    intended_path,
    right_name,
    sizes,
    sizes_text,
)
from aotidoctor.triton.serving import Consequence, ServedModel

if TYPE_CHECKING:
    from aotidoctor.model.run import Outcome

REHEARSAL_CODE = "TRITON-REHEARSAL"
_BEFORE = ("start", "import", "setup", "inputs", "load")


@record
class RehearsalReading:
    """One rehearsal: the plan, the model, and how the child ended."""

    model: ServedModel
    plan: Rehearsal
    outcome: Outcome

    def findings(self) -> tuple[Evidence, ...]:
        """Everything that the rehearsal shows."""
        problem = self._ending()
        if problem is not None:
            return (problem,)
        refused = objects(self.outcome.result.get("refused"))
        if refused:
            return tuple(self._refused(item) for item in refused)
        answers = objects(self.outcome.result.get("answers"))
        if self.outcome.result.get("repeatable") is False:
            answers = [item for item in answers if item.get("what") not in ("values", "nan")]
        found = tuple(item for answer in answers if (item := self._answer(answer)) is not None)
        if self.outcome.result.get("repeatable") is False:
            words = "two plain calls give different numbers, so the values of the server's answers prove nothing."
            why, observed = RuleReason(kind="random", words=words), "different numbers each time"
            return (*found, self._finding(why, Consequence.NOTE, observed=observed, expected="the same numbers"))
        if found:
            return found
        # Crossed names whose answers are the same.
        for wire in (*self.plan.inputs, *self.plan.outputs):
            if wire.crossed:
                verb = "goes into" if wire in self.plan.inputs else "answers with"
                words = f"{crossing_names([wire], verb)}; these values do not show it."
                why = RuleReason(rule="R27", kind="rehearsed-unseen", words=words, remedy=right_name(wire), wire=wire)
                one = self._finding(why, Consequence.WASTE, observed=wire.row.path, expected=intended_path(wire))
                found = (*found, one)
        together = f", {self.reasons.requests} requests in one execution" if self.reasons.requests > 1 else ""
        words = f"the server's answers are those of the plain call ({len(answers)} compared{together})."
        why = RuleReason(kind="same", words=words)
        return (*found, self._finding(why, Consequence.NOTE, observed="the same", expected="the same"))

    @property
    def reasons(self) -> DifferenceReasons:
        """Explanations of differences."""
        return DifferenceReasons(plan=self.plan, release=self.model.release, result=self.outcome.result)

    # How the child ended.

    def _ending(self) -> Evidence | None:
        outcome = self.outcome
        if outcome.succeeded:
            return None
        how = ending_words(outcome)
        if outcome.stage in _BEFORE or outcome.stage.startswith("plain"):
            where = "cannot be loaded" if outcome.stage in _BEFORE else "fails when it is called"
            message = f"the package itself {where} here ({how}), so nothing can be concluded about the server."
            return self._finding(
                RuleReason(kind="plain-fails", words=message, remedy="aotidoctor run finds out why"),
                Consequence.REQUESTS_FAIL,
                observed=how,
                expected="the plain call to answer",
            )
        # Not at the top: the rules alone have no runs.
        from aotidoctor.model.run import OutOfMemory, Signalled, TimedOut

        dies = isinstance(outcome.ending, Signalled | OutOfMemory | TimedOut)
        result = "the server process crashes on such a request" if dies else "every such request fails"
        why = next(iter(self.reasons.all(None)), None)
        words = f"{result}: {how}." + (f" {why.words[0].upper()}{why.words[1:]}." if why else "")
        return self._finding(
            RuleReason(
                rule=why.rule if why else "",
                kind="crashes" if dies else "fails",
                words=words,
                remedy=why.remedy if why else "AOTI_RUNTIME_CHECK_INPUTS=1 in the server's environment names the input",
                wire=why.wire if why else None,
            ),
            Consequence.REQUESTS_FAIL,
            observed=how,
            expected="an answer",
        )

    def _refused(self, item: JsonObject) -> Evidence:
        wire = next(wire for wire in self.plan.inputs if wire.name == item.get("name"))
        shape, wanted = sizes(item.get("shape")), sizes(item.get("wanted"))
        if item.get("what") == "batch":
            words = f"batch-size must be <= {wanted[0]} for '{self.model.name}'"
            remedy = f"max_batch_size: {shape[0]}, if the package takes that many rows; or send fewer"
        else:
            words = f"unexpected shape for input '{wire.name}' for model '{self.model.name}'. "
            words += f"Expected {sizes_text(wanted)}, got {sizes_text(shape)}"
            fitting = shape[1:] if self.plan.max_batch else shape
            remedy = f"dims: {sizes_text(fitting)}, with -1 for what the package lets vary"
        return self._finding(
            RuleReason(
                kind="refused",
                words=f"the server refuses a request like the sample: {words}.",
                remedy=remedy,
                wire=wire,
            ),
            Consequence.REQUESTS_FAIL,
            observed=sizes_text(shape),
            expected=sizes_text(wanted),
        )

    # What the server would answer.

    def _answer(self, answer: JsonObject) -> Evidence | None:
        if answer.get("agrees") is True:
            return None
        wire = next(wire for wire in self.plan.outputs if wire.name == answer.get("name"))
        who = f"request {answer.get('request')} of {self.reasons.requests}: " if self.reasons.requests > 1 else ""
        plain = self._unservable(wire, answer)
        if plain is not None:
            return self._finding(
                plain,
                Consequence.REQUESTS_FAIL,
                observed=answer_text(answer),
                expected=wire.dtype,
                facts=facts_of(answer),
            )
        reasons = list(self.reasons.merging(wire, answer)) or list(self.reasons.all(wire))
        why = reasons[0] if reasons else None
        words = f"{who}answered with HTTP status 200 and {answer_difference(answer, wire)}"
        words += f"; {why.words}." if why else "; no rule explains it."
        return self._finding(
            RuleReason(
                rule=why.rule if why else "",
                kind=f"rehearsed-{why.kind}" if why else "differs",
                words=words,
                remedy=why.remedy if why else "compare the request with the plain call, name by name",
                wire=wire,
            ),
            Consequence.SILENTLY_WRONG,
            observed=answer_text(answer),
            expected="the plain call's output",
            facts=facts_of(answer),
        )

    def _unservable(self, wire: ClientTensor, answer: JsonObject) -> RuleReason | None:
        what, name = answer.get("what"), wire.name
        crashes = self.model.release.before(SPLITS_SINCE)
        if what == "dtype" and "agrees" not in answer:
            end = "the server process crashes (SIGSEGV was seen) at" if crashes else "an error instead of an answer to"
            words = f"{end} the first inference: {name} is {answer.get('dtype')}, and the config declares {wire.dtype}."
            return RuleReason(
                rule="R20", kind="rehearsed-output-type", words=words, remedy="correct its data_type", wire=wire
            )
        if what == "scalar":
            words = f"every request fails: output {name} is a scalar which is not supported."
            return RuleReason(
                rule="R23", kind="rehearsed-scalar", words=words, remedy="leave it out of the config", wire=wire
            )
        if what == "absent":
            words = f"every request fails: the package returns no output {wire.row.slot} for {name}."
            return RuleReason(kind="absent", words=words, remedy="leave it out of the config", wire=wire)
        return None

    def _finding(
        self,
        why: RuleReason,
        consequence: Consequence,
        *,
        observed: str,
        expected: str,
        facts: Mapping[str, FactValue] | None = None,
    ) -> Evidence:
        model, wire = self.model, why.wire
        file = model.config_path
        return Evidence(
            code=f"TRITON-{why.rule}" if why.rule else REHEARSAL_CODE,
            kind=why.kind,
            severity=consequence.severity,
            subject=f"{model.name}: {wire.name}" if wire is not None else model.name,
            observed=observed,
            expected=expected,
            message=why.words,
            source=FileSource(file=file, line=wire.line if wire is not None else None) if file else None,
            facts={
                "consequence": consequence.value,
                "release": model.release.name,
                "remedy": why.remedy,
                "model": model.name,
                "rule": TITLES.get(
                    why.kind.removeprefix("rehearsed-"), "the server's answers are not the plain call's"
                ),
                "rehearsed": True,
                "run": self.outcome.id,
                **(facts or {}),
            },
        )
