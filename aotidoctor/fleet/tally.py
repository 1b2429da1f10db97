"""How far a fleet has come: what the progress shows, and what the exit status is made of."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from aotidoctor.model.fleet import JUDGED, FleetResult


@dataclass(slots=True)
class Tally:
    """Counts. ``kept`` items had a line in the folder already, ``cached`` ones an answer in the cache.

    ``verdicts`` counts verdicts, with the ending in their place where an item was not judged; ``causes`` those of the
    first rank. ``statuses`` counts the exit statuses of items that are not as expected.
    """

    total: int = 0
    kept: int = 0
    cached: int = 0
    judged: int = 0
    as_expected: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Items that have a line."""
        return self.kept + self.cached + self.judged

    def add(self, result: FleetResult) -> None:
        """Count one result."""
        self.verdicts[result.verdict if result.ending == JUDGED else result.ending] += 1
        if result.cause is not None and result.verdict != "healthy":
            self.causes[result.cause] += 1
        if result.as_expected:
            self.as_expected += 1
        else:
            self.statuses[result.status] += 1

    @property
    def rate(self) -> float:
        """Items per second that were judged in this run."""
        return self.judged / max(1e-6, time.monotonic() - self.since)

    @property
    def remaining(self) -> float | None:
        """Seconds that the rest will take, if it goes on like this; None where nothing tells."""
        done = self.judged + self.cached
        if not done:
            return None
        return (self.total - self.done) * (time.monotonic() - self.since) / done
