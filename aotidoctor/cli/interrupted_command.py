"""End a command that SIGINT, SIGTERM or SIGHUP interrupts: a document that says so, and an exit status of its own.

Every command goes through ``ending_with_document``. A command that has a partial result shows it by itself; what is
here is for all others, and for the time before there is a result. stdout gets one document or none: none where it would
hold code or a configuration, and none behind one that was written before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature

import typer

from aotidoctor.interruption import held, interruptible, requested_signal, signal_status

Command = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own
SCHEMA = "aotidoctor.interrupted/1"


def ending_with_document(name: str, function: Command) -> Command:
    """The command ``function``, called ``name``, whose interruption ends in a document."""

    @wraps(function)
    def command(**given: object) -> None:
        try:
            with interruptible():
                function(**given)
        except KeyboardInterrupt:
            with held():
                _write_document(name, given)
            raise typer.Exit(signal_status()) from None

    return command


def _write_document(name: str, given: dict[str, object]) -> None:
    """Write what the format of stdout permits; one line to stderr where that is nothing."""
    # Imported here: most commands are not interrupted.
    from aotidoctor.cli import document_output as output

    by = requested_signal() or "an interrupt"
    why = f"{name} was interrupted by {by} before it had a result"
    format_ = getattr(given.get("format_"), "value", None)
    if output.has_written():
        output.warn(f"{name} was interrupted by {by}; what it wrote before stands")
    elif "no_plugins" in given:
        from aotidoctor.cli.execute import interrupted_report, present_report
        from aotidoctor.cli.options import make_show

        taken = given.keys() & signature(make_show).parameters.keys()
        show = make_show((), **{key: given[key] for key in taken})  # type: ignore[arg-type]  # as Typer made them
        path = next((str(given[key]) for key in ("package", "path") if isinstance(given.get(key), str)), "")
        present_report(interrupted_report(name, path), replace(show, extras=()), os.environ)
    elif given.get("json") or format_ == "json":
        output.write_stdout(output.json_document(SCHEMA, {"command": name, "interrupted": by, "not_done": why}))
    elif "json" in given and format_ in (None, "rich", "md"):
        output.write_stdout(f" INTERRUPTED  {why}\n")
    else:
        output.warn(why)
