"""``aotidoctor triton names``: what the server calls the tensors of a package."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown


@shown("package")
def triton_names(package: opt.Package, *, release: opt.Release = None, show: Show) -> None:
    """Show the server's name for each input and output of a package.

    Numbers (INPUT__1) count in the order of the sample at export; nothing is sorted. If no config can serve the
    package, the reason is shown.
    """
    from aotidoctor.commands import triton_init  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "triton",
        package,
        show,
        lambda _: triton_init.names(package, triton=release, argv=argv(), environ=os.environ),
    )
