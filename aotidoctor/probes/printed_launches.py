"""Which launch is printed last before the fault, by a package compiled here that prints each of them?

What it does
    Compiles the exported program given with --reference again, on this host and for its GPU, with PyTorch's value
    printer at level 3 (AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=3: names of launches only), and makes the failing
    call in fresh interpreters, twice unchanged and twice with CUDA_LAUNCH_BLOCKING=1. It then runs once more with level
    2, which prints the arguments of the launch found (AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT).

Why it matters
    It shows a failing kernel if the package's own launches cannot be traced. Without blocking launches, the last
    printed line may be that of an innocent later kernel: both are reported, and only the line with blocking launches
    names a kernel. A package that does not fail when it is compiled here is also evidence.

Example:
    triton_poi_fused_addmm_relu_0: observed last launch printed with blocking launches, not returned (2 of 2 runs)

When it is wrong
    The kernels are tuned again, and printing slows the host: a race may disappear. Damage that a kernel does without a
    fault may break a later one. If the kernels have different names, nothing is concluded. The compiler tries kernels
    on the GPU: one that faults on every input already faults there, and nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.call_timeline import origin_of
from aotidoctor.localize.value_printer import launch_arguments, printed_launches
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import LAUNCH_BLOCKING
from aotidoctor.probes.cuda_probe import missing_for_gpu_compile, reason_to_skip, repeat_call, symptom_of
from aotidoctor.probes.probe import History, RunFinder, succeeded
from aotidoctor.probes.recompiled import compile_request

CODE, NAME = "AD-RUN-034", "printed_launches"
FIND = RunFinder(CODE, NAME, __doc__)
FREE, BLOCKING, VALUES = f"{NAME}_free", f"{NAME}_blocking", f"{NAME}_values"
PRINT_VALUES, PRINT_NAMES = 2, 3
RUNS = 2
NAMED = ("kernel", "extern")
# Each of these findings names the kernel, or shows that it is none, without a compile.
SETTLED = (
    ("AD-RUN-026", ("kernel", "extern", "custom", "refused", "library", "hang")),
    ("AD-RUN-027", ("exception",)),
    ("AD-RUN-028", ("invalid-access", "race")),
    ("AD-RUN-029", ("moves-uncached", "vanishes-blocking")),
)
REMEDY = "Compile the exported program again on this host and use that package; then find out how this one was built."


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan the compile that prints launches, if a kernel failed and no cheaper probe could name it."""
    reason = reason_to_skip(case, history)
    settled = next((code for code, kinds in SETTLED if history.has(code, *kinds)), None)
    if reason is None and settled is not None and not case.options.asks_for(NAME):
        reason = f"{settled} already answered this without compiling; --probes {NAME} runs it anyway"
    if reason is None and case.reference is None:
        reason = "there is no exported program to compile with the value printer: --reference exported.pt2"
    reason = reason or missing_for_gpu_compile(case)
    if reason is not None:
        return FIND.unchecked(reason)
    return compile_request(case, NAME, "the same program, printing each launch", printer=PRINT_NAMES)


def values_request(case: Case, kernel: str) -> Request:
    """The request for the second compile, which prints the arguments of one kernel."""
    purpose = f"the same program, printing the arguments of {kernel} gets"
    return compile_request(case, NAME, purpose, printer=PRINT_VALUES, printed_kernels=kernel)


def call_requests(case: Case, history: History, package: str) -> tuple[Request, ...]:
    """Requests for the failing call of the package that prints launches, unchanged and with blocking launches."""
    return tuple(
        call_request(case, history, package, PRINT_NAMES, f"{probe}#{number}", blocking=probe == BLOCKING)
        for number in range(1, RUNS + 1)
        for probe in (FREE, BLOCKING)
    )


def call_request(
    case: Case, history: History, package: str, level: int, name: str, *, blocking: bool = True
) -> Request:
    """The request for one call of a package that prints."""
    purpose = f"printing launches, {'each waited for' if blocking else 'as it is'}"
    request = repeat_call(
        case, history, name, purpose,
        package=package, kind="aoti-package", model_name="model", level=level, unbuffered=True,
    )  # fmt: skip
    return replace(request, job="printed", env={LAUNCH_BLOCKING: "1"} if blocking else {})


@record
class PrintedRuns:
    """The runs with, or without, blocking launches: how many failed, how, and which launch each printed last."""

    runs: int
    failed: int
    printed: int
    symptoms: tuple[str, ...]
    last: tuple[tuple[str, bool], ...]

    @property
    def words(self) -> str:
        """``x (2 of 2 runs failed)``."""
        names = " or ".join(dict.fromkeys(name for name, _ in self.last)) or "none"
        return f"{names} ({self.failed} of {self.runs} runs failed)"


def summarize_runs(case: Case, history: History, name: str) -> PrintedRuns:
    """The summary of all runs with, or without, blocking launches."""
    outcomes = [outcome for key, outcome in history.outcomes.items() if key.partition("#")[0] == name]
    failed = [outcome for outcome in outcomes if not succeeded(outcome)]
    printed = [found[-1] for outcome in failed if (found := printed_launches(outcome.stdout_tail))]
    return PrintedRuns(
        runs=len(outcomes),
        failed=len(failed),
        printed=sum(bool(printed_launches(outcome.stdout_tail)) for outcome in outcomes),
        symptoms=tuple(dict.fromkeys(symptom_of(case, outcome) for outcome in failed)),
        last=tuple(printed),
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding of all runs: kernel, extern, agrees, vanishes, elsewhere, undecided or unavailable.

    Of the run with level 2: values, or unavailable.
    """
    if outcome.request.probe == VALUES:
        return [_values(history, outcome)]
    free, held = summarize_runs(case, history, FREE), summarize_runs(case, history, BLOCKING)
    kind = _kind(case, history, free, held)
    kernel = held.last[0][0] if kind in NAMED else None
    severity = _SEVERITY.get(kind, Severity.INFO)
    observed = _WORDS[kind].format(held=held, free=free)
    return [
        FIND.at(severity, outcome)(
            kind,
            kernel,
            observed=observed,
            expected="the launch that fails",
            message=f"{kernel}: {observed}{_warning(free, held)}" if kernel else "",
            facts=_facts(case, kind, kernel, free, held),
        )
    ]


def _kind(case: Case, history: History, free: PrintedRuns, held: PrintedRuns) -> str:
    if free.printed + held.printed == 0:
        return "unavailable"
    if held.failed + free.failed == 0:
        return "agrees"
    if held.failed == 0:
        return "vanishes"
    # Whether the package compiled here fails as this one does. A library reports no more than that it failed.
    seen = {symptom_of(case, one) for name, one in history.outcomes.items() if name in ("plain_run", "cuda_blocking")}
    alike = bool(set(held.symptoms) & seen) or bool(seen & {"gpu-library", "cuda-error", "other"})
    if held.failed < held.runs or len(set(held.last)) != 1 or not alike:
        return "undecided"
    name, returned = held.last[0]
    if returned:
        return "elsewhere"
    return "extern" if name.startswith("aoti_torch_") else "kernel"


_SEVERITY = {"kernel": Severity.ERROR, "extern": Severity.ERROR, "agrees": Severity.WARN, "vanishes": Severity.WARN}
_WORDS = {
    "kernel": "last launch printed with blocking launches, not returned ({held.failed} of {held.runs} runs)",
    "extern": "last call printed with blocking launches, not returned ({held.failed} of {held.runs} runs)",
    "agrees": "no failure when compiled here: {free.failed} of {free.runs} runs, "
    "with blocking launches {held.failed} of {held.runs}",
    "vanishes": "compiled here, it fails in {free.failed} of {free.runs} runs, and in {held.failed} of {held.runs} "
    "with blocking launches",
    "elsewhere": "with blocking launches it fails after the last launch printed had returned: {held.words}",
    "undecided": "with blocking launches the runs do not agree on one launch: {held.words}",
    "unavailable": "the package compiled here printed no launch",
}


def _warning(free: PrintedRuns, held: PrintedRuns) -> str:
    """A clause about the last launch printed without blocking launches, which names no kernel."""
    if not free.failed:
        return "; without blocking launches it did not fail"
    same = {name for name, _ in free.last} == {name for name, _ in held.last}
    why = (
        "it is the same here" if same else "launches are asynchronous, so it may be a later launch that is not at fault"
    )
    return f"; without blocking launches the last one printed is {free.words}: {why}"


def _facts(case: Case, kind: str, kernel: str | None, free: PrintedRuns, held: PrintedRuns) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {
        "rungs": ("as it is", "blocking"),
        "runs": (free.runs, held.runs),
        "failed": (free.failed, held.failed),
        "printed_last": (free.words, held.words),
    }
    if kind == "agrees":
        return {**facts, "remedy": REMEDY}
    if kernel is None:
        return facts
    origin = origin_of(case, kernel)
    return {
        **facts,
        "kernel": kernel,
        "symptom": held.symptoms[0],
        "operators": origin.operators,
        "where": origin.where,
        "without_blocking": tuple(dict.fromkeys(name for name, _ in free.last)),
    }


def _values(history: History, outcome: Outcome) -> Evidence:
    """The finding with the arguments of the kernel."""
    kernel = next((item.subject or "" for item in history.of(CODE, *NAMED)), "")
    arguments = launch_arguments(outcome.stdout_tail, kernel)
    if not arguments:
        observed = f"the printer showed no argument of {kernel}"
        return FIND.info(outcome)("unavailable", None, observed=observed, expected="its arguments")
    return FIND.info(outcome)(
        "values",
        kernel,
        observed=f"before its launch: {'; '.join(arguments)}",
        expected="arguments as compiled for",
        facts={"kernel": kernel, "arguments": arguments},
    )


PROBE = FIND.probe(
    plan, read, "when a call on CUDA failed, no cheaper probe named the kernel, and an exported program is available"
)
