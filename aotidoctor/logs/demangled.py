"""Mangled names of C++ as a reader knows them: the nested name, without parameters.

``_ZN3c105ErrorC2ENS_14SourceLocationE`` is ``c10::Error::Error``. Only what tells whose a symbol is gets read; what
this small reader does not know (operators, template arguments, substitutions) ends the name.
"""

from __future__ import annotations

import re

_ITANIUM = re.compile(r"_{1,2}Z(?P<special>T[VTIS]|GV)?(?:N[KVrRO]{0,3}|St)?(?=\d|S[tabsiod])")
_MSVC = re.compile(r"\?{1,2}(?P<own>[A-Za-z_]\w*)@(?P<outer>(?:[A-Za-z_]\w*@){0,8})@")
_STANDARD = {"St": "std", "Sa": "std::allocator", "Ss": "std::string", "Sb": "std::basic_string"}
_SPECIAL = {"TV": "vtable for ", "TT": "VTT for ", "TI": "typeinfo for ", "TS": "typeinfo name for ", "GV": "guard of "}
_PART = re.compile(r"(?P<length>\d{1,3})|(?P<maker>[CD][0-4])|(?P<standard>S[tabs])")
_MOST = 12


def demangled(symbol: str) -> str:
    """The name that ``symbol`` stands for; ``symbol`` itself where it is not mangled or not understood."""
    head = _ITANIUM.match(symbol)
    if head is None:
        msvc = _MSVC.match(symbol)
        return symbol if msvc is None else "::".join([*reversed(msvc["outer"].split("@")[:-1]), msvc["own"]])
    is_nested = head[0].endswith(tuple("NKVrRO")) and "N" in head[0]
    parts = ["std"] if head[0].endswith("St") else []
    at = head.end()
    while len(parts) < _MOST and (part := _PART.match(symbol, at)) is not None:
        at = part.end()
        if part["length"]:
            end = at + int(part["length"])
            if end > len(symbol):
                # A number that is no length.
                break
            parts.append(symbol[at:end])
            at = end
        else:
            parts.append(_STANDARD[part["standard"]] if part["standard"] else _made(parts, part["maker"]))
        if not is_nested:
            break
    name = "::".join(part for part in parts if part and part != "__cxx11")
    return f"{_SPECIAL.get(head['special'] or '', '')}{name}" if name else symbol


def _made(parts: list[str], maker: str) -> str:
    """A constructor or a destructor has the name of its class."""
    own = parts[-1] if parts else ""
    return own if maker.startswith("C") or not own else f"~{own}"
