"""The texts of the corpus, and what the patterns say of one."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.log_reading import read_log
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, LEAST_SUSPICION
from aotidoctor.model.report import LogMatch

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Text:
    """What somebody pasted, and what it turned out to be. ``shared``: causes that say the very same words."""

    id: str
    symptom: str
    cause: str | None
    confidence: str = "high"
    half: str = ""
    shared: tuple[str, ...] = ()
    url: str = ""


@cache
def texts(name: str) -> tuple[Text, ...]:
    """Those of ``name`` that have a symptom."""
    rows = [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
    fields = Text.__dataclass_fields__
    made = [{key: value for key, value in row.items() if key in fields} for row in rows]
    return tuple(Text(**{**row, "shared": tuple(row.get("shared", ()))}) for row in made if row["symptom"])


def matches(text: str) -> tuple[LogMatch, ...]:
    """What the patterns know in ``text``, the best first; leads, which are no diagnosis, among them."""
    return read_log(io.BytesIO(text.encode()), "log").matches


def first_cause(text: str) -> str | None:
    """The cause that stands first, None when nothing is known well enough."""
    every = matches(text)
    found = [match for match in every if match.confidence >= LEAST_CONFIDENCE]
    # What any program may print, without a sign of torch around it: a suspicion.
    found = found or [one for one in every if one.facts.get("unmarked") and one.confidence >= LEAST_SUSPICION]
    return found[0].pattern.cause if found else None


def told(text: str) -> str | None:
    """What classify says of a text: its first cause, ``unknown`` for a failure without one, None for no failure."""
    _, diagnoses, reading = classify_text(text.encode(), "log")
    return diagnoses[0].cause if diagnoses else "unknown" if reading.unknown else None
