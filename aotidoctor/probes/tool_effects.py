"""Determine what aotidoctor itself did in a run: whether its setting took effect, whether a stage of its own failed.

A setting without effect proves nothing, and the report says so. An effect is ``(True | False | None, why)``; None is
"unknown".

A signal, an exception or a time limit in a stage of aotidoctor's own (examining results, reading weights, hooking
calls) says nothing about the model. The run is repeated without the stage that failed, and the report says that
aotidoctor failed. Three faults of the model may surface there: memory that was damaged before, the result of a custom
operator, and a fault on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model import torch_names
from aotidoctor.model.answers import Acted, Compiled, Launches, SideBySide, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FAILED_HERE, NotChecked
from aotidoctor.model.jobs import Recompile, Run
from aotidoctor.model.printer_lines import PRINTED_MARK
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Request, TimedOut
from aotidoctor.probes.check_inputs import checks_compiled_in
from aotidoctor.probes.payload import device_of, run_of
from aotidoctor.probes.plain_run import ending_of
from aotidoctor.probes.probe import succeeded
from aotidoctor.probes.symptoms import RAISED_FROM, recognise

Effect = tuple[bool | None, str]
_UNREPORTED: Effect = (None, "the child exited before it reported this")
_AT_CUDA_INIT = frozenset(one.name for one in torch_names.DEBUG_SETTINGS if one.acts == "cuda-init")
# These variables act together, or not at all.
HEAP_CHECKS = ("LD_PRELOAD", "MALLOC_CHECK_", "MALLOC_PERTURB_")


def add_effect(case: Case, outcome: Outcome) -> Outcome:
    """The outcome, with the effect of the changes that its request makes against the plain run."""
    if isinstance(outcome.ending, NotStarted):
        return replace(outcome, took_effect=False, took_effect_why="the child did not start")
    payload, seen = run_of(outcome), parse_answer(Acted, outcome.result)
    effects = [_variable(case, outcome, name) for name in outcome.request.env if name not in HEAP_CHECKS]
    if payload.heap_checks:
        effects.append(_heap_checks(outcome, seen))
    if outcome.request.debugger:
        effects.append((False, outcome.debugger_problem) if outcome.debugger_problem else (True, "gdb was attached"))
    effects += _of_cuda(outcome)
    if payload.perturb is not None:
        unable = (False, "this C library cannot fill memory")
        effects.append((True, "the allocator fills new blocks") if seen.memory_filled else unable)
    if payload.threads is not None:
        effects.append(_threads(payload.threads, seen.threads))
    if payload.against_threads is not None:
        compared = parse_answer(SideBySide, outcome.result).against_threads
        counts = compared.threads if compared is not None else ()
        effects.append(_threads(payload.against_threads, counts[1] if len(counts) == 2 else None))
    if payload.treatment:
        effects.append((True, "; ".join(seen.applied)[:300]) if seen.applied else _UNREPORTED)
    compiled = outcome.request.payload
    if isinstance(compiled, Recompile) and (compiled.bisect or compiled.printer):
        effects.append(_compiler(compiled, outcome))
    if not effects:
        return replace(outcome, took_effect=True, took_effect_why="nothing was changed")
    worst = next((effect for effect in effects if effect[0] is not True), effects[0])
    return replace(outcome, took_effect=worst[0], took_effect_why=worst[1])


def _variable(case: Case, outcome: Outcome, name: str) -> Effect:
    match name:
        case torch_names.CHECK_INPUTS:
            compiled_in = checks_compiled_in(case)
            complained = outcome.error is not None and recognise(outcome.error.message).name.startswith("check-")
            if complained:
                return True, "the checks complained"
            if compiled_in is False:
                return False, "no input checks are compiled into the package"
            if not outcome.stage.startswith(("run", "scan", "unload", "reference", "done")):
                return False, f"the run ended in {outcome.stage}, before the first call reads it"
            unknown = (None, "the library does not report it")
            return (True, "compiled in and read at the first call") if compiled_in else unknown
        case torch_names.CPP_STACKS:
            text = outcome.error.message if outcome.error is not None else ""
            found = RAISED_FROM.search(text) is not None or "frame #" in text
            return (True, "the exception carries C++ frames") if found else (None, "no exception carried C++ frames")
        case _ if name in _AT_CUDA_INIT:
            if outcome.forked:
                return False, "set after CUDA was initialised"
            seen = parse_answer(Acted, outcome.result).env_took_effect
            if seen is None or name not in seen:
                return None, "set before CUDA was initialised; the child exited before it reported this"
            if not seen[name]:
                return False, f"the child does not see {name}"
            return True, "in the child's environment before CUDA was initialised"
        case name if name.startswith("CUDA_") and outcome.request.gpu_core:
            return True, "shown by the dump"
        case _:
            return None, "the child reported nothing"


def _heap_checks(outcome: Outcome, seen: Acted) -> Effect:
    """The effect of the heap checks. Before glibc 2.34 nothing is preloaded: only the variable shows it."""
    if seen.heap_checks is None or seen.env_took_effect is None:
        return _UNREPORTED
    if seen.env_took_effect.get("MALLOC_CHECK_") is not True:
        return False, "the C library does not see MALLOC_CHECK_"
    if "LD_PRELOAD" in outcome.request.env and not seen.heap_checks:
        return False, "libc_malloc_debug.so.0 could not be preloaded"
    return True, "the C library checks each block that is freed"


def _threads(wanted: int, seen: int | None) -> Effect:
    if seen is None:
        return _UNREPORTED
    return (True, f"torch ran with {seen}") if seen == wanted else (False, f"torch ran with {seen}, not {wanted}")


def _compiler(request: Recompile, outcome: Outcome) -> Effect:
    """The effect of a compile: its switch counts the steps, and Inductor refuses options that it does not know."""
    switch, steps = request.bisect, parse_answer(Compiled, outcome.result).switchable
    if steps is None:
        return None, "the compile ended before it reported this"
    if switch is None:
        return True, f"compiled with the value printer, level {request.printer}"
    counted, last = steps.get(str(switch.get("subsystem"))), switch.get("max")
    off = len(counted) - last - 1 if counted is not None and isinstance(last, int) else 0
    return (True, f"{off} {switch.get('subsystem')} were off") if off > 0 else (False, "there was nothing to turn off")


def _of_cuda(outcome: Outcome) -> list[Effect]:
    """Effects of launch hooks, the value printer, tools around the child, the GPU's core dump, variants of the call."""
    request, payload = outcome.request, run_of(outcome)
    effects: list[Effect] = []
    hooked = parse_answer(Launches, outcome.result)
    if payload.launch_trace and hooked.launch_problem is not None:
        effects.append((False, hooked.launch_problem.text or str(hooked.launch_problem.name)))
    elif payload.launch_trace:
        hooks = (True, "the package's calls of the driver were hooked")
        effects.append(hooks if hooked.launch_trace is not None else _UNREPORTED)
    if payload.unbuffered and PRINTED_MARK in outcome.stdout_tail:
        # The lines of a package compiled with the value printer.
        effects.append((True, "the value printer printed launches"))
    elif payload.unbuffered:
        called = outcome.stage.startswith(("run", "scan", "unload", "done"))
        early = (None, f"the run ended in {outcome.stage}, before a launch")
        effects.append((False, "the value printer printed nothing") if called else early)
    if request.wrapper:
        started = "COMPUTE-SANITIZER" in outcome.tool_output
        effects.append((started, "the tool wrote its log" if started else "the tool wrote nothing"))
    if request.gpu_core:
        why = outcome.debugger_problem
        effects.append((False, why) if why else (True, "the driver wrote a dump"))
    variant = payload.cuda_variant
    if variant:
        effects.append(_variant(outcome, captures=variant == "capture"))
    return effects


def _variant(outcome: Outcome, *, captures: bool) -> Effect:
    seen = parse_answer(Acted, outcome.result)
    if seen.cuda_memory is None:
        return _UNREPORTED
    if captures and outcome.stage in ("run1", "capture") and seen.variant is None:
        return (True, "it ended in the capture") if outcome.stage == "capture" else (False, "it ended before a capture")
    return True, "the call was made as requested"


# The work of aotidoctor in its own stages.
DOES: Mapping[str, str] = {
    "start": "started a process",
    "import": "imported torch",
    "again": "repeated a call that had returned",
    "trace": "hooked the calls of the package",
    "constants": "read the weights",
    "scan": "looked at the results",
    "watch": "watched the values of kernels",
}
_DAMAGED = "heap-corruption"
_STARTING = ("start", "import")
# A second call that takes this many times as long as the first hangs.
_HANGS = 3.0


def own_failure(case: Case, outcome: Outcome) -> str | None:
    """The stage of aotidoctor in which the run failed; None if it succeeded or may have failed in the model."""
    if isinstance(outcome.ending, TimedOut):
        # The limit is for all stages together: a call that had returned once merely ran out of time.
        if outcome.stage in DOES:
            return outcome.stage
        first = outcome.stages.get("run1")
        if first is None or not outcome.stage.startswith("run"):
            return None
        return "again" if outcome.ending.limit - sum(outcome.stages.values()) < _HANGS * first else None
    if outcome.stage not in DOES or outcome.stage in _STARTING or succeeded(outcome):
        return None
    if isinstance(outcome.ending, NotStarted | OutOfMemory):
        return None
    custom = (
        bool(case.contract.custom_ops) if case.contract is not None else bool(case.model and case.model.extern_nodes)
    )
    if custom or device_of(case) != "cpu" or recognise(outcome.stderr_tail).name == _DAMAGED:
        return None
    return outcome.stage


def remove_stage(request: Request, stage: str) -> Request:
    """The same run without what aotidoctor does in ``stage``."""
    payload = request.payload
    if not isinstance(payload, Run) or stage in _STARTING:
        return request  # The files that were slow to read from disk are in memory now.
    if stage == "again":
        return replace(request, payload=replace(payload, calls=1))
    if stage == "trace":
        return replace(request, payload=replace(payload, trace=False))
    observe = tuple(item for item in payload.observe if item != "constants") if stage == "constants" else ()
    return replace(request, payload=replace(payload, observe=observe))


def tool_failure_note(code: str, name: str, outcome: Outcome, stage: str) -> NotChecked:
    """The note for a run that failed in a stage of aotidoctor."""
    doing = DOES.get(stage, stage)
    match outcome.ending:
        case Exited(code=status):
            error = outcome.error
            ending = f"exit status {status}"
            if error is not None and error.message.strip():
                ending = f"{error.type}: {error.message.strip().splitlines()[0][:200]}"
        case _:
            ending = ending_of(outcome)[1]
    reason = f"{FAILED_HERE}: {ending} while it {doing}; this is not a finding about the model"
    return NotChecked(code=code, name=name, reason=reason)
