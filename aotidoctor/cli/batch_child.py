"""Run the child process of ``aotidoctor batch``: judge items with the tool and one runner kept warm.

It gets its work over its link to the parent, and ends when the link does. Whatever kills it costs one item. Apart: a
companion process, started by ``fleet`` under this module's name.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import sys
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NoReturn

import typer

from aotidoctor.cli import url_arguments
from aotidoctor.cli.execute import (
    make_progress,
    report_limited,
    report_of_work,
    stand_in_report,
    with_left_out,
    within_limits,
)
from aotidoctor.commands import batch
from aotidoctor.fleet import pool
from aotidoctor.fleet.cache import Settings, content_digest
from aotidoctor.fleet.items import EXECUTING, FleetItem, read_item
from aotidoctor.fleet.results import result_row
from aotidoctor.model.errors import CANNOT_EXAMINE, INTERNAL_ERROR, CannotExamineError, LimitReachedError
from aotidoctor.model.fleet import FAILED, UNREADABLE, FleetResult
from aotidoctor.model.fleet_summary import result_line
from aotidoctor.model.record import JsonObject, JsonValue, as_list
from aotidoctor.model.record_json import from_json
from aotidoctor.remote.remote_files import clean_text
from aotidoctor.reports.json.json_report import render_json
from aotidoctor.reports.redact.redactor import redact_private
from aotidoctor.reports.text import exit_status

if TYPE_CHECKING:
    from aotidoctor.model.report import Report
    from aotidoctor.runner.runner import Runner

# As in the process of a single command.
_COLLECT_EVERY = 200_000
# What of an item may be a URL.
_PATHS = ("path", "package", "inputs", "reference", "setup", "host")


def main(number: int) -> NoReturn:
    """Serve the link ``number`` to its end."""
    # A crash of this process is told by its end; its core would be that of an interpreter.
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    gc.set_threshold(_COLLECT_EVERY)
    with socket.socket(fileno=number) as ours:
        first = pool.receive_message(ours)
        if first is None:
            sys.exit(0)
        threading.Thread(target=_end_with, args=(number,), daemon=True).start()
        judge = Judge(from_json(Settings, first[0]))
        gc.freeze()
        pool.send_message(ours, {"ready": True})
        while (got := pool.receive_message(ours)) is not None:
            pool.send_message(ours, *judge.answer(got[0]))
    os._exit(0)


def _end_with(number: int) -> NoReturn:
    """End this process when the other side of the link is gone, also while it judges."""
    poll = select.poll()
    poll.register(number, select.POLLRDHUP)
    poll.poll()
    os._exit(0)


@dataclass(slots=True)
class Judge:
    """Answer requests; never raise for one."""

    settings: Settings
    _runners: dict[tuple[str, ...], Runner] = field(default_factory=dict)
    _bytes_read: int | None = None

    def answer(self, message: JsonObject) -> tuple[JsonObject, bytes]:
        """The message and the body of the answer."""
        where = message.get("cwd")
        if isinstance(where, str):
            # Where there is no such folder, the files are not there either, and the answer says so.
            with suppress(OSError):
                os.chdir(where)
        if message.get("op") == "digest":
            return {"digests": [_digest(path) for path in as_list(message.get("paths"))]}, b""
        result, report = self.judge(read_item(message))
        return {"line": result_line(result)}, report

    def judge(self, item: FleetItem) -> tuple[FleetResult, bytes]:
        """The line of ``item``, and its report where it is not healthy."""
        started = time.monotonic()
        sys.argv = list(batch.argv_of(item))
        static = item.command not in EXECUTING
        try:
            with within_limits() if static else nullcontext():
                report = self._report(item)
        except typer.BadParameter as error:
            return self._unjudged(item, UNREADABLE, str(error.message), CANNOT_EXAMINE), b""
        report = replace(report, seconds=time.monotonic() - started)
        try:
            with report_limited() if static else nullcontext():
                return self._made(item, report)
        except LimitReachedError as reached:
            return self._made(
                item, with_left_out(stand_in_report(item.command, clean_text(item.path)), "report", str(reached))
            )
        except Exception as error:  # noqa: BLE001 - a report that cannot be shown must still end in a line
            why = f"aotidoctor failed here: {type(error).__name__} while showing the report"
            return self._unjudged(item, FAILED, why, INTERNAL_ERROR), b""

    def _report(self, item: FleetItem) -> Report:
        """The report on ``item``, with what is at its URLs."""

        def work(_on_event: object) -> Report:
            given: dict[str, object] = {name: getattr(item, name) for name in _PATHS}
            ranged = "path" if item.command in url_arguments.RANGED else None
            with url_arguments.fetch_arguments(given, _PATHS, ranged) as (local, found):
                here = replace(item, **local)  # type: ignore[arg-type]  # paths in the place of paths
                report = found.finished(batch.judge_item(here, self.settings, os.environ, self._runner))
                self._bytes_read = found.bytes_read
                return report

        self._bytes_read = None
        return report_of_work(item.command, clean_text(item.path), work, make_progress(None, {}, quiet=True))

    def _made(self, item: FleetItem, report: Report) -> tuple[FleetResult, bytes]:
        status = exit_status(report, self.settings.fail_on)
        healthy = report.verdict == "healthy" and status == 0
        redacted = report if healthy or not self.settings.redact else redact_private(report, os.environ)
        result = result_row(item, redacted, status)
        if report.cannot_examine is not None:
            result = replace(result, ending=UNREADABLE)
        elif report.internal_error is not None:
            result = replace(result, ending=FAILED)
        result = replace(self._public(result), bytes_read=self._bytes_read)
        return result, b"" if result.is_healthy else render_json(redacted).encode("utf-8", "replace")

    def _public(self, result: FleetResult) -> FleetResult:
        """With paths as they may be shown: never with credentials, and redacted where that is wanted."""
        given = (result.name, result.inputs, result.reference, result.log, result.host, result.problem)
        listed = tuple(None if text is None else clean_text(text) for text in given)
        if self.settings.redact:
            listed = redact_private(listed, os.environ)
        name, inputs, reference, log, host, problem = listed
        return replace(result, name=name or "", inputs=inputs, reference=reference, log=log, host=host, problem=problem)

    def _unjudged(self, item: FleetItem, ending: str, why: str, status: int) -> FleetResult:
        result = result_row(item, stand_in_report(item.command, clean_text(item.path)), status)
        return self._public(replace(result, ending=ending, problem=why))

    def _runner(self, modules: tuple[str, ...]) -> Runner:
        """The one whose warm process has imported these; torch is imported once for all items."""
        runner = self._runners.get(modules)
        if runner is None:
            from aotidoctor.runner.portable import make_runner

            runner = self._runners[modules] = make_runner(environ=os.environ, preload=modules)
        return runner


def _digest(path: JsonValue) -> JsonValue:
    """``[sha256, size]`` of a path; None where it cannot be read."""
    try:
        return list(content_digest(str(path)))
    except (OSError, ValueError, CannotExamineError):
        return None
