"""Completion as a script of bash, zsh or fish: tables of words, and the shell's own completion of files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from aotidoctor.cli.option_table import Described, Word

_BASH = """\
# Completion of aotidoctor for bash, made by `aotidoctor completion bash`.
_aotidoctor() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path='' word options='' below='' i
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
    elif [[ -n $below ]]; then
        COMPREPLY=($(compgen -W "$below" -- "$cur"))
        [[ -n $path ]] && COMPREPLY+=($(compgen -f -- "$cur"))
    else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -F _aotidoctor aotidoctor
"""

_ZSH = """\
#compdef aotidoctor
# Completion of aotidoctor for zsh, made by `aotidoctor completion zsh`.
_aotidoctor() {
    # Not `path`: in zsh that is PATH.
    local level='' word key
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
    elif (( $#below )); then
        _describe command below
        [[ -n $level ]] && _files
    else
        _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _aotidoctor "$@"
else
    compdef _aotidoctor aotidoctor
fi
"""


def bash(commands: Sequence[Described]) -> str:
    """For ``source <(aotidoctor completion bash)``."""
    table = [_bash_row("", ["--help", "--version"], [one.path[0] for one in commands if len(one.path) == 1])]
    values = []
    for one in commands:
        key = " ".join(one.path)
        table.append(_bash_row(key, [name for option in one.options for name in option.names], one.below))
        for option in one.options:
            cases = "|".join(shlex.quote(f"{key} {name}") for name in option.names)
            if option.choices:
                words = shlex.quote(" ".join(option.choices))
                values.append(f'        {cases}) COMPREPLY=($(compgen -W {words} -- "$cur")); return ;;')
            elif option.is_file:
                values.append(
                    f'        {cases}) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")); return ;;'
                )
            elif option.value:
                values.append(f"        {cases}) return ;;")
    return _filled(_BASH, commands, table, values)


def zsh(commands: Sequence[Described]) -> str:
    """For a file ``_aotidoctor`` in ``$fpath``, or to be sourced after ``compinit``."""
    top = [(one.path[0], one.summary) for one in commands if len(one.path) == 1]
    table = [_zsh_row("", [("--help", "Show help"), ("--version", "Show the version")], top)]
    values = []
    summaries = {one.path: one.summary for one in commands}
    for one in commands:
        key = " ".join(one.path)
        options = [(name, option.help) for option in one.options for name in option.names]
        table.append(_zsh_row(key, options, [(name, summaries.get((*one.path, name), "")) for name in one.below]))
        for option in one.options:
            cases = "|".join(shlex.quote(f"{key} {name}") for name in option.names)
            if option.choices:
                words = " ".join(map(shlex.quote, option.choices))
                values.append(f"        {cases}) values=({words}); _describe value values; return ;;")
            elif option.value:
                values.append(f"        {cases}) {'_files; ' if option.is_file else ''}return ;;")
    return _filled(_ZSH, commands, table, values)


def fish(commands: Sequence[Described]) -> str:
    """For a file ``aotidoctor.fish`` in the folder of completions."""
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
        lines += [f"complete -c aotidoctor -n {_fish(seen)} {_fish_option(option)}" for option in one.options]
    return "\n".join(lines) + "\n"


def _fish_option(option: Word) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = f" -x -a {_fish(' '.join(option.choices))}" if option.choices else " -r" if option.is_file else ""
    value = value or (" -x" if option.value else "")
    return f"{names}{value} -d {_fish(option.help)}"


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _bash_row(key: str, options: Sequence[str], below: Sequence[str]) -> str:
    return (
        f"        {shlex.quote(key)}) options={shlex.quote(' '.join(options))} below={shlex.quote(' '.join(below))} ;;"
    )


def _zsh_row(key: str, options: Sequence[tuple[str, str]], below: Sequence[tuple[str, str]]) -> str:
    def described(words: Sequence[tuple[str, str]]) -> str:
        return " ".join(shlex.quote(f"{name}:{text}" if text else name) for name, text in words)

    return f"        {shlex.quote(key)}) options=({described(options)}); below=({described(below)}) ;;"


def _filled(script: str, commands: Sequence[Described], table: Sequence[str], values: Sequence[str]) -> str:
    paths = "|".join(shlex.quote(" ".join(one.path)) for one in commands)
    return (
        script.replace("@PATHS@", f"            {paths}")
        .replace("@TABLE@", "\n".join(table))
        .replace("@VALUES@", "\n".join(values))
    )
