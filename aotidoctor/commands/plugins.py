"""``aotidoctor plugins``: the entry points that are installed, each with what the validator says of it."""

from __future__ import annotations

from typing import TypedDict

from aotidoctor.plugins import API
from aotidoctor.plugins.discover import Entry, found
from aotidoctor.reports.text import one_line


class Row(TypedDict):
    """One entry point. ``problem`` is None where it can be used, or was not looked at."""

    group: str
    name: str
    target: str
    distribution: str
    version: str
    problem: str | None


class Listed(TypedDict):
    """The document ``aotidoctor.plugins/1``; ``api`` is the version of the interface."""

    schema: str
    api: int
    validated: bool
    plugins: list[Row]


def listed(*, validate: bool) -> Listed:
    """All of them; with ``validate`` each is imported in a process of its own and described."""
    entries = found()
    problems: dict[Entry, str] = {}
    if validate and entries:
        # Not worth their import where there is nothing.
        from aotidoctor.plugins.active import take  # noqa: PLC0415
        from aotidoctor.runner.plugin_host import PluginHost  # noqa: PLC0415

        with PluginHost() as host:
            problems = dict(take(entries, host).broken)
    rows = [
        Row(
            group=entry.group,
            name=entry.name,
            target=entry.target,
            distribution=entry.distribution,
            version=entry.version,
            problem=problems.get(entry),
        )
        for entry in entries
    ]
    return Listed(schema="aotidoctor.plugins/1", api=API, validated=validate, plugins=rows)


def text(found_: Listed) -> str:
    """The same for a terminal."""
    if not found_["plugins"]:
        return f"no plugins are installed (interface {found_['api']})\n"
    good = "ok" if found_["validated"] else "not validated"
    lines = [
        f"{row['distribution']} {row['version']}  {row['group']} {row['name']} = {row['target']}: "
        f"{row['problem'] or good}"
        for row in found_["plugins"]
    ]
    return "".join(f"{one_line(line, 1000)}\n" for line in lines)
