"""``aotidoctor completion`` and ``man``: Typer's completion, and man pages made of what ``--help`` shows."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # it has no public name

from aotidoctor import cli
from aotidoctor.cli import options as opt
from aotidoctor.cli.document_output import write_output, write_stderr, write_stdout
from aotidoctor.cli.lazy import CommandEntry, load, summary
from aotidoctor.version import __version__


class Shell(str, enum.Enum):
    """Shells that a script can be made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print completion of commands, options and their values for a shell.

    TAB asks aotidoctor itself, so that causes, hosts, probes and formats are those of the installed version.
    """
    script = get_completion_script(prog_name="aotidoctor", complete_var="_AOTIDOCTOR_COMPLETE", shell=shell.value)
    write_stdout(f"{script}\n{_AUTOLOADED if shell is Shell.ZSH else ''}")


# In a folder of fpath the script is the function for the first TAB, which would define the function for the next ones.
_AUTOLOADED = """
if [[ $funcstack[1] = _aotidoctor ]]; then
  _aotidoctor_completion
fi
"""
# The command man.
Folder = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Write all pages to this folder, such as ~/.local/share/man/man1."
    ),
]
Command = Annotated[
    str | None,
    typer.Argument(
        metavar="[COMMAND]",
        help="A command, such as check or triton-init.",
        autocompletion=opt.offer(lambda: cli.COMMANDS),
    ),
]
_NAME = "aotidoctor"
_SUMMARY = "find out why an AOTInductor package crashes, hangs or gives wrong numbers, and prove it"
# What roff prints nothing for: an entry without a word would take the next one.
_NOTHING = "\\&"


def man(command: Command = None, *, output_dir: Folder = None) -> None:
    """Print a man page, or write all of them.

    `aotidoctor man check | man -l -` shows one.
    """
    if output_dir is not None and command is not None:
        raise typer.BadParameter("COMMAND and --output cannot be combined", param_hint="--output")
    made = man_pages()
    if output_dir is not None:
        for name, text in made.items():
            write_output(Path(output_dir) / f"{name}.1", text)
        write_stderr(f"aotidoctor: {len(made)} pages written to {output_dir}\n")
        return
    name = f"{_NAME}-{command}" if command else _NAME
    if name not in made:
        raise typer.BadParameter(f"no command {command!r}", param_hint="COMMAND")
    write_stdout(made[name])


def man_pages() -> Mapping[str, str]:
    """The pages as roff by name: that of the program, then one for each command, followed by those of its words."""
    commands = dict(_commands(cli.COMMANDS, ()))
    rows = [(" ".join(path), summary(load(path[-1], entry))) for path, entry in commands.items()]
    names = ["-".join((_NAME, *path)) for path in commands]
    program = [_head(_NAME, _SUMMARY), f".B {_NAME}\nCOMMAND [OPTIONS]\n", _section("COMMANDS", rows), _end(names)]
    pages = [_page(name, path, entry) for name, (path, entry) in zip(names, commands.items(), strict=True)]
    return {_NAME: "".join(program), **dict(zip(names, pages, strict=True))}


def _commands(
    table: Mapping[str, CommandEntry], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], CommandEntry]]:
    for name, entry in table.items():
        yield (*above, name), entry
        yield from _commands(entry.words, (*above, name))


def _page(name: str, path: tuple[str, ...], entry: CommandEntry) -> str:
    command = load(path[-1], entry)
    with command.make_context(" ".join(path), [], resilient_parsing=True) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        params = [(param.param_type_name, param.get_help_record(context)) for param in command.get_params(context)]
    arguments, options = (
        [row for kind, row in params if row is not None and kind == wanted] for wanted in ("argument", "option")
    )
    _, *more = (command.help or "").replace("\b\n", "").split("\n\n")
    parts = [
        _head(name, summary(command)),
        f".B {_NAME} {_roff(' '.join(path))}\n{_roff(usage)}\n",
        f".SH DESCRIPTION\n{_roff(summary(command))}\n",
        *(f".PP\n{_roff(part.strip())}\n" for part in more if part.strip()),
        _section("ARGUMENTS", arguments) if arguments else "",
        _section("OPTIONS", options),
    ]
    if entry.examples:
        parts += [".SH EXAMPLES\n.nf\n", *(f"{_roff(line)}\n" for line in entry.examples), ".fi\n"]
    return "".join((*parts, _end([_NAME])))


def _head(name: str, text: str) -> str:
    title = f'.TH "{name.upper()}" 1 "" "{_NAME} {__version__}" "User Commands"\n'
    return f"{title}.SH NAME\n{_roff(name)} \\- {_roff(text.rstrip('.'))}\n.SH SYNOPSIS\n"


def _section(title: str, rows: list[tuple[str, str]]) -> str:
    entries = (f".TP\n.B {_roff(names)}\n{_roff(text) or _NOTHING}\n" for names, text in rows)
    return "".join((f".SH {title}\n", *entries))


def _end(names: list[str]) -> str:
    statuses = _roff(cli.STATUSES.partition(": ")[2])
    also = ",\n".join(f".BR {_roff(name)} (1)" for name in names)
    return f".SH EXIT STATUS\n{statuses}\n.SH SEE ALSO\n{also}\n"


def _roff(text: str) -> str:
    """Text that roff prints as it stands: a backslash, a hyphen, and what begins a line like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))
