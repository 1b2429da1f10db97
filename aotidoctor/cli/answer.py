"""How commands answer that make something other than a report: one JSON document, one line for an error."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePath

import typer

from aotidoctor.cli.show import warn, write_stdout
from aotidoctor.model.fault import FAILED_HERE
from aotidoctor.version import __version__


def document(schema: str, body: Mapping[str, object]) -> str:
    """``body`` as a document of ``schema`` that says which tool wrote it."""
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - for JSON only

    return dumps({"schema": schema, "tool": {"name": "aotidoctor", "version": __version__}, **body})


@contextmanager
def answering(schema: str, package: str, *, json: bool) -> Iterator[None]:
    """Within: what cannot be examined ends the command with its exit status, and with a document under ``json``.

    So does a failure of our own, with 5: a traceback would end it with 1, which says that the model has a problem.
    """
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
    except typer.Exit:
        raise
    except Exception as error:
        # Only the type and the place: the message may hold what is private.
        where = traceback.extract_tb(error.__traceback__)[-1]
        note = f"{type(error).__name__} at {PurePath(where.filename).name}:{where.lineno}"
        if json:
            write_stdout(document(schema, {"package": package, "internal_error": note}))
        warn(f"{FAILED_HERE}: {note}")
        raise typer.Exit(5) from error
