"""The commands and their options as plain values, read from the commands themselves: for completion and man pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, cast

from aotidoctor import cli
from aotidoctor.cli.lazy import Entry, load
from aotidoctor.model.record import record


@record
class Word:
    """An option.

    ``names`` are its spellings; ``value`` is what it takes (empty: it takes nothing); ``choices`` are all that it may
    take; ``is_file`` tells whether that is a file or a folder.
    """

    names: tuple[str, ...]
    help: str
    value: str = ""
    choices: tuple[str, ...] = ()
    is_file: bool = False


@record
class Described:
    """A command: ``path`` are its words (``("triton", "init")``), ``usage`` is its line of help without its name."""

    path: tuple[str, ...]
    summary: str
    text: str
    usage: str
    arguments: tuple[Word, ...]
    options: tuple[Word, ...]
    examples: tuple[str, ...]
    below: tuple[str, ...]


_FILES = ("FILE", "PATH", "DIR", "PROFILE", "LIB", "REPORT", "PACKAGE", "LOG", "REPOSITORY", "MODEL_DIR", "BUNDLE")
_SETTINGS = ("FMT:PATH",)


class _Type(Protocol):
    name: str


class _Param(Protocol):
    """What of an option or argument is used here: Typer brings click along in some releases, and needs it in others."""

    param_type_name: str
    opts: list[str]
    secondary_opts: list[str]
    metavar: str | None
    type: _Type


def described() -> tuple[Described, ...]:
    """Every command in the order of ``--help``, those below another one behind it."""
    return tuple(_all(cli.COMMANDS, ()))


def _all(table: Mapping[str, Entry], above: tuple[str, ...]) -> Iterator[Described]:
    for name, entry in table.items():
        path = (*above, name)
        yield _one(path, entry)
        yield from _all(entry.words, path)


def _one(path: tuple[str, ...], entry: Entry) -> Described:
    command = load(path[-1], entry)
    with command.make_context(" ".join(path), [], resilient_parsing=True) as context:
        params = [cast("_Param", param) for param in command.get_params(context)]
    arguments = tuple(_argument(param) for param in params if param.param_type_name == "argument")
    hidden = [param for param in params if getattr(param, "hidden", False)]
    text = (command.help or "").replace("\b\n", "")
    return Described(
        path=path,
        summary=" ".join(text.partition("\n\n")[0].split()),
        text=text.partition("\n\n")[2].strip(),
        usage=" ".join(("[OPTIONS]", *(word.value for word in arguments))),
        arguments=arguments,
        options=tuple(_option(param) for param in params if param.param_type_name == "option" and param not in hidden),
        examples=entry.examples,
        below=tuple(entry.words),
    )


def _argument(param: _Param) -> Word:
    value = param.metavar or param.opts[0].upper()
    return Word(names=(value.strip("[]."),), help=_help(param), value=value, is_file=_is_file(value))


def _option(param: _Param) -> Word:
    takes = not (getattr(param, "is_flag", False) or getattr(param, "count", False))
    choices = tuple(str(getattr(one, "value", one)) for one in getattr(param.type, "choices", ()))
    value = (param.metavar or "|".join(choices) or param.type.name.upper()) if takes else ""
    names = sorted((*param.opts, *param.secondary_opts), key=lambda name: (name.startswith("--no-"), -len(name)))
    return Word(names=tuple(names), help=_help(param), value=value, choices=choices, is_file=_is_file(value))


def _help(param: _Param) -> str:
    return " ".join((getattr(param, "help", None) or "").split())


def _is_file(value: str) -> bool:
    return any(word in _FILES for word in value.strip("[]").replace("...", "").split("|")) or value in _SETTINGS
