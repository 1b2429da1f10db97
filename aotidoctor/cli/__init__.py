"""The command line: one file per command, options in, exit status out, and nothing else.

Only this folder prints, ends the process or reads the environment.

To add a command, write its function in a file of its own and add a line to ``GROUPS``. The table is all that is read
at start-up: a command's module is imported when the command is named, and all of them for ``--help``. The first line
of the function's docstring is what ``--help`` says of it. What the stages do is imported in the function's body, so
that its own ``--help`` does not need them. ``@with_options`` of ``options.py`` gives it the output options.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from aotidoctor.cli.lazy import CONTEXT, CommandEntry, group
from aotidoctor.version import __version__

# The examples at the end of a help, each of the command that it names.
_EXAMPLES = Path(__file__).with_name("examples.txt").read_text(encoding="utf-8").splitlines()


def _with_examples(table: Mapping[str, CommandEntry], above: str = "") -> dict[str, CommandEntry]:
    """The commands of ``table``, which follow ``above``, each with the examples that name it and none of its words."""
    found = {}
    for name, entry in table.items():
        command = f"aotidoctor {above}{name} "
        lines = (line for line in _EXAMPLES if command in f"{line} ")
        own = (line for line in lines if not any(f"{command}{word} " in line for word in entry.words))
        found[name] = entry._replace(examples=tuple(own))
    return found


# What may stand after ``triton`` instead of a path.
TRITON_WORDS = _with_examples(
    {
        "names": CommandEntry("triton_commands:triton_names"),
        "init": CommandEntry("triton_commands:triton_init"),
        "rehearse": CommandEntry("triton_commands:rehearse"),
    },
    "triton ",
)

# Commands that may follow ``cases``.
CASES_WORDS = _with_examples(
    {
        "list": CommandEntry("send_commands:cases"),
        "show": CommandEntry("send_commands:show"),
        "note": CommandEntry("send_commands:note"),
        "export": CommandEntry("send_commands:export"),
        "import": CommandEntry("send_commands:import_"),
        "merge": CommandEntry("send_commands:merge"),
    },
    "cases ",
)

# The headings of --help, each with its commands in the order in which a newcomer needs them.
_GROUPS = {
    "Diagnose": {
        "run": CommandEntry("diagnose_commands:run"),
        "check": CommandEntry("diagnose_commands:check"),
        "localize": CommandEntry("diagnose_commands:localize"),
        "compare": CommandEntry("diagnose_commands:compare"),
        "map": CommandEntry("map_command:map_"),
        "classify": CommandEntry("diagnose_commands:classify"),
        "watch": CommandEntry("watch_command:watch", rest=True),
        "explain": CommandEntry("tool_commands:explain"),
    },
    "Send": {
        "repro": CommandEntry("send_commands:repro"),
        "minimize": CommandEntry("prevent_commands:minimize"),
        "bundle": CommandEntry("send_commands:bundle"),
        "analyze": CommandEntry("send_commands:analyze"),
        "diff": CommandEntry("send_commands:diff"),
        "cases": CommandEntry("send_commands:cases", words=CASES_WORDS),
    },
    "Prevent": {
        "verify": CommandEntry("prevent_commands:verify"),
        "contract": CommandEntry("prevent_commands:contract"),
        "sweep": CommandEntry("prevent_commands:sweep"),
        "compat": CommandEntry("prevent_commands:compat"),
        "triton": CommandEntry("triton_commands:triton", words=TRITON_WORDS),
        "stamp": CommandEntry("prevent_commands:stamp"),
        "fix": CommandEntry("prevent_commands:fix"),
    },
    "Many": {"batch": CommandEntry("fleet_commands:batch"), "fleet": CommandEntry("fleet_commands:fleet")},
    "Tools": {
        "inspect": CommandEntry("tool_commands:inspect"),
        "env": CommandEntry("tool_commands:env"),
        "demo": CommandEntry("tool_commands:demo"),
        "web": CommandEntry("tool_commands:web"),
        "mcp": CommandEntry("tool_commands:mcp"),
        "plugins": CommandEntry("tool_commands:plugins", minor=True),
        "schema": CommandEntry("tool_commands:schema", minor=True),
        "completion": CommandEntry("completion_and_man:completion", minor=True),
        "man": CommandEntry("completion_and_man:man", minor=True),
    },
}
GROUPS = {heading: _with_examples(commands) for heading, commands in _GROUPS.items()}
COMMANDS = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}

STATUSES = """\b
Exit status: 0 nothing found, 1 problem found and named, 2 usage error,
3 failure reproduced but unexplained, 4 could not examine, 5 internal error,
6 out of time (partial report), 130 interrupted, 143 and 129 ended by SIGTERM and
SIGHUP (partial reports)."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aotidoctor {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find out why an AOTInductor package crashes, hangs or gives wrong numbers, and prove it."""


def build_app() -> typer.Typer:
    """The Typer application with all commands."""
    app = typer.Typer(
        cls=group(GROUPS),
        # Plain help and plain usage errors: importing rich would cost every command its start-up time.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,
        no_args_is_help=True,
        epilog=STATUSES,
        context_settings=CONTEXT,
    )
    app.callback()(_root)
    return app
