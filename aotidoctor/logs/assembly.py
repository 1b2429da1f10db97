"""From lines to failures: each stream is read form by form; what is said again is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from aotidoctor.logs.fences import without_sources
from aotidoctor.logs.forms import FORMS
from aotidoctor.logs.forms.python import unfinished
from aotidoctor.logs.found import Found, lines_found, message_found
from aotidoctor.logs.harmless import is_calm
from aotidoctor.logs.keyword_filter import letters
from aotidoctor.logs.known import recognised
from aotidoctor.logs.line import Line
from aotidoctor.logs.margins import without_margins
from aotidoctor.logs.marks import of_torch
from aotidoctor.logs.matching import Matcher
from aotidoctor.logs.origins import arisen, is_place, is_sentence
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, is_told
from aotidoctor.logs.severity import is_bare, is_mention, is_probe, is_warning
from aotidoctor.model.log import LogMatch

# Kept with all they say; what comes after them is counted.
MOST_EVENTS, _REMEMBERED = 300, 50_000
_AROUND = 40
# Of so few lines somebody chose each one.
_PASTE = 400
# So far behind it is what somebody says of it.
_NEXT = 3
_RECOVERED = re.compile(r"(?i:(?:failure|error) (?:was )?recovered|(?<!not be )(?<!not )recovered (?:by|after|from) )")
_KEY, _TELLING = 400, 40
# A warning that is known so well is what a short log is about.
_CERTAIN, _CHOSEN = 0.85, 10
_RAISED = re.compile(r"[\w.]{0,200}(?:Compil\w{0,20}|Inductor|Lowering)(?:Error|Exception|Failure): ")


@dataclass(slots=True)
class Draft:
    """A failure as it was found. ``level`` is ``error``, ``warning`` or ``notice`` (a line that only patterns know).

    ``is_cut``: the segment ended in it; ``is_record``: it is what a logger was told to say.
    """

    found: Found
    origin: str
    level: str
    head: bytes
    at: int
    last: int
    matches: tuple[LogMatch, ...] = ()
    count: int = 1
    is_cut: bool = False
    is_record: bool = False


@dataclass(slots=True)
class Assembly:
    """All failures so far; ``short`` are the lines of a log that has few."""

    matcher: Matcher
    drafts: list[Draft] = field(default_factory=list)
    more: int = 0
    _index: dict[int, Draft | None] = field(default_factory=dict)
    short: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> None:
        """Read a segment."""
        lines = without_sources(lines)
        streams: dict[str, list[int]] = {}
        for at, line in enumerate(lines):
            streams.setdefault(line.stream, []).append(at)
        lines = _freed(lines, streams.values())
        self.short = list(lines) if len(lines) <= _PASTE else []
        known = self.matcher.candidates(lines)
        found: list[tuple[int, int, Found, Line]] = []
        for places in streams.values():
            own = [lines[at] for at in places]
            for one in failures(own, known):
                head = next(
                    (line for line in own[one.first : one.end] if line.number == one.said[0][0]), own[one.first]
                )
                found.append((places[one.first], places[one.end - 1], one, head))
        # The order of the log, whatever stream it was.
        for first, last, one, head in sorted(found, key=lambda item: (item[2].said[0][0], item[0])):
            self._keep(lines, first, last, one, head)
        over = [line for line in lines if "ecover" in line.text and _RECOVERED.search(line.text) is not None]
        if over:
            self._recovered(over)
        for line in lines:
            if "gnoring this choice" in line.text:
                self._left_out(line)

    def _recovered(self, over: Sequence[Line]) -> None:
        """What failed before a line that says that it was tried again and went well is news."""
        for draft in self.drafts:
            if draft.level == "error" and any(line.number > draft.at and line.origin == draft.origin for line in over):
                draft.level = "mention"

    def _left_out(self, line: Line) -> None:
        """What autotuning says of a candidate is no failure where the next line leaves that one out."""
        for draft in reversed(self.drafts):
            if draft.level == "error" and draft.origin == line.origin and draft.at <= line.number <= draft.last + _NEXT:
                draft.level = "mention"

    def listen(self, lines: int) -> None:
        """Where a short log of so many lines has no failure so far: half a traceback, or what else it complains of."""
        failed = [draft for draft in self.drafts if draft.level == "error"]
        if failed:
            self._summed_up(failed)
            return
        # Of most logs nobody asks it.
        from aotidoctor.logs.complaints import complains  # noqa: PLC0415
        from aotidoctor.logs.titles import told  # noqa: PLC0415

        if any(draft.level == "warning" and _sure(draft) >= _CERTAIN for draft in self.drafts):
            # What it complains of is known.
            return
        found = unfinished(self.short) or complains(self.short, is_alone=lines <= 1) or told(self.short)
        if found is None:
            self._chosen(lines)
            return
        draft = self._failed(found)
        self._summed_up([draft] if draft is not None else [])

    def _failed(self, found: Found) -> Draft | None:
        """A failure of a short log, which may have been taken for a warning before."""
        self._keep(self.short, found.first, found.end - 1, found, self.short[found.first])
        draft = self._index.get(_index_of(found))
        if draft is not None:
            draft.level = "error"
        return draft

    def _summed_up(self, failed: Sequence[Draft]) -> None:
        """Where nothing but places speaks for a cause: what somebody says of it before or after what was printed."""
        from aotidoctor.logs.titles import title  # noqa: PLC0415

        told = [match for draft in failed for match in draft.matches if is_told(match)]
        if any(not is_place(match) and not is_sentence(match) for match in told):
            # A message tells more than who speaks of it.
            _leave_out(failed, is_sentence)
        elif any(is_sentence(match) for match in told):
            _leave_out(failed, is_place)
        else:
            whole = [(draft.at, draft.last) for draft in failed if draft.found.kind != "truncated"]
            found = title(self.short, whole)
            draft = self._failed(found) if found is not None else None
            if draft is not None and draft.matches:
                _leave_out([other for other in failed if other is not draft], is_place)

    def _chosen(self, lines: int) -> None:
        """A compiler's exception that was logged as a warning: of so few lines somebody chose it."""
        for draft in self.drafts if lines <= _CHOSEN else ():
            if draft.found.form == "python" and draft.is_record and _RAISED.match(draft.found.text) is not None:
                draft.level = "error" if draft.level == "warning" else draft.level

    def finished(self, lines: int) -> list[Draft]:
        """All drafts of a log of so many lines. What the end of a segment cut off goes on in lines seen before."""
        return [draft for draft in self.drafts if not draft.is_cut or draft.last >= lines]

    def _keep(self, lines: Sequence[Line], first: int, last: int, found: Found, head: Line) -> None:
        key = _index_of(found)
        full = len(self.drafts) >= MOST_EVENTS
        known = self._index.get(key)
        if known is not None:
            known.count += 1
            return
        if key in self._index and (full or found.level == "notice"):
            self.more += 1
            return
        draft = self._draft(lines, first, last, found, head)
        # It may have the words of a pattern, and be another line.
        is_other = not draft.matches and found.level == "notice"
        is_left = not draft.matches and full and not is_other
        self.more += is_left
        if not is_other and not is_left:
            self.drafts.append(draft)
        if len(self._index) < _REMEMBERED:
            self._index[key] = None if is_other or is_left else draft

    def _draft(self, lines: Sequence[Line], first: int, last: int, found: Found, head: Line) -> Draft:
        origins = ("", head.origin)
        around = [line for line in lines[max(first - _AROUND, 0) : last + 1 + _AROUND] if line.origin in origins]
        level = "warning" if found.level == "warning" or is_warning(found, head) else found.level
        goes_on = is_probe(found, head) and _goes_well(lines[last + 1 :])
        level = "mention" if goes_on or is_mention(found, head) else level
        draft = Draft(
            found=found,
            origin=head.origin,
            level=level,
            head=head.raw,
            at=lines[first].number,
            last=max(lines[last].number, lines[first].number),
            is_record=head.stamped,
            is_cut=found.kind == "truncated" and last >= len(lines) - 1,
        )
        surroundings = "\n".join(line.text for line in around)
        draft.matches = tuple(of_torch(match, surroundings) for match in self.matcher.matches(found, surroundings))
        # Who passes a failure on that is known is not asked where it arose.
        passes_on = found.follows or "API call failed at " in found.text
        is_passed_on = passes_on and any(is_told(match) for one in self.drafts for match in one.matches)
        is_asked = level == "error" and not is_passed_on and not is_bare(found, head)
        if is_asked and all(match.confidence < LEAST_CONFIDENCE for match in draft.matches):
            suspected = recognised(found, head.number) or arisen(found, head.number, surroundings)
            draft.matches += (of_torch(suspected, surroundings),) if suspected is not None else ()
        return draft


def _leave_out(drafts: Iterable[Draft], is_left_out: Callable[[LogMatch], bool]) -> None:
    for draft in drafts:
        draft.matches = tuple(match for match in draft.matches if not is_left_out(match))


def _goes_well(lines: Sequence[Line]) -> bool:
    from aotidoctor.logs.complaints import succeeds  # noqa: PLC0415

    return any(succeeds(line.text) for line in lines)


def _sure(draft: Draft) -> float:
    return max((match.confidence for match in draft.matches), default=0.0)


def _freed(lines: Sequence[Line], streams: Iterable[Sequence[int]]) -> Sequence[Line]:
    """The lines without the margins of their blocks, stream by stream."""
    freed = list(lines)
    for places in streams:
        for at, line in zip(places, without_margins([lines[at] for at in places]), strict=True):
            freed[at] = line
    return freed


def _index_of(found: Found) -> int:
    return hash((found.form, found.kind, _key(found)))


def _key(found: Found) -> bytes:
    """The same for what differs by numbers, or by the lines that happen to follow."""
    key = b""
    for _, text in found.said:
        key += letters(text[:_KEY].encode("utf-8", "replace"))
        if len(key) >= _TELLING:
            break
    return key


def failures(lines: Sequence[Line], known: frozenset[str]) -> Iterator[Found]:
    """The failures of one stream, in order. ``known`` are texts that a pattern may know."""
    at = 0
    while at < len(lines):
        found = _at(lines, at)
        if found is None:
            found = _bare(lines, at, known)
        if found is None:
            at += 1
            continue
        yield found
        at = max(found.end, at + 1)


def _at(lines: Sequence[Line], at: int) -> Found | None:
    text = lines[at].text
    if not text:
        return None
    for start, read in FORMS:
        if start.search(text) is not None:
            found = read(lines, at)
            if found is not None:
                return found
    return None


def _bare(lines: Sequence[Line], at: int, known: frozenset[str]) -> Found | None:
    """A record that a logger calls an error, or a line that a pattern may know."""
    line = lines[at]
    if line.level == "error" and line.stamped and line.text and not is_calm(line.text):
        return message_found(lines, at)
    # What c10 raises comes before the place that raised it, and is told with it.
    is_told = at + 1 < len(lines) and lines[at + 1].text.startswith("Exception raised from ")
    if line.text in known and not is_told:
        return lines_found(lines, at, at + 1, form="line", level="notice")
    return None
