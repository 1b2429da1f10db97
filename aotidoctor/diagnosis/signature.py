"""A short fingerprint of what went wrong: equal for the same trouble on another host, day or build of the package.

It takes in the cause, the subject without what changes from build to build (numbers of kernels, hashes, addresses,
folders), the symptom, and the kernel; never a message, a version or a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from aotidoctor.diagnosis.explain import is_failure
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.run import Exited, NotStarted, Outcome, OutOfMemory, Signalled, TimedOut

PREFIX = "aotidoctor1:"
LENGTH = 16
_FOLDERS = re.compile(r"(?:[\w.~-]*/)+")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_BUILD = re.compile(r"\bc[0-9a-z]{40,}\b")
_KERNEL_NUMBER = re.compile(r"\b((?:cpp|triton)_\w*?)_\d+\b")
_LEAF = re.compile(r"(?:args|kwargs|result)\b")


def signature(diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence], runs: Sequence[Outcome]) -> str:
    """``aotidoctor1:`` and 16 hex digits; the same for the same cause, subject, symptom and kernel."""
    first = diagnoses[0] if diagnoses else None
    parts = (
        first.cause if first is not None else "unknown",
        normal_subject(first.subject) if first is not None else "",
        _symptom(findings, runs),
        _kernel(findings),
    )
    return PREFIX + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:LENGTH]


def normal_subject(subject: str | None) -> str:
    """The subject without folders, hashes, addresses and kernel numbers; a leaf stays as it is."""
    if subject is None or _LEAF.match(subject):
        return subject or ""
    text = _ADDRESS.sub("<address>", _BUILD.sub("<hash>", _FOLDERS.sub("", subject)))
    return _KERNEL_NUMBER.sub(r"\1", text)


def _symptom(findings: Sequence[Evidence], runs: Sequence[Outcome]) -> str:
    failed = next((item for item in findings if is_failure(item)), None)
    if failed is not None:
        return f"{failed.kind} {failed.facts.get('symptom') or failed.facts.get('signal') or ''}"
    return _ending(runs[0]) if runs else "not run"


def _ending(run: Outcome) -> str:
    match run.ending:
        case Signalled(name=name):
            return f"signalled {name}"
        case TimedOut():
            return "timed-out"
        case OutOfMemory():
            return "out-of-memory"
        case NotStarted():
            return "not-started"
        case Exited():
            return "ok" if run.error is None else f"raised {run.error.type}"


def _kernel(findings: Sequence[Evidence]) -> str:
    found = next((item.facts["kernel"] for item in findings if isinstance(item.facts.get("kernel"), str)), "")
    return normal_subject(str(found))
