"""Read the failures that a running program prints: tracebacks, aborts, signals, assertions, sanitizers, dmesg.

A log may begin or end in the middle of a Python traceback. Without its head it is an exception line with ``File`` lines
before it; without its end it is a failure of which nothing more is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from aotidoctor.logs.lines import LogLine, any_of
from aotidoctor.logs.patterns import LogFailure, end_below, lines_failure, message_failure, number_lines, read_message

# How a process ended, as shells, launchers and CI systems report it: that it failed, not why.
SIGNAL_START = any_of("signals")
# The words of the C library, which many programs print.
SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
}
# Words of a signal, its number, its name.
_SIGNALS = (
    (r"Segmentation fault|SIGSEGV|\b(?:code|status):? ?(?:139|-11)\b|exitcode: ?-11|Signals\.SIGSEGV", 11, "SIGSEGV"),
    (r"\bAborted\b|Abort trap|SIGABRT|\b(?:code|status):? ?(?:134|-6)\b|exitcode: ?-6\b", 6, "SIGABRT"),
    (r"Illegal instruction|SIGILL|\b(?:code|status):? ?(?:132|-4)\b|exitcode: ?-4\b", 4, "SIGILL"),
    (r"[Bb]us error|SIGBUS|\b(?:code|status):? ?(?:135|-7)\b", 7, "SIGBUS"),
    (r"[Ff]loating point exception|SIGFPE|\b(?:code|status):? ?(?:136|-8)\b", 8, "SIGFPE"),
    (r"\bKilled\b|SIGKILL|OOMKilled|\b(?:code|status):? ?(?:137|-9)\b|exitcode: ?-9\b|signal: killed", 9, "SIGKILL"),
)
_SIGNAL_NAMES = (
    *((re.compile(rf"{words}|[Ss]ignal:? (?:Some\()?{number}\b(?! ?dB)"), name) for words, number, name in _SIGNALS),
    (re.compile(r"SIGTERM|\b(?:code|status):? ?143\b"), "SIGTERM"),
    (re.compile(r"SIGHUP|\b[Hh]angup\b"), "SIGHUP"),
    (re.compile(r"\b(?:[Qq]uit|[Aa]larm clock|[Uu]ser(?: |-)defined signal|core dumped)\b"), "signal"),
    (re.compile(r"exit(?:ed)? (?:with )?(?:exit )?(?:code|status)?:? ?[1-9]\d*|exit ?code:? ?[1-9]"), "exit"),
)


def read_signal(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The end of a process; None for one without a failure (exit code 0)."""
    text = lines[at].text
    kind = next((name for words, name in _SIGNAL_NAMES if words.search(text)), None)
    if kind is None:
        return None
    return lines_failure(lines, at, at + 1, form="signal", kind=kind, follows=True)


# Python's tracebacks, of scripts, loggers, notebooks and exception groups; warnings; faulthandler.
PYTHON_START = re.compile(
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
_FOREIGN, _LONGEST_TRACEBACK, _BACK, _INDENT = 20, 400, 60, 2
# A record before a traceback that says more than its head.
_HEADLINE = re.compile(r": [^:]{12}")
# The least frames, and their least share of the lines, for the middle of a traceback.
_HALF, _MOSTLY = 2, 0.7
# In these levels the dotted name before a message is that of a logger.
_NEWS = ("info", "warning")


def read_python(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The traceback, exception, warning or fatal error that begins at ``at``."""
    line = lines[at]
    text = _BARS.sub("", line.text)
    # A frame of a traceback that a logger printed as errors, line by line, and whose head is cut off.
    is_logged_frame = line.stamped and line.level == "error" and _FILE.match(line.text) is not None
    if _HEAD.search(text) or is_logged_frame:
        return _traceback(lines, at)
    fatal = _FATAL.match(text)
    if fatal is not None:
        return _faulthandler(lines, at, fatal["kind"])
    warning = _WARNING.match(text)
    if warning is not None:
        return lines_failure(lines, at, at + 1, form="python", kind=warning["type"], level="warning")
    found = _EXCEPTION.match(text) or (_DOTTED.match(text) if line.level not in _NEWS else None)
    return None if found is None else _exception(lines, at, found["type"], first=at, frames=_frames_before(lines, at))


def _traceback(lines: Sequence[LogLine], at: int) -> LogFailure:
    frames: list[str] = []
    grouped = _BARS.match(lines[at].text) is not None
    head = _HEAD.search(lines[at].text)
    dedent = len(lines[at].text) - len(lines[at].text.lstrip()) - (0 if head else _INDENT)
    foreign, here, last = 0, at + (head is not None), None
    while here < min(len(lines), at + _LONGEST_TRACEBACK) and foreign <= _FOREIGN:
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
    # A paste may have lost the type of the exception, and still have its message below or before.
    before = lines[at].text[: head.start()].strip(" ,:") if head else ""
    headline = before if _HEADLINE.search(before) else _NO_MESSAGE
    last_line = (lines[last].number, lines[last].text) if last and frames else (lines[at].number, headline)
    return LogFailure(
        form="python",
        kind="truncated",
        lines=(last_line,),
        first=at,
        end=here if foreign <= _FOREIGN else at + 1,
        frames=tuple(frames[::-1]),
        chained=_is_chained(lines, at),
    )


def _exception(lines: Sequence[LogLine], at: int, kind: str, *, first: int, frames: Sequence[str]) -> LogFailure:
    stamped = at > first and lines[at].stamped and lines[at - 1].stamped
    body, native, end = read_message(lines, at, stamped=stamped)
    begin = _BARS.sub("", body[0].text).strip()
    return LogFailure(
        form="python",
        kind=kind.rpartition(".")[2],
        lines=((body[0].number, begin), *number_lines(body[1:])),
        first=first,
        end=end,
        frames=(*native, *frames),
        chained=_is_chained(lines, first),
    )


def unfinished_traceback(lines: Sequence[LogLine]) -> LogFailure | None:
    """The middle of a traceback, without its head and its exception; None where the lines are not mostly of one."""
    frames: list[str] = []
    own, count, last = 0, 0, None
    for at, line in enumerate(lines):
        if line.level in ("info", "warning"):
            return None
        file = _FILE.match(line.text)
        if file is not None and file["name"]:
            frames.append(_frame(file))
            last = at
        count += bool(line.text)
        own += file is not None or _CELL.match(line.text) is not None or (bool(frames) and line.text[:2].isspace())
    if last is None or len(frames) < _HALF or own < _MOSTLY * count:
        return None
    return LogFailure(
        form="python",
        kind="truncated",
        lines=number_lines(lines[last : last + 2]),
        first=0,
        end=len(lines),
        frames=tuple(frames[::-1]),
    )


def _frame(file: re.Match[str]) -> str:
    return f"{file['name'] or '?'} ({file['file']}:{file['line']})"


def _is_chained(lines: Sequence[LogLine], at: int) -> bool:
    return any(_LINK.match(line.text.strip(" |+-")) for line in lines[max(at - 3, 0) : at])


def _frames_before(lines: Sequence[LogLine], at: int) -> tuple[str, ...]:
    """The frames of half a traceback: what stands before its exception."""
    frames: list[str] = []
    for line in reversed(lines[max(at - _BACK, 0) : at]):
        file = _FILE.match(line.text)
        if file is not None:
            frames.append(_frame(file))
        elif line.text and not line.text[0].isspace() and not _NOTEBOOK.match(line.text):
            break
    return tuple(frames)


def _faulthandler(lines: Sequence[LogLine], at: int, kind: str) -> LogFailure:
    frames: list[str] = []
    here = at + 1
    while here < min(len(lines), at + _LONGEST_TRACEBACK):
        text = lines[here].text
        file = _FILE.match(text)
        if file is not None:
            frames.append(_frame(file))
        elif text and not re.match(r"^(?:Current thread|Thread|Extension modules|\s|Python runtime state|<)", text):
            break
        here += 1
    signal = next((name for words, name in SIGNALS.items() if kind.startswith(words)), kind)
    return LogFailure(
        form="signal", kind=signal, lines=number_lines(lines[at : at + 1]), first=at, end=here, frames=tuple(frames)
    )


# C++: ``terminate called``, libc++abi, c10's exceptions with their frames, gtest, glog's checks, a corrupted heap.
CPP_START = re.compile(
    r"terminate called |libc\+\+abi(?:\.dylib)?: terminat|Exception raised from |C\+\+ exception with description|"
    r"\[enforce fail at |Check failed: |Check failure|double free or corruption|stack smashing detected|"
    r"(?:free|malloc|realloc|munmap_chunk|corrupted size|malloc_consolidate)(?:\(\)|:| vs)|corrupted (?:size|double)|"
    r"^\s*what\(\):|pure virtual method called"
)
_TERMINATE = re.compile(r"terminate called (?:after throwing an instance of '(?P<type>[^']+)'|(?P<else>.*))")
_LIBCXX = re.compile(
    r"libc\+\+abi(?:\.dylib)?: terminating (?:due to|with) (?:uncaught|"
    r"unexpected) exception of type (?P<type>[^:\s]+(?:::[^:\s]+)*)"
)
_WHAT = re.compile(r"^\s*what\(\):\s*")
_GTEST = re.compile(r"C\+\+ exception with description \"")
_HEAP = re.compile(
    r"double free or corruption|stack smashing detected|(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\): |"
    r"corrupted (?:size|double)|pure virtual method called"
)
_CPP_PATIENCE = 6


def read_cpp(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The C++ failure that begins at ``at``."""
    text = lines[at].text
    terminate = _TERMINATE.search(text)
    if terminate is not None:
        return _read_termination(
            lines, at, terminate["type"] or "", again=(terminate["else"] or "").startswith("recursively")
        )
    libcxx = _LIBCXX.search(text)
    if libcxx is not None:
        return message_failure(lines, at, form="terminate", kind=libcxx["type"])
    if _WHAT.match(text):
        return message_failure(lines, at, form="terminate")
    if "Exception raised from " in text:
        # The message of a c10 exception stands before the place that raised it.
        body, frames, end = read_message(lines, at)
        before = at - 1
        has_message = (
            at > 0 and lines[before].text and lines[before].stream == lines[at].stream and not lines[at].stamped
        )
        first = before if has_message and not lines[at].text.partition("Exception raised from")[0].strip() else at
        return LogFailure(
            form="c10", lines=number_lines([*lines[first:at], *body]), first=first, end=end, frames=tuple(frames)
        )
    if _HEAP.search(text):
        return lines_failure(lines, at, at + 1, form="heap", kind="SIGABRT")
    if "Check failure stack trace" in text:
        return lines_failure(lines, at, at + 1, form="glog", follows=True)
    if "Check failed: " in text:
        return message_failure(lines, at, form="glog")
    return message_failure(lines, at, form="c10") if _GTEST.search(text) or "[enforce fail at " in text else None


def _read_termination(lines: Sequence[LogLine], at: int, kind: str, *, again: bool) -> LogFailure:
    """The termination with the ``what()`` below it; lines of other threads may stand in between."""
    for here in range(at + 1, min(at + 1 + _CPP_PATIENCE, len(lines))):
        if _WHAT.match(lines[here].text):
            body, frames, end = read_message(lines, here)
            words = _WHAT.sub("", body[0].text)
            texts = (*number_lines(lines[at : at + 1]), (body[0].number, f"what(): {words}"), *number_lines(body[1:]))
            return LogFailure(form="terminate", kind=kind, lines=texts, first=at, end=end, frames=tuple(frames))
        if _TERMINATE.search(lines[here].text):
            break
    return lines_failure(lines, at, at + 1, form="terminate", kind=kind, follows=again)


# Assertions of GPU kernels, one line per thread, and those of the C library.
ASSERTION_START = re.compile(r"[Aa]ssertion `|: Assertion |device-side assert|\bDebug Assertion Failed\b")
_DEVICE = re.compile(r"block: \[\d+,\s*\d+,\s*\d+\], thread: \[\d+,\s*\d+,\s*\d+\],? Assertion")
# The second is Microsoft's C library.
_HOST = re.compile(r"Assertion [`'].{1,800}?' failed|\bDebug Assertion Failed\b")
_MOST = 100_000


def read_assertion(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The assertion at ``at``, with the lines of further threads directly below."""
    text = lines[at].text
    if _DEVICE.search(text):
        end = end_below(lines, at, _DEVICE, _MOST)
        return LogFailure(
            form="assert", kind="device", lines=number_lines(lines[at : at + 1]), first=at, end=end, stage="run"
        )
    if _HOST.search(text):
        return lines_failure(lines, at, at + 1, form="assert", kind="SIGABRT")
    return None


# ASan, UBSan, TSan, LSan, MSan, compute-sanitizer and its predecessor, valgrind.
SANITIZER_START = re.compile(
    r"==\d+==\s*(?:ERROR|WARNING): \w+Sanitizer|WARNING: \w+Sanitizer|^(?:Thread|Memory|Address|Leak)Sanitizer: [a-z]|"
    r": runtime error: |^=========|SUMMARY: \w+Sanitizer|"
    r"^==\d+== (?:Invalid (?:read|write)|Process terminating|Conditional jump|Use of uninit)"
)
_TOOL = re.compile(r"(?:(?:ERROR|WARNING): |^)(?P<tool>\w+Sanitizer): ?(?P<kind>[\w-]*)")
_CUDA = re.compile(r"^=========\s+(?:Invalid|Program hit|Uninitialized|Misaligned|Race|Barrier|Out-of-range|Error)")
_SANITIZER_FRAME = re.compile(
    r"^(?:\s*#\d+ (?:0x[0-9a-f]+ )?(?:in )?|=========\s+(?:at|in) |==\d+==\s+(?:at|by) 0x[0-9A-F]+: )(?P<symbol>.+)$"
)
_END = re.compile(r"^SUMMARY: |^=========\s*(?:ERROR SUMMARY.*)?$")
_LONGEST_REPORT, _SANITIZER_LINES = 300, 10


def read_sanitizer(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The first report of a sanitizer, and its stack."""
    text = lines[at].text
    tool, cuda = _TOOL.search(text), _CUDA.match(text)
    if text.startswith("SUMMARY: "):
        return lines_failure(lines, at, at + 1, form="sanitizer", follows=True)
    if tool is None and cuda is None and ": runtime error: " not in text and not text.startswith("==", 0, 2):
        return None
    if text.startswith("=========") and cuda is None:
        return None
    if ": runtime error: " in text:
        return lines_failure(lines, at, at + 1, form="sanitizer", kind="UBSan")
    kind = f"{tool['tool']} {tool['kind']}".strip() if tool is not None else "compute-sanitizer" if cuda else "valgrind"
    frames: list[str] = []
    body, end = [lines[at]], at + 1
    while end < min(len(lines), at + _LONGEST_REPORT):
        text = lines[end].text
        if _END.match(text) or (SANITIZER_START.search(text) and not text.startswith("=========     ")):
            end += text.startswith("SUMMARY")
            break
        frame = _SANITIZER_FRAME.match(text)
        if frame is not None:
            frames.append(frame["symbol"])
        elif text and len(body) < _SANITIZER_LINES:
            body.append(lines[end])
        end += 1
    return LogFailure(form="sanitizer", kind=kind, lines=number_lines(body), first=at, end=end, frames=tuple(frames))


# Stacks of debuggers and crash handlers: gdb, lldb, glog's and UCX's handlers, the JVM's.
DEBUGGER_START = re.compile(
    r"(?:received|terminated with) signal SIG|stop reason = |^#0 +|^\* thread #|Caught signal \d+|"
    r"^\*\*\* (?:Aborted at|SIG\w+|Signal \d+)|\*\*\* Process received signal|# A fatal error has been detected|"
    r"^#  +SIG\w+ \(|^Signal: \w|^==== backtrace|^Stack dump:|^\s+frame #0: 0x"
)
_DEBUGGER_FRAME = re.compile(
    r"^(?:#\d+ +(?:0x[0-9a-fA-F]+ in )?|\s*(?:\* )?frame #\d+: 0x[0-9a-f]+ |"
    r"\[\s*\d+\] +|\s*@ +(?:0x)?[0-9a-f]{6,16} +|\s*\d+ +0x[0-9a-f]+ )"
    r"(?P<symbol>\S.*)$"
)
_BELOW = re.compile(r"^\s|^->|^\(gdb\)|^\[|^Thread |^libc|^\S+`\S+")
_SIGNAL = re.compile(
    r"\bSIG[A-Z]{3,6}\b|EXC_BAD_ACCESS|EXC_BAD_INSTRUCTION|EXC_CRASH|"
    r"Segmentation fault|Illegal instruction|Aborted|Bus error"
)
_HANDLER_NAMES = {**SIGNALS, "EXC_BAD_ACCESS": "SIGSEGV", "EXC_BAD_INSTRUCTION": "SIGILL", "EXC_CRASH": "SIGABRT"}
_LONGEST_STACK, _DEBUGGER_PATIENCE, _DEBUGGER_LINES = 400, 6, 8


def read_debugger(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The signal and the stack below it."""
    text = lines[at].text
    if text.startswith("#0") and not _DEBUGGER_FRAME.match(text):
        return None
    frames: list[str] = []
    foreign, here = 0, at
    while here < min(len(lines), at + _LONGEST_STACK) and foreign < _DEBUGGER_PATIENCE:
        frame = _DEBUGGER_FRAME.match(lines[here].text)
        if frame is not None:
            if lines[here].text.startswith("#0 ") and frames:
                break
            frames.append(frame["symbol"])
            foreign = 0
        elif here > at:
            foreign += 0 if _BELOW.match(lines[here].text) and frames else 1
        here += 1
    end = max(here - foreign, at + 1)
    body = [lines[at], *(line for line in lines[at + 1 : end] if _SIGNAL.search(line.text))][:_DEBUGGER_LINES]
    signal = next((found[0] for line in body if (found := _SIGNAL.search(line.text))), "")
    return LogFailure(
        form="debugger",
        kind=_HANDLER_NAMES.get(signal, signal),
        lines=number_lines(body),
        first=at,
        end=end,
        frames=tuple(frames),
    )


# Messages of the kernel (``dmesg``): segfaults, traps, the OOM killer, the NVIDIA driver's Xid.
DMESG_START = re.compile(
    r"segfault at |trap invalid opcode|traps: |general protection|Out of memory: Kill|oom-kill:|oom_reaper|"
    r"Memory cgroup out of memory|NVRM: Xid|NVRM: .{0,200}(?:fail|error|mismatch)|invoked oom-killer"
)
_KINDS = (
    (re.compile(r"segfault at |general protection"), "SIGSEGV"),
    (re.compile(r"trap invalid opcode"), "SIGILL"),
    (re.compile(r"trap divide error"), "SIGFPE"),
    (re.compile(r"[Oo]ut of memory: Kill|oom-kill:|invoked oom-killer|Memory cgroup out"), "oom"),
    (re.compile(r"NVRM: Xid"), "Xid"),
)


def read_dmesg(lines: Sequence[LogLine], at: int) -> LogFailure | None:
    """The line of the kernel."""
    text = lines[at].text
    kind = next((name for words, name in _KINDS if words.search(text)), "")
    follows = "oom_reaper" in text
    return lines_failure(lines, at, at + 1, form="kernel", kind=kind, follows=follows)
