"""Did what a probe for CUDA changed take effect? Part of ``effects``."""

from __future__ import annotations

from aotidoctor.model.answers import told
from aotidoctor.model.answers.called import Acted
from aotidoctor.model.answers.launches import Launches
from aotidoctor.model.run import Outcome
from aotidoctor.probes.payload import run_of

Effect = tuple[bool | None, str]


def seen_early(outcome: Outcome, name: str) -> Effect:
    """Of a variable that is read when CUDA is initialised: it acts if it was there before, which a fork cannot give."""
    if outcome.forked:
        return False, "set after CUDA was initialised"
    seen = told(Acted, outcome.result).env_took_effect
    if seen is None or name not in seen:
        return None, "set before CUDA was initialised; the child exited before it reported this"
    if not seen[name]:
        return False, f"the child does not see {name}"
    return True, "in the child's environment before CUDA was initialised"


def cuda_effects(outcome: Outcome) -> list[Effect]:
    """Hooks on launches, the value printer, tools around the child, the GPU's core dump, variants of the call."""
    request, payload, effects = outcome.request, run_of(outcome), []
    if payload.launch_trace:
        effects.append(_hooked(outcome))
    if payload.unbuffered:
        effects.append(_printed(outcome))
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


def _printed(outcome: Outcome) -> Effect:
    """Of a package compiled with the value printer: its lines are there, or it was not compiled in."""
    if "before_launch" in outcome.stdout_tail:
        return True, "the value printer printed launches"
    if not outcome.stage.startswith(("run", "scan", "unload", "done")):
        return None, f"the run ended in {outcome.stage}, before a launch"
    return False, "the value printer printed nothing"


def _hooked(outcome: Outcome) -> Effect:
    seen = told(Launches, outcome.result)
    if seen.launch_problem is not None:
        return False, seen.launch_problem.text or str(seen.launch_problem.name)
    if seen.launch_trace is not None:
        return True, "the package's calls of the driver were hooked"
    return None, "the child exited before it reported this"


def _variant(outcome: Outcome, *, captures: bool) -> Effect:
    seen = told(Acted, outcome.result)
    if seen.cuda_memory is None:
        return None, "the child exited before it reported this"
    if captures and outcome.stage in ("run1", "capture") and seen.variant is None:
        return (True, "it ended in the capture") if outcome.stage == "capture" else (False, "it ended before a capture")
    return True, "the call was made so"
