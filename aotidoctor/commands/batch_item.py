"""One item of a fleet, judged by the command that it names; and what it is judged with."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from aotidoctor.fleet.item import Item
from aotidoctor.fleet.settings import Settings
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError, UsageError

if TYPE_CHECKING:
    from aotidoctor.model.report import Report
    from aotidoctor.runner import Runner

Environ = Mapping[str, str]
GetRunner = Callable[[bool], "Runner"]
"""The warm runner of this process; True where its children compare with a reference."""

_SPARE_S = 5.0
_LEAST_BUDGET_S = 2.0


def argv_of(item: Item) -> tuple[str, ...]:
    """The command line that asks the same of this item alone."""
    words = ["aotidoctor", item.command, item.path]
    for option, value in (
        ("--package", item.package),
        ("--inputs", item.inputs),
        ("--reference", item.reference),
        ("--setup", item.setup),
        ("--host", item.host),
    ):
        if value is not None:
            words += [option, value]
    return tuple(words)


def judge(item: Item, settings: Settings, environ: Environ, runner: GetRunner) -> Report:
    """The report on ``item``, as the command that it names makes it.

    Raises:
        AotidoctorError: it cannot be asked, or there is nothing to examine.
    """
    if item.problem is not None:
        raise CannotExamineError(item.problem)
    how = _COMMANDS.get(item.command)
    if how is None:
        raise UsageError(f"{item.command!r} is not a command for many items")
    return how(item, settings, environ, runner)


def _options(item: Item, settings: Settings) -> Options:
    return Options(
        model_name=settings.model_name,
        device=settings.device,
        setup=item.setup,
        reference=item.reference,
        host=item.host,
        generate=settings.generate and item.inputs is None,
        timeout=settings.timeout,
        # A run that is cut short by itself has a report; one that is killed has none.
        budget=max(_LEAST_BUDGET_S, settings.item_timeout - _SPARE_S),
        repeat=settings.repeat,
        trust_pickle=settings.trust_pickle,
        memory_limit=settings.memory_limit if item.command in ("run", "verify") else None,
    )


def _diagnose(item: Item, settings: Settings, environ: Environ, runner: GetRunner) -> Report:
    from aotidoctor.commands.diagnose import diagnose  # noqa: PLC0415 - a process of logs needs no readers of packages

    static = item.command == "check"
    return diagnose(
        item.path,
        item.inputs,
        _options(item, settings),
        argv=argv_of(item),
        environ=environ,
        static_only=static,
        runner=None if static else runner(item.reference is not None),
    )


def _compat(item: Item, settings: Settings, environ: Environ, _runner: GetRunner) -> Report:
    from aotidoctor.commands.compat import compat  # noqa: PLC0415 - likewise

    hosts = [item.host] if item.host is not None else []
    return compat([item.path], hosts, [], model_name=settings.model_name, argv=argv_of(item), environ=environ)


def _verify(item: Item, settings: Settings, environ: Environ, runner: GetRunner) -> Report:
    from aotidoctor.commands.verify import Question, verify  # noqa: PLC0415 - likewise

    question = Question(program=item.path, options=_options(item, settings))
    return verify(question, argv=argv_of(item), environ=environ, runner=runner(True))


def _triton(item: Item, settings: Settings, environ: Environ, _runner: GetRunner) -> Report:
    from aotidoctor.commands.triton import serve  # noqa: PLC0415 - likewise

    return serve(item.path, triton=settings.triton, argv=argv_of(item), environ=environ)


def _analyze(item: Item, _settings: Settings, _environ: Environ, _runner: GetRunner) -> Report:
    from aotidoctor.commands.analyze.analyze import analyze  # noqa: PLC0415 - likewise

    return analyze(item.path, argv=argv_of(item))


def _classify(item: Item, settings: Settings, environ: Environ, _runner: GetRunner) -> Report:
    from aotidoctor.commands.classify import classify  # noqa: PLC0415 - likewise

    try:
        descriptor = os.open(item.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{item.path}: {getattr(error, 'strerror', None) or error}") from error
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CannotExamineError(f"{item.path} is not a regular file")
        return classify(
            stream,
            item.path,
            package=item.package,
            inputs=item.inputs if item.package is not None else None,
            options=_options(item, settings),
            argv=argv_of(item),
            environ=environ,
        )


_COMMANDS = {
    "check": _diagnose,
    "run": _diagnose,
    "compat": _compat,
    "verify": _verify,
    "triton": _triton,
    "analyze": _analyze,
    "classify": _classify,
}
