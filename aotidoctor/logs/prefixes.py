"""Prefixes that loggers, launchers and containers put before a line, taken off one after the other.

What names a process (rank, container, pid) is its origin; a thread makes a stream of its own inside of it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from aotidoctor.logs.levels import level_named, level_of, loudness

_LEVEL = r"(?P<level>INFO|DEBUG|TRACE|NOTICE|WARN(?:ING)?|ERR(?:OR)?|CRITICAL|FATAL|SEVERE)"
_DATE = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?"
# Each is tried at the start of what is left, until none fits.
_PREFIXES = tuple(
    re.compile(text)
    for text in (
        # torchrun, accelerate, MPI, Ray, vLLM.
        r"\[(?P<rank>(?:rank|default)\s?\d+)\]:? ?",
        r"\[(?P<rank>\d+,\d+)\]<std(?:err|out)>: ?",
        r"\((?P<rank>[\w.:-]+(?: [\w.:=-]+)* pid=\d+(?:, ip=[\w.:]+)?)(?:, \w+=\S+)*\) ?",
        r"\((?P<rank>pid=\d+(?:, ip=[\w.:]+)?|raylet(?:, ip=[\w.:]+)?)\) ?",
        # SGLang's ranks, Ray's daemons and its driver.
        rf"\[(?:{_DATE}|\d\d:\d\d:\d\d) (?P<rank>(?:DP|TP|PP|EP|CP)\d+(?: (?:DP|TP|PP|EP|CP)\d+)*)\] ?",
        rf"\[{_DATE} (?P<letter>[IWEFDC]) \d+ (?P<thread>\d+)\] (?:\([\w -]+\) )?[\w./-]+:\d+: ?",
        rf"{_DATE}\t{_LEVEL} [\w./-]+:\d+ -- ",
        # Buildkite's columns.
        rf"\s{{0,4}}\| {_DATE} \| ?",
        # Container runtimes; docker compose and kubectl --prefix.
        rf"{_DATE} std(?:err|out) [FP] ?",
        r"#\d{1,3} \d{1,6}\.\d{1,4} ",
        r"\[(?P<rank>pod/[\w./-]+)\] ?",
        r"(?P<rank>[a-z][\w.-]*) +\| ?",
        # GitHub Actions.
        r"(?:##\[|::)(?P<level>error|warning)\b[^\]:\n]{0,400}(?:\]|::) ?",
        # Syslog and journald: time, host, program[pid].
        r"(?:<(?P<priority>\d{1,3})>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ (?P<rank>[\w.@/-]+(?:\[\d+\])?): ?",
        rf"{_DATE} [\w.-]+ (?P<rank>[\w.@/-]+\[\d+\]): ?",
        # The kernel's ring buffer.
        r"\[ *\d+\.\d{3,6}\] (?:\[ *T\d+\] )?",
        r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ",
        # glog, torch._logging and c10's logger.
        (
            r"\[?(?P<letter>[IWEFDVC])\d{3,8} \d\d:\d\d:\d\d\.\d+ +(?P<thread>\d+)"
            r" (?:[\w./\\<>+-]+:\d+\] ?)(?:\[(?:__)?[\w/-]+\] )*"
        ),
        r"\[(?P<letter>[IWEFDVC])(?:\d{3,8} \d\d:\d\d:\d\d\.\d+)? [\w./-]+:\d+\] ?",
        # ExecuTorch's. It says E of much that is no failure.
        r"(?:(?P<letter>[IWFD])|(?P<doubtful>E)) (?:\d\d:\d\d:\d\d\.\d+ )?[\w./-]{1,80}(?::[\w./-]{1,80}){0,3}:\d+\] ?",
        # Python's logging in its usual clothes.
        rf"\[?{_DATE}\]?(?:\[[\w.-]+\]\s*|:)?\s?(?:- |: )?",
        rf"\[{_LEVEL}\]:? ?",
        r"(?:\[[\w.#:-]{1,80}\] ){1,3}>>> ?",
        rf"{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]+:\d+\] ?",
        rf"{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d (?!\[?[\w./-]+:\d+\])",
        rf"{_LEVEL}:[\w.]+:(?:\d+:)?",
        rf"[\w.-]+ - {_LEVEL} - ?",
        rf"(?:\[\d{{1,6}}/\d{{1,6}}\w{{0,6}}\] )?[\w.]{{1,80}}: \[{_LEVEL}\] ?",
        rf"{_LEVEL} +(?:\[[\w.#/:-]+(?: [\w.#/:-]+){{0,8}}\] ?|- )",
        r"(?P<level>INFO|DEBUG|TRACE|NOTICE|WARN(?:ING)?):? +(?=\S)",
        r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]? ",
        # pytest, and what people quote.
        r"E(?: {3}(?= *\S|$)|$)",
        r"> (?=\S| {2})",
    )
)
# What may stand at the start of a prefix; most lines of a stack have none of these.
_MAY = re.compile(
    r"[\[(#:<{\d]|\s{0,4}\| \d{4}-|[IWEFDVC] ?\d|[IWEFD] [a-z]|E(?: {3}|$)|> |[A-Z][a-z]{2} [ \d]\d "
    r"|[A-Z]{3,8}\b|[\w.-]+(?: (?:- | *\| ?)|: \[)"
)
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_=>()][0-9A-B]?)")
_MOST = 12
# The fields of a record that say something.
_SAID = ("log", "message", "msg", "MESSAGE", "exc_info", "exception", "stack", "error")


@dataclass(frozen=True, slots=True)
class Bare:
    """A line without its prefixes. ``ranks`` are the names of the process, outermost first."""

    text: str
    ranks: tuple[str, ...] = ()
    thread: str = ""
    level: str = ""
    stamped: bool = False


def bare(text: str) -> Bare:
    """``text`` without colours and prefixes."""
    if "\x1b" in text or "\x07" in text:
        text = _COLOURS.sub("", text).replace("\x07", "")
    found = Bare(text)
    for _ in range(_MOST):
        if not _MAY.match(found.text):
            break
        shorter = _one(found)
        if shorter is None:
            break
        found = shorter
    return found


def _one(line: Bare) -> Bare | None:
    """Without one more prefix; None where there is none."""
    for prefix in _PREFIXES:
        found = prefix.match(line.text)
        if found is not None and found.end():
            return _without(line, found)
    return None


def _without(line: Bare, found: re.Match[str]) -> Bare:
    parts = found.groupdict()
    rank, thread = parts.get("rank"), parts.get("thread")
    named = parts.get("level") or parts.get("letter") or ""
    priority = parts.get("priority")
    level = "doubtful" if parts.get("doubtful") else level_named(named)
    level = loudness(int(priority)) if priority else level
    return replace(
        line,
        text=line.text[found.end() :],
        ranks=(*line.ranks, rank) if rank is not None else line.ranks,
        thread=thread or line.thread,
        level=level or line.level,
        stamped=line.stamped or bool(level),
    )


def unwrapped(text: str) -> list[str]:
    """The lines inside of a JSON record (docker's json-file, structured logs); else the line itself."""
    start = text.lstrip("\x1b[0123456789;m ")
    if not start.startswith("{") or '"' not in start:
        return [text]
    try:
        record = json.loads(start)
    except (ValueError, RecursionError):
        return [text]
    if not isinstance(record, dict):
        return [text]
    said = [record.get(key) for key in _SAID]
    lines = [line for part in said if isinstance(part, str) for line in part.rstrip("\n").split("\n")] or [text]
    level = level_of(start)
    return [f"[{level.upper()}] {lines[0]}", *lines[1:]] if level else lines
