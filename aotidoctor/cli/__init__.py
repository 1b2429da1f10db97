"""The command line: one file per command, options in, exit status out, and nothing else.

Only this folder prints, ends the process or reads the environment.
"""

from __future__ import annotations

from typing import Annotated

import typer

from aotidoctor.cli.check import check
from aotidoctor.cli.compare import compare
from aotidoctor.cli.demo import demo
from aotidoctor.cli.env import env
from aotidoctor.cli.explain import explain
from aotidoctor.cli.inspect import inspect
from aotidoctor.cli.localize import localize
from aotidoctor.cli.run import run
from aotidoctor.cli.schema import schema
from aotidoctor.cli.triton import triton
from aotidoctor.cli.triton_init import triton_init
from aotidoctor.cli.triton_names import triton_names
from aotidoctor.cli.triton_rehearse import rehearse
from aotidoctor.cli.verify import verify
from aotidoctor.cli.words import Command, with_words
from aotidoctor.version import __version__

# In the order in which a newcomer needs them.
COMMANDS = (run, check, localize, compare, verify, triton, inspect, env, explain, schema, demo)
# What may stand after ``triton`` instead of a path.
TRITON_WORDS: dict[str, Command] = {"names": triton_names, "init": triton_init, "rehearse": rehearse}

_STATUS = """\b
Exit status: 0 nothing found, 1 problem found and named, 2 usage error,
3 failure reproduced but unexplained, 4 could not examine, 5 internal error,
6 out of time (partial report), 130 interrupted (partial report)."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aotidoctor {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Find out why an AOTInductor package crashes, hangs or gives wrong numbers, and prove it."""


def build_app() -> typer.Typer:
    """The Typer application with all commands."""
    app = typer.Typer(
        # Plain help and plain usage errors: importing rich would cost every command its start-up time.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        no_args_is_help=True,
        epilog=_STATUS,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    epilogs = {word: _epilog(f"triton {word}") for word in TRITON_WORDS}
    for command in COMMANDS:
        kind = with_words(TRITON_WORDS, epilogs) if command is triton else None
        app.command(epilog=_epilog(command.__name__), cls=kind)(command)
    return app


def _epilog(name: str) -> str:
    lines = _EXAMPLES[name]
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


_EXAMPLES = {
    "run": (
        "aotidoctor run model.pt2 --inputs sample.pt",
        "aotidoctor run model.pt2 --generate --report md:report.md --json",
    ),
    "check": (
        "aotidoctor check model.pt2 --inputs sample.pt",
        "aotidoctor check model.pt2 -i sample.npz --fail-on warn -q",
    ),
    "localize": (
        "aotidoctor localize model.pt2 --inputs sample.pt",
        "aotidoctor localize model.pt2 -i sample.pt --reference exported.pt2 --report md:place.md",
    ),
    "compare": (
        "aotidoctor compare model.pt2 --inputs sample.pt --reference exported.pt2 --report json:report.json",
        "aotidoctor compare --from report.json --rtol 1e-3 --atol result[1]:1e-5",
    ),
    "verify": (
        "aotidoctor verify exported.pt2",
        "aotidoctor verify exported.pt2 --setup ops.py --dynamic-shapes shapes.json --json",
    ),
    "triton": (
        "aotidoctor triton models/",
        "aotidoctor triton models/mlp --triton 26.05 --report md:serving.md",
    ),
    "triton names": ("aotidoctor triton names model.pt2", "aotidoctor triton names model.pt2 --triton 26.05 --json"),
    "triton init": (
        "aotidoctor triton init model.pt2 > models/mlp/config.pbtxt",
        "aotidoctor triton init model.pt2 --max-batch-size 64 --naming forward -o models/mlp",
    ),
    "triton rehearse": (
        "aotidoctor triton rehearse models/mlp --inputs sample.pt --triton 26.05",
        "aotidoctor triton rehearse models/mlp -i sample.pt --send INPUT__1=kwargs['mask']",
    ),
    "inspect": ("aotidoctor inspect model.pt2", "aotidoctor inspect model.pt2 --json"),
    "env": ("aotidoctor env", "aotidoctor env --format md"),
    "explain": ("aotidoctor explain input-stride", "aotidoctor explain AD-IN-014"),
    "schema": ("aotidoctor schema > report.schema.json",),
    "demo": ("aotidoctor demo",),
}
