"""The tokens of protobuf's text format, each with its place. ``#`` begins a comment; ``//`` does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aotidoctor.model.errors import too_many
from aotidoctor.model.serving_config import Given, Position

_SPACE = re.compile(r"[ \t\r\f\v]+")
_TOKEN = re.compile(
    r"""[a-zA-Z_][0-9a-zA-Z_]*                        # an identifier
    |0[xX][0-9a-fA-F]+                                # a number; its sign is a token of its own
    |(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?
    |"[^"\n\\]*(?:\\.[^"\n\\]*)*(?:"|\\?$)       # a string
    |'[^'\n\\]*(?:\\.[^'\n\\]*)*(?:'|\\?$)""",
    re.VERBOSE,
)
_NUMBER, _WORD = re.compile(r"\.?[0-9]"), re.compile(r"[a-zA-Z_]")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\?'\"])|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)")
_PLAIN = dict(zip("abfnrtv\\?'\"", "\a\b\f\n\r\t\v\\?'\"", strict=True))
MOST_TOKENS = 100_000
QUOTES = ('"', "'")


class TextFormatError(ValueError):
    """The text breaks the format; ``at`` says where."""

    def __init__(self, message: str, at: Position) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``text`` is empty at the end of the file."""

    text: str
    at: Position


def tokens(text: str) -> Iterator[Token]:
    """All tokens, and one that is empty at the end. Raises TextFormatError, and LimitReachedError for too many."""
    lines = text.split("\n")
    left = iter(range(MOST_TOKENS))
    for number, line in enumerate(lines, start=1):
        column = 0
        while column < len(line):
            if space := _SPACE.match(line, column):
                column = space.end()
                continue
            if line[column] == "#":
                break
            if next(left, None) is None:
                raise too_many("words in config.pbtxt", MOST_TOKENS)
            found = _TOKEN.match(line, column)
            token = found[0] if found else line[column]
            if _NUMBER.match(token) and _WORD.match(line, column + len(token)):
                at = Position(line=number, column=column + len(token) + 1)
                raise TextFormatError("a number and a word need a space between them", at)
            yield Token(token, Position(line=number, column=column + 1))
            column += len(token)
    yield Token("", Position(line=len(lines), column=len(lines[-1]) + 1))


def comments(text: str) -> tuple[Given[str], ...]:
    """What stands after ``#``, without it."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        column = 0
        while column < len(line) and line[column] != "#":
            token = _TOKEN.match(line, column)
            column = token.end() if token else column + 1
        if column < len(line):
            found.append(Given(value=line[column + 1 :].strip(), at=Position(line=number, column=column + 1)))
    return tuple(found)


def unquoted(token: Token) -> str:
    """The value of a string token. Raises TextFormatError."""
    text = token.text
    if len(text) < 2 or text[-1] != text[0]:
        raise TextFormatError(f"the string {text} has no closing quote", token.at)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise TextFormatError(f"the string {text} is not UTF-8", token.at)
    return _ESCAPE.sub(lambda found: _escaped(found, token), text[1:-1])


def _escaped(found: re.Match[str], token: Token) -> str:
    plain, hexadecimal, octal, *unicode = found.groups()
    if plain is not None:
        return _PLAIN[plain]
    number = int(hexadecimal or unicode[0] or unicode[1] or "-1", 16) if octal is None else int(octal, 8)
    if not 0 <= number < 0x110000:
        raise TextFormatError(f"{found[0]} is not an escape sequence", token.at)
    return chr(number)
