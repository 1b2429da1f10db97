"""Turn bytes of a log into lines: decoded, without colours, prefixes and wrappers, and sorted into streams.

Loggers, launchers and containers put prefixes before a line, which are taken off one after the other. What names a
process (rank, container, pid) is its origin; a thread makes a stream of its own inside of it. The log level is read
where levels stand (behind a time, in brackets, in a field of a record), in the notations of common loggers, without
knowing the logger.

Web pages and editors change the spelling of a line: entities of HTML become characters, the quotes of editors and of
other languages those of ASCII.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.model import load_toml


@lru_cache(maxsize=1)
def _tables() -> dict[str, list[str]]:
    return dict(load_toml(Path(__file__).with_name("words.toml").read_text(encoding="utf-8")))


def expressions(name: str) -> list[str]:
    """The expressions of the table ``name`` of ``words.toml``; ``@other@`` in them stands for another table."""
    return [re.sub(r"@(\w+)@", lambda inner: "|".join(_tables()[inner[1]]), text) for text in _tables()[name]]


def any_of(name: str) -> re.Pattern[str]:
    """The expressions of the table ``name`` as one."""
    return re.compile("|".join(expressions(name)))


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log: ``text`` without prefixes, from line ``number``.

    ``origin`` is the process it came from (rank, container, pid; empty: the log's own), ``stream`` the thread of it:
    lines of one stream follow each other. ``level`` is ``error``, ``warning``, ``info``, ``doubtful`` (of a logger that
    calls harmless things errors) or empty; ``stamped``: a logger began a new record here. ``raw`` is the line
    as it stands in the file.
    """

    number: int
    text: str
    origin: str = ""
    stream: str = ""
    level: str = ""
    stamped: bool = False
    raw: bytes = b""


# Spelling.
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#[xX][0-9a-fA-F]{1,5});")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02\u300c\u300d", '"'),
        **dict.fromkeys("\u00a0\u2007\u202f\u2009\u3000", " "),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060", ""),
        "\uff1a": ":",
        "\u2026": "...",
    }
)


def plain_spelling(text: str) -> str:
    """``text`` with the characters that entities of HTML stand for, and with ASCII quotes, dashes and spaces."""
    if "&" in text and _ENTITY.search(text) is not None:
        text = html.unescape(text)
    return text if text.isascii() else text.translate(_SIGNS)


# Log levels.
_WORDS = {
    "trace": "info", "debug": "info", "dbg": "info", "info": "info", "inf": "info", "information": "info",
    "informational": "info", "notice": "info", "verbose": "info", "log": "info", "hint": "info", "success": "info",
    "warn": "warning", "wrn": "warning", "warning": "warning", "deprecated": "warning",
    "error": "error", "err": "error", "eror": "error", "crit": "error", "critical": "error", "fatal": "error",
    "ftl": "error", "severe": "error", "panic": "error", "dpanic": "error", "emerg": "error", "emergency": "error",
    "alert": "error", "fail": "error", "failed": "error", "failure": "error", "fehler": "error", "erreur": "error",
}  # fmt: skip
_LETTERS = {
    "I": "info", "D": "info", "V": "info", "W": "warning", "E": "error", "F": "error", "A": "error", "C": "error",
}  # fmt: skip
_ANY = "|".join(sorted(_WORDS, key=len, reverse=True))
_UPPER = "|".join(
    word.upper() for word in sorted(_WORDS, key=len, reverse=True) if word not in ("inf", "log", "hint", "success")
)
# Signs of a record beside its level.
_TIME = re.compile(r"\d{1,2}[:.h]\d\d[:.m]\d\d|\b\d{10}\b|\b\d{4}[-/.]\d\d?[-/.]\d\d?\b|\b\d{6} \d{6}\b")
_FIELDS = re.compile(
    r"(?i:(?<![\w-])[\"']?(?:time|ts|t|timestamp|@timestamp|date|msg|message|err|error|caller|logger|body|target|service"
    r"|name|hostname|pid)[\"']?\s?[=:])"
)
# A field that names the level; numbers are those of syslog (PRIORITY) and of pino.
_NAMED = re.compile(
    r"(?i:[\"']?(?<![\w-])(?:log\.?)?(?:level|lvl|severity|levelname|severity_?text|loglevel)[\"']?\s?[=:]\s?[\"']?"
    rf"(?P<word>{_ANY})(?![\w-]))"
)
_NUMBERED = re.compile(r"\"(?:(?P<syslog>PRIORITY)\"\s?:\s?\"?(?P<priority>\d)\b|level\"\s?:\s?(?P<pino>[1-6]0)\b)")
_SYSLOG = re.compile(r"^<(?P<number>\d{1,3})>")
# In brackets, also with the name of a module before it: [core:error]. In small letters `inf` is a number.
_BRACKETS = re.compile(rf"[\[(<](?:[\w.-]{{1,20}}:)?\s{{0,6}}(?!inf\b)(?i:(?P<word>{_ANY}))\s{{0,6}}[\])>:]")
_BARE = re.compile(rf"(?<![\w.=/\"'$-])(?P<word>{_UPPER})(?![\w=/\"'$-]|\.\w)")
# After the time, in small letters too.
_BEHIND = re.compile(
    rf"(?:\d:\d\d|\d-\d\d|\b\d{{10}})[\d:.,TZ+-]{{0,40}}\]?(?:\s{{1,4}}\d{{1,9}}){{0,2}}(?:[\s|,:-]{{1,4}}|\t)\[?(?i:(?P<word>{_ANY}))\b(?![=/-])"
)
_LETTER = re.compile(
    r"(?<!\S)\[?(?P<dated>[IWEF])\d{3,8} \d\d:\d\d:\d\d|(?<!\S)(?P<slash>[VDIWEFA])/[\w.\s$-]{1,60}\(\s{0,6}\d{1,7}\):"
    r"|\d\d:\d\d:\d\d[.,]\d{3}\s{1,8}\d{1,9}(?:\s{1,8}|-)\d{1,9}\s{1,8}(?:\S{1,60}\s{1,40}){0,2}(?P<cat>[VDIWEFA])\s"
    r"|\d\d:\d\d:\d\d\S{0,12}\s{1,4}\[?(?P<short>[IWEFC])\]?\s|^[\"'\s]{0,4}[\[(](?P<boxed>[IWEFC])[\])]\s"
)
_HEAD, _DEEP, _INSIDE = 160, 1000, 8


def level_of(text: str) -> str:
    """The level of a line: ``error``, ``warning``, ``info``; empty where it is no record of a logger."""
    named = _NAMED.search(text, 0, _DEEP)
    if named is not None and _FIELDS.search(text, 0, _DEEP) is not None:
        return _WORDS[named["word"].lower()]
    numbered = _NUMBERED.search(text, 0, _DEEP) if "{" in text[:_INSIDE] else None
    if numbered is not None:
        if numbered["syslog"]:
            return level_of_priority(int(numbered["priority"]))
        return "error" if int(numbered["pino"]) >= 50 else "warning" if numbered["pino"] == "40" else "info"
    head = text[:_HEAD]
    syslog = _SYSLOG.match(head)
    if syslog is not None:
        return level_of_priority(int(syslog["number"]))
    letter = _LETTER.search(head)
    if letter is not None:
        return _LETTERS[letter[letter.lastgroup or 0]]
    word = _BRACKETS.search(head) or (_BEHIND.search(head) or _BARE.search(head) if _TIME.search(head) else None)
    return _WORDS[word["word"].lower()] if word is not None else ""


def level_of_priority(priority: int) -> str:
    """The level of a syslog priority, with or without its facility."""
    priority %= 8
    return "error" if priority <= 3 else "warning" if priority == 4 else "info"


# Prefixes. Each is tried at the start of what is left, until none fits.
_PREFIXES = tuple(map(re.compile, expressions("prefixes")))
# The beginnings of prefixes, which most lines of a stack do not have.
_MAY = re.compile(
    r"[\[(#:<{\d]|\s{0,4}\| \d{4}-|[IWEFDVC] ?\d|[IWEFD] [a-z]|E(?: {3}|$)|> |[A-Z][a-z]{2} [ \d]\d "
    r"|[A-Z]{3,8}\b|[\w.-]+(?: (?:- | *\| ?)|: \[)"
)
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_=>()][0-9A-B]?)")
_MOST = 12
# The fields of a record that hold a message.
_MESSAGE_KEYS = ("log", "message", "msg", "MESSAGE", "exc_info", "exception", "stack", "error")


@dataclass(frozen=True, slots=True)
class BareLine:
    """A line without its prefixes. ``ranks`` are the names of the process, outermost first."""

    text: str
    ranks: tuple[str, ...] = ()
    thread: str = ""
    level: str = ""
    stamped: bool = False


def without_prefixes(text: str) -> BareLine:
    """``text`` without colours and prefixes."""
    if "\x1b" in text or "\x07" in text:
        text = _COLOURS.sub("", text).replace("\x07", "")
    found = BareLine(text)
    for _ in range(_MOST):
        if not _MAY.match(found.text):
            break
        shorter = _one(found)
        if shorter is None:
            break
        found = shorter
    return found


def _one(line: BareLine) -> BareLine | None:
    """The line without one more prefix; None where there is none."""
    for prefix in _PREFIXES:
        found = prefix.match(line.text)
        if found is not None and found.end():
            parts = found.groupdict()
            rank, thread = parts.get("rank"), parts.get("thread")
            named = parts.get("level") or parts.get("letter") or ""
            priority = parts.get("priority")
            level = "doubtful" if parts.get("doubtful") else (_LETTERS.get(named) or _WORDS.get(named.lower(), ""))
            level = level_of_priority(int(priority)) if priority else level
            return replace(
                line,
                text=line.text[found.end() :],
                ranks=(*line.ranks, rank) if rank is not None else line.ranks,
                thread=thread or line.thread,
                level=level or line.level,
                stamped=line.stamped or bool(level),
            )
    return None


def unwrap(text: str) -> list[str]:
    """The lines in a JSON record (docker's json-file, structured logs); else the line itself."""
    start = text.lstrip("\x1b[0123456789;m ")
    if not start.startswith("{") or '"' not in start:
        return [text]
    try:
        record = json.loads(start)
    except (ValueError, RecursionError):
        return [text]
    if not isinstance(record, dict):
        return [text]
    parts = [record.get(key) for key in _MESSAGE_KEYS]
    lines = [line for part in parts if isinstance(part, str) for line in part.rstrip("\n").split("\n")] or [text]
    level = level_of(start)
    return [f"[{level.upper()}] {lines[0]}", *lines[1:]] if level else lines


# Streams of lines. Of a longer line only the parts around its telling words are read.
LONGEST = 8192
_PIECES, _AROUND = 8, 1500
_BEHIND_LINE = re.compile(
    r"(?<=[\w\])])(?:\[(?:rank|default)\d+\]:|\([\w.]{1,60} (?:[\w.=-]{1,60} )?pid=\d+\)) ?(?=\S)"
    r"|(?<=(?:it/s|s/it)\])(?=(?:Killed|Aborted|Segmentation fault|Bus error|Traceback|[\w.]{1,80}Error: ))"
)
_TELLING = re.compile(rb"rror|xception|raceback|ailed|erminat|bort|fault|ssert|illed|llegal|ndefined|annot|issing")
_CONTROL = re.compile(r"[\x00-\x06\x08\x0b-\x1a\x1c-\x1f\x7f\ufeff\ufffe]")


def clean_text(numbered: Iterable[tuple[int, bytes]], state: Streams) -> Iterator[LogLine]:
    """Lines with their origins; ``state`` remembers where unmarked ones belong."""
    for number, raw in numbered:
        for piece in line_pieces(raw):
            texts: list[str] = []
            for text in unwrap(plain_spelling(decode_line(piece))):
                # Another process may write behind a bar of progress, which has no end of line.
                cut = _BEHIND_LINE.search(text) if "%|" in text else None
                texts += [text] if cut is None else [text[: cut.start()], text[cut.start() :]]
            for text in texts:
                line = without_prefixes(text)
                if line.text.startswith("{") and line.text is not text:
                    for inner in unwrap(line.text):
                        yield state.placed(number, without_prefixes(inner), raw, outer=line.ranks)
                else:
                    yield state.placed(number, line, raw)


def decode_line(raw: bytes) -> str:
    """``raw`` as text: UTF-8, else Latin-1; without control characters but tabs and those of colours."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return _CONTROL.sub("", text) if not text.isprintable() else text


def line_pieces(raw: bytes) -> list[bytes]:
    """The parts of a line that a terminal shows one over the other, and the telling parts of a very long line."""
    parts = [part for part in raw.rstrip(b"\r").split(b"\r") if part] if b"\r" in raw else [raw]
    if len(parts) > 2 * _PIECES:
        telling = [part for part in parts[:-1] if _TELLING.search(part)]
        parts = [*telling[: 8 * _PIECES], parts[-1]]
    found: list[bytes] = []
    for part in parts:
        if len(part) <= LONGEST:
            found.append(part)
            continue
        most, end = len(found) + _PIECES, -1
        for hit in _TELLING.finditer(part):
            if hit.start() >= end:
                end = hit.start() + _AROUND
                found.append(part[max(hit.start() - _AROUND // 4, 0) : end])
            if len(found) == most:
                break
    return found


class Streams:
    """Sort lines into streams. A line without a mark continues the last stream of its process."""

    def __init__(self) -> None:
        self._threads: dict[str, str] = {}
        self.origins: dict[str, None] = {}

    def placed(self, number: int, line: BareLine, raw: bytes, outer: tuple[str, ...] = ()) -> LogLine:
        """The line with its origin and stream; ``outer`` are the names of what it was wrapped in."""
        origin = " ".join((*outer, *line.ranks))
        if origin:
            self.origins.setdefault(origin)
        if line.thread:
            self._threads[origin] = line.thread
        stream = f"{origin}/{self._threads.get(origin, '')}"
        return LogLine(number, line.text.rstrip(), origin, stream, line.level, line.stamped, raw)
