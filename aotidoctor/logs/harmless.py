"""Decide whether a line reports a failure: harmless lines, severity, and signs of torch or of other programs.

A harmless line has the word of a failure and reports none; each kind is listed with its reason. A failure weighs less
as a warning that was handled, or as news, than as an error.

Compilers, linkers, loaders and memory fail everywhere in the same words. Beside a sign of torch such a message counts;
without one it is a low suspicion, and beside a sign of another program it is a lead and no diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.logs.lines import LogLine, any_of
from aotidoctor.logs.patterns import LogFailure
from aotidoctor.model import load_toml
from aotidoctor.model.report import LogMatch

# Harmless lines. Words of harm, and the words beside them where none was done.
_HARM = (
    r"(?:errors?|failures?|exceptions?|fail(?:ed|ing|s)?|killed|dropped|lost|missing|unexpected|skipped|rejected|invalid"
    r"|timeouts?|unreachable|broken|wrong|different|dead|stuck|hung|hangs?|stall(?:s|ed)?|crash(?:es|ed)?|dead ?locks?"
    r"|leak(?:s|ed)?|mismatch(?:es|ed)?|segfaults?|oom\w{0,8}|out of memory|corrupt(?:ed|ions?)?|overflows?|underflows?"
    r"|panics?|regressions?|violations?|nans?|infs?|diverged|unhealthy|overruns?"
    r"|(?:illegal|invalid|misaligned) (?:memory )?access(?:es)?)"
)
# A word behind it would be what was not found: "failed: no such file".
_NONE = (
    r"(?:0(?:\.0{1,9})?(?![.\dx])|\[\]|\{\}|n/a"
    r"|(?:none|null|false|no|clean|ok)(?=['\"]?\s{0,8}(?:$|[,;|)\]}]|\.(?:\s|$))))"
)
_TABLE = load_toml(Path(__file__).with_name("harmless.toml").read_text(encoding="utf-8"))["harmless"]


def _of_kinds(*kinds: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The entries of these kinds: the reason, and the expressions."""
    return tuple(
        (entry["why"], tuple(regex.replace("<harm>", _HARM).replace("<none>", _NONE) for regex in entry[kind]))
        for entry in _TABLE
        for kind in kinds
        if kind in entry
    )


# Words that report no failure; the rest of the line counts. Lines that report none, and those that do so at any level.
WORDS, LINES = _of_kinds("words"), _of_kinds("lines", "calm")


def _any_of(table: Iterable[tuple[str, tuple[str, ...]]]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{regex})" for _, regexes in table for regex in regexes), re.IGNORECASE)


_WORDS, _LINES = _any_of(WORDS), _any_of(LINES)
_CALM_LINES = _any_of(_of_kinds("calm"))


def telling_part(text: str) -> str:
    """``text`` without the words that report no failure; empty where the whole line reports none."""
    return "" if _LINES.search(text) is not None else without_denials(text)


def without_denials(text: str) -> str:
    """``text`` without the words that report no failure."""
    return _WORDS.sub(" ", text)


def is_calm(text: str) -> bool:
    """Whether ``text`` is a line that its library logs as an error and that is none."""
    return _CALM_LINES.search(text) is not None


# Error, handled warning, or news. Autotuning leaves out a candidate.
_ROUTINE = re.compile(r"(?:for|of) benchmark choice|ignoring this choice")
# A search for an optional library found none, and the program goes on.
_PROBES = re.compile(
    r"\bNCCL INFO\b|(?i:\b(?:skipp(?:ing|ed)|skip) (?:the )?(?:import|load|regist)|\boptional\b|\bfall(?:ing|s)? back\b"
    r"|\b(?:ignor(?:ing|ed)|prob(?:ing|ed))\b|\bwill (?:be disabled|not be (?:available|used))\b)"
)
# What a runtime logs as news, and goes on with the wrong data.
_SILENT = "not found or update fn is null"
# A warning about something that the program may do without.
_OPTIONAL = "you can ignore this warning"
# The beginning of a line that is the failure itself, at any level.
_BEGINS = re.compile(
    r"(?:[\w.:]*(?:Error|Exception|Interrupt)\b|(?i:error|fatal|failed|terminate called)\b|[A-Z]{3,12} FAIL)"
)


# A record that says no more than that.
_BARE = re.compile(r"(?P<level>(?:ERROR|FATAL|CRITICAL):? )?[\w ]{1,40}\b(?:failed|aborting|giving up)\W{0,3}$")


def is_bare(found: LogFailure, head: LogLine) -> bool:
    """Whether a record says that something failed and nothing more, so that no cause can be read from it."""
    bare = _BARE.match(found.text) if found.form == "line" else None
    return bare is not None and (head.stamped or bare["level"] is not None)


def is_warning(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure was handled: a candidate left out, an optional library, an exception logged as a warning."""
    if _ROUTINE.search(found.text) is not None:
        return True
    if is_probe(found, head):
        return True
    # An exception that was logged as a warning was handled.
    return head.level == "warning" and (found.form in ("line", "loader") or (found.form == "python" and head.stamped))


def is_probe(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure is the search for a library that the program can do without."""
    return found.form == "loader" and (head.level == "info" or _PROBES.search(found.text) is not None)


def is_mention(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure is only mentioned in news: expected, tried again, or a word of an option."""
    if (found.form == "loader" and "NCCL INFO" in found.text) or _OPTIONAL in found.text:
        return True
    is_news = head.level == "info" and found.form == "line" and _SILENT not in found.text
    return is_news and _BEGINS.match(found.text) is None


# Signs of torch and of other programs.
_MARK = any_of("marks")
# The words of every CUDA program: a sign in torch's form, if there is no sign of another program.
_ANY = re.compile(r"(?:^|Error:? |what\(\): {1,4}|\] |> |: E? {0,8})CUDA error", re.MULTILINE)
# Names of folders are the user's choice; a sign are those of installed packages, and files of torch.
_PATH = re.compile(r"(?<![\w:/\\.])(?:~|\.{1,2}|\$\w{1,40}|[A-Za-z]:)?(?:[/\\][\w.+@%-]{1,120}){1,40}")
_OF_PACKAGES = any_of("packages")
_OTHER = re.compile(
    r"(?i:tensorflow|\bjax|\bxla\b|paddle|mxnet|\bcargo\b|rustc|\bnpm\b|node_modules|gradle|\bmaven|gstreamer|"
    r"opencv|\bqt[56]\b|unity|unreal|minecraft|\bjulia\b|\bruby\b|go build|dotnet|\.csproj|\bswift|flutter|\bcobol|"
    r"\bpostgres|\bpsql\b|\bpg_hba|\bmysqld?\b|\bmariadb|\bredis\b|\belectron\b|\bopenssl|\blibcurl|"
    r"AndroidRuntime|\bjava\.lang|\bggml|llama\.cpp|llama_(?:cpp|model_lo|print_t)|whisper\.cpp)"
)
# Forms and causes that are not torch's alone.
_FORMS, _CAUSES = ("linker", "loader", "compiler"), (
    "out-of-memory", "missing-library", "toolchain-missing", "abi-mismatch", "platform-mismatch",
    "tmpdir", "killed", "isa-mismatch",
)  # fmt: skip
# Programs on ggml run models too: messages that only they print count as they are.
_OF_MODELS = ("ggml",)
# Causes that are the same in every program.
_EVERYWHERE = ("openmp-conflict",)
# The confidence without a sign of torch, and beside a sign of another program.
_UNMARKED, _OF_OTHERS = 0.45, 0.25
# Libraries that torch, its compilers and its kernels are linked with; errors about others say nothing.
_LINKED = re.compile(
    r"(?i:torch|c10|aten|aoti|python|cud|cublas|cufft|curand|cusp|nvrtc|nvtx|nccl|cupti|hip|roc|rccl|miopen|sycl|ze_|omp|mkl|dnnl|sleef|stdc\+\+"
    r"|atomic|blas|lapack|kineto|protobuf|triton|fbgemm|magma|shim|msvcrt|kernel32|ucrt|\bm$|\bdl$|pthread|\brt$)"
)
_NAMED = re.compile(r"LNK1(?:104|181)|cannot find -l|library not found for -l|library '[\w+.-]+' not found")


# Cached as every entry of the tables needs it for the same lines.
@lru_cache(maxsize=4)
def has_mark(text: str) -> bool:
    """Whether ``text`` has a sign of torch, of what it compiles or of a library that is built on it."""
    text = _PATH.sub(_without_folders, text)
    return _MARK.search(text) is not None or (_ANY.search(text) is not None and not _is_of_others(text))


def names_linked(text: str) -> bool:
    """Whether a tool misses a library that torch, its compilers and its kernels are linked with."""
    return _NAMED.search(text) is not None and _LINKED.search(text) is not None


def _without_folders(path: re.Match[str]) -> str:
    return path[0] if _OF_PACKAGES.search(path[0]) is not None else "/"


def _is_of_others(text: str) -> bool:
    return _OTHER.search(text) is not None


def adjust_confidence(match: LogMatch, around: str) -> LogMatch:
    """The match, with less confidence where the lines around it show no sign of torch."""
    if match.pattern.component in _OF_MODELS:
        return match
    is_anybodys = match.event.form in _FORMS or match.pattern.cause in _CAUSES
    if has_mark(around) or _MARK.search(_PATH.sub(_without_folders, match.event.text)) is not None:
        return match
    is_others = match.pattern.cause not in _EVERYWHERE and _is_of_others(around)
    if not (is_anybodys or is_others):
        return match
    is_others = is_others or (_NAMED.search(match.text) is not None and _LINKED.search(match.text) is None)
    return replace(
        match,
        confidence=min(match.confidence, _OF_OTHERS if is_others else _UNMARKED),
        facts={**match.facts, "unmarked": True},
        pattern=replace(match.pattern, is_suspect=True),
    )
