"""What the emulation of a CUDA package saw, in the words of its program."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aotidoctor.localize.blame import Failure
from aotidoctor.localize.blame.assertion_messages import OUT_OF_BOUNDS
from aotidoctor.localize.blame.failure import INDEX
from aotidoctor.model.answers import told
from aotidoctor.model.answers.emulated import Emulated, Emulation, Finding
from aotidoctor.model.case import Case
from aotidoctor.model.dtypes import contiguous_stride
from aotidoctor.model.run import Outcome


def failure_of(found: Finding) -> Failure | None:
    """The check in the kernel's text that failed; None for anything but an index."""
    hit = OUT_OF_BOUNDS.search(found.message)
    if found.kind != "device-assert" or hit is None:
        return None
    return Failure(
        kind=INDEX, kernel=found.kernel, line=found.wrapper_line, variable=hit["variable"], bound=hit["bound"]
    )


def read_emulation(outcome: Outcome) -> Emulation | None:
    """The result of the job; None where it did not get that far."""
    return told(Emulated, outcome.result).emulation


def shown_buffer(case: Case, name: str | None) -> tuple[str, str | None]:
    """What people call the wrapper's buffer, and the caller's path where it is an input."""
    if name is None:
        return "a null pointer", None
    contract = case.contract
    if contract is None:
        return name, None
    for leaf in contract.leaves:
        if name in (leaf.generated_name, leaf.path):
            return leaf.path, leaf.path
    names: Mapping[str, str] = {one.name: one.fqn for one in contract.constants}
    return names.get(name, name), None


def element_text(found: Finding) -> str:
    """``[100, 0] of 100 rows`` for a row of a contiguous tensor, else ``[2400] of 2400 elements``."""
    if found.offset is None or found.extent is None:
        return ""
    whole = len(found.sizes) > 1 and 0 not in found.sizes and contiguous_stride(found.sizes) == found.strides
    if whole and found.offset >= 0 and math.prod(found.sizes) == found.extent:
        index, rest = [], found.offset
        for step in found.strides:
            index.append(rest // step)
            rest %= step
        return f"[{', '.join(map(str, index))}] of {found.sizes[0]} rows"
    return f"[{found.offset}] of {found.extent} elements"
