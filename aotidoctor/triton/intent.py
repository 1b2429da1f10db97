"""What whoever wrote a config means by a tensor's name: the tensor of the model that clients will send under it.

A name by place in the call says it (``ARGS[1][a]``). An ordinal says only where the server will put the tensor; what a
client means by it, a comment beside it may tell, or whoever asks (``--send INPUT__1="args[1]['b']"``). Otherwise the
ordinal is taken at its word, and any other name by the order of the config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.record import record
from aotidoctor.model.serving_config import Given, TensorConfig
from aotidoctor.model.serving_names import NameRow

_ORDINAL = re.compile(r"(?:INPUT|OUTPUT)__(\d+)")
_LAST_KEY = re.compile(r"\['([^']+)'\]$")


@record
class Meant:
    """``row`` is the tensor that is meant, None where nothing tells.

    ``why`` is ``said``, ``comment``, ``name``, ``ordinal`` or ``order``.
    """

    row: NameRow | None
    why: str


def meant(
    tensors: Sequence[TensorConfig], rows: Sequence[NameRow], comments: Sequence[Given[str]], said: Mapping[str, str]
) -> tuple[Meant, ...]:
    """What is meant by each of ``tensors``; ``said`` maps names to the user's paths."""
    return tuple(_meant(at, tensors, rows, comments, said) for at in range(len(tensors)))


def _meant(
    at: int,
    tensors: Sequence[TensorConfig],
    rows: Sequence[NameRow],
    comments: Sequence[Given[str]],
    said: Mapping[str, str],
) -> Meant:
    name = tensors[at].label
    if name in said:
        return Meant(row=next((row for row in rows if row.path == said[name]), None), why="said")
    remarked = _in_comments(_beside(at, tensors, comments), rows)
    if remarked is not None:
        return Meant(row=remarked, why="comment")
    by_name = next((row for row in rows if row.forward == name or _paths_name(row) == name), None)
    if by_name is not None:
        return Meant(row=by_name, why="name")
    ordinal = _ORDINAL.fullmatch(name)
    slot = at if ordinal is None else int(ordinal[1])
    return Meant(
        row=next((row for row in rows if row.slot == slot), None), why="order" if ordinal is None else "ordinal"
    )


def _paths_name(row: NameRow) -> str:
    """``ARGS[1][a]`` of ``args[1]['a']``, for releases that have no such names; ``KWARGS[a]``, as the documents say."""
    return re.sub(r"\['([^']*)'\]", r"[\1]", re.sub(r"^(args|kwargs|result)", lambda found: found[1].upper(), row.path))


def _beside(at: int, tensors: Sequence[TensorConfig], comments: Sequence[Given[str]]) -> list[str]:
    """Comments on the lines of a tensor, where it has lines of its own."""
    first = tensors[at].at.line
    lines = {first, *(field.at.line for field in tensors[at].tree.fields)}
    others = {
        line
        for number, other in enumerate(tensors)
        if number != at
        for line in (other.at.line, *(field.at.line for field in other.tree.fields))
    }
    return [item.value for item in comments if item.at.line in lines - others]


def _in_comments(texts: Sequence[str], rows: Sequence[NameRow]) -> NameRow | None:
    """The only row of which a comment has the path, or the last key as a word."""
    for text in texts:
        whole = [row for row in rows if row.path in text.replace('"', "'")]
        if len(whole) == 1:
            return whole[0]
        keyed = [row for row in rows if (key := _LAST_KEY.search(row.path)) and _has_word(text, key[1])]
        if len(keyed) == 1 and not whole:
            return keyed[0]
    return None


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
