"""``aotidoctor inspect``: what is in the package, its contract, and what it needs of a host."""

from __future__ import annotations

import os

from aotidoctor.cli import options as opt
from aotidoctor.cli.execute import argv, execute
from aotidoctor.cli.show import Show
from aotidoctor.cli.shown import shown
from aotidoctor.model.case import Options


@shown("package")
def inspect(package: opt.Package, *, model_name: opt.ModelName = None, show: Show) -> None:
    """Show the contents of a package and its requirements.

    Executes nothing from PACKAGE, and needs no torch.
    """
    wanted = Options(model_name=model_name)
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - `--help` does not need the stages

    execute(
        "inspect",
        package,
        show,
        lambda _: diagnose.inspect(package, wanted, argv=argv(), environ=os.environ),
        static=True,
    )
