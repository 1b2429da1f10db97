"""What a log says of a failure without any form of one: the last question before a log is called healthy.

Of a short log somebody chose each line. So where nothing in it has the form of a failure, its lines are asked for the
everyday words of one: ``failed``, ``cannot``, ``not found``, a number that is none. News and warnings of loggers do not
count, nor do the lines of ``harmless``; and what is followed by a success went well in the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.logs.everyday import CODES, COMPLAINS, FAILS, FOREIGN, TOLD
from aotidoctor.logs.forms import other
from aotidoctor.logs.found import Found, message_found
from aotidoctor.logs.harmless import telling_part
from aotidoctor.logs.levels import level_of
from aotidoctor.logs.line import Line
from aotidoctor.logs.lines import decoded
from aotidoctor.logs.marks import has_mark

# In up to so many lines any complaint counts; in more of them a plain word of failure does, or any at the end.
_FEW, _END = 10, 6
# Values: numbers that are none, and comparisons that did not hold.
_VALUES = re.compile(
    r"(?i:(?<![\w.-])[-+]?(?:nan|inf(?:inity)?)(?=[\s,\])|;%]|\.\s|\.?$))"
    r"|\b(?:has_?nan|has_?inf|isnan|isinf|any_?nan)\w{0,20}\W{1,4}True\b|^\W{0,3}False\W{0,3}$"
    r"|(?i:\b(?:(?:has|any|is|contains|num|n|found|total)_?)?nans?(?:_?(?:count|values|steps))?['\"]?\s?[=:]\s?"
    r"(?:[1-9]\d{0,12}(?![.\d])|true\b))"
    r"|(?i:\b\w{0,20}loss['\"]?\s?[:=]\s?['\"]-?(?:nan|inf)['\"])"
)
# What somebody asks of values in a session, and the answer below it.
_ASKS, _YES = re.compile(r"^(?:>>>|In \[\d{1,5}\]:) .{0,300}\bis(?:nan|inf)\("), re.compile(r"\bTrue\b")
_EVERYDAY = re.compile(
    r"(?i:\b(?:nan|inf) (?:ms|us|s|sec|tokens?|toks?|it|runs|samples|images|steps|[MG]B|[GT]FLOPS?)\b|from -?inf\b"
    r"|to inf\b|[(\[]-?inf, ?|max\w{0,20}[=:] ?-?inf|=inf\b|: ?false,|\|[^|]*\|[^|]*\|"
    r"|(?:clamp|clip|fill_?|full|where|float)\(|timeout[=: ]+\S|\bp?snr\W{1,4}inf\b)"
)
# The columns of a training; elsewhere an empty cell of a table may be a nan.
_ROW, _LOSSES = re.compile(r"\s*\|"), re.compile(r"\s*\|(?:[^|\n]{0,60}\|){0,12}[^|\n]{0,40}(?i:\bloss|\bgrad)")
# A report on the machine, and how its lines look.
_REPORT = re.compile(r"Collecting environment information|PyTorch version: \d|Is debug build: ")
_DESCRIBES = re.compile(
    r"\s*$|\s+\S|\[(?:pip3?|conda)\]|(?:GPU|NIC)\d|Legend|[\w ().,/+-]{1,60}[:=]|=+\s*$|Collecting env"
)
# What pytest says of an assertion without a message.
_ASSERTS = re.compile(rb"E\s+assert ")
# Stacks without what they belong to.
_STACK = re.compile(
    r"^\W{0,12}frame #\d+: |^\W{0,12}#\d+ pc [0-9a-f]{6}|^\W{0,12}stack backtrace:"
    r"|^\s{0,12}at [\w.$<>/]{3,200}\([\w$.]{1,80}(?::\d{1,6})?\)$"
    r"|^\W{0,4}Thread (?:\S{1,40} )?\((?:idle|active)[^)]{0,20}\)"
    r"|^\s{0,8}#?\d{1,3}\s{1,4}(?:\S{2,60}\s{1,20})?0x[0-9a-f]{6,16} "
)
# The place of something, of a failure where nobody says that it is less.
_PLACE = re.compile(r"^\s*File \"[^\"]+\", line \d")
_WARNS = re.compile(
    r"(?i:\b(?:may|might) (?:not )?be\b|warn"
    r"|deprecat|info\b|debug\b|skipp|optional|fallback|(?<!\.)default)|\b[VIW]\d{4}\b"
)
_SUCCEEDS = re.compile(
    r"(?i:(?<!un)(?<!\b0 )success"
    r"|(?<!not )(?<!never )(?<!to be )\b(?:passed|done|completed?|finished(?! at\b)|ok|saved|ready)\b"
    r"|up[ -]to[ -]date|recovered|100 ?%)"
)
_WARNING = re.compile(r"(?i:\bwarn(?:ing)?\b)")
# What warnings say of others that are gone; of news that went on no more than that.
_BROKEN = re.compile(
    r"(?i:\bconnections? (?:(?:is|was|has been|to \S{1,80}) )?(?:broken|lost|refused|reset|aborted|timed out)\b"
    r"|\blost (?:the )?connection\b)"
)
# Of steps that were left out a few are usual.
_SKIPPED, _MANY = re.compile(r"(?i:\bgradient overflow\b)"), 4
# How news begin.
_PROGRESS = re.compile(
    r"[^A-Za-z]{0,40}(?:\w+ing|\w+ed|Using|To|Use|Note|Tip|Hint|pip3?|python3?|import|from)\b|^[$>#]|.*[:=][ ]?\d"
    r"|.*\d\s?(?:[mun]?s|x|%|[MGK]i?B|it/s|tokens?/s)\b"
    r"|.*\b(?:enabled|installed|loaded|using|saved|written|version|found at)\b"
)
_HEAD, _SENTENCE = 400, 3
_QUIET = ("info", "warning")
# A list of changes tells of failures that are over.
_COMMIT = re.compile(r"^(?:commit [0-9a-f]{7,40}\b|Author: |Date: )")


def complains(lines: Sequence[Line], *, is_alone: bool) -> Found | None:
    """The first line of a short log that complains of something, and after which nothing went well.

    ``is_alone``: the log is a single line.
    """
    lines = _without_report(lines)
    lost = [line for line in lines if _SKIPPED.search(line.text) is not None]
    if len(lost) >= _MANY:
        return replace(_found(lines, lost[-1]), kind="overflows")
    last = max((line.number for line in lines if succeeds(line.text)), default=0)
    told = [line for line in _spoken(lines) if line.number > last]
    if is_alone and lines and _is_asked_about(lines[0]):
        return _found(lines, lines[0])
    is_few = sum(bool(line.text.strip()) for line in lines) <= _FEW
    is_warned = is_few and any(_WARNS.search(line.text) is not None for line in lines)
    is_trained = any(_LOSSES.match(line.text) is not None for line in lines)
    for at, line in enumerate(told):
        if at and _ASKS.match(told[at - 1].text) is not None and _YES.search(line.text) is not None:
            return _found(lines, told[at - 1])
        is_any = is_few or (at >= len(told) - _END and line.level != "doubtful")
        told_of = is_few and not is_warned and _tells(line.text)
        complaint = is_any and _complaint(line, is_warned=is_warned, is_trained=is_trained)
        if _fails(line.text) or told_of or complaint:
            return _found(lines, line)
    return None if last else _is_left_alone(lines)


def _is_left_alone(lines: Sequence[Line]) -> Found | None:
    """The last of several connections that broke, in a log that has hardly more than warnings."""
    warnings = [line for line in lines if _level(line) == "warning"]
    broken = [line for line in warnings if _BROKEN.search(line.text) is not None]
    is_most = 2 * len(warnings) > sum(bool(line.text.strip()) for line in lines)
    return _found(lines, broken[-1]) if is_most and len(broken) > 1 else None


def _without_report(lines: Sequence[Line]) -> Sequence[Line]:
    """Without what ``torch.utils.collect_env`` says of a machine: it describes, and complains of nothing."""
    start = next((at for at, line in enumerate(lines) if _REPORT.match(line.text) is not None), None)
    if start is None:
        return lines
    end = next((at for at, line in enumerate(lines) if at > start and _DESCRIBES.match(line.text) is None), len(lines))
    return [*lines[:start], *lines[end:]]


def _spoken(lines: Sequence[Line]) -> list[Line]:
    """The lines that are no news and no warnings, nor the continuation of such."""
    told: list[Line] = []
    is_quiet = False
    for line in lines:
        text = line.text
        if not text.strip():
            continue
        if not (is_quiet and text[0] in " \t"):
            is_quiet = _is_quiet(line)
        if not is_quiet:
            told.append(line)
    return told


def _is_quiet(line: Line) -> bool:
    if _level(line) in _QUIET:
        return True
    return _WARNING.search(line.text) is not None or _COMMIT.match(line.text) is not None


def _level(line: Line) -> str:
    return line.level or level_of(decoded(line.raw[:_HEAD]))


def _is_asked_about(line: Line) -> bool:
    """Nobody pastes a warning alone that is none to him, nor a sentence on torch that tells no news."""
    if ("CUDA" in line.text or has_mark(line.text)) and _is_statement(line):
        return True
    is_warning = not line.level and _WARNING.search(line.text) is not None and _SUCCEEDS.search(line.text) is None
    return is_warning and FAILS.search(telling_part(line.text)) is not None


def _is_statement(line: Line) -> bool:
    quiet = _WARNS.search(line.text) or _SUCCEEDS.search(line.text) or _PROGRESS.match(line.text)
    return not _level(line) and quiet is None and len(line.text.split()) > _SENTENCE


def succeeds(text: str) -> bool:
    """Whether it says that something went well."""
    return _SUCCEEDS.search(text) is not None and not _fails(text) and other.START.search(telling_part(text)) is None


def _tells(text: str) -> bool:
    told = telling_part(text)
    return any(words.search(told) is not None for words in (TOLD, CODES, FOREIGN))


def _fails(text: str) -> bool:
    return FAILS.search(telling_part(text)) is not None and _WARNS.search(text) is None


def _complaint(line: Line, *, is_warned: bool, is_trained: bool) -> bool:
    text = line.text
    if _ASSERTS.match(line.raw) is not None:
        return True
    if _PLACE.search(text) is not None:
        return not is_warned
    told = telling_part(text)
    if COMPLAINS.search(told) is not None:
        return _WARNS.search(text) is None
    is_none = _VALUES.search(told) is not None
    is_everyday = _EVERYDAY.search(text) is not None and not (is_trained and _ROW.match(text) is not None)
    return (is_none and not is_everyday) or _STACK.search(text) is not None


def _found(lines: Sequence[Line], line: Line) -> Found:
    return message_found(lines, next(place for place, one in enumerate(lines) if one is line))
