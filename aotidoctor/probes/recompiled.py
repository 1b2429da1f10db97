"""Does the compiler of this host produce the same wrong numbers from the exported program?

What it does
    Compiles the exported program given with --reference again, in a child, with the compiler and the torch of this
    host, runs that package on the same inputs and compares it with the exported program. It also compares the generated
    code of both packages. Packages are kept by content below $XDG_CACHE_HOME/aotidoctor.

Why it matters
    If the new package is right, this one was made by a different compiler, with different settings or from a different
    program, or was damaged afterwards: build it again. If the new package is also wrong, the fault is in the compiler
    of this host, where it can be located.

Example
    result: observed also wrong when compiled here: max |difference| 0.013, expected the reference's outputs

When it is wrong
    Settings of the original compile that the package does not record (max_autotune, freezing) are those of this
    environment. If kernel names differ, findings about the new package need not apply to this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.localize.comparison import FINE, read_comparison
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.jobs import Recompile, change_fields
from aotidoctor.model.record import JsonObject
from aotidoctor.model.report import compile_again
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import call_outputs, device_of, run_of, same_outputs, user_code
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, evidence, succeeded, unasked

CODE, NAME = "AD-RUN-017", "recompiled"
COMPARISON = "AD-RUN-011"
WRONG = ("differs", "nan", "structure", "dtype")
REMEDY = "Compile the exported program again on this host: that package is right. Then find out how this one was built."
COMMAND = compile_again("exported.pt2")
# Each of these accounts for other numbers than the reference's.
EXPLAINED = (
    ("AD-RUN-002", "differs"),
    ("AD-RUN-009", "depends"),
    ("AD-RUN-015", "fake-kernel"),
    (COMPARISON, "weights"),
)
# Big models compile for minutes; --budget bounds it for those who want it bounded.
COMPILE_TIMEOUT_S = 1800.0
# Tuned anew, kernels for a GPU add up in another order: other numbers say nothing of this package.
NO_GPU = "numbers are compared with a package compiled again only for the CPU: for a GPU the kernels are tuned again"


def plan(case: Case, history: History) -> Request | NotChecked:
    """The compile, when the package is wrong and nothing but its code can be the reason."""
    reason = _why_not(case, history)
    return unasked(CODE, NAME, reason) if reason else compile_request(case, NAME, "the same program, compiled here")


def _why_not(case: Case, history: History) -> str | None:
    if case.options.reference is None:
        return "no --reference was given"
    if case.reference is None:
        return "the reference is not an exported program: there is nothing to compile"
    if not history.has(COMPARISON, *WRONG):
        return "the package was not found to differ from the reference"
    if device_of(case) != "cpu":
        return NO_GPU
    static = history.static_errors()
    if static:
        return f"{static[0].code} explains wrong numbers already"
    found = next((code for code, kind in EXPLAINED if history.has(code, kind)), None)
    return f"{found} explains wrong numbers already" if found else None


def compile_of(request: Request) -> Recompile:
    """The compile that a request of the job ``recompile`` asks for."""
    payload = request.payload
    return payload if isinstance(payload, Recompile) else Recompile(reference="", config=None)


def compile_request(case: Case, probe: str, purpose: str, **changes: object) -> Request:
    """A compile of the reference with the settings that the package tells. Where to is for the caller to add."""
    payload = Recompile(
        reference=case.options.reference or "",
        code=user_code(case),
        config=settings_of(case),
        provenance=True,
    )
    return Request(
        probe=probe,
        job="recompile",
        payload=change_fields(payload, changes),
        fresh=device_of(case) != "cpu",
        timeout=COMPILE_TIMEOUT_S,
        purpose=purpose,
    )


def settings_of(case: Case) -> JsonObject:
    """Options of the original compile, as far as the package shows them."""
    settings: JsonObject = {}
    sources = case.model.kernel_sources.values() if case.model is not None else ()
    if any("CppMicroGemm" in text or "micro_gemm" in text for text in sources):
        settings["max_autotune"] = True
    isa = {flag.lower() for flag in case.needs.isa}
    if "avx2" in isa and not any(flag.startswith("avx512") for flag in isa) and "avx512f" in case.host.cpu_flags:
        settings["cpp.simdlen"] = 256
    return settings


def comparison_request(history: History, probe: str, package: str, purpose: str) -> Request:
    """The comparison of this package with the reference, of another package that was compiled here."""
    asked = history.outcomes["reference"]
    payload = replace(run_of(asked), package=package, kind="aoti-package", model_name="model")
    return replace(asked.request, probe=probe, payload=payload, purpose=purpose)


def verdict_of(outcome: Outcome) -> bool | None:
    """Whether a run did what its reference does, as far as the dtype can; None when it did not get so far."""
    compared = read_comparison(outcome) if succeeded(outcome) else ()
    return all(item.verdict in FINE for item in compared) if compared else None


def read_compile(case: Case, outcome: Outcome) -> Evidence:
    """What a compile that gave no package shows."""
    ending = read_ending(CODE, case, outcome)
    told = ending.observed if outcome.error is None else f"{outcome.error.type}: {_last_line(outcome.error.message)}"
    return evidence(
        CODE,
        "failed",
        Severity.WARN,
        outcome,
        observed=f"the exported program does not compile here: {told}"[:400],
        expected="a package",
        facts={"stage": outcome.stage, "error": told[:300]},
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: agrees, differs or unavailable."""
    return [read_with(history, outcome, {})]


def read_with(history: History, outcome: Outcome, facts: Mapping[str, FactValue]) -> Evidence:
    """The same, with facts of the two packages' code."""
    agrees = verdict_of(outcome)
    if agrees is None:
        why = (
            "it returned no outputs to compare"
            if not succeeded(outcome)
            else "the reference returned nothing to compare"
        )
        return evidence(CODE, "unavailable", Severity.WARN, outcome, observed=why, expected="a comparison", facts=facts)
    if agrees:
        return evidence(
            CODE,
            "agrees",
            Severity.WARN,
            outcome,
            subject=next((item.subject for item in history.of(COMPARISON)), None),
            observed=f"right when compiled here{_difference_of_code(facts)}",
            expected="the same numbers as this package",
            facts={**facts, "remedy": REMEDY, "command": COMMAND},
        )
    worst = max((item.max_abs or 0.0 for item in read_comparison(outcome)), default=0.0)
    plain = history.plain
    same = plain is not None and same_outputs(call_outputs(plain, 0), call_outputs(outcome, 0))
    return evidence(
        CODE,
        "differs",
        Severity.WARN,
        outcome,
        observed=f"also wrong when compiled here: max |difference| {worst:.3g}{', the same bits' if same else ''}",
        expected="the reference's outputs",
        facts={**facts, "max_abs_diff": worst, "same_outputs": same},
    )


def _difference_of_code(facts: Mapping[str, FactValue]) -> str:
    if facts.get("same_sources") is True:
        return ", from the same generated code: a different C++ compiler, or a damaged package"
    if facts.get("same_kernels") is False:
        return f", with different kernels: {facts.get('first_difference')}"
    return f", with different code: {facts.get('first_difference')}" if facts.get("first_difference") else ""


def _last_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line), lines[0] if lines else "")[:300]


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="does the compiler of this host produce the same wrong numbers?",
    asked_when="when the package differs from an exported program and no input, weight or chance explains it",
    plan=plan,
    read=read,
)
