"""Find the items of a batch: packages, logs, bundles, reports, model folders, and the rows of manifests.

A file is taken by what it is: a package is judged by the command of the batch, a log by `classify`, a bundle or a
report by `analyze`; a ``.csv`` or ``.jsonl`` file is a manifest. Of a folder, the files that the command is for are
taken: ``*.pt2`` and ``*.pte``, for `classify` logs, for `triton` the folders of models.

A manifest has one item per row. Columns, all optional but one of ``package`` and ``log``: ``package``, ``inputs``,
``data``, ``reference``, ``log``, ``setup``, ``host``, ``command``, ``labels`` (``team=vision;stage=prod``, in JSONL
also an object), ``expected`` (a cause, or ``healthy``). Paths are relative to the manifest. A row with a log is for
`classify` unless it names a command. A manifest may come from somebody else: it runs nothing that the command line
did not ask for.
"""

from __future__ import annotations

import csv
import difflib
import glob
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from aotidoctor.files import open_regular
from aotidoctor.model.errors import UsageError
from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.model.report import SCHEMA
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_archive import read_zip_directory
from aotidoctor.remote.remote_files import is_url

# One item, and the name of its result.
# Commands that take a package, those that take something else, and those that execute what the item names.
PACKAGE_COMMANDS = ("check", "run", "compat", "verify")
COMMANDS = (*PACKAGE_COMMANDS, "classify", "triton", "analyze")
EXECUTING = frozenset({"run", "verify"})
# Commands that judge for another machine.
FOR_HOSTS = frozenset({"check", "compat"})
# Fields that another process gets; only the results need the others.
_SENT = ("command", "path", "package", "inputs", "data", "reference", "setup", "host")


@record
class FleetItem:
    """``path`` is the package, program, log, bundle, report or folder that ``command`` is about.

    ``package`` is the package that a log is about. ``problem`` is set where the item cannot be judged at all, and says
    why; it has a line in the results all the same.
    """

    command: str
    path: str
    package: str | None = None
    inputs: str | None = None
    data: str | None = None
    reference: str | None = None
    setup: str | None = None
    host: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    expected: str | None = None
    problem: str | None = None

    @property
    def id(self) -> str:
        """16 hex digits over the request; labels and expectations are no part of it."""
        request = [getattr(self, name) for name in _SENT]
        return hashlib.sha256(json.dumps(request).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose contents decide the answer, the one that it is about first."""
        return tuple(
            path
            for path in (self.path, self.package, self.inputs, self.data, self.reference, self.setup)
            if path is not None
        )


def item_json(item: FleetItem) -> JsonObject:
    """``item`` for another process, without what only the results need."""
    return {name: value for name in _SENT if (value := getattr(item, name)) is not None}


def read_item(document: JsonObject) -> FleetItem:
    """The item that ``item_json`` wrote."""
    given = {name: value for name in _SENT if isinstance(value := document.get(name), str)}
    return FleetItem(**{"command": "", "path": "", **given})  # type: ignore[arg-type]  # they are all texts


# Manifests.
MANIFESTS = (".csv", ".jsonl")
COLUMNS = ("package", "inputs", "data", "reference", "log", "setup", "host", "command", "labels", "expected")
_PATHS = ("package", "inputs", "data", "reference", "log", "setup")
# Characters: what a line of the results, which repeats them, can hold several times.
_LONGEST_ROW = 64 << 10
Row = Mapping[str, JsonValue]


def read_manifest(path: str, command: str) -> Iterator[FleetItem]:
    """The items of a manifest, judged by ``command`` where a row names none. Raises UsageError."""
    folder = os.path.dirname(path)
    try:
        with io.TextIOWrapper(open_regular(path), "utf-8-sig", "surrogateescape", newline="") as stream:
            rows = _csv(stream, path) if path.endswith(".csv") else _jsonl(stream, path)
            for place, row in rows:
                yield _item(row, place, folder, command)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


@dataclass(slots=True)
class ManifestRow:
    """The lines of a manifest; their sum is limited by ``_LONGEST_ROW`` until ``size`` is set to 0 at the end of a row.

    A quoted cell may go on for any number of lines. Raises UsageError.
    """

    stream: TextIO
    path: str
    number: int = 0
    size: int = 0

    def __iter__(self) -> Iterator[str]:
        """Yield the lines."""
        while line := self.stream.readline(_LONGEST_ROW + 1):
            self.number += 1
            self.size += len(line)
            if self.size > _LONGEST_ROW:
                raise UsageError(f"{self.path}:{self.number}: the row has more than {_LONGEST_ROW:,} characters")
            yield line


def _csv(stream: TextIO, path: str) -> Iterator[tuple[str, Row]]:
    csv.field_size_limit(_LONGEST_ROW)
    lines = ManifestRow(stream, path)
    rows = csv.reader(lines, strict=True)
    try:
        columns = [name.strip() for name in next(rows, [])]
        _look_at_columns(columns, f"{path}:1")
        for cells in rows:
            lines.size = 0
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
    lines = ManifestRow(stream, path)
    for line in lines:
        lines.size = 0
        place = f"{path}:{lines.number}"
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


def _item(row: Row, place: str, folder: str, command: str) -> FleetItem:
    labels = _labels(row.get("labels"), place)
    texts = {name: _text(name, value, place) for name, value in row.items() if name != "labels"}
    paths = {name: _below(folder, texts[name]) for name in _PATHS if name in texts}
    log, package = paths.get("log"), paths.get("package")
    chosen = texts.get("command") or ("classify" if log is not None else command)
    if chosen not in COMMANDS:
        raise UsageError(f"{place}: unknown command {chosen[:80]!r}; there are {', '.join(COMMANDS)}")
    if chosen in EXECUTING and command not in EXECUTING:
        raise UsageError(f"{place}: {chosen} executes what the row names; allow it with --command {chosen}")
    if log is not None and chosen != "classify":
        raise UsageError(f"{place}: a log is for classify, and the row requests {chosen}")
    path = log if chosen == "classify" else package
    if path is None:
        raise UsageError(f"{place}: {chosen} needs a {'log' if chosen == 'classify' else 'package'}")
    host = texts.get("host")
    # A profile beside the manifest, or the name of a built-in one.
    if host is not None and os.path.exists(beside := _below(folder, host)):
        host = beside
    return FleetItem(
        command=chosen,
        path=path,
        package=package if chosen == "classify" else None,
        inputs=paths.get("inputs"),
        data=paths.get("data"),
        reference=paths.get("reference"),
        setup=paths.get("setup"),
        host=host,
        labels=labels,
        expected=texts.get("expected"),
    )


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
    return path if is_url(path) else os.path.join(folder, path)


# Arguments of `batch`. Beside a package: its own inputs first, then those of the folder.
OWN_INPUTS = ("{stem}.inputs.pt", "{stem}.inputs.npz", "{stem}.inputs.safetensors", "{stem}.inputs.json")
FOLDER_INPUTS = ("sample.pt",)
PACKAGES, LOGS = (".pt2", ".pte"), (".log", ".txt", ".out", ".err")
CONFIG = "config.pbtxt"
MOST_ITEMS = 1_000_000
# The command that made a bundle names its members so.
_BUNDLE = ("bundle.json", "report.json")
_HEAD = 4096
_MAGIC = set("*?[")


@record
class ItemSearch:
    """``command`` is for packages; ``hosts`` are the profiles to judge for, none of them for this machine.

    ``inputs_pattern`` says where the inputs of a package are: ``{dir}``, ``{name}`` and ``{stem}`` are those of the
    package.
    """

    command: str
    hosts: tuple[str, ...] = ()
    inputs_pattern: str | None = None


def find_items(words: Sequence[str], search: ItemSearch) -> list[FleetItem]:
    """Every item, each once, in the order in which the words name them; those of a folder or a pattern sorted.

    Raises:
        UsageError: a word names nothing, or a manifest cannot be read.
    """
    found: dict[str, FleetItem] = {}
    for word in words:
        nothing = True
        for item in _of_word(word, search):
            nothing = False
            hosts = search.hosts if item.command in FOR_HOSTS and item.host is None else ()
            for each in [replace(item, host=host) for host in hosts] or [item]:
                found.setdefault(each.id, each)
            if len(found) > MOST_ITEMS:
                raise UsageError(f"more than {MOST_ITEMS:,} items")
        if nothing:
            raise UsageError(f"{word}: nothing there for {search.command}")
    return list(found.values())


def _of_word(word: str, search: ItemSearch) -> Iterator[FleetItem]:
    if is_url(word):
        yield _package(word, search, {})
    elif os.path.isdir(word):
        yield from _of_folder(word, search)
    elif os.path.lexists(word) or not _MAGIC & set(word):
        yield from _of_file(word, search)
    else:
        for path in sorted(glob.iglob(word, recursive=True)):
            yield from _of_folder(path, search) if os.path.isdir(path) else _of_file(path, search)


def _of_file(path: str, search: ItemSearch) -> Iterator[FleetItem]:
    if path.endswith(MANIFESTS):
        for row in read_manifest(path, search.command):
            yield _with_inputs(row, search)
        return
    match _kind(path):
        case "log":
            yield FleetItem(command="classify", path=path)
        case "sent":
            yield FleetItem(command="analyze", path=path)
        case _:
            yield _package(path, search, {})


def _kind(path: str) -> str:
    """``package``, ``log`` or ``sent`` (a bundle or a report)."""
    if path.endswith(PACKAGES):
        return "package"
    try:
        with opened_blob(path) as (blob, _):
            head = blob.read_at(0, _HEAD)
            if head.startswith(b"PK"):
                directory = read_zip_directory(blob)
                names = {entry.name for entry in directory.entries} if directory is not None else set()
                return "sent" if names.issuperset(_BUNDLE) else "package"
    except OSError:
        return "log" if path.endswith(LOGS) else "package"
    if head.lstrip().startswith(b"{") and f'"schema": {json.dumps(SCHEMA)}'.encode() in head:
        return "sent"
    return "package" if head.startswith(b"\x7fELF") or path.endswith((".so", ".pt", ".zip")) else "log"


def _of_folder(folder: str, search: ItemSearch) -> Iterator[FleetItem]:
    if search.command == "triton":
        yield from _models(folder)
        return
    if search.command in PACKAGE_COMMANDS:
        for path in _files_below(folder, PACKAGES):
            yield _package(path, search, _model_folder_inputs(path))
        return
    for path in _files_below(folder, LOGS):
        yield FleetItem(command="classify", path=path)


def _models(folder: str) -> Iterator[FleetItem]:
    """The folders of models in a repository, or the folder itself where it is one."""
    place = Path(folder)
    if (place / CONFIG).exists():
        yield FleetItem(command="triton", path=folder)
        return
    for model in sorted(place.iterdir()):
        if model.is_dir() and not model.name.startswith("."):
            yield FleetItem(command="triton", path=str(model), labels={"model": model.name})


def _files_below(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(here, name)


def _model_folder_inputs(path: str) -> dict[str, str]:
    """Model and version, where the package lies in a model repository of Triton."""
    version, model = Path(path).parent, Path(path).parent.parent
    if version.name.isdecimal() and (model / CONFIG).exists():
        return {"model": model.name, "version": version.name}
    return {}


def _package(path: str, search: ItemSearch, labels: dict[str, str]) -> FleetItem:
    data = _data_beside(path) if path.endswith(".pte") and search.command in ("check", "run") else None
    return _with_inputs(FleetItem(command=search.command, path=path, labels=labels, data=data), search)


def _data_beside(path: str) -> str | None:
    """The data file of an ExecuTorch program: where it is alone in a folder, the only one there."""
    folder = os.path.dirname(path) or "."
    with suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.endswith((".pte", ".ptd")))
        if len(names) == 2 and names[0].endswith(".ptd") != names[1].endswith(".ptd"):
            return os.path.join(folder, next(name for name in names if name.endswith(".ptd")))
    return None


def _with_inputs(item: FleetItem, search: ItemSearch) -> FleetItem:
    """``item`` with the inputs that its package has beside it, or where the pattern leads."""
    if item.command not in ("check", "run") or item.inputs is not None or is_url(item.path):
        return item
    folder, name = os.path.split(item.path)
    stem = name.rpartition(".")[0] or name
    patterns = (*OWN_INPUTS, *FOLDER_INPUTS) if search.inputs_pattern is None else (search.inputs_pattern,)
    for pattern in patterns:
        filled = _fill_pattern(pattern, folder or ".", name, stem)
        place = filled if search.inputs_pattern is not None else os.path.join(folder, filled)
        if os.path.isfile(place) and place != item.path:
            return replace(item, inputs=place)
    return item


def _fill_pattern(pattern: str, folder: str, name: str, stem: str) -> str:
    """``pattern`` with the names of a package; a name with braces stays as it is."""
    parts = {"{dir}": folder, "{name}": name, "{stem}": stem}
    filled, rest = "", pattern
    while rest:
        at, word = min(((rest.find(word), word) for word in parts if word in rest), default=(len(rest), ""))
        filled += rest[:at] + parts.get(word, "")
        rest = rest[at + len(word) :]
    return filled
