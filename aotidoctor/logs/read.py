"""From a stream to a ``LogReading``: source, prefilter, lines, forms, patterns, judgement, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from aotidoctor.logs.assembly import Assembly, Draft
from aotidoctor.logs.judgement import Judged, judge
from aotidoctor.logs.keyword_filter import KeywordFilter, telling_words
from aotidoctor.logs.lines import Streams, clean, decoded
from aotidoctor.logs.matching import Matcher
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, Pattern, load_patterns, pattern_files
from aotidoctor.logs.prefilter import Numbered, Prefilter
from aotidoctor.logs.ranking import groups, ranked
from aotidoctor.logs.source import Source
from aotidoctor.logs.stages import stage_of
from aotidoctor.logs.transports import other_readings
from aotidoctor.logs.versions import HINTS, versions_in
from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.log import LogEvent, LogReading

_FRAMES, _TEXT, _UNKNOWN, _ORIGINS = 40, 2000, 20, 64


def read_log(stream: BinaryIO, name: str, patterns: Sequence[Pattern] | None = None) -> LogReading:
    """Read ``stream`` to its end. ``patterns`` are those of the playbooks unless others are given.

    A short log is read in other ways as well, where its lines may have been cut on their way; see ``transports``.
    """
    keywords, matcher = _tools_for(pattern_files()) if patterns is None else _tools_of(patterns)
    source, prefilter = Source(stream), Prefilter(keywords)
    whole: list[list[Numbered]] = []
    read = _Read(matcher)
    reached = ""
    try:
        for segment in prefilter.feed(source.blocks()):
            read.add(segment)
            if prefilter.is_small:
                whole.append(segment)
    except LimitReachedError as error:
        if error.final:
            raise
        reached = f"{error}: not read beyond line {prefilter.lines:,}"
    # Programs tell their versions when they start.
    _versions(list(enumerate(source.head.split(b"\n"))), read.versions)
    made = read.finished(name, source, prefilter)
    if reached:
        return replace(made, problems=(*made.problems, reached), out_of_time=True)
    if not whole:
        return made
    best, chosen = made, read
    for way in other_readings([line for segment in whole for line in segment]):
        if _surest(best) >= LEAST_CONFIDENCE and not way.is_sure:
            continue
        other = _Read(matcher)
        other.add(way.lines)
        made = other.finished(name, source, prefilter)
        better = made if way.is_certain and made.events else _better(best, made, is_sure=way.is_sure)
        best, chosen = (made, other) if better is made else (best, chosen)
    return _reconsidered(best, chosen.short)


class _Read:
    """One way to read a log: segments in, a ``LogReading`` out."""

    def __init__(self, matcher: Matcher) -> None:
        self._assembly, self._streams = Assembly(matcher), Streams()
        self.versions: dict[str, str] = {}

    def add(self, segment: Sequence[Numbered]) -> None:
        _versions(segment, self.versions)
        self._assembly.add(list(clean(segment, self._streams)))

    def finished(self, name: str, source: Source, prefilter: Prefilter) -> LogReading:
        if prefilter.is_small:
            self._assembly.listen(prefilter.lines)
        judged = judge(self._assembly.finished(prefilter.lines))
        events = {id(one.draft): _event(one, prefilter) for one in judged}
        found = groups(judged)
        unknown = [
            group.root for group in found if not group.is_known and group.root.level == "error" and not group.tainted
        ]
        return LogReading(
            name=name,
            size=source.size,
            lines=prefilter.lines,
            events=tuple(events.values()),
            matches=ranked(found, self.versions, events),
            more_events=self._assembly.more,
            versions=self.versions,
            origins=tuple(self._streams.origins)[:_ORIGINS],
            unknown=tuple(events[id(root)] for root in unknown[:_UNKNOWN]),
            problems=(*source.problems, *_skipped(prefilter)),
        )

    @property
    def short(self) -> Sequence[str]:
        """The lines of a log that has few."""
        return [line.text for line in self._assembly.short]


def _reconsidered(reading: LogReading, lines: Sequence[str]) -> LogReading:
    """What is told of a short log without a sure cause, in the light of its words."""
    events = (*reading.unknown, *(event for event in reading.events if event.level == "error"))
    if not lines or not events or _surest(reading) >= LEAST_CONFIDENCE:
        return reading
    # Of most logs nobody asks it.
    from aotidoctor.logs.alike import reconsidered  # noqa: PLC0415

    return replace(reading, matches=reconsidered(reading.matches, events[0], lines))


def _better(best: LogReading, other: LogReading, *, is_sure: bool) -> LogReading:
    """The one that names a cause, of two the surer, or the one of lines that were cut; else one with a failure."""
    found = _surest(other)
    fails = bool(other.unknown) and not best.events
    return other if found > _surest(best) or fails or (is_sure and found >= LEAST_CONFIDENCE) else best


def _surest(reading: LogReading) -> float:
    return reading.matches[0].confidence if reading.matches else 0.0


@lru_cache(maxsize=4)
def _tools_for(_files: tuple[Path, ...]) -> tuple[KeywordFilter, Matcher]:
    return _tools_of(load_patterns())


def _tools_of(patterns: Sequence[Pattern]) -> tuple[KeywordFilter, Matcher]:
    return KeywordFilter(telling_words(patterns)), Matcher(patterns)


def _versions(segment: Sequence[Numbered], versions: dict[str, str]) -> None:
    for _, raw in segment:
        if len(raw) < 4096 and HINTS.search(raw) is not None:
            versions_in(decoded(raw), versions)


def _event(one: Judged, prefilter: Prefilter) -> LogEvent:
    draft: Draft = one.draft
    return LogEvent(
        form=draft.found.form,
        first=draft.at,
        last=draft.last,
        text=draft.found.text[:_TEXT],
        kind=draft.found.kind,
        frames=draft.found.frames[:_FRAMES],
        origin=draft.origin,
        stage=draft.found.stage or stage_of(draft.found),
        level=draft.level,
        count=max(draft.count, prefilter.count(draft.head)),
        echo_of=None if one.root is None else one.root.at,
        tainted=one.tainted,
    )


def _skipped(prefilter: Prefilter) -> list[str]:
    if not prefilter.skipped:
        return []
    return [
        f"so many lines contain errors that {prefilter.skipped:,} between the first and the last of them were not read"
    ]
