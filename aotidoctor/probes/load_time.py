"""Where does the time go until the first answer?

What it does
    Loads the package in a new process as aoti_load_package does, calls it three times, and times each part: importing
    torch, importing Inductor's modules, checking the features of this CPU, unpacking, linking (relocation), creating
    the model with its constants (from torch 2.14 on apart from copying them), loading weights, the first call, later
    ones.

Why it matters
    A model that starts slowly is late in each new process, and each part has its own setting. From torch 2.10 on,
    aoti_load_package compiles and starts small programs to identify this CPU: this takes seconds that do not depend on
    the model.

Example:
    cpu_checks: observed 5.1 s of 8.4 s, expected less than 5 s until the first answer

When it is wrong
    A busy machine is slow in every part. A package in the page cache is unpacked faster than one read from disk. The
    CPU is checked with your compile cache, if there is one; a new container has none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.case import Case, Options
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request, TimedOut
from aotidoctor.probes.payload import run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-035", "load_time"
FIND = RunFinder(CODE, NAME, __doc__)
# If the plain load takes longer (seconds), the probe runs without being named.
SLOW_LOAD_S = 10.0
# Seconds until the first answer, without torch's own import.
SLOW_S = 5.0
# A factor of the usual time limit: compilers run.
PATIENCE = 4
FEWER = "TORCHINDUCTOR_VEC_ISA_OK=1"
# The parts in their order, and the setting that makes each quicker.
SETTINGS: Mapping[str, str] = {
    "import": "keep the process: every new one imports torch again",
    "imports": "keep the process, or load with C++ (torch::inductor::AOTIModelPackageLoader), which imports no Python",
    "cpu_checks": f"{FEWER} (fewer checks), TORCHINDUCTOR_CACHE_DIR on a persistent disk, or C++",
    "unpack": "TMPDIR on a faster disk or in memory, or from torch 2.14 on the unpacked folder instead of the package",
    "link": "weights outside the library: aot_inductor.package_constants_on_disk_format='binary_blob'",
    "create": "fewer or smaller constants; weights mapped, not copied: aot_inductor.force_mmap_weights=True",
    "constants": "fewer or smaller constants; for a GPU AOTI_COPY_USE_PINNED_ASYNC=1 (torch 2.14 and later)",
    "load": "TMPDIR on a faster disk or in memory; weights mapped, not copied: aot_inductor.force_mmap_weights=True",
    "after_load": "weights in the package, or read with torch.load(mmap=True), and user_managed=True",
    "run1": "one call before the first request: it folds constants and loads kernels",
}
# The line that a package of torch 2.14 and later prints under AOTI_LOG_LOADING.
_COPIED = re.compile(r"\[AOTI_LOAD\] load_constants: H2D copy completed in (\d{1,12}) ms")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run with --probes load_time, or if the plain run succeeded and took long to load."""
    plain = history.plain
    if plain is None or not succeeded(plain):
        return FIND.unchecked("the plain run did not succeed")
    loading = plain.stages.get("load", 0.0)
    if not case.options.asks_for(NAME) and loading < SLOW_LOAD_S:
        return FIND.unchecked(f"it loads in {loading:.1f} s; run this with --probes load_time")
    if case.model is not None and case.model.cpp_only:
        return FIND.unchecked("it is compiled at each load, which takes the time")
    tmpdir = case.host.environment.get("TMPDIR")
    request = run_request(case, NAME, "load and call in a new process, each part timed", tmpdir=tmpdir)
    patience = PATIENCE if request.timeout == Options().timeout else 1
    return replace(request, job=NAME, fresh=True, env={"AOTI_LOG_LOADING": "1"}, timeout=patience * request.timeout)


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: slow (requested, and longer than ``SLOW_S``), else parts; or the ending.

    A run that exceeds its time limit is slow: the plain run has shown that the model answers.
    """
    if not succeeded(outcome) and not isinstance(outcome.ending, TimedOut):
        return [read_ending(CODE, case, outcome)]
    parts = parts_of(outcome)
    ours = {name: seconds for name, seconds in parts.items() if name not in ("import", "later call")}
    total, slowest = sum(ours.values()), max(ours, key=ours.__getitem__, default=None)
    if slowest is None:
        return []
    slow = case.options.asks_for(NAME) and (total > SLOW_S or isinstance(outcome.ending, TimedOut))
    setting, (variable, _, value) = SETTINGS[slowest], FEWER.partition("=")
    if case.host.environment.get(variable) == value:
        setting = setting.replace(f"{FEWER} (fewer checks), ", "")
    facts: dict[str, FactValue] = {
        "parts": tuple(parts),
        "seconds": tuple(round(seconds, 3) for seconds in parts.values()),
        "total": round(total, 3),
        "setting": setting,
    }
    empty = parse_answer(Acted, outcome.result).compile_cache is False and "cpu_checks" in parts
    table = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts.items())
    return [
        FIND.at(Severity.WARN if slow else Severity.INFO, outcome)(
            "slow" if slow else "parts",
            slowest,
            observed=f"{ours[slowest]:.1f} s of {total:.1f} s",
            expected=f"less than {SLOW_S:.0f} s until the first answer",
            message=f"until the first answer: {table}{' (with an empty compile cache)' if empty else ''}",
            facts=facts,
        )
    ]


def parts_of(outcome: Outcome) -> dict[str, float]:
    """Seconds by part, in their order; ``load`` as a whole if its parts are unknown."""
    stages = dict(outcome.stages)
    if isinstance(outcome.ending, TimedOut):
        # The last part has no end.
        stages.setdefault(outcome.stage, max(0.0, outcome.seconds - sum(stages.values())))
    found: dict[str, float] = {name: stages[name] for name in ("import", "imports", "cpu_checks") if name in stages}
    inside = parse_answer(Acted, outcome.result).load_parts
    if inside is None and "load" in stages:
        inside = {"load": stages["load"]}
    found |= inside or {}
    copied = sum(int(one[1]) for one in _COPIED.finditer(outcome.stderr_tail)) / 1000
    if "create" in found and 0 < copied <= found["create"]:
        found |= {"create": found["create"] - copied, "constants": copied}
    found |= {name: stages[name] for name in ("after_load", "run1") if name in stages}
    later = [seconds for name, seconds in stages.items() if name in ("run2", "run3")]
    return {**found, **({"later call": min(later)} if later else {})}


PROBE = FIND.probe(plan, read, f"with --probes load_time, or when it takes more than {SLOW_LOAD_S:.0f} s to load")
