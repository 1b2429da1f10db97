"""Does the failure depend on the device number, the stream, a capture, or how memory is allocated?

What it does
    Repeats the failed call with one thing about the GPU changed, each in a fresh interpreter and only if its answer can
    change the diagnosis: on another GPU of this host, on another stream, captured in a CUDA graph, with
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. The free memory of the device before the call is recorded.

Why it matters
    A package that works only on one device number has that number compiled in; one that fails only on a side stream
    lacks an ordering; free but fragmented memory is not too little memory.

Example:
    expandable: observed no failure, expected CUDA out of memory as without it

When it is wrong
    Another GPU may have more memory or another architecture. An intermittent failure may be absent by chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.run import Outcome, Request
from aotidoctor.model.torch_names import ALLOCATOR
from aotidoctor.probes.cuda_probe import (
    ACCESS,
    EARLY,
    VAGUE,
    reason_to_skip,
    repeat_call,
    symptom_of,
    vanished_blocking,
)
from aotidoctor.probes.payload import device_index_of, device_of
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Plan, RunFinder, succeeded, unasked

CODE, NAME = "AD-RUN-030", "cuda_variants"
FIND = RunFinder(CODE, NAME, __doc__)
_ALLOCATION = re.compile(r"Tried to allocate (?P<number>[\d.]+) (?P<unit>[KMGT]?i?B)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def other_device(case: Case) -> int:
    """The number of a GPU that the failed run did not use."""
    return 0 if device_index_of(case) > 0 else 1


# What is changed, in words.
VARIANTS = {
    "device": "on a different GPU",
    "stream": "on a different stream",
    "capture": "captured in a CUDA graph",
    "expandable": "with expandable segments of device memory",
}


def plan(case: Case, history: History) -> Plan:
    """Plan one run per variant that can decide something."""
    reason = _never(case, history)
    if reason is not None:
        return FIND.unchecked(reason)
    plain = history.outcomes["plain_run"]
    symptom = "" if succeeded(plain) else symptom_of(case, plain)
    reasons: dict[str, str | None] = dict.fromkeys(VARIANTS)
    if len(case.host.gpus) < 2:
        reasons["device"] = "this host has no second GPU"
    elif symptom not in (*ACCESS, *VAGUE, "cuda-device-index", "mixed-device"):
        reasons["device"] = f"{symptom} does not depend on the device's number"
    if not vanished_blocking(history):
        reasons["stream"] = "the failure does not depend on timing, as far as observed"
    if symptom != "cuda-capture" and not case.options.asks_for(NAME):
        reasons["capture"] = "nothing is captured here; run this with --probes cuda_variants"
    if symptom != "cuda-oom":
        reasons["expandable"] = "the failure is not a refused allocation"
    planned: list[Request | NotChecked] = []
    for name, words in VARIANTS.items():
        if (why := reasons[name]) is not None:
            planned.append(unasked(CODE, f"{NAME} {name}", why))
            continue
        changes: dict[str, object] = {"device_index": other_device(case)} if name == "device" else {}
        request = repeat_call(case, history, f"{NAME}_{name}", words, cuda_variant=name, **changes)
        env = {ALLOCATOR: "expandable_segments:True"} if name == "expandable" else {}
        planned.append(replace(request, env=env))
    return tuple(planned)


def _never(case: Case, history: History) -> str | None:
    reason, plain = reason_to_skip(case, history), history.plain
    if reason is None or device_of(case) != "cuda" or plain is None:
        return reason
    if succeeded(plain):
        return None if case.options.asks_for(NAME) and case.inputs is not None else reason
    varying = symptom_of(case, plain) in ("cuda-oom", "cuda-capture", "cuda-device-index", "mixed-device")
    return None if varying and plain.stage not in EARLY else reason


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: vanishes, same, differs, fails (if the plain run did not), works or unavailable."""
    name = outcome.request.probe.removeprefix(f"{NAME}_")
    words = VARIANTS.get(name, name)
    plain = history.outcomes["plain_run"]
    facts: dict[str, FactValue] = {"variant": name, **_memory(outcome, plain)}
    if succeeded(outcome):
        was_failing = not succeeded(plain)
        return [
            FIND.at(Severity.WARN if was_failing else Severity.INFO, outcome)(
                "vanishes" if was_failing else "works",
                name,
                observed=f"{words}: no failure",
                expected="the same failure" if was_failing else "no failure",
                facts=facts,
            )
        ]
    now = read_ending(CODE, case, outcome)
    before = None if succeeded(plain) else symptom_of(case, plain)
    kind = "fails" if before is None else "same" if str(now.facts.get("symptom")) == before else "differs"
    if outcome.stage in EARLY:
        # It never reached the call.
        kind = "unavailable"
    return [
        replace(
            now,
            kind=kind,
            # The same failure there changes nothing; a new failure is one of the requested call.
            severity=Severity.ERROR if kind == "fails" else Severity.INFO,
            observed=f"{words}: {now.observed}",
            expected="another outcome" if kind == "same" else "the outcome of the plain run",
            message=f"{words}: {now.observed}",
            facts={**now.facts, **facts},
        )
    ]


def _memory(outcome: Outcome, plain: Outcome) -> dict[str, FactValue]:
    """Free and total bytes before the call, the bytes requested, and whether they would have fitted."""
    memory = parse_answer(Acted, outcome.result).cuda_memory
    if memory is None:
        return {}
    facts: dict[str, FactValue] = {"free_bytes": memory.free, "total_bytes": memory.total}
    match = _ALLOCATION.search(plain.error.message) if plain.error is not None else None
    if match is None or match["unit"] not in _UNITS:
        return facts
    size = int(float(match["number"]) * _UNITS[match["unit"]])
    return {**facts, "asked_bytes": size, "fits_free": size <= memory.free, "fits_device": size <= memory.total}


PROBE = FIND.probe(plan, read, "when a call on CUDA failed, each variant only if its answer can change the diagnosis")
