"""``aotidoctor man``: the man pages, made from the commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aotidoctor.cli.show import say, warn, write_stdout
from aotidoctor.reports.status import CANNOT_EXAMINE
from aotidoctor.reports.write import write_file
from aotidoctor.version import __version__

if TYPE_CHECKING:
    from aotidoctor.cli.option_table import Described, Word

Folder = Annotated[
    str | None,
    typer.Option(
        "--output-dir", "-o", metavar="DIR", help="Write all pages to this folder, such as ~/.local/share/man/man1."
    ),
]
Command = Annotated[str | None, typer.Argument(metavar="[COMMAND]", help="A command, such as check or triton-init.")]

_STATUSES = (
    ("0", "examined; nothing at or above --fail-on"),
    ("1", "a problem was found and its cause named"),
    ("2", "usage error"),
    ("3", "a failure was reproduced, its cause is unknown"),
    ("4", "could not examine"),
    ("5", "internal error of aotidoctor"),
    ("6", "out of time; the report is valid and partial"),
    ("130", "interrupted; 143 and 129: ended by SIGTERM and SIGHUP"),
)


# What roff prints nothing for: an entry without a word would take the next one.
_NOTHING = "\\&"


def man(command: Command = None, *, output_dir: Folder = None) -> None:
    """Print a man page, or write all of them.

    `aotidoctor man check | man -l -` shows one.
    """
    from aotidoctor.cli.option_table import described  # noqa: PLC0415 - `--help` does not need all commands

    commands = described()
    made = {"aotidoctor": overview(commands), **{_name(one): page(one) for one in commands}}
    if output_dir is not None:
        if command is not None:
            raise typer.BadParameter("COMMAND and --output-dir cannot be combined", param_hint="--output-dir")
        _write(made, Path(output_dir))
        return
    name = f"aotidoctor-{command}" if command else "aotidoctor"
    if name not in made:
        raise typer.BadParameter(f"no command {command!r}", param_hint="COMMAND")
    write_stdout(made[name])


def _write(made: Mapping[str, str], folder: Path) -> None:
    try:
        for name, text in made.items():
            write_file(folder / f"{name}.1", text)
    except OSError as error:
        warn(f"could not write {folder}: {error.strerror or error}")
        raise typer.Exit(CANNOT_EXAMINE) from error
    say(f"aotidoctor: {len(made)} pages written to {folder}\n")


def _name(one: Described) -> str:
    return "-".join(("aotidoctor", *one.path))


def page(one: Described) -> str:
    """The page of a command as roff."""
    parts = [
        _head(_name(one), one.summary),
        ".SH SYNOPSIS\n",
        f".B aotidoctor {_roff(' '.join(one.path))}\n{_roff(one.usage)}\n",
        ".SH DESCRIPTION\n",
        f"{_roff(one.summary)}\n",
        *(f".PP\n{_roff(part)}\n" for part in one.text.split("\n\n") if part),
    ]
    parts += [".SH ARGUMENTS\n", *(_entry(word, word.value) for word in one.arguments)] if one.arguments else []
    parts += [".SH OPTIONS\n", *(_entry(word, ", ".join(word.names)) for word in one.options)]
    if one.examples:
        parts += [".SH EXAMPLES\n.nf\n", *(f"{_roff(line)}\n" for line in one.examples), ".fi\n"]
    return "".join((*parts, _exit(), _see(("aotidoctor",))))


def overview(commands: tuple[Described, ...]) -> str:
    """The page of the program."""
    summary = "find out why an AOTInductor package crashes, hangs or gives wrong numbers, and prove it"
    rows = [f".TP\n.B {_roff(' '.join(one.path))}\n{_roff(one.summary)}\n" for one in commands]
    synopsis = ".SH SYNOPSIS\n.B aotidoctor\nCOMMAND [OPTIONS]\n.SH COMMANDS\n"
    return "".join((_head("aotidoctor", summary), synopsis, *rows, _exit(), _see(_name(one) for one in commands)))


def _head(name: str, summary: str) -> str:
    title = f'.TH "{name.upper()}" 1 "" "aotidoctor {__version__}" "User Commands"\n'
    return f"{title}.SH NAME\n{_roff(name)} \\- {_roff(summary.rstrip('.'))}\n"


def _entry(word: Word, names: str) -> str:
    value = f" \\fI{_roff(word.value)}\\fR" if word.value and word.value != names else ""
    return f".TP\n\\fB{_roff(names)}\\fR{value}\n{_roff(word.help) or _NOTHING}\n"


def _exit() -> str:
    rows = "".join(f".TP\n.B {status}\n{_roff(meaning)}\n" for status, meaning in _STATUSES)
    return f".SH EXIT STATUS\n{rows}"


def _see(names: Iterable[str]) -> str:
    shown = ",\n".join(f".BR {_roff(name)} (1)" for name in names)
    return f".SH SEE ALSO\n{shown}\n"


def _roff(text: str) -> str:
    """Text that roff prints as it stands: a backslash, a hyphen, and what begins a line like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))
