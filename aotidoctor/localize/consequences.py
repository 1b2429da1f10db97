"""Which findings of an emulation follow from others, and are not told beside them."""

from __future__ import annotations

from aotidoctor.localize.emulated import Emulated, Emulation

_NO_ADDRESS = ("nan", "inf")


def worth_telling(found: Emulation) -> list[Emulated]:
    """Without what follows from a failed assertion of the same launch, and from what was found before."""
    asserted = {one.launch for one in found.findings if one.kind == "device-assert"}
    astray = {one.launch for one in found.findings if one.kind in ("out-of-bounds", "use-after-free", "misaligned")}
    explained = [other for one in found.findings for other in explained_by(one, found)]
    wrapped = {one.launch for one in explained if one.kind == "race"}
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


def explained_by(one: Emulated, found: Emulation) -> list[Emulated]:
    """What follows from a 32-bit index that overflows: its lane that goes astray, lanes that collide in the buffer."""
    if one.kind != "int32-overflow":
        return []
    return [
        other
        for other in found.findings
        if one.launch == other.launch
        and (
            (other.kind == "race" and (one.line == other.line or one.buffer == other.buffer is not None))
            # Were the index wrong without it, another lane would be the first.
            or (other.kind == "out-of-bounds" and (one.line, *_lane(one)) == (other.line, *_lane(other)))
        )
    ]


def _lane(one: Emulated) -> tuple[tuple[int, ...] | None, int | None]:
    return one.program, one.lane
