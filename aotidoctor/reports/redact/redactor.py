"""Remove what is private to a machine and its user from a report, once, before any format sees it.

Hidden: the home folder, user and host names, other people's names (folders, caches, addresses), secrets (by their form,
by the key before them, and the values of environment variables that are named like secrets), network addresses,
elements of tensors that a child printed, bounds of small and of one-element tensors, internal host names, registries,
buckets and project folders. Kept: sizes, dtypes, and counts, minima and maxima of larger tensors (those of floating
point to one digit), because diagnoses rest on them; the one element of an integer input that broke a check, with its
place, for the same reason; values that were baked in at export; fields that no format shows (sources, symbol lists).

Identifiers that a diagnosis needs (kernels, operators, keys of inputs, source files) are kept; a private word inside
one is replaced by its placeholder and the rest stays. Placeholders are consistent: the same secret is ``<secret-1>``
everywhere, and a name that was met once (``/home/NAME``) is replaced everywhere. A text is redacted until nothing
changes any more, and placeholders are never redacted, so redacting twice is the same as once.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from enum import Enum
from typing import TypeVar

from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.reports.redact.ordinary_words import is_common
from aotidoctor.reports.redact.private_words import (
    LOOKS_SECRET,
    PLACEHOLDER,
    PLACES,
    ROW,
    SECRETS,
    URL_HOST,
    Identity,
    Kind,
    Name,
    expressions,
    has_escapes,
    is_address,
    is_searchable,
)
from aotidoctor.reports.text import replace_fields

# Bounds of a tensor that are its values: dropped where there are few, rounded where there are many.
# Bounds of so few elements are the elements.
FEW = 64


def without_values(tensor: TensorDesc) -> TensorDesc:
    """``tensor`` without exact bounds. Those of integers stay where they are two of several: they decide diagnoses."""
    stats = tensor.stats
    if stats is None or (stats.low is None and stats.high is None):
        return tensor
    integer = tensor.dtype in ITEMSIZE and tensor.dtype.startswith(("int", "uint", "bool"))
    if integer and tensor.numel > 1:
        return tensor
    stripped = (
        replace(stats, low=_rounded(stats.low), high=_rounded(stats.high))
        if not integer and tensor.numel >= FEW
        else replace(stats, low=None, high=None)
    )
    return tensor if stripped == stats else replace(tensor, stats=stripped)


def _rounded(value: float | None) -> float | None:
    """To one digit."""
    if value is None or not value or not math.isfinite(value):
        return value
    return float(f"{value:.0e}")


# One table of placeholders for everything that one redactor sees, or several in a row. Equal in any case of letters.
_FOLDED = ("user", "host", "word", "project", "email", "ip", "mac")
_FORM = re.compile(r"<([a-z]+)(?:-(\d+))?>")


class Placeholders:
    """Gives ``<user>``, ``<secret-1>``...: the same for the same text, another for another."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str] = {}
        self._last: dict[str, int] = {}
        for placeholder, text in (known or {}).items():
            found = _FORM.fullmatch(placeholder)
            if found is not None:
                kind, number = found[1], int(found[2] or 0)
                self._given[_key(kind, text)] = placeholder
                self._texts[placeholder] = text
                self._last[kind] = max(self._last.get(kind, 0), number)

    def give(self, kind: str, text: str, *, own: bool = False) -> str:
        """The placeholder of ``text``, which is of ``kind``; ``own`` for what is the owner's, not met in a text."""
        key = _key(kind, text)
        known = self._given.get(key)
        if known is not None:
            return known
        same = self._same_machine(text) if kind == "host" else None
        if same is not None:
            self._given[key] = same
            return same
        placeholder = f"<{kind}>"
        if not own or placeholder in self._texts:
            self._last[kind] = self._last.get(kind, 0) + 1
            placeholder = f"<{kind}-{self._last[kind]}>"
        self._given[key], self._texts[placeholder] = placeholder, text
        return placeholder

    def placeholder_of(self, kind: str, text: str) -> str | None:
        """The placeholder that ``text`` has, None where it has none."""
        return self._given.get(_key(kind, text))

    def names(self) -> tuple[Name, ...]:
        """Everything that has a placeholder."""
        return tuple(Name(placeholder.strip("<>").partition("-")[0], text) for placeholder, text in self._texts.items())

    def table(self) -> dict[str, str]:
        """Placeholder to text, in the order given."""
        return dict(self._texts)

    def _same_machine(self, host: str) -> str | None:
        """``bluebird`` is ``bluebird.example.org``: one machine, one placeholder."""
        name = host.casefold()
        short = name.partition(".")[0]
        for (kind, known), placeholder in self._given.items():
            if kind == "host" and short == known.partition(".")[0] and short in (name, known):
                return placeholder
        return None


def _key(kind: str, text: str) -> tuple[str, str]:
    return kind, text.casefold() if kind in _FOLDED else text


# Texts, values and whole reports.
T = TypeVar("T")

# Fields that hold megabytes and that no format shows.
_OPAQUE = frozenset({"wrapper_cpp", "kernel_sources", "undefined", "kernel_symbols", "cpu_flags"})
_PRINTED = frozenset({"stdout_tail", "stderr_tail", "printed"})
_KEY_AND_SECRET = {"password": ("before", "word"), "variable": ("name", "given"), "keyed": ("label", "value")}
_GIVEN_AS = {"other": "user", "folders": "user", "ip6": "ip", "email": "email", "mac": "mac", "account": "account"}
_GIVEN_AS |= {"internal": "host", "registry": "host", "bucket": "account", "project": "project"}
# Variables of these are shown whatever they are called.
_PUBLIC_VARIABLES = ("AOT_INDUCTOR_", "AOTINDUCTOR_", "AOTI_", "TORCHINDUCTOR_", "TORCH_", "PYTORCH_", "TRITON_")
# Names met in a text are looked for in all texts; what they reveal in turn is rarely more than one round.
_ROUNDS = 4


class Redactor:
    """Hide the known private words, and what looks private. One per report: it numbers what it meets.

    ``strict`` is for what leaves the machine whole: names are hidden inside longer words, too, and no field is left
    out. ``placeholders`` may be those of an earlier redactor, which then keep their meaning.
    """

    def __init__(self, identity: Identity, *, strict: bool = False, placeholders: Placeholders | None = None) -> None:
        self.placeholders = placeholders or Placeholders()
        self.count = 0
        self._strict = strict
        self._known: dict[str, str] = {}
        self._names: dict[tuple[str, str], Name] = {}
        self._groups: dict[str, Name] = {}
        self._compiled: dict[tuple[int, ...], re.Pattern[str]] = {}
        for name in _names(identity):
            self._names.setdefault((name.kind, name.text.casefold()), name)
            if name.kind != "secret":
                self.placeholders.give(name.kind, name.text, own=name.kind != "word")
        for old in filter(_is_sought, self.placeholders.names()):
            self._names.setdefault((old.kind, old.text.casefold()), old)
        self._kinds: list[Kind] = []
        self._plain: list[tuple[int, str]] = []
        self._escaped: list[tuple[int, str]] = []
        self._arrange()

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Redactor:
        """A redactor for this machine and the user that ``environ`` describes."""
        return cls(Identity.of(environ, platform.node()))

    def value(self, value: T) -> T:
        """Anything made of texts, containers and records, with its texts redacted."""
        for _ in range(_ROUNDS):
            value = self._walk(value)
            if not self.learn():
                break
        return value

    def text(self, text: str) -> str:
        """``text`` redacted; the same for the same text."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._settle(text)
        return known

    def redact_printed(self, text: str) -> str:
        """``text`` of a child redacted: lines that are nothing but numbers are tensor elements."""
        return self.text(ROW.sub("<values>", text))

    def learn(self) -> bool:
        """Look for what was met so far in all texts from now on; whether that is more than before."""
        more = False
        for name in self.placeholders.names():
            key = (name.kind, name.text.casefold())
            if key not in self._names and _may_spread(name):
                self._names[key] = name
                more = True
        if more:
            self._arrange()
            self._known.clear()
        return more

    def names(self) -> tuple[Name, ...]:
        """The private words that are known so far."""
        return tuple(self._names.values())

    def _arrange(self) -> None:
        """All kinds, strongest first: a secret inside a path stays a secret."""
        self._groups, self._compiled = {}, {}
        known: dict[bool, list[Kind]] = {True: [], False: []}
        for name in sorted(self._names.values(), key=lambda one: -len(one.text)):
            for kind in expressions(name, strict=self._strict):
                group = f"name_{len(self._groups)}"
                self._groups[group] = name
                known[name.everywhere].append(replace(kind, pattern=f"(?P<{group}>{kind.pattern})"))
        homes = [kind for kind in known[False] if self._kind_of(kind) == "home"]
        others = [kind for kind in known[False] if self._kind_of(kind) != "home"]
        extra = [URL_HOST] if self._strict else []
        self._kinds = [Kind(PLACEHOLDER, ("<",)), *known[True], *extra, *SECRETS, *homes, *others, *PLACES]
        wanted = [(at, needle, kind.escaped) for at, kind in enumerate(self._kinds) for needle in kind.needles]
        self._plain = [(at, needle) for at, needle, escaped in wanted if not escaped]
        self._escaped = [(at, needle) for at, needle, escaped in wanted if escaped]

    def _kind_of(self, kind: Kind) -> str:
        return self._groups[kind.pattern[4 : kind.pattern.index(">")]].kind

    def _settle(self, text: str) -> str:
        while True:
            # One expression of the kinds that have a chance in `text`; None without any.
            folded = text.casefold()
            chances = self._chances(folded, self._plain)
            if has_escapes(text):
                chances = sorted(chances + self._chances(folded, self._escaped))
            if not chances or chances == [0]:
                pattern = None
            else:
                found = self._compiled.get(tuple(chances))
                if found is None:
                    joined = "|".join(self._kinds[at].pattern for at in chances)
                    found = self._compiled[tuple(chances)] = re.compile(joined, re.DOTALL)
                pattern = found
            after = pattern.sub(self._hide, text) if pattern is not None else text
            if after == text:
                return after
            text = after

    @staticmethod
    def _chances(folded: str, needles: Sequence[tuple[int, str]]) -> list[int]:
        return list(dict.fromkeys([at for at, needle in needles if needle in folded]))

    def _hide(self, found: re.Match[str]) -> str:
        group = found.lastgroup or ""
        name = self._groups.get(group)
        text = self.placeholders.give(name.kind, name.text) if name is not None else ""
        text = text or self._looks_private(group, found)
        if text != found[0]:
            self.count += 1
        return text

    def _looks_private(self, group: str, found: re.Match[str]) -> str:
        give = self.placeholders.give
        match group:
            case "placeholder":
                return found[0]
            case "tensor":
                return found["call"] + "<values>"
            case "password" | "variable" | "keyed":
                before, secret = _KEY_AND_SECRET[group]
                return found[before] + give("secret", found[secret])
            case "url":
                login = found["login"] if "<" in found["login"] else give("secret", found["login"])
                return f"{login}@{give('host', found['where'])}"
            case "ip":
                return give("ip", found[0]) if is_address(found) else found[0]
            case _:
                return give(_GIVEN_AS.get(group, "secret"), found[0])

    def _walk(self, value: T, *, printed: bool = False) -> T:
        """``value`` with its texts redacted; the very same object where nothing changed."""
        result: object = value
        if isinstance(value, Enum):
            result = value
        elif isinstance(value, str):
            result = self.redact_printed(value) if printed else self.text(value)
        elif isinstance(value, InputsError):
            hidden = InputsError(
                self.text(str(value)),
                cause=value.cause,
                kind=value.kind,
                subject=self.text(value.subject),
                observed=self.text(value.observed),
                expected=self.text(value.expected),
            )
            result = value if (str(hidden), vars(hidden)) == (str(value), vars(value)) else hidden
        elif isinstance(value, TensorDesc):
            result = self._record(without_values(value))
        elif is_dataclass(value) and not isinstance(value, type):
            result = self._record(value)
        elif isinstance(value, Mapping):
            result = {self._walk(key): self._item(key, item) for key, item in value.items()}
        elif isinstance(value, (tuple, list)):
            result = type(value)(self._walk(item) for item in value)
        return result  # type: ignore[return-value]  # each branch keeps the type of what it was given

    def _item(self, key: object, item: T) -> T:
        """The value of a key. What an unknown variable holds may be anything."""
        is_public = isinstance(key, str) and key.startswith(_PUBLIC_VARIABLES)
        if is_public and isinstance(item, str) and LOOKS_SECRET.fullmatch(item):
            return self.placeholders.give("secret", item)  # type: ignore[return-value]  # of str, str
        return self._walk(item, printed=key in _PRINTED)

    def _record(self, value: T) -> T:
        def redact_field(name: str, item: object) -> object:
            is_left = name in _OPAQUE and not self._strict
            return item if is_left else self._walk(item, printed=name in _PRINTED)

        return replace_fields(value, redact_field)


def _names(identity: Identity) -> list[Name]:
    named: list[tuple[str, Sequence[str]]] = [
        ("word", identity.words),
        ("secret", identity.secrets),
        ("home", (identity.home,) if identity.home else ()),
        ("user", identity.users),
        ("host", identity.hosts),
    ]
    return [Name(kind, text) for kind, texts in named for text in texts]


def _is_sought(old: Name) -> bool:
    """Whether a word of an earlier bundle is looked for everywhere. A project called ``base`` is not."""
    return old.kind not in ("account", "project") and (old.kind != "user" or _may_spread(old))


def _may_spread(name: Name) -> bool:
    """Whether a word that was met at a telling place may be hidden everywhere."""
    match name.kind:
        case "secret":
            return is_searchable(name.text)
        case "user":
            return "/" not in name.text and not is_common(name.text)
        case "host":
            return "." in name.text
        case _:
            return False


def redact_private(value: T, environ: Mapping[str, str]) -> T:
    """A record without what is private to this machine and its user."""
    return Redactor.of(environ).value(value)
