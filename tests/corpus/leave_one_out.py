"""What would be said of a text if nobody had ever seen it: ``python -m tests.corpus.leave_one_out [FILE...]``.

For each text of a tracker every rule is left out that no other known text needs: alternatives of the patterns, of
the places and of the code's own tables, and known issues, whose only uses among all texts are that text and its kin
(the same thread, or nearly the same words). Texts that were made up after others are no evidence for a rule; what
torch prints for faults made on purpose (``measured.jsonl``) is. FILE: more texts, in the form of ``strangers.jsonl``.

A rule that was written from the source of a program counts as if it were written from the one text that shows it. So
the figures are lower than those of a first sight.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from unittest import mock

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs import assembly, complaints, harmless, judgement, known, origins, patterns, read, severity
from aotidoctor.logs.bounded import bounded
from aotidoctor.logs.forms import (
    assertion, compiler, cpp, debugger, kernel, linker, loader, other, plain, python, record, sanitizer, server, signal,
)  # fmt: skip
from aotidoctor.logs.found import Found
from aotidoctor.logs.marks import has_mark
from aotidoctor.logs.matching import Matcher
from aotidoctor.logs.patterns import LEAST_CONFIDENCE
from aotidoctor.model.log import LogMatch
from tests.corpus.corpus import HERE
from tests.corpus.regex_branches import Span, branches, without

_FORMS = (
    python, cpp, assertion, sanitizer, debugger, kernel, server, compiler, linker, loader, signal, plain, other, record,
)  # fmt: skip
_TABLES: tuple[tuple[ModuleType, str], ...] = (
    *((form, "START") for form in _FORMS),
    (complaints, "_FAILS"), (complaints, "_COMPLAINS"), (complaints, "_TOLD"), (complaints, "_VALUES"),
    (complaints, "_STACK"), (complaints, "_WARNS"), (complaints, "_EVERYDAY"), (complaints, "_SUCCEEDS"),
    (harmless, "_WORDS"), (harmless, "_LINES"), (severity, "_PROBES"), (judgement, "_SUPERVISORS"),
    (judgement, "_WRAPPERS"),
)  # fmt: skip
_FILES = ("reports", "further", "measured", "variants", "strangers", "unseen", "later", "marks")
_ALIKE, _WORDS_OF, _TORCH = 0.5, 4, "@torch"


@dataclass(frozen=True)
class Known:
    """A text, its labels and its kin (a number). ``is_evidence``: it was not made up after another one."""

    id: str
    symptom: str
    half: str
    accepted: tuple[str | None, ...]
    kin: int
    is_evidence: bool
    is_asked: bool


# What is searched: the text of a failure, the lines around it, its frame, each by name; and whose it is.
Asked = Mapping[str, str]
Hit = tuple[int, Asked]
# By field the expression, and what it is searched in; fields that begin with "not" refuse.
Rule = Mapping[str, tuple[str, str]]


def load(files: Sequence[Path]) -> list[Known]:
    """All texts with their kin."""
    rows = [
        (path.stem, json.loads(line)) for path in files for line in path.read_text(encoding="utf-8").splitlines()
    ]
    rows = [(name, row) for name, row in rows if row["symptom"]]
    kins = _kins([row for _, row in rows])
    return [_known(name, row, kin) for (name, row), kin in zip(rows, kins, strict=True)]


def _known(name: str, row: Mapping[str, object], kin: int) -> Known:
    half, cause, url = str(row.get("half", "")), row.get("cause"), row.get("url")
    half = half if half in ("failing", "healthy", "other", "unknown") else "failing" if cause else "unknown"
    is_sure = row.get("confidence", "high") in ("high", "medium")
    shared = row.get("shared", ())
    accepted = (cause, *(shared if isinstance(shared, list) else ()))
    is_asked = bool(url) and is_sure
    is_evidence = bool(url) or name == "measured"
    return Known(str(row["id"]), str(row["symptom"]), half, accepted, kin, is_evidence, is_asked)


def _kins(rows: Sequence[Mapping[str, object]]) -> list[int]:
    """A number for each thread, and for texts that share most of their words."""
    kin = list(range(len(rows)))
    threads: dict[str, int] = {}
    words = [_shingles(str(row["symptom"])) for row in rows]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        url = re.sub(r"[#?].*", "", str(row.get("url") or ""))
        near = [threads.setdefault(url, at)] if url else []
        shared = Counter(one for word in words[at] for one in holders[word])
        near += [one for one, n in shared.items() if n >= _ALIKE * min(len(words[at]), len(words[one]))]
        for one in near:
            old, new = kin[at], kin[one]
            kin = [new if number == old else number for number in kin]
        for word in words[at]:
            holders[word].append(at)
    return kin


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[A-Za-z_]{2,}", text)
    return {tuple(words[at : at + _WORDS_OF]) for at in range(max(len(words) - _WORDS_OF + 1, 1))}


class _Recorder(Matcher):
    """Keeps what patterns and places are asked about; ``asked`` and ``places`` are of the text at hand."""

    def __init__(self, own: Sequence[patterns.Pattern]) -> None:
        super().__init__(own)
        self.asked: list[Asked] = []
        self.places: list[Asked] = []

    def matches(self, found: Found, around: str) -> tuple[LogMatch, ...]:
        self.asked.append({"text": found.text, "around": around})
        place = {}
        with mock.patch.object(origins, "origins", lambda: (_Listener(place, ""), _Listener(place, "."))):
            origins.arisen(found, 1, around)
        self.places += [place] if place else []
        return super().matches(found, around)


@dataclass(frozen=True)
class _Listener:
    """Stands for an entry of the table of places, and fits nothing."""

    place: dict[str, str]
    innermost: str
    frame: str = ""

    def fits(self, frame: str, innermost: str, text: str, around: str) -> bool:
        files = "\n".join(origins._RAISED.findall(text))  # noqa: SLF001
        said = {"frame": frame, "innermost": innermost, "text": text, "file": files}
        self.place.update(said, **{"own" if self.innermost else "around": around})
        return False


@cache
def _compiled(regex: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(bounded(regex), re.MULTILINE | flags)


def _searches(regex: str, text: str, flags: int = 0) -> bool:
    return has_mark(text) if regex == _TORCH else _compiled(regex, flags).search(text) is not None


def _of_pattern(one: patterns.Pattern) -> Rule:
    own = one.record
    near = {f"near {at}": (regex, "around") for at, regex in enumerate(own.near)}
    not_near = {f"not_near {at}": (regex, "around") for at, regex in enumerate(own.not_near)}
    return {"regex": (own.regex, "text"), **near, **not_near}


def _of_origin(one: origins.Origin) -> Rule:
    around = "own" if one.innermost else "around"
    targets = {"frame": "frame", "innermost": "innermost", "file": "file", "near": around, "said": "text"}
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
    issues: tuple[known.Known, ...]
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
            keywords, matcher = read._tools()  # noqa: SLF001
            less = copy(matcher)
            less._patterns = own  # noqa: SLF001
            forms = tuple((form.START, form.read) for form in _FORMS)
            stack.enter_context(mock.patch.object(assembly, "FORMS", forms))
            stack.enter_context(mock.patch.object(read, "_tools", lambda: (keywords, less)))
            stack.enter_context(mock.patch.object(origins, "origins", lambda: tuple(places)))
            stack.enter_context(mock.patch.object(known, "known_issues", lambda: tuple(issues)))
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
    made = Rules(patterns.load_patterns(), origins.origins(), known.known_issues(), defaultdict(list))
    recorder = _Recorder(made.patterns)
    asked: list[Hit] = []
    places: list[Hit] = []
    with mock.patch.object(read, "_tools", lambda tools=read._tools(): (tools[0], recorder)):  # noqa: SLF001
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


def outcome(text: Known, rules: Rules) -> tuple[str, str | None, float]:
    """What is said of ``text`` without what is its own: a word for it, the cause, how sure."""
    with rules.without(text.kin):
        _, diagnoses, reading = classify_text(text.symptom.encode(), "log")
    cause = diagnoses[0].cause if diagnoses else None
    sure = diagnoses[0].confidence if diagnoses else 0.0
    failed = bool(reading.unknown) or any(match.event.level == "error" for match in reading.matches)
    if text.half == "healthy":
        word = "right" if not failed and cause is None else "shared" if cause in text.accepted else "false alarm"
    elif cause is None:
        is_fine = text.half != "failing" or "unknown" in text.accepted
        word = "no failure" if not failed else "silent, as it may be" if is_fine else "silent"
    else:
        word = "right" if cause in text.accepted else f"wrong, {'high' if sure >= LEAST_CONFIDENCE else 'low'}"
    return word, cause, sure


def main(files: Sequence[str]) -> None:
    """Print the figures, and each text of which something else is said than what it turned out to be."""
    texts = load([*(HERE / f"{name}.jsonl" for name in _FILES), *map(Path, files)])
    rules = rules_of(texts)
    counts: Counter[tuple[str, str]] = Counter()
    for text in texts:
        if text.is_asked:
            word, cause, sure = outcome(text, rules)
            counts[text.half, word] += 1
            if word not in ("right", "shared", "silent, as it may be"):
                print(f"{text.half:8} {word:12} {text.id:40} {cause} {sure:.2f} {text.accepted}")
    for half in dict.fromkeys(half for half, _ in counts):
        total = sum(count for (own, _), count in counts.items() if own == half)
        print(half, total, {word: f"{n} ({n / total:.1%})" for (own, word), n in counts.most_common() if own == half})


if __name__ == "__main__":
    main(sys.argv[1:])
