"""From a stream to a ``LogReading``: source, sieve, lines, forms, patterns, judgement, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import BinaryIO

from aotidoctor.logs.assembly import Assembly, Draft
from aotidoctor.logs.judgement import Judged, judge
from aotidoctor.logs.lines import Streams, clean, decoded
from aotidoctor.logs.matching import Matcher
from aotidoctor.logs.patterns import Pattern, load_patterns
from aotidoctor.logs.ranking import groups, ranked
from aotidoctor.logs.sieve import Numbered, Sieve
from aotidoctor.logs.source import Source
from aotidoctor.logs.stages import stage_of
from aotidoctor.logs.versions import HINTS, versions_in
from aotidoctor.logs.words import Telltale, telling_words
from aotidoctor.model.log import LogEvent, LogReading

_FRAMES, _TEXT, _UNKNOWN, _ORIGINS = 40, 2000, 20, 64


def read_log(stream: BinaryIO, name: str, patterns: Sequence[Pattern] | None = None) -> LogReading:
    """Read ``stream`` to its end. ``patterns`` are those of the playbooks unless others are given."""
    telltale, matcher = _tools() if patterns is None else _tools_of(patterns)
    source, sieve = Source(stream), Sieve(telltale)
    assembly, streams = Assembly(matcher), Streams()
    versions: dict[str, str] = {}
    for segment in sieve.feed(source.blocks()):
        _versions(segment, versions)
        assembly.add(list(clean(segment, streams)))
    # Programs tell their versions when they start.
    _versions(list(enumerate(source.head.split(b"\n"))), versions)
    judged = judge(assembly.finished(sieve.lines))
    events = {id(one.draft): _event(one, sieve) for one in judged}
    found = groups(judged)
    unknown = [
        group.root for group in found if not group.is_known and group.root.level == "error" and not group.tainted
    ]
    return LogReading(
        name=name,
        size=source.size,
        lines=sieve.lines,
        events=tuple(events.values()),
        matches=ranked(found, versions, events),
        more_events=assembly.more,
        versions=versions,
        origins=tuple(streams.origins)[:_ORIGINS],
        unknown=tuple(events[id(root)] for root in unknown[:_UNKNOWN]),
        problems=(*source.problems, *_skipped(sieve)),
    )


@lru_cache(maxsize=1)
def _tools() -> tuple[Telltale, Matcher]:
    return _tools_of(load_patterns())


def _tools_of(patterns: Sequence[Pattern]) -> tuple[Telltale, Matcher]:
    return Telltale(telling_words(patterns)), Matcher(patterns)


def _versions(segment: Sequence[Numbered], versions: dict[str, str]) -> None:
    for _, raw in segment:
        if len(raw) < 4096 and HINTS.search(raw) is not None:
            versions_in(decoded(raw), versions)


def _event(one: Judged, sieve: Sieve) -> LogEvent:
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
        count=max(draft.count, sieve.count(draft.head)),
        echo_of=None if one.root is None else one.root.at,
        tainted=one.tainted,
    )


def _skipped(sieve: Sieve) -> list[str]:
    if not sieve.skipped:
        return []
    return [
        f"so many lines speak of errors that {sieve.skipped:,} between the first and the last of them were not read"
    ]
