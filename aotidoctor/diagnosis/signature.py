"""The fingerprint of a failure: equal for the same trouble on another machine, day, path or build of the package.

Rules in order, each giving one part or none. The *family* takes in the cause, what kind of failure showed and what kind
of thing it is about; the *exact* one also the thing itself, the variant of the cause, the words of the failure, its
kernel, its operator and the top frames. No path, user, host, run, address, number of a message or version gets in.

A cause that can be read off the files (a broken archive, a wrong host, inputs that break the contract) is the same
fault whatever came of it: garbage, an exception or a crash is luck there, so what showed counts for the others only.
Numbers of kernels, hashes of builds and addresses are removed. The prefix names the version of these rules.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aotidoctor.diagnosis.explain import is_failure
from aotidoctor.diagnosis.frames import logged_frames, native_frames, plain_kernel, python_frames
from aotidoctor.diagnosis.subjects import normal_subject, subject_kind
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.record import record
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut
from aotidoctor.model.signature import SIGNATURE_VERSION, Signature, SignaturePart

if TYPE_CHECKING:
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.log import LogEvent, LogReading

WATCHED = "AD-RUN-033"
EXACT = f"aotidoctor{SIGNATURE_VERSION}:"
FAMILY = f"aotidoctor{SIGNATURE_VERSION}f:"
LENGTH = 16
# Where the cause is a property of files or of the host, and what it leads to is luck.
STATIC_STAGES = ("artifact", "host", "load", "inputs")
# Except for these: how it failed is all that is known of it.
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
# What the checked heap of the C library says: the stack is where the damage was noticed, not where it was done.
_HEAP = re.compile(
    r"(?i)heap-corruption|double free|free\(\)|(?:m|re)alloc\w{0,30}\(\)|corrupted|invalid (?:pointer|next size)"
)
# Facts that are words, not numbers: what was there instead of what.
DETAILS = ("artifact_kind", "device", "observed_dtype", "expected_dtype", "package_format", "package_machine")
_QUOTED = re.compile(r"""(['"`]).*?\1""")
# A word of a message: no number, no path, no name of a host or a file.
_WORD = re.compile(r"(?<![^\s(])[A-Za-z]+(?:::[A-Za-z_]+)*(?=[\s,;:.)]*(?:\s|$))")


@record
class Seen:
    """All that the rules look at."""

    first: Diagnosis | None
    findings: Sequence[Evidence]
    runs: Sequence[Outcome] = ()
    place: Localization | None = None
    log: LogReading | None = None
    failed: Evidence | None = None

    @property
    def is_static(self) -> bool:
        """Whether the cause can be read off the files."""
        if self.first is None or self.first.cause in NO_STATIC_CAUSES:
            return False
        return self.first.stage in STATIC_STAGES

    @property
    def is_lucky(self) -> bool:
        """Whether the cause is what it is, whatever showed."""
        return self.is_static or (self.first is not None and self.first.cause in LUCKY_CAUSES)

    @property
    def is_of_operator(self) -> bool:
        """Whether the subject is an operator: then the kernels around it say what happened to be packed with it."""
        return self.first is not None and subject_kind(self.first.subject) == "operator"

    @property
    def event(self) -> LogEvent | None:
        """The event of the log that the cause, or else the failure, is told by."""
        if self.log is None:
            return None
        cause = self.first.cause if self.first is not None else ""
        told = [match.event for match in self.log.matches if match.pattern.cause == cause]
        return next(iter((*told, *self.log.unknown)), None)


Text = tuple[str, str] | None
"""What a rule says: the text, and the id of the evidence or run it is from."""


def fingerprint(
    diagnoses: Sequence[Diagnosis],
    findings: Sequence[Evidence],
    runs: Sequence[Outcome],
    localization: Localization | None,
    log: LogReading | None = None,
) -> Signature:
    """Both fingerprints, with what went into them. A failure without a known cause has them, too."""
    seen = Seen(
        first=diagnoses[0] if diagnoses else None,
        findings=findings,
        runs=runs,
        place=localization,
        log=log,
        failed=next((item for item in findings if is_failure(item) or _is_watched(item)), None),
    )
    parts = tuple(
        SignaturePart(rule=name, text=said[0], granularity=granularity, source=said[1])
        for name, granularity, rule in RULES
        if (said := rule(seen)) is not None and said[0]
    )
    family = tuple(part for part in parts if part.granularity == "family")
    return Signature(family=FAMILY + _hash(family), exact=EXACT + _hash(parts), parts=parts)


def _is_watched(item: Evidence) -> bool:
    """The end of a program of the user's, where that is the failure."""
    return item.code == WATCHED and item.severity is Severity.ERROR


def _hash(parts: Sequence[SignaturePart]) -> str:
    text = "\n".join(f"{part.rule}={part.text}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:LENGTH]


def _cause(seen: Seen) -> Text:
    return (seen.first.cause, next(iter(seen.first.evidence), "")) if seen.first is not None else ("unknown", "")


def _kind_of_failure(seen: Seen) -> Text:
    """``any`` where it does not matter, else how it ended."""
    if seen.is_lucky:
        return "any", ""
    if seen.failed is not None:
        return seen.failed.kind, seen.failed.id
    if seen.event is not None:
        return _logged_kind(seen.event), ""
    return (_ending(seen.runs[0]), seen.runs[0].id) if seen.runs else ("not run", "")


def _logged_kind(event: LogEvent) -> str:
    """In the words of a run, as far as the form of the event tells it."""
    crashed = event.form in ("signal", "kernel", "terminate", "sanitizer", "gdb") or event.kind.startswith("SIG")
    return "signalled" if crashed else "raised"


def _ending(run: Outcome) -> str:
    match run.ending:
        case Signalled():
            return "signalled"
        case TimedOut():
            return "timed-out"
        case OutOfMemory():
            return "out-of-memory"
        case NotStarted():
            return "not-started"
        case Exited():
            return "returned" if run.error is None else "raised"


def _kind_of_subject(seen: Seen) -> Text:
    if seen.first is None:
        return None
    # The set-up is a file of this machine: what raised in it tells one failure from another.
    return ("none" if seen.first.cause == "setup-failed" else subject_kind(seen.first.subject), "")


def _subject(seen: Seen) -> Text:
    return (normal_subject(seen.first.subject), "") if seen.first is not None else None


def _variant(seen: Seen) -> Text:
    """Which of its findings the cause rests on: an HTML page and a tar archive are two wrong kinds of file."""
    if seen.first is None or not seen.is_static:
        return None
    known = {item.id: item for item in seen.findings}
    grounds = [known[one] for one in seen.first.evidence if one in known and _is_ground(known[one])]
    if not grounds:
        return None
    first = next((item for item in grounds if item.subject == seen.first.subject), grounds[0])
    details = [f"{name} {first.facts[name]}" for name in DETAILS if isinstance(first.facts.get(name), str)]
    # The rules for serving and for programs are known by their codes.
    rule = "" if first.code.startswith("AD-") else first.code
    return " ".join(one for one in (rule, first.kind, *details) if one), first.id


def _is_ground(item: Evidence) -> bool:
    return not item.code.startswith(("AD-RUN", "AD-LOG")) and item.severity is not Severity.INFO


def _symptom(seen: Seen) -> Text:
    """What was said: the signal, the name of a known message, else its words without names and numbers."""
    if seen.is_lucky:
        return None
    if seen.failed is None:
        told = seen.event if seen.first is None else None
        return (f"{told.kind} {_words(told.text)}".strip(), "") if told is not None else None
    facts = seen.failed.facts
    name = str(facts.get("symptom") or "").removeprefix("other")
    error = next((run.error.type for run in seen.runs[:1] if run.error is not None), "")
    words = _words(str(facts.get("line") or "")) if error and not name else ""
    said = (name, str(facts.get("signal") or ""), error, words.removeprefix(f"{error} "))
    return " ".join(one for one in said if one), seen.failed.id


def _words(line: str) -> str:
    return " ".join(_WORD.findall(_QUOTED.sub(" ", line)))[:120]


def _fact(name: str, seen: Seen) -> Text:
    """Of the failed run if it names one, else of the findings that the cause rests on, else of any."""
    if seen.is_static or seen.is_of_operator:
        return None
    grounds = seen.first.evidence if seen.first is not None else ()
    ranked = sorted(seen.findings, key=lambda item: (item is not seen.failed, item.id not in grounds))
    found = next((item for item in ranked if isinstance(item.facts.get(name), str)), None)
    return (plain_kernel(str(found.facts[name]).partition(" (")[0]), found.id) if found is not None else None


def _frames(seen: Seen) -> Text:
    """The top frames of a crash or an exception. A hang is somewhere else each time one looks."""
    if seen.is_lucky:
        return None
    if seen.failed is None:
        return (" | ".join(logged_frames(seen.event.frames)), "") if seen.event is not None else None
    said = f"{seen.failed.facts.get('symptom')} {seen.failed.facts.get('line')}"
    if seen.failed.kind == "timed-out" or _HEAP.search(said):
        return None
    native = native_frames(seen.place.frames) if seen.place is not None else ()
    error = next((run.error for run in seen.runs[:1] if run.error is not None), None)
    return " | ".join(native or (python_frames(error.traceback) if error is not None else ())), seen.failed.id


RULES: tuple[tuple[str, str, Callable[[Seen], Text]], ...] = (
    ("cause", "family", _cause),
    ("failure", "family", _kind_of_failure),
    ("kind-of-subject", "family", _kind_of_subject),
    ("subject", "exact", _subject),
    ("variant", "exact", _variant),
    ("symptom", "exact", _symptom),
    ("kernel", "exact", partial(_fact, "kernel")),
    ("operator", "exact", partial(_fact, "op")),
    ("frames", "exact", _frames),
)
