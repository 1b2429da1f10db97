"""Helpers of the tests: a text read as a log."""

from __future__ import annotations

import io

from aotidoctor.logs.log_reading import read_log


def read(text, name="x.log", **more):
    return read_log(io.BytesIO(text if isinstance(text, bytes) else text.encode()), name, **more)


def causes(reading):
    """Those that are told: sure ones, and what any program may print, as a suspicion without a sign of torch."""
    return [
        one.pattern.cause for one in reading.matches if one.confidence >= (0.3 if one.facts.get("unmarked") else 0.5)
    ]


def told(reading):
    """What the reading says, by the first lines, without where it stands."""
    return [(event.form, event.kind, event.text.partition("\n")[0]) for event in reading.events]
