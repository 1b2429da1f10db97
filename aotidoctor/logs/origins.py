"""Find where a failure arose, as evidence of its cause: the last resort where no pattern matches its words.

A message may be new and its place be known: the innermost frame of torch or Triton, the type of the exception, the kind
of name in it. That makes a suspicion and no more. The tables are ``messages.toml``, ``origins.toml`` and, for lines of
prose, ``summaries.toml``; they are read when they are first needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.logs.harmless import has_mark
from aotidoctor.logs.lines import any_of
from aotidoctor.logs.patterns import LogFailure, bound_repeats, literals_of, may_match
from aotidoctor.model import load_toml
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.report import LogMatch, LogPattern

# Sentences of a person, which are no message, source code or frame. The beginning of a program's message.
_MESSAGE = re.compile(
    r"\W{0,8}(?:[\w.:]{0,120}(?:Error|Exception|Warning|Interrupt)\b(?: ?:|\()|what\(\)|terminate called"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|CRITICAL|NOTE)\]?\b ?:)"
)
# Lines of source code, of stacks, of shells and of compilers.
_CODE = re.compile(
    r"^\s{0,40}(?:File \"|at |#\d|frame #|\$ |>>> |\d{4}-\d\d-\d\d|def |class |from \S{1,200} import|import |return )"
    r"|^\s{0,40}(?:assert |@)|^\s{4}|^f?[\"'(]|[;{}]$|^[\w.,\[\] ]{1,60} = |Warning:|\.(?:py|cpp|cc|h|cu|cuh):\d"
    r"|\bIn (?:\w{1,20} ){0,3}function |^(?:FAILED|ERROR|PASSED) |\.py::"
)
_PROSE_WORD = re.compile(r"[A-Za-z][a-z]|\b[A-Z]{2}")
_SENTENCE = 3


def is_prose(found: LogFailure) -> bool:
    """Whether the failure is a sentence of a person, and no message of a program."""
    if found.frames or found.form not in ("line", "signal") or _MESSAGE.match(found.text) is not None:
        return False
    first = found.text.partition("\n")[0]
    return (
        _CODE.search(first) is None and sum(_PROSE_WORD.search(word) is not None for word in first.split()) >= _SENTENCE
    )


# Places.
LEAST, MOST = 0.3, 0.6
# In the table: a sign of torch, which other programs do not print.
_TORCH = "@torch"
# Frames of the compiler, the runtime or Triton; the place of others says nothing.
_OWN = any_of("own_frames")
# Frames in every call of a compiled function: what they called has failed.
_PASSED = any_of("passed_frames")
_ASSERTS = re.compile(r"(?:[\w.]{1,80}: ?)?AssertionError: \S")
# For a missing module of another program, and for a user's interrupt, the place says nothing.
_ABSENT = re.compile(r"No module named ['\"](?!torch|triton)")
_STOPPED = re.compile(r"^[ \t]{0,40}(?:raise )?KeyboardInterrupt\b", re.MULTILINE)
# An error of the GPU is reported by whatever call waits for it: only a frame that opens the device is its place.
# A launch that is too large is refused where it is made.
_REPORTED = re.compile(
    r"^(?![^\n]*(?:invalid configuration|too many resources))(?:[\w.]{1,80}: ?){0,4}"
    r"(?:(?:CUDA|HIP)(?: driver| runtime)? [Ee]rror\b|Triton Error \[|(?:cuda|hip)Error[A-Z]|CUDA_ERROR_[A-Z])"
)
_OPENS = re.compile(r"^(?:_lazy_init|_cuda_init|_get_device\w*|get_device_\w+|device_count|is_available|init) \(")
# The task of the program around it, before the message proper.
_TASK = re.compile(r"^(?P<type>(?:[\w.]{1,80}: ?){0,2})(?:Capture|Warm ?up|Init\w*) (?:[a-z]+ ){1,3}failed: (?=\S)")
# The C++ file that raised it, with the function before it.
_RAISED = re.compile(
    r"(?:raised from [^\n]{1,600}? at |ASSERT FAILED at |\(\w{1,80} at )\"?((?:[A-Za-z]:)?[^\s:\"]{1,400})"
)
_FRAME = re.compile(
    r'^ {0,20}File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,9}), in (?P<name>\S{1,200})', re.MULTILINE
)
# A line of a traceback that was joined with the line of source below it.
_JOINED = re.compile(r"^([\w.<>]{1,200}) {2,40}\S[^\n]{0,400} (?=\([^()\n]{1,400}:\d{1,9}\)$)")
# The place of the compiler before it was part of torch.
_OLD = re.compile(r"\btorch(inductor|dynamo)/(?!torch)")
# Frames of Python's own library, and of checks: the caller is the place.
_STANDARD = re.compile(
    r"/lib(?:64)?/(?:python3[\w.]*/)?(?:ctypes|importlib|multiprocessing|concurrent|asyncio|json)?/?\w+\.py:"
    r"|^\S* ?\(<frozen"
    # torch's own checks.
    r"|^_check(?:_\w{1,40})? \([^\n]{0,300}torch/__init__\.py:"
)
_DEEPEST, _MESSAGE_LINES = 60, 6
# How the reason of an entry begins whose words many messages have.
_IN_PASSING = "the message mentions"
_TABLES = ("messages", "origins", "summaries")
# The words that make an expression worth compiling: most fit few texts.
_words = lru_cache(maxsize=1024)(literals_of)


@dataclass(frozen=True)
class FailureOrigin:
    """An entry of the table. An empty text is no condition."""

    cause: str
    confidence: float
    stage: str
    why: str
    frame: str = ""
    innermost: str = ""
    file: str = ""
    message: str = ""
    near: str = ""
    not_near: str = ""
    subject: str = ""
    prose: bool = False

    @cached_property
    def record(self) -> LogPattern:
        """The entry as a pattern, for the findings."""
        return LogPattern(
            cause=self.cause, regex=self.frame or self.message, example="", source=self.why, confidence=self.confidence,
            stage=self.stage, is_suspect=True,
        )  # fmt: skip

    def fits(self, frame: str, innermost: str, text: str, around: str) -> bool:
        """Whether the entry fits a failure with these frames, this message and these lines around it."""
        # The cheap questions first: each expression has to be compiled.
        return (
            (not self.frame or _search(self.frame, frame))
            and (not self.innermost or _search(self.innermost, innermost))
            and (not self.file or any(_search(self.file, path) for path in _RAISED.findall(text)))
            and (self.near != _TORCH or has_mark(around))
            and (not self.message or _search(self.message, text))
            and (self.near in ("", _TORCH) or _search(self.near, around))
            and not (self.not_near and _search(self.not_near, around))
        )


def match_origin(found: LogFailure, number: int, around: str, *, is_failure: bool = True) -> LogMatch | None:
    """The cause that the place of ``found`` suggests; None where it suggests none.

    ``is_failure``: it is known to be one; else only words of a failure count.
    """
    prose = is_prose(found)
    if found.form == "signal" and found.kind != "SIGKILL" and not prose:
        # The Python frames of a crash show what was running, not what broke; SIGKILL comes from outside, for a reason.
        return None
    if _STOPPED.search(found.text) is not None or found.kind == "KeyboardInterrupt":
        # The place of an interrupt says nothing.
        return None
    stack: Sequence[str] = found.frames
    if not stack and _FRAME.match(found.text) is not None:
        # A traceback that a logger printed line by line: a line of it is not a failure of its own.
        stack = [f"{hit['name']} ({hit['file']}:{hit['line']})" for hit in _FRAME.finditer(around)][::-1]
    return _first_fitting_origin(found, number, around, stack, _candidate_entries(is_failure=is_failure, prose=prose))


@lru_cache(maxsize=4)
def _candidate_entries(*, is_failure: bool, prose: bool) -> tuple[FailureOrigin, ...]:
    """The entries that may fit, in order."""
    entries = [one for one in origins() if (is_failure or one.why in _failure_reasons()) and (prose or not one.prose)]
    # Sentences of a person come first, and words that are always of a failure.
    return tuple(sorted(entries, key=lambda one: not (one.prose or one.why in _failure_reasons())))


def _first_fitting_origin(
    found: LogFailure, number: int, around: str, stack: Sequence[str], entries: Sequence[FailureOrigin]
) -> LogMatch | None:
    """The match of the first of ``entries`` that fits; ``stack`` are the frames, innermost first."""
    stack = stack if _ABSENT.search(found.text) is None else ()
    if _REPORTED.match(found.text) is not None:
        stack = [one for one in stack[:2] if _OPENS.match(one)]
    frames = [_OLD.sub(r"torch/_\1/", _JOINED.sub(r"\1 ", one).replace("\\", "/")) for one in stack[:_DEEPEST]]
    # What asserts there broke there, and nothing that was called.
    raised = frames[0] if frames and _ASSERTS.match(found.text) is not None else ""
    frame = next((one for one in frames if _OWN.search(one) and (one == raised or not _PASSED.search(one))), "")
    innermost = next((one for one in frames if not _STANDARD.search(one)), "")
    # `truncated` is a kind of this program and no word of the log.
    text = f"{found.kind}: {found.text}" if found.kind != "truncated" else found.text
    text = _TASK.sub(r"\g<type>", text)
    # A long message shows tables and source lines below its words.
    text = text if frame else "\n".join(text.split("\n", _MESSAGE_LINES)[:_MESSAGE_LINES])
    # For a program around torch its frames count, not what is printed next to them.
    own = "\n".join((*frames, text))
    fitting = (one for one in entries if frame or not one.frame)
    origin = next((one for one in fitting if one.fits(frame, innermost, text, own if one.innermost else around)), None)
    if origin is None:
        return None
    facts: dict[str, FactValue] = {"frame": frame} if frame else {}
    hits = (_compile_regex(origin.subject).search(one) for one in (text, frame, around)) if origin.subject else ()
    subject = next((hit["subject"] for hit in hits if hit is not None and hit["subject"]), "")
    if subject:
        facts["subject"] = subject
    return found.match(origin.record, number, found.text.partition("\n")[0], facts)


def is_place(match: LogMatch) -> bool:
    """Whether only the place of a failure suggests the cause."""
    return any(not one.message for name in _TABLES for one in _entries_of(match, name))


def is_sentence(match: LogMatch) -> bool:
    """Whether a sentence of a person suggests the cause."""
    return any(one.prose for one in _entries_of(match, "summaries"))


def is_loose(match: LogMatch) -> bool:
    """Whether a place, words in passing or a person's sentence suggest the cause, and no message of its own."""
    entries = (*_entries_of(match, "origins"), *_entries_of(match, "summaries"))
    return any(one.prose or not one.message or one.why.startswith(_IN_PASSING) for one in entries)


def _entries_of(match: LogMatch, table: str) -> list[FailureOrigin]:
    """The entries of ``table`` that ``match`` may be of; a match of a pattern is of none."""
    return [one for one in _table(table) if one.why == match.pattern.source] if match.pattern.is_suspect else []


@lru_cache(maxsize=1)
def _failure_reasons() -> frozenset[str]:
    """The reasons of the entries whose words are of a failure, even where nothing else looks like one."""
    return frozenset(one.why for name in ("messages", "summaries") for one in _table(name))


@lru_cache(maxsize=1)
def origins() -> tuple[FailureOrigin, ...]:
    """The entries of all tables, in the order in which they are tried."""
    return tuple(origin for name in _TABLES for origin in _table(name))


@lru_cache(maxsize=len(_TABLES))
def _table(name: str) -> tuple[FailureOrigin, ...]:
    table = load_toml(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    of_prose = {"near": table.get("near", "")}
    return tuple(FailureOrigin(**{**(of_prose if entry.get("prose") else {}), **entry}) for entry in table["origin"])


def _search(regex: str, text: str) -> bool:
    return may_match(_words(regex), text) and _compile_regex(regex).search(text) is not None


@lru_cache(maxsize=512)
def _compile_regex(regex: str) -> re.Pattern[str]:
    return re.compile(bound_repeats(regex), re.MULTILINE)
