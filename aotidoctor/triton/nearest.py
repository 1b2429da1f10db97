"""The name that somebody meant who wrote another one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from aotidoctor.model.serving_names import NameRow

_DROPPED = re.compile(r"[\s\"'\\]")


def nearest_name(name: str, rows: Sequence[NameRow]) -> str | None:
    """The valid name that comes closest, None where none does.

    First one that differs in case, quotes, spaces, underscores and leading zeros only; then the tensor's user path, its
    key, or its name in the generated code; then one that looks alike.
    """
    plain = _plain(name)
    for row in rows:
        known = next((valid for valid in row.names if _plain(valid) == plain), None)
        if known is not None:
            return known
    meant = next((row for row in rows if plain in _other_names(row) and row.names), None)
    if meant is not None:
        by_number = meant.forward is None or meant.forward.startswith("KWARGS")
        return meant.names[0 if by_number else -1]
    valid = [known for row in rows for known in row.names]
    alike = difflib.get_close_matches(name.upper(), [known.upper() for known in valid], n=1, cutoff=0.75)
    return next((known for known in valid if alike and known.upper() == alike[0]), None)


def _plain(name: str) -> str:
    text = re.sub(r"_+", "_", _DROPPED.sub("", name).lower())
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


def _other_names(row: NameRow) -> frozenset[str]:
    """What people call the tensor: its path, the key or field at its end, its name in the generated code, its number.

    A single result may be written as the first of several, and the first of several as the only one.
    """
    path = _plain(row.path)
    last = re.search(r"\[([^\[\]]+)\]$|\.(\w+)$", path)
    key = (last[1] or last[2]) if last is not None else None
    names = {path, row.generated_name, f"{path}[0]", key if key is not None and not key.isdigit() else None}
    if row.slot == 0 and path == "result[0]":
        names.add("result")
    side = row.ordinal.partition("__")[0].lower()
    names |= {f"{side}{row.slot}", f"{side}_{row.slot}", f"{side}[{row.slot}]"}
    return frozenset(name for name in names if name)
