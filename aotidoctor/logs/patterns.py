"""Parse and check the patterns and known issues of the playbooks, and define the failure that they match.

The patterns are the ``toml log`` blocks of the playbooks. Each regular expression is compiled when it is first needed,
and it is needed only where the text has a word that every match must contain, which is read off the expression's text.
Each repeat without a bound gets one, so that a search takes time in proportion to the text.

A playbook may have a ``toml known`` block: ``[[known]]`` entries with ``issue``, ``url``, ``words`` (all of them are in
the message, or in the files of its traceback), and as far as the tracker tells ``affected``, ``fixed`` and
``workaround``. The blocks are read when a log holds a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.diagnosis.playbooks import Head, KnownIssue, read_known_issues
from aotidoctor.logs.lines import LogLine
from aotidoctor.model import load_toml
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.record import record
from aotidoctor.model.report import LogEvent, LogMatch, LogPattern, current_extensions, playbook_files

# Bounds for the repeats of an expression.
_REPEAT_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\]){0,400}\])|(?P<open>\((?:\?(?:P<\w+>|P=\w+|<?[=!]|[a-zA-Z-]*:|[^)P:]))?)"
    r"|(?P<close>\))|(?P<exact>\{\d{0,9},\d{1,9}\}\??|\{\d{1,9}\}\??)|(?P<repeat>[*+]\??|\{\d{1,9},\}\??)|(?P<plain>.)",
    re.DOTALL,
)
_MOST_REPEATS = {r"\s": 40, r"\d": 40, r"\w": 120, r"[\s\S]": 600, r"[\S\s]": 600}
_USUAL, _GROUP = 300, 20


def bound_repeats(regex: str) -> str:
    """``regex`` with bounded repeats: ``{0,300}`` and the like for ``*`` and ``+``."""
    made: list[str] = []
    before = ""
    for token in _REPEAT_TOKEN.finditer(regex):
        text = token[0]
        if token["repeat"] is not None:
            most = _GROUP if before == ")" else _MOST_REPEATS.get(before, _USUAL)
            least = {"*": "0", "+": "1"}.get(text[0]) or text[1:].partition(",")[0]
            text = f"{{{least},{max(most, int(least))}}}{'?' if text.endswith('?') else ''}"
        made.append(text)
        before = text
    return "".join(made)


# The words that every match of an expression must contain; an expression that is not understood has none.
# The least letters of a word; its other characters mean little.
LEAST = 4
_LITERAL_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<class>\[\^?\]?(?:\\.|[^\]\\]){0,400}\])|(?P<open>\((?:\?(?:P<\w+>|:|[^)P:]))?)|(?P<close>\))"
    r"|(?P<repeat>[*+?]\??|\{\d{0,9},?\d{0,9}\}\??)|(?P<bar>\|)|(?P<anchor>[\^$.])|(?P<plain>.)",
    re.DOTALL,
)
_GROUPS = ("(?:", "(?P<", "(?<!", "(?<=", "(?!", "(?=")
_OTHERS = re.compile(r"[^a-zA-Z]")
# Escapes that stand for one character of their own.
_SELF = re.compile(r"\\[^a-zA-Z0-9]")


def literals_of(regex: str) -> tuple[str, ...]:
    """The longest word of each alternative; empty where one of them has none."""
    if regex.startswith("(?") and not regex.startswith(_GROUPS):
        # Flags are not understood here.
        return ()
    best = [max(words, key=_letters, default="") for words in _alternatives(regex)]
    return tuple(dict.fromkeys(best)) if all(_letters(word) >= LEAST for word in best) else ()


def may_match(words: tuple[str, ...], text: str) -> bool:
    """Whether ``text`` has one of ``words``, which the matches of an expression have; True without any."""
    return not words or any(word in text for word in words)


def _letters(word: str) -> int:
    return len(_OTHERS.sub("", word))


def _alternatives(regex: str) -> list[list[str]]:
    """The runs of plain characters outside of groups, for each alternative of the whole expression."""
    found: list[list[str]] = [[""]]
    depth = 0
    for token in _LITERAL_TOKEN.finditer(regex):
        words = found[-1]
        match token.lastgroup:
            case "open":
                depth += 1
                words.append("")
            case "close":
                depth -= 1
            case _ if depth:
                continue
            case "bar":
                found.append([""])
            case "plain":
                words[-1] += token[0]
            case "escape" if _SELF.match(token[0]):
                words[-1] += token[0][1]
            case "repeat":
                # What may be missing, or comes several times, ends the word before it.
                words[-1] = words[-1][:-1] if token[0][0] != "+" else words[-1]
                words.append("")
            case _:
                words.append("")
    return found


# Patterns. Below this a match is a lead in the report, and no diagnosis.
LEAST_CONFIDENCE = 0.5
# The least confidence of a suspicion, which counts where nothing better is known.
LEAST_SUSPICION = 0.3
DEFAULT_CONFIDENCE = 0.7
STAGES = ("", "export", "compile", "link", "package", "load", "inputs", "run", "output", "serve", "host", "artifact")
_BLOCK = re.compile(r"^```toml log\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXTS = ("regex", "example", "source", "stage", "component", "known", "fixed")
_LISTS = ("near", "not_near")
_KEYS = frozenset((*_TEXTS, *_LISTS, "confidence", "facts", "suspect"))


def is_certain_cause(match: LogMatch) -> bool:
    """Whether the confidence of ``match`` is enough for a diagnosis."""
    return match.confidence >= (LEAST_SUSPICION if match.pattern.is_suspect else LEAST_CONFIDENCE)


class PatternError(AotidoctorError):
    """A block of patterns breaks the form; the message says file, entry, key and what was expected."""


class _Entry(Head):
    error = PatternError


@dataclass(frozen=True)
class Pattern:
    """A pattern ready for use. ``literals``: a match has one of these words (empty: nobody knows which)."""

    record: LogPattern
    literals: tuple[str, ...]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(bound_repeats(self.record.regex), re.MULTILINE)

    @cached_property
    def near(self) -> tuple[re.Pattern[str], ...]:
        """The compiled expressions that must match around it."""
        return tuple(re.compile(bound_repeats(text), re.MULTILINE) for text in self.record.near)

    @cached_property
    def not_near(self) -> tuple[re.Pattern[str], ...]:
        """The compiled expressions that must not match around it."""
        return tuple(re.compile(bound_repeats(text), re.MULTILINE) for text in self.record.not_near)

    def may_match(self, text: str) -> bool:
        """Whether ``text`` is worth a search."""
        return may_match(self.literals, text)


def load_patterns() -> tuple[Pattern, ...]:
    """The patterns of all playbooks, by cause and in the order of each file. Raises ``PatternError``."""
    return _load(pattern_files())


def pattern_files() -> tuple[Path, ...]:
    """The files that contain patterns: playbooks, and those that plugins add."""
    return (*playbook_files(), *current_extensions().patterns)


@lru_cache(maxsize=4)
def _load(paths: tuple[Path, ...]) -> tuple[Pattern, ...]:
    return tuple(pattern for path in paths for pattern in read_patterns(path.stem, path.read_text(encoding="utf-8")))


def read_patterns(cause: str, text: str) -> tuple[Pattern, ...]:
    """The patterns in the text of one playbook. Raises ``PatternError``."""
    where = f"{cause}.md"
    found: list[Pattern] = []
    for body in _BLOCK.findall(text):
        for entry in entries_of(body, where, "log", "pattern"):
            record = _record(cause, entry, f"{where}: pattern {len(found) + 1}")
            found.append(Pattern(record=record, literals=literals_of(record.regex)))
    return tuple(found)


def check(pattern: Pattern, where: str) -> None:
    """Compile all expressions of a pattern, which is otherwise done lazily. Raises ``PatternError``."""
    try:
        _ = pattern.regex, pattern.near, pattern.not_near
    except re.error as error:
        raise PatternError(f"{where}: {pattern.record.regex!r}: {error}") from error


def entries_of(body: str, where: str, block: str, table_name: str) -> list[Mapping[str, object]]:
    """The tables ``table_name`` of a ``toml`` block, which may have no others. Raises ``PatternError``."""
    try:
        table = load_toml(body)
    except ValueError as error:
        raise PatternError(f"{where}: toml {block}: not TOML: {error}") from error
    entries = table.get(table_name, [])
    if set(table) - {table_name} or not isinstance(entries, list):
        raise PatternError(f"{where}: toml {block}: observed keys {sorted(table)}, expected [[{table_name}]] only")
    return entries


def _record(cause: str, entry: Mapping[str, object], where: str) -> LogPattern:
    unknown = sorted(set(entry) - _KEYS)
    if unknown:
        raise PatternError(f"{where}: unknown key {', '.join(unknown)}")
    head = _Entry(entry, where)
    texts = {key: head.text(key, "") for key in _TEXTS}
    if not texts["regex"]:
        raise PatternError(f"{where}: regex: missing")
    if texts["stage"] not in STAGES:
        raise head.wrong("stage", texts["stage"], f"one of {', '.join(STAGES[1:])}")
    near, not_near = (head.texts(key) for key in _LISTS)
    confidence = head.share("confidence", optional=True)
    facts = entry.get("facts", {})
    if not isinstance(facts, dict) or not all(isinstance(item, str) for item in facts.values()):
        raise head.wrong("facts", facts, "a table of strings")
    return LogPattern(
        cause=cause,
        regex=texts["regex"],
        example=texts["example"],
        source=texts["source"],
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        near=near,
        not_near=not_near,
        stage=texts["stage"],
        component=texts["component"] or "torch",
        known=texts["known"],
        fixed=texts["fixed"],
        facts=facts,
        is_suspect=entry.get("suspect") is True,
    )


# One failure in a list of lines of one stream. Of a message.
MOST_LINES, MOST_CHARACTERS = 40, 6000
_C10_FRAME = re.compile(r"^\s*frame #\d+: (?P<symbol>.*?)(?: \+ 0x[0-9a-f]+)?(?: \(0x[0-9a-f]+ in (?P<library>.+)\))?$")
# Lines that begin something else, whatever message they stand in.
_STARTS = re.compile(
    r"Traceback \(most recent call last\)|^During handling of the above|^The above exception was the direct|"
    r"^terminate called |^libc\+\+abi|Segmentation fault|Abort trap|"
    r"Bus error|^Killed\b|^[\s|]*\+-{3}|^Aborted\b|core dumped\)|^Fatal Python error|"
    r"^==+(?:\d+=+)?ERROR: |: (?:fatal )?error: |^Error: |undefined reference to|^\*\*\* |^Thread \d+ |"
    r"^(?:Process|Program) (?:\d+ )?(?:received|stopped|terminated|completed)|^[\w.]*(?:Error|Exception): |^\S*[$#] |"
    r"^(?:FAILED|ERROR|PASSED) "
)
_CONTINUES = re.compile(
    r"^(?:\s|[a-z(\[{]|Exception raised|While |Mismatched|Greatest|Available|CUDA kernel|For |Compile |Device|Original|"
    r"Set |You |The following|This |If |Please|Could not|Suggest|Output:|Command:|Potential|Triggered|Note|Search)"
)


@record
class LogFailure:
    """One failure.

    ``lines`` are those of the message with their numbers, ``first`` and ``end`` the place in the list (the latter not
    included). ``follows``: such a line comes after a failure and never alone; ``chained``: it was raised while handling
    the one before it, or because of it.
    """

    form: str
    lines: tuple[tuple[int, str], ...]
    first: int
    end: int
    kind: str = ""
    frames: tuple[str, ...] = ()
    stage: str = ""
    level: str = "error"
    follows: bool = False
    chained: bool = False

    @property
    def text(self) -> str:
        """The message."""
        return "\n".join(text for _, text in self.lines)[:MOST_CHARACTERS]

    def match(self, pattern: LogPattern, line: int, text: str, facts: Mapping[str, FactValue]) -> LogMatch:
        """The match of ``pattern`` by line ``line`` with the text ``text``."""
        # Replaced by the complete event at the end of the log.
        event = LogEvent(form=self.form, first=line, last=line, text=self.text)
        return LogMatch(event=event, pattern=pattern, line=line, text=text, facts=facts, confidence=pattern.confidence)


def message_failure(
    lines: Sequence[LogLine], at: int, *, form: str = "line", kind: str = "", follows: bool = False
) -> LogFailure:
    """The message that begins at ``at`` as a failure, with what continues it."""
    body, frames, end = read_message(lines, at)
    return LogFailure(
        form=form, kind=kind, lines=number_lines(body), first=at, end=end, frames=tuple(frames), follows=follows
    )


def lines_failure(
    lines: Sequence[LogLine],
    first: int,
    end: int,
    *,
    form: str,
    kind: str = "",
    stage: str = "",
    level: str = "error",
    follows: bool = False,
) -> LogFailure:
    """The lines from ``first`` to ``end`` (not included) as a failure."""
    numbered = number_lines(lines[first:end])
    return LogFailure(
        form=form, kind=kind, lines=numbered, first=first, end=end, stage=stage, level=level, follows=follows
    )


def end_below(lines: Sequence[LogLine], at: int, below: re.Pattern[str], most: int) -> int:
    """The end of the lines below ``at`` that ``below`` matches; at most ``most`` lines with the one at ``at``."""
    end = at + 1
    while end < min(len(lines), at + most) and below.search(lines[end].text):
        end += 1
    return end


def number_lines(lines: Sequence[LogLine]) -> tuple[tuple[int, str], ...]:
    """The lines as ``LogFailure.lines``."""
    return tuple((line.number, line.text) for line in lines)


def read_message(lines: Sequence[LogLine], at: int, *, stamped: bool = False) -> tuple[list[LogLine], list[str], int]:
    """The lines of the message that begins at ``at``, the frames below it, and where it ends.

    ``stamped``: every line of it has a logger's prefix, so that such a prefix does not end it.
    """
    body, frames = [lines[at]], []
    here = at + 1
    while here < len(lines) and len(body) < MOST_LINES:
        line = lines[here]
        found = _C10_FRAME.match(line.text)
        frame = None if found is None else found["symbol"] or found["library"] or "??"
        if frame is not None:
            frames.append(frame)
        elif not line.text:
            follower = next((one for one in lines[here + 1 : here + 3] if one.text), None)
            if follower is None or not _CONTINUES.match(follower.text) or _STARTS.search(follower.text):
                break
        elif (line.stamped and not stamped) or _STARTS.search(line.text):
            break
        else:
            body.append(line)
        here += 1
    return body, frames, here


# Known issues whose messages are known.
_CONFIDENCE = 0.6


def known_issue(text: str, cause: str = "") -> KnownIssue | None:
    """The issue all of whose words ``text`` has, the longest of them; only of ``cause`` unless that is empty."""
    flat = " ".join(text.split())
    fitting = [one for one in known_issues() if cause in ("", one.cause) and all(word in flat for word in one.words)]
    return max(fitting, key=lambda one: sum(map(len, one.words)), default=None)


def match_known_issue(found: LogFailure, number: int) -> LogMatch | None:
    """The cause of the known issue whose words ``found`` has."""
    issue = known_issue(found.text)
    if issue is None:
        return None
    record = LogPattern(cause=issue.cause, regex="", example="", source="", confidence=_CONFIDENCE)
    return found.match(record, number, found.text.partition("\n")[0], {})


def known_issues() -> tuple[KnownIssue, ...]:
    """The entries of all playbooks that are known by a message. Raises ``PlaybookError``."""
    return _issues(playbook_files())


@lru_cache(maxsize=4)
def _issues(paths: tuple[Path, ...]) -> tuple[KnownIssue, ...]:
    found = (one for path in paths for one in read_known_issues(path.stem, path.read_text(encoding="utf-8")))
    return tuple(one for one in found if one.words)
