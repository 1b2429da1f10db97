"""The fingerprint of a failure, at two granularities, with what went into it."""

from __future__ import annotations

from aotidoctor.model.record import record

SIGNATURE_VERSION = 2


@record
class SignaturePart:
    """One part: ``rule`` made ``text`` out of ``source`` (evidence or run id, empty where there is none).

    ``granularity`` is ``family`` for a part of both fingerprints, ``exact`` for one of the finer only.
    """

    rule: str
    text: str
    granularity: str
    source: str = ""


@record
class Signature:
    """``family`` and ``exact`` are ``aotidoctor2f:`` and ``aotidoctor2:`` with 16 hex digits each."""

    family: str
    exact: str
    parts: tuple[SignaturePart, ...]
    version: int = SIGNATURE_VERSION
