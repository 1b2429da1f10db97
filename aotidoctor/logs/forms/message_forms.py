"""Read the failures that tools print as messages: compilers, linkers, loaders, servers, loggers, and all others.

The last form, ``other``, knows the words and not the place: an exception in the middle of a sentence, behind an unknown
prefix, with the first word cut off. With it, no log with a failure is called healthy. Lines of ``harmless`` are left
out; news (a logger's INFO) stay mentions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.harmless import telling_part
from aotidoctor.logs.lines import LogLine, decode_line, level_of
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
_ERRNO = (
    "Read-only file system|No space left on device|Permission denied|Operation not permitted|No such process"
    "|No such file or directory|No such device(?: or address)?|Input/output error|Argument list too long"
    "|[Ee]xec format error|Cannot allocate memory|Bad address|Device or resource busy|Text file busy|File too large"
    "|Too many (?:open files(?: in system)?|links|levels of symbolic links)|Broken pipe|Resource deadlock avoided"
    "|File name too long|Directory not empty|Value too large for defined data type|Invalid cross-device link"
    "|Stale file handle|Disk quota exceeded|Connection (?:refused|timed out|reset by peer)|No route to host"
    "|Network is unreachable|Function not implemented|(?:Is|Not) a directory|File exists|Bad file descriptor"
    "|Illegal seek|Numerical result out of range|(?:Protocol|Operation) not supported|Address already in use"
    "|Cannot assign requested address|Transport endpoint is not connected|Host is down|Remote I/O error"
)
_ENDED = (
    r"\u5df2(?:\u6740\u6b7b|\u7d42\u6b62|\u7ec8\u6b62|\u653e\u5f03)|\u6bb5(?:\u9519\u8bef|\u932f\u8aa4)"
    r"|\uac15\uc81c \uc885\ub8cc|\u0423\u0431\u0438\u0442\u043e|\u041f\u0440\u0435\u0440\u0432\u0430\u043d\u043e"
    r"|\u041e\u0448\u0438\u0431\u043a\u0430|\u30a8\u30e9\u30fc|\u9519\u8bef|Get\u00f6tet|Abgebrochen"
    r"|Speicherzugriffsfehler|Processus arr\u00eat\u00e9|Erreur\b|Abandon\W*$|Tu\u00e9\W*$|Fehler\b|Errore\b"
    r"|Violaci\u00f3n de segmento|Abortado|Falha de segmenta|Terminato\W*$|Ucciso"
)
_FAILURE_WORDS = "|".join(
    (
        r"(?i:\berrors?)[`'\")\]*]{0,8}\s?(?:\[[^\]]{0,200}\])?:",
        r"\b[Ee]rror \"|\berror [A-Z]{1,4}\d{3,5}\b|(?i:\berror) #\d|\bLNK\d{4}\b",
        r"(?i:\bfatal)(?: error|:)|^\s*(?i:error)\b|^[a-z]{0,5}rror: ",
        r"[Ss]egmentation (?:fault|violation)|\b[Ss]egfault|core dumped|^\W*Abort(?:ed|ing)?\b|aborting\.?$",
        r"terminate called|terminating (?:due|with)|\bpanic(?:ked)?\b[: ]|stack smashing|\bcrash(?:ed|es)\b",
        r"[Aa]ssertion failed|\b[Aa]ssert(?:ion)? .{1,300} failed|[Uu]ndefined (?:symbol|reference)",
        r"libc\+\+abi: terminating|\b(?:exited|exits|died|finished|ended) with (?:-\d|[1-9]\d{0,2}\b)(?! \w)",
        r"[Uu]n(?:handled|caught) exception|returned non-?zero|unresolved external|^\+ (?:return|exit) [1-9]",
        r"\bnon-?zero (?:exit )?(?:code|status):? ?[1-9]|\breturn code ?= ?-?[1-9]",
        r": error\b(?!-)|[Cc]heck failed\b|\w(?:\(\))? failed (?:at|on|with|in)\b|\bC(?:10\d\d|2\d{3})\s?['\":]",
        r"\bmake(?:\[\d{1,4}\])?: \*\*\* |\bError [1-9]\d{0,5}\b",
        r"Unrecogni[sz]ed instruction|unhandled instruction|^FAIL(?:ED)?\b",
        r"(?i:exit(?:ed)?(?: with)?(?: exit)?[ _-]?(?:code|status)\s{0,8}[:= ]{1,8})-?[1-9]",
        r"(?i:\breturn(?:ed)?[ _-]?(?:code|status)\s{0,8}[:= ]{1,8})(?:-[1-9]|1?\d?[1-9]\b(?!\.))",
        r"\bcode=(?:killed|dumped|exited), status=[1-9]|\bstatus=[1-9]\d{0,2}/[A-Z]",
        r"_(?:ERROR|STATUS|RESULT)_(?!SUCCESS|NONE|CODE)[A-Z_]{4}|\b(?:cuda|hip)Error[A-Z]",
        r"(?i:\b(?:build|compil(?:ation|e)|link(?:ing)?|linker command|import|install(?:ation)?) failed\b)",
        r"\bError(?: \(\w{1,20}\))? (?:at|in|while|when|during|on|from|occurred)\b",
        r"::\S{1,200} (?:FAILED|ERROR)\b|: (?:ERROR|FATAL) |:\d+:\d+: [A-Z]{1,3}\d{3,4} ",
        r"^(?:\S{1,200}\.py )?[.sxXE]{0,200}F[.sxXFE]{0,200}\s{1,8}\[ {0,2}\d{1,3}%\]",
        r"\u2771 {1,6}\d+|>>> Lint for |\bwould reformat\b|files were modified by this hook",
        r"\b[1-9]\d{0,5} problems? \(",
        r"\bFound [1-9]\d{0,5} errors?\b",
        r"(?i:\b(?:test|command|job|step|export|load(?:ing)?) failed\b)",
        # The marks of package managers, of clusters and of watchdogs; a comparison that did not hold.
        r"^\W{0,4}\w{1,12} ERR! |\berrors? occurred\b|(?:Crash|Pull)\w{0,8}BackOff\b",
        r"[Bb]ack-?off\b.{0,40} restarting failed",
        r"\bbefore timing out\b|[Cc]aught .{1,60} timeout\b|\ballclose\b.{0,200}\bFalse\b",
        # The words of the system for an errno, at the end of a message or alone.
        rf"(?:^\W{{0,8}}|: |\] ?)(?:{_ERRNO})[`'\")\].]{{0,4}}$",
        # How shells say in other languages that a process was ended.
        rf"(?:^\W{{0,8}}|: )(?:{_ENDED})",
        r"\b(?:unrecogni[sz]ed|unknown|invalid) option\b|argument deduction/substitution failed",
        r"\b[Kk]ernel '.{1,200}' not found",
        r"\b(?:status|result|state|conclusion|outcome)\b['\"]?[ :=]{1,3}['\"]?(?i:error|fail(?:ed|ure)?)\b",
        r"\bEXC_(?:BAD|CRASH|RESOURCE|GUARD)|\b[Uu]nexpectedly found nil\b",
        r"\bFaulting (?:application|module)\b|\bException code: 0x",
        r"\b(?:0x)?[cC]0000(?:005|409|01[dD]|374|135|142)\b",
        r"\.\.\. ?(?i:error|fail(?:ed)?)(?: {0,200}[|\u2502\u2503\u2551])?$|^[A-Z]{0,4}ROR: ",
        r"\b[Bb]ackend \w{1,60} is not registered\b|, referenced from:$|arguments? but \d+ (?:was|were) given",
        # Exceptions that only their module shows to be such.
        r"\bSystemExit: ?[1-9]|\b[A-Z]\w{3,40}Sanitizer: [A-Za-z]",
        r"\b(?:exc|exceptions?|errors?|process)\.[A-Z]\w{1,60}: |\bUnhandledPromiseRejection",
        r"(?:^\W{0,12}|(?<!tate): )Terminated\W*$|^\S{1,40}: (?:bus error|abort|killed|terminated|trace trap)\b",
        r"\bCore was generated by\b|\b[Dd]umped core\b|\bcore dump created\b|\bstack level too deep\b",
        r"(?:^\W{0,12}|: )Stack dump:",
        r"\b[Kk]ernel (?:\w{1,20} ){0,3}(?:died|crashed)\b|Restarter: restarting kernel\b|\bexecute_request message",
        r"\b[A-Z][A-Z\d]{1,20}(?:_[A-Z\d]{1,30}){1,8}_(?:FAILURE|FAILED|ERROR)\b|\b[Ee]rror [Cc]ode:? [1-9]",
        r"\b[A-Z][a-z]\w{1,60}(?:NotFound|Failure|Failed|Divergence|Denied|TimedOut|Expired|Mismatch|Conflict): ",
        r"\bBad CPU type\b|\bbad interpreter\b|\bBad magic\b",
        r"\bInterrupted: [1-9]|\*\*\*(?:Failed|Exception|Timeout|Not Run)\b",
        r"\bThe (?:operation|run|job) was cancell?ed|\breceived a shutdown signal|\bcurl: \(\d{1,3}\) ",
        r"\bWarning\s{2,20}(?:Failed\w{0,30}|BackOff|Unhealthy|Evicted|OOM\w{0,20})\s",
        r"\s\d{1,4}/\d{1,4}\s{1,12}(?:Init:)?(?:Error|OOMKilled|Evicted|\w{2,40}Error)\s",
        r"\bring \w{1,12} timeout\b|\bNCCL WARN C(?:uda|UDA) failure|\b[Ee]xec format error\b",
    )
)
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
