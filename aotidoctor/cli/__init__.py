"""The command line: one file per command, options in, exit status out, and nothing else.

Only this folder prints, ends the process or reads the environment.

To add a command, write its function in a file of its own and add a line to ``GROUPS``. The table is all that is read
at start-up: a command's module is imported when the command is named, and all of them for ``--help``. The first line
of the function's docstring is what ``--help`` says of it. What the stages do is imported in the function's body, so
that its own ``--help`` does not need them. ``@with_options`` of ``options.py`` gives it the output options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from aotidoctor.cli.lazy import CONTEXT, CommandEntry, group
from aotidoctor.version import __version__

# The examples at the end of a help, each of the command that it names.
_EXAMPLES = """\
aotidoctor run model.pt2 --inputs sample.pt
aotidoctor run model.pt2 --generate --report md:report.md --json
aotidoctor check model.pt2 --inputs sample.pt
aotidoctor check model.pt2 -i sample.npz --fail-on warn -q
aotidoctor localize model.pt2 --inputs sample.pt
aotidoctor localize model.pt2 -i sample.pt --reference exported.pt2 --report md:place.md
aotidoctor compare model.pt2 --inputs sample.pt --reference exported.pt2 --report json:report.json
aotidoctor compare --from report.json --rtol 1e-3 --atol 0:1e-5
aotidoctor map model.pt2 --inputs sample.pt -o map.html
aotidoctor map model.pt2 -i sample.pt --reference exported.pt2 --report trace:trace.json
aotidoctor classify crash.log
kubectl logs my-pod | aotidoctor classify - --package model.pt2 --report md:case.md
aotidoctor watch -- ./server --model model.pt2
aotidoctor watch --rerun --report md:crash.md -- python serve.py
aotidoctor explain
aotidoctor explain segfault
aotidoctor explain input-stride
aotidoctor repro model.pt2 --inputs sample.pt -o repro
aotidoctor repro model.pt2 -i sample.pt --from report.json --keep-weights
aotidoctor minimize model.pt2 --inputs sample.pt --reference exported.pt2
aotidoctor minimize model.pt2 -i sample.pt --reference exported.pt2 -o minimized --budget 1h
aotidoctor bundle model.pt2 --inputs sample.pt --dry-run
aotidoctor bundle model.pt2 --inputs sample.pt --run --log server.log -o case.zip
aotidoctor analyze case.zip
aotidoctor analyze report.json --format md
aotidoctor diff works.json fails.json
aotidoctor diff model.pt2 production-host.json --json
aotidoctor cases --cases desk.sqlite
aotidoctor cases --cause input-stride --json
aotidoctor cases list --cases desk.sqlite --words 'strides batch'
aotidoctor cases show 3 --cases desk.sqlite
aotidoctor cases note 3 'call .contiguous() first' --solved --cases desk.sqlite
aotidoctor cases export --cases desk.sqlite -o cases.json
aotidoctor cases import cases.json --cases desk.sqlite
aotidoctor cases merge other.sqlite --cases desk.sqlite
aotidoctor verify exported.pt2
aotidoctor verify exported.pt2 --setup ops.py --dynamic-shapes shapes.json --json
aotidoctor contract model.pt2 --emit python -o model_inputs.py
aotidoctor contract model.pt2 --emit cpp --reference exported.pt2 -o model_inputs.h
aotidoctor sweep model.pt2 --reference exported.pt2
aotidoctor sweep model.pt2 --budget 2m --report html:map.html --json
aotidoctor compat model.pt2 --host debian-13 --torch 2.14
aotidoctor compat *.pt2 --host production.json --host here --format md
aotidoctor triton models/
aotidoctor triton models/mlp --triton 26.05 --report md:serving.md
aotidoctor triton names model.pt2
aotidoctor triton names model.pt2 --triton 26.05 --json
aotidoctor triton init model.pt2 > models/mlp/config.pbtxt
aotidoctor triton init model.pt2 --max-batch-size 64 --naming forward -o models/mlp
aotidoctor triton rehearse models/mlp --inputs sample.pt --triton 26.05
aotidoctor triton rehearse models/mlp -i sample.pt --send INPUT__1=kwargs['mask']
aotidoctor stamp model.pt2 --reference exported.pt2 -o stamped.pt2
aotidoctor fix execstack model.pt2 -o fixed.pt2
aotidoctor batch models/ -o results
aotidoctor batch fleet.csv --host avx2.json --host avx512.json --command compat
aotidoctor fleet results/ --report html:fleet.html
aotidoctor fleet tonight/ --baseline yesterday/ --accepted accepted.toml --fail-on-new
aotidoctor inspect model.pt2
aotidoctor inspect model.pt2 --json
aotidoctor env
aotidoctor env --save host.json
aotidoctor env --host debian-13
aotidoctor demo
aotidoctor web
aotidoctor web --build site/
aotidoctor mcp --root models
aotidoctor mcp --root models --allow-run
aotidoctor plugins
aotidoctor plugins --json
aotidoctor schema > report.schema.json
source <(aotidoctor completion bash)
aotidoctor completion fish > ~/.config/fish/completions/aotidoctor.fish
aotidoctor man check | man -l -
aotidoctor man -o ~/.local/share/man/man1
"""


def _with_examples(table: Mapping[str, CommandEntry], above: str = "") -> dict[str, CommandEntry]:
    """The commands of ``table``, which follow ``above``, each with the examples that name it and none of its words."""
    found = {}
    for name, entry in table.items():
        command = f"aotidoctor {above}{name} "
        lines = (line for line in _EXAMPLES.splitlines() if command in f"{line} ")
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
