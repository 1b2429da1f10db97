"""``aotidoctor bundle``: one file to send, made safe and proven to be."""

from __future__ import annotations

import enum
import os
import platform
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, examined
from aotidoctor.cli.progress import make_progress
from aotidoctor.cli.show import FailOn, warn, write_stdout
from aotidoctor.cli.urls import fetched
from aotidoctor.model.case import Options
from aotidoctor.model.errors import AotidoctorError, UsageError
from aotidoctor.model.event import OnEvent
from aotidoctor.model.report import Report
from aotidoctor.reports.status import exit_status


class Include(str, enum.Enum):
    """What is sent only when it is asked for."""

    WEIGHTS = "weights"
    INPUTS = "inputs"
    PACKAGE = "package"


Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Bundle to write. [default: PACKAGE.bundle.zip, here]"),
]
Run = Annotated[bool, typer.Option("--run", help="Run the package, as `run` does. Default: check it only.")]
From = Annotated[str | None, typer.Option("--from", metavar="REPORT", help="Send this saved JSON report.")]
Log = Annotated[list[str] | None, typer.Option("--log", metavar="FILE", help="Also send this log; repeatable.")]
Includes = Annotated[
    list[Include] | None,
    typer.Option("--include", help="Also send this; it cannot be redacted. Repeatable."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would be sent, without writing it.")]
Words = Annotated[
    list[str] | None, typer.Option("--redact-word", metavar="WORD", help="Also hide this word; repeatable.")
]
Map = Annotated[
    str | None,
    typer.Option(
        "--map", metavar="FILE", help="File that maps placeholders to what they replace. [default: next to the bundle]"
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow-leaks", metavar="WORD", help="Write the bundle even if it contains this word; repeatable."),
]
MaxSize = Annotated[
    int, typer.Option("--max-size", parser=opt.size, metavar="SIZE", help="Largest size of the bundle.")
]


@fetched("package", "inputs", "log", "setup", "reference", "from_")
@asked("model_name device setup custom_op_library reference generate trust_pickle timeout budget")
def bundle(
    package: opt.Package,
    inputs: opt.Inputs = None,
    *,
    output: Output = None,
    run: Run = False,
    from_: From = None,
    log: Log = None,
    include: Includes = None,
    dry_run: DryRun = False,
    redact_word: Words = None,
    map_: Map = None,
    allow_leaks: Allow = None,
    max_size: MaxSize = 256 << 20,
    wanted: Options,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
) -> None:
    """Pack everything that a report needs into one file, without private data.

    Weights and values of tensors are left out; names and secrets become placeholders, and the finished file is searched
    for them. Executes nothing, unless --run is given.
    """
    from aotidoctor.commands.bundle.deliver import Target, check_target, deliver  # noqa: PLC0415 - `--help` needs none of it
    from aotidoctor.commands.bundle.listing import listing  # noqa: PLC0415
    from aotidoctor.commands.bundle.pieces import Material, Wanted  # noqa: PLC0415
    from aotidoctor.commands.bundle.produce import examine, with_saved  # noqa: PLC0415
    from aotidoctor.reports.json.render import dumps  # noqa: PLC0415

    opt.one_source(inputs, generate=wanted.generate)
    if run and from_ is not None:
        raise typer.BadParameter("--run and --from cannot be combined", param_hint="--from")
    _check_words(redact_word)
    contents = Wanted(
        logs=tuple(log or ()),
        include=tuple(item.value for item in include or ()),
        words=tuple(redact_word or ()),
        allowed=tuple(allow_leaks or ()),
        redact=redact,
        largest=max_size,
    )
    place = Path(output) if output is not None else Path(f"{Path(package).name or 'package'}.bundle.zip")
    target = Target(path=place, map_path=Path(map_) if map_ is not None else None, dry=dry_run)
    material: list[Material] = []

    def work(on_event: OnEvent) -> Report:
        check_target(target, (package, inputs, wanted.reference, wanted.setup, from_, *contents.logs))
        found = examine(package, inputs, wanted, runs=run, argv=argv(), environ=os.environ, on_event=on_event)
        material.append(found if from_ is None else with_saved(found, from_))
        return found.report

    report = examined("bundle", package, work, make_progress(sys.stderr, os.environ, quiet=quiet))
    if report.cannot_examine is not None and not contents.logs:
        _fail(report.cannot_examine)
    try:
        made = deliver(
            material[0] if material else Material(report=report), contents, target, os.environ, platform.node()
        )
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error
    except AotidoctorError as error:
        _fail(str(error))
    map_place = str(target.map_file) if contents.redact else None
    told = listing(made, place=str(place), map_place=map_place, dry=dry_run, brief=quiet)
    write_stdout(dumps(made.manifest) if json else told)
    raise typer.Exit(exit_status(report, fail_on.value))


def _check_words(words: list[str] | None) -> None:
    short = [word for word in words or () if len(word) < 3]
    if short:
        raise typer.BadParameter(f"{short[0]!r} is too short to search for", param_hint="--redact-word")


def _fail(message: str) -> NoReturn:
    warn(message)
    raise typer.Exit(4)
