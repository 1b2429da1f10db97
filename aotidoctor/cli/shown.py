"""The output options, declared once for the commands that have all of them.

``@shown("package")`` over a command puts them behind the command's own options and hands over one ``show``. Typer
reads options from a function's signature: the decorated function states one with both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path

import typer

from aotidoctor.cli import options as opt
from aotidoctor.cli import urls
from aotidoctor.cli.extras import EXTRAS
from aotidoctor.cli.show import FailOn, Format, IssueForm, Show, chosen_format
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import Report

Command = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own
ShowMaker = Callable[..., Show]  # type: ignore[explicit-any]  # what is given to it came through Typer
# Formats of --report: what a file can hold. `rich` depends on the terminal, so it is not one of them.
_FILE_FORMATS = (Format.JSON, Format.MD, Format.HTML, Format.SARIF, Format.JUNIT, Format.GITHUB)
# What --output-dir writes: a report to read and one to keep.
_DIRECTORY_FORMATS = (Format.JSON, Format.MD)


def shown(*protected: str) -> Callable[[Command], Command]:
    """Give a command that takes ``show`` the output options.

    ``protected`` are the command's parameters that name what is examined: no report overwrites it. ``folder/file``
    is a file in what ``folder`` names. An option that the command declares itself stays its own and is no part of
    ``show``.
    """

    def decorate(function: Command) -> Command:
        own = [each for each in parameters(function) if each.name != "show"]
        taken = {each.name for each in own}
        shared = [
            each for each in parameters(make_show) if each.kind is Parameter.KEYWORD_ONLY and each.name not in taken
        ]
        make: ShowMaker = make_show

        @wraps(function)
        def command(**given: object) -> None:
            chosen = {each.name: given.pop(each.name) for each in shared}
            show = make(_paths(protected, given), **chosen)
            if any(urls.may_be(given.get(name)) for name in protected):
                _with_urls(function, given, protected, show)
            else:
                function(**given, show=show)

        return stating(command, [*own, *shared])

    return decorate


def parameters(function: Callable[..., object]) -> tuple[Parameter, ...]:  # type: ignore[explicit-any]  # see above
    """What the function takes, with the annotations themselves."""
    return tuple(signature(function, eval_str=True).parameters.values())


def stating(command: Command, stated: Sequence[Parameter]) -> Command:
    """``command``, which takes any keywords, with the parameters that it states."""
    command.__signature__ = Signature(stated)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in stated}
    return command


def _with_urls(function: Command, given: dict[str, object], names: tuple[str, ...], show: Show) -> None:
    """Call ``function`` with what is at the URLs among its arguments, or report why that cannot be had."""
    from aotidoctor.cli.execute import execute  # noqa: PLC0415 - for URLs only

    name = function.__name__
    with ExitStack() as stack:
        try:
            local, _ = stack.enter_context(urls.localized(given, names, urls.RANGED.get(name)))
        except CannotExamineError as error:
            refused = error

            def work(_on_event: object) -> Report:
                raise refused

            execute(name, "", show, work)
        function(**local, show=show)


def _paths(protected: tuple[str, ...], given: Mapping[str, object]) -> Iterator[str]:
    for place in protected:
        name, _, below = place.partition("/")
        value = given[name]
        for path in value if isinstance(value, list) else [value]:
            if path is not None:
                yield os.path.join(str(path), below) if below else str(path)  # noqa: PTH118 - it need not exist


def make_show(
    protected: Iterable[str | None],
    *,
    format_: opt.FormatOption = None,
    for_: opt.For = IssueForm.GENERIC,
    json: opt.Json = False,
    report: opt.ReportTo = None,
    output_dir: opt.OutputDir = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = 0,
    fail_on: opt.FailOnOption = FailOn.ERROR,
    redact: opt.Redact = True,
    no_plugins: opt.NoPlugins = False,
) -> Show:
    """The options, in the order in which help shows them, as one value. Raises BadParameter.

    ``protected`` are files that must not be overwritten.
    """
    chosen = chosen_format(format_, Format.RICH, json=json)
    specs = [_spec(text, plugins=not no_plugins) for text in report or ()]
    files = [(Format(kind), path) for kind, path in specs if kind in _FILE_FORMATS]
    extras = tuple((kind, path) for kind, path in specs if kind not in _FILE_FORMATS)
    if output_dir is not None:
        files += [(kind, Path(output_dir) / f"report.{kind.value}") for kind in _DIRECTORY_FORMATS]
    taken = {os.path.realpath(path) for path in protected if path}
    for _, path in (*files, *extras):
        if os.path.realpath(path) in taken:
            raise typer.BadParameter(
                f"{path} is an input of this command and is not overwritten", param_hint="--report"
            )
    if for_ is not IssueForm.GENERIC and Format.MD not in (chosen, *(kind for kind, _ in files)):
        raise typer.BadParameter(
            "--for needs Markdown output: --format md, --report md:PATH or -o DIR", param_hint="--for"
        )
    return Show(
        format=chosen,
        files=tuple(files),
        extras=extras,
        detail=-1 if quiet else min(verbose, 2),
        fail_on=fail_on,
        redact=redact,
        form=for_,
        plugins=not no_plugins,
    )


def _spec(text: str, *, plugins: bool) -> tuple[str, Path]:
    """The kind of report and its path: a format of a file, a key of ``EXTRAS``, or a format of a plugin."""
    name, colon, path = text.partition(":")
    known = [*(kind.value for kind in _FILE_FORMATS), *EXTRAS]
    if plugins and name not in known:
        from aotidoctor.plugins.discover import found  # noqa: PLC0415 - for a name that is none of ours

        known += [entry.name for entry in found() if entry.group == "reports"]
    if not colon or not path or name not in known:
        hint = f"{text!r} is not FMT:PATH; formats of a file: {', '.join(known)}"
        raise typer.BadParameter(hint, param_hint="--report")
    return name, Path(path)
