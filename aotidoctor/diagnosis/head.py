"""The TOML head of a playbook, checked field by field, so that a slip names its file, key and value.

A playbook file is ``+++``, TOML, ``+++``, prose. Only the head is needed to diagnose; the prose is read when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aotidoctor.model import toml
from aotidoctor.model.diagnosis import Condition
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.evidence import Severity

FENCE = "+++"
# Of ours, and of plugins.
CODE = re.compile(
    r"AD-(ART|HOST|LOAD|IN|REF|RUN|OUT|LOG)-\d{3}$|(TRITON|VERIFY)-([A-Z]\d+|\*)$"
    r"|(?!AD-|TRITON-|VERIFY-|LOG-)[A-Z][A-Z0-9]{1,19}(-[A-Z0-9]{1,20}){1,4}$"
)
STAGES: Mapping[str, range] = {
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
    """A playbook breaks the form; the message says where, observed and expected."""


def split(text: str, where: str) -> tuple[str, str]:
    """``(head, prose)`` of a playbook file. Raises ``PlaybookError`` when the fences are not there."""
    if not text.startswith(FENCE + "\n"):
        raise PlaybookError(f"{where}: observed {text[:20]!r}, expected a first line of {FENCE}")
    head, fence, prose = text[len(FENCE) + 1 :].partition(f"\n{FENCE}\n")
    if not fence:
        raise PlaybookError(f"{where}: observed no closing fence, expected a second line of {FENCE} after the head")
    return head, prose


def parse_toml(text: str, where: str) -> dict[str, object]:
    """The TOML table. Raises ``PlaybookError`` with the parser's line and column."""
    try:
        table: dict[str, object] = toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise PlaybookError(f"{where}: not TOML: {error}") from error
    return table


class Head:
    """Typed access to one table. Each getter removes its key, so what is left over was not understood."""

    error: type[AotidoctorError] = PlaybookError

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        self._left = dict(table)
        self.where = where

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required when ``default`` is None."""
        value = self._take(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, value, "a string")
        return value

    def number(self, key: str, allowed: range) -> int:
        """A required whole number inside ``allowed``."""
        value = self._take(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise self.wrong(key, value, f"{allowed.start}..{allowed.stop - 1}")
        return value

    def share(self, key: str, *, optional: bool = False) -> float | None:
        """A number in 0..1; None only if ``optional`` and absent."""
        value = self._left.pop(key, None) if optional else self._take(key, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise self.wrong(key, value, "a number from 0 to 1")
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false; false when absent."""
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def severity(self, key: str) -> Severity:
        """``warn`` or ``error``: information never makes a diagnosis."""
        value = self._take(key, None)
        if value not in ("warn", "error"):
            raise self.wrong(key, value, "'warn' or 'error'")
        return Severity(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings, empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(key, value, "a list of strings")
        return tuple(value)

    def tables(self, key: str) -> tuple[Head, ...]:
        """A list of inline tables, empty when absent."""
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, value, "a list of tables")
        return tuple(Head(item, f"{self.where}: {key}[{at}]") for at, item in enumerate(value))

    def conditions(self, key: str) -> tuple[Condition, ...]:
        """A list of conditions, empty when absent."""
        return tuple(condition(table) for table in self.tables(key))

    def facts(self, key: str) -> dict[str, str | int | float | bool]:
        """A table of scalars, empty when absent."""
        value = self._left.pop(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, (str, int, float)) for item in value.values()):
            raise self.wrong(key, value, "a table of strings, numbers and booleans")
        return value

    def done(self) -> None:
        """Raise ``PlaybookError`` if a key was not asked for."""
        if self._left:
            raise self.error(f"{self.where}: unknown key {', '.join(sorted(self._left))}")

    def wrong(self, key: str, observed: object, expected: str) -> AotidoctorError:
        """The error for a value that is not what it must be."""
        return self.error(f"{self.where}: {key}: observed {observed!r}, expected {expected}")

    def _take(self, key: str, default: object) -> object:
        if key not in self._left and default is None:
            raise self.error(f"{self.where}: {key}: missing")
        return self._left.pop(key, default)


def condition(head: Head) -> Condition:
    """A condition from its inline table."""
    code = head.text("code")
    if not CODE.match(code):
        raise head.wrong(
            "code",
            code,
            "AD- and ART, HOST, LOAD, IN, REF, RUN, OUT or LOG, and three digits; or TRITON- or VERIFY- and a rule; "
            "or that of a plugin",
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
    """A required string out of ``choices``."""
    value, known = head.text(key), tuple(choices)
    if value not in known:
        raise head.wrong(key, value, f"one of {', '.join(known)}")
    return value
