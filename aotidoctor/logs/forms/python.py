"""Python's tracebacks: of scripts, loggers, notebooks and exception groups, whole or half; warnings; faulthandler.

A log may begin or end in the middle of one. Without its head a traceback is an exception line with ``File`` lines
before it; without its end it is a failure of which nothing more is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.forms.signal import SIGNALS
from aotidoctor.logs.found import Found, lines_found, message, numbered
from aotidoctor.logs.line import Line

START = re.compile(
    r"Traceback \(most recent call last\)|(?:Error|Exception|Interrupt|Exit)\b(?::|$)|^[a-z_][\w.]*\.[A-Z]\w+: |"
    r"^\S+:\d+: \w*Warning: |^Fatal Python error: |^\s{2,12}File \""
)
_HEAD = re.compile(r"Traceback \(most recent call last\)")
_EXCEPTION = re.compile(
    r"^(?:Exception in thread .*? |Uncaught exception: |"
    r"[Uu]nhandled exception: )?(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*?(?:Error|"
    r"Exception|Interrupt|Exit))(?::|$)"
)
_DOTTED = re.compile(r"^(?P<type>(?:[a-z_]\w*\.)+[A-Z]\w+)(?:: |$)")
# After a traceback any class may be an exception.
_CLASS = re.compile(r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w+)(?:: |$)")
_WARNING = re.compile(r"^\S+:\d+: (?P<type>\w*Warning): ")
_FATAL = re.compile(r"^Fatal Python error: (?P<kind>.+)$")
_FILE = re.compile(
    r'^\s*(?:File "?|(?="[^"]{1,300}\.py", line )")(?P<file>[^",]+?)"?'
    r"(?:, line |:)(?P<line>\d+)(?:,? in (?P<name>.+))?$"
)
_NOTEBOOK = re.compile(r"^(?:-+>|File |Cell |<ipython|Input In|\.\.\.|[~/\w.-]+\.py(?::\d+)? in )")
# A line of the source that a notebook shows below a frame.
_CELL = re.compile(r"^(?:-+> ?|\s{0,8})\d{1,6} ")
_BARS = re.compile(r"^\s*[|+][\s|+-]*?(?=\S|$) ?")
_LINK = re.compile(r"^(?:During handling of the above exception|The above exception was the direct cause)")
_NO_MESSAGE = "Traceback (most recent call last)"
_FOREIGN, _LONGEST, _BACK, _INDENT = 20, 400, 60, 2
# What a logger says before a traceback is more than that there is one.
_TOLD = re.compile(r": [^:]{12}")
# So many frames, and such a share of the lines, are the middle of a traceback.
_HALF, _MOSTLY = 2, 0.7
# In these levels the dotted name before a message is that of a logger.
_NEWS = ("info", "warning")


def read(lines: Sequence[Line], at: int) -> Found | None:
    """The traceback, exception, warning or fatal error that begins at ``at``."""
    text = _BARS.sub("", lines[at].text)
    if _HEAD.search(text) or _is_logged(lines[at]):
        return _traceback(lines, at)
    fatal = _FATAL.match(text)
    if fatal is not None:
        return _faulthandler(lines, at, fatal["kind"])
    warning = _WARNING.match(text)
    if warning is not None:
        return lines_found(lines, at, at + 1, form="python", kind=warning["type"], level="warning")
    found = _EXCEPTION.match(text) or (_DOTTED.match(text) if lines[at].level not in _NEWS else None)
    return None if found is None else _exception(lines, at, found["type"], first=at, frames=_frames_before(lines, at))


def _is_logged(line: Line) -> bool:
    """Whether it is a frame of a traceback that a logger printed as errors, line by line, and whose head is cut off."""
    return line.stamped and line.level == "error" and _FILE.match(line.text) is not None


def _traceback(lines: Sequence[Line], at: int) -> Found:
    frames: list[str] = []
    grouped = _BARS.match(lines[at].text) is not None
    head = _HEAD.search(lines[at].text)
    dedent = len(lines[at].text) - len(lines[at].text.lstrip()) - (0 if head else _INDENT)
    foreign, here, last = 0, at + (head is not None), None
    while here < min(len(lines), at + _LONGEST) and foreign <= _FOREIGN:
        text = _BARS.sub("", lines[here].text) if grouped else lines[here].text
        file = _FILE.match(text)
        inside = text[dedent:] if not text[:dedent].strip() else text
        if file is not None:
            frames.append(_frame(file))
            last = None
        elif _HEAD.search(text):
            break
        elif inside and not inside[0].isspace() and not _NOTEBOOK.match(inside):
            found = _EXCEPTION.match(inside) or _CLASS.match(inside)
            if found is not None:
                return _exception(lines, here, found["type"], first=at, frames=frames[::-1])
            foreign += 1
            last = last or here
        here += 1
    # A paste may have lost the type of the exception, and kept its message, or told it before.
    before = lines[at].text[: head.start()].strip(" ,:") if head else ""
    told = before if _TOLD.search(before) else _NO_MESSAGE
    said = (lines[last].number, lines[last].text) if last and frames else (lines[at].number, told)
    return Found(
        form="python",
        kind="truncated",
        said=(said,),
        first=at,
        end=here if foreign <= _FOREIGN else at + 1,
        frames=tuple(frames[::-1]),
        chained=_is_chained(lines, at),
    )


def _exception(lines: Sequence[Line], at: int, kind: str, *, first: int, frames: Sequence[str]) -> Found:
    stamped = at > first and lines[at].stamped and lines[at - 1].stamped
    said, native, end = message(lines, at, stamped=stamped)
    begin = _BARS.sub("", said[0].text).strip()
    return Found(
        form="python",
        kind=kind.rpartition(".")[2],
        said=((said[0].number, begin), *numbered(said[1:])),
        first=first,
        end=end,
        frames=(*native, *frames),
        chained=_is_chained(lines, first),
    )


def unfinished(lines: Sequence[Line]) -> Found | None:
    """The middle of a traceback, without its head and its exception; None where the lines are not mostly of one."""
    frames: list[str] = []
    own, said, last = 0, 0, None
    for at, line in enumerate(lines):
        if line.level in ("info", "warning"):
            return None
        file = _FILE.match(line.text)
        if file is not None and file["name"]:
            frames.append(_frame(file))
            last = at
        said += bool(line.text)
        own += file is not None or _CELL.match(line.text) is not None or (bool(frames) and line.text[:2].isspace())
    if last is None or len(frames) < _HALF or own < _MOSTLY * said:
        return None
    return Found(
        form="python",
        kind="truncated",
        said=numbered(lines[last : last + 2]),
        first=0,
        end=len(lines),
        frames=tuple(frames[::-1]),
    )


def _frame(file: re.Match[str]) -> str:
    return f"{file['name'] or '?'} ({file['file']}:{file['line']})"


def _is_chained(lines: Sequence[Line], at: int) -> bool:
    return any(_LINK.match(line.text.strip(" |+-")) for line in lines[max(at - 3, 0) : at])


def _frames_before(lines: Sequence[Line], at: int) -> tuple[str, ...]:
    """The frames of half a traceback: what stands before its exception."""
    frames: list[str] = []
    for line in reversed(lines[max(at - _BACK, 0) : at]):
        file = _FILE.match(line.text)
        if file is not None:
            frames.append(_frame(file))
        elif line.text and not line.text[0].isspace() and not _NOTEBOOK.match(line.text):
            break
    return tuple(frames)


def _faulthandler(lines: Sequence[Line], at: int, kind: str) -> Found:
    frames: list[str] = []
    here = at + 1
    while here < min(len(lines), at + _LONGEST):
        text = lines[here].text
        file = _FILE.match(text)
        if file is not None:
            frames.append(_frame(file))
        elif text and not re.match(r"^(?:Current thread|Thread|Extension modules|\s|Python runtime state|<)", text):
            break
        here += 1
    signal = next((name for words, name in SIGNALS.items() if kind.startswith(words)), kind)
    return Found(
        form="signal", kind=signal, said=numbered(lines[at : at + 1]), first=at, end=here, frames=tuple(frames)
    )
