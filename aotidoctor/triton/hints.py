"""What the comments of a config say about its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.model.serving_config import ConfigMessage, Given, ModelConfig, TensorConfig
from aotidoctor.model.serving_names import NameRow

_KEY = re.compile(r"^(?P<above>.*)\[(?:'(?P<key>[^']*)'|\"(?P<other>[^\"]*)\")\]$", re.DOTALL)


def comments_by_tensor(config: ModelConfig, text: str) -> dict[int, tuple[Given[str], ...]]:
    """The comments that belong to each input and output, by the line where it begins.

    A comment behind something, or inside the braces, belongs to what stands there; one on a line of its own between two
    tensors belongs to the one below.
    """
    tensors = sorted((*config.inputs, *config.outputs), key=lambda tensor: (tensor.at.line, tensor.at.column))
    lines = text.split("\n")
    found: dict[int, tuple[Given[str], ...]] = {}
    for comment in config.comments:
        line = comment.at.line
        alone = not lines[line - 1][: comment.at.column - 1].strip() if line <= len(lines) else True
        owner = _owner(tensors, line, alone=alone)
        if owner is not None:
            found[owner.at.line] = (*found.get(owner.at.line, ()), comment)
    return found


def _owner(tensors: Sequence[TensorConfig], line: int, *, alone: bool) -> TensorConfig | None:
    before = [tensor for tensor in tensors if tensor.at.line <= line]
    if before and (not alone or line <= _last_line(before[-1].tree)):
        return before[-1]
    return next((tensor for tensor in tensors if tensor.at.line > line), None) if alone else None


def _last_line(message: ConfigMessage) -> int:
    return max([message.at.line, *_lines(message)])


def _lines(message: ConfigMessage) -> Iterator[int]:
    for item in message.fields:
        yield item.at.line
        if isinstance(item.value, ConfigMessage):
            yield from _lines(item.value)
        else:
            yield item.value.at.line


def mentioned(comments: Sequence[Given[str]], rows: Sequence[NameRow]) -> tuple[NameRow, ...]:
    """The rows that comments speak of: by the user's path, the name in the call, or the key at the path's end."""
    text = " ".join(comment.value for comment in comments)
    return tuple(row for row in rows if any(_is_in(word, text) for word in _words(row)))


def _words(row: NameRow) -> Iterator[str]:
    yield row.path
    if row.forward is not None and row.forward != "RESULT":
        yield row.forward
    key = key_of(row)
    if key is not None:
        yield key[1]


def _is_in(word: str, text: str) -> bool:
    if not word:
        return False
    start = r"(?<![\w\])'\"])" if word[0].isalnum() or word[0] == "_" else ""
    end = r"(?![\w\[(])" if word[-1].isalnum() or word[-1] == "_" else r"(?!\[)"
    return re.search(start + re.escape(word) + end, text) is not None


def key_of(row: NameRow) -> tuple[str, str] | None:
    """``("args[1]", "a")`` of a tensor that is a value of a dict."""
    found = _KEY.match(row.path)
    return None if found is None else (found["above"], found["key"] or found["other"] or "")
