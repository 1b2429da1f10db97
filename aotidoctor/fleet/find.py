"""What the arguments of ``batch`` mean: packages, logs, bundles, reports, model folders, manifests.

A file is taken by what it is: a package is judged by the command that was asked for, a log by ``classify``, a bundle or
a report by ``analyze``, a ``.csv`` or ``.jsonl`` file is a manifest. Of a folder the files are taken that the command
is for: ``*.pt2``, for ``classify`` logs, for ``triton`` the folders of models.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from aotidoctor.fleet.item import FOR_HOSTS, PACKAGE_COMMANDS, Item
from aotidoctor.fleet.manifest import MANIFESTS, read_manifest
from aotidoctor.model.errors import UsageError
from aotidoctor.model.record import record
from aotidoctor.model.report import SCHEMA
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_directory import read_directory
from aotidoctor.remote.urls import is_url

# Beside a package: its own inputs first, then those of the folder.
OWN_INPUTS = ("{stem}.inputs.pt", "{stem}.inputs.npz", "{stem}.inputs.safetensors", "{stem}.inputs.json")
FOLDER_INPUTS = ("sample.pt",)
PACKAGES, LOGS = (".pt2",), (".log", ".txt", ".out", ".err")
CONFIG = "config.pbtxt"
MOST_ITEMS = 1_000_000
# The command that made a bundle names its members so.
_BUNDLE = ("bundle.json", "report.json")
_HEAD = 4096
_MAGIC = set("*?[")


@record
class Search:
    """``command`` is for packages; ``hosts`` are the profiles to judge for, none of them for this machine.

    ``inputs_pattern`` says where the inputs of a package are: ``{dir}``, ``{name}`` and ``{stem}`` are those of the
    package.
    """

    command: str
    hosts: tuple[str, ...] = ()
    inputs_pattern: str | None = None


def find_items(words: Sequence[str], search: Search) -> list[Item]:
    """Every item, each once, in the order in which the words name them; those of a folder or a pattern sorted.

    Raises:
        UsageError: a word names nothing, or a manifest cannot be read.
    """
    found: dict[str, Item] = {}
    for word in words:
        nothing = True
        for item in _of_word(word, search):
            nothing = False
            for each in _for_hosts(item, search):
                found.setdefault(each.id, each)
            if len(found) > MOST_ITEMS:
                raise UsageError(f"more than {MOST_ITEMS:,} items")
        if nothing:
            raise UsageError(f"{word}: nothing there for {search.command}")
    return list(found.values())


def _for_hosts(item: Item, search: Search) -> Iterator[Item]:
    hosts = search.hosts if item.command in FOR_HOSTS and item.host is None else ()
    yield from (replace(item, host=host) for host in hosts) if hosts else (item,)


def _of_word(word: str, search: Search) -> Iterator[Item]:
    if is_url(word):
        yield _package(word, search, {})
    elif os.path.isdir(word):  # noqa: PTH112 - of any name
        yield from _of_folder(word, search)
    elif os.path.lexists(word) or not _MAGIC & set(word):
        yield from _of_file(word, search)
    else:
        for path in sorted(glob.iglob(word, recursive=True)):  # noqa: PTH207 - as it was given
            yield from _of_folder(path, search) if os.path.isdir(path) else _of_file(path, search)  # noqa: PTH112


def _of_file(path: str, search: Search) -> Iterator[Item]:
    if path.endswith(MANIFESTS):
        for row in read_manifest(path, search.command):
            yield _with_inputs(row, search)
        return
    match _kind(path):
        case "log":
            yield Item(command="classify", path=path)
        case "sent":
            yield Item(command="analyze", path=path)
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
                directory = read_directory(blob)
                names = {entry.name for entry in directory.entries} if directory is not None else set()
                return "sent" if names.issuperset(_BUNDLE) else "package"
    except OSError:
        return "log" if path.endswith(LOGS) else "package"
    if head.lstrip().startswith(b"{") and f'"schema": {json.dumps(SCHEMA)}'.encode() in head:
        return "sent"
    return "package" if head.startswith(b"\x7fELF") or path.endswith((".so", ".pt", ".zip")) else "log"


def _of_folder(folder: str, search: Search) -> Iterator[Item]:
    if search.command == "triton":
        yield from _models(folder)
        return
    if search.command in PACKAGE_COMMANDS:
        for path in _below(folder, PACKAGES):
            yield _package(path, search, _served(path))
        return
    for path in _below(folder, LOGS):
        yield Item(command="classify", path=path)


def _models(folder: str) -> Iterator[Item]:
    """The folders of models in a repository, or the folder itself where it is one."""
    place = Path(folder)
    if (place / CONFIG).exists():
        yield Item(command="triton", path=folder)
        return
    for model in sorted(place.iterdir()):
        if model.is_dir() and not model.name.startswith("."):
            yield Item(command="triton", path=str(model), labels={"model": model.name})


def _below(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(here, name)  # noqa: PTH118 - of any name


def _served(path: str) -> dict[str, str]:
    """Model and version, where the package lies in a model repository of Triton."""
    version, model = Path(path).parent, Path(path).parent.parent
    if version.name.isdecimal() and (model / CONFIG).exists():
        return {"model": model.name, "version": version.name}
    return {}


def _package(path: str, search: Search, labels: dict[str, str]) -> Item:
    return _with_inputs(Item(command=search.command, path=path, labels=labels), search)


def _with_inputs(item: Item, search: Search) -> Item:
    """With the inputs that lie where they are looked for."""
    if item.command not in ("check", "run") or item.inputs is not None or is_url(item.path):
        return item
    folder, name = os.path.split(item.path)
    stem = name.rpartition(".")[0] or name
    patterns = (*OWN_INPUTS, *FOLDER_INPUTS) if search.inputs_pattern is None else (search.inputs_pattern,)
    for pattern in patterns:
        filled = _filled(pattern, folder or ".", name, stem)
        place = filled if search.inputs_pattern is not None else os.path.join(folder, filled)  # noqa: PTH118
        if os.path.isfile(place) and place != item.path:  # noqa: PTH113 - of any name
            return replace(item, inputs=place)
    return item


def _filled(pattern: str, folder: str, name: str, stem: str) -> str:
    """``pattern`` with the names of a package; a name with braces stays as it is."""
    parts = {"{dir}": folder, "{name}": name, "{stem}": stem}
    filled, rest = "", pattern
    while rest:
        at, word = min(((rest.find(word), word) for word in parts if word in rest), default=(len(rest), ""))
        filled += rest[:at] + parts.get(word, "")
        rest = rest[at + len(word) :]
    return filled
