"""What a flow of items works with: who judges, where answers are kept, what is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from aotidoctor.fleet.cache import Cache
from aotidoctor.fleet.pool import Answer, Job
from aotidoctor.fleet.results import ResultsFolder
from aotidoctor.fleet.settings import Settings
from aotidoctor.fleet.tally import Tally
from aotidoctor.model.record import record


class Engine(Protocol):
    """Who judges: a pool of this machine, or a cluster."""

    @property
    def pending(self) -> int:
        """Jobs without an answer."""

    @property
    def room(self) -> int:
        """Jobs that may be submitted now."""

    def submit(self, job: Job) -> None:
        """Add a job."""

    def wait(self) -> Iterator[Answer]:
        """The answers that have come, after at most a moment. Raises OSError where nobody is left to judge."""


@record
class Means:
    """What a flow works with.

    ``host_key`` gives the digest of a host profile, or of the machines that judge for None; raises AotidoctorError.
    ``redact`` hides what is private in a text. ``keep_lost``: an item that was not judged to its end keeps its line,
    as where an interrupted run goes on.
    """

    settings: Settings
    folder: ResultsFolder
    cache: Cache
    engine: Engine
    host_key: Callable[[str | None], str]
    redact: Callable[[str], str]
    on_progress: Callable[[Tally], None]
    keep_lost: bool = False
