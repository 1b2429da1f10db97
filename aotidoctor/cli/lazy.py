"""Import a command's module when the command is named, so that each pays for its own module only.

Apart from the table of commands, which imports it at start-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from aotidoctor.cli.interrupted_command import Command, ending_with_document

# Former names of options: accepted, and not shown by --help.
_RENAMED = {"rungs": "probes", "skip-rungs": "skip-probes"}


CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "token_normalize_func": lambda token: _RENAMED.get(token, token),
}


class CommandEntry(NamedTuple):
    """The place of a command, ``module:function`` below aotidoctor.cli, and the examples at the end of its help.

    ``words`` are the commands that may stand where this one expects a path: ``aotidoctor triton names model.pt2``.
    With ``rest`` everything from the first argument on is another program's: ``aotidoctor watch ./server --port 8000``.
    """

    place: str
    examples: tuple[str, ...]
    words: Mapping[str, CommandEntry] = {}
    rest: bool = False


def load(name: str, entry: CommandEntry) -> TyperCommand:
    """The command at ``entry``; imports its module."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings=CONTEXT)
    kind = _with_words(entry.words) if entry.words else None
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


def group(table: Mapping[str, CommandEntry]) -> type[TyperGroup]:
    """The class of a group with the commands of ``table``, listed in its order."""

    class LazyGroup(TyperGroup):
        """Looks a command up when it is named; only the group's help needs them all."""

        def __init__(self, **settings: object) -> None:
            super().__init__(**settings)  # type: ignore[arg-type]
            self.commands = _Commands(table)  # type: ignore[assignment]  # nothing is added later

        def list_commands(self, _ctx: typer.Context) -> list[str]:  # type: ignore[override]
            return list(table)

    return LazyGroup


def _with_words(words: Mapping[str, CommandEntry]) -> type[TyperCommand]:
    """The class of a command whose first argument may be one of ``words``, which is then the command.

    The first argument is one of the words or it is a path; ``./names`` is the folder of that name.
    """

    class Words(TyperCommand):
        """Hands over to the word's own command."""

        def make_context(  # type: ignore[override]
            self, info_name: str | None, args: list[str], parent: typer.Context | None = None, **extra: object
        ) -> typer.Context:
            if args and args[0] in words:
                chosen = load(args[0], words[args[0]])
                return chosen.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)  # type: ignore[return-value]
            return super().make_context(info_name, args, parent=parent, **extra)  # type: ignore[return-value]

    return Words
