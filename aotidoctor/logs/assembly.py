"""Assemble failures from lines: each stream is read form by form, matched by patterns, and repeats are counted.

Quotes, comment signs, boxes and indents that stand in the same column of a whole block are margins. A margin is taken
off where a failure then begins at the first column; elsewhere an indent is part of the text: of a stack, of a source
line. Reports in Markdown quote source code in fences, and output as well: a block is taken for source only if it has
statements, and nothing that a program prints when it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.logs.forms import FORMS
from aotidoctor.logs.forms.crash_forms import unfinished_traceback
from aotidoctor.logs.harmless import adjust_confidence, is_bare, is_calm, is_mention, is_probe, is_warning
from aotidoctor.logs.lines import LogLine, without_prefixes
from aotidoctor.logs.origins import is_place, is_sentence, match_origin
from aotidoctor.logs.patterns import (
    LEAST_CONFIDENCE,
    LogFailure,
    Pattern,
    is_certain_cause,
    lines_failure,
    match_known_issue,
    message_failure,
)
from aotidoctor.logs.prefilter import KeywordFilter, known_words, letters
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.report import LogMatch

# Margins. A sign of a quote or of a comment, and what frames a box.
_SIGN = re.compile(r"(?P<sign>#|//|\*|;|--|%|>|\||\u2502|\u2503|\u2551|dnl|REM)(?: |\t|$)")
_BOX = re.compile(r"(?:(?<!\s)\s+)?[|\u2502\u2503\u2551]\s*$")
# How a failure begins, at the first column.
_BEGINS = re.compile(
    r"Traceback \(most recent|(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt)\b(?::|$|\s+Traceback)|"
    r"terminate called|Fatal Python error|\w+: (?:fatal )?error|(?i:error|fatal)\b|Exception raised from|"
    r"\S+?:\d+(?::\d+)?: (?:fatal )?error|\S+\(\d+\): (?:fatal )?error|Assertion|Segmentation fault|Aborted|Killed|"
    r"\[rank\d|\[?[IWEF]\d{4} |\d{4}-\d\d-\d\d|#0 |dyld|ld(?:\.\w+)?: |/\S+\.(?:so|dylib|cpp|cu|o)[\w.]{0,40}: "
)
# The JVM prints its crash as a comment.
_OWN = re.compile(r"# A fatal error has been detected|#\s+SIG[A-Z]+ \(")
_DEPTH = 3


def without_margins(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines of one stream, each block without its margin."""
    if not any(line.text[:1] in _FIRST for line in lines):
        return lines
    for _ in range(_DEPTH):
        made = [line for block in _margin_blocks(lines) for line in _without_block_margin(block)]
        if all(before is after for before, after in zip(lines, made, strict=True)):
            return made
        lines = made
    return lines


_FIRST = frozenset(" \t#/*;-%>|\u2502\u2503\u2551dR")


def _margin_blocks(lines: Sequence[LogLine]) -> Iterator[Sequence[LogLine]]:
    """Runs of lines with the same kind of margin; blank lines stay with what is before them."""
    start, margin = 0, ""
    for at, line in enumerate(lines):
        if not line.text:
            continue
        own = _margin(line.text)
        if own != margin:
            if at > start:
                yield lines[start:at]
            start, margin = at, own
    yield lines[start:]


def _margin(text: str) -> str:
    if text[0] in " \t":
        return " "
    sign = _SIGN.match(text)
    return sign["sign"] if sign is not None else ""


def _without_block_margin(block: Sequence[LogLine]) -> Sequence[LogLine]:
    margin = _margin(next((line.text for line in block if line.text), "x"))
    if margin == "":
        return block
    if margin == " ":
        cut = min(len(line.text) - len(line.text.lstrip()) for line in block if line.text)
        texts = [line.text[cut:] for line in block]
    else:
        texts = [line.text[len(margin) :].removeprefix(" ") for line in block]
    if margin in "|\u2502\u2503\u2551":
        texts = [_BOX.sub("", text) for text in texts]
    first_column = [text for text in texts if text and not text[0].isspace()]
    is_failure = any(_BEGINS.match(text) or without_prefixes(text).stamped for text in first_column)
    if not is_failure or any(_OWN.match(line.text) for line in block):
        return block
    freed: list[LogLine] = []
    for line, text in zip(block, texts, strict=True):
        if not text or text[0].isspace():
            freed.append(replace(line, text=text))
            continue
        inner = without_prefixes(text)
        level, stamped = inner.level or line.level, inner.stamped or line.stamped
        freed.append(replace(line, text=inner.text.rstrip(), level=level, stamped=stamped))
    return freed


# Quoted source code.
_FENCE = "```"
_LANGUAGE = re.compile(
    r"```\s?(?i:python3?|py|cpp|c\+\+|cxx|c|cuda|cu|rust|go|java|ya?ml|toml|dockerfile|cmake|diff|patch)\b"
)
_STATEMENT = re.compile(
    r"[+-]?\s{0,40}(?:import|from|def|class|with|for|if|try|return|#include|template|namespace|FROM|RUN|@\w+|[\w.]+\s?=\s|[\w-]+:(?:\s|$))"
)
_OUTPUT = re.compile(
    r"Traceback \(most recent|^\s*(?:\w+\.)*\w*(?:Error|Exception)\b(?::|$)|^\s*File \"|^E  "
    r"|^(?:ERROR|WARNING|INFO|FATAL)\b"
    r"|(?i:\berror: |segmentation fault|core dumped)|terminate called|^\s*what\(\): |^frame #\d|\[rank\d"
)


def without_sources(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines, with the text of those in quoted source removed."""
    marks = [at for at, line in enumerate(lines) if line.text.startswith(_FENCE)]
    if not marks:
        return lines
    left = list(lines)
    for at, mark in enumerate(marks[:-1]):
        block = lines[mark + 1 : marks[at + 1]]
        # A line with a logger's stamp was printed, whatever it says.
        is_output = any(line.stamped or _OUTPUT.search(line.text) is not None for line in block)
        has_statements = any(_STATEMENT.match(line.text) is not None for line in block)
        if _LANGUAGE.match(lines[mark].text) is not None and has_statements and not is_output:
            left[mark + 1 : marks[at + 1]] = [replace(line, text="") for line in block]
    return left


# Patterns that match a failure: its message, and what stands around it.
MOST_MATCHES = 4


class Matcher:
    """Match failures against patterns, with a fast filter in front."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._keywords = KeywordFilter(known_words(patterns))

    def candidates(self, lines: Sequence[LogLine]) -> frozenset[str]:
        """The texts that a pattern may know."""
        reduced = {line.text: letters(line.text.encode("utf-8", "replace")) for line in lines}
        telling = self._keywords.telling(set(reduced.values()))
        return frozenset(text for text, own in reduced.items() if own in telling)

    def matches(self, found: LogFailure, around: str) -> tuple[LogMatch, ...]:
        """Matches of ``found``, by confidence, at most one per cause. ``around``: the text of the lines around it."""
        text = found.text
        reduced = letters(text.encode("utf-8", "replace"))
        if not self._keywords.telling({reduced}):
            return ()
        hits = [
            (pattern, hit)
            for pattern in self._patterns
            if pattern.may_match(text)
            and (hit := pattern.regex.search(text)) is not None
            and all(near.search(around) for near in pattern.near)
            and not any(one.search(around) for one in pattern.not_near)
        ]
        if any(pattern.record.cause == "numeric-difference" for pattern, _ in hits):
            from aotidoctor.logs.complaints import within_tolerance

            is_allowed = within_tolerance(text) is True
            hits = [one for one in hits if one[0].record.cause != "numeric-difference" or not is_allowed]
        hits.sort(key=lambda item: (-item[0].record.confidence, -len(item[0].record.regex)))
        best: dict[str, LogMatch] = {}
        for pattern, hit in hits:
            # The line of the message in which the expression matched.
            number, line = found.lines[min(text[: hit.start()].count("\n"), len(found.lines) - 1)]
            values = {name: value for name, value in hit.groupdict().items() if value is not None}
            facts: dict[str, FactValue] = {**pattern.record.facts, **values}
            best.setdefault(pattern.record.cause, found.match(pattern.record, number, line, facts))
        return tuple(best.values())[:MOST_MATCHES]


# Failures. Failures that are recorded in full; later ones are counted.
MOST_EVENTS, _REMEMBERED = 300, 50_000
_AROUND = 40
# A log of so few lines was selected by hand.
_PASTE = 400
# The lines below a failure in which autotuning may still leave out the candidate.
_NEXT = 3
_RECOVERED = re.compile(r"(?i:(?:failure|error) (?:was )?recovered|(?<!not be )(?<!not )recovered (?:by|after|from) )")
_KEY, _TELLING = 400, 40
# A warning of such confidence is the subject of a short log.
_CERTAIN, _CHOSEN = 0.85, 10
_RAISED = re.compile(r"[\w.]{0,200}(?:Compil\w{0,20}|Inductor|Lowering)(?:Error|Exception|Failure): ")


@dataclass(slots=True)
class Draft:
    """A failure found in a log. ``level`` is ``error``, ``warning`` or ``notice`` (a line that only patterns know).

    ``is_cut``: the segment ended in it; ``is_record``: it is a logger's record.
    """

    found: LogFailure
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
    """The failures found so far; ``short`` holds the lines of a log with at most ``_PASTE`` of them."""

    matcher: Matcher
    drafts: list[Draft] = field(default_factory=list)
    more: int = 0
    _index: dict[int, Draft | None] = field(default_factory=dict)
    short: list[LogLine] = field(default_factory=list)

    def add(self, lines: Sequence[LogLine]) -> None:
        """Read a segment of consecutive lines."""
        lines = without_sources(lines)
        streams: dict[str, list[int]] = {}
        for at, line in enumerate(lines):
            streams.setdefault(line.stream, []).append(at)
        freed = list(lines)
        for places in streams.values():
            for at, line in zip(places, without_margins([lines[at] for at in places]), strict=True):
                freed[at] = line
        lines = freed
        self.short = lines if len(lines) <= _PASTE else []
        known = self.matcher.candidates(lines)
        found: list[tuple[int, int, LogFailure, LogLine]] = []
        for places in streams.values():
            own = [lines[at] for at in places]
            for one in failures(own, known):
                head = next(
                    (line for line in own[one.first : one.end] if line.number == one.lines[0][0]), own[one.first]
                )
                found.append((places[one.first], places[one.end - 1], one, head))
        # The order of the log, whatever stream it was.
        for first, last, one, head in sorted(found, key=lambda item: (item[2].lines[0][0], item[0])):
            self._keep(lines, first, last, one, head)
        for line in lines:
            # Failures before a line that reports a recovery, and a candidate that autotuning then leaves out.
            is_recovery = "ecover" in line.text and _RECOVERED.search(line.text) is not None
            is_left_out = "gnoring this choice" in line.text
            for draft in self.drafts if is_recovery or is_left_out else ():
                is_just_above = is_left_out and draft.at <= line.number <= draft.last + _NEXT
                is_over = (is_recovery and line.number > draft.at) or is_just_above
                if draft.level == "error" and draft.origin == line.origin and is_over:
                    draft.level = "mention"

    def search_short_log(self, lines: int) -> None:
        """Search a short log of ``lines`` lines for what has no form: half a traceback, complaints, titles."""
        failed = [draft for draft in self.drafts if draft.level == "error"]
        if failed:
            self._summed_up(failed)
            return
        # Imported here as most logs do not need it.
        from aotidoctor.logs.complaints import find_complaint, title_failure

        if any(
            draft.level == "warning" and max((match.confidence for match in draft.matches), default=0.0) >= _CERTAIN
            for draft in self.drafts
        ):
            # The cause of the warning is known.
            return
        found = (
            unfinished_traceback(self.short)
            or find_complaint(self.short, is_alone=lines <= 1)
            or title_failure(self.short)
        )
        if found is None:
            # A compiler's exception that was logged as a warning: in so short a log it was selected by hand.
            for one in self.drafts if lines <= _CHOSEN else ():
                is_exception = one.found.form == "python" and one.is_record
                if one.level == "warning" and is_exception and _RAISED.match(one.found.text) is not None:
                    one.level = "error"
            return
        draft = self._failed(found)
        self._summed_up([draft] if draft is not None else [])

    def _failed(self, found: LogFailure) -> Draft | None:
        """Add a failure of a short log, or raise a warning that is the same to an error."""
        self._keep(self.short, found.first, found.end - 1, found, self.short[found.first])
        draft = self._index.get(_index_of(found))
        if draft is not None:
            draft.level = "error"
        return draft

    def _summed_up(self, failed: Sequence[Draft]) -> None:
        """Where only places suggest a cause, look for a sentence about it before or after the printed lines."""
        from aotidoctor.logs.complaints import find_title

        certain = [match for draft in failed for match in draft.matches if is_certain_cause(match)]
        if any(not is_place(match) and not is_sentence(match) for match in certain):
            # A message says more than a sentence about it.
            _leave_out(failed, is_sentence)
        elif any(is_sentence(match) for match in certain):
            _leave_out(failed, is_place)
        else:
            whole = [(draft.at, draft.last) for draft in failed if draft.found.kind != "truncated"]
            found = find_title(self.short, whole)
            draft = self._failed(found) if found is not None else None
            if draft is not None and draft.matches:
                _leave_out([other for other in failed if other is not draft], is_place)

    def finished(self, lines: int) -> list[Draft]:
        """All drafts of a log of ``lines`` lines, without those that the end of a segment cut off and that went on."""
        return [draft for draft in self.drafts if not draft.is_cut or draft.last >= lines]

    def _keep(self, lines: Sequence[LogLine], first: int, last: int, found: LogFailure, head: LogLine) -> None:
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
        # It may have the words of a pattern and still not match it.
        is_other = not draft.matches and found.level == "notice"
        is_left = not draft.matches and full and not is_other
        self.more += is_left
        if not is_other and not is_left:
            self.drafts.append(draft)
        if len(self._index) < _REMEMBERED:
            self._index[key] = None if is_other or is_left else draft

    def _draft(self, lines: Sequence[LogLine], first: int, last: int, found: LogFailure, head: LogLine) -> Draft:
        origins = ("", head.origin)
        around = [line for line in lines[max(first - _AROUND, 0) : last + 1 + _AROUND] if line.origin in origins]
        level = "warning" if found.level == "warning" or is_warning(found, head) else found.level
        if is_mention(found, head):
            level = "mention"
        elif head.level == "doubtful" or is_probe(found, head):
            from aotidoctor.logs.complaints import succeeds

            # The program does without it if something goes well below.
            level = "mention" if any(succeeds(line.text) for line in lines[last + 1 :]) else level
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
        draft.matches = tuple(
            adjust_confidence(match, surroundings) for match in self.matcher.matches(found, surroundings)
        )
        # A failure that passes on a known one needs no place of its own.
        passes_on = found.follows or "API call failed at " in found.text
        is_passed_on = passes_on and any(is_certain_cause(match) for one in self.drafts for match in one.matches)
        is_open = level == "error" and not is_passed_on and not is_bare(found, head)
        if is_open and all(match.confidence < LEAST_CONFIDENCE for match in draft.matches):
            suspected = match_known_issue(found, head.number) or match_origin(found, head.number, surroundings)
            draft.matches += (adjust_confidence(suspected, surroundings),) if suspected is not None else ()
        return draft


def _leave_out(drafts: Iterable[Draft], is_left_out: Callable[[LogMatch], bool]) -> None:
    for draft in drafts:
        draft.matches = tuple(match for match in draft.matches if not is_left_out(match))


def _index_of(found: LogFailure) -> int:
    """A hash, the same for failures that differ by numbers or by the lines that happen to follow."""
    key = b""
    for _, text in found.lines:
        key += letters(text[:_KEY].encode("utf-8", "replace"))
        if len(key) >= _TELLING:
            break
    return hash((found.form, found.kind, key))


def failures(lines: Sequence[LogLine], known: frozenset[str]) -> Iterator[LogFailure]:
    """The failures of one stream, in order. ``known`` are texts that a pattern may know."""
    at = 0
    while at < len(lines):
        line, found = lines[at], None
        for start, read in FORMS if line.text else ():
            if start.search(line.text) is not None and (found := read(lines, at)) is not None:
                break
        is_stamped = line.stamped and line.level in ("error", "doubtful")
        if found is None and is_stamped and line.text and not is_calm(line.text):
            found = message_failure(lines, at)
        elif found is None and line.text in known:
            # A message of c10 comes before the place that raised it, and is read with it.
            is_above_place = at + 1 < len(lines) and lines[at + 1].text.startswith("Exception raised from ")
            found = lines_failure(lines, at, at + 1, form="line", level="notice") if not is_above_place else None
        if found is not None:
            yield found
        at = max(found.end, at + 1) if found is not None else at + 1
