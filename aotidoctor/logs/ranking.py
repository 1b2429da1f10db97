"""Which match says what the cause is: the first failure that is known well enough, not the loudest.

A failure and its echoes are one group, known by the best match of any of them. Groups of errors come before those of
mere warnings; sure ones before unsure ones; and then the first before the later ones. What comes after a failure that
nobody knows may well follow from it, and is less sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from aotidoctor.logs.assembly import Draft
from aotidoctor.logs.judgement import Judged, follows, supervises
from aotidoctor.logs.patterns import LEAST_CONFIDENCE
from aotidoctor.logs.versions import is_fixed
from aotidoctor.model.log import LogEvent, LogMatch

_SURE, _MOST = 0.8, 60
_AFTER_UNKNOWN, _BESIDE_UNKNOWN, _FIXED, _MENTIONED, _ENDED = 0.75, 0.5, 0.6, 0.4, 0.6
# A failure told in one of these forms is a real one, not somebody's remark.
_SOLID = ("python", "terminate", "c10", "compiler", "linker", "loader", "sanitizer", "assert", "debugger")
_EXACT = ("compiler", "linker", "loader", "sanitizer")
_LEVELS = ("error", "notice", "warning", "mention")


@dataclass(slots=True)
class Group:
    """A failure with its echoes."""

    root: Draft
    members: list[Judged] = field(default_factory=list)
    tainted: bool = False

    @property
    def best(self) -> LogMatch | None:
        """The surest match of all members but mere endings; of equally sure ones the first."""
        told = [one for one in self.members if not one.tainted and not _is_ending(one)]
        firsts = (match for one in told for match in one.draft.matches[:1])
        return max(firsts, key=lambda match: match.confidence, default=None)

    @property
    def is_known(self) -> bool:
        """Whether a pattern knows it well enough for a diagnosis."""
        return self.best is not None and self.best.confidence >= LEAST_CONFIDENCE


def groups(judged: Sequence[Judged]) -> list[Group]:
    """The failures by root, in the order of the log."""
    found: dict[int, Group] = {}
    for one in judged:
        root = one.root or one.draft
        group = found.setdefault(id(root), Group(root))
        group.members.append(one)
        group.tainted = group.tainted or (one.root is None and one.tainted)
    return sorted(found.values(), key=lambda group: group.root.at)


def ranked(found: Sequence[Group], versions: dict[str, str], events: dict[int, LogEvent]) -> tuple[LogMatch, ...]:
    """The matches, the best first, each with its confidence in this log; ``events`` by the id of their drafts."""
    scored: list[tuple[tuple[bool, int, bool, int, float], LogMatch]] = []
    for group in found:
        share = _share(group, found)
        for one in group.members:
            for place, match in enumerate(one.draft.matches):
                if match.pattern.is_suspect and _says_less(one, group):
                    continue
                sure = share * match.confidence * (_FIXED if _is_over(match, versions) else 1.0)
                sure *= _ENDED if _is_ending(one) else 1.0
                if one.tainted or group.tainted:
                    sure = min(sure, LEAST_CONFIDENCE / 2)
                made = replace(match, event=events[id(one.draft)], confidence=round(sure, 2))
                level = _LEVELS.index(group.root.level)
                scored.append(((sure < LEAST_CONFIDENCE, level, place > 0 or sure < _SURE, group.root.at, -sure), made))
    scored.sort(key=lambda item: item[0])
    return tuple(match for _, match in scored[:_MOST])


def _says_less(one: Judged, group: Group) -> bool:
    """What failed has said more than those who called it, and those who watched it know nothing."""
    if supervises(one.draft):
        return True
    return one.root is not None and (bool(group.root.matches) or group.root.found.form in _EXACT)


def _is_ending(one: Judged) -> bool:
    """Whether it only tells how a process ended that had failed before: it may have been ended for that."""
    root = one.root
    if root is None or root.at > one.draft.at or follows(root):
        return False
    return root.found.form in _SOLID and (one.draft.found.form == "signal" or supervises(one.draft))


def _share(group: Group, found: Sequence[Group]) -> float:
    """How much of its confidence a match keeps beside the failures that nobody knows."""
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


def _is_over(match: LogMatch, versions: dict[str, str]) -> bool:
    version = versions.get(match.pattern.component)
    return bool(version and match.pattern.fixed) and is_fixed(version or "", match.pattern.fixed)
