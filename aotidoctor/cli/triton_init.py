"""``aotidoctor triton init``: a config.pbtxt for a package, or why there is none."""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, examined, present
from aotidoctor.cli.progress import make_progress
from aotidoctor.cli.show import FailOn, Format, write_output, write_stdout
from aotidoctor.cli.shown import make_show
from aotidoctor.cli.urls import fetched
from aotidoctor.reports.status import exit_status

if TYPE_CHECKING:
    from aotidoctor.commands.triton_init import Drawn
    from aotidoctor.model.report import Report

_NAME = "config.pbtxt"


class Naming(str, enum.Enum):
    """How tensors are named."""

    ORDINAL = "ordinal"
    FORWARD = "forward"


MaxBatchSize = Annotated[
    int, typer.Option("--max-batch-size", min=0, metavar="N", help="Largest batch; 0: no batching.")
]
NamingOption = Annotated[Naming, typer.Option("--naming", help="INPUT__0, or ARGS[0] where that is safe.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder to write to. [default: stdout]")
]
ReportFormat = Annotated[
    Format | None, typer.Option("--format", help="Show the report on the config instead of the config.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@fetched("package")
def triton_init(
    package: opt.Package,
    *,
    max_batch_size: MaxBatchSize = 0,
    naming: NamingOption = Naming.ORDINAL,
    output: Output = None,
    force: Force = False,
    release: opt.Release = None,
    format_: ReportFormat = None,
    json: opt.Json = False,
    redact: opt.Redact = True,
) -> None:
    """Write a config.pbtxt for a package that `aotidoctor triton` passes.

    If no config can serve the package, the output contains comments with the reason, and the exit status is 1. With
    --format the report is shown instead of the config.
    """
    target = _target(output)
    if target is not None and target.exists() and not force:
        raise typer.BadParameter(f"{target} exists; --force overwrites it", param_hint="--output")
    if target is not None and os.path.realpath(target) == os.path.realpath(package):
        raise typer.BadParameter(f"{target} is the package", param_hint="--output")
    show = make_show((package,), format_=format_, json=json, redact=redact)
    drawn: list[Drawn] = []

    def work(_: object) -> Report:
        from aotidoctor.commands import triton_init as package_config  # noqa: PLC0415 - `--help` does not need the stages
        from aotidoctor.triton.config_writer import Wanted  # noqa: PLC0415

        wanted = Wanted(max_batch_size=max_batch_size, naming=naming.value)
        drawn.append(package_config.draw_config(package, wanted, triton=release, argv=argv(), environ=os.environ))
        return drawn[0].report

    report = examined("triton", package, work, make_progress(sys.stderr, os.environ, quiet=False))
    text = drawn[0].text if drawn else None
    if target is not None and text is not None:
        write_output(target, text)
    if drawn and target is None and format_ is None and not json:
        write_stdout(text if text is not None else _refusal(drawn[0]))
        raise typer.Exit(exit_status(report, FailOn.ERROR.value))
    raise typer.Exit(present(report, show, os.environ))


def _target(output: str | None) -> Path | None:
    if output is None or output == "-":
        return None
    path = Path(output)
    return path / _NAME if path.is_dir() else path


def _refusal(drawn: Drawn) -> str:
    """Why there is no config, as comments: what is redirected into a file holds no half of one."""
    release = drawn.report.extra.get("release", "")
    judged = drawn.report.cannot_examine is None
    head = f"No config serves this package with Triton {release}:" if judged else "No config can be made:"
    return "".join(f"# {line}\n" for line in (head, *drawn.reasons))
