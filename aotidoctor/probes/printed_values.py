"""Which kernel produces the bad values, if they cannot be traced in the package itself?

What it does
    Compiles the exported program given with --reference again with PyTorch's value printer
    (AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER: level 2 for NaN and Inf, level 1 for wrong numbers), makes the same
    call, and reads what every kernel read and wrote. The result applies to this package only if both have the same
    kernels and give the same outputs.

Why it matters
    The values are usually traced in the package itself; some systems and processors do not allow this.

Example
    cpp_fused_add_log_0 (aten.log): observed 5 NaN written to buf0, its inputs finite (from -1), expected finite values

When it is wrong
    The printer shows no constants, and for more than 64 elements only the smallest, largest and mean value, so a count
    of NaN is a lower bound. For a kernel that is called several times, level 1 keeps only the last call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.localize.value_printer import read_saved_values, read_value_printer
from aotidoctor.localize.watched_values import WatchedValues
from aotidoctor.model.answers import ObservedTensor
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.localization import BufferValues, WatchedOutput, WatchedRun
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.cuda_probe import missing_for_gpu_compile
from aotidoctor.probes.kernel_values import WRONG, note, read_values
from aotidoctor.probes.payload import call_outputs, device_of, run_request, same_outputs
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded
from aotidoctor.probes.recompiled import NO_GPU, compile_request
from aotidoctor.probes.values import NONFINITE

CODE, NAME = "AD-RUN-016", "printed_values"
FIND = RunFinder(CODE, NAME, __doc__)
FOLLOWED = ("nan", "inf", "propagated", "diverges", "agrees", "clean")
SAVE, PRINT = 1, 2
BY_HAND = "a package compiled on the GPU with AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 prints them"


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan the compile with the printer, if kernel_values was inconclusive."""
    if history.has(CODE, *FOLLOWED):
        return FIND.unchecked("the values were followed in the package itself")
    if not _nonfinite(history):
        if not history.has("AD-RUN-011", *WRONG):
            return FIND.unchecked("the outputs are finite, and nothing indicates that they are wrong")
        if device_of(case) != "cpu":
            return FIND.unchecked(NO_GPU)
    if case.reference is None:
        reason = "there is no exported program to compile with the value printer: --reference exported.pt2"
        return FIND.unchecked(reason)
    static, device = history.static_errors(), device_of(case)
    if static:
        return FIND.unchecked(f"{static[0].code} explains it already")
    # A GPU needs more than a C++ compiler, which every compile looks for by itself.
    missing = missing_for_gpu_compile(case) if device == "cuda" else f"this host cannot compile for {device}"
    if missing and device != "cpu":
        return FIND.unchecked(f"{missing}; by hand: {BY_HAND}")
    return compile_request(case, NAME, "the same program with the value printer", printer=level_of(history))


def level_of(history: History) -> int:
    """Level 2 for NaN and Inf; level 1 for numbers that have to be compared."""
    return PRINT if _nonfinite(history) else SAVE


def _nonfinite(history: History) -> bool:
    return any(item.facts.get("clean") is True for item in history.of("AD-RUN-005", *NONFINITE))


def call_request(case: Case, package: str, level: int) -> Request:
    """The request for one call of the package that prints."""
    request = run_request(
        case,
        NAME,
        "what every kernel read and wrote",
        calls=1,
        observe=("outputs", "values"),
        package=package,
        kind="aoti-package",
        model_name="model",
        level=level,
        reference=case.options.reference if level == SAVE else None,
    )
    return replace(request, job="printed")


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """The findings of kernel_values: nan, inf or propagated; diverges or agrees; clean or unavailable."""
    if not succeeded(outcome):
        return [note("unavailable", outcome, f"the printing run failed: {read_ending(CODE, case, outcome).observed}")]
    if not _alike(history, outcome):
        why = "the recompiled program gives different outputs, so its values cannot be attributed to this package"
        return [note("unavailable", outcome, why)]
    order, bodies = (case.contract.kernels, case.contract.bodies) if case.contract is not None else ((), ())
    text, saved = outcome.result.get("printed"), outcome.result.get("saved")
    printed = isinstance(text, str)
    calls = read_value_printer(str(text), order, bodies) if printed else read_saved_values(saved, order, bodies)
    # The call that wrote the output: the last one with a result of the same size and the same statistics.
    outputs = []
    for value in call_outputs(outcome, 0):
        wrote = [at for at, call in enumerate(calls) if any(_may_be(buffer, value) for buffer in call.wrote)]
        outputs.append(WatchedOutput(path=value.path, writer=wrote[-1] if wrote else None))
    watched = WatchedValues(run=WatchedRun(outputs=tuple(outputs), compared=not printed), calls=calls)
    if not watched.calls:
        return [note("unavailable", outcome, "the printer printed nothing")]
    found = read_values(case, history, watched, outcome)
    return [replace(item, facts={**item.facts, "method": "value printer"}) for item in found]


def _alike(history: History, outcome: Outcome) -> bool:
    """Whether the package that printed gives the same bits as this one, or NaN and Inf in the same number."""
    plain = history.plain
    if plain is None:
        return False
    ours, theirs = call_outputs(plain, 0), call_outputs(outcome, 0)
    counts = [[(value.path, value.nan or 0, value.inf or 0) for value in values] for values in (ours, theirs)]
    return same_outputs(ours, theirs) or (counts[0] == counts[1] and any(value.nan or value.inf for value in ours))


def _may_be(buffer: BufferValues, value: ObservedTensor) -> bool:
    """Whether it is the same tensor, perhaps of another shape. The printer rounds, and prints no bounds beside NaN."""
    if buffer.dtype != value.dtype or math.prod(buffer.shape) != math.prod(value.sizes):
        return False
    if bool(buffer.nan) != bool(value.nan):
        return False
    pairs = [(buffer.low, value.min), (buffer.high, value.max)]
    return all(a is None or b is None or math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-30) for a, b in pairs)


PROBE = FIND.probe(plan, read, "when kernel_values was inconclusive and an exported program is available")
