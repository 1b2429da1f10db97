"""Tell kinds of a cause apart, each with sentences of its own, by the words of a message; and names of C++ in it.

The kinds are in ``splits.toml``, read when a log has a diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from aotidoctor.logs.patterns import bound_repeats
from aotidoctor.model import load_toml
from aotidoctor.model.evidence import FactValue

# Mangled C++ names: the nested name, without parameters; operators, template arguments and substitutions end it.
_ITANIUM = re.compile(r"_{1,2}Z(?P<special>T[VTIS]|GV)?(?:N[KVrRO]{0,3}|St)?(?=\d|S[tabsiod])")
_MSVC = re.compile(r"\?{1,2}(?P<own>[A-Za-z_]\w*)@(?P<outer>(?:[A-Za-z_]\w*@){0,8})@")
_STANDARD = {"St": "std", "Sa": "std::allocator", "Ss": "std::string", "Sb": "std::basic_string"}
_SPECIAL = {"TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ", "GV": "guard of "}
_PART = re.compile(r"(?P<length>\d{1,3})|(?P<maker>[CD][0-4])|(?P<standard>S[tabs])")
_MOST_PARTS = 12


def demangle(symbol: str) -> str:
    """The C++ name of a mangled ``symbol``; ``symbol`` itself where it is not mangled or not understood."""
    head = _ITANIUM.match(symbol)
    if head is None:
        msvc = _MSVC.match(symbol)
        return symbol if msvc is None else "::".join([*reversed(msvc["outer"].split("@")[:-1]), msvc["own"]])
    is_nested = head[0].endswith(tuple("NKVrRO")) and "N" in head[0]
    parts = ["std"] if head[0].endswith("St") else []
    at = head.end()
    while len(parts) < _MOST_PARTS and (part := _PART.match(symbol, at)) is not None:
        at = part.end()
        if part["length"]:
            end = at + int(part["length"])
            if end > len(symbol):
                # A number that is no length.
                break
            parts.append(symbol[at:end])
            at = end
        elif part["standard"]:
            parts.append(_STANDARD[part["standard"]])
        else:
            # A constructor or a destructor has the name of its class.
            own = parts[-1] if parts else ""
            parts.append(own if part["maker"].startswith("C") or not own else f"~{own}")
        if not is_nested:
            break
    name = "::".join(part for part in parts if part and part != "__cxx11")
    return f"{_SPECIAL.get(head['special'] or '', '')}{name}" if name else symbol


# Kinds of a cause. dyld shows the underscore that C names have on macOS.
_C_SYMBOL = re.compile(r"(?:undefined symbol: |[Ss]ymbol not found: _)([A-Za-z_]\w{1,200})")
_SYMBOL = re.compile(r"(?<![\w?])(?:_{1,2}Z\w{3,400}|\?{1,2}[A-Za-z_]\w{0,200}@[\w@]{1,200})")


@dataclass(frozen=True)
class CauseKind:
    """A kind of a cause. ``title``, ``remedy`` and ``command`` are as in a playbook; empty ones are the playbook's.

    ``message``: empty where patterns name the kind among their facts. ``elsewhere``: of a failure without a trace of
    AOTInductor, whose advice must not name a package. ``carrier``: of code in no package; what is empty stays so.
    """

    cause: str
    kind: str
    message: str = "(?!)"
    title: str = ""
    remedy: str = ""
    command: str = ""
    elsewhere: bool = False
    carrier: bool = False

    @cached_property
    def words(self) -> re.Pattern[str]:
        """The compiled expression for such a message; its named groups are facts."""
        return re.compile(bound_repeats(self.message), re.MULTILINE)


def kind_of(cause: str, text: str, *, elsewhere: bool = False) -> dict[str, FactValue]:
    """The kind of ``cause`` that ``text`` is about, as facts; empty where there are no kinds or none fits."""
    facts: dict[str, FactValue] = {}
    for one in splits():
        hit = one.words.search(text) if one.cause == cause and (elsewhere or not one.elsewhere) else None
        if hit is not None:
            facts = {"split": one.kind, **{name: value for name, value in hit.groupdict().items() if value}}
            break
    if cause in ("abi-mismatch", "undefined-symbol-link"):
        # A symbol of C++ as it is written in the source; else one of C, as shims are.
        symbol, plain = _SYMBOL.search(text), _C_SYMBOL.search(text)
        if symbol is not None:
            facts["demangled"] = demangle(symbol[0])
        elif plain is not None:
            facts["demangled"] = plain[1]
    return facts


def split_of(cause: str, facts: Mapping[str, FactValue]) -> CauseKind:
    """The kind that ``kind_of`` found; without one, one that says nothing of its own."""
    kind = facts.get("split")
    return next((one for one in splits() if (one.cause, one.kind) == (cause, kind)), CauseKind(cause=cause, kind=""))


@lru_cache(maxsize=1)
def splits() -> tuple[CauseKind, ...]:
    """The kinds of causes in ``splits.toml``, in its order."""
    table = load_toml(Path(__file__).with_name("splits.toml").read_text(encoding="utf-8"))
    return tuple(CauseKind(**entry) for entry in table["split"])
