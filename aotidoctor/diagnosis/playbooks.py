"""Load playbooks, check their heads field by field, and fill their titles and remedies with facts.

A playbook file is ``+++``, TOML, ``+++``, prose. Only the head is needed to diagnose; the prose is read on request.
Parsing TOML is the costly part of starting up, so ``load_playbooks`` can leave out the files that name none of the
codes in hand: such a file cannot match. Everything about a file that is not as it must be raises ``PlaybookError``
with file, key, observed and expected; ``check_prose`` adds what only the tests need to know.

Texts hold ``{subject}`` or ``{observed|something}``. Besides facts there are ``subject``, ``leaf`` (the subject
without ``.shape[0]``), ``observed``, ``expected`` and ``said`` (what was found behind a failed check, else the
message of a run, else what was observed). A name that the leading evidence does not have is replaced by what stands
behind ``|``, or by ``?``. Braces around anything but a name are left alone, so commands may hold Python dictionaries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.model import load_toml
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Condition, Playbook, playbook_file, playbook_files
from aotidoctor.model.torch_names import qualified_name

# Heads.
FENCE = "+++"
# Of ours, and of plugins.
CODE = re.compile(
    r"AD-(ART|HOST|LOAD|IN|PTE|REF|RUN|OUT|LOG)-\d{3}$|(TRITON|VERIFY)-([A-Z]\d+|\*)$"
    r"|(?!AD-|TRITON-|VERIFY-|LOG-)[A-Z][A-Z0-9]{1,19}(-[A-Z0-9]{1,20}){1,4}$"
)
HEAD_STAGES: Mapping[str, range] = {
    "artifact": range(100, 200),
    "host": range(200, 300),
    "load": range(300, 400),
    "inputs": range(400, 500),
    "run": range(500, 600),
    "output": range(600, 700),
    "compile": range(700, 800),
    "other": range(800, 900),
}
# Causes of these may have no evidence but the lines of a log.
LOG_STAGES = ("compile", "other")


class PlaybookError(AotidoctorError):
    """A playbook has a wrong form; the message has the place, observed and expected."""


def split_head(text: str, where: str) -> tuple[str, str]:
    """Split a playbook file into ``(head, prose)``. Raises ``PlaybookError`` when the fences are not there."""
    if not text.startswith(FENCE + "\n"):
        raise PlaybookError(f"{where}: observed {text[:20]!r}, expected a first line of {FENCE}")
    head, fence, prose = text[len(FENCE) + 1 :].partition(f"\n{FENCE}\n")
    if not fence:
        raise PlaybookError(f"{where}: observed no closing fence, expected a second line of {FENCE} after the head")
    return head, prose


def parse_toml(text: str, where: str) -> dict[str, object]:
    """Parse a TOML table. Raises ``PlaybookError`` with the parser's line and column."""
    try:
        table: dict[str, object] = load_toml(text)
    except ValueError as error:
        raise PlaybookError(f"{where}: not TOML: {error}") from error
    return table


class Head:
    """Typed access to one table. Each getter removes its key; the keys that are left were not understood."""

    error: type[AotidoctorError] = PlaybookError

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        self._left = dict(table)
        self.where = where

    def text(self, key: str, default: str | None = None) -> str:
        """Read a string; required when ``default`` is None."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a string")
        return value

    def number(self, key: str, allowed: range) -> int:
        """Read a required whole number inside ``allowed``."""
        value = self._take(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise self.wrong(key, value, f"{allowed.start}..{allowed.stop - 1}")
        return value

    def share(self, key: str, *, optional: bool = False) -> float | None:
        """Read a number in 0..1; None only if ``optional`` and absent."""
        value = self._left.pop(key, None) if optional else self._take(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise self.wrong(key, value, "a number from 0 to 1")
        return float(value)

    def flag(self, key: str) -> bool:
        """Read a bool, false when absent."""
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def severity(self, key: str) -> Severity:
        """Read ``warn`` or ``error``: information never makes a diagnosis."""
        value = self._take(key, None)
        if value not in ("warn", "error"):
            raise self.wrong(key, value, "'warn' or 'error'")
        return Severity(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of strings, empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, value, "a list of strings")
        return tuple(value)

    def tables(self, key: str) -> tuple[Head, ...]:
        """Read a list of inline tables, empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, value, "a list of tables")
        return tuple(Head(item, f"{self.where}: {key}[{at}]") for at, item in enumerate(value))

    def conditions(self, key: str) -> tuple[Condition, ...]:
        """Read a list of conditions, empty when absent."""
        return tuple(condition(table) for table in self.tables(key))

    def facts(self, key: str) -> dict[str, str | int | float | bool]:
        """Read a table of scalars, empty when absent."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, (str, int, float)) for item in value.values()):
            raise self.wrong(key, value, "a table of strings, numbers and booleans")
        return value

    def done(self) -> None:
        """Raise ``PlaybookError`` if a key is left over."""
        if self._left:
            raise self.error(f"{self.where}: unknown key {', '.join(sorted(self._left))}")

    def wrong(self, key: str, observed: object, expected: str) -> AotidoctorError:
        """Make the error for a wrong value."""
        return self.error(f"{self.where}: {key}: observed {observed!r}, expected {expected}")

    def _take(self, key: str, default: object) -> object:
        if key not in self._left and default is None:
            raise self.error(f"{self.where}: {key}: missing")
        return self._left.pop(key, default)


def condition(head: Head) -> Condition:
    """Read a condition from its inline table."""
    code = head.text("code")
    if not CODE.match(code):
        raise head.wrong(
            "code",
            code,
            "AD- and ART, HOST, LOAD, IN, PTE, REF, RUN, OUT or LOG, and three digits; or TRITON- or VERIFY- and a "
            "rule; or that of a plugin",
        )
    kind = head.text("kind", "")
    found = Condition(
        code=code,
        kind=kind or None,
        facts=head.facts("facts"),
        confidence=head.share("confidence", optional=True),
        certain=head.flag("certain"),
    )
    head.done()
    return found


def one_of(head: Head, key: str, choices: Iterable[str]) -> str:
    """Read a required string that is one of ``choices``."""
    value, known = head.text(key), tuple(choices)
    if value not in known:
        raise head.wrong(key, value, f"one of {', '.join(known)}")
    return value


# Files.
HEADINGS = ("What happened", "Why", "Confirm it", "Fix", "When this is not it", "References")
MATCHES, DOES_NOT = "matches", "does-not-match"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"^```toml (matches|does-not-match)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Lines of a log for this cause; only aotidoctor.logs reads them.
_LOG = re.compile(r"^```toml (?:log|known)\n.*?^```$", re.MULTILINE | re.DOTALL)


def load_playbooks(mentioning: Collection[str] | None = None) -> tuple[Playbook, ...]:
    """Load all playbooks by weight; with ``mentioning`` only those whose head names one of these evidence codes.

    Raises ``PlaybookError`` for a file that breaks the form.
    """
    wanted = None if mentioning is None else frozenset(mentioning)
    return _load(playbook_files(), wanted)


@lru_cache(maxsize=8)
def _load(paths: tuple[Path, ...], mentioning: frozenset[str] | None) -> tuple[Playbook, ...]:
    found = []
    for path in paths:
        head, _ = split_head(_text(path), str(path))
        # `TRITON-*` of `TRITON-R27`.
        if mentioning is None or any(code in head or f"{code.partition('-')[0]}-*" in head for code in mentioning):
            found.append(parse_playbook(head, path))
    return tuple(sorted(found, key=lambda playbook: (playbook.weight, playbook.cause)))


def find_playbook(cause: str) -> Playbook | None:
    """Load the playbook of one cause, None when there is none."""
    path = playbook_file(cause)
    return None if path is None else read_playbook(path)


def read_playbook(path: Path) -> Playbook:
    """Load one playbook file. Raises ``PlaybookError``."""
    return parse_playbook(split_head(_text(path), str(path))[0], path)


def parse_playbook(text: str, path: Path) -> Playbook:
    """Parse and check ``text``, the head of the file ``path``. Raises ``PlaybookError``."""
    head = Head(parse_toml(text, path.name), path.name)
    stage = one_of(head, "stage", HEAD_STAGES)
    playbook = Playbook(
        cause=one_of(head, "cause", (path.stem,)),
        stage=stage,
        title=head.text("title"),
        any_of=head.conditions("any_of"),
        all_of=head.conditions("all_of"),
        none_of=head.conditions("none_of"),
        explains=head.texts("explains"),
        severity=head.severity("severity"),
        weight=head.number("weight", HEAD_STAGES[stage]),
        confidence=head.share("confidence") or 0.0,
        symptoms=head.texts("symptoms"),
        looked_like=head.text("looked_like"),
        remedy=head.text("remedy"),
        command=head.text("command", ""),
        treatment=head.text("treatment", "") or None,
        would_confirm=head.text("would_confirm"),
        versions=head.text("versions", ""),
        path=str(path),
    )
    head.done()
    if not playbook.any_of and not playbook.all_of and stage not in LOG_STAGES:
        raise PlaybookError(f"{path.name}: any_of: missing, and so is all_of: it would match everything")
    return playbook


def sections_of(playbook: Playbook) -> dict[str, str]:
    """Text by heading, in order, without the example blocks."""
    _, prose = split_head(_text(Path(playbook.path)), playbook.path)
    parts = _HEADING.split(_LOG.sub("", _EXAMPLE.sub("", prose)))
    return {title.strip(): text.strip() for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def examples_of(playbook: Playbook) -> Mapping[str, tuple[Head, ...]]:
    """The evidence tables of both example blocks, under ``matches`` and ``does-not-match``."""
    _, prose = split_head(_text(Path(playbook.path)), playbook.path)
    found: dict[str, tuple[Head, ...]] = {}
    for name, body in _EXAMPLE.findall(prose):
        if name in found:
            raise PlaybookError(f"{playbook.path}: two blocks of {name}, expected one")
        found[name] = Head(parse_toml(body, f"{playbook.path} ({name})"), playbook.path).tables("evidence")
    return found


def check_prose(playbook: Playbook) -> None:
    """Raise ``PlaybookError`` unless headings and example blocks are as they must be."""
    sections = sections_of(playbook)
    if tuple(sections) != HEADINGS:
        raise PlaybookError(f"{playbook.path}: observed headings {tuple(sections)}, expected {HEADINGS}")
    empty = [title for title, text in sections.items() if not text]
    if empty:
        raise PlaybookError(f"{playbook.path}: no text under {', '.join(empty)}")
    examples = examples_of(playbook)
    if not examples.get(MATCHES) or DOES_NOT not in examples:
        raise PlaybookError(f"{playbook.path}: observed blocks {sorted(examples)}, expected {MATCHES} and {DOES_NOT}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlaybookError(f"{path}: cannot be read: {error}") from error


# Known issues: facts of public trackers.
# Of all words of an entry together, in characters: fewer are an everyday message.
LEAST_WORDS = 18
_KNOWN_BLOCK = re.compile(r"^```toml known\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@record
class KnownIssue:
    """An issue of a public tracker. Empty texts: the tracker does not say.

    It is known by the ``words`` of its message, or by how it behaves: ``operator`` gives wrong ``symptom`` (``numbers``
    or ``dtype``) for one of ``dtypes``.
    """

    cause: str
    issue: str
    url: str
    words: tuple[str, ...] = ()
    operator: str = ""
    symptom: str = ""
    dtypes: tuple[str, ...] = ()
    affected: str = ""
    fixed: str = ""
    workaround: str = ""

    @property
    def sentence(self) -> str:
        """The sentence for a report."""
        affects = f", affects {self.affected}" if self.affected else ""
        fixed = f", fixed: {self.fixed}" if self.fixed else ""
        return f"known: {self.issue}{affects}{fixed}"


def read_known_issues(cause: str, text: str) -> tuple[KnownIssue, ...]:
    """The entries in the text of one playbook. Raises ``PlaybookError``."""
    where = f"{cause}.md: toml known"
    found: list[KnownIssue] = []
    for body in _KNOWN_BLOCK.findall(text):
        block = Head(parse_toml(body, where), where)
        for entry in block.tables("known"):
            issue = KnownIssue(
                cause=cause,
                issue=entry.text("issue"),
                url=entry.text("url"),
                words=entry.texts("words"),
                operator=entry.text("operator", ""),
                symptom=entry.text("symptom", ""),
                dtypes=entry.texts("dtypes"),
                affected=entry.text("affected", ""),
                fixed=entry.text("fixed", ""),
                workaround=entry.text("workaround", ""),
            )
            behaves = issue.operator and issue.symptom in ("numbers", "dtype") and issue.dtypes
            if not issue.url.startswith("https://") or bool(behaves) is bool(issue.words):
                raise entry.wrong("known", issue.issue, "a url, and words, or operator, symptom and dtypes")
            if issue.words and sum(map(len, issue.words)) < LEAST_WORDS:
                raise entry.wrong("words", issue.words, "more of them: these are an everyday message")
            entry.done()
            found.append(issue)
        block.done()
    return tuple(found)


def known_fault(playbook: Playbook, lead: Evidence, findings: Sequence[Evidence]) -> KnownIssue | None:
    """The issue of a tracker whose operator, symptom and dtype are those of a wrong step of the compiler."""
    if lead.code not in ("AD-RUN-018", "AD-RUN-038"):
        return None
    symptom = "dtype" if lead.kind == "dtype" else "numbers"
    dtypes = [lead.facts.get("expected"), *(item.facts.get("dtype") for item in findings if item.code == "AD-RUN-011")]
    dtype = next((one for one in dtypes if one is not None), None)
    # `remainder` in aten.remainder.Tensor and in cpp_fused_mul_remainder_0.
    names = f".{lead.subject or ''}.".replace("_", ".")
    return next(
        (
            one
            for one in read_known_issues(playbook.cause, _text(Path(playbook.path)))
            if one.symptom == symptom and dtype in one.dtypes and f".{one.operator.replace('_', '.')}." in names
        ),
        None,
    )


# Texts.
NAME = re.compile(r"\{([a-z_]+)(?:\|([^{}]*))?\}")
_PART = re.compile(r"\.(?:shape\[\d+\]|shape|stride|dtype|device)$")


def with_facts(lead: Evidence, evidence: Sequence[Evidence]) -> Evidence:
    """Add to ``lead`` the facts of less severe evidence that it lacks."""
    notes = [item.facts for item in evidence if item.severity.rank < lead.severity.rank]
    added = {key: value for facts in notes for key, value in facts.items() if lead.facts.get(key) is None}
    return replace(lead, facts={**lead.facts, **added}) if added else lead


def fill_text(template: str, lead: Evidence) -> str:
    """Fill the template with the facts of ``lead``."""

    def value(found: re.Match[str]) -> str:
        return _fact_text(_fact(lead, found.group(1))) or found.group(2) or "?"

    return NAME.sub(value, template)


def title_of(template: str, lead: Evidence, evidence: Sequence[Evidence]) -> str:
    """Fill the title, with the number of other subjects of the same finding."""
    others = {item.subject for item in evidence if item.code == lead.code and item.kind == lead.kind} - {lead.subject}
    title = fill_text(template, lead)
    return f"{title} (and {len(others)} more)" if others else title


def subject_of(lead: Evidence) -> str | None:
    """Subject of the evidence; an operator always as ``ops::scale``."""
    subject = lead.subject
    return qualified_name(subject) if subject is not None and subject.startswith("torch.ops.") else subject


def leaf_of(subject: str | None) -> str | None:
    """Leaf of a subject: ``args[0]`` of ``args[0].shape[1]``; None where there is no subject."""
    return None if subject is None else _PART.sub("", subject)


def _fact(lead: Evidence, name: str) -> FactValue:
    match name:
        case "subject":
            return subject_of(lead)
        case "leaf":
            path = lead.facts.get("path")
            return path if isinstance(path, str) else leaf_of(lead.subject)
        case "observed":
            return lead.observed
        case "said":
            return lead.facts.get("found") or lead.facts.get("line") or lead.observed
        case "expected":
            return lead.expected
        case _:
            return lead.facts.get(name)


def _fact_text(value: FactValue) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple) and any(isinstance(item, str) for item in value):
        return ", ".join(map(str, value))
    if isinstance(value, tuple):
        inner = ", ".join("?" if item is None else str(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value)
