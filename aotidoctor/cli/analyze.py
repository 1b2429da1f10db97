"""``aotidoctor analyze``: a bundle or a saved report, judged again."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown

Sent = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle (.zip), or a JSON report.")]


@shown("sent", "cases")
def analyze(sent: Sent, *, cases: opt.Cases = None, show: Show) -> None:
    """Diagnose a bundle again, without its package, host or GPU.

    Repeats every check that needs no execution, keeps the results of the recorded runs, reads the logs in the bundle,
    and reports what changed. Executes, unpickles and unpacks nothing.
    """
    from aotidoctor.commands.analyze.analyze import analyze as judge  # noqa: PLC0415 - `--help` does not need the stages

    execute("analyze", sent, replace(show, cases=cases), lambda _: judge(sent, argv=argv()), static=True)
