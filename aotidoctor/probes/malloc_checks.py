"""Which call damages the heap?

What it does
    Repeats a crash that a damaged heap may explain, in a new interpreter with the C library's own checks switched on
    (MALLOC_CHECK_=3 and MALLOC_PERTURB_; from glibc 2.34 on they are in libc_malloc_debug.so.0, which is preloaded).
    Every block then ends in a mark that is verified when the block is freed, and the calls of the compiled code are
    traced.

Why it matters
    A write past the end of a block crashes the next user of the neighbouring block: another operator, the next call,
    the unloading. With the checks the process ends where the damaged block is freed, which is most often in the guilty
    call itself.

Example:
    zoopy::scale: observed SIGABRT in run1, expected SIGABRT in run2 as without the checks

When it is wrong
    A block that is kept is verified when it is freed, which may be long after the damage: the report names the call in
    which the damage was found. Code with its own allocator (jemalloc, mimalloc) is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import GivenWeights, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, RunSource, Severity
from aotidoctor.model.run import CallKind, Outcome, Request
from aotidoctor.probes.payload import device_of, run_of, run_request
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, RunFinder, succeeded

CODE, NAME = "AD-RUN-025", "malloc_checks"
FIND = RunFinder(CODE, NAME, __doc__)
LIBRARY = "libc_malloc_debug.so.0"
# New memory holds 0x5a, freed memory 0xa5.
PERTURB = "165"
# From this version on the checks are in a library of their own.
SPLIT = (2, 34)
SIGNALS = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGTRAP")
# Stages before the first call, in order.
EARLY = ("start", "import", "setup", "inputs", "load", "trace", "after_load", "constants")
# Runs that may have died of it, in their order.
SUSPECTS = ("plain_run", "again", "memory_fill", "growth")
# The innermost native frames of a crash inside malloc or free, as gdb prints them.
IN_ALLOCATOR = re.compile(
    r"^#[0-4]\s+(?:0x[0-9a-f]+ in )?(?:__GI_|__libc_|__)*"
    r"(?:_int_\w+|malloc\w*|calloc|realloc|free|unlink_chunk|tcache_\w+|posix_memalign|_mid_memalign|aligned_alloc) \(",
    re.MULTILINE,
)
# The C library does not see the blocks of an allocator that replaces its own.
OTHER_ALLOCATORS = re.compile(r"jemalloc|tcmalloc|mimalloc|hoard|scudo")


def plan(case: Case, history: History) -> Request | NotChecked:
    """Plan a run if a run was killed late or intermittently, or with a heap corruption message."""
    base = _base(history)
    if base is None:
        return FIND.unchecked("no run ended in a way that a damaged heap explains")
    if history.static_errors():
        return FIND.unchecked("a static finding already explains the crash")
    if history.has("AD-RUN-015", "signalled"):
        return FIND.unchecked("an operator crashes when it is called alone")
    if case.host.system != "Linux" or case.host.glibc is None:
        return FIND.unchecked("the C library here has no such checks (glibc has them)", moot=False)
    if device_of(case) != "cpu":
        return FIND.unchecked("device memory does not come from malloc", moot=False)
    preloaded = case.host.environment.get("LD_PRELOAD", "")
    if (other := OTHER_ALLOCATORS.search(preloaded)) is not None:
        return FIND.unchecked(f"{other[0]} is preloaded in place of the C library's allocator", moot=False)
    run, purpose = run_of(base), "with the C library's heap checks"
    request = run_request(case, NAME, purpose, heap_checks=True, trace=True, calls=run.calls, observe=run.observe)
    env = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": PERTURB}
    if tuple(int(part) for part in re.findall(r"\d+", case.host.glibc or "")[:2]) >= SPLIT:
        env["LD_PRELOAD"] = f"{LIBRARY}:{preloaded}" if preloaded else LIBRARY
    return replace(request, fresh=True, env=env)


def _base(history: History) -> Outcome | None:
    """The run that died, if its death looks like that of a damaged heap."""
    failed = (one for name in SUSPECTS if (one := history.outcomes.get(name)) is not None and not succeeded(one))
    outcome = next(failed, None)
    if outcome is None:
        return None
    sources = ((item.facts, item.source) for item in history.findings)
    died = [facts for facts, source in sources if isinstance(source, RunSource) and source.run == outcome.id]
    facts = next((one for one in died if one.get("signal") in SIGNALS), None)
    if facts is None:
        return None
    late = outcome.stage not in (*EARLY, "run1") or outcome.stage in ("after_load", "constants")
    stack = history.outcomes.get("backtrace")
    in_allocator = stack is not None and IN_ALLOCATOR.search(stack.debugger_output) is not None
    reported = facts.get("symptom") == "heap-corruption"
    return outcome if late or reported or in_allocator or history.has("AD-RUN-002", "flaky") else None


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: moved, same, later, heals or unavailable."""
    if outcome.took_effect is False:
        observed = f"{outcome.took_effect_why}; {LIBRARY} is part of libc6 on Debian, elsewhere of glibc or glibc-utils"
        return [FIND.info(outcome)("unavailable", None, observed=observed, expected="heap checks")]
    base = _base(history) or history.outcomes["plain_run"]
    expected, facts = f"the same end in {base.stage} as without the checks", {"plain_stage": base.stage}
    if succeeded(outcome):
        observed = "no failure, and no damaged block was freed"
        return [FIND.info(outcome)("heals", None, observed=observed, expected=expected, facts=facts)]
    ending = read_ending(CODE, case, outcome)
    subject, words, place = _place(case, outcome)
    traced = history.outcomes.get("call_trace")
    traced = traced if traced is not None and not succeeded(traced) else base
    before, now = _position(base), _position(outcome)
    if before == now and traced.stage == outcome.stage and traced.trace is not None and outcome.trace is not None:
        before, now = (*before, traced.trace.total), (*now, outcome.trace.total)
    kind = "same" if before == now else "moved" if now < before else "later"
    known = subject is not None
    return [
        FIND.at(Severity.ERROR if known or kind == "moved" else Severity.INFO, outcome, "stderr")(
            kind,
            subject,
            observed=f"{ending.observed} in {outcome.stage}{words}",
            expected=expected,
            facts={
                **ending.facts,
                **place,
                **facts,
                # The C library reports that the heap is damaged, and the call that it reports it in is known.
                "damage": known and ending.facts.get("symptom") == "heap-corruption",
                "loaded_constants": bool(parse_answer(GivenWeights, base.result).loaded_constants),
            },
        )
    ]


def _place(case: Case, outcome: Outcome) -> tuple[str | None, str, dict[str, FactValue]]:
    """The last computing call, in or after which the damage was found: its name or operator, words, facts."""
    calls = outcome.trace.calls if outcome.trace is not None else ()
    computing = [call for call in calls if call.kind is not CallKind.RUNTIME]
    if not outcome.stage.startswith("run") or not computing:
        ops = case.contract.custom_ops if case.contract is not None and outcome.stage.startswith("run") else ()
        op = ops[0] if len(ops) == 1 else None
        return op, "", {"call_kind": "custom" if op else None, "inside": None}
    last = computing[-1]
    inside, name = calls[-1] is last, last.symbol
    nodes = case.model.extern_nodes if case.model is not None else ()
    if last.kind is CallKind.CUSTOM and 0 <= last.argument < len(nodes):
        name = nodes[last.argument].target
    facts: dict[str, FactValue] = {
        "call_kind": last.kind.value,
        "inside": inside,
        "symbol": calls[-1].symbol,
        "calls": len(computing),
    }
    return name, f", {'inside' if inside else 'after'} {name}", facts


def _position(outcome: Outcome) -> tuple[int, ...]:
    """The progress of a run: its phase, the number of calls that began, and whether the last one was being examined."""
    calls = sum(name.startswith("run") for name in {*outcome.stages, outcome.stage})
    scanning = outcome.stage == "scan"
    if calls and (scanning or outcome.stage.startswith("run")):
        return (1, calls, int(scanning))
    return (2, calls, 0) if calls else (0, 0, EARLY.index(outcome.stage) if outcome.stage in EARLY else 0)


PROBE = FIND.probe(plan, read, "when a run was killed late or intermittently, or with a heap corruption message")
