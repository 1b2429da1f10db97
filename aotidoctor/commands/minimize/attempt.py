"""One part of the program: cut out, compiled and called, each step in a child of its own; how it fails then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.answers import told
from aotidoctor.model.answers.made import PartCut
from aotidoctor.model.case import Case, Options
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.jobs import Cut
from aotidoctor.model.record import record
from aotidoctor.model.run import NotStarted, Outcome, Request
from aotidoctor.probes import recompiled
from aotidoctor.probes.payload import inputs_source, run_request, user_code
from aotidoctor.probes.probe import succeeded
from aotidoctor.probes.shrink import signature_of
from aotidoctor.triage import open_case
from aotidoctor.triage.chains.compile_cache import CompileCache
from aotidoctor.triage.session import Session

CUT_TIMEOUT_S = 300.0
# Names of generated kernels hold the operators that were fused: another part has others.
_KERNEL = re.compile(r"\b(?:cpp|triton)_\w+")
# Of ``shrink.signature_of``: kind, signal, type, symptom, kernel, operator, variable, words.
_COMPARED = (0, 1, 2, 3, 5)
_WORDS = 7
Manner = tuple[FactValue, ...]


@record
class Tried:
    """``manner`` is how it failed (None: it did not), ``problem`` why there was nothing to call."""

    manner: Manner | None = None
    problem: str | None = None
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    inputs: int = 0
    package: Path | None = None


class OutOfTimeError(Exception):
    """The budget is spent."""


def manner_of(case: Case, outcome: Outcome) -> Manner | None:
    """How a run failed, as far as a part of the program can fail alike; None where it did not."""
    found = signature_of(case, outcome)
    if found is not None:
        return (*(found[at] for at in _COMPARED), _KERNEL.sub("kernel", str(found[_WORDS])))
    if not succeeded(outcome):
        return None
    wrong = [item for item in read_comparison(outcome) if item.verdict not in FINE]
    kinds = {"nan" if item.nan_differs else "numbers" for item in wrong}
    return ("wrong", min(kinds, key=("nan", "numbers").index)) if kinds else None


@record
class Workshop:
    """What all attempts share. ``session`` is of the original case, and holds the runner and the deadline."""

    session: Session
    cache: CompileCache
    environ: Mapping[str, str]

    def whole(self) -> Manner | None:
        """How the package itself fails on its inputs."""
        case = self.session.case
        outcome = self._run(run_request(case, "minimize", "the unchanged package", **_asked(case.options.reference)))
        if isinstance(outcome.ending, NotStarted):
            raise OutOfTimeError(outcome.ending.reason)
        return manner_of(case, outcome)

    def attempt(self, names: Sequence[str] | None, room: Path) -> Tried:
        """The part of these operators (None: all), made in ``room``. Raises OutOfTimeError."""
        case = self.session.case
        payload = Cut(
            code=user_code(case),
            reference=case.options.reference or "",
            inputs=inputs_source(case),
            nodes=None if names is None else tuple(names),
            folder=str(room),
        )
        what = "the program" if names is None else f"{len(names)} operators"
        cut = self._run(
            Request(probe="minimize", job="cut", payload=payload, timeout=CUT_TIMEOUT_S, purpose=f"cut out {what}")
        )
        part = told(PartCut, cut.result)
        tried = Tried(operators=part.operators, targets=part.targets)
        if not succeeded(cut) or part.problem:
            return replace(tried, problem=part.problem or _why(cut))
        target = room / "model.pt2"
        program, cache = str(room / "exported.pt2"), str(self.cache.compiler)
        compiled = self._run(
            recompiled.compile_request(
                case, "minimize", f"compile {what}", reference=program, target=str(target), cache=cache
            )
        )
        if not succeeded(compiled):
            return replace(tried, problem=_why(compiled))
        tried = replace(tried, package=target, inputs=part.inputs)
        return replace(tried, manner=self.called(target, room / "sample.pt", room / "exported.pt2"))

    def called(self, package: Path, sample: Path, program: Path) -> Manner | None:
        """How a part fails."""
        options = replace(_plain(self.session.case.options), reference=str(program))
        case, _ = open_case.open_case(str(package), str(sample), options, self.environ)
        return manner_of(case, self._run(run_request(case, "minimize", "call it", **_asked(str(program)))))

    def _run(self, request: Request) -> Outcome:
        outcome = self.session.run(request)
        if outcome is None:
            raise OutOfTimeError(self.session.refusal())
        if outcome.request.timeout < request.timeout and not succeeded(outcome) and outcome.error is None:
            # What the budget ended says nothing of the part.
            raise OutOfTimeError("the time budget is spent")
        return outcome


def _plain(options: Options) -> Options:
    """Without what is about the original package."""
    return replace(options, model_name=None, weights=None, trust_pickle=False)


def _asked(reference: str | None) -> dict[str, object]:
    return {"calls": 1, "observe": ("outputs",), "reference": reference}


def _why(outcome: Outcome) -> str:
    words = f"{outcome.error.type}: {outcome.error.message}" if outcome.error is not None else "it did not finish"
    return f"{outcome.stage}: {' '.join(words.split())[:300]}"
