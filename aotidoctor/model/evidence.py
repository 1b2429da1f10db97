"""Record evidence: what was observed, what was not checked and why, and where.

Also the reason to give when aotidoctor itself fails, which is never evidence about the model; the phrases that all
messages share; and what is wrong with an exported program before it is compiled.
"""

from __future__ import annotations

import enum
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import field

from aotidoctor.model.errors import LimitReachedError
from aotidoctor.model.record import record


# Phrases that all messages share.
def list_names(names: Sequence[str], most: int = 5) -> str:
    """The first ``most`` names joined by commas, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 run``, ``2 runs``, ``2 leaves``."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def shorten(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters, with the count of what is missing; whole where that is not shorter."""
    more = f"… ({len(text) - limit} more characters)"
    return text if len(text) <= limit + len(more) else text[:limit] + more


# Failures of aotidoctor itself.
FAILED_HERE = "aotidoctor failed here"


class OwnCodeError(Exception):
    """A module of aotidoctor itself could not be imported."""


def whereabouts(error: Exception) -> str:
    """``KeyError at session.py:12``: the type and the place alone, as the message may hold what is private."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {where.filename.rpartition('/')[2]}:{where.lineno}"


def describe_failure(frames: int = 4) -> str:
    """The reason for ``NotChecked`` within an ``except`` block: the exception, with its innermost ``frames``."""
    return f"{FAILED_HERE}: {traceback.format_exc(limit=-frames)}"


# Findings.
Scalar = str | int | float | bool | None
FactValue = Scalar | tuple[Scalar, ...]


class Severity(enum.Enum):
    """Severity of a finding; ``rank`` orders them. The severity of findings decides the exit status."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for info, 1 for warn, 2 for error."""
        return ("info", "warn", "error").index(self.value)


@record
class FileSource:
    """A place in a file: the package member, the inputs file or a file of the host.

    ``line`` and ``column`` count from 1; the column is known of config.pbtxt only.
    """

    file: str
    line: int | None = None
    column: int | None = None


@record
class RunSource:
    """A place in the output of a child run (``run`` is its id, ``stream`` is stdout, stderr or result)."""

    run: str
    stream: str
    line: int | None = None


Source = FileSource | RunSource


@record
class Evidence:
    """One observation of a check or probe; reports and their JSON list it under ``findings``.

    ``code`` belongs to the check or probe that found it, ``kind`` tells its variants apart (playbooks match on both).
    ``facts`` are machine-readable details for playbooks and treatments. ``id`` is given by the pipeline.
    """

    id: str = ""
    code: str
    kind: str
    severity: Severity
    subject: str | None
    observed: str
    expected: str
    message: str = ""
    source: Source | None = None
    facts: Mapping[str, FactValue] = field(default_factory=dict)


@record
class NotChecked:
    """Something that was not looked at, and why. Every report holds it.

    ``moot``: the question does not arise in this case, and nothing that the reader could do would change that.
    """

    code: str
    name: str
    reason: str
    moot: bool = False

    @property
    def is_fault(self) -> bool:
        """True where aotidoctor itself failed: that says nothing about the model."""
        return self.reason.startswith(FAILED_HERE)


LIMIT_CODE = "AD-LIMIT"


def limit_not_checked(name: str, reached: LimitReachedError) -> NotChecked:
    """Note that a limit of time or memory left ``name`` out. Raises ``reached`` where only the report may follow."""
    if reached.final:
        raise reached
    return NotChecked(code=LIMIT_CODE, name=name, reason=str(reached))


@record(kw_only=False)
class Maker:
    """Makes evidence of one code and severity, as ``FIND.error`` of a check does; of one source, if it has one."""

    code: str
    severity: Severity
    source: Source | None = None

    def __call__(
        self,
        kind: str,
        subject: str | None,
        *,
        observed: str,
        expected: str,
        message: str = "",
        source: Source | None = None,
        facts: Mapping[str, FactValue] | None = None,
    ) -> Evidence:
        """``message`` is made of the other words where there is none."""
        where = f"{subject}: " if subject else ""
        return Evidence(
            code=self.code,
            kind=kind,
            severity=self.severity,
            subject=subject,
            observed=observed,
            expected=expected,
            message=message or f"{where}observed {observed}, expected {expected}",
            source=source or self.source,
            facts=facts or {},
        )


# Violations of the rules for exported programs.
@record
class Where:
    """A line of the user's source, as the node's stack trace names it."""

    file: str
    line: int
    text: str = ""


@record
class Violation:
    """One rule that the program breaks, or a remark on what AOTInductor will make of it.

    ``code`` is the rule (``VERIFY-G03``), ``kind`` its variant. ``node`` is the name of the graph's node, ``target``
    what it calls or refers to (an operator, a parameter's name); either may be missing. ``graph`` is the path of the
    submodule whose graph holds the node, empty for the top. ``where`` is the innermost line of the user's source.
    """

    code: str
    kind: str
    observed: str
    expected: str
    node: str | None = None
    target: str | None = None
    graph: str = ""
    where: Where | None = None
    facts: Mapping[str, FactValue] = field(default_factory=dict)


@record
class ExportRule:
    """One rule of ``aotidoctor.program.rules``; ``page`` is its manual page.

    ``severities`` maps each kind that the rule can report to how bad it is. ``names_target`` says that a finding is
    about the target (an operator, an input) and not the node. ``title`` is the head of the page, as a part of a
    sentence, where it is not given.
    """

    code: str
    name: str
    severities: Mapping[str, Severity]
    page: str
    title: str = ""
    names_target: bool = False

    @property
    def of_torch(self) -> bool:
        """A rule of PyTorch's own verifier, about the graph or the signature."""
        return self.code.startswith(("VERIFY-G", "VERIFY-S"))

    def __post_init__(self) -> None:
        """Take the title from the page."""
        head = self.page.partition("\n")[0].rstrip(".")
        object.__setattr__(self, "title", self.title or head[:1].lower() + head[1:])
