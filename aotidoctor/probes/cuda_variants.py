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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from aotidoctor.model.answers import Acted, parse_answer
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.cuda_probe import ACCESS, EARLY, VAGUE, repeat_call, symptom_of, vanished_blocking, why_not
from aotidoctor.probes.payload import device_index_of, device_of
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import History, Plan, Probe, evidence, succeeded, unasked

CODE, NAME = "AD-RUN-030", "cuda_variants"
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_ASKED = re.compile(r"Tried to allocate (?P<number>[\d.]+) (?P<unit>[KMGT]?i?B)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@record
class Variant:
    """One thing that is changed. ``why_not`` says what it could not decide here."""

    name: str
    words: str
    why_not: Callable[[Case, History, str], str | None]
    payload: Callable[[Case], Mapping[str, object]] = field(default=lambda _case: {})
    env: Mapping[str, str] = field(default_factory=dict)


def other_device(case: Case) -> int:
    """The number of a GPU that the failed run did not use."""
    return 0 if device_index_of(case) > 0 else 1


def _no_other_device(case: Case, _: History, symptom: str) -> str | None:
    if len(case.host.gpus) < 2:
        return "this host has no second GPU"
    if symptom in (*ACCESS, *VAGUE, "cuda-device-index", "mixed-device"):
        return None
    return f"{symptom} does not depend on the device's number"


def _no_stream(_: Case, history: History, symptom: str) -> str | None:
    return None if vanished_blocking(history) else "the failure does not depend on timing, as far as observed"


def _no_capture(case: Case, _: History, symptom: str) -> str | None:
    asked = case.options.asks_for(NAME)
    if asked or symptom == "cuda-capture":
        return None
    return "nothing is captured here; run this with --probes cuda_variants"


def _no_memory(_: Case, __: History, symptom: str) -> str | None:
    return None if symptom == "cuda-oom" else "the failure is not a refused allocation"


def _elsewhere(case: Case) -> Mapping[str, object]:
    return {"device_index": other_device(case)}


VARIANTS = (
    Variant(name="device", words="on a different GPU", why_not=_no_other_device, payload=_elsewhere),
    Variant(name="stream", words="on a different stream", why_not=_no_stream),
    Variant(name="capture", words="captured in a CUDA graph", why_not=_no_capture),
    Variant(
        name="expandable",
        words="with expandable segments of device memory",
        why_not=_no_memory,
        env={ALLOCATOR: "expandable_segments:True"},
    ),
)


def plan(case: Case, history: History) -> Plan:
    """One run per variant that can decide something."""
    reason = _never(case, history)
    if reason is not None:
        return unasked(CODE, NAME, reason)
    plain = history.outcomes["plain_run"]
    symptom = "" if succeeded(plain) else symptom_of(case, plain)
    return tuple(_one(case, history, variant, symptom) for variant in VARIANTS)


def _never(case: Case, history: History) -> str | None:
    reason, plain = why_not(case, history), history.plain
    if reason is None or device_of(case) != "cuda" or plain is None:
        return reason
    if succeeded(plain):
        asked = case.options.asks_for(NAME)
        return None if asked and case.inputs is not None else reason
    varying = symptom_of(case, plain) in ("cuda-oom", "cuda-capture", "cuda-device-index", "mixed-device")
    return None if varying and plain.stage not in EARLY else reason


def _one(case: Case, history: History, variant: Variant, symptom: str) -> Request | NotChecked:
    why = variant.why_not(case, history, symptom)
    if why is not None:
        return unasked(CODE, f"{NAME} {variant.name}", why)
    changes = {"cuda_variant": variant.name, **variant.payload(case)}
    return replace(
        repeat_call(case, history, f"{NAME}_{variant.name}", variant.words, **changes), env=dict(variant.env)
    )


def read(case: Case, history: History, outcome: Outcome) -> Sequence[Evidence]:
    """One finding: vanishes, same, differs, fails (where the plain run did not), works or unavailable."""
    name = outcome.request.probe.removeprefix(f"{NAME}_")
    words = next((variant.words for variant in VARIANTS if variant.name == name), name)
    plain = history.outcomes["plain_run"]
    facts: dict[str, FactValue] = {"variant": name, **_memory(outcome, plain)}
    if succeeded(outcome):
        was_failing = not succeeded(plain)
        return [
            evidence(
                CODE,
                "vanishes" if was_failing else "works",
                Severity.WARN if was_failing else Severity.INFO,
                outcome,
                subject=name,
                observed=f"{words}: no failure",
                expected="the same failure" if was_failing else "no failure",
                facts=facts,
            )
        ]
    now = read_ending(CODE, case, outcome)
    before = None if succeeded(plain) else symptom_of(case, plain)
    kind = _kind(outcome, str(now.facts.get("symptom")), before)
    return [
        replace(
            now,
            kind=kind,
            # That it fails there as well changes nothing; a new failure is one of what was asked for.
            severity=Severity.ERROR if kind == "fails" else Severity.INFO,
            observed=f"{words}: {now.observed}",
            expected="another outcome" if kind == "same" else "the outcome of the plain run",
            message=f"{words}: {now.observed}",
            facts={**now.facts, **facts},
        )
    ]


def _kind(outcome: Outcome, now: str, before: str | None) -> str:
    if outcome.stage in EARLY:
        # It never came to the call.
        return "unavailable"
    return "fails" if before is None else "same" if now == before else "differs"


def _memory(outcome: Outcome, plain: Outcome) -> dict[str, FactValue]:
    """Free and total bytes before the call, what was asked for, and whether it could have been had at all."""
    memory = parse_answer(Acted, outcome.result).cuda_memory
    if memory is None:
        return {}
    facts: dict[str, FactValue] = {"free_bytes": memory.free, "total_bytes": memory.total}
    match = _ASKED.search(plain.error.message) if plain.error is not None else None
    if match is None or match["unit"] not in _UNITS:
        return facts
    asked = int(float(match["number"]) * _UNITS[match["unit"]])
    return {**facts, "asked_bytes": asked, "fits_free": asked <= memory.free, "fits_device": asked <= memory.total}


PROBE = Probe(
    code=CODE,
    name=NAME,
    asks="does it depend on the device's number, the stream, a capture, or how memory is allocated?",
    asked_when="when a call on CUDA failed, each variant only if its answer can change the diagnosis",
    plan=plan,
    read=read,
)
