"""List the installed entry points, each with its problem if it has one (``aotidoctor plugins``)."""

from __future__ import annotations

from typing import TypedDict

from aotidoctor.plugins import API
from aotidoctor.plugins.discover import PluginEntry, find_plugins
from aotidoctor.reports.text import one_line


class PluginRow(TypedDict):
    """One entry point. ``problem`` is None if it can be used, or was not validated."""

    group: str
    name: str
    target: str
    distribution: str
    version: str
    problem: str | None


class PluginList(TypedDict):
    """The document ``aotidoctor.plugins/1``; ``api`` is the version of the plugin interface."""

    schema: str
    api: int
    validated: bool
    plugins: list[PluginRow]


def list_plugins(*, validate: bool) -> PluginList:
    """List all entry points; with ``validate`` each is imported in a process of its own."""
    entries = find_plugins()
    problems: dict[PluginEntry, str] = {}
    if validate and entries:
        # Imported only where there are plugins.
        from aotidoctor.plugins.proxies import load_plugins
        from aotidoctor.runner.own_command import PluginHost

        with PluginHost() as host:
            problems = dict(load_plugins(entries, host).broken)
    rows = [
        PluginRow(
            group=entry.group,
            name=entry.name,
            target=entry.target,
            distribution=entry.distribution,
            version=entry.version,
            problem=problems.get(entry),
        )
        for entry in entries
    ]
    return PluginList(schema="aotidoctor.plugins/1", api=API, validated=validate, plugins=rows)


def plugin_list_text(found_: PluginList) -> str:
    """The list as text for a terminal."""
    if not found_["plugins"]:
        return f"no plugins are installed (interface {found_['api']})\n"
    good = "ok" if found_["validated"] else "not validated"
    lines = [
        f"{row['distribution']} {row['version']}  {row['group']} {row['name']} = {row['target']}: "
        f"{row['problem'] or good}"
        for row in found_["plugins"]
    ]
    return "".join(f"{one_line(line, 1000)}\n" for line in lines)
