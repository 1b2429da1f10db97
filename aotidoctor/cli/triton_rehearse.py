"""``aotidoctor triton rehearse``: what the server would do with these inputs, done in a child."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli.asked import asked
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options

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


@shown("model_dir", "model_dir/config.pbtxt", "inputs", "setup", "custom_op_library")
@asked("setup custom_op_library trust_pickle timeout memory_limit")
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
    said = sent(send)
    from aotidoctor.commands import triton_rehearse  # noqa: PLC0415 - `--help` does not need the stages

    wish = triton_rehearse.Wish(
        inputs=inputs,
        triton=release,
        requests=request_batch,
        said=said,
        load_hook=load_hook,
        options=wanted,
    )
    execute(
        "triton",
        model_dir,
        show,
        lambda on_event: triton_rehearse.rehearse(model_dir, wish, argv=argv(), environ=os.environ, on_event=on_event),
    )


def sent(pairs: list[str] | None) -> dict[str, str]:
    """``NAME=PATH`` pairs as a table."""
    table = dict(text.partition("=")[::2] for text in pairs or ())
    if not all(name and path for name, path in table.items()):
        raise typer.BadParameter("write NAME=PATH, such as INPUT__1=args[1]['a']", param_hint="--send")
    return {name: path.replace('"', "'") for name, path in table.items()}
