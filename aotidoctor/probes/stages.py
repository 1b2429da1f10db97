"""Which stage between the model and its package breaks it?

What it does
    Calls the model of --model on the inputs, its exported program, and that program after the compiler's
    decompositions, each in a child, on the same inputs and weights, and compares each with the stage before. A float64
    run of the stage before decides whether a difference is more than rounding. Where the program differs from the
    model, or there is none, the model is exported here as well, strictly and not. Of a stage that differs, the first
    operator that gives other values is named. Nothing is compiled.

Why it matters
    Whose fault it is decides what helps: the model's own error, a Python branch that export fixed, a decomposition, or
    the code that was compiled. The stage before is the proof that the fault is not older.

Example
    aten.gelu.default: observed decomposed differs from exported, result: max |difference| 0.0058, expected what
    exported computes

When it is wrong
    A model that is another one at each call (random numbers, a counter in Python) differs from its program by right.
    Weights of the model that differ from the program's are replaced by those. An export here has this call's sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.stages import (
    AGREES,
    DECOMPOSED,
    EAGER,
    EXPORTED,
    NOT_STRICT,
    OF_EXPORT,
    RAISES,
    STRICT,
    first_broken,
    known_stages,
    next_stage,
)
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.jobs import Stage, change_fields
from aotidoctor.model.localization import CustodyStage
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import inputs_source, reference_comparison, user_code
from aotidoctor.probes.probe import History, RunFinder
from aotidoctor.probes.recompiled import COMPARISON, WRONG, explanation_of
from aotidoctor.probes.reference import raised_evidence

CODE, NAME = "AD-RUN-038", "stages"
FIND = RunFinder(CODE, NAME, __doc__)
_OF_MODEL = (
    "The model itself raises, without export and compiler: correct the line that is named, or give it other inputs."
)
_SAME_MESSAGE = "model(*args, **kwargs)   # the same message"
_OWN_DECOMPOSITION = "program = program.run_decompositions({torch.ops.%s: your_own})"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan the first stage if a model was given, or the package is known to differ from its program."""
    if case.inputs is None and case.generated is None:
        return FIND.unchecked("there are no inputs")
    if case.options.model is None and case.options.reference is None:
        reason = (
            "model, export, decomposition, lowering and package could not be told apart: "
            "--model file.py:function and --reference exported.pt2 would do so"
        )
        # Inputs that do not fit explain themselves, and of a healthy run nobody asks whose fault it is.
        return FIND.unchecked(reason, moot=bool(history.static_errors()) or not history.errors("AD-RUN"))
    if case.options.model is None and not history.has(COMPARISON, *WRONG):
        return FIND.unchecked("the package was not found to differ from the reference, and there is no --model")
    if case.options.model is None and (explained := explanation_of(history)) is not None:
        return FIND.unchecked(f"{explained} explains wrong numbers already")
    return next_request(case, history) or FIND.unchecked("the reference is a function, which has no stages")


def next_request(case: Case, history: History, room: str | None = None) -> Request | None:
    """The request for the next stage; None where another one would add nothing.

    A program that is exported here is written to the folder ``room``.
    """
    asked = next_stage(
        known_stages(history.outcomes),
        has_model=case.options.model is not None,
        has_program=program_of(case) is not None,
    )
    if asked is None:
        return None
    request = stage_request(case, *asked)
    keep = f"{room}/exported.pt2" if room is not None and asked[0] in (NOT_STRICT, STRICT) else None
    return replace(request, payload=change_fields(request.payload, {"keep": keep}))


def stage_of(request: Request) -> str:
    """The stage that a request computes."""
    return request.payload.stage if isinstance(request.payload, Stage) else ""


def program_of(case: Case) -> str | None:
    """What may be the exported program of the case: an archive, or a function that makes one."""
    return case.options.reference if case.options.reference != case.options.model else None


def stage_request(case: Case, stage: str, before: str | None) -> Request:
    """The request to compute ``stage`` and hold it against ``before``."""
    options = case.options
    payload = Stage(
        code=user_code(case),
        stage=stage,
        before=before,
        model=options.model,
        program=program_of(case),
        inputs=inputs_source(case),
    )
    what = f"{stage} against {before}" if before is not None else f"the model by itself ({stage})"
    return Request(
        probe=NAME,
        job="stage",
        payload=payload,
        timeout=options.timeout,
        memory_limit=options.memory_limit,
        purpose=what,
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """The finding of all stages so far: the first that breaks it, else that all agree."""
    rows = [*known_stages(history.outcomes).values()]
    first = first_broken(rows)
    if first is None:
        done = ", ".join(row.name for row in rows if row.verdict == AGREES)
        if not done:
            return ()
        return [FIND.info(outcome)("agrees", None, observed=f"{done} agree", expected="agreement")]
    if first.name == EAGER:
        if history.has(COMPARISON, "raises"):
            return ()
        # A model that dies has no message.
        answer = reference_comparison(outcome) or {"error": first.observed}
        raised = raised_evidence(case, history, answer, outcome, who="the model itself")
        return [replace(raised, facts={**raised.facts, "remedy": _OF_MODEL, "command": _SAME_MESSAGE})]
    # A program that PyTorch cannot decompose has a finding of its own.
    if first.verdict == RAISES and (first.name != EXPORTED or history.has(COMPARISON, "raises")):
        return ()
    kind = "exported" if first.name in OF_EXPORT else DECOMPOSED
    facts: dict[str, FactValue] = {
        "stage": first.name,
        "against": first.against,
        "operator": first.operator,
        "where": first.where,
        "name": first.operator,
    }
    if kind == "exported":
        facts |= _export_facts(rows)
    else:
        own = _OWN_DECOMPOSITION % (first.operator or "aten.OPERATOR.default")
        facts |= {"workaround": f"{own}, then compile", "command": f"{own}   # before compiling it"}
    at = f" ({first.where})" if first.where else ""
    return [
        FIND.error(outcome)(
            kind,
            first.operator,
            observed=f"{first.name} {first.verdict}{at}: {first.observed}",
            expected=f"what {first.against} computes",
            facts={key: value for key, value in facts.items() if value is not None},
        )
    ]


def _export_facts(rows: Sequence[CustodyStage]) -> dict[str, FactValue]:
    """What helps where the program is not what the model computes, as far as it was tried."""
    here = {row.name: row for row in rows}
    agreeing = next((name for name in (NOT_STRICT, STRICT) if name in here and here[name].verdict == AGREES), None)
    if agreeing is None:
        return {
            "remedy": "Export itself changes it: find the line that depends on Python values or on "
            "torch.compiler.is_exporting(), and write it with tensors (torch.cond, torch.where). Tried: exported here, "
            f"{' and '.join(name for name in (NOT_STRICT, STRICT) if name in here)}, it does not agree.",
            "command": "torch.cond(pred, true_fn, false_fn, operands)   # in forward, in place of the Python branch",
        }
    return {
        "remedy": f"Export this model again. Tried: exported here ({agreeing}, these sizes) it agrees with the model. "
        "The program has other Python values (a branch that export fixed), or is of another version of the model.",
        "command": f"ep = torch.export.export(model, args, strict={agreeing == STRICT})",
        "tried": True,
    }


_CAUSES = {"exported": "export-specialization", DECOMPOSED: "codegen-bug"}


def proof(findings: Sequence[Evidence]) -> dict[str, str]:
    """Cause proven by its stage and the one before, with how; empty without one."""
    item = _first_finding(findings)
    if item is None:
        return {}
    before, stage = item.facts["against"], item.facts["stage"]
    return {_CAUSES[item.kind]: f"{before} is right and {stage} is not, on the same inputs and weights"}


def untried_causes(findings: Sequence[Evidence]) -> tuple[str, ...]:
    """The cause that is proven while its remedy was not tried; empty where it was."""
    item = _first_finding(findings)
    return () if item is None or item.facts.get("tried") else (_CAUSES[item.kind],)


def _first_finding(findings: Sequence[Evidence]) -> Evidence | None:
    return next((item for item in findings if item.code == CODE and item.kind in _CAUSES), None)


PROBE = FIND.probe(plan, read, "when --model was given, or the package differs from its exported program")
