"""What ``--report`` makes besides documents (``repro:DIR``): work that begins when the report is written.

An entry is a function of the report as it is, unredacted; the folder or file to write; the environment; and whether
what it writes is redacted. It returns one line for stderr. A failure of its own is a warning: the report is out, and
its exit status stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from aotidoctor.cli.show import say
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.fault import whereabouts
from aotidoctor.model.report import Report
from aotidoctor.reports.text import neutral
from aotidoctor.reports.write import write_file

Extra = Callable[[Report, Path, Mapping[str, str], bool], str]


def _bundle(report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    from aotidoctor.commands.bundle.deliver import deliver_report  # noqa: PLC0415 - for --report bundle: only

    return deliver_report(report, path, environ, redact=redact)


def _repro(report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    # For --report repro: only.
    from aotidoctor.commands.repro.command import line_of, of_report  # noqa: PLC0415

    return line_of(of_report(report, path, environ, redact=redact), path)


def _plugin(name: str, report: Report, path: Path, environ: Mapping[str, str], redact: bool) -> str:
    """In the format of a plugin, which gets the report as it is shown."""
    from aotidoctor.plugins.active import PluginError, render_with  # noqa: PLC0415 - for a format of a plugin only
    from aotidoctor.reports.redact import redacted  # noqa: PLC0415 - likewise

    shown = redacted(report, environ) if redact else report
    try:
        write_file(path, render_with(name, shown))
    except PluginError as error:
        return f"warning: no {name} at {path}: the plugin failed: {error}"
    return f"{name} written to {path}"


EXTRAS: Mapping[str, Extra] = {"bundle": _bundle, "repro": _repro}


def write_extras(
    report: Report, extras: Sequence[tuple[str, Path]], environ: Mapping[str, str], *, redact: bool
) -> None:
    """Make each of ``extras``, pairs of a key of ``EXTRAS`` and a path, and say on stderr what became of it."""
    for kind, path in extras:
        say(f"aotidoctor: {neutral(_made(kind, report, path, environ, redact=redact))}\n")


def _made(kind: str, report: Report, path: Path, environ: Mapping[str, str], *, redact: bool) -> str:
    try:
        return EXTRAS.get(kind, partial(_plugin, kind))(report, path, environ, redact)
    except (OSError, AotidoctorError) as error:
        return f"warning: no {kind} at {path}: {error}"
    except Exception as error:  # noqa: BLE001 - the document is out: nothing may change its exit status any more
        return f"warning: no {kind} at {path}: {whereabouts(error)}"
