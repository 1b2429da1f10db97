"""``aotidoctor triton`` with ``names``, ``init``, ``rehearse``: check packages for Triton before the server starts."""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor import cli
from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import FailOn, Format, Show, write_output, write_stdout
from aotidoctor.cli.execute import argv, execute, make_progress, present_report, report_of_work
from aotidoctor.cli.options import make_show, with_options
from aotidoctor.cli.url_arguments import with_fetched_urls
from aotidoctor.model.case import Options
from aotidoctor.model.report import OnEvent, Report
from aotidoctor.reports.text import exit_status

if TYPE_CHECKING:
    from aotidoctor.commands.triton import ConfigDraft


Repository = Annotated[
    str,
    typer.Argument(
        metavar="REPOSITORY|MODEL_DIR",
        help="A model repository, or the folder of one model.",
        autocompletion=opt.offer(lambda: cli.TRITON_WORDS),
    ),
]


@with_options("repository", "repository/config.pbtxt")
def triton(
    repository: Repository,
    *,
    release: opt.Release = None,
    load_hook: opt.LoadHook = False,
    timeout: opt.Timeout = 60.0,
    show: Show,
) -> None:
    """Show how Triton Inference Server would handle a config.pbtxt and its package.

    Executes nothing without --load-hook, and needs neither torch nor a server. For a folder with the name of a command
    below, write ./names.
    """
    seconds = timeout if load_hook else None
    execute(
        "triton",
        repository,
        show,
        lambda on_event: _work(repository, release, on_event, hook_seconds=seconds),
        static=not load_hook,
    )


def _work(repository: str, release: str | None, on_event: OnEvent, *, hook_seconds: float | None) -> Report:
    """The rules alone, or with a call of the init library that may take ``hook_seconds``."""
    from aotidoctor.commands import triton as server

    if hook_seconds is None:
        return server.judge_repository(repository, triton=release, argv=argv(), environ=os.environ)
    request = server.RehearsalRequest(triton=release, load_hook=True, options=Options(timeout=hook_seconds))
    return server.rehearse(repository, request, argv=argv(), environ=os.environ, on_event=on_event)


@with_options("package")
def triton_names(package: opt.Package, *, release: opt.Release = None, show: Show) -> None:
    """Show the server's name for each input and output of a package.

    Numbers (INPUT__1) count in the order of the sample at export; nothing is sorted. If no config can serve the
    package, the reason is shown.
    """
    from aotidoctor.commands import triton as server

    execute(
        "triton", package, show, lambda _: server.server_names(package, triton=release, argv=argv(), environ=os.environ)
    )


_NAME = "config.pbtxt"


class Naming(str, enum.Enum):
    """Naming schemes of tensors."""

    ORDINAL = "ordinal"
    FORWARD = "forward"


MaxBatchSize = Annotated[
    int, typer.Option("--max-batch-size", min=0, metavar="N", help="Largest batch; 0: no batching.")
]
NamingOption = Annotated[Naming, typer.Option("--naming", help="INPUT__0, or ARGS[0] where that is safe.")]
Output = Annotated[str | None, opt.output("PATH", "File or folder to write to. [default: stdout]")]
ReportFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Show the report on the config instead of the config.", rich_help_panel=opt.OUTPUT),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.", rich_help_panel=opt.OUTPUT)]


@with_fetched_urls("package")
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
    if output is None or output == "-":
        target = None
    else:
        path = Path(output)
        target = path / _NAME if path.is_dir() else path
    if target is not None and target.exists() and not force:
        raise typer.BadParameter(f"{target} exists; --force overwrites it", param_hint="--output")
    if target is not None and os.path.realpath(target) == os.path.realpath(package):
        raise typer.BadParameter(f"{target} is the package", param_hint="--output")
    show = make_show((package,), format_=format_, json=json, redact=redact)
    drawn: list[ConfigDraft] = []

    def work(_: object) -> Report:
        from aotidoctor.commands import triton as package_config
        from aotidoctor.triton.servable import ConfigOptions

        wanted = ConfigOptions(max_batch_size=max_batch_size, naming=naming.value)
        drawn.append(package_config.draw_config(package, wanted, triton=release, argv=argv(), environ=os.environ))
        return drawn[0].report

    report = report_of_work("triton", package, work, make_progress(sys.stderr, os.environ, quiet=False))
    text = drawn[0].text if drawn else None
    if target is not None and text is not None:
        write_output(target, text)
    if drawn and target is None and format_ is None and not json:
        if text is None:
            # Why there is no config, as comments: what is redirected into a file holds no half of one.
            judged = drawn[0].report.cannot_examine is None
            served = f"No config serves this package with Triton {drawn[0].report.extra.get('release', '')}:"
            head = served if judged else "No config can be made:"
            text = "".join(f"# {line}\n" for line in (head, *drawn[0].reasons))
        write_stdout(text)
        raise typer.Exit(exit_status(report, FailOn.ERROR.value))
    raise typer.Exit(present_report(report, show, os.environ))


ModelDir = Annotated[str, typer.Argument(metavar="MODEL_DIR", help="The folder of one model, with its config.pbtxt.")]
RequestBatch = Annotated[
    int | None,
    typer.Option(
        "--request-batch",
        min=1,
        max=64,
        metavar="N",
        help="Number of requests per execution. [default: 2 if the server merges them]",
    ),
]
Send = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PATH", help="What clients send or expect under a name: INPUT__1=args[1]['a']."),
]


@with_options(
    "model_dir", "model_dir/config.pbtxt", "inputs", case="setup custom_op_library trust_pickle timeout memory_limit"
)
def rehearse(
    model_dir: ModelDir,
    inputs: opt.RequiredInputs,
    *,
    release: opt.Release = None,
    request_batch: RequestBatch = None,
    send: Send = None,
    load_hook: opt.LoadHook = False,
    wanted: Options,
    show: Show,
) -> None:
    """Do with real tensors what the server would do with them, and compare with the plain call.

    Runs the package's native code in a child. Names become slots, types and batches as in the release: swapped inputs,
    types that are read as different types, and rows of other requests show as different outputs.
    """
    table = dict(text.partition("=")[::2] for text in send or ())
    if not all(name and path for name, path in table.items()):
        raise typer.BadParameter("write NAME=PATH, such as INPUT__1=args[1]['a']", param_hint="--send")
    expectations = {name: path.replace('"', "'") for name, path in table.items()}
    from aotidoctor.commands import triton as server

    request = server.RehearsalRequest(
        inputs=inputs, triton=release, requests=request_batch, sends=expectations, load_hook=load_hook, options=wanted
    )
    execute(
        "triton",
        model_dir,
        show,
        lambda on_event: server.rehearse(model_dir, request, argv=argv(), environ=os.environ, on_event=on_event),
    )
