"""``aotidoctor schema``: the JSON Schema of reports."""

from __future__ import annotations

from aotidoctor.cli.show import write_stdout


def schema() -> None:
    """Print the JSON Schema of the JSON report."""
    # `--help` does not need these.
    from aotidoctor.reports.json_ import dumps  # noqa: PLC0415
    from aotidoctor.reports.schema import schema as report_schema  # noqa: PLC0415

    write_stdout(dumps(report_schema()))
