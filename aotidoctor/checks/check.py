"""Define the ``Check`` record and ``Finder``, the short constructors by which its function reports a finding.

A check is a value, not a class to subclass: a code, a name, the cause it can establish, and one pure function from a
``Case`` to findings. Its module docstring is its manual page. The name says the fault, never the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, Maker, NotChecked, Severity
from aotidoctor.model.record import record

# What a check yields: its findings, and why it could not look, which counts if there are none. Some return one at most.
Observations = Iterable[Evidence | NotChecked]
Findings = Observations | Evidence | NotChecked | None
# A statement of this kind may hold any fact.
ANY = "statement"
# The stage of a check by the second word of its code.
_STAGES = {
    "ART": "artifact",
    "HOST": "host",
    "IN": "inputs",
    "LOAD": "load",
    "OUT": "output",
    "PTE": "load",
    "REF": "output",
}


@record
class Check:
    """One static check.

    ``cause`` is the slug that its error findings suggest. ``stage`` is ``artifact``, ``host``, ``load`` or ``inputs``.
    ``needs`` names the checks whose error findings make this one pointless: it is then reported as ``NotChecked``.
    ``run`` returns the findings (empty when all is well), or ``NotChecked`` when its subject is not there.
    ``facts`` are the kinds of facts that it reads from the wrapper (those of ``model.contract.Unread``).
    ``partly`` says which part of its subject was not read, and why.
    """

    code: str
    name: str
    cause: str
    stage: str
    needs: tuple[str, ...]
    run: Callable[[Case], Sequence[Evidence] | NotChecked]
    facts: tuple[str, ...] = ()
    partly: Callable[[Case], str | None] = lambda _case: None

    def overlooked(self, case: Case) -> NotChecked | None:
        """The parts that this check could not see, as they were not read or not understood; None when it saw all."""
        if part := self.partly(case):
            return self.unchecked(part)
        unread = case.contract.unread if case.contract is not None else ()
        missed = [item for item in unread if item.fact in self.facts or (self.facts and item.fact == ANY)]
        if not missed:
            return None
        kinds = " or ".join(dict.fromkeys("fact" if item.fact == ANY else item.fact for item in missed))
        count, first = sum(item.count for item in missed), missed[0]
        where = f"line {first.line}: " if first.line else ""
        statements = "1 statement" if count == 1 else f"{count} statements"
        reason = (
            f"{statements} of the wrapper could not be read: a {kinds} may be missing (first: {where}{first.example})"
        )
        return self.unchecked(reason)

    def unchecked(self, reason: str) -> NotChecked:
        """``NotChecked`` in the name of this check."""
        return NotChecked(code=self.code, name=self.name, reason=reason)


@record(kw_only=False)
class Finder:
    """Makes evidence for one check code: ``FIND = Finder("AD-IN-014", "input_stride")``, then ``FIND.error(...)``."""

    code: str
    name: str

    @property
    def error(self) -> Maker:
        """A finding that explains a failure."""
        return Maker(self.code, Severity.ERROR)

    @property
    def warn(self) -> Maker:
        """A finding that may matter, but by itself fails nothing."""
        return Maker(self.code, Severity.WARN)

    @property
    def info(self) -> Maker:
        """A note."""
        return Maker(self.code, Severity.INFO)

    def unchecked(self, reason: str) -> NotChecked:
        """``NotChecked`` with the reason why the check could not look."""
        return NotChecked(code=self.code, name=self.name, reason=reason)

    def check(
        self,
        run: Callable[[Case], Findings],
        *,
        cause: str = "",
        needs: tuple[str, ...] = (),
        facts: tuple[str, ...] = (),
        partly: Callable[[Case], str | None] = lambda _case: None,
    ) -> Check:
        """The check of this code and of the stage that the code names; ``cause`` is by default its name."""

        def collect(case: Case) -> Sequence[Evidence] | NotChecked:
            found = run(case)
            listed = [found] if isinstance(found, Evidence | NotChecked) else list(found or ())
            evidence = [item for item in listed if isinstance(item, Evidence)]
            return evidence or next((item for item in listed if isinstance(item, NotChecked)), evidence)

        return Check(
            code=self.code,
            name=self.name,
            cause=cause or self.name.replace("_", "-"),
            stage=_STAGES[self.code.split("-")[1]],
            needs=needs,
            run=collect,
            facts=facts,
            partly=partly,
        )
