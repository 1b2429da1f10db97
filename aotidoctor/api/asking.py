"""What the three public questions share: the environment, the inputs at hand, and the command that a report states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aotidoctor.api.arguments import PathLike, environment, path, words
from aotidoctor.api.keeping import keeper_of
from aotidoctor.api.live import Source, given
from aotidoctor.api.plugging import plugins
from aotidoctor.api.report import Report, public
from aotidoctor.commands import diagnose as command
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, LimitReachedError, UsageError

if TYPE_CHECKING:
    from aotidoctor.model.event import Event
    from aotidoctor.runner import Runner

# What a report shows in place of a file that there is none of.
_LIVE = "(args and kwargs of the calling program)"


class Wish:
    """What all three hand on: environment, command as stated, progress, runner."""

    def __init__(
        self,
        environ: Mapping[str, str] | None,
        argv: tuple[str, ...],
        on_event: Callable[[Event], None] | None,
        runner: Runner | None,
        command: str,
        *,
        plugins: bool,
        plan: bool = False,
        static: bool = False,
        cases: PathLike | None = None,
    ) -> None:
        self.environ = environment(environ)
        self.argv = argv
        self.on_event = on_event
        self.runner = runner
        self.command = command
        self.plugins = plugins
        self.plan = plan
        self.static = static
        self.keep = keeper_of(cases)
        # The name that the command line has for it.
        self.name = "check" if static and not plan else command


def examined(package: PathLike, source: Source, options: Options, asked: Mapping[str, object], wish: Wish) -> Report:
    """The public report on ``package`` with the inputs of ``source``; ``asked`` are the keywords as given."""
    if options.generate and (source.path or source.is_live):
        raise UsageError("inputs and generate cannot be combined")
    place = path("package", package)
    argv = wish.argv or _argv(place, source, asked, wish)
    try:
        with plugins(wish.name, wanted=wish.plugins), given(source, to_run=not wish.static) as live:
            if wish.plan:
                return public(command.plan(place, source.path, options, argv=argv, environ=wish.environ, live=live))
            found = command.diagnose(
                place,
                source.path,
                options,
                argv=argv,
                environ=wish.environ,
                static_only=wish.static,
                command=wish.command,
                on_event=wish.on_event,
                runner=wish.runner,
                live=live,
            )
            return public(wish.keep(found, wish.environ))
    except LimitReachedError as reached:
        raise CannotExamineError(f"{place}: {reached}") from reached


def _argv(package: str, source: Source, asked: Mapping[str, object], wish: Wish) -> tuple[str, ...]:
    inputs = source.path or (_LIVE if source.is_live else None)
    return (
        "aotidoctor",
        wish.name,
        package,
        *(("--inputs", inputs) if inputs is not None else ()),
        *words(asked),
        *(("--plan",) if wish.plan else ()),
    )
