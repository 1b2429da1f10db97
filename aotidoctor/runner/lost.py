"""The error between the two ends of a warm worker."""

from __future__ import annotations

from aotidoctor.model.run import ChildError


class ForkServerLostError(Exception):
    """The forkserver does not answer any more, or never did. ``error`` is set when torch could not be imported."""

    def __init__(self, reason: str, error: ChildError | None = None) -> None:
        super().__init__(reason)
        self.error = error
