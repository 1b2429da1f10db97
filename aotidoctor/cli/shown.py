"""The output options, declared once for the commands that have all of them.

``@shown("package")`` over a command puts them behind the command's own options and hands over one ``show``. Typer
reads options from a function's signature: the decorated function states one with both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from inspect import Parameter, Signature, signature

from aotidoctor.cli import options as opt
from aotidoctor.cli import urls
from aotidoctor.cli.show import FailOn, IssueForm, Show, make_show
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.report import Report

Command = Callable[..., None]  # type: ignore[explicit-any]  # each has options of its own
ShowMaker = Callable[..., Show]  # type: ignore[explicit-any]  # what is given to it came through Typer


def shown(*protected: str) -> Callable[[Command], Command]:
    """Give a command that takes ``show`` the output options.

    ``protected`` are the command's parameters that name what is examined: no report overwrites it. ``folder/file``
    is a file in what ``folder`` names. An option that the command declares itself stays its own and is no part of
    ``show``.
    """

    def decorate(function: Command) -> Command:
        own = [each for each in parameters(function) if each.name != "show"]
        taken = {each.name for each in own}
        shared = [each for each in parameters(_show) if each.kind is Parameter.KEYWORD_ONLY and each.name not in taken]
        make: ShowMaker = _show

        @wraps(function)
        def command(**given: object) -> None:
            chosen = {each.name: given.pop(each.name) for each in shared}
            show = make(tuple(_paths(protected, given)), **chosen)
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


def _show(
    protected: tuple[str, ...],
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
    """The options as they are shown in help, in this order."""
    return make_show(
        format_=format_,
        json=json,
        report=report,
        output_dir=output_dir,
        quiet=quiet,
        verbose=verbose,
        fail_on=fail_on,
        redact=redact,
        plugins=not no_plugins,
        form=for_,
        protected=protected,
    )
