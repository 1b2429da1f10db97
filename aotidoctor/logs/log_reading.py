"""Read a log into a ``LogReading``: source, prefilter, lines, forms, patterns, judgement, in that order.

The source is a stream of bytes, whatever it was: UTF-8, UTF-16, gzip, bytes of an unknown encoding.

A terminal, a mail or a JSON string may have put a short log into other lines. Which lines belong together cannot be
seen with certainty. So nothing is undone for good: each way to undo it is a reading of its own, and the one that is
understood is taken. Lines keep the numbers of the file.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import BinaryIO

from aotidoctor.logs import executorch
from aotidoctor.logs.assembly import Assembly, Draft, Matcher
from aotidoctor.logs.judgement import HINTS, RelatedFailure, groups, judge, rank_matches, stage_of, versions_in
from aotidoctor.logs.lines import Streams, clean_text, decode_line, plain_spelling, without_prefixes
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, Pattern, load_patterns, pattern_files
from aotidoctor.logs.prefilter import KeywordFilter, Numbered, Prefilter, telling_words
from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.report import LogEvent, LogReading

# Bytes as blocks of text.
# The first one tells whether a log is small; the others fit the cache that is nearest to the processor.
BLOCK, _HEAD, _NEXT = 1 << 18, 1 << 16, 1 << 16
_GZIP = b"\x1f\x8b\x08"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class LogSource:
    """A stream of bytes: ``size`` counts those read, ``problems`` says why not all were, ``head`` begins the text."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = 0
        self.head = b""
        self.problems: list[str] = []

    def blocks(self) -> Iterator[bytes]:
        """Blocks that fit a cache, cut anywhere."""
        raw = self._read()
        first = next(raw, b"")
        if first.startswith(_GZIP):
            raw = self._unpacked(first, raw)
            first = next(raw, b"")
        encoding = _encoding(first)
        if encoding == "utf-8":
            blocks: Iterator[bytes] = chain((first.removeprefix(codecs.BOM_UTF8),), raw)
        else:
            texts = codecs.iterdecode(chain((first,), raw), encoding, "replace")
            blocks = (text.encode("utf-8", "replace") for text in texts)
        for block in blocks:
            self.head = self.head or block[:_HEAD]
            yield block

    def _read(self) -> Iterator[bytes]:
        while True:
            try:
                block = self._stream.read(_NEXT if self.size else BLOCK)
            except OSError as error:
                self.problems.append(f"reading ended early: {error.strerror or error}")
                return
            if not block:
                return
            self.size += len(block)
            yield block

    def _unpacked(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        unpack = zlib.decompressobj(31)
        try:
            for block in chain((first,), rest):
                left = block
                while left:
                    yield unpack.decompress(left, BLOCK)
                    left = unpack.unconsumed_tail
            if not unpack.eof:
                self.problems.append("the gzip data end early")
        except zlib.error as error:
            self.problems.append(f"the gzip data are damaged: {error}")


def _encoding(first: bytes) -> str:
    """The encoding by the byte order mark; without one, text with a zero in every other byte is UTF-16."""
    for mark, name in _BOMS:
        if first.startswith(mark):
            return name
    head = first[:4096]
    half = len(head) // 2
    if half > 8 and head.count(0) <= half + 1:
        if head[1::2].count(0) > 0.8 * half:
            return "utf-16-le"
        if head[::2].count(0) > 0.8 * half:
            return "utf-16-be"
    return "utf-8"


# Other readings of a short log. Terminals and mails are not narrower, and hardly wider.
_NARROWEST, _WIDEST = 38, 400
_MOST_LINES = 4000
# The least count of line numbers, which then do not come by chance.
_COUNTED = 4
_ESCAPE = re.compile(r'\\(?P<letter>[nrt"/\\]|u[0-9a-fA-F]{4})')
_LETTERS = {"n": "\n", "r": "", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_COUNT = re.compile(r"[ \t]*(?P<number>\d{1,6})(?:[ \t]*[|:\u2502.)]|(?=[ \t]|$))[ \t]?")
_MARGIN = re.compile(r"(?:[ \t]*(?:[>#*|;]|//|E(?=  ))?[ \t]?)")


@dataclass(frozen=True, slots=True)
class OtherReading:
    """Lines as they may have been before a terminal, a mail or a JSON string changed them.

    ``is_sure``: the log has marks that hardly come by chance. ``is_certain``: it can hardly be anything else.
    """

    lines: list[Numbered]
    is_sure: bool
    is_certain: bool = False


def other_readings(lines: Sequence[Numbered]) -> Iterator[OtherReading]:
    """The readings that fit, the likeliest first."""
    if len(lines) > _MOST_LINES:
        return
    texts = [(number, decode_line(raw).rstrip("\r")) for number, raw in lines]
    split = _unescape_lines(texts)
    if split is not None:
        yield split
        texts = _decode_lines(split)
    inner = _without_margin(texts)
    counted = _without_numbers(inner)
    if counted is not None:
        yield counted
        inner = _decode_lines(counted)
    for way in _WAYS:
        found = way(inner)
        if found is not None:
            yield found


def _decode_lines(reading: OtherReading) -> list[tuple[int, str]]:
    return [(number, raw.decode("utf-8", "replace")) for number, raw in reading.lines]


def _encode_lines(texts: Sequence[tuple[int, str]], *, is_sure: bool) -> OtherReading:
    return OtherReading([(number, text.encode("utf-8", "replace")) for number, text in texts], is_sure)


def _unescape_lines(texts: Sequence[tuple[int, str]]) -> OtherReading | None:
    r"""A string of JSON or of a ``repr``: ``\n`` stands where a line ended."""
    breaks = sum(text.count("\\n") for _, text in texts)
    if not breaks:
        return None
    made: list[tuple[int, str]] = []
    for number, text in texts:
        plain = text
        if "\\n" in text:
            # A letter stands for a sign, or ``u`` and a number for a character.
            plain = _ESCAPE.sub(
                lambda hit: _LETTERS[hit[1]] if hit[1] in _LETTERS else chr(int(hit[1][1:], 16)), text.strip("'\", ")
            )
        first, *others = plain.split("\n")
        # What a container's runtime put before the line holds for each of its lines.
        bare = without_prefixes(first) if others else None
        prefix = first.removesuffix(bare.text) if bare is not None and bare.ranks else ""
        made.extend([(number, first), *((number, prefix + part) for part in others)])
    found = _encode_lines(made, is_sure=breaks > len(texts))
    return replace(found, is_certain=found.is_sure)


def _without_margin(texts: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """The lines without what stands before each of them: a quote, an indent."""
    filled = [text for _, text in texts if text.strip()]
    if len(filled) < 2:
        return texts
    found = _MARGIN.match(filled[0])
    margin = found[0] if found is not None else ""
    while margin and not all(text.startswith(margin) or text == margin.rstrip() for text in filled):
        margin = margin[:-1]
    return [(number, text[len(margin) :]) for number, text in texts] if margin else texts


def _without_numbers(texts: Sequence[tuple[int, str]]) -> OtherReading | None:
    """The lines without the ascending numbers that an editor or a web page shows before them."""
    hits = [(_COUNT.match(text), number, text) for number, text in texts if text.strip()]
    counts = [int(hit["number"]) for hit, _, _ in hits if hit is not None]
    if len(counts) < _COUNTED or len(counts) < len(hits) or any(a >= b for a, b in pairwise(counts)):
        return None
    return _encode_lines([(number, text[hit.end() :] if hit else text) for hit, number, text in hits], is_sure=True)


def _cut_at_the_edge(texts: Sequence[tuple[int, str]]) -> OtherReading | None:
    """A terminal's lines: one that is as wide as the widest goes on in the next."""
    width = max((len(text) for _, text in texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    joined: list[tuple[int, str]] = []
    goes_on, cuts = False, 0
    for number, text in texts:
        if goes_on and joined and text and not _is_new(text) and not _is_source(joined[-1][1], text):
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
            cuts += 1
        else:
            joined.append((number, text))
        goes_on = len(text) == width
    return _encode_lines(joined, is_sure=cuts > 2) if cuts else None


def _cut_between_words(texts: Sequence[tuple[int, str]]) -> OtherReading | None:
    """A mail's or an editor's lines: the first word of the next would not have fitted."""
    width = max((len(text) for _, text in texts), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    joined: list[tuple[int, str]] = []
    last, cuts = "", 0
    for number, text in texts:
        word = text.lstrip().partition(" ")[0]
        is_own = not last or not word or len(last) + 1 + len(word) <= width or _is_new(text) or _is_source(last, text)
        if is_own:
            joined.append((number, text))
        else:
            glue = "" if last.endswith(("/", "_", "-")) or (len(last) >= width and " " not in last.strip()) else " "
            joined[-1] = (joined[-1][0], joined[-1][1] + glue + text.lstrip())
            cuts += 1
        last = text
    return _encode_lines(joined, is_sure=False) if cuts else None


_FRAME = re.compile(r'\s{0,20}File "[^"\n]{1,400}", line \d{1,9}, in [\w.<>]{1,200}$')


def _is_source(before: str, text: str) -> bool:
    """Whether ``text`` is the line of source below a ``File`` line of a traceback."""
    return text.startswith("    ") and _FRAME.match(before) is not None


_NEW = re.compile(r"\s*(?:File \"|Traceback \(|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): )|\S+:\d+:\d+: ")


def _is_new(text: str) -> bool:
    """Whether ``text`` certainly begins a line of its own: by its words, or by a logger's prefix."""
    inner = without_prefixes(text)
    return bool(inner.ranks) or inner.stamped or _NEW.match(plain_spelling(inner.text)) is not None


_WAYS: tuple[Callable[[Sequence[tuple[int, str]]], OtherReading | None], ...] = (_cut_at_the_edge, _cut_between_words)


# The reading.
_FRAMES, _TEXT, _UNKNOWN, _ORIGINS = 64, 2000, 20, 64
# A trace of AOTInductor, of its packages or of the code in them.
_AOTI = re.compile(
    rb"(?i:aoti|aot_?inductor)|\.pt2\b|(?:run|create)_func_|model_container|input_handles|run_impl|\bshim"
)
_LONGEST = 4096


def read_log(stream: BinaryIO, name: str, patterns: Sequence[Pattern] | None = None) -> LogReading:
    """Read ``stream`` to its end. ``patterns`` are those of the playbooks unless others are given.

    A short log is read in other ways as well, where its lines may have been cut on their way (``other_readings``).
    """
    keywords, matcher = _tools_for(pattern_files()) if patterns is None else _tools_of(patterns)
    source, prefilter = LogSource(stream), Prefilter(keywords)
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
    # Programs print their versions when they start.
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
        found = _surest(made)
        # The one that names a cause, of two the surer, or the one of lines that were cut; else one with a failure.
        is_better = found > _surest(best) or (made.unknown and not best.events)
        if is_better or (way.is_sure and found >= LEAST_CONFIDENCE) or (way.is_certain and made.events):
            best, chosen = made, other
    short = chosen.short
    events = (*best.unknown, *(event for event in best.events if event.level == "error"))
    if not short or not events or _surest(best) >= LEAST_CONFIDENCE:
        return best
    # A short log without a sure cause: its words may suggest one. Most logs do not need the table.
    from aotidoctor.logs.word_model import reconsider_matches

    return replace(best, matches=reconsider_matches(best.matches, events[0], short))


class _Read:
    """One way to read a log: segments in, a ``LogReading`` out."""

    def __init__(self, matcher: Matcher) -> None:
        self._assembly, self._streams = Assembly(matcher), Streams()
        self.versions: dict[str, str] = {}
        self.names_aoti = self._is_executorch = False

    def add(self, segment: Sequence[Numbered]) -> None:
        _versions(segment, self.versions)
        for _, raw in segment:
            self.names_aoti = self.names_aoti or _AOTI.search(raw[:_LONGEST]) is not None
            self._is_executorch = self._is_executorch or executorch.RUNTIME.search(raw[:_LONGEST]) is not None
        self._assembly.add(list(clean_text(segment, self._streams)))

    def finished(self, name: str, source: LogSource, prefilter: Prefilter) -> LogReading:
        if prefilter.is_small:
            self._assembly.search_short_log(prefilter.lines)
        judged = judge(self._assembly.finished(prefilter.lines))
        events = {id(one.draft): _event(one, prefilter) for one in judged}
        found = groups(judged)
        unknown = [
            group.root for group in found if not group.is_known and group.root.level == "error" and not group.tainted
        ]
        matches = rank_matches(found, self.versions, events)
        # The file that prints a message is a trace of it as well, where no other prints it.
        sources = (match.pattern.source for match in matches if " or " not in match.pattern.source)
        self._is_executorch = self._is_executorch or executorch.RUNTIME.search(source.head) is not None
        printed = any(_AOTI.search(source.encode()) is not None for source in sources)
        problems = list(source.problems)
        if prefilter.skipped:
            count = f"{prefilter.skipped:,} between the first and the last of them were not read"
            problems.append(f"so many lines contain errors that {count}")
        return LogReading(
            name=name,
            size=source.size,
            lines=prefilter.lines,
            events=tuple(events.values()),
            matches=matches,
            more_events=self._assembly.more,
            versions=self.versions,
            origins=tuple(self._streams.origins)[:_ORIGINS],
            unknown=tuple(events[id(root)] for root in unknown[:_UNKNOWN]),
            problems=tuple(problems),
            names_aoti=not self._is_executorch
            and (self.names_aoti or printed or _AOTI.search(source.head) is not None),
        )

    @property
    def short(self) -> Sequence[str]:
        """The lines of a log that has few."""
        return [line.text for line in self._assembly.short]


def _surest(reading: LogReading) -> float:
    return reading.matches[0].confidence if reading.matches else 0.0


@lru_cache(maxsize=4)
def _tools_for(_files: tuple[Path, ...]) -> tuple[KeywordFilter, Matcher]:
    return _tools_of(load_patterns())


def _tools_of(patterns: Sequence[Pattern]) -> tuple[KeywordFilter, Matcher]:
    return KeywordFilter(telling_words(patterns)), Matcher(patterns)


def _versions(segment: Sequence[Numbered], versions: dict[str, str]) -> None:
    for _, raw in segment:
        if len(raw) < _LONGEST and HINTS.search(raw) is not None:
            versions_in(decode_line(raw), versions)


def _event(one: RelatedFailure, prefilter: Prefilter) -> LogEvent:
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
