"""Define the message types of config.pbtxt, its tokens, and the check against protobuf's own parser.

The table of names and types lets a config be judged where Triton's own schema is not installed, too. A test compares
it with that schema, field by field. Where it is installed, the last word on whether a config parses is protobuf's
text format. The schema is a module of ``tritonclient``, loaded from its file: to import its package would need
grpcio. In the text format, ``#`` begins a comment; ``//`` does not.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model import load_toml
from aotidoctor.model.errors import too_many
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import Given, Position

if TYPE_CHECKING:
    from google.protobuf.message import Message


# Message types.
_TABLES = load_toml(Path(__file__).with_name("config_schema.toml").read_text(encoding="utf-8"))
ENUMS: dict[str, str] = _TABLES["enums"]
ROOT = "ModelConfig"
INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_SCALARS = frozenset({*INTEGERS, "string", "bool", "float", "double"})


@record
class FieldType:
    """Type of a field. ``type`` is a scalar, an enumeration, a message, or ``{key,value}`` for an entry of a map."""

    type: str
    repeated: bool
    oneof: str | None

    @property
    def is_message(self) -> bool:
        """Whether the value is written in braces."""
        return self.type not in _SCALARS and self.type not in ENUMS


@cache
def fields_of(message: str) -> dict[str, FieldType]:
    """Fields of a message type, or of a map entry."""
    if message.startswith("{"):
        key, _, value = message[1:-1].partition(",")
        entry = {"key": key, "value": value}
        return {name: FieldType(type=kind, repeated=False, oneof=None) for name, kind in entry.items()}
    found = {}
    for text in _TABLES["messages"][message].split():
        name, _, rest = text.partition(":")
        kind, _, oneof = rest.partition("|")
        found[name] = FieldType(type=kind.rstrip("*"), repeated=kind.endswith("*"), oneof=oneof or None)
    return found


def enumerators(enum: str) -> tuple[str, ...]:
    """Names of an enumeration, which are numbered from 0."""
    return tuple(ENUMS[enum].split())


# Tokens of protobuf's text format, each with its place.
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
    """A fault of the text; ``at`` is its position."""

    def __init__(self, message: str, at: Position) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class ConfigToken:
    """One token; ``text`` is empty at the end of the file."""

    text: str
    at: Position


def tokens(text: str) -> Iterator[ConfigToken]:
    """Yield all tokens, and an empty one at the end. Raises TextFormatError, and LimitReachedError for too many."""
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
            yield ConfigToken(token, Position(line=number, column=column + 1))
            column += len(token)
    yield ConfigToken("", Position(line=len(lines), column=len(lines[-1]) + 1))


def comments(text: str) -> Iterator[Given[str]]:
    """Comments: the text after ``#``."""
    for number, line in enumerate(text.split("\n"), start=1):
        column = 0
        while column < len(line) and line[column] != "#":
            token = _TOKEN.match(line, column)
            column = token.end() if token else column + 1
        if column < len(line):
            yield Given(value=line[column + 1 :].strip(), at=Position(line=number, column=column + 1))


def string_value(token: ConfigToken) -> str:
    """Value of a string token. Raises TextFormatError."""
    text = token.text
    if len(text) < 2 or text[-1] != text[0]:
        raise TextFormatError(f"the string {text} has no closing quote", token.at)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise TextFormatError(f"the string {text} is not UTF-8", token.at)

    def decode(found: re.Match[str]) -> str:
        plain, hexadecimal, octal, *unicode = found.groups()
        if plain is not None:
            return _PLAIN[plain]
        number = int(hexadecimal or unicode[0] or unicode[1] or "-1", 16) if octal is None else int(octal, 8)
        if not 0 <= number < 0x110000:
            raise TextFormatError(f"{found[0]} is not an escape sequence", token.at)
        return chr(number)

    return _ESCAPE.sub(decode, text[1:-1])


# protobuf's own parser.

INSTALL_PROTOBUF = "pip install 'aotidoctor[triton]'"
_SCHEMA = Path("grpc", "model_config_pb2.py")


@record
class ProtobufVerdict:
    """Verdict of protobuf: ``accepted`` is None where it or the schema is missing, ``problem`` why it is not True."""

    accepted: bool | None
    problem: str = ""
    at: Position | None = None


def parse_with_protobuf(text: str) -> ProtobufVerdict:
    """Parse the text as a config with protobuf, as the server does."""
    try:
        from google.protobuf import text_format

        empty = _message_type()()
    except ImportError as error:
        return ProtobufVerdict(accepted=None, problem=f"{error}; {INSTALL_PROTOBUF}")
    except Exception as error:  # noqa: BLE001 - a schema made for another protobuf raises its own error
        return ProtobufVerdict(accepted=None, problem=f"{type(error).__name__}: {error}; {INSTALL_PROTOBUF}")
    try:
        # Bytes that are not UTF-8 matter in strings only, and there they have been refused before.
        text_format.Parse(text.encode("utf-8", "replace").decode("utf-8"), empty)
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        at = None if line is None or column is None else Position(line=line, column=column)
        return ProtobufVerdict(accepted=False, problem=str(error), at=at)
    except ValueError as error:
        return ProtobufVerdict(accepted=False, problem=str(error))
    return ProtobufVerdict(accepted=True)


@lru_cache(maxsize=1)
def _message_type() -> type[Message]:
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        raise ImportError("No module named 'tritonclient'")
    path = Path(package.submodule_search_locations[0]) / _SCHEMA
    spec = importlib.util.spec_from_file_location("aotidoctor_model_config_pb2", str(path))
    if spec is None or spec.loader is None:
        raise ImportError(f"no module at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[Message] = module.ModelConfig
    return kind
