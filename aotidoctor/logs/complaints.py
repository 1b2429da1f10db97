"""Find failures in logs without any known form: everyday words, numbers, and titles of reports.

The lines of a short log were selected by hand. So where none has the form of a failure, they are searched for the
everyday words of one: ``failed``, ``cannot``, ``not found``, a number that is NaN. News and warnings of loggers do not
count, nor do the lines of ``harmless``, nor a complaint that is followed by a success.

Numbers complain without a word: a difference beside its tolerance. A paste that was cut may name its cause in the
user's own words: a title, a sentence around a traceback. Those are read where the printed lines show no more than a
place, and where the few lines do not look like a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aotidoctor.logs.forms import message_forms
from aotidoctor.logs.harmless import has_mark, telling_part, without_denials
from aotidoctor.logs.lines import LogLine, any_of, decode_line, expressions, level_of
from aotidoctor.logs.origins import is_prose, match_origin
from aotidoctor.logs.patterns import LogFailure, lines_failure, message_failure

# Everyday words: plain ones, any complaint, codes.
FAILS = any_of("failures")


def _as_words(table: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?i:(?<![\w.-])(?:{'|'.join(table)})(?![\w-]))")


COMPLAINS, INFORMAL = _as_words(expressions("complaints")), _as_words(expressions("informal"))
# Signs that are no English words: statuses of servers, exceptions of C++, stacks of Go.
CODES = any_of("codes")


# Numbers.
_NUMBER = r"(?P<{}>\d{{1,9}}(?:\.\d{{1,12}})?(?:e[-+]?\d{{1,3}})?)"
# A difference, and how much of it is allowed.
_BEYOND = re.compile(
    r"\b(?:diff(?:erence)?|error|deviation)s?\b[^\d\n]{1,30}"
    + _NUMBER.format("value")
    + r"[^\n]{1,60}?\b(?:tol(?:erance)?|[ar]tol|up to|threshold|allowed|limit|expected <)\b[^\d\n]{0,12}"
    + _NUMBER.format("most"),
    re.IGNORECASE,
)


def within_tolerance(text: str) -> bool | None:
    """Whether each difference in ``text`` is within the tolerance named beside it; None without any."""
    allowed = [float(hit["value"]) <= float(hit["most"]) for hit in _BEYOND.finditer(text)]
    return all(allowed) if allowed else None


# Complaints.
# In up to so many lines any complaint counts; in more of them a plain word of failure does, or any at the end.
_FEW, _END = 10, 6
# Values: numbers that are none, and comparisons that did not hold.
_VALUES = any_of("values")
# A question about values in an interactive session, and the answer below it.
_QUESTION, _YES = re.compile(r"^(?:>>>|In \[\d{1,5}\]:) .{0,300}\bis(?:nan|inf)\("), re.compile(r"\bTrue\b")
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
# pytest's line for an assertion without a message.
_ASSERTS = re.compile(rb"E\s+assert ")
# Stacks without the failure that they belong to.
_STACK = any_of("stacks")
# A place: of a failure, unless the log has warnings.
_PLACE = re.compile(r"^\s*File \"[^\"]+\", line \d")
_WARNS = re.compile(
    r"(?i:\b(?:may|might) (?:not )?be\b|warn"
    r"|deprecat|info\b|debug\b|skipp|optional|fallback|(?<!\.)default)|\b[VIW]\d{4}\b"
)
_SUCCEEDS = any_of("successes")
_WARNING = re.compile(r"(?i:\bwarn(?:ing)?\b)")
# Connections to others that broke.
_BROKEN = re.compile(
    r"(?i:\bconnections? (?:(?:is|was|has been|to \S{1,80}) )?(?:broken|lost|refused|reset|aborted|timed out)\b"
    r"|\blost (?:the )?connection\b)"
)
# The beginning of news.
_PROGRESS = any_of("progress")
_HEAD, _SENTENCE = 400, 3
_QUIET = ("info", "warning")
# A list of changes mentions failures that are over.
_COMMIT = re.compile(r"^(?:commit [0-9a-f]{7,40}\b|Author: |Date: )")


def find_complaint(lines: Sequence[LogLine], *, is_alone: bool) -> LogFailure | None:
    """The first line of a short log that complains of something, with no success after it.

    ``is_alone``: the log is a single line.
    """
    report = next((at for at, line in enumerate(lines) if _REPORT.match(line.text) is not None), None)
    if report is not None:
        # What ``torch.utils.collect_env`` prints describes a machine, and complains of nothing.
        below = range(report + 1, len(lines))
        end = next((at for at in below if _DESCRIBES.match(lines[at].text) is None), len(lines))
        lines = [*lines[:report], *lines[end:]]
    last = max((line.number for line in lines if succeeds(line.text)), default=0)
    reports = [line for line in _reporting_lines(lines) if line.number > last]
    if is_alone and lines and _is_complaint_alone(lines[0]):
        return _failure_at(lines, lines[0])
    is_few = sum(bool(line.text.strip()) for line in lines) <= _FEW
    is_warned = is_few and any(_WARNS.search(line.text) is not None for line in lines)
    is_trained = any(_LOSSES.match(line.text) is not None for line in lines)
    for at, line in enumerate(reports):
        if at and _QUESTION.match(reports[at - 1].text) is not None and _YES.search(line.text) is not None:
            return _failure_at(lines, reports[at - 1])
        is_any = is_few or (at >= len(reports) - _END and line.level != "doubtful")
        rest = telling_part(line.text) if is_few and not is_warned else ""
        if (
            _fails(line.text)
            or any(words.search(rest) is not None for words in (INFORMAL, CODES))
            or (is_any and _complaint(line, is_warned=is_warned, is_trained=is_trained))
        ):
            return _failure_at(lines, line)
    # The last of several connections that broke, in a log that has hardly more than warnings.
    warnings = [line for line in lines if _level(line) == "warning"] if not last else []
    broken = [line for line in warnings if _BROKEN.search(line.text) is not None]
    is_most = 2 * len(warnings) > sum(bool(line.text.strip()) for line in lines)
    return _failure_at(lines, broken[-1]) if is_most and len(broken) > 1 else None


def _reporting_lines(lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines that are neither news nor warnings, nor continue such."""
    reports: list[LogLine] = []
    is_quiet = False
    for line in lines:
        text = line.text
        if not text.strip():
            continue
        if not (is_quiet and text[0] in " \t"):
            is_news = _level(line) in _QUIET or _WARNING.search(text) is not None
            is_quiet = is_news or _COMMIT.match(text) is not None
        if not is_quiet:
            reports.append(line)
    return reports


def _level(line: LogLine) -> str:
    return line.level or level_of(decode_line(line.raw[:_HEAD]))


def _is_complaint_alone(line: LogLine) -> bool:
    """Whether a line would be pasted alone: a warning of a failure, or a sentence on torch that is no news."""
    text = line.text
    if "CUDA" in text or has_mark(text):
        is_news = _WARNS.search(text) or _SUCCEEDS.search(text) or _PROGRESS.match(text)
        if not _level(line) and not is_news and len(text.split()) > _SENTENCE:
            return True
    is_warning = not line.level and _WARNING.search(text) is not None and _SUCCEEDS.search(text) is None
    return is_warning and FAILS.search(telling_part(text)) is not None


def succeeds(text: str) -> bool:
    """Whether ``text`` reports a success."""
    return (
        _SUCCEEDS.search(text) is not None
        and not _fails(text)
        and message_forms.OTHER_START.search(telling_part(text)) is None
    )


def _fails(text: str) -> bool:
    return FAILS.search(telling_part(text)) is not None and _WARNS.search(text) is None


def _complaint(line: LogLine, *, is_warned: bool, is_trained: bool) -> bool:
    text = line.text
    if _ASSERTS.match(line.raw) is not None:
        return True
    if _PLACE.search(text) is not None:
        return not is_warned
    rest = telling_part(text)
    if COMPLAINS.search(rest) is not None:
        return _WARNS.search(text) is None
    is_none = _VALUES.search(rest) is not None
    is_everyday = _EVERYDAY.search(text) is not None and not (is_trained and _ROW.match(text) is not None)
    return (is_none and not is_everyday) or _STACK.search(text) is not None


def _failure_at(lines: Sequence[LogLine], line: LogLine) -> LogFailure:
    return message_failure(lines, next(place for place, one in enumerate(lines) if one is line))


# Titles and sentences around what was printed. Titles and remarks stand at the beginning or at the end.
_FIRST, _LAST = 4, 2
_NEWS = ("info", "warning", "doubtful")
# A log of so few lines was selected by hand.
_FEW_LINES = 10
_UNABLE = re.compile(r"(?i:\b(?:unable to|could not|can ?not|failed to)\b)")
_INSTEAD = re.compile(r"(?i:\b(?:default|fall\w*|instead|skip\w*|using|will|retry\w*|ignor\w*|continu\w*)\b)")


def find_title(
    lines: Sequence[LogLine], known: Sequence[tuple[int, int]], *, is_healthy: bool = False
) -> LogFailure | None:
    """The sentence that names a cause: the most certain, or the first. ``known``: first and last line of each failure.

    ``is_healthy``: nothing else in the log looks like a failure, so that only words of a failure count.
    """
    around = "\n".join(line.text for line in lines)
    free = [
        (at, line)
        for at, line in enumerate(lines)
        if line.text.strip()
        and (not line.stamped or (is_healthy and _is_unable(line)))
        and not any(first <= line.number <= last for first, last in known)
    ]
    best: tuple[float, LogFailure] | None = None
    for at, line in [*free[:_FIRST], *free[_FIRST:][-_LAST:]]:
        found = lines_failure(lines, at, at + 1, form="line")
        if (line.level in _NEWS and not (is_healthy and _is_unable(line))) or not is_prose(found):
            continue
        # "Out of memory: no" is a sentence on memory, too.
        plain = replace(found, lines=((line.number, without_denials(line.text)),)) if is_healthy else found
        match = match_origin(plain, line.number, around, is_failure=not is_healthy)
        if match is not None and (best is None or match.confidence > best[0]):
            best = match.confidence, found
    return best[1] if best is not None else None


def _is_unable(line: LogLine) -> bool:
    """Whether a line is news of something that could not be done, without a substitute for it."""
    return line.level == "info" and _UNABLE.search(line.text) is not None and _INSTEAD.search(line.text) is None


def title_failure(lines: Sequence[LogLine]) -> LogFailure | None:
    """The first sentence that names a cause, in a few lines without the form of a failure; else numbers that do."""
    filled = [line for line in lines if line.text.strip()]
    if len(filled) > _FEW_LINES or any(succeeds(line.text) for line in filled):
        return None
    found = find_title(lines, (), is_healthy=True)
    if found is not None:
        return found
    beyond = next((line for line in filled if within_tolerance(line.text) is False), None)
    return replace(_failure_at(lines, beyond), kind="beyond") if beyond is not None else None
