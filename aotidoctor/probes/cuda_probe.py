"""Plan and read the probes for CUDA: when they run, how often they call, where a blocking run failed.

Every probe gets a fresh interpreter: after the first error a context returns the same error to every call, and most
settings are read when it is created. This module also names what the host lacks for compiling a program for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from aotidoctor.localize.call_timeline import launched_name
from aotidoctor.model.case import Case, Host
from aotidoctor.model.evidence import Evidence, NotChecked
from aotidoctor.model.record import record
from aotidoctor.model.run import CallKind, NotStarted, Outcome, Request
from aotidoctor.probes.payload import device_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Probe, RunFinder, succeeded
from aotidoctor.probes.symptoms import first_fault

# Requirements of compiling for a GPU that the host may lack.
_COMPILERS = ("CXX", "g++", "clang++")
_TRITON = ("triton", "pytorch-triton")
_NEEDS: tuple[tuple[Callable[[Host], bool], str], ...] = (
    (lambda host: bool(host.gpus), "a GPU (the NVIDIA driver lists none)"),
    (lambda host: host.torch is not None and host.torch.cuda is not None, "a PyTorch with CUDA"),
    (lambda host: any(name in host.packages for name in _TRITON), "Triton (pip install triton)"),
    (lambda host: bool(host.tools.get("ptxas")), "ptxas (it comes with Triton's wheel and with the CUDA toolkit)"),
    (
        lambda host: bool(host.tools.get("cuda.h")),
        "cuda.h of the CUDA toolkit (conda install -c nvidia cuda-toolkit; CUDA_HOME names its folder)",
    ),
    (
        lambda host: any(host.tools.get(name) for name in _COMPILERS),
        "a C++ compiler (apt-get install g++, or conda install cxx-compiler)",
    ),
)


def missing_for_gpu_compile(case: Case) -> str | None:
    """The missing requirements by name; None if nothing is missing."""
    missing = [words for there, words in _NEEDS if not there(case.host)]
    return f"compiling for CUDA is not possible on this host, which lacks: {', '.join(missing)}" if missing else None


# Plans, repetitions and places of failure.
BLOCKING, UNCACHED = "AD-RUN-012", "AD-RUN-013"
# Before these stages have passed, no kernel of the package can have run.
EARLY = ("start", "import", "attach", "setup", "inputs", "load")
# Symptoms whose message states the fault: they are the same under every setting.
PLAIN_WORDS = (
    "cuda-oom",
    "alloc-failed",
    "cuda-no-image",
    "cuda-file-not-found",
    "cuda-capture",
    "cuda-device-index",
    "cuda-driver",
    "cuda-no-device",
    "mixed-device",
    "not-compiled-with",
    "count-mismatch",
    "kwarg-mismatch",
    "proxy-missing",
)
# Faults of a memory access: whether they show depends on the adjacent memory.
ACCESS = ("cuda-illegal-access", "cuda-misaligned")
# Symptoms that any fault may have.
VAGUE = ("cuda-error", "gpu-library", "other")
_WHEN = "when a call on CUDA failed, and neither its words nor the inputs explain it"
_WHEN_ACCESS = "when a CUDA call failed in a way that a bad memory access can cause, and nothing explains it"


def symptom_of(case: Case, outcome: Outcome) -> str:
    """The symptom of a failed run."""
    return str(read_ending("", case, outcome).facts.get("symptom", "other"))


def reason_to_skip(case: Case, history: History) -> str | None:
    """Why no probe for CUDA runs; None if a failure of a call on the GPU needs an explanation."""
    if device_of(case) != "cuda":
        return "the package does not run on CUDA"
    plain = history.plain
    if plain is None or isinstance(plain.ending, NotStarted):
        return "the package could not be run on this host"
    if succeeded(plain):
        return "the plain run returned"
    if plain.stage in EARLY:
        return f"it failed in {plain.stage}, before a kernel of the package ran"
    symptom = symptom_of(case, plain)
    if first_fault(plain) is None and (symptom in PLAIN_WORDS or symptom.startswith("check-")):
        return f"its message states what is wrong ({symptom}): the same under every setting"
    # With the checks it may still fail as before: only their own complaints explain it.
    checked = tuple(f for f in history.errors("AD-RUN-003") if str(f.facts.get("symptom")).startswith("check-"))
    # An assertion that was traced back to an input has its kernel in its text.
    blamed = tuple(item for item in history.errors("AD-RUN-022") if item.kind == "index" and item.facts.get("kernel"))
    known = (*history.static_errors(), *checked, *blamed)
    if known and not case.options.localize:
        return f"{known[0].code} already explains it; its treatment is tried instead"
    return None


def calls_of(history: History) -> int:
    """The number of calls that the failure needs."""
    plain = history.outcomes["plain_run"]
    return 2 if plain.stage == "run2" or "run2" in plain.stages else 1


def vanished_blocking(history: History) -> bool:
    """Whether the failure disappeared when each launch was waited for."""
    return history.has(BLOCKING, "vanishes") or history.has("AD-RUN-026", "survived")


def repeat_call(case: Case, history: History, name: str, purpose: str, **changes: object) -> Request:
    """The request to repeat the failing call in a fresh interpreter."""
    return replace(run_request(case, name, purpose, calls=calls_of(history), observe=(), **changes), fresh=True)


def cuda_probe(find: RunFinder, *variables: str, only: tuple[str, ...] = ()) -> Probe:
    """A probe that sets ``variables`` to 1 before there is a CUDA context, with the calls of the package traced.

    ``only`` lists the symptoms that it can explain; empty means all.
    """
    settings = " and ".join(f"{variable}=1" for variable in variables)

    def plan(case: Case, history: History) -> Request | NotChecked:
        reason = reason_to_skip(case, history)
        if reason is not None:
            return find.unchecked(reason)
        symptom = symptom_of(case, history.outcomes["plain_run"])
        if only and symptom not in (*only, *VAGUE):
            return find.unchecked(f"{symptom} does not depend on it")
        return replace(
            repeat_call(case, history, find.name, f"with {settings}", trace=True), env=dict.fromkeys(variables, "1")
        )

    def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
        if not succeeded(outcome):
            # Exception or abort alike, with the call that it ended in.
            found, place = read_ending(find.code, case, outcome), place_of(case, outcome)
            if place is None:
                return [found]
            facts = {**found.facts, "call": place.name, "number": place.number, "run": place.run}
            return [replace(found, subject=found.subject or place.name, facts=facts)]
        gone, expected = f"no failure with {settings}", "the same failure"
        variable = {"variable": variables[0]}
        return [find.warn(outcome)("vanishes", None, observed=gone, expected=expected, facts=variable)]

    return find.probe(plan, read, _WHEN_ACCESS if only else _WHEN)


@record
class LaunchPlace:
    """The place where a run with blocking launches ended: its last call, by name, and the number of that call."""

    name: str
    number: int
    run: int


def place_of(case: Case, outcome: Outcome) -> LaunchPlace | None:
    """The computing call in progress when a blocking run ended; None if it is unknown."""
    trace = outcome.trace
    if trace is None or trace.problem is not None or not trace.marks:
        return None
    made = trace.of_run(len(trace.marks))
    computing = [index for index, call in enumerate(made) if call.kind is not CallKind.RUNTIME]
    if not computing:
        return None
    return LaunchPlace(name=launched_name(case, made, computing[-1]), number=len(computing), run=len(trace.marks))
