"""Process the items of a fleet: each keeps its line, is taken from the cache, or is judged, in that order.

The key of an item decides: where the line in the folder has the same key, it stands; where the cache has an answer
for it, that is taken. Memory grows with the names of the items only: reports go from the process that made them to
the disk.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from aotidoctor.fleet.cache import DIGEST_VERSION, Cache, Settings, answer_key
from aotidoctor.fleet.items import FleetItem, item_json
from aotidoctor.fleet.pool import PoolAnswer, PoolJob
from aotidoctor.fleet.results import ResultsFolder
from aotidoctor.model.case import file_of
from aotidoctor.model.errors import CANNOT_EXAMINE, INTERNAL_ERROR, OK, OUT_OF_TIME, PROBLEM, UNKNOWN, AotidoctorError
from aotidoctor.model.fleet import FAILED, JUDGED, REPORTS_FOLDER, TIMED_OUT, UNREADABLE, FleetResult
from aotidoctor.model.fleet_summary import FleetFormatError, read_line, result_line
from aotidoctor.model.record import JsonObject, JsonValue, as_list, record
from aotidoctor.remote.remote_files import is_url
from aotidoctor.version import __version__


# How far it has come: progress, and the exit status.
@dataclass(slots=True)
class FleetTally:
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
        """Estimated seconds for the rest, at the rate so far; None before the first item."""
        done = self.judged + self.cached
        if not done:
            return None
        return (self.total - self.done) * (time.monotonic() - self.since) / done


# The engine that judges, the place of answers, the progress.
class JudgingEngine(Protocol):
    """Interface of what judges: a pool of this machine, or a cluster."""

    @property
    def pending(self) -> int:
        """Jobs without an answer."""

    @property
    def room(self) -> int:
        """Jobs that may be submitted now."""

    def submit(self, job: PoolJob) -> None:
        """Add a job."""

    def wait(self) -> Iterator[PoolAnswer]:
        """The answers that have come, after at most a moment. Raises OSError where nobody is left to judge."""


@record
class FlowContext:
    """Settings, folder, cache and engine of a flow.

    ``host_key`` gives the digest of a host profile, or of the machines that judge for None; raises AotidoctorError.
    ``redact`` hides what is private in a text. ``keep_lost``: an item that was not judged to its end keeps its line,
    as where an interrupted run goes on.
    """

    settings: Settings
    folder: ResultsFolder
    cache: Cache
    engine: JudgingEngine
    host_key: Callable[[str | None], str]
    redact: Callable[[str], str]
    on_progress: Callable[[FleetTally], None]
    keep_lost: bool = False


# The flow. Exit statuses of answers that would be the same the next time.
_STEADY = frozenset({OK, PROBLEM, UNKNOWN})
# Files whose digests one job takes, and their bytes.
_DIGESTS, _DIGEST_BYTES = 32, 256 << 20


@dataclass(slots=True)
class _ItemFiles:
    """The files of an item: their stamps (None for a URL), and digests where they are known."""

    item: FleetItem
    status: Mapping[str, os.stat_result | None] = field(default_factory=dict)
    digests: dict[str, tuple[str, int]] = field(default_factory=dict)
    key: str = ""

    @property
    def unknown(self) -> list[str]:
        """Files that have to be read."""
        return [path for path in self.status if path not in self.digests]


@dataclass(slots=True)
class FleetFlow:
    """A flow that has the items judged and writes their lines."""

    context: FlowContext
    tally: FleetTally
    _under_way: dict[str, list[_ItemFiles]] = field(default_factory=dict)
    _to_judge: deque[_ItemFiles] = field(default_factory=deque)
    _hosts: dict[str | None, str] = field(default_factory=dict)
    _no_hosts: dict[str | None, str] = field(default_factory=dict)
    _jobs: int = 0

    def run(self, fleet: Sequence[FleetItem]) -> None:
        """Process every item. Raises OSError where the results cannot be written or nobody can judge."""
        left = iter(fleet)
        while self._feed(left) or self.context.engine.pending:
            for answer in self.context.engine.wait():
                self._take(answer)
            self.context.on_progress(self.tally)

    def _feed(self, left: Iterator[FleetItem]) -> bool:
        """Give the engine work while it has room; whether there is more to come."""
        engine = self.context.engine
        while engine.room > 0:
            if self._to_judge:
                known = self._to_judge.popleft()
                self._submit(item_json(known.item), [known])
            elif chunk := self._gather(left):
                paths: list[JsonValue] = [path for known in chunk for path in known.unknown]
                self._submit({"op": "digest", "paths": paths}, chunk)
            elif not self._to_judge:
                return False
        return True

    def _submit(self, message: JsonObject, whose: list[_ItemFiles]) -> None:
        self._jobs += 1
        self._under_way[str(self._jobs)] = whose
        self.context.engine.submit(PoolJob(tag=str(self._jobs), message=message))

    def _gather(self, left: Iterator[FleetItem]) -> list[_ItemFiles]:
        """The next items whose files have to be read for their digests; what needs no reading is decided here."""
        chunk: list[_ItemFiles] = []
        size = 0
        for item in left:
            known = self._files_of(item)
            if known is not None and known.unknown:
                chunk.append(known)
                size += sum(status.st_size for path in known.unknown if (status := known.status[path]) is not None)
            elif known is not None:
                self._decide(known)
            self.context.on_progress(self.tally)
            if self._to_judge or len(chunk) >= _DIGESTS or size >= _DIGEST_BYTES:
                break
        return chunk

    def _files_of(self, item: FleetItem) -> _ItemFiles | None:
        """Stamps and digests of the files of ``item``; None where it has its line at once."""
        if item.host not in self._hosts and item.host not in self._no_hosts:
            try:
                self._hosts[item.host] = self.context.host_key(item.host)
            except AotidoctorError as error:
                self._no_hosts[item.host] = str(error)
        problem = item.problem or self._no_hosts.get(item.host)
        if problem is not None:
            self._write(_ItemFiles(item), self._unjudged(item, UNREADABLE, problem, CANNOT_EXAMINE), None)
            return None
        try:
            status = {path: None if is_url(path) else Path(path).stat() for path in map(file_of, item.files)}
        except (OSError, ValueError):
            # The command has the best message for it.
            return _ItemFiles(item)
        cache = self.context.cache
        digests = {path: got for path, each in status.items() if each is not None and (got := cache.digest(path, each))}
        return _ItemFiles(item, status, digests)

    def _decide(self, known: _ItemFiles) -> None:
        """Keep the line that there is, take an answer from the cache, or have it judged."""
        item = known.item
        if known.status and not known.unknown:
            contents = [known.digests[file_of(path)][0] for path in item.files]
            known.key = answer_key(item, contents, self.context.settings, self._hosts[item.host])
        if not self._keeps(known) and not self._finds(known):
            self._to_judge.append(known)

    def _keeps(self, known: _ItemFiles) -> bool:
        """Whether the folder's line of the item stands."""
        item, folder = known.item, self.context.folder
        if not known.key or folder.kept.get(item.id) != known.key:
            return False
        result = folder.line(item.id)
        steady = result.ending == JUDGED and result.status in _STEADY
        if not (steady or self.context.keep_lost) or (result.report is not None and not folder.has_report(item.id)):
            return False
        labelled = _with_labels(result, item, self.context.redact)
        if labelled != result:
            folder.append(labelled)
        self.tally.kept += 1
        self.tally.add(labelled)
        return True

    def _finds(self, known: _ItemFiles) -> bool:
        """Whether the cache has the answer."""
        item = known.item
        found = self.context.cache.answer(known.key, item.id) if known.key else None
        if found is None:
            return False
        line, report, own = found
        try:
            result = read_line(line)
        except FleetFormatError:
            return False
        if not own:
            result = self._named(result, item)
        self._write(known, result, report, cached=True)
        return True

    def _take(self, answer: PoolAnswer) -> None:
        whose = self._under_way.pop(answer.job.tag)
        if answer.job.message.get("op") == "digest":
            self._digested(whose, answer)
            return
        known = whose[0]
        try:
            result = read_line(str(answer.message.get("line"))) if answer.lost is None else None
        except FleetFormatError as error:
            result = self._unjudged(known.item, FAILED, f"aotidoctor failed here: {error}", INTERNAL_ERROR)
        if result is None:
            lost = answer.lost or FAILED
            result = self._unjudged(known.item, lost, answer.problem, OUT_OF_TIME if lost == TIMED_OUT else UNKNOWN)
            result = replace(result, seconds=round(answer.seconds, 4))
        result = replace(result, attempts=answer.attempts)
        self._write(known, result, answer.body or None)

    def _digested(self, whose: list[_ItemFiles], answer: PoolAnswer) -> None:
        """The digests of some items; one that could not be read is judged all the same, and not remembered."""
        found = iter(as_list(answer.message.get("digests")))
        for known in whose:
            for path in known.unknown:
                match next(found, None):
                    case [str(sha256), int(size)]:
                        known.digests[path] = (sha256, size)
                        status = known.status[path]
                        if status is not None:
                            self.context.cache.keep_digest(path, status, sha256, size)
        for known in whose:
            self._decide(known)

    def _write(self, known: _ItemFiles, result: FleetResult, report: bytes | None, *, cached: bool = False) -> None:
        """Count the result, and write its line and report."""
        result = replace(_with_labels(result, known.item, self.context.redact), key=known.key)
        sha256, size = known.digests.get(file_of(known.item.path), (None, None))
        if sha256 is not None:
            # The version of a URL or of a large file is no digest of its content.
            result = replace(result, sha256=None if sha256.startswith(DIGEST_VERSION) else sha256, size=size)
        result = replace(result, report=f"{REPORTS_FOLDER}/{result.item}.json" if report is not None else None)
        self.context.folder.add(result, report)
        if cached:
            self.tally.cached += 1
        else:
            self.tally.judged += 1
            if known.key and result.ending == JUDGED and result.status in _STEADY:
                line = result_line(replace(result, labels={}, expected=None, as_expected=None))
                self.context.cache.keep_answer(known.key, result.item, line, report, healthy=result.is_healthy)
        self.tally.add(result)

    def _unjudged(self, item: FleetItem, ending: str, why: str, status: int) -> FleetResult:
        result = FleetResult(
            item=item.id, name="", command=item.command, ending=ending, status=status, tool=__version__
        )
        return self._named(replace(result, problem=self.context.redact(why)), item)

    def _named(self, result: FleetResult, item: FleetItem) -> FleetResult:
        """``result`` with the redacted paths of ``item``."""

        def redacted(path: str | None) -> str | None:
            return None if path is None else self.context.redact(path)

        return replace(
            result,
            item=item.id,
            name=self.context.redact(item.path),
            inputs=redacted(item.inputs),
            reference=redacted(item.reference),
            log=redacted(item.path if item.command == "classify" else None),
            host=redacted(item.host),
        )


def _with_labels(result: FleetResult, item: FleetItem, redact: Callable[[str], str]) -> FleetResult:
    """``result`` with the labels and the expectation of the manifest."""
    met = None
    if item.expected is not None:
        got = "healthy" if result.is_healthy else result.cause or result.verdict
        met = result.ending == JUDGED and item.expected == got
    labels = {redact(name): redact(value) for name, value in item.labels.items()}
    expected = redact(item.expected) if item.expected is not None else None
    return replace(result, labels=labels, expected=expected, as_expected=met)
