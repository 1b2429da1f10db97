"""Results of a fleet as lines of JSON, and back: every value is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import cast

from aotidoctor.model.fleet import SCHEMA, Fact, FleetResult, FleetRun
from aotidoctor.model.json_types import JsonObject, JsonValue

# No size, count or time is beyond this; NaN is neither below nor above it.
_LARGEST = 1 << 63


class FleetFormatError(ValueError):
    """A text is not what a results folder of this version holds; the message says what it is."""


def result_line(result: FleetResult) -> str:
    """``result`` as one line of JSON without a newline. What has its default is left out."""
    document: dict[str, object] = {"schema": SCHEMA}
    for name, default in _DEFAULTS.items():
        value = getattr(result, name)
        if value != default:
            document[name] = value
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def read_line(line: str | bytes) -> FleetResult:
    """The result in one line of ``results.jsonl``. Raises ``FleetFormatError``."""
    given: dict[str, object] = {}
    for name, value in _document(line).items():
        read = _READERS.get(name)
        if read is not None:
            given[name] = read(name, value)
    missing = [name for name in ("item", "name", "command") if name not in given]
    if missing:
        raise FleetFormatError(f"no {missing[0]!r} in the line")
    maker = cast("Callable[..., FleetResult]", FleetResult)  # type: ignore[explicit-any]  # every value was looked at
    return maker(**given)


def run_text(run: FleetRun) -> str:
    """``fleet.json`` of ``run``."""
    document = {"schema": SCHEMA, **{item.name: getattr(run, item.name) for item in fields(run)}}
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def read_run(text: str | bytes) -> FleetRun:
    """What ``fleet.json`` says. Raises ``FleetFormatError``."""
    document = _document(text)
    items = document.get("items")
    return FleetRun(
        command=_text("command", document.get("command", "")),
        items=items if isinstance(items, int) else 0,
        started=_text("started", document.get("started", "")),
        finished=_text("finished", document.get("finished", "")),
        hosts=_texts("hosts", document.get("hosts", [])),
        tool=_text("tool", document.get("tool", "")),
        digest=_text("digest", document.get("digest", "")),
        argv=_texts("argv", document.get("argv", [])),
    )


def _document(text: str | bytes) -> JsonObject:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FleetFormatError(f"no JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("schema"), str):
        raise FleetFormatError("other JSON, without a schema")
    if document["schema"] != SCHEMA:
        raise FleetFormatError(f"the schema is {document['schema'][:80]!r}, this version reads {SCHEMA!r}")
    return document


def _wrong(name: str, value: JsonValue, expected: str) -> FleetFormatError:
    return FleetFormatError(f"{name}: observed {type(value).__name__}, expected {expected}")


def _text(name: str, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def _number(name: str, value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST < value < _LARGEST:
        raise _wrong(name, value, "a number")
    return float(value)


def _whole(name: str, value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST < value < _LARGEST:
        raise _wrong(name, value, "a whole number")
    return value


def _flag(name: str, value: JsonValue) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _texts(name: str, value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _wrong(name, value, "a list of texts")
    return tuple(_text(name, one) for one in value)


def _labels(name: str, value: JsonValue) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return {key: _text(name, one) for key, one in value.items()}


def _facts(name: str, value: JsonValue) -> Mapping[str, Fact]:
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return {key: one for key, one in value.items() if isinstance(one, (str, int, float, bool))}


def _verdict(name: str, value: JsonValue) -> str:
    if value not in ("healthy", "problem", "unknown"):
        raise FleetFormatError(f"{name}: observed {str(value)[:40]!r}, expected healthy, problem or unknown")
    return str(value)


_Reader = Callable[[str, JsonValue], object]


def _or_none(read: _Reader) -> _Reader:
    return lambda name, value: None if value is None else read(name, value)


_SPECIAL: Mapping[str, _Reader] = {
    "verdict": _verdict,
    "status": _whole,
    "attempts": _whole,
    "size": _or_none(_whole),
    "bytes_read": _or_none(_whole),
    "seconds": _number,
    "confidence": _or_none(_number),
    "as_expected": _or_none(_flag),
    "causes": _texts,
    "labels": _labels,
    "facts": _facts,
}


def _readers(names: Sequence[str]) -> dict[str, _Reader]:
    """Of each field the function that looks at its value: a text where nothing else is said."""
    always = ("item", "name", "command", "ending", "key", "started", "tool")
    return {name: _SPECIAL.get(name, _text if name in always else _or_none(_text)) for name in names}


_DEFAULTS: Mapping[str, object] = {
    item.name: {} if item.name in ("labels", "facts") else item.default for item in fields(FleetResult)
}

_READERS: Mapping[str, _Reader] = _readers(tuple(_DEFAULTS))
