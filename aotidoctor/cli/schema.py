"""``aotidoctor schema``: the JSON Schema of reports and of differences."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from aotidoctor.cli.show import write_stdout


class Document(str, enum.Enum):
    """Documents with a schema."""

    REPORT = "report"
    DIFF = "diff"


Which = Annotated[Document, typer.Argument(metavar="[report|diff]", help="Which document.")]


def schema(document: Which = Document.REPORT) -> None:
    """Print the JSON Schema of the JSON report."""
    # `--help` does not need these.
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415

    if document is Document.DIFF:
        from aotidoctor.reports.json.difference_schema import schema as difference_schema  # noqa: PLC0415

        write_stdout(dumps(difference_schema()))
        return
    from aotidoctor.reports.json.schema import schema as report_schema  # noqa: PLC0415

    write_stdout(dumps(report_schema()))
