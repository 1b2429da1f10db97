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
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked
from aotidoctor.model.jobs import Recompile, change_fields
from aotidoctor.model.record import JsonObject
from aotidoctor.model.report import compile_again
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import call_outputs, device_of, run_of, same_outputs, user_code
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-017", "recompiled"
FIND = RunFinder(CODE, NAME, __doc__)
COMPARISON = "AD-RUN-011"
OTHER_TYPES = ("structure", "dtype")
WRONG = ("differs", "nan", *OTHER_TYPES)
REMEDY = "Compile the exported program again on this host: that package is right. Then find out how this one was built."
COMMAND = compile_again("exported.pt2")
# Each of these explains numbers that differ from the reference's.
EXPLAINED = (
    ("AD-RUN-002", "differs"),
    ("AD-RUN-009", "depends"),
    ("AD-RUN-015", "fake-kernel"),
    (COMPARISON, "weights"),
)
# Large models compile for minutes; --budget sets a lower limit.
COMPILE_TIMEOUT_S = 1800.0
# Kernels for a GPU that are tuned again add in a different order: their numbers show nothing about this package.
NO_GPU = "numbers are compared with a package compiled again only for the CPU: for a GPU the kernels are tuned again"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan the compile if the package is wrong and only its code can be the reason."""
    explained = explanation_of(history)
    if case.options.reference is None:
        reason = "no --reference was given"
    elif case.reference is None:
        reason = "the reference is not an exported program: there is nothing to compile"
    elif not history.has(COMPARISON, *WRONG):
        reason = "the package was not found to differ from the reference"
    elif device_of(case) != "cpu":
        reason = NO_GPU
    elif explained is not None:
        reason = f"{explained} explains wrong numbers already"
    else:
        return compile_request(case, NAME, "the same program, compiled here")
    return FIND.unchecked(reason)


def explanation_of(history: History) -> str | None:
    """The code of what explains wrong numbers already."""
    static = history.static_errors()
    return static[0].code if static else next((code for code, kind in EXPLAINED if history.has(code, kind)), None)


def compile_of(request: Request) -> Recompile:
    """The compile of a request of the job ``recompile``."""
    payload = request.payload
    return payload if isinstance(payload, Recompile) else Recompile(reference="", config=None)


def compile_request(case: Case, probe: str, purpose: str, **changes: object) -> Request:
    """A compile of the reference with the settings that the package shows. The caller adds the target path."""
    payload = Recompile(
        reference=case.options.reference or "", code=user_code(case), config=settings_of(case), provenance=True
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
    """The request to compare ``package``, compiled here, with the reference in the same way as this package."""
    compared = history.outcomes["reference"]
    payload = replace(run_of(compared), package=package, kind="aoti-package", model_name="model")
    return replace(compared.request, probe=probe, payload=payload, purpose=purpose)


def verdict_of(outcome: Outcome) -> bool | None:
    """Whether a run agrees with its reference within its dtype's precision; None without a comparison."""
    compared = read_comparison(outcome) if succeeded(outcome) else ()
    return all(item.verdict in FINE for item in compared) if compared else None


def read_compile(case: Case, outcome: Outcome) -> Evidence:
    """The finding of a compile that made no package."""
    ending = read_ending(CODE, case, outcome)
    text = ending.observed
    if outcome.error is not None:
        lines = [line.strip() for line in outcome.error.message.splitlines() if line.strip()]
        line = next((line for line in lines if "rror" in line), lines[0] if lines else "")
        text = f"{outcome.error.type}: {line[:300]}"
    return FIND.warn(outcome)(
        "failed",
        None,
        observed=f"the exported program does not compile here: {text}"[:400],
        expected="a package",
        facts={"stage": outcome.stage, "error": text[:300]},
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: agrees, differs or unavailable."""
    return [read_with_facts(history, outcome, {})]


def read_with_facts(history: History, outcome: Outcome, facts: Mapping[str, FactValue]) -> Evidence:
    """One finding, with facts of the two packages' code."""
    agrees = verdict_of(outcome)
    if agrees is None:
        why = f"{'the reference returned nothing' if succeeded(outcome) else 'it returned no outputs'} to compare"
        return FIND.warn(outcome)("unavailable", None, observed=why, expected="a comparison", facts=facts)
    if agrees:
        difference = f", with different code: {facts['first_difference']}" if facts.get("first_difference") else ""
        if facts.get("same_sources") is True:
            difference = ", from the same generated code: a different C++ compiler, or a damaged package"
        elif facts.get("same_kernels") is False:
            difference = f", with different kernels: {facts.get('first_difference')}"
        return FIND.warn(outcome)(
            "agrees",
            next((item.subject for item in history.of(COMPARISON)), None),
            observed=f"right when compiled here{difference}",
            expected="the same numbers as this package",
            facts={**facts, "remedy": REMEDY, "command": COMMAND},
        )
    compared = read_comparison(outcome)
    worst = max((item.max_abs or 0.0 for item in compared), default=0.0)
    types = next((item for item in compared if item.dtype != item.reference_dtype), None)
    how = f"max |difference| {worst:.3g}" if types is None else f"{types.dtype}, not {types.reference_dtype}"
    plain = history.plain
    same = plain is not None and same_outputs(call_outputs(plain, 0), call_outputs(outcome, 0))
    return FIND.warn(outcome)(
        "differs",
        None,
        observed=f"also wrong when compiled here: {how}{', the same bits' if same else ''}",
        expected="the reference's outputs",
        facts={**facts, "max_abs_diff": worst, "same_outputs": same},
    )


PROBE = FIND.probe(
    plan, read, "when the package differs from an exported program and no input, weight or chance explains it"
)
