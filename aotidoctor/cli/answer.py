"""How commands answer that make something other than a report: one JSON document, one line for an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer

from aotidoctor.cli.show import warn, write_stdout
from aotidoctor.version import __version__


def document(schema: str, body: Mapping[str, object]) -> str:
    """``body`` as a document of ``schema`` that says which tool wrote it."""
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - for JSON only

    return dumps({"schema": schema, "tool": {"name": "aotidoctor", "version": __version__}, **body})


@contextmanager
def answering(schema: str, package: str, *, json: bool) -> Iterator[None]:
    """Within: what cannot be examined ends the command with its exit status, and with a document under ``json``."""
    from aotidoctor.model.errors import AotidoctorError, UsageError  # noqa: PLC0415 - `--help` does not need it

    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except AotidoctorError as error:
        if json:
            write_stdout(document(schema, {"package": package, "cannot_examine": str(error)}))
        warn(str(error))
        raise typer.Exit(error.exit_status) from error
