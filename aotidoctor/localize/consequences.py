"""Which findings of an emulation follow from others, and are not told beside them."""

from __future__ import annotations

from aotidoctor.model.answers.emulated import Emulation, Finding

_NO_ADDRESS = ("nan", "inf")


def worth_telling(found: Emulation) -> list[Finding]:
    """Without what follows from a failed assertion of the same launch, and from what was found before."""
    asserted = {one.launch for one in found.findings if one.kind == "device-assert"}
    astray = {one.launch for one in found.findings if one.kind in ("out-of-bounds", "use-after-free", "misaligned")}
    pairs = [(one, other) for one in found.findings for other in explained_by(one, found)]
    explained = [other for _, other in pairs]
    wrapped = {other.launch for one, other in pairs if (one.kind, other.kind) == ("int32-overflow", "race")}
    first = min((one for one in (*asserted, *astray, *wrapped) if one is not None), default=None)
    return [
        one
        for one in found.findings
        if not (one.launch in asserted and one.kind in ("out-of-bounds", "misaligned", "int32-overflow"))
        # What is read from where a lane went astray is not what the model computes, and what it left out is not there.
        and not (one.kind in _NO_ADDRESS and first is not None)
        and not (one.kind == "uninitialized" and first is not None and (one.launch is None or one.launch > first))
        and not (one.kind == "race" and one.launch in wrapped)
        and one not in explained
    ]


def explained_by(one: Finding, found: Emulation) -> list[Finding]:
    """What follows from it in the same launch.

    Of a 32-bit index that overflows: its lane that goes astray, lanes that collide in the buffer. Of a store that goes
    beyond its buffer: collisions inside of it, as what has no bound runs over its neighbours first.
    """
    return [other for other in found.findings if one.launch == other.launch and _follows(other, one)]


def _follows(other: Finding, one: Finding) -> bool:
    here = one.buffer == other.buffer is not None
    if one.kind == "out-of-bounds":
        return one.access == "store" and other.kind == "race" and here
    if one.kind != "int32-overflow":
        return False
    if other.kind == "race":
        return one.line == other.line or here
    # Were the index wrong without it, another lane would be the first.
    return other.kind == "out-of-bounds" and (one.line, *_lane(one)) == (other.line, *_lane(other))


def _lane(one: Finding) -> tuple[tuple[int, ...] | None, int | None]:
    return one.program, one.lane
