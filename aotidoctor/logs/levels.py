"""How loud a record is, in whatever clothes a logger wears: a word, a letter, a number or a sign near its beginning.

``prefixes`` knows the loggers around torch and takes their prefixes off. This one knows none by name: it looks for the
level where levels stand, behind a time, in brackets, in a field of a record. So that an error of any program is one,
and the news of any program are news.
"""

from __future__ import annotations

import re

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
# What a record is recognised by, beside its level.
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
    """``error``, ``warning``, ``info``; empty where the line is no record of a logger."""
    named = _NAMED.search(text, 0, _DEEP)
    if named is not None and _FIELDS.search(text, 0, _DEEP) is not None:
        return _WORDS[named["word"].lower()]
    numbered = _NUMBERED.search(text, 0, _DEEP) if "{" in text[:_INSIDE] else None
    if numbered is not None:
        return _of_number(numbered)
    head = text[:_HEAD]
    syslog = _SYSLOG.match(head)
    if syslog is not None:
        return loudness(int(syslog["number"]))
    letter = _LETTER.search(head)
    if letter is not None:
        return _LETTERS[letter[letter.lastgroup or 0]]
    word = _BRACKETS.search(head) or (_BEHIND.search(head) or _BARE.search(head) if _TIME.search(head) else None)
    return _WORDS[word["word"].lower()] if word is not None else ""


def level_named(name: str) -> str:
    """The level that a word or a letter names; empty where it names none."""
    return _LETTERS.get(name) or _WORDS.get(name.lower(), "")


def _of_number(found: re.Match[str]) -> str:
    if found["syslog"]:
        return loudness(int(found["priority"]))
    return "error" if int(found["pino"]) >= 50 else "warning" if found["pino"] == "40" else "info"


def loudness(priority: int) -> str:
    """The level of a number of syslog's, with or without its facility."""
    priority %= 8
    return "error" if priority <= 3 else "warning" if priority == 4 else "info"
