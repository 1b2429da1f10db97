"""Words that may stand where a command expects a path: ``aotidoctor triton names model.pt2``.

The first argument is one of the words or it is a path; ``./names`` is the folder of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer
from typer.core import TyperCommand
from typer.main import get_command

if TYPE_CHECKING:
    from typer.core import TyperGroup

Command = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own


def with_words(words: Mapping[str, Command], epilogs: Mapping[str, str]) -> type[TyperCommand]:
    """The class of a command whose first argument may be one of ``words``, which is then the command."""

    class Words(TyperCommand):
        """Hands over to the word's own command."""

        def make_context(  # type: ignore[override]
            self, info_name: str | None, args: list[str], parent: typer.Context | None = None, **extra: object
        ) -> typer.Context:
            if args and args[0] in words:
                chosen = _group(words, epilogs).commands[args[0]]
                return chosen.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)  # type: ignore[return-value]
            return super().make_context(info_name, args, parent=parent, **extra)  # type: ignore[return-value]

    return Words


def _group(words: Mapping[str, Command], epilogs: Mapping[str, str]) -> TyperGroup:
    app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})
    # Of one command alone Typer would make no group.
    app.callback()(lambda: None)
    for name, command in words.items():
        app.command(name, epilog=epilogs.get(name))(command)
    group = get_command(app)
    assert hasattr(group, "commands")  # noqa: S101 - the callback makes it one
    return group  # type: ignore[return-value]
