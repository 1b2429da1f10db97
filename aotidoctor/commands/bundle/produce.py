"""From what the user typed to the material of a bundle: examine (or take a saved report), and keep what is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.commands import diagnose
from aotidoctor.commands.bundle.child_outputs import Outputs
from aotidoctor.commands.bundle.pieces import Material
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.event import Event, OnEvent
from aotidoctor.model.json_types import as_object
from aotidoctor.model.report import Report
from aotidoctor.reports.saved import read_saved


class Journal:
    """What aotidoctor did, line by line: the bundle's own log."""

    def __init__(self, pass_on: OnEvent) -> None:
        self.lines: list[str] = []
        self._pass_on = pass_on

    def on_event(self, event: Event) -> None:
        """Note an event and hand it on."""
        fine = "" if event.ok is None else " ok" if event.ok else " failed"
        took = f" {event.seconds:.2f} s" if event.seconds else ""
        self.lines.append(f"{event.kind.value}: {event.name}{took}{fine} {event.verdict}".rstrip())
        self._pass_on(event)


def examine(
    package: str,
    inputs: str | None,
    options: Options,
    *,
    runs: bool,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
    on_event: OnEvent,
) -> Material:
    """What ``check`` finds, or with ``runs`` what ``run`` finds with the full output of every child."""
    journal = Journal(on_event)
    if not runs:
        report = diagnose.diagnose(
            package, inputs, options, argv=argv, environ=environ, static_only=True, on_event=journal.on_event
        )
        return Material(report=report, journal=tuple(journal.lines))
    # Starting processes needs modules that a bundle without runs does without.
    from aotidoctor.runner import Runner  # noqa: PLC0415

    outputs = Outputs()
    preload = diagnose.REFERENCE_MODULES if options.reference is not None else ()
    with Runner(environ=environ, preload=preload, keep=outputs.keep) as runner:
        report = diagnose.diagnose(
            package, inputs, options, argv=argv, environ=environ, on_event=journal.on_event, runner=runner
        )
    return Material(report=report, outputs=outputs.texts, journal=tuple(journal.lines))


def of_report(report: Report) -> Material:
    """A report that is at hand: the tails of its runs stand in for their outputs."""
    outputs = {
        f"{run.id}.{name}": text
        for run in report.runs
        for name, text in (("stdout", run.stdout_tail), ("stderr", run.stderr_tail))
        if text
    }
    return Material(report=report, outputs=outputs)


def with_saved(material: Material, path: str) -> Material:
    """``material`` with the saved report at ``path`` in place of its own findings.

    Raises:
        CannotExamineError: it is no report, or one of another package.
    """
    saved = read_saved(path)
    theirs, ours = as_object(saved.get("artifact")), material.report.case.artifact
    known = theirs.get("sha256") is not None and ours.sha256 is not None
    same = theirs.get("sha256") == ours.sha256 if known else theirs.get("size") == ours.size
    if ours.path and not same:
        raise CannotExamineError(
            f"{path}: observed the report of a different package ({theirs.get('size')} bytes), expected that of"
            f" {ours.path} ({ours.size} bytes)"
        )
    return replace(material, saved=saved)
