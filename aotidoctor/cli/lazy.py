"""Import a command's module when the command is named, so that each pays for its own module only.

Apart from the table of commands, which imports it at start-up.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from aotidoctor.cli.interrupted_command import Command, ending_with_document

# Former names of options: accepted, and not shown by --help.
_RENAMED = {
    "rungs": "probes",
    "skip-rungs": "skip-probes",
    "output-dir": "output",
    "exported": "reference",
    "against": "package",
}


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "token_normalize_func": lambda token: _RENAMED.get(token, token),
}


class CommandEntry(NamedTuple):
    """The place of a command, ``module:function`` below aotidoctor.cli, and the examples at the end of its help.

    ``words`` are the commands that may stand where this one expects a path: ``aotidoctor triton names model.pt2``.
    With ``rest`` everything from the first argument on is another program's: ``aotidoctor watch ./server --port 8000``.
    The help of the program lists ``minor`` ones by name only.
    """

    place: str
    examples: tuple[str, ...] = ()
    words: Mapping[str, CommandEntry] = {}
    rest: bool = False
    minor: bool = False


class _Formatter(Protocol):
    """What of click's formatter is used here: Typer brings click along in some releases, and needs it in others."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]: ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...

    def write_text(self, text: str) -> None: ...


class Sectioned(TyperCommand):
    """A command whose help lists its options below the headings of their ``rich_help_panel``, without rich."""

    def format_options(self, ctx: typer.Context, formatter: _Formatter) -> None:  # type: ignore[override]
        """Write one section per heading; what has none comes first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None:
                plain = "Arguments" if param.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(param, "rich_help_panel", None) or plain, []).append(row)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)


def load(name: str, entry: CommandEntry) -> TyperCommand:
    """The command at ``entry``; imports its module."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings=CONTEXT)
    kind = _with_words(entry.words) if entry.words else _Command
    context = {**CONTEXT, "allow_interspersed_args": False} if entry.rest else None
    module, _, name_there = entry.place.partition(":")
    function: Command = getattr(import_module(f"aotidoctor.cli.{module}"), name_there)
    app.command(
        name,
        epilog="\b\nExamples:\n" + "\n".join(f"  {line}" for line in entry.examples),
        cls=kind,
        context_settings=context,
    )(ending_with_document(name, function))
    # One function, no callback: a command and no group.
    return cast("TyperCommand", get_command(app))


# Typer's base of them all, which has no public name.
_USAGE = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
# Endings of files that hold the arguments of a call.
_INPUTS = (".pt", ".pth", ".npz", ".npy", ".safetensors", ".json")


class _WrongUse(_USAGE):  # type: ignore[valid-type,misc]
    """An error of usage in three lines, itself first."""

    def show(self, file: IO[str] | None = None) -> None:
        """Print it."""
        help_of = (
            f"\n{self.ctx.get_usage()}\nTry '{self.ctx.command_path} -h' for help." if self.ctx is not None else ""
        )
        (file or sys.stderr).write(f"Error: {self.format_message()}{help_of}\n")


@contextmanager
def _in_few_lines() -> Iterator[None]:
    try:
        yield
    except _USAGE as error:
        if type(error).show is not _USAGE.show:
            # Typer's own page of a command without arguments.
            raise
        raise _WrongUse(error.format_message(), error.ctx) from error


class _Command(Sectioned):
    """A command that knows the file for which ``--inputs`` was forgotten."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse the words of the command line."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except _USAGE as error:
            takes_inputs = any("--inputs" in parameter.opts for parameter in self.params)
            if takes_inputs and not {"-i", "--inputs"} & {*words} and (file := _stray_inputs(words)) is not None:
                error.message = f"{error.message}. Did you mean --inputs {file}?".removeprefix(". ")
            raise


def _stray_inputs(words: Sequence[str]) -> str | None:
    """The file of arguments that stands alone behind another path."""
    alone = (word for before, word in pairwise(words) if not before.startswith("-") and word.endswith(_INPUTS))
    return next((word for word in alone if Path(word).is_file()), None)


class _Commands(Mapping[str, TyperCommand]):
    """The commands of a table by name. The names are known without importing anything."""

    def __init__(self, table: Mapping[str, CommandEntry]) -> None:
        self._table = table

    def __getitem__(self, name: str) -> TyperCommand:
        return load(name, self._table[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def group(groups: Mapping[str, Mapping[str, CommandEntry]]) -> type[TyperGroup]:
    """The class of a group with the commands of ``groups``, listed below their headings."""
    table = {name: entry for commands in groups.values() for name, entry in commands.items()}

    class LazyGroup(TyperGroup):
        """Looks a command up when it is named; only the group's help needs them all."""

        def __init__(self, **settings: object) -> None:
            super().__init__(**settings)  # type: ignore[arg-type]
            self.commands = _Commands(table)  # type: ignore[assignment]  # nothing is added later

        def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
            """Parse the options before the command."""
            with _in_few_lines():
                return super().parse_args(ctx, args)

        def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
            """Parse the words of the command, and run it."""
            with _in_few_lines():
                return super().invoke(ctx)

        def list_commands(self, _ctx: typer.Context) -> list[str]:  # type: ignore[override]
            return list(table)

        def resolve_command(  # type: ignore[override]
            self, ctx: typer.Context, args: list[str]
        ) -> tuple[str | None, TyperCommand | None, list[str]]:
            """The command that is named; a file in its place is one to check."""
            is_stray = args and args[0] not in table and not args[0].startswith("-") and Path(args[0]).exists()
            if is_stray and not ctx.resilient_parsing:
                raise _USAGE(f"No command is named. Did you mean: aotidoctor check {' '.join(map(shlex.quote, args))}")
            return super().resolve_command(ctx, args)  # type: ignore[return-value]

        def format_options(self, ctx: typer.Context, formatter: _Formatter) -> None:  # type: ignore[override]
            """Typer's options for completion are not shown: `completion` prints the same scripts."""
            for param in self.params:
                param.hidden = param.name in ("install_completion", "show_completion")  # type: ignore[attr-defined]
            super().format_options(ctx, formatter)  # type: ignore[arg-type]

        def format_commands(self, _ctx: typer.Context, formatter: _Formatter) -> None:  # type: ignore[override]
            """Write one section per heading: a line for each command, and one for all that are minor."""
            for heading, commands in groups.items():
                minor = [name for name, entry in commands.items() if entry.minor]
                rows = [(name, summary(load(name, commands[name]))) for name in commands if name not in minor]
                with formatter.section(heading):
                    formatter.write_dl(rows)
                    if minor:
                        formatter.write_text(f"Also: {', '.join(minor)}.")

    return LazyGroup


def summary(command: TyperCommand) -> str:
    """The first line of a command's help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _with_words(words: Mapping[str, CommandEntry]) -> type[TyperCommand]:
    """The class of a command whose first argument may be one of ``words``, which is then the command.

    The first argument is one of the words or it is a path; ``./names`` is the folder of that name.
    """

    class Words(_Command):
        """Hands over to the word's own command."""

        def shell_complete(self, ctx: typer.Context, incomplete: str) -> list[object]:  # type: ignore[override]
            """The words and the options that begin so."""
            found = super().shell_complete(ctx, incomplete)
            # The class of what click offers, which has no public name in Typer.
            offered = type(super().shell_complete(ctx, "-")[0])
            return [*found, *(offered(word) for word in words if word.startswith(incomplete))]

        def make_context(  # type: ignore[override]
            self, info_name: str | None, args: list[str], parent: typer.Context | None = None, **extra: object
        ) -> typer.Context:
            if args and args[0] in words:
                chosen = load(args[0], words[args[0]])
                return chosen.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)  # type: ignore[return-value]
            return super().make_context(info_name, args, parent=parent, **extra)  # type: ignore[return-value]

    return Words
