"""Find where a failure arose, as evidence of its cause: the last resort where no pattern matches its words.

A message may be new and its place be known: the innermost frame of torch or Triton, the type of the exception, the kind
of name in it. That makes a suspicion and no more. The tables are ``messages.toml``, ``origins.toml`` and, for lines of
prose, ``summaries.toml``; they are read when they are first needed.

A log without a stack may still have a message of torch 2.13 or of a Triton of that time; ``scripts/printed.py`` took
them from the sources. Of each, the table ``printed.bin`` has the numbers of its words, five in a row, that no other
package prints; what stands between the holes of a message is the same for everybody who pastes it.
"""

from __future__ import annotations

import re
import sys
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.logs.harmless import has_mark
from aotidoctor.logs.patterns import LogFailure, bound_repeats, literals_of, may_match
from aotidoctor.model import load_toml
from aotidoctor.model.evidence import FactValue
from aotidoctor.model.report import LogMatch, LogPattern

# Sentences of a person, which are no message, source code or frame.

# What begins as a program's message does.
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
    """Whether somebody tells it in a sentence of his own, and no program in a message."""
    if found.frames or found.form not in ("line", "signal") or _MESSAGE.match(found.text) is not None:
        return False
    first = found.text.partition("\n")[0]
    return (
        _CODE.search(first) is None and sum(_PROSE_WORD.search(word) is not None for word in first.split()) >= _SENTENCE
    )


# The source file that prints a message.

MESSAGE_TABLE = Path(__file__).with_name("printed.bin")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_RUN = 5
# So many lines of a message, and words of a line, are looked up.
_LINES, _WORDS = 12, 200
_ORDER = sys.byteorder


def word_runs(text: str) -> list[int]:
    """The number of each run of words in a line, in order."""
    words = [word.strip("._").lower() for word in _WORD.findall(text)[:_WORDS]]
    return [zlib.crc32(" ".join(words[at : at + _RUN]).encode()) for at in range(len(words) - _RUN + 1)]


def packed_runs(places: Mapping[int, str]) -> bytes:
    """A table of numbers and places: the names, then the numbers in order, then the place of each."""
    names = sorted(set(places.values()))
    number = {name: at for at, name in enumerate(names)}
    keys = sorted(places)
    head = "\n".join(names).encode()
    head += b"\n" * (4 - (len(head) + 8) % 4)
    sizes = len(head).to_bytes(4, "little") + len(keys).to_bytes(4, "little")
    body = b"".join(key.to_bytes(4, "little") for key in keys)
    return sizes + head + body + b"".join(number[places[key]].to_bytes(2, "little") for key in keys)


@dataclass(frozen=True)
class MessageOrigins:
    """The table."""

    names: Sequence[str]
    keys: Sequence[int]
    places: Sequence[int]

    def place(self, key: int) -> str:
        """The file that has this run of words; empty where none is known."""
        at = bisect_left(self.keys, key)
        return self.names[self.places[at]] if at < len(self.keys) and self.keys[at] == key else ""


@lru_cache(maxsize=1)
def _message_table() -> MessageOrigins:
    from array import array

    raw = MESSAGE_TABLE.read_bytes()
    head, count = (int.from_bytes(raw[at : at + 4], "little") for at in (0, 4))
    start = 8 + head
    keys, places = array("I"), array("H")
    keys.frombytes(raw[start : start + 4 * count])
    places.frombytes(raw[start + 4 * count : start + 6 * count])
    if _ORDER == "big":
        keys.byteswap()
        places.byteswap()
    return MessageOrigins(names=raw[8:start].decode().strip().split("\n"), keys=keys, places=places)


def message_origin(text: str) -> str:
    """The place that prints most of the words of a message; empty where nobody known does."""
    known = _message_table()
    found = Counter(
        place for line in text.split("\n", _LINES)[:_LINES] for key in word_runs(line) if (place := known.place(key))
    )
    return max(found, key=lambda place: (found[place], place)) if found else ""


# Places.

LEAST, MOST = 0.3, 0.6
# In the table: a mark of torch. What another program prints has none.
_TORCH = "@torch"
# Frames that belong to the compiler, the runtime or Triton; of others the place says nothing.
_OWN = re.compile(
    r"\btorch/_?(?:inductor|dynamo|export|functorch|higher_order_ops|fx|subclasses|decomp|refs|meta_registrations|ops\b"
    r"|utils/_|utils/cpp_ext|serialization|cuda/__init|xpu/__init|prims)|/triton/|\btriton/(?:runtime|compiler|language|backends)"
    r"|zipfile|AOTI|update_constant|UpdateConstant|swap_constant|run_const_fold|load_constants|DynamicLibrary"
    r"|aoti_package|fused_"
)
# Of these there are frames in every call of a compiled function: what failed is what they called.
_PASSED = re.compile(
    r"^(?:_fn|_call|__call__|compile_wrapper|wrapper|inner) \([^\n]{0,300}_dynamo/(?:eval_frame|external_utils|decor)"
    r"|_aot_autograd/(?:runtime_wrappers|utils)\.py|_dynamo/backends/"
    r"|^forward \([^\n]{0,300}_functorch/aot_autograd\.py"
    # Where a compiled model is called, and where what was compiled by torch.compile is.
    r"|^(?:__call__|optimized) \([^\n]{0,300}(?:export/pt2_archive/_package|_inductor/package/package|_export/)"
    r"|^(?:__call__|run|_run_from_cache) \([^\n]{0,300}_inductor/(?:output_code|utils|codecache|compile_fx)\.py"
)
_ASSERTS = re.compile(r"(?:[\w.]{1,80}: ?)?AssertionError: \S")
# Of a module of another program that is missing, the importer's place says nothing; nor of what somebody stopped.
_ABSENT = re.compile(r"No module named ['\"](?!torch|triton)")
_STOPPED = re.compile(r"^[ \t]{0,40}(?:raise )?KeyboardInterrupt\b", re.MULTILINE)
# What a GPU reports is reported wherever somebody waits for it: only a frame that opens the device is a place of it.
# A launch that is too large is refused where it is made.
_REPORTED = re.compile(
    r"^(?![^\n]*(?:invalid configuration|too many resources))(?:[\w.]{1,80}: ?){0,4}"
    r"(?:(?:CUDA|HIP)(?: driver| runtime)? [Ee]rror\b|Triton Error \[|(?:cuda|hip)Error[A-Z]|CUDA_ERROR_[A-Z])"
)
_OPENS = re.compile(r"^(?:_lazy_init|_cuda_init|_get_device\w*|get_device_\w+|device_count|is_available|init) \(")
# The program around it says in these words what it was about, before the message proper.
_TASK = re.compile(r"^(?P<type>(?:[\w.]{1,80}: ?){0,2})(?:Capture|Warm ?up|Init\w*) (?:[a-z]+ ){1,3}failed: (?=\S)")
# The C++ file that raised it, with the function before it.
_RAISED = re.compile(
    r"(?:raised from [^\n]{1,600}? at |ASSERT FAILED at |\(\w{1,80} at )\"?((?:[A-Za-z]:)?[^\s:\"]{1,400})"
)
_FRAME = re.compile(
    r'^ {0,20}File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,9}), in (?P<name>\S{1,200})', re.MULTILINE
)
# Where a line of a traceback was joined with the line of the source below it.
_JOINED = re.compile(r"^([\w.<>]{1,200}) {2,40}\S[^\n]{0,400} (?=\([^()\n]{1,400}:\d{1,9}\)$)")
# Where torch had its compiler before it was its own.
_OLD = re.compile(r"\btorch(inductor|dynamo)/(?!torch)")
# Python's own library, and a check, raise what their callers made them raise.
_STANDARD = re.compile(
    r"/lib(?:64)?/(?:python3[\w.]*/)?(?:ctypes|importlib|multiprocessing|concurrent|asyncio|json)?/?\w+\.py:"
    r"|^\S* ?\(<frozen"
    # What torch checks with: who asked is the place.
    r"|^_check(?:_\w{1,40})? \([^\n]{0,300}torch/__init__\.py:"
)
_DEEPEST, _TOLD = 60, 6
# A place that only the words of a message tell.
_BY_WORDS = 0.42
# Of such an entry words count that many messages have.
_IN_PASSING = "the message mentions"
_TABLES = ("messages", "origins", "summaries")
# What a text must have for an expression to be worth compiling: most fit few texts.
_words = lru_cache(maxsize=1024)(literals_of)


@dataclass(frozen=True)
class FailureOrigin:
    """An entry of the table. Empty texts ask for nothing."""

    cause: str
    confidence: float
    stage: str
    why: str
    frame: str = ""
    innermost: str = ""
    file: str = ""
    said: str = ""
    near: str = ""
    not_near: str = ""
    subject: str = ""
    prose: bool = False

    @cached_property
    def record(self) -> LogPattern:
        """The entry as a pattern, for the findings."""
        return LogPattern(
            cause=self.cause, regex=self.frame or self.said, example="", source=self.why, confidence=self.confidence,
            stage=self.stage, is_suspect=True,
        )  # fmt: skip

    def fits(self, frame: str, innermost: str, text: str, around: str) -> bool:
        """Whether it speaks of a failure with these frames, this message and these lines around it."""
        # The cheap questions first: each expression has to be compiled.
        return (
            (not self.frame or _search(self.frame, frame))
            and (not self.innermost or _search(self.innermost, innermost))
            and (not self.file or any(_search(self.file, path) for path in _RAISED.findall(text)))
            and (self.near != _TORCH or has_mark(around))
            and (not self.said or _search(self.said, text))
            and (self.near in ("", _TORCH) or _search(self.near, around))
            and not (self.not_near and _search(self.not_near, around))
        )


def match_origin(found: LogFailure, number: int, around: str, *, is_told: bool = True) -> LogMatch | None:
    """The cause that the place of ``found`` speaks for; None where it says nothing.

    ``is_told``: that it is a failure; else only words count which are of one.
    """
    prose = is_prose(found)
    if found.form == "signal" and found.kind != "SIGKILL" and not prose:
        # The Python frames of a crash say what was running, not what broke; but who kills from outside has a reason.
        return None
    if _STOPPED.search(found.text) is not None or found.kind == "KeyboardInterrupt":
        # Where somebody stopped it says nothing.
        return None
    told = found.frames or _logged_frames(found.text, around)
    # Its own words are a sign of torch; and a place, if nothing else tells one.
    printed = message_origin(found.text)
    around = f"{around}\n{printed}" if printed else around
    asked = _ask_tables(is_told=is_told, prose=prose)
    match = _first_fitting_origin(found, number, around, told, asked)
    if match is None and printed and not told:
        match = _first_fitting_origin(found, number, around, [f"? (/{printed}:0)"], asked)
        match = replace(match, confidence=min(match.confidence, _BY_WORDS)) if match is not None else None
    if match is None or not printed or ("frame" in match.facts and told):
        return match
    facts = {name: value for name, value in match.facts.items() if name != "frame"}
    return replace(match, facts={**facts, "printed_by": printed})


@lru_cache(maxsize=4)
def _ask_tables(*, is_told: bool, prose: bool) -> tuple[FailureOrigin, ...]:
    """The entries that may fit, in order."""
    asked = [one for one in origins() if (is_told or one.why in _telling()) and (prose or not one.prose)]
    # Words that somebody chose say more than those that he happens to use.
    return tuple(sorted(asked, key=lambda one: not (one.prose or one.why in _telling())))


def _first_fitting_origin(
    found: LogFailure, number: int, around: str, told: Sequence[str], asked: Sequence[FailureOrigin]
) -> LogMatch | None:
    """The first of the entries ``asked`` that fits; ``told`` are the frames."""
    told = told if _ABSENT.search(found.text) is None else ()
    if _REPORTED.match(found.text) is not None:
        told = [one for one in told[:2] if _OPENS.match(one)]
    frames = [_OLD.sub(r"torch/_\1/", _JOINED.sub(r"\1 ", one).replace("\\", "/")) for one in told[:_DEEPEST]]
    # What asserts there broke there, and nothing that was called.
    raised = frames[0] if frames and _ASSERTS.match(found.text) is not None else ""
    frame = next((one for one in frames if _OWN.search(one) and (one == raised or not _PASSED.search(one))), "")
    innermost = next((one for one in frames if not _STANDARD.search(one)), "")
    # What the reader of a form calls half a traceback is no word of the log's.
    text = f"{found.kind}: {found.text}" if found.kind != "truncated" else found.text
    text = _TASK.sub(r"\g<type>", text)
    # A long message shows tables and source lines below its words.
    text = text if frame else "\n".join(text.split("\n", _TOLD)[:_TOLD])
    # Of a program around torch the frames tell whose it is, not what is printed next to them.
    own = "\n".join((*frames, text))
    fitting = (one for one in asked if frame or not one.frame)
    origin = next((one for one in fitting if one.fits(frame, innermost, text, own if one.innermost else around)), None)
    if origin is None:
        return None
    facts: dict[str, FactValue] = {"frame": frame} if frame else {}
    subject = _subject(origin.subject, (text, frame, around))
    if subject:
        facts["subject"] = subject
    return found.match(origin.record, number, found.text.partition("\n")[0], facts)


def is_place(match: LogMatch) -> bool:
    """Whether nothing but the place of a failure speaks for the cause."""
    return match.pattern.is_suspect and match.pattern.source in _places()


def is_sentence(match: LogMatch) -> bool:
    """Whether somebody's own words speak for the cause."""
    return match.pattern.is_suspect and match.pattern.source in _sentences()


def is_loose(match: LogMatch) -> bool:
    """Whether a place, words in passing or somebody's own speak for the cause, and no message of its own."""
    return match.pattern.is_suspect and match.pattern.source in _loose()


@lru_cache(maxsize=1)
def _loose() -> frozenset[str]:
    every = (*_table("origins"), *_table("summaries"))
    return frozenset(one.why for one in every if one.prose or not one.said or one.why.startswith(_IN_PASSING))


@lru_cache(maxsize=1)
def _sentences() -> frozenset[str]:
    return frozenset(one.why for one in _table("summaries") if one.prose)


@lru_cache(maxsize=1)
def _places() -> frozenset[str]:
    return frozenset(one.why for name in _TABLES for one in _table(name) if not one.said)


@lru_cache(maxsize=1)
def _telling() -> frozenset[str]:
    """The entries whose words are of a failure, even where nothing else looks like one."""
    return frozenset(one.why for name in ("messages", "summaries") for one in _table(name))


def _logged_frames(text: str, around: str) -> Sequence[str]:
    """The frames of a traceback that a logger printed line by line: a line of it is not a failure of its own."""
    if _FRAME.match(text) is None:
        return ()
    return [f"{hit['name']} ({hit['file']}:{hit['line']})" for hit in _FRAME.finditer(around)][::-1]


@lru_cache(maxsize=1)
def origins() -> tuple[FailureOrigin, ...]:
    """The tables, in the order in which they are asked."""
    return tuple(origin for name in _TABLES for origin in _table(name))


@lru_cache(maxsize=len(_TABLES))
def _table(name: str) -> tuple[FailureOrigin, ...]:
    table = load_toml(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    of_prose = {"near": table.get("near", "")}
    return tuple(FailureOrigin(**{**(of_prose if entry.get("prose") else {}), **entry}) for entry in table["origin"])


def _subject(regex: str, texts: Sequence[str]) -> str:
    hits = (_compile_regex(regex).search(text) for text in texts) if regex else ()
    return next((hit["subject"] for hit in hits if hit is not None and hit["subject"]), "")


def _search(regex: str, text: str) -> bool:
    return may_match(_words(regex), text) and _compile_regex(regex).search(text) is not None


@lru_cache(maxsize=512)
def _compile_regex(regex: str) -> re.Pattern[str]:
    return re.compile(bound_repeats(regex), re.MULTILINE)
