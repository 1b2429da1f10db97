"""The weights alone do not fit into the available memory.

What it does
    Adds up the constants of the model and compares the sum with available memory, with the address-space limit, and for
    a GPU with its memory, if known.

Why it matters
    The system kills the load without a message, or it fails with "can't allocate memory" in the middle.

Example:
    constants: observed 42949672960 bytes, expected at most 25276502016

When it is wrong
    Memory-mapped weights need address space, not memory. Activations are not counted: a small model can also run out of
    memory.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member, device_of, unstated_reason
from aotidoctor.model.case import Case

FIND = Finder("AD-HOST-011", "out_of_memory")
AVAILABLE = "available memory"


def run(case: Case) -> Findings:
    """At most one finding: the firmest limit that is exceeded."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    if device_of(case) in (None, "cpu") and (reason := unstated_reason(case, "memory_total")) is not None:
        return FIND.unchecked(reason)
    host, objects = case.host, case.model.shared_objects
    declared = sum(constant.data_size or 0 for constant in case.contract.constants) if case.contract else 0
    constants = declared or sum(item.constants_span or 0 for item in objects)
    memory: list[tuple[int | None, str]] = []
    if device_of(case) not in (None, "cpu"):
        memory = [(gpu.memory_total, "the memory of the GPU") for gpu in host.gpus[:1]]
    elif case.contract is None or case.contract.weights != "mmap":
        memory = [(host.memory_total, "all memory"), (host.memory_available, AVAILABLE)]
    limits = [(constants, limit, words) for limit, words in memory if limit is not None]
    space = case.options.memory_limit or host.address_space_limit
    if space is not None:
        limits.append((constants + sum(item.size for item in objects), space, "the address-space limit"))
    exceeded = [entry for entry in limits if entry[0] > entry[1]]
    if not exceeded:
        return None
    # Available memory changes from minute to minute; the total does not.
    needed, limit, words = min(exceeded, key=lambda entry: (entry[2] == AVAILABLE, entry[1]))
    state = FIND.warn if words == AVAILABLE else FIND.error
    return state(
        "estimate",
        "constants",
        observed=f"{needed} bytes",
        expected=f"at most {limit}, {words}",
        source=at_member(case, case.contract.member if case.contract else None),
        facts={"needed": needed, "limit": limit, "which": words},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"), facts=("constant", "buffer"))
