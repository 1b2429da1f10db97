"""The first line of every document for people, and the colours of its tone."""

from __future__ import annotations

from aotidoctor.model.record import record

COLORS = {"good": "#1a7f37", "bad": "#c62828", "unsure": "#9a6700", "partial": "#7b3fb3"}


@record(kw_only=False)
class Headline:
    """The first line. ``tone`` is a key of ``COLORS``."""

    word: str
    text: str
    tone: str
