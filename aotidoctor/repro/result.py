"""What became of a repro."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Repro:
    """``files`` are the names in the folder, the script first; empty where nothing was written.

    ``certified`` says what was seen, empty where it was not; ``problem`` says then why not. ``inputs``, ``weights`` and
    ``environment`` say in words what is in the folder of what the user gave; ``tried`` are the attempts, in order.
    """

    certified: str = ""
    problem: str = ""
    ending: str = ""
    inputs: str = ""
    weights: str = ""
    environment: str = ""
    files: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
