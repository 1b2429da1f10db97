"""``aotidoctor completion`` and ``man``: shell completion and man pages, made from the commands' own options."""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Protocol, cast

import typer

from aotidoctor import cli
from aotidoctor.cli.document_output import write_output, write_stderr, write_stdout
from aotidoctor.cli.lazy import CommandEntry, load
from aotidoctor.model.record import record
from aotidoctor.version import __version__


# The commands and their options as plain values.
@record
class Word:
    """An option or argument.

    ``names`` are its spellings; ``value`` is what it takes (empty: it takes nothing); ``choices`` are known values;
    ``is_file`` states whether it may also be a file or a folder.
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


# Metavars of files.
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


def describe_commands() -> tuple[Described, ...]:
    """Describe every command in the order of ``--help``, each followed by its subcommands."""
    return tuple(_all(cli.COMMANDS, ()))


@lru_cache(maxsize=1)
def _known_values() -> Mapping[str, tuple[str, ...]]:
    """Values by metavar, where the type of an option does not have them: causes, hosts, probes, formats of a file."""
    from aotidoctor.cli.document_output import EXTRAS, Format
    from aotidoctor.commands.explain import topics
    from aotidoctor.commands.stamp_and_fix import FIXES
    from aotidoctor.model.report import playbook_files
    from aotidoctor.probes import PROBES
    from aotidoctor.readers.host.profiles import built_in_profiles

    kinds = [kind.value for kind in Format if kind is not Format.RICH]
    return {
        "CAUSE": tuple(path.stem for path in playbook_files()),
        "[CAUSE|CODE|SYMPTOM]": topics(),
        "PROFILE": ("here", *built_in_profiles()),
        "FMT:PATH": tuple(f"{kind}:" for kind in (*kinds, *EXTRAS)),
        "A,B": tuple(probe.name for probe in PROBES),
        "A": ("here",),
        "B": ("here",),
        "FIX": tuple(FIXES),
        "[COMMAND]": tuple(cli.COMMANDS),
    }


def _choices(param: _Param, value: str) -> tuple[str, ...]:
    """The values that a shell may offer: those of the type, else those that are known for the metavar."""
    return _values_of(param) or _known_values().get(value, ())


def _values_of(param: _Param) -> tuple[str, ...]:
    """All values that the type has."""
    return tuple(str(getattr(one, "value", one)) for one in getattr(param.type, "choices", ()))


def _all(table: Mapping[str, CommandEntry], above: tuple[str, ...]) -> Iterator[Described]:
    for name, entry in table.items():
        path = (*above, name)
        yield _one(path, entry)
        yield from _all(entry.words, path)


def _one(path: tuple[str, ...], entry: CommandEntry) -> Described:
    command = load(path[-1], entry)
    with command.make_context(" ".join(path), [], resilient_parsing=True) as context:
        params = [cast("_Param", param) for param in command.get_params(context)]
    arguments = []
    for param in params:
        if param.param_type_name == "argument":
            value = param.metavar or param.opts[0].upper()
            arguments.append(
                Word(
                    names=(value.strip("[]."),),
                    help=_help(param),
                    value=value,
                    choices=_choices(param, value),
                    is_file=_is_file(value),
                )
            )
    hidden = [param for param in params if getattr(param, "hidden", False)]
    text = (command.help or "").replace("\b\n", "")
    return Described(
        path=path,
        summary=" ".join(text.partition("\n\n")[0].split()),
        text=text.partition("\n\n")[2].strip(),
        usage=" ".join(("[OPTIONS]", *(word.value for word in arguments))),
        arguments=tuple(arguments),
        options=tuple(_option(param) for param in params if param.param_type_name == "option" and param not in hidden),
        examples=entry.examples,
        below=tuple(entry.words),
    )


def _option(param: _Param) -> Word:
    takes = not (getattr(param, "is_flag", False) or getattr(param, "count", False))
    value = (param.metavar or "|".join(_values_of(param)) or param.type.name.upper()) if takes else ""
    names = sorted((*param.opts, *param.secondary_opts), key=lambda name: (name.startswith("--no-"), -len(name)))
    return Word(
        names=tuple(names), help=_help(param), value=value, choices=_choices(param, value), is_file=_is_file(value)
    )


def _help(param: _Param) -> str:
    return " ".join((getattr(param, "help", None) or "").split())


def _is_file(value: str) -> bool:
    return any(word in _FILES for word in value.strip("[]").replace("...", "").split("|")) or value in _SETTINGS


# Scripts of bash, zsh and fish: tables of words, and the shell's own completion of files.
_BASH = """\
# Completion of aotidoctor for bash, made by `aotidoctor completion bash`.
_aotidoctor() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path='' word options='' below='' files='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "${path:+$path }$word" in
@PATHS@) path="${path:+$path }$word" ;;
        esac
    done
    case "$path" in
@TABLE@
    esac
    case "$path $previous" in
@VALUES@
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    else
        [[ -n $below ]] && COMPREPLY=($(compgen -W "$below" -- "$cur"))
        if [[ -n $files ]]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY+=($(compgen -f -- "$cur"))
        fi
    fi
}
complete -F _aotidoctor aotidoctor
"""

_ZSH = """\
#compdef aotidoctor
# Completion of aotidoctor for zsh, made by `aotidoctor completion zsh`.
_aotidoctor() {
    # Not `path`: in zsh that is PATH.
    local level='' word key files=''
    local -a options below values
    local -i i
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        key="${level:+$level }$word"
        case "$key" in
@PATHS@) level="$key" ;;
        esac
    done
    case "$level" in
@TABLE@
    esac
    values=()
    case "$level ${words[CURRENT-1]}" in
@VALUES@
    esac
    if [[ ${words[CURRENT]} == -* ]]; then
        _describe option options
    else
        (( $#below )) && _describe command below
        [[ -n $files ]] && _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _aotidoctor "$@"
else
    compdef _aotidoctor aotidoctor
fi
"""


def bash(commands: Sequence[Described]) -> str:
    """Write the script for ``source <(aotidoctor completion bash)``."""
    table = [_bash_row("", ["--help", "--version"], [one.path[0] for one in commands if len(one.path) == 1])]
    values = []
    for one in commands:
        key = " ".join(one.path)
        below = (*one.below, *(word for argument in one.arguments for word in argument.choices))
        table.append(_bash_row(key, [name for option in one.options for name in option.names], below, _files(one)))
        for option in one.options:
            cases = "|".join(shlex.quote(f"{key} {name}") for name in option.names)
            if option.value:
                words = f"-W {shlex.quote(' '.join(option.choices))} " if option.choices else ""
                # What goes on behind a colon is a path: no blank, and the next word is completed as a file.
                kind = "nospace" if option.value in _SETTINGS else "filenames"
                files = "-f " if option.is_file and kind == "filenames" else ""
                more = f"compopt -o {kind} 2>/dev/null; " if option.is_file else ""
                offer = f'COMPREPLY=($(compgen {words}{files}-- "$cur")); ' if words or files else ""
                values.append(f"        {cases}) {more}{offer}return ;;")
    return _fill_script(_BASH, commands, table, values)


def zsh(commands: Sequence[Described]) -> str:
    """Write the script for a file ``_aotidoctor`` in ``$fpath``, or to be sourced after ``compinit``."""
    top = [(one.path[0], one.summary) for one in commands if len(one.path) == 1]
    table = [_zsh_row("", [("--help", "Show help"), ("--version", "Show the version")], top)]
    values = []
    summaries = {one.path: one.summary for one in commands}
    for one in commands:
        key = " ".join(one.path)
        options = [(name, option.help) for option in one.options for name in option.names]
        below = [(name, summaries.get((*one.path, name), "")) for name in one.below]
        below += [(word, "") for argument in one.arguments for word in argument.choices]
        table.append(_zsh_row(key, options, below, _files(one)))
        for option in one.options:
            cases = "|".join(shlex.quote(f"{key} {name}") for name in option.names)
            if option.value:
                # A colon would begin a description.
                words = " ".join(shlex.quote(word.replace(":", "\\:")) for word in option.choices)
                offer = f"values=({words}); _describe value values; " if words else ""
                values.append(f"        {cases}) {offer}{'_files; ' if option.is_file else ''}return ;;")
    return _fill_script(_ZSH, commands, table, values)


def fish(commands: Sequence[Described]) -> str:
    """Write the script for a file ``aotidoctor.fish`` in the folder of completions."""
    lines = [
        "# Completion of aotidoctor for fish, made by `aotidoctor completion fish`.",
        "complete -c aotidoctor -n __fish_use_subcommand -l help -s h -d 'Show help'",
        "complete -c aotidoctor -n __fish_use_subcommand -l version -d 'Show the version'",
    ]
    for one in commands:
        above = one.path[:-1]
        where = f"'__fish_seen_subcommand_from {above[0]}'" if above else "__fish_use_subcommand"
        files = "" if above else " -f"
        lines.append(f"complete -c aotidoctor{files} -n {where} -a {one.path[-1]} -d {_fish(one.summary)}")
        seen = " && ".join(f"__fish_seen_subcommand_from {word}" for word in one.path)
        known = " ".join(word for argument in one.arguments for word in argument.choices)
        if known:
            only = "" if _files(one) else " -f"
            lines.append(f"complete -c aotidoctor{only} -n {_fish(seen)} -a {_fish(known)}")
        for option in one.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = (" -r" if option.is_file else " -x") if option.value else ""
            value += f" -a {_fish(' '.join(option.choices))}" if option.choices else ""
            lines.append(f"complete -c aotidoctor -n {_fish(seen)} {names}{value} -d {_fish(option.help)}")
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _files(command: Described) -> str:
    """``1`` where the command takes a file as an argument; of an argument without known values that may be so."""
    return "1" if any(argument.is_file or not argument.choices for argument in command.arguments) else ""


def _bash_row(key: str, options: Sequence[str], below: Sequence[str], files: str = "") -> str:
    words = shlex.quote(" ".join(options)), shlex.quote(" ".join(below))
    return f"        {shlex.quote(key)}) options={words[0]} below={words[1]} files={files} ;;"


def _zsh_row(key: str, options: Sequence[tuple[str, str]], below: Sequence[tuple[str, str]], files: str = "") -> str:
    def as_words(words: Sequence[tuple[str, str]]) -> str:
        return " ".join(shlex.quote(f"{name}:{text}" if text else name) for name, text in words)

    return f"        {shlex.quote(key)}) options=({as_words(options)}); below=({as_words(below)}); files={files} ;;"


def _fill_script(script: str, commands: Sequence[Described], table: Sequence[str], values: Sequence[str]) -> str:
    paths = "|".join(shlex.quote(" ".join(one.path)) for one in commands)
    return (
        script.replace("@PATHS@", f"            {paths}")
        .replace("@TABLE@", "\n".join(table))
        .replace("@VALUES@", "\n".join(values))
    )


class Shell(str, enum.Enum):
    """Shells that a script can be made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print completion of commands, options and their values for a shell.

    The script contains the commands, options, causes, hosts and formats of this version, so TAB does not start Python.
    """
    make = {Shell.BASH: bash, Shell.ZSH: zsh, Shell.FISH: fish}[shell]
    write_stdout(make(describe_commands()))


# The command man.
Folder = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Write all pages to this folder, such as ~/.local/share/man/man1."
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
    commands = describe_commands()
    made = {"aotidoctor": overview(commands), **{_name(one): page(one) for one in commands}}
    if output_dir is not None:
        if command is not None:
            raise typer.BadParameter("COMMAND and --output cannot be combined", param_hint="--output")
        _write(made, Path(output_dir))
        return
    name = f"aotidoctor-{command}" if command else "aotidoctor"
    if name not in made:
        raise typer.BadParameter(f"no command {command!r}", param_hint="COMMAND")
    write_stdout(made[name])


def _write(made: Mapping[str, str], folder: Path) -> None:
    for name, text in made.items():
        write_output(folder / f"{name}.1", text)
    write_stderr(f"aotidoctor: {len(made)} pages written to {folder}\n")


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
    text = ",\n".join(f".BR {_roff(name)} (1)" for name in names)
    return f".SH SEE ALSO\n{text}\n"


def _roff(text: str) -> str:
    """Text that roff prints as it stands: a backslash, a hyphen, and what begins a line like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n"))
