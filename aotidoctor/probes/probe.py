"""Define the ``Probe`` record: a question to a child run, split into a pure plan and a pure reading.

``plan`` returns the child run that would answer (``Request``), an earlier run that already did (``Reuse``), or the
reason why there is no run (``NotChecked``): a run is only made if its answer can change the diagnosis. A question
about several similar things has one of these for each, as a tuple; each run is read by itself, and its outcome is
stored under the name in its request. ``read`` turns an outcome into evidence. Neither does any I/O, so a probe is
tested with recorded outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, Maker, NotChecked, RunSource, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome, Request

# Codes of the comparisons without a run of the model.
STATIC = ("AD-IN", "AD-ART", "AD-HOST", "AD-LOAD")


@record
class Reuse:
    """The outcome of the probe called ``probe`` answers this question too."""

    probe: str


@record
class History:
    """Everything known so far: outcomes by probe name, in order, and all findings (static ones included)."""

    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    findings: tuple[Evidence, ...] = ()

    @property
    def plain(self) -> Outcome | None:
        """The outcome of the plain run; None if there was none."""
        return self.outcomes.get("plain_run")

    def of(self, code: str, *kinds: str) -> tuple[Evidence, ...]:
        """The evidence with this code (and one of these kinds)."""
        return tuple(item for item in self.findings if item.code == code and (not kinds or item.kind in kinds))

    def has(self, code: str, *kinds: str) -> bool:
        """True when there is any such evidence."""
        return bool(self.of(code, *kinds))

    def hangs_in_operator(self) -> bool:
        """True when the call trace saw the call hang in a custom operator: another run would only wait for it again."""
        return any(item.facts.get("ending") == "timed-out" for item in self.of("AD-RUN-024", "custom"))

    def static_errors(self) -> tuple[Evidence, ...]:
        """Error findings of a comparison of inputs, weights, package and host, which explain what runs show."""
        return self.errors(*STATIC)

    def errors(self, *prefixes: str) -> tuple[Evidence, ...]:
        """Error findings whose code starts with one of the prefixes."""
        return tuple(f for f in self.findings if f.severity is Severity.ERROR and f.code.startswith(prefixes))


Plan = Request | Reuse | NotChecked | tuple[Request | Reuse | NotChecked, ...]


@record
class Probe:
    """One probe. ``asks`` is its question, ``asked_when`` one line for ``--plan``.

    ``left_out`` gives what a run of it did not look at. ``revise`` gives the earlier findings as they are after the
    run. ``thread_checks`` are checks to repeat when the run shows another number of threads than was assumed. Only
    built-in probes have these three.
    """

    code: str
    name: str
    asks: str
    asked_when: str
    plan: Callable[[Case, History], Plan]
    read: Callable[[Case, History, Outcome], Sequence[Evidence]]
    left_out: Callable[[Outcome], Sequence[NotChecked]] = lambda _outcome: ()
    revise: Callable[[Sequence[Evidence], Outcome], list[Evidence]] = lambda findings, _outcome: list(findings)
    thread_checks: tuple[str, ...] = ()


def succeeded(outcome: Outcome | None) -> bool:
    """Whether there was such a run, and it succeeded."""
    return outcome is not None and outcome.succeeded


@record(kw_only=False)
class RunFinder:
    """Makes the evidence of one probe, from its code, its name and the page at the head of its module.

    ``FIND.error(outcome)("grows", subject, observed=..., expected=...)`` points at the child run.
    """

    code: str
    name: str
    page: str

    def at(self, severity: Severity, outcome: Outcome, stream: str = "result") -> Maker:
        """Findings of this severity, from one stream of a child run."""
        return Maker(self.code, severity, RunSource(run=outcome.id, stream=stream))

    def error(self, outcome: Outcome, stream: str = "result") -> Maker:
        """Findings that explain a failure."""
        return self.at(Severity.ERROR, outcome, stream)

    def warn(self, outcome: Outcome, stream: str = "result") -> Maker:
        """Findings that may matter, but by themselves fail nothing."""
        return self.at(Severity.WARN, outcome, stream)

    def info(self, outcome: Outcome, stream: str = "result") -> Maker:
        """Notes."""
        return self.at(Severity.INFO, outcome, stream)

    def unchecked(self, reason: str, *, moot: bool = True) -> NotChecked:
        """``NotChecked`` with the reason why the probe does not run. Not ``moot``: the user can make it run."""
        return unasked(self.code, self.name, reason, moot=moot)

    def probe(
        self,
        plan: Callable[[Case, History], Plan],
        read: Callable[[Case, History, Outcome], Sequence[Evidence]],
        asked_when: str,
    ) -> Probe:
        """The probe; its question is the title of its page."""
        title = self.page.partition("\n")[0]
        asks = title[:1].lower() + title[1:]
        return Probe(code=self.code, name=self.name, asks=asks, asked_when=asked_when, plan=plan, read=read)


def unasked(code: str, name: str, reason: str, *, moot: bool = True) -> NotChecked:
    """``NotChecked`` with the reason why the probe does not run. Not ``moot``: the user can make it run."""
    return NotChecked(code=code, name=name, reason=reason, moot=moot)


def evidence(
    code: str,
    kind: str,
    severity: Severity,
    outcome: Outcome,
    *,
    subject: str | None = None,
    observed: str,
    expected: str,
    message: str = "",
    stream: str = "result",
    facts: Mapping[str, FactValue] | None = None,
) -> Evidence:
    """Evidence that points at a child run."""
    maker = RunFinder(code, "", "").at(severity, outcome, stream)
    return maker(kind, subject, observed=observed, expected=expected, message=message, facts=facts)
