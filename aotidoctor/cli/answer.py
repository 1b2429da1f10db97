"""How commands answer that make something other than a report: one JSON document, one line for an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import typer

from aotidoctor.cli.show import warn, write_stdout
from aotidoctor.model.errors import AotidoctorError, LimitReachedError, UsageError
from aotidoctor.model.fault import FAILED_HERE, whereabouts
from aotidoctor.version import __version__


def document(schema: str, body: Mapping[str, object]) -> str:
    """``body`` as a document of ``schema`` that says which tool wrote it."""
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415 - for JSON only

    return dumps({"schema": schema, "tool": {"name": "aotidoctor", "version": __version__}, **body})


@contextmanager
def answering(schema: str | None, package: str) -> Iterator[None]:
    """Within: what cannot be examined ends the command with its exit status; with a document where ``schema`` is given.

    So does a failure of our own, with 5: a traceback would end it with 1, which says that the model has a problem.
    """

    def told(field: str, message: str) -> None:
        if schema is not None:
            write_stdout(document(schema, {"package": package, field: message}))

    try:
        yield
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except LimitReachedError as reached:
        told("out_of_time", str(reached))
        warn(str(reached))
        raise typer.Exit(6) from reached
    except AotidoctorError as error:
        told("cannot_examine", str(error))
        warn(str(error))
        raise typer.Exit(error.exit_status) from error
    except (typer.Exit, typer.BadParameter):
        raise
    except Exception as error:
        note = whereabouts(error)
        told("internal_error", note)
        warn(f"{FAILED_HERE}: {note}")
        raise typer.Exit(5) from error
