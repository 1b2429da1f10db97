"""What was seen, what was not looked at, and where."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.fault import FAILED_HERE
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.record import record

Scalar = str | int | float | bool | None
FactValue = Scalar | tuple[Scalar, ...]


def read_fact(value: JsonValue) -> FactValue:
    """A fact out of JSON; what cannot be one is None."""
    if isinstance(value, list):
        return tuple(item if isinstance(item, str | int | float | bool) else None for item in value)
    return value if isinstance(value, str | int | float | bool) else None


class Severity(enum.Enum):
    """How bad a finding is; ``rank`` orders them. The severity of findings decides the exit status."""

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
    """One finding.

    ``code`` belongs to the check or probe that found it, ``kind`` tells its variants apart (playbooks match on both).
    ``facts`` are machine-readable details for playbooks and treatments. ``id`` is given by the pipeline.
    """

    code: str
    kind: str
    severity: Severity
    subject: str | None
    observed: str
    expected: str
    message: str = ""
    source: Source | None = None
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    id: str = ""


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


@record(kw_only=False)
class Maker:
    """Makes evidence of one code and severity, as ``FIND.error`` of a check does."""

    code: str
    severity: Severity

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
            source=source,
            facts=facts or {},
        )
