"""Which step of the compiler produces the wrong numbers?

What it does
    Compiles the exported program again and again with part of the compiler turned off by its own switch
    (TORCH_BISECT_BACKEND, TORCH_BISECT_SUBSYSTEM, TORCH_BISECT_MAX), first each stage as a whole, from the last to the
    first, then by halves within the stage whose removal corrects the numbers, until one lowering, decomposition or
    graph pass is left. Every answer is kept below $XDG_CACHE_HOME/aotidoctor, so that the next call continues where
    this one stopped.

Why it matters
    A report to the compiler's authors needs the operator, and the step number is a workaround until it is fixed.

Example
    aten.exp.default: observed wrong with lowering 3 of 10 on, right with it disabled, expected right numbers

When it is wrong
    A lowering named here may only expose a fault elsewhere: without it, its neighbours are also compiled differently.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.probe import History, RunFinder
from aotidoctor.probes.recompiled import CODE as RECOMPILED
from aotidoctor.probes.recompiled import COMPARISON, compile_request, read_compile

CODE, NAME = "AD-RUN-018", "compiler_bisect"
FIND = RunFinder(CODE, NAME, __doc__)
WORDS = {
    "lowerings": "lowering",
    "decomposition": "decomposition",
    "post_grad_passes": "post-grad pass",
    "joint_graph_passes": "joint-graph pass",
    "pre_grad_passes": "pre-grad pass",
    "passes": "passes of the graph",
}


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a compile with part of the compiler disabled (the search chooses it) if there is time for many compiles."""
    if not history.has(RECOMPILED, "differs"):
        return FIND.unchecked("the compiler of this host was not found to produce the wrong numbers")
    if not case.options.localize and case.options.budget is None:
        seconds = next((item.facts.get("bisect_seconds") for item in history.of(RECOMPILED)), None)
        estimate = f", in about {seconds:.0f} s" if isinstance(seconds, float) else ""
        return FIND.unchecked(f"this takes many compiles: `{_localize_command(case)}` runs them{estimate}")
    return compile_request(case, NAME, "part of the compiler disabled", provenance=False)


def _localize_command(case: Case) -> str:
    words = ["aotidoctor", "localize", case.artifact.path]
    words += ["--inputs", case.inputs_path] if case.inputs_path else []
    words += ["--reference", case.options.reference] if case.options.reference else []
    words += ["--setup", case.options.setup] if case.options.setup else []
    return shlex.join(words)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """The finding of a failed compile of the search; the search itself makes the other findings."""
    return [read_compile(case, outcome)]


def faulty_step_evidence(outcome: Outcome, facts: Mapping[str, FactValue]) -> Evidence:
    """The finding for the wrong step. ``outcome`` is the last run of the search."""
    word = WORDS.get(str(facts["subsystem"]), str(facts["subsystem"]))
    return FIND.error(outcome)(
        "found",
        str(facts["name"]),
        observed=f"wrong with {word} {facts['number']} of {facts['steps']} on, right with it disabled",
        expected="right numbers with all of them on",
        facts={**facts, "word": word},
    )


def wrong_kernel_evidence(case: Case, history: History, outcome: Outcome) -> list[Evidence]:
    """The finding where only the compiler is left: the package made here has the same wrong bits.

    The reference has the values of a float64 run, the package has not, and no custom operator is in between. Which
    step of the compiler is wrong is not known.
    """
    judged = next((item for item in history.of(COMPARISON) if item.facts.get("verdict") == "package-wrong"), None)
    places = history.of("AD-RUN-016", "diverges")
    custom = case.contract is None or case.contract.custom_ops
    if judged is None or custom or not all(item.facts.get("certain") for item in places):
        return []
    return [
        FIND.error(outcome)(
            "kernel",
            places[0].subject if places else judged.subject,
            observed=f"{judged.observed}; the same bits when compiled here",
            expected="the numbers of the exported program",
            facts={
                "workaround": "use other operators in its place, or another release (not tried)",
                "command": f"{_localize_command(case)}   # names the lowering, decomposition or pass",
            },
        )
    ]


def dtypes_request(case: Case) -> Request:
    """The question which operator gets another dtype from the compiler: it lowers the program and compiles nothing."""
    request = compile_request(case, NAME, "the dtypes that the compiler gives to each operator")
    return replace(request, job="lowered_dtypes")


def wrong_dtype_evidence(outcome: Outcome) -> list[Evidence]:
    """The finding for the first operator that the compiler gives another dtype; none where it gives no other."""
    wrong = outcome.result.get("wrong")
    if not isinstance(wrong, dict):
        return []
    facts: dict[str, FactValue] = {key: str(value) for key, value in wrong.items() if value is not None}
    operator, expected = str(facts["operator"]), str(facts["expected"])
    line, name = facts.get("where", "in forward"), operator.split(".")[1]
    # A cast of the result alone does not help: export drops a cast to the dtype that a tensor has already.
    given = "x != 0" if facts.get("dtype") == "bool" else "x.to(another_dtype)"
    return [
        FIND.error(outcome)(
            "dtype",
            operator,
            observed=f"its {facts['stage']} gives {facts['dtype']}, the operator {expected}",
            expected=expected,
            facts={
                **facts,
                "workaround": f"give it another dtype in the model and cast the result, `{name}({given}, ...)"
                f".to(torch.{expected})`, and export again",
                "command": f"out = torch.{name}({given}, ...).to(torch.{expected})   # {line}",
            },
        )
    ]


def not_found_evidence(outcome: Outcome, tried: Sequence[str], failed: Sequence[str], runs: int) -> Evidence:
    """The finding that disabling no stage removes the difference."""
    cannot = f"; cannot be disabled: {', '.join(failed)}" if failed else ""
    return FIND.info(outcome)(
        "not-found",
        None,
        observed=f"wrong with each stage off ({', '.join(tried) or 'none could be tried'}){cannot}",
        expected="a compiler stage that removes the difference when it is disabled",
        facts={"tried": tuple(tried), "cannot": tuple(failed), "runs": runs},
    )


def unfinished_evidence(outcome: Outcome, question: str, done: int, of: int, seconds: float) -> Evidence:
    """The finding of a search that ran out of time. Its answers are stored."""
    return FIND.info(outcome)(
        "unfinished",
        None,
        observed=f"{done} of about {of} questions answered, next {question}: about {seconds:.0f} s more",
        expected="the step that produces the wrong numbers; the same command resumes from here",
        facts={"done": done, "of": of, "seconds": round(seconds, 1), "next": question},
    )


PROBE = FIND.probe(
    plan, read, "when the compiler of this host produces the same wrong numbers and --budget or localize allows time"
)
