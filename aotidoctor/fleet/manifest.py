"""A manifest: a CSV or JSONL file with one item per row.

Columns, all optional but one of ``package`` and ``log``: ``package``, ``inputs``, ``reference``, ``log``, ``setup``,
``host``, ``command``, ``labels`` (``team=vision;stage=prod``, in JSONL also an object), ``expected`` (a cause, or
``healthy``). Paths are relative to the manifest. A row with a log is for ``classify`` unless it names a command.

A manifest may come from somebody else: it makes nothing run that the command line has not asked for.
"""

from __future__ import annotations

import csv
import difflib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from aotidoctor.fleet.item import COMMANDS, EXECUTING, Item
from aotidoctor.model.errors import UsageError
from aotidoctor.model.json_types import JsonValue
from aotidoctor.remote.urls import is_url

MANIFESTS = (".csv", ".jsonl")
COLUMNS = ("package", "inputs", "reference", "log", "setup", "host", "command", "labels", "expected")
_PATHS = ("package", "inputs", "reference", "log", "setup")
_LONGEST_ROW = 1 << 20
Row = Mapping[str, JsonValue]


def read_manifest(path: str, command: str) -> Iterator[Item]:
    """The items of a manifest, judged by ``command`` where a row names none. Raises UsageError."""
    folder = os.path.dirname(path)  # noqa: PTH120 - as it was given
    try:
        with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            rows = _csv(stream, path) if path.endswith(".csv") else _jsonl(stream, path)
            for place, row in rows:
                yield _item(row, place, folder, command)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def _csv(stream: TextIO, path: str) -> Iterator[tuple[str, Row]]:
    csv.field_size_limit(_LONGEST_ROW)
    rows = csv.reader(stream, strict=True)
    try:
        columns = [name.strip() for name in next(rows, [])]
        _look_at_columns(columns, f"{path}:1")
        for cells in rows:
            place = f"{path}:{rows.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) > len(columns):
                raise UsageError(f"{place}: {len(cells)} cells, expected {len(columns)}: {', '.join(columns)}")
            given = zip(columns, cells, strict=False)
            yield place, {name: cell.strip() for name, cell in given if cell.strip()}
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: {error}") from error


def _jsonl(stream: TextIO, path: str) -> Iterator[tuple[str, Row]]:
    number = 0
    while line := stream.readline(_LONGEST_ROW):
        number += 1
        place = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{place}: observed invalid JSON ({error}), expected an object") from error
        if not isinstance(row, dict):
            raise UsageError(f"{place}: observed {type(row).__name__}, expected an object")
        _look_at_columns(list(row), place)
        yield place, {name: value for name, value in row.items() if value not in (None, "")}


def _look_at_columns(names: list[str], place: str) -> None:
    for name in names:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(COLUMNS)}"
            raise UsageError(f"{place}: unknown column {name[:80]!r}{hint}")
        if names.count(name) > 1:
            raise UsageError(f"{place}: the column {name!r} is there twice")
    if not {"package", "log"} & set(names):
        raise UsageError(f"{place}: observed no column `package` or `log`, expected one")


def _item(row: Row, place: str, folder: str, command: str) -> Item:
    labels = _labels(row.get("labels"), place)
    texts = {name: _text(name, value, place) for name, value in row.items() if name != "labels"}
    paths = {name: _below(folder, texts[name]) for name in _PATHS if name in texts}
    log, package = paths.get("log"), paths.get("package")
    wanted = texts.get("command") or ("classify" if log is not None else command)
    _look_at_command(wanted, command, place)
    if log is not None and wanted != "classify":
        raise UsageError(f"{place}: a log is for classify, and the row requests {wanted}")
    path = log if wanted == "classify" else package
    if path is None:
        raise UsageError(f"{place}: {wanted} needs a {'log' if wanted == 'classify' else 'package'}")
    return Item(
        command=wanted,
        path=path,
        package=package if wanted == "classify" else None,
        inputs=paths.get("inputs"),
        reference=paths.get("reference"),
        setup=paths.get("setup"),
        host=_host(texts.get("host"), folder),
        labels=labels,
        expected=texts.get("expected"),
    )


def _look_at_command(wanted: str, command: str, place: str) -> None:
    if wanted not in COMMANDS:
        raise UsageError(f"{place}: unknown command {wanted[:80]!r}; there are {', '.join(COMMANDS)}")
    if wanted in EXECUTING and command not in EXECUTING:
        raise UsageError(f"{place}: {wanted} executes what the row names; allow it with --command {wanted}")


def _text(name: str, value: JsonValue, place: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{place}: {name}: observed {type(value).__name__}, expected a text")
    if "\0" in value:
        raise UsageError(f"{place}: {name}: observed a NUL character")
    return value


def _labels(value: JsonValue, place: str) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return {str(name): _text(f"labels.{name}", one, place) for name, one in value.items()}
    found = {}
    for part in _text("labels", value, place).split(";"):
        name, equals, text = part.partition("=")
        if part.strip() and (not equals or not name.strip()):
            raise UsageError(f"{place}: labels: observed {part[:40]!r}, expected name=value;name=value")
        if part.strip():
            found[name.strip()] = text.strip()
    return found


def _below(folder: str, path: str) -> str:
    """A path of the manifest as this process finds it. A URL stays what it is."""
    return path if is_url(path) else os.path.join(folder, path)  # noqa: PTH118 - of any name


def _host(name: str | None, folder: str) -> str | None:
    """A profile beside the manifest, or the name of a built-in one."""
    if name is None:
        return None
    beside = _below(folder, name)
    return beside if os.path.exists(beside) else name  # noqa: PTH110 - of any name
