"""Read the stages between a model and its package, choose the next one to look at, and name the first that breaks it.

``eager`` is the model and ``exported`` its program; ``not strict`` and ``strict`` are exported here, where there is no
program or that one differs. ``decomposed`` is the program after Inductor's decompositions, ``lowered`` compiled here,
``without passes`` and ``one step off`` compiled here without those of the graph, or without the step that the bisection
found; then comes the ``package``. A stage is held
against the one before; the cheapest come first, and what comes after the first that breaks it is not looked at. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.case import user_function
from aotidoctor.model.evidence import Evidence, RunSource, Severity
from aotidoctor.model.jobs import Run, Stage
from aotidoctor.model.localization import CustodyStage
from aotidoctor.model.record import as_object
from aotidoctor.model.run import Exited, Outcome, Signalled

EAGER, EXPORTED, NOT_STRICT, STRICT, DECOMPOSED = "eager", "exported", "not strict", "strict", "decomposed"
LOWERED, NO_PASSES, STEP_OFF, PACKAGE = "lowered", "without passes", "one step off", "package"
AGREES, DIFFERS, RAISES, UNDECIDED, UNSEEN = "agrees", "differs", "raises", "undecided", "not looked at"
BROKEN = (DIFFERS, RAISES)
OF_EXPORT = (EXPORTED, NOT_STRICT, STRICT)
# The package compiled again, the bisection of the compiler, and the run that compared the package.
_RECOMPILED, _BISECTED, _COMPARED, _REFERENCE = "AD-RUN-017", "AD-RUN-018", "AD-RUN-011", "reference"


def next_stage(
    known: Mapping[str, CustodyStage], *, has_model: bool, has_program: bool
) -> tuple[str, str | None] | None:
    """The next stage and the one that it is held against; None where another one would add nothing."""
    if has_model and EAGER not in known:
        return EAGER, None
    if has_model and known[EAGER].verdict != AGREES:
        return None
    if has_model and has_program and EXPORTED not in known:
        return EXPORTED, EAGER
    if has_model and not (has_program and known[EXPORTED].verdict == AGREES):
        # Exported here as well: it tells a fault of export from a program of another model.
        if NOT_STRICT not in known:
            return NOT_STRICT, EAGER
        if known[NOT_STRICT].verdict != AGREES and STRICT not in known:
            return STRICT, EAGER
    if DECOMPOSED in known or (EXPORTED in known and known[EXPORTED].verdict in BROKEN):
        return None
    agreeing = [name for name in OF_EXPORT if name in known and known[name].verdict == AGREES]
    source = agreeing[0] if agreeing else EXPORTED if has_program and not has_model else None
    return None if source is None else (DECOMPOSED, source)


def outcome_name(stage: str) -> str:
    """The name under which a session has the run of a stage."""
    return f"stage {stage}"


def known_stages(outcomes: Mapping[str, Outcome]) -> dict[str, CustodyStage]:
    """The stages that child runs looked at."""
    names = (EAGER, *OF_EXPORT, DECOMPOSED)
    return {name: read_stage(name, outcomes[outcome_name(name)]) for name in names if outcome_name(name) in outcomes}


def read_stage(name: str, outcome: Outcome) -> CustodyStage:
    """One stage from its child run."""
    against = _before(outcome)
    facts = as_object(outcome.result.get("reference"))
    operator, where, instead = (_text(outcome.result.get(key)) for key in ("operator", "where", "instead"))
    row = CustodyStage(name=name, verdict=UNSEEN, against=against, run=outcome.id, operator=operator, where=where)
    if facts.get("error"):
        text = str(facts["error"]).strip().partition("\n")[0][:300]
        operator = _text(as_object(facts.get("refused")).get("operator"))
        return replace(row, verdict=RAISES, observed=text, where=_text(facts.get("where")), operator=operator)
    if facts.get("unavailable"):
        return replace(row, observed=str(facts["unavailable"])[:300])
    if not facts:
        return _unfinished(row, outcome)
    if against is None:
        return replace(row, verdict=AGREES, observed="returns")
    compared = read_comparison(outcome)
    wrong = [item for item in compared if item.verdict not in FINE]
    worst = max(wrong or compared, key=lambda item: item.max_abs or 0.0, default=None)
    if worst is None:
        return replace(row, verdict=AGREES, observed="no outputs")
    size = f"max |difference| {worst.max_abs or 0.0:.3g}"
    if not wrong:
        return replace(row, verdict=AGREES, observed=size)
    if all(item.verdict == "unknown" for item in wrong):
        size = size if worst.shape == worst.reference_shape else f"shape {worst.shape} for {worst.reference_shape}"
        return replace(row, verdict=UNDECIDED, observed=f"{worst.path}: {size}; {worst.reason or 'no float64 run'}")
    what = size if worst.verdict in ("package-wrong", "unknown") else f"another {worst.verdict}"
    other = f"; {instead} in its place" if instead is not None else ""
    return replace(row, verdict=DIFFERS, observed=f"{worst.path}: {what}{other}")


def _before(outcome: Outcome) -> str | None:
    payload = outcome.request.payload
    if isinstance(payload, Stage):
        return payload.before
    function = isinstance(payload, Run) and user_function(payload.reference or "") is not None
    return EAGER if function else EXPORTED


def _unfinished(row: CustodyStage, outcome: Outcome) -> CustodyStage:
    """The verdict of a run without an answer: only its death in the stage itself is the stage's."""
    if isinstance(outcome.ending, Signalled) and outcome.stage == row.name:
        return replace(row, verdict=RAISES, observed=f"killed by {outcome.ending.name}")
    if outcome.error is not None:
        why = f"{outcome.error.type}: {outcome.error.message}".partition("\n")[0][:300]
    else:
        why = "it ended" if isinstance(outcome.ending, Exited) else "no answer in time"
    return replace(row, observed=f"{why} ({outcome.stage})")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def custody(findings: Sequence[Evidence], outcomes: Mapping[str, Outcome]) -> tuple[CustodyStage, ...]:
    """All stages in order, the first that breaks it marked; empty where none was looked at."""
    known = known_stages(outcomes)
    if not known:
        return ()
    rows = [known.get(EAGER) or _unseen(EAGER, "no --model file.py:function was given")]
    stopped = EAGER in known and rows[0].verdict != AGREES
    exported = [known[name] for name in OF_EXPORT if name in known]
    if not exported:
        why = f"{EAGER} did not return" if stopped else "there is no model to hold it against"
        exported = [_unseen(EXPORTED, why)]
    rows += exported
    why = f"{EAGER} did not return" if stopped else "the stage before breaks it"
    rows += [known.get(DECOMPOSED) or _unseen(DECOMPOSED, why), *_compiled_stages(findings, outcomes)]
    first = first_broken(rows)
    return tuple(replace(row, first=True) if row is first else row for row in rows)


def first_broken(rows: Sequence[CustodyStage]) -> CustodyStage | None:
    """The first stage that breaks it.

    An export here is none where there is a program, or the other way to export agrees, or torch refuses to export it.
    """
    here = [row for row in rows if row.name in (NOT_STRICT, STRICT)]
    given = any(row.name == EXPORTED and row.run is not None for row in rows)
    excused = given or any(row.verdict == AGREES for row in here)
    broken = (row for row in rows if row.verdict in BROKEN)
    return next((row for row in broken if row not in here or (row.verdict == DIFFERS and not excused)), None)


def _compiled_stages(findings: Sequence[Evidence], outcomes: Mapping[str, Outcome]) -> list[CustodyStage]:
    """The stages behind the program, from the runs that compiled it again, bisected it, and compared the package."""
    again = next((item for item in findings if item.code == _RECOMPILED), None)
    weights = next((item for item in findings if (item.code, item.kind) == (_COMPARED, "weights")), None)
    step = next((item for item in findings if (item.code, item.kind) == (_BISECTED, "found")), None)
    if again is None or again.kind not in (*BROKEN, AGREES):
        why = again.observed if again is not None else "it is compiled again only where the package differs from it"
        rows = [_unseen(LOWERED, why)]
    else:
        run = again.source.run if isinstance(again.source, RunSource) else None
        rows = [CustodyStage(name=LOWERED, verdict=again.kind, against=EXPORTED, observed=again.observed, run=run)]
    without = next((item.facts.get("without_passes") for item in findings if item.code == _BISECTED), None)
    if rows[0].verdict == DIFFERS:
        tells = "the passes are wrong" if without == "good" else "the passes are right, a lowering is not"
        seen = CustodyStage(
            name=NO_PASSES, verdict=AGREES if without == "good" else DIFFERS, against=EXPORTED, observed=tells
        )
        rows.append(
            seen if without is not None else _unseen(NO_PASSES, "it takes another compile: aotidoctor localize")
        )
    if step is not None:
        number, steps, word, run_ = (step.facts.get(key) for key in ("number", "steps", "word", "good_run"))
        off = f"{word} {number} of {steps} off"
        rows[0] = replace(rows[0], operator=step.subject, where=_text(step.facts.get("where")))
        rows.append(CustodyStage(name=STEP_OFF, verdict=AGREES, against=EXPORTED, observed=off, run=_text(run_)))
    compared = outcomes.get(_REFERENCE)
    package = read_stage(PACKAGE, compared) if compared is not None else _unseen(PACKAGE, "none was compared")
    if weights is not None and weights.severity is Severity.ERROR:
        package = replace(package, verdict=DIFFERS, observed=weights.observed)
    return [*rows, package]


def _unseen(name: str, why: str) -> CustodyStage:
    return CustodyStage(name=name, verdict=UNSEEN, observed=why)
