"""Read the failures that tools print as messages: compilers, linkers, loaders, servers, loggers, and all others.

The last form, ``other``, knows the words and not the place: an exception in the middle of a sentence, behind an unknown
prefix, with the first word cut off. With it, no log with a failure is called healthy. Lines of ``harmless`` are left
out; news (a logger's INFO) stay mentions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.harmless import telling_part
from aotidoctor.logs.lines import LogLine, decode_line, expressions, level_of
from aotidoctor.logs.patterns import LogFailure, end_below, lines_failure, message_failure, read_message

# gcc and clang, MSVC, nvcc and ptxas, with the source lines and the notes below a diagnostic.

COMPILER_START = re.compile(
    r"\berror:|\(\d+\)\s*: (?:fatal )?error|^error C\d+|ptxas (?:error|fatal)|nvcc fatal|LLVM ERROR|CMake Error|"
    r"\bfatal error[: ]|redefinition of|was not declared in this scope|^make(?:\[\d+\])?: \*\*\*|^ninja: build stopped|"
    r"^FAILED: \S+\.(?:o|so|obj)\b|compilation terminated|errors? (?:generated|detected in the compilation)"
)
_DIAGNOSTIC = re.compile(
    r"^(?:(?:[A-Za-z]:)?[^:\s(][^:(]*?(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))\s*: ?(?:fatal )?error\b)|"
    r"^(?:[\w+./-]*(?:g\+\+|gcc|clang(?:\+\+)?|cc1plus|cc1|cl|"
    r"nvcc|icpx?)[\w.-]{0,40}: (?:fatal )?error: )|^(?:fatal )?error: |"
    r"ptxas (?:error|fatal)|nvcc fatal|LLVM ERROR|CMake Error at|^error C\d+|^LINK : fatal error"
)
_COMPILER_FOLLOWS = re.compile(
    r"^make(?:\[\d+\])?: \*\*\*|^ninja: build stopped|^FAILED: |compilation terminated|errors? generated|"
    r"errors? detected in the compilation|linker command failed"
)
_BELOW_DIAGNOSTIC = re.compile(r"^\s*(?:\d+ )?\| ?|^\s+[\^~]|: note: |^\s{2,}\S|^(?:compilation terminated)")
_MOST_BELOW_DIAGNOSTIC = 12


def read_compiler(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The diagnostic that begins at ``at``."""
    text = lines[at].text
    if _COMPILER_FOLLOWS.search(text):
        return lines_failure(lines, at, at + 1, form="compiler", stage="compile", follows=True)
    if not _DIAGNOSTIC.search(text) or "linker" in text or "undefined reference" in text or "ld: " in text:
        return None
    return lines_failure(
        lines, at, end_below(lines, at, _BELOW_DIAGNOSTIC, _MOST_BELOW_DIAGNOSTIC), form="compiler", stage="compile"
    )


# GNU ld, lld, mold, Apple's ld, and the tools around them (nm, objcopy, ar).
LINKER_START = re.compile(
    r"undefined reference to|\bld(?:\.\w+)?: |ld64?\.lld: |mold: (?:fatal|error)|collect2: |relocation truncated|"
    r"Undefined symbols? for|symbol\(s\) not found|\bnm: |objcopy: |\bar: |LNK\d{4}|ld returned \d|"
    r"linker command failed|duplicate symbol|undefined symbol: .{0,400}\n?>>>"
)
_LINKER_FOLLOWS = re.compile(
    r"collect2: error|ld returned \d|linker command failed|symbol\(s\) not found for architecture"
)
_ERROR = re.compile(
    r"undefined reference to|relocation truncated|cannot find|error|fatal|truncated|malformed|failed|Undefined symbol|"
    r"undefined symbol|skipping incompatible|not found|No space|overflow|LNK\d{4}|duplicate symbol|multiple definition"
)
_BELOW_LINKER = re.compile(r'^>>> |^\s+"|^\s{6,}|undefined reference to')
_MOST_BELOW_LINKER = 12


def read_linker(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The error of the linker at ``at``; None for a warning."""
    text = lines[at].text
    follows = _LINKER_FOLLOWS.search(text) is not None
    if not follows and (not _ERROR.search(text) or ": warning: " in text):
        return None
    end = at + 1 if follows else end_below(lines, at, _BELOW_LINKER, _MOST_BELOW_LINKER)
    return lines_failure(lines, at, end, form="linker", stage="link", follows=follows)


# The dynamic loader: glibc's, Apple's dyld, and what ``dlopen`` reports through others.
LOADER_START = re.compile(
    r"symbol lookup error|error while loading shared libraries|dyld(?:\[\d+\])?: |undefined symbol|"
    r"cannot open shared object file|version `[^']+' not found|"
    r"Error in dlopen|dlopen\(|invalid ELF header|Symbol not found"
)
_BELOW_LOADER = re.compile(
    r"^\s+(?:Referenced from|Reason|Expected in|in )|^Referenced from|^\s+Reason: |^\s+'?/.*\((?:no such|not)"
)
_MOST_BELOW_LOADER = 8


def read_loader(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The error of the loader at ``at``."""
    return lines_failure(
        lines, at, end_below(lines, at, _BELOW_LOADER, _MOST_BELOW_LOADER), form="loader", stage="load"
    )


# Triton Inference Server: models that do not load, in its log and in its table of models.
SERVER_START = re.compile(
    r"failed to load '|UNAVAILABLE: |UNLOADED|failed to load all models|error: creating server|Poll failed"
)
_LOAD = re.compile(r"failed to load '[^']+' version \d+: (?P<why>.*)|failed to load '[^']+'")
_TABLE = re.compile(r"^\|\s*[^\s|]+\s*\|\s*[^\s|]+\s*\|\s*(?P<why>UNAVAILABLE: .*)$")
_MORE = re.compile(r"^\|\s+\|\s+\|\s*(?P<why>[^\s|].*)$")


def read_server(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The model that was not loaded, and why."""
    text = lines[at].text
    table = _TABLE.match(text)
    if table is not None:
        # A cell goes on in the rows below that have no model.
        cells, end = [_table_cell(table["why"])], at + 1
        while end < len(lines) and (more := _MORE.match(lines[end].text)) is not None:
            cells.append(_table_cell(more["why"]))
            end += 1
        row = ((lines[at].number, " ".join(cells)),)
        return LogFailure(form="triton", lines=row, first=at, end=end, stage="serve")
    loaded = _LOAD.search(text)
    if loaded is not None:
        row, follows = ((lines[at].number, loaded["why"] or text),), loaded["why"] is None
        return LogFailure(form="triton", lines=row, first=at, end=at + 1, stage="serve", follows=follows)
    if "failed to load all models" in text or "creating server" in text:
        return lines_failure(lines, at, at + 1, form="triton", stage="serve", follows=True)
    return None


def _table_cell(text: str) -> str:
    """The text of a table's last cell, without the line that closes it."""
    return text.rstrip().removesuffix("|").rstrip()


# ``Error: ...``, a logger's ERROR, a failed API call.

PLAIN_START = re.compile(
    r"^\s*(?:[Ee]rror|ERROR|FATAL|Fatal|fatal|[Ee]xception)\b ?(?:\[[^\]]*\])?:|"
    r"\bCUDA (?:driver )?error: |API call failed at |"
    r"^\[?(?:ERROR|FATAL|CRITICAL)\b|\bTriton Error \[|\bCUDA out of memory|^(?:FAILED|FAIL)[ :\[]|std::\w+: "
)
_NONE = re.compile(
    r"\b(?:no|0|without) (?:errors?|failures?)\b|\berrors?\s*[=:]\s*(?:0|none|null|false)\b"
    r"|\berrors?\s*[=:]\s*\d{0,9}\.\d{1,12}(?:e-?\d{1,3})?%?$",
    re.IGNORECASE,
)


def read_plain(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The line, with what continues it."""
    if _NONE.search(lines[at].text):
        return None
    return message_failure(lines, at, follows="API call failed at " in lines[at].text)


# A record that some logger calls an error. The beginning of an error's level; ``level_of`` knows where it stands.
RECORD_START = re.compile(
    r"(?i:err|eror|crit|fatal|severe|panic|emerg|alert|fail|ftl|fehler)|^<[0-9]|[EFCA][/\]) \t\d]|PRIORITY"
    r"|level\"\s?:\s?[56]0"
)
_LEVEL_WORD = re.compile(r"[^\W\d_]{3}")
_HEAD = 1000


def read_record(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The record, with what continues it."""
    line = lines[at]
    if line.level in ("info", "warning", "doubtful"):
        return None
    # The raw line has the time that marks a record.
    level = level_of(line.text) or level_of(decode_line(line.raw[:_HEAD]))
    if level != "error" or _LEVEL_WORD.search(telling_part(line.text)) is None:
        return None
    return message_failure(lines, at)


# Any other words of a failure.
# The end of the name of an exception, and what comes after it; its beginning is looked for backwards.
_EXCEPTION = re.compile(
    r"(?:Error|Exception|Interrupt)(?P<after>['\"`>\])*]{0,4}\s?:(?!:Ok\b)|\(|[^\w\s.]|\s[-\u2013\u2014]|\s{0,8}$)"
)
_LONGEST_NAME = 120
_FAILURE_WORDS = "|".join(expressions("failure_words"))
# The result of a whole, which a logger may call news.
_RESULT = re.compile(
    r"\b(?:BUILD|TESTS?|COMPILATION|INSTALL(?:ATION)?|DEPLOY(?:MENT)?|JOB|TASK|STEP) (?:FAILED|FAILURE)\b"
)
_RAISED = "\u2771"
_WORD = re.compile(r"\w{4}")
OTHER_START = re.compile(rf"(?:{_EXCEPTION.pattern})|(?:{_FAILURE_WORDS})|(?:{_RESULT.pattern})")


def read_other(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The line, with what continues it. An exception begins at its name."""
    text = lines[at].text
    if lines[at].level == "doubtful":
        return None
    is_news = lines[at].level in ("info", "warning") and _RESULT.search(text) is None
    if is_news and not text.lstrip().startswith(("Error", "ERROR", "error")):
        return None
    rest = telling_part(text)
    # Rich marks the line that raised, whatever it says.
    if rest != text and not OTHER_START.search(rest) and _RAISED not in text:
        return None
    body, frames, end = read_message(lines, at)
    named = _EXCEPTION.search(text)
    texts = [(line.number, line.text) for line in body]
    kind = ""
    if named is not None:
        start = named.start()
        while start > max(named.start() - _LONGEST_NAME, 0) and (text[start - 1].isalnum() or text[start - 1] in "_.:"):
            start -= 1
        kind = text[start : named.start("after")].rpartition(".")[2]
        if ":" in named["after"] and start:
            # The text before the name may say more.
            before = text[:start].rstrip()
            own = (lines[at].number, text[start:])
            texts[:1] = [(lines[at].number, before), own] if _WORD.search(before) else [own]
    return LogFailure(form="line", kind=kind, lines=tuple(texts), first=at, end=end, frames=tuple(frames))
