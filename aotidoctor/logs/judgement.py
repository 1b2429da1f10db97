"""Relate the failures of a log (the first, its echoes, what came after), and rank the matches of their causes.

A failure is reported many times: by the library, by the wrapper that passes it on, by the launcher that saw a process
end. Whatever repeats the same words later, or says nothing but that something failed, is an echo. After an error that
leaves the device unusable every further CUDA error of that process is tainted.

A failure and its echoes are one group, known by the best match of any of them. Groups of errors come before those of
mere warnings, sure ones before unsure ones, and then the first before the later ones. What comes after a failure of
unknown cause may well follow from it, and is less sure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.logs.assembly import Draft
from aotidoctor.logs.executorch import PASSED_ON
from aotidoctor.logs.lines import any_of, expressions
from aotidoctor.logs.patterns import LEAST_CONFIDENCE, LogFailure, is_certain_cause
from aotidoctor.logs.prefilter import letters
from aotidoctor.model.report import LogEvent, LogMatch


def _named(table: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The expressions of a table whose entries begin with a name."""
    entries = (text.partition(" ") for text in expressions(table))
    return tuple((name, re.compile(text)) for name, _, text in entries)


# Versions of torch, Triton, CUDA, the driver, Python and the server that a log names.
# In each line with one of these something may be found.
HINTS = re.compile(rb"ersion|torch[=-]|triton[=-]|lib/python3|NVIDIA Release|release 1\d\.\d|\+cu1|\+cpu")
_PATTERNS = _named("versions")
_RELEASE = re.compile(r"\d+")


def versions_in(text: str, found: dict[str, str]) -> None:
    """Add the versions in ``text`` to ``found``, by name; the first mention counts, or a longer form of it."""
    for name, pattern in _PATTERNS:
        hit = pattern.search(text)
        if hit is not None and (name not in found or hit["v"].startswith(found[name])):
            found[name] = hit["v"]


def release(text: str) -> tuple[int, ...]:
    """``(2, 6, 0)`` of ``2.6.0+cu124``; empty where there is no number."""
    return tuple(int(part) for part in _RELEASE.findall(text.partition("+")[0])[:3])


def is_fixed(version: str, fixed: str) -> bool:
    """Whether ``version`` is the release ``fixed`` or a later one."""
    had, first = release(version), release(fixed)
    return bool(had and first) and had[: len(first)] >= first


# The stage in the life of a package.
# The first that fits: what is outermost in a stack comes last, so that the inner one decides.
_STAGES = _named("stages")


def stage_of(found: LogFailure) -> str:
    """The stage in which a failure arose; empty where it is not known."""
    text = "\n".join((found.text, *found.frames))
    return next((stage for stage, words in _STAGES if words.search(text)), "")


# Relations.
_WRAPPERS = any_of("wrappers")
# Reports of supervisors and of the other ends of connections: that a process failed, and not why.
_SUPERVISORS = any_of("supervisors")
_STICKY = re.compile(
    r"illegal memory access|device-side assert|misaligned address|unspecified launch failure|illegal instruction was|"
    r"uncorrectable ECC|hardware stack error|invalid program counter|address space conflict|cudaErrorIllegalAddress"
)
_CUDA = re.compile(
    r"CUDA (?:driver )?error|AcceleratorError|cudaError|CUBLAS_STATUS|CUDNN_STATUS|CUDNN_BACKEND|device-side assert|"
    r"NCCL (?:error|WARN Cuda)|Failed to free GPU memory|Triton Error \[CUDA\]|CUDA out of memory|CUDA kernel errors"
)
_TYPE = re.compile(r"^(?:what\(\): *|[\w.:]*(?:Error|Exception|Failure)?: +|terminate called.*)+")
# Shorter words may be the same by chance.
_TELLING = 14
# The least confidence of a message that was logged as news, and is believed for what follows it.
_NEWS = 0.7


@dataclass(slots=True)
class RelatedFailure:
    """A draft with the draft that it echoes, and whether it can be trusted."""

    draft: Draft
    root: Draft | None = None
    tainted: bool = False


def judge(drafts: Sequence[Draft]) -> list[RelatedFailure]:
    """The failures in order, each with the one that it echoes."""
    _believe_news(drafts)
    judged = [RelatedFailure(draft) for draft in drafts]
    words: list[tuple[bytes, bytes]] = []
    for draft in drafts:
        # The letters of the message proper, without the types and names that callers put before it; and of all of it.
        lines = [text for _, text in draft.found.lines]
        first = lines[1] if len(lines) > 1 and lines[0].startswith("terminate called") else lines[0]
        core = letters(_TYPE.sub("", first.strip())[:300].encode("utf-8", "replace"))
        words.append((core, letters(draft.found.text.encode("utf-8", "replace"))))
    failures = [at for at, draft in enumerate(drafts) if _fails(draft) and not follows(draft)]
    broken: dict[str, Draft] = {}
    for at, one in enumerate(judged):
        draft = one.draft
        if draft.level == "error":
            one.root = _root(judged, words, failures, at)
        text = draft.found.text
        first_broken = broken.get(draft.origin)
        one.tainted = first_broken is not None and one.root is None and _CUDA.search(text) is not None
        if first_broken is None and draft.level == "error" and _STICKY.search(text) is not None:
            broken[draft.origin] = draft
    # An echo of an echo has the root of the latter.
    roots = {id(one.draft): one.root for one in judged}
    for one in judged:
        passed = {id(one.draft)}
        while one.root is not None and id(one.root) not in passed and roots[id(one.root)] is not None:
            passed.add(id(one.root))
            one.root = roots[id(one.root)]
    return judged


def _fails(draft: Draft) -> bool:
    """Whether ``draft`` is a failure: a line without a logger's level is one where its cause is known."""
    return draft.level == "error" or (draft.level == "notice" and any(map(is_certain_cause, draft.matches)))


def _believe_news(drafts: Sequence[Draft]) -> None:
    """Take what was logged as news for a failure, where it is well known and an error without a cause follows it."""
    open_ends = [
        draft.at
        for draft in drafts
        if draft.level == "error" and draft.found.form == "line" and not any(map(is_certain_cause, draft.matches))
    ]
    for draft in drafts:
        sure = draft.matches[0].confidence if draft.matches else 0.0
        if draft.level == "mention" and sure >= _NEWS and open_ends and draft.at < open_ends[-1]:
            draft.level = "error"


def _root(
    judged: Sequence[RelatedFailure], words: Sequence[tuple[bytes, bytes]], failures: Sequence[int], at: int
) -> Draft | None:
    """The failure that the one at ``at`` echoes; None for one of its own."""
    draft, earlier = judged[at].draft, judged[:at]
    causes: Sequence[RelatedFailure] = ()
    if draft.found.chained:
        # It was raised because of, or while handling, the exception before it.
        own = [one for one in earlier if one.draft.origin == draft.origin and one.draft.found.form == "python"]
        causes = own[-1:]
    if not causes and "device-side assert" in draft.found.text:
        # An assertion of the GPU, which the first call that waits for it repeats.
        causes = [one for one in earlier if one.draft.found.kind == "device"]
    root = next((one.root or one.draft for one in causes), None)
    root = root or _repeated_draft(judged, words, at) or _reported_failure(judged, failures, at)
    if root is not None or draft.found.form != "line" or at + 1 == len(judged):
        return root
    # A record of a logger before the exception itself.
    after = judged[at + 1].draft
    is_next = after.origin == draft.origin and draft.last < after.at <= draft.last + 1
    is_raised = is_next and after.found.form == "python" and not follows(after)
    return after if is_raised and draft.is_record else None


def follows(draft: Draft) -> bool:
    """Whether a failure only passes on or notices another one."""
    first = draft.found.text.partition("\n")[0]
    return draft.found.follows or any(words.search(first) for words in (_WRAPPERS, PASSED_ON)) or supervises(draft)


def supervises(draft: Draft) -> bool:
    """Whether a failure is a report on another process, without the cause."""
    return _SUPERVISORS.search(draft.found.text.partition("\n")[0]) is not None


def _repeated_draft(judged: Sequence[RelatedFailure], words: Sequence[tuple[bytes, bytes]], at: int) -> Draft | None:
    """An earlier failure with the same words. ``words``: the letters of each core and of the whole text."""
    own, text = words[at]
    for one, (core, whole) in zip(judged[:at], words[:at], strict=True):
        if one.draft.level == "warning" or len(core) < _TELLING:
            continue
        if core in text or (len(own) >= _TELLING and own in whole):
            return one.root or one.draft
    return None


def _reported_failure(judged: Sequence[RelatedFailure], failures: Sequence[int], at: int) -> Draft | None:
    """The failure that a wrapper or a launcher noticed: of its process, or else of any; before it, or else after it.

    ``failures`` are the places of failures that do more than notice.
    """
    draft = judged[at].draft
    if not follows(draft):
        return None
    if failures:
        first = min((place > at, judged[place].draft.origin != draft.origin, place) for place in failures)
        return judged[first[2]].draft
    # Of endings alone the first one counts.
    earlier = next((one for one in judged[:at] if one.draft.level == "error"), None)
    return None if earlier is None else earlier.root or earlier.draft


# Ranks.
_SURE, _MOST = 0.8, 60
_AFTER_UNKNOWN, _BESIDE_UNKNOWN, _FIXED, _MENTIONED, _ENDED = 0.75, 0.5, 0.6, 0.4, 0.6
# A failure in one of these forms is a real one, not a remark.
_SOLID = ("python", "terminate", "c10", "compiler", "linker", "loader", "sanitizer", "assert", "debugger")
_EXACT = ("compiler", "linker", "loader", "sanitizer")
_LEVELS = ("error", "notice", "warning", "mention")


@dataclass(slots=True)
class FailureGroup:
    """A failure with its echoes."""

    root: Draft
    members: list[RelatedFailure] = field(default_factory=list)
    tainted: bool = False

    @property
    def best(self) -> LogMatch | None:
        """The match with the highest confidence (the first of several) of all members but mere endings."""
        reliable = [one for one in self.members if not one.tainted and not _is_ending(one)]
        firsts = (match for one in reliable for match in one.draft.matches[:1])
        return max(firsts, key=lambda match: match.confidence, default=None)

    @property
    def is_known(self) -> bool:
        """Whether a pattern knows it well enough for a diagnosis."""
        return self.best is not None and self.best.confidence >= LEAST_CONFIDENCE


def groups(judged: Sequence[RelatedFailure]) -> list[FailureGroup]:
    """The failures by root, in the order of the log."""
    found: dict[int, FailureGroup] = {}
    for one in judged:
        root = one.root or one.draft
        group = found.setdefault(id(root), FailureGroup(root))
        group.members.append(one)
        group.tainted = group.tainted or (one.root is None and one.tainted)
    return sorted(found.values(), key=lambda group: group.root.at)


def rank_matches(
    found: Sequence[FailureGroup], versions: dict[str, str], events: dict[int, LogEvent]
) -> tuple[LogMatch, ...]:
    """The matches, the best first, each with its confidence in this log; ``events`` by the id of their drafts."""
    scored: list[tuple[tuple[bool, int, bool, int, float], LogMatch]] = []
    for group in found:
        share = _share(group, found)
        is_exact = bool(group.root.matches) or group.root.found.form in _EXACT
        for one in group.members:
            # The failure itself says more than its callers and its supervisors.
            says_less = supervises(one.draft) or (one.root is not None and is_exact)
            for place, match in enumerate(one.draft.matches):
                if match.pattern.is_suspect and says_less:
                    continue
                version, fixed = versions.get(match.pattern.component), match.pattern.fixed
                sure = share * match.confidence * (_FIXED if version and fixed and is_fixed(version, fixed) else 1.0)
                sure *= _ENDED if _is_ending(one) else 1.0
                if one.tainted or group.tainted:
                    sure = min(sure, LEAST_CONFIDENCE / 2)
                made = replace(match, event=events[id(one.draft)], confidence=round(sure, 2))
                level = _LEVELS.index(group.root.level)
                scored.append(((sure < LEAST_CONFIDENCE, level, place > 0 or sure < _SURE, group.root.at, -sure), made))
    scored.sort(key=lambda item: item[0])
    return tuple(match for _, match in scored[:_MOST])


def _is_ending(one: RelatedFailure) -> bool:
    """Whether a failure is just the end of a process that had failed before: it may have been ended for that."""
    root = one.root
    if root is None or root.at > one.draft.at or follows(root):
        return False
    return root.found.form in _SOLID and (one.draft.found.form == "signal" or supervises(one.draft))


def _share(group: FailureGroup, found: Sequence[FailureGroup]) -> float:
    """The share of its confidence that a match keeps beside failures of unknown cause."""
    unknown = [
        other
        for other in found
        if other is not group and not other.is_known and not other.tainted and other.root.level == "error"
    ]
    solid = [other for other in unknown if other.root.found.form in _SOLID and not other.root.found.follows]
    if group.root.level == "mention":
        return _MENTIONED
    if group.root.level == "warning":
        return _BESIDE_UNKNOWN if unknown else 1.0
    before = [other for other in solid if other.root.at < group.root.at and other.root.origin == group.root.origin]
    return _AFTER_UNKNOWN if before else 1.0
