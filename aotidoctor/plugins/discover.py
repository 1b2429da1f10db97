"""Find installed plugins: read the entry points of installed distributions as text.

``importlib.metadata`` alone would cost every command as much as reading a package; here a folder is listed and the one
file of each distribution is searched for our name. The folder that a command is called in is not searched: what lies
beside a stranger's package is not installed. Apart from the proxies, since every command imports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from aotidoctor.model.record import record
from aotidoctor.plugins import GROUPS
from aotidoctor.readers.host.environment import import_path

_MARK = b"[aotidoctor."
_LARGEST, _MOST = 64 << 10, 200
_SECTION = re.compile(r"^\[aotidoctor\.([a-z_]{1,40})\]$")
_ENTRY = re.compile(r"^([A-Za-z0-9_.-]{1,80})\s{0,20}=\s{0,20}([\w.]{1,200}(?::[\w.]{1,200})?)$")
_VERSION = re.compile(r"^Version:\s{0,20}(\S{1,80})", re.MULTILINE)


@record
class PluginEntry:
    """One entry point: ``target`` is ``module:attribute`` or a module; ``distribution`` has it, in its ``version``."""

    group: str
    name: str
    target: str
    distribution: str
    version: str

    @property
    def label(self) -> str:
        """The name of the plugin in a report."""
        return f"{self.distribution} {self.version}: {self.group} {self.name}"


def find_plugins() -> tuple[PluginEntry, ...]:
    """Find all entry points of plugins, in a fixed order; of duplicates the one that Python would import first."""
    entries: dict[tuple[str, str, str], PluginEntry] = {}
    for folder in dict.fromkeys(import_path()):
        for entry in _of_folder(folder):
            entries.setdefault((entry.group, entry.name, entry.distribution), entry)
    order = {group: number for number, group in enumerate(GROUPS)}
    ordered = sorted(entries.values(), key=lambda one: (order.get(one.group, 99), one.name, one.distribution))
    return tuple(ordered[:_MOST])


def _of_folder(folder: str) -> Iterator[PluginEntry]:
    try:
        with os.scandir(folder) as items:
            names = sorted(item.name for item in items if item.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return
    for name in names:
        try:
            # Not through pathlib: hundreds at every start.
            with open(f"{folder}/{name}/entry_points.txt", "rb") as stream:  # noqa: PTH123
                data = stream.read(_LARGEST)
        except OSError:
            continue
        if _MARK in data:
            yield from _of_distribution(Path(folder) / name, data.decode("utf-8", "replace"))


def _of_distribution(folder: Path, text: str) -> Iterator[PluginEntry]:
    name = folder.name.rpartition(".")[0].partition("-")[0]
    metadata = next((path for path in (folder / "METADATA", folder / "PKG-INFO") if path.is_file()), None)
    head = metadata.read_bytes()[:_LARGEST].decode("utf-8", "replace") if metadata is not None else ""
    version = _VERSION.search(head)
    section = None
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            named = _SECTION.match(stripped)
            section = named[1] if named else None
        elif section is not None and (entry := _ENTRY.match(stripped)):
            release = version[1] if version else "?"
            yield PluginEntry(group=section, name=entry[1], target=entry[2], distribution=name, version=release)
