"""Removes what is private to a machine and its user from a report, once, before any format sees it.

Hidden: the home folder, user and host names, other people's names under ``/home``, secrets (by their form, by the key
before them, and the values of environment variables that are named like secrets), and elements of tensors that a child
printed. Kept: sizes, dtypes, and counts, minima and maxima of tensors, because diagnoses rest on them; the one element
of an integer input that broke a check, with its place, for the same reason; values that were baked in at export; fields
that no format shows (sources, symbol lists).

Placeholders are consistent: the same secret is ``<secret-1>`` everywhere in a report. A text is redacted until nothing
changes any more, and placeholders are never looked into, so redacting twice is the same as once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from aotidoctor.model.errors import InputsError
from aotidoctor.model.report import Report

T = TypeVar("T")

_PLACEHOLDER = r"(?P<placeholder><(?:home|host|user|values|user-\d+|secret-\d+)>)"
_KNOWN_FORMS = (
    r"(?<![A-Za-z0-9])(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{30,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
_URL_LOGIN = r"(?<=://)[^/\s:@<>]+:[^/\s@<>]+(?=@)"
_NAMED = r"(?P<password>(?P<before>(?i:passw(?:or)?d|secret)[\"']?\s*[=:]\s*[\"']?)(?P<word>[^\s\"'<>,;&()]{3,}))"
_KEYED = (
    r"(?P<keyed>(?P<label>(?i:(?:token|api[_-]?key|access[_-]?key)[\"']?\s*[=:]\s*|bearer\s+)[\"']?)"
    r"(?P<value>(?=[\w./+=~-]*\d)(?=[\w./+=~-]*[A-Za-z])[\w./+=~-]{12,}))"
)
_TENSOR = r"(?P<tensor>(?P<call>\b(?:tensor|array|Parameter)\(\s*)(?:\[[^()<>]*\]|[-+]?[\d.][\w.+-]*))"
_NUMBER = r"[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|nan|inf)"
_ROW = re.compile(rf"^[ \t]*(?:Columns \d+ to \d+)?{_NUMBER}(?:[ \t]+{_NUMBER})*[ \t]*$", re.MULTILINE)
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|CREDENTIAL", re.IGNORECASE)
# Names that are ordinary words of reports: hidden only where a path or an address shows that a person is meant.
_WORDS = frozenset(
    {"root", "user", "users", "admin", "home", "guest", "nobody", "default", "main", "local", "host", "localhost"}
    | {"test", "tests", "model", "models", "data", "package", "python", "torch", "cuda", "aoti", "inductor"}
    | {
        "build",
        "builder",
        "runner",
        "docker",
        "jenkins",
        "node",
        "server",
        "work",
        "worker",
        "linux",
        "ubuntu",
        "debian",
    }
)
_SHORTEST_NAME = 4
# Fields that hold megabytes and that no format shows.
_OPAQUE = frozenset({"wrapper_cpp", "kernel_sources", "undefined", "kernel_symbols", "cpu_flags"})
_PRINTED = frozenset({"stdout_tail", "stderr_tail"})


class Redactor:
    """Hides what it was told of, and what looks like a secret. One per report: it numbers the secrets it meets."""

    def __init__(
        self, *, home: str | None = None, user: str | None = None, host: str | None = None, secrets: Sequence[str] = ()
    ) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._known: dict[str, str] = {}
        self._pattern = re.compile("|".join(_patterns(home, user, host, secrets)), re.DOTALL)

    @classmethod
    def of(cls, *, environ: Mapping[str, str], host_name: str) -> Redactor:
        """A redactor for the user and host that ``environ`` describes."""
        home = environ.get("HOME")
        user = environ.get("USER") or environ.get("LOGNAME") or (PurePosixPath(home).name if home else None)
        secrets = [value for name, value in environ.items() if _SECRET_NAME.search(name) and len(value) >= 8]
        return cls(home=home, user=user, host=host_name, secrets=secrets)

    def report(self, report: Report) -> Report:
        """``report`` with every text redacted."""
        return self._walk(report)

    def text(self, text: str) -> str:
        """``text`` redacted; the same for the same text."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._settle(text)
        return known

    def printed(self, text: str) -> str:
        """``text`` of a child redacted: lines that are nothing but numbers are tensor elements."""
        return self.text(_ROW.sub("<values>", text))

    def _settle(self, text: str) -> str:
        while True:
            after = self._pattern.sub(self._hide, text)
            if after == text:
                return after
            text = after

    def _hide(self, found: re.Match[str]) -> str:
        match found.lastgroup:
            case "placeholder":
                return found[0]
            case "home" | "user" | "host" as name:
                return f"<{name}>"
            case "other":
                return self._numbered("user", found[0])
            case "tensor":
                return found["call"] + "<values>"
            case "password":
                return found["before"] + self._numbered("secret", found["word"])
            case "keyed":
                return found["label"] + self._numbered("secret", found["value"])
            case _:
                return self._numbered("secret", found[0])

    def _numbered(self, kind: str, text: str) -> str:
        same_kind = sum(1 for known, _ in self._numbers if known == kind)
        return f"<{kind}-{self._numbers.setdefault((kind, text), same_kind + 1)}>"

    def _walk(self, value: T, *, printed: bool = False) -> T:
        """``value`` with its texts redacted; the very same object where nothing changed."""
        result: object = value
        if isinstance(value, str):
            result = self.printed(value) if printed else self.text(value)
        elif isinstance(value, InputsError):
            result = self._error(value)
        elif is_dataclass(value) and not isinstance(value, type):
            result = self._record(value)
        elif isinstance(value, Mapping):
            result = {self._walk(key): self._walk(item) for key, item in value.items()}
        elif isinstance(value, (tuple, list)):
            result = type(value)(self._walk(item) for item in value)
        return result  # type: ignore[return-value]  # each branch keeps the type of what it was given

    def _record(self, value: T) -> T:
        changed: dict[str, object] = {}
        for item in fields(value):  # type: ignore[arg-type]  # the caller has asked is_dataclass
            if item.name in _OPAQUE:
                continue
            before = getattr(value, item.name)
            after = self._walk(before, printed=item.name in _PRINTED)
            if after is not before and after != before:
                changed[item.name] = after
        return replace(value, **changed) if changed else value  # type: ignore[type-var]

    def _error(self, error: InputsError) -> InputsError:
        hidden = InputsError(
            self.text(str(error)),
            cause=error.cause,
            subject=self.text(error.subject),
            observed=self.text(error.observed),
            expected=self.text(error.expected),
        )
        # Exceptions compare by identity; an unchanged one stays itself, so that an unchanged report is equal.
        return error if (str(hidden), vars(hidden)) == (str(error), vars(error)) else hidden


def _patterns(home: str | None, user: str | None, host: str | None, secrets: Sequence[str]) -> list[str]:
    """Alternatives, strongest first: a secret inside a path stays a secret."""
    literal = [re.escape(secret) for secret in sorted(set(secrets), key=len, reverse=True)]
    forms = [*literal, _PRIVATE_KEY, _URL_LOGIN, _KNOWN_FORMS]
    found = [_PLACEHOLDER, f"(?P<secret>{'|'.join(forms)})", _NAMED, _KEYED, _TENSOR]
    if home and home.strip("/"):
        found.append(rf"(?P<home>(?<![\w.-]){re.escape(home.rstrip('/'))}(?![\w-])(?!\.\w))")
    found.append(_group("user", [user], address="{name}(?=@)"))
    found.append(_group("host", [host, host.partition(".")[0]] if host else [], address="(?<=@){name}"))
    found.append(r"(?P<other>(?<=/home/)\w[\w.-]*|(?<=/Users/)\w[\w.-]*)")
    return [pattern for pattern in found if pattern]


def _group(group: str, names: Sequence[str | None], *, address: str) -> str:
    """Names at word boundaries; a short or ordinary one only in an address, such as ``root@``."""
    words = [_name(name, address) for name in names if name]
    return f"(?P<{group}>{'|'.join(words)})" if words else ""


def _name(name: str, address: str) -> str:
    word = re.escape(name)
    if len(name) < _SHORTEST_NAME or name.lower() in _WORDS:
        return rf"(?<![\w.-]){address.format(name=word)}(?![\w-])"
    return rf"(?<![A-Za-z0-9]){word}(?![A-Za-z0-9])"
