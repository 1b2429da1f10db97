"""The rules of ``classify``, and which parts of them only one kin of texts needs: what was learnt from that kin alone.

A part is an alternative of an expression, at any depth: of the patterns of the playbooks, of the table of places, of
the code's own tables; and a known issue as a whole. A kin needs it where a match that the others have without it goes
through it. In what refuses a match (``(?!...)``, ``not_near``) it is the other way about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from unittest import mock

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs import assembly, complaints, harmless, judgement, log_reading, origins, patterns
from aotidoctor.logs.assembly import Matcher
from aotidoctor.logs.forms import crash_forms, message_forms
from aotidoctor.logs.harmless import has_mark
from aotidoctor.logs.patterns import LogFailure, bound_repeats
from aotidoctor.model.report import LogMatch
from tests.corpus.kin import Known
from tests.corpus.regex_branches import Span, branches, without

_FORMS = (
    (crash_forms, "python"), (crash_forms, "cpp"), (crash_forms, "assertion"), (crash_forms, "sanitizer"),
    (crash_forms, "debugger"), (crash_forms, "dmesg"), (message_forms, "server"), (message_forms, "compiler"),
    (message_forms, "linker"), (message_forms, "loader"), (crash_forms, "signal"), (message_forms, "plain"),
    (message_forms, "other"), (message_forms, "record"),
)  # fmt: skip
_TABLES: tuple[tuple[ModuleType, str], ...] = (
    *((form, f"{stem.upper()}_START") for form, stem in _FORMS),
    (complaints, "FAILS"), (complaints, "COMPLAINS"), (complaints, "INFORMAL"), (complaints, "_VALUES"), (complaints, "CODES"),
    (complaints, "_STACK"), (complaints, "_WARNS"), (complaints, "_EVERYDAY"), (complaints, "_SUCCEEDS"),
    (harmless, "_WORDS"), (harmless, "_LINES"), (harmless, "_PROBES"), (judgement, "_SUPERVISORS"),
    (judgement, "_WRAPPERS"),
)  # fmt: skip
_TORCH = "@torch"

# What is searched: the text of a failure, the lines around it, its frame, each by name; and whose it is.
Asked = Mapping[str, str]
Hit = tuple[int, Asked]
# By field the expression, and what it is searched in; fields that begin with "not" refuse.
Rule = Mapping[str, tuple[str, str]]


class _Recorder(Matcher):
    """Keeps what patterns and places are asked about; ``asked`` and ``places`` are of the text at hand."""

    def __init__(self, own: Sequence[patterns.Pattern]) -> None:
        super().__init__(own)
        self.asked: list[Asked] = []
        self.places: list[Asked] = []

    def matches(self, found: LogFailure, around: str) -> tuple[LogMatch, ...]:
        self.asked.append({"text": found.text, "around": around})
        place: dict[str, str] = {}
        both = (_Listener(place, ""), _Listener(place, "."))
        with _places(both), mock.patch.object(origins, "_failure_reasons", return_value={""}):
            origins.match_origin(found, 1, around)
        self.places += [place] if place else []
        return super().matches(found, around)


@dataclass(frozen=True)
class _Listener:
    """Stands for an entry of the table of places, and fits nothing."""

    place: dict[str, str]
    innermost: str
    frame: str = ""
    prose: bool = False
    why: str = ""

    def fits(self, frame: str, innermost: str, text: str, around: str) -> bool:
        files = "\n".join(origins._RAISED.findall(text))
        said = {"frame": frame, "innermost": innermost, "text": text, "file": files}
        self.place.update(said, **{"own" if self.innermost else "around": around})
        return False


@contextmanager
def _places(entries: Sequence[origins.FailureOrigin | _Listener]) -> Iterator[None]:
    """These for the table of places; what was chosen of it before is forgotten, and what is chosen now, too."""
    with mock.patch.object(origins, "origins", return_value=tuple(entries)):
        origins._candidate_entries.cache_clear()
        yield
    origins._candidate_entries.cache_clear()


@cache
def _compiled(regex: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(bound_repeats(regex), re.MULTILINE | flags)


def _searches(regex: str, text: str, flags: int = 0) -> bool:
    return has_mark(text) if regex == _TORCH else _compiled(regex, flags).search(text) is not None


def _of_pattern(one: patterns.Pattern) -> Rule:
    own = one.record
    near = {f"near {at}": (regex, "around") for at, regex in enumerate(own.near)}
    not_near = {f"not_near {at}": (regex, "around") for at, regex in enumerate(own.not_near)}
    return {"regex": (own.regex, "text"), **near, **not_near}


def _of_origin(one: origins.FailureOrigin) -> Rule:
    around = "own" if one.innermost else "around"
    targets = {"frame": "frame", "innermost": "innermost", "file": "file", "near": around, "message": "text"}
    return {name: (getattr(one, name), target) for name, target in (*targets.items(), ("not_near", around))
            if getattr(one, name)}  # fmt: skip


def _own_branches(rule: Rule, hits: Sequence[Hit], flags: int = 0) -> Iterator[tuple[int, str, Span]]:
    """Kin, field and place of each alternative that only one kin uses. Who uses one matches without its siblings."""

    def is_so(name: str, regex: str, asked: Asked) -> bool:
        return _searches(regex, asked.get(rule[name][1], ""), flags) is not name.startswith("not")

    for name, (regex, target) in rule.items():
        others = [(other, own) for other, (own, _) in rule.items() if other != name]
        rest = [(kin, asked) for kin, asked in hits if all(is_so(other, own, asked) for other, own in others)]
        found = [(kin, asked[target]) for kin, asked in rest if _searches(regex, asked.get(target, ""), flags)]
        missed: list[tuple[int, str]] | None = None
        for branch in branches(regex) if regex != _TORCH else ():
            if branch.refuses:
                missed = missed or [(kin, asked[target]) for kin, asked in rest if target in asked]
                alone, users = without(regex, [branch.span]), missed
            else:
                alone, users = without(regex, branch.siblings), found
            kin = _kin_of(users, alone, flags) if branch.refuses or branch.siblings else {kin for kin, _ in users}
            kin -= {kin for kin, _ in found} if branch.refuses else set()
            if len(kin) == 1:
                yield kin.pop(), name, branch.span


def _kin_of(users: Sequence[tuple[int, str]], regex: str, flags: int) -> set[int]:
    found: set[int] = set()
    for kin, text in users:
        if kin not in found and _searches(regex, text, flags):
            found.add(kin)
        if len(found) > 1:
            break
    return found


@dataclass
class Rules:
    """All rules, and of each kin those parts of them that nobody else needs."""

    patterns: tuple[patterns.Pattern, ...]
    origins: tuple[origins.Origin, ...]
    issues: tuple[patterns.KnownIssue, ...]
    left: dict[int, list[tuple[str, int, str, Span]]]

    def note(self, kind: str, number: int, own: Iterable[tuple[int, str, Span]]) -> None:
        """Of each kin the parts of rule ``number`` that are its own."""
        for kin, field, span in own:
            self.left[kin].append((kind, number, field, span))

    @contextmanager
    def without(self, kin: int) -> Iterator[None]:
        """The rules without what is only of ``kin``."""
        parts: dict[tuple[str, int, str], list[Span]] = defaultdict(list)
        for kind, number, field, span in self.left[kin]:
            parts[kind, number, field].append(span)
        own, places, issues = list(self.patterns), list(self.origins), list(self.issues)
        with ExitStack() as stack:
            for (kind, number, field), spans in parts.items():
                if kind == "pattern":
                    own[number] = _cut_pattern(own[number], field, spans)
                elif kind == "origin":
                    cut = without(getattr(places[number], field), spans)
                    places[number] = replace(places[number], **{field: cut})
                elif kind == "issue":
                    issues.remove(self.issues[number])
                else:
                    module, name = _TABLES[number]
                    table = getattr(module, name)
                    changed = re.compile(without(table.pattern, spans), table.flags & ~re.UNICODE)
                    stack.enter_context(mock.patch.object(module, name, changed))
            keywords, matcher = log_reading._tools_for(log_reading.pattern_files())
            less = copy(matcher)
            less._patterns = own
            forms = tuple(
                (getattr(form, f"{stem.upper()}_START"), getattr(form, f"read_{stem}")) for form, stem in _FORMS
            )
            stack.enter_context(mock.patch.object(assembly, "FORMS", forms))
            stack.enter_context(mock.patch.object(log_reading, "_tools_for", return_value=(keywords, less)))
            stack.enter_context(_places(places))
            stack.enter_context(mock.patch.object(patterns, "known_issues", return_value=tuple(issues)))
            yield


def _cut_pattern(pattern: patterns.Pattern, field: str, spans: Sequence[Span]) -> patterns.Pattern:
    name, _, number = field.partition(" ")
    record = pattern.record
    if not number:
        return replace(pattern, record=replace(record, regex=without(record.regex, spans)))
    listed = list(getattr(record, name))
    listed[int(number)] = without(listed[int(number)], spans)
    return replace(pattern, record=replace(record, **{name: tuple(listed)}))


def rules_of(texts: Sequence[Known]) -> Rules:
    """The rules with the use that ``texts`` make of them."""
    made = Rules(patterns.load_patterns(), origins.origins(), patterns.known_issues(), defaultdict(list))
    recorder = _Recorder(made.patterns)
    asked: list[Hit] = []
    places: list[Hit] = []
    keywords, _ = log_reading._tools_for(log_reading.pattern_files())
    with mock.patch.object(log_reading, "_tools_for", return_value=(keywords, recorder)):
        for text in (one for one in texts if one.is_evidence):
            recorder.asked, recorder.places = [], []
            classify_text(text.symptom.encode(), "log")
            asked += [(text.kin, one) for one in recorder.asked]
            places += [(text.kin, one) for one in recorder.places]
    for number, pattern in enumerate(made.patterns):
        hits = [(kin, one) for kin, one in asked if pattern.may_match(one["text"])]
        made.note("pattern", number, _own_branches(_of_pattern(pattern), hits))
    for number, origin in enumerate(made.origins):
        made.note("origin", number, _own_branches(_of_origin(origin), places))
    whole: list[Hit] = [(text.kin, {"text": text.symptom}) for text in texts if text.is_evidence]
    for number, (module, name) in enumerate(_TABLES):
        table = getattr(module, name)
        made.note("table", number, _own_branches({"": (table.pattern, "text")}, whole, table.flags & re.IGNORECASE))
    for number, issue in enumerate(made.issues):
        kin = {kin for kin, one in whole if all(word in " ".join(one["text"].split()) for word in issue.words)}
        made.note("issue", number, ((own, "", (0, 0)) for own in kin if len(kin) == 1))
    return made
