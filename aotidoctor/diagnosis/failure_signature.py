"""Compute the signature of a failure: equal for the same fault on another machine, day, path or build.

Rules in order, each giving one part or none. The *family* takes in the cause, what kind of failure showed and what kind
of thing it is about; the *exact* one also the thing itself, the variant of the cause, the words of the failure, its
kernel, its operator and the top frames. No path, user, host, run, address, number of a message or version gets in.

A cause that can be read off the files (a broken archive, a wrong host, inputs that break the contract) is the same
fault whatever came of it: garbage, an exception or a crash is luck there, so what showed counts for the others only.
Numbers of kernels, hashes of builds and addresses are removed. The prefix names the version of these rules.

Frames are normalised after Socorro's lists. *Sentinel* frames are the machinery of failing (``abort``,
``__cxa_throw``, a failed check): what lies inside them tells how it was reported, not what went wrong. *Irrelevant*
frames are in every stack: PyTorch's, Python's, OpenMP's and those of the C library. *Prefix* frames (``memcpy``,
``free``) are kept, and mean nothing without the next one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aotidoctor.diagnosis.playbook_match import is_failure
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import SIGNATURE_VERSION, Diagnosis, Signature, SignaturePart
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut

if TYPE_CHECKING:
    from aotidoctor.model.localization import Frame, Localization
    from aotidoctor.model.report import LogEvent, LogReading


# Frames that distinguish failures.
MOST = 3
"""Frames in a signature: more of them would distinguish callers, not failures."""

_SENTINEL = re.compile(
    r"^(?:(?:__GI_)?_*(?:abort|raise|gsignal|pthread_kill\w*|assert_fail\w*|fortify_fail\w*|chk_fail|stack_chk_fail)"
    r"|__libc_message\w*|malloc_printerr|__cxa_(?:throw|rethrow|call_terminate)|__gxx_personality\w*|_Unwind_\w+"
    r"|__cxxabiv1::\w+|__gnu_cxx::__verbose_terminate_handler|std::(?:terminate|__throw_\w+)"
    r"|c10::(?:detail::torch\w*Fail\w*|Error::Error|get_backtrace|\(anonymous namespace\)::.*[Bb]acktrace.*)"
    r"|<signal handler called>)"
)
_PREFIX = re.compile(
    r"^_*(?:GI_|libc_|int_)*(?P<name>mem(?:cpy|move|set|cmp|chr)|str(?:len|cmp|cpy|ncpy|dup)|free|malloc|calloc|realloc)"
    r"(?:_(?:avx|sse|evex|erms|unaligned|aligned|ssse|generic|vec|chk|consolidate|default)\w*)?$"
)
_IRRELEVANT = re.compile(
    r"^(?:\?\?|<unknown>|_start|main|__libc_start\w*|start_thread|clone\d?|__clone\w*|__restore_rt"
    r"|(?:std|c10|at|torch|caffe2|pybind11|__gnu_cxx|__cxxabiv1)::|void (?:std|c10|at|torch|pybind11)::"
    r"|operator (?:new|delete)|__cxa_|_?Py[A-Z_]\w*|_?Py\w+_|cfunction_|method_vectorcall|slot_tp|type_call|object_"
    r"|vectorcall|builtin_|run_mod|run_eval|pymain|GOMP_|gomp_|omp_|__kmp|libomp|_dl_|dl_|__dl|AOTInductorModel\w*"
    r"|aoti_torch_\w*|nanosleep|__nanosleep|clock_nanosleep|__GI___clock_nanosleep|poll|__poll|futex|__futex\w*|pthread_)"
)
_FRAMEWORK_FILE = re.compile(
    r"/torch/|/aotidoctor/|/lib/python3[\d.]*/(?!(?:site|dist)-packages/)|<frozen |/importlib/|"
    r"/(?:libc|libpthread|libpython|libstdc\+\+|libgcc_s|libgomp|ld-linux|libcudart|libcuda)[-.\w]*\.so|/libc10|/libtorch"
)
_PYTHON = re.compile(r'^ *File "(?P<file>[^"]+)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_PLACED = re.compile(r"(?P<function>\S+) \((?=[^()/.]*[/.])(?P<file>[^()]*)\)$")
_LINE = re.compile(r":\d+$")
_CLONE = re.compile(r"(?:\.(?:isra|constprop|part|cold|lto_priv|_omp_fn|omp_fn|clone)(?:\.\d+)*)+|\[abi:\w+\]|@plt")
_LAMBDA = re.compile(r"\{lambda\([^{}]*\)#\d+\}|<lambda[^<>]*>|\{unnamed type#\d+\}|\$_\d+")
BUILD = re.compile(r"\bc[0-9a-z]{40,}\b")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_KERNEL = re.compile(r"\b((?:cpp|triton)_\w*?)_\d+\b")


def plain_kernel(name: str) -> str:
    """Strip the number of ``cpp_fused_embedding_mul_0``: its place among the kernels of one build."""
    return _KERNEL.sub(r"\1", name)


def normal_function(name: str) -> str:
    """Strip arguments, template arguments and additions of a build or an address from a function's name."""
    text = re.sub(r" \[clone [^\]]*\]", "", name).replace("(anonymous namespace)::", "")
    text = _ADDRESS.sub("", BUILD.sub("", _LAMBDA.sub("{lambda}", _CLONE.sub("", text))))
    text = _without_nested(_without_nested(text, "(", ")"), "<", ">")
    return plain_kernel(text.removesuffix(" const").strip().split(" ")[-1])


def _without_nested(text: str, opening: str, closing: str) -> str:
    """``text`` without what stands between a pair, however deep; ``operator<`` and the like have no partner."""
    if text.count(opening) != text.count(closing):
        return text
    pattern = re.compile(rf"{re.escape(opening)}[^{re.escape(opening + closing)}]*{re.escape(closing)}")
    while (shorter := pattern.sub("", text)) != text:
        text = shorter
    return text


def top_frames(frames: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """At most three names from pairs of function and file or library, innermost first."""
    last = max((at for at, (function, _) in enumerate(frames) if _SENTINEL.match(function)), default=-1)
    kept: list[str] = []
    own = 0
    for function, place in frames[last + 1 :]:
        prefix = _PREFIX.match(function)
        if prefix is not None:
            kept = kept or [prefix["name"]]
        elif function and not (_IRRELEVANT.match(function) or _FRAMEWORK_FILE.search(place)):
            name = normal_function(function)
            # Recursion would fill all places with one name.
            if name and kept[-1:] != [name]:
                own += 1
                kept.append(name)
        if own == MOST:
            break
    return tuple(kept)


def native_frames(frames: Iterable[Frame]) -> tuple[str, ...]:
    """Frames of a native stack, innermost first."""
    return top_frames([(one.function or "", one.file or one.library or "") for one in frames])


def python_frames(traceback: str) -> tuple[str, ...]:
    """Frames of a Python traceback, innermost first; of chained ones those of the last, which was raised."""
    found = list(_PYTHON.finditer(traceback.rpartition("Traceback (most recent call last)")[2]))
    return top_frames([(one["function"], one["file"]) for one in reversed(found)])


def logged_frames(frames: Sequence[str]) -> tuple[str, ...]:
    """Frames of an event of a log: a symbol, ``file:line`` or ``function (file:line)``, without line numbers."""
    pairs = []
    for one in frames:
        placed = _PLACED.match(one)
        bare = _LINE.sub("", one)
        pairs.append((placed["function"], _LINE.sub("", placed["file"])) if placed else (bare.rpartition("/")[2], bare))
    return top_frames(pairs)


# Subjects, without what changes between machines and builds.
_LEAF = re.compile(r"(?:args|kwargs)\b")
_RESULT = re.compile(r"result\b")
_OPERATOR = re.compile(r"[A-Za-z_]\w*(?:::\w+)+(?:\.\w+)?$|(?:aten|prims|torch)\.\w")
_SUBJECT_KERNEL = re.compile(r"(?:cpp|triton)_\w+|aoti_torch_\w+ \(")
_KEY = re.compile(r"[A-Z][A-Z0-9_]*$")
_LIBRARY = re.compile(r"lib[\w+-]+\.so")
_MEMBER = re.compile(r"(?:^|/)data/(?:aotinductor|weights|constants|sample_inputs)(?:/|$)")
_PATH = re.compile(r"/|\\|\.(?:pt2|pt|pth|py|so|npz|npy|json|safetensors|zip|onnx|dll|dylib)$")
_SUBJECT_ADDRESS = re.compile(r"0x[0-9a-f]+")
# Buffers are numbered through in each build.
_BUFFER = re.compile(r"\b(buf)\d+\b")
# GLIBC_2.38, CXXABI_1.3.15, libcudart.so.12, sm_90a stays: an architecture is no version.
_SYMBOL_VERSION = re.compile(r"\b((?:GLIBC(?:XX)?|CXXABI|GCC|GOMP|OMP|LIBC))_[\d.]+")
_LIBRARY_VERSION = re.compile(r"(\.so)(?:\.\d+)*\.?(?=\W|$)")


def subject_kind(subject: str | None) -> str:
    """Kind of a subject: ``input``, ``size``, ``output``, ``operator``, ``kernel``, ``library``, ``member``..."""
    if not subject:
        return "none"
    if _LEAF.match(subject):
        return "size" if ".shape[" in subject else "input"
    kinds = (
        ("output", _RESULT.match(subject)),
        ("operator", _OPERATOR.match(subject)),
        ("kernel", _SUBJECT_KERNEL.match(subject)),
        ("member", _MEMBER.search(subject)),
        ("library", _LIBRARY.match(subject)),
        ("file", _PATH.search(subject)),
        ("key", _KEY.match(subject)),
    )
    return next((kind for kind, found in kinds if found), "name")


def normal_subject(subject: str | None) -> str:
    """The subject, where its name means the same elsewhere; empty for a file of this machine."""
    kind = subject_kind(subject)
    if subject is None or kind == "file":
        return ""
    if kind in ("input", "size", "output"):
        return subject
    if kind == "member":
        # The member's own name: the folders are named after the package and the model.
        rest = subject[(found.end() if (found := _MEMBER.search(subject)) else 0) :]
        name = rest.rpartition("/")[2]
        return BUILD.sub("<hash>", name) if "/" in rest and name else "model"
    text = _BUFFER.sub(r"\1", _SUBJECT_ADDRESS.sub("<address>", BUILD.sub("<hash>", subject)))
    return plain_kernel(_LIBRARY_VERSION.sub(r"\1", _SYMBOL_VERSION.sub(r"\1", text)))


# Signature.
WATCHED = "AD-RUN-033"
EXACT = f"aotidoctor{SIGNATURE_VERSION}:"
FAMILY = f"aotidoctor{SIGNATURE_VERSION}f:"
LENGTH = 16
# Stages where the cause is a property of files or of the host, and its consequences are chance.
STATIC_STAGES = ("artifact", "host", "load", "inputs")
# Except for these, of which only the failure is known.
NO_STATIC_CAUSES = ("setup-failed",)
# And these, which show while running: memory that is not theirs decides between garbage, a crash and nothing, and
# the number of threads between an exception and an abort.
LUCKY_CAUSES = (
    "custom-op-fake-kernel",
    "uninitialized-read",
    "memory-leak",
    "custom-op-leak",
    "input-alias",
    "index-out-of-range",
    "integer-division",
    "runtime-assert",
)
# Messages of the checked heap of the C library: the stack shows where damage was detected, not where it was done.
_HEAP = re.compile(
    r"(?i)heap-corruption|double free|free\(\)|(?:m|re)alloc\w{0,30}\(\)|corrupted|invalid (?:pointer|next size)"
)
# Facts that are words, not numbers: what was there instead of what.
DETAILS = ("artifact_kind", "device", "observed_dtype", "expected_dtype", "package_format", "package_machine")
_QUOTED = re.compile(r"""(['"`]).*?\1""")
# A word of a message: no number, no path, no name of a host or a file.
_WORD = re.compile(r"(?<![^\s(])[A-Za-z]+(?:::[A-Za-z_]+)*(?=[\s,;:.)]*(?:\s|$))")


@record
class FailureFacts:
    """Facts of a failure that the rules use."""

    first: Diagnosis | None
    findings: Sequence[Evidence]
    runs: Sequence[Outcome] = ()
    place: Localization | None = None
    log: LogReading | None = None
    failed: Evidence | None = None

    @property
    def is_static(self) -> bool:
        """Whether the files alone show the cause."""
        if self.first is None or self.first.cause in NO_STATIC_CAUSES:
            return False
        return self.first.stage in STATIC_STAGES

    @property
    def is_lucky(self) -> bool:
        """Whether the cause is the same however the failure looks."""
        return self.is_static or (self.first is not None and self.first.cause in LUCKY_CAUSES)

    @property
    def is_of_operator(self) -> bool:
        """Whether the subject is an operator: the kernels around it then depend on the package only."""
        return self.first is not None and subject_kind(self.first.subject) == "operator"

    @property
    def event(self) -> LogEvent | None:
        """Event of the log for the cause, or else for the failure."""
        if self.log is None:
            return None
        cause = self.first.cause if self.first is not None else ""
        events = [match.event for match in self.log.matches if match.pattern.cause == cause]
        return next(iter((*events, *self.log.unknown)), None)


Text = tuple[str, str] | None
"""Result of a rule: the text, and the id of the evidence or run that it is from."""


def fingerprint(
    diagnoses: Sequence[Diagnosis],
    findings: Sequence[Evidence],
    runs: Sequence[Outcome],
    localization: Localization | None,
    log: LogReading | None = None,
) -> Signature:
    """Compute both fingerprints and their parts; also for a failure without a known cause."""
    # A failed run, or the end of a watched program of the user's.
    failures = (
        item for item in findings if is_failure(item) or (item.code == WATCHED and item.severity is Severity.ERROR)
    )
    seen = FailureFacts(
        first=diagnoses[0] if diagnoses else None,
        findings=findings,
        runs=runs,
        place=localization,
        log=log,
        failed=next(failures, None),
    )
    parts = tuple(
        SignaturePart(rule=name, text=text[0], granularity=granularity, source=text[1])
        for name, granularity, rule in RULES
        if (text := rule(seen)) is not None and text[0]
    )
    family = tuple(part for part in parts if part.granularity == "family")
    return Signature(family=FAMILY + _hash(family), exact=EXACT + _hash(parts), parts=parts)


def _hash(parts: Sequence[SignaturePart]) -> str:
    text = "\n".join(f"{part.rule}={part.text}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def _kind_of_failure(seen: FailureFacts) -> Text:
    """How the run ended; ``any`` where that does not matter."""
    if seen.is_lucky:
        return "any", ""
    if seen.failed is not None:
        return seen.failed.kind, seen.failed.id
    if seen.event is not None:
        # As for a run, as far as the form of the event shows it.
        crashes = ("signal", "kernel", "terminate", "sanitizer", "gdb")
        crashed = seen.event.form in crashes or seen.event.kind.startswith("SIG")
        return ("signalled" if crashed else "raised"), ""
    if not seen.runs:
        return "not run", ""
    run = seen.runs[0]
    match run.ending:
        case Signalled():
            kind = "signalled"
        case TimedOut():
            kind = "timed-out"
        case OutOfMemory():
            kind = "out-of-memory"
        case NotStarted():
            kind = "not-started"
        case Exited():
            kind = "returned" if run.error is None else "raised"
    return kind, run.id


def _kind_of_subject(seen: FailureFacts) -> Text:
    if seen.first is None:
        return None
    # The setup is a file of this machine: the exception distinguishes failures, not the file.
    return ("none" if seen.first.cause == "setup-failed" else subject_kind(seen.first.subject), "")


def _variant(seen: FailureFacts) -> Text:
    """Finding that the cause rests on: an HTML page and a tar archive are two wrong kinds of file."""
    if seen.first is None or not seen.is_static:
        return None
    known = {item.id: item for item in seen.findings}
    grounds = [
        item
        for item in (known[one] for one in seen.first.evidence if one in known)
        if not item.code.startswith(("AD-RUN", "AD-LOG")) and item.severity is not Severity.INFO
    ]
    if not grounds:
        return None
    first = next((item for item in grounds if item.subject == seen.first.subject), grounds[0])
    details = [f"{name} {first.facts[name]}" for name in DETAILS if isinstance(first.facts.get(name), str)]
    # The rules for serving and for programs are known by their codes.
    rule = "" if first.code.startswith("AD-") else first.code
    return " ".join(one for one in (rule, first.kind, *details) if one), first.id


def _symptom(seen: FailureFacts) -> Text:
    """The signal and the name of a known message, else the message without names and numbers."""
    if seen.is_lucky:
        return None
    if seen.failed is None:
        event = seen.event if seen.first is None else None
        return (f"{event.kind} {_words(event.text)}".strip(), "") if event is not None else None
    facts = seen.failed.facts
    name = str(facts.get("symptom") or "").removeprefix("other")
    error = next((run.error.type for run in seen.runs[:1] if run.error is not None), "")
    words = _words(str(facts.get("line") or "")) if error and not name else ""
    parts = (name, str(facts.get("signal") or ""), error, words.removeprefix(f"{error} "))
    return " ".join(one for one in parts if one), seen.failed.id


def _words(line: str) -> str:
    return " ".join(_WORD.findall(_QUOTED.sub(" ", line)))[:120]


def _fact(name: str, seen: FailureFacts) -> Text:
    """Fact of the failed run if it has one, else of the findings that the cause rests on, else of any."""
    if seen.is_static or seen.is_of_operator:
        return None
    grounds = seen.first.evidence if seen.first is not None else ()
    ranked = sorted(seen.findings, key=lambda item: (item is not seen.failed, item.id not in grounds))
    found = next((item for item in ranked if isinstance(item.facts.get(name), str)), None)
    return (plain_kernel(str(found.facts[name]).partition(" (")[0]), found.id) if found is not None else None


def _frames(seen: FailureFacts) -> Text:
    """Top frames of a crash or an exception. Those of a hang differ each time."""
    if seen.is_lucky:
        return None
    if seen.failed is None:
        return (" | ".join(logged_frames(seen.event.frames)), "") if seen.event is not None else None
    message = f"{seen.failed.facts.get('symptom')} {seen.failed.facts.get('line')}"
    if seen.failed.kind == "timed-out" or _HEAP.search(message):
        return None
    native = native_frames(seen.place.frames) if seen.place is not None else ()
    error = next((run.error for run in seen.runs[:1] if run.error is not None), None)
    return " | ".join(native or (python_frames(error.traceback) if error is not None else ())), seen.failed.id


RULES: tuple[tuple[str, str, Callable[[FailureFacts], Text]], ...] = (
    (
        "cause",
        "family",
        lambda seen: (seen.first.cause, next(iter(seen.first.evidence), "")) if seen.first else ("unknown", ""),
    ),
    ("failure", "family", _kind_of_failure),
    ("kind-of-subject", "family", _kind_of_subject),
    ("subject", "exact", lambda seen: (normal_subject(seen.first.subject), "") if seen.first else None),
    ("variant", "exact", _variant),
    ("symptom", "exact", _symptom),
    ("kernel", "exact", partial(_fact, "kernel")),
    ("operator", "exact", partial(_fact, "op")),
    ("frames", "exact", _frames),
)
