"""The report for a terminal, through rich: it reads well at 80 columns and without colour.

The first screen answers in this order: verdict, cause, subject, looked like → is, how sure, what to do. Evidence, runs,
contract, host and what was not checked come after it. Text of others is never taken for rich's markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from aotidoctor.model.phrases import listed, plural
from aotidoctor.model.report import Report
from aotidoctor.reports import log_view, probe_rows, run_view, view
from aotidoctor.reports.headline import headline
from aotidoctor.reports.terminal import facts
from aotidoctor.reports.terminal.captured import for_stream, plain
from aotidoctor.reports.terminal.contract import show_contract
from aotidoctor.reports.terminal.layout import STYLES, TONES, Layout
from aotidoctor.reports.terminal.runs import show_runs
from aotidoctor.reports.text import one_line, seconds

if TYPE_CHECKING:
    from aotidoctor.model.localization import Localization
    from aotidoctor.model.signature import Signature

_NAMES_SHOWN = 4
# Their document is a description; a healthy one is no shorter.
_DESCRIBING = ("inspect", "triton", "env")


def text(report: Report, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``report`` as ``stream`` can show it: colour, width and character set are the stream's."""
    return for_stream(lambda console: render(report, console, detail=detail), stream=stream, environ=environ)


def plain_text(report: Report, *, width: int = 80, detail: int = 0) -> str:
    """``report`` without colour at a fixed width."""
    return plain(lambda console: render(report, console, detail=detail), width=width)


def render(report: Report, console: Console, *, detail: int = 0) -> None:
    """Print ``report``. ``detail``: -1 the first screen only, 0 normal, 1 with the output of children, 2 all."""
    out = Layout(console)
    _first_screen(report, out)
    if detail < 0:
        # Whether there is a script is what was asked.
        _repro(report, out)
        return
    calm = report.verdict == "healthy" and detail == 0 and report.command not in _DESCRIBING
    match report.command:
        case "inspect":
            facts.package(report, out, detail)
        case "triton":
            from aotidoctor.reports.terminal.serving import show_names, show_serving  # noqa: PLC0415 - for Triton only

            show_names(report, out)
            show_serving(report, out, detail=detail)
        case "compat" if report.compat is not None:
            from aotidoctor.reports.terminal.compat import show_compat  # noqa: PLC0415 - likewise

            show_compat(report.compat, out)
        case "env":
            facts.host(report.case.host, out, detail=1)
            facts.settings(report.case.host.environment, out)
        case _:
            _case(report, out, calm=calm, detail=detail)
    _not_checked(report, out, calm=calm, detail=detail)
    _footer(report, out, calm=calm, detail=detail)


def _first_screen(report: Report, out: Layout) -> None:
    out.headline(headline(report))
    if view.has_artifact(report):
        out.paragraph(view.artifact_text(report), style="dim")
    if report.log is not None and log_view.is_log(report):
        out.paragraph(log_view.log_text(report.log), style="dim")
    if note := view.partial_note(report):
        out.line(Text(f" {note}", style=TONES["partial"]))
    rows = view.first_rows(report)
    if rows:
        out.blank()
    for row in rows:
        if row.is_code:
            out.code(row.text)
        else:
            out.row(row.label, row.text)


def _case(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    _others(report, out)
    _plan(report, out)
    if report.localization is not None:
        _located(report, report.localization, out, calm=calm, detail=detail)
    _probes(report, out)
    if report.log is not None:
        from aotidoctor.reports.terminal.log import show_log  # noqa: PLC0415 - for a log only

        show_log(report.log, out, detail=detail)
    _evidence(report, out, calm=calm, detail=detail)
    if not calm:
        show_runs(report, out, detail)
        show_contract(report, out, detail)
        if not log_view.is_log(report):
            # A log may come from another machine.
            facts.host(report.case.host, out, detail=detail)
    else:
        _calm(report, out)
    if report.internal_error is not None:
        out.title("Traceback of aotidoctor")
        out.block(report.internal_error)


def _located(report: Report, place: Localization, out: Layout, *, calm: bool, detail: int) -> None:
    """What only a run finds: outputs beside the reference's, and the place of the failure."""
    from aotidoctor.reports.terminal.comparison import show_comparison  # noqa: PLC0415 - after a run only
    from aotidoctor.reports.terminal.place import show_place  # noqa: PLC0415 - likewise

    show_comparison(report, out)
    if not calm or report.command == "localize":
        show_place(place, out, detail=detail)


def _probes(report: Report, out: Layout) -> None:
    rows = probe_rows.probe_rows(report)
    if not rows:
        return
    out.title(f"{probe_rows.TITLE}: {probe_rows.verdict(report)}")
    out.table(probe_rows.HEADINGS, rows)


def _calm(report: Report, out: Layout) -> None:
    """A healthy case in a line or two: what was looked at."""
    contract, inputs = report.case.contract, report.case.inputs
    if contract is not None:
        expected = f"{plural(contract.n_inputs, 'tensor')} expected"
        form = ", ".join(dict.fromkeys((inputs.format, inputs.form))) if inputs is not None else ""
        given = "" if inputs is None else f", {len(inputs.tensors())} given ({form})"
        out.row("Inputs", expected + given)
    if report.runs:
        ended: dict[str, list[str]] = {}
        for outcome in report.runs:
            ended.setdefault(run_view.run_ending(outcome), []).append(outcome.request.probe)
        spent = seconds(sum(outcome.seconds for outcome in report.runs))
        out.row("Ran", "; ".join(f"{', '.join(names)}: {ending}" for ending, names in ended.items()) + f"; {spent}")


def _others(report: Report, out: Layout) -> None:
    if len(report.diagnoses) < 2:
        return
    out.title("Also possible")
    for diagnosis in report.diagnoses[1:]:
        about = f" ({one_line(diagnosis.subject, 60)})" if diagnosis.subject else ""
        out.row(f"{diagnosis.rank}.", f"{diagnosis.cause}{about}: {view.how_sure(diagnosis)}")


def _plan(report: Report, out: Layout) -> None:
    if not report.plan:
        return
    out.title("Plan")
    for number, step in enumerate(report.plan, 1):
        out.pair(Text(f" {number:>2}."), Text(one_line(step, 400)))


def _evidence(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    shown = [item for item in report.findings if detail > 0 or item.severity.rank > 0]
    hidden = len(report.findings) - len(shown)
    if not shown:
        return
    out.title("Evidence")
    for item in shown:
        source = view.source_text(item.source) if detail > 0 else view.short_source(item.source)
        where = " · ".join(word for word in (one_line(item.subject or "", 80), source) if word)
        severity = (f"{item.severity.value:<6}", STYLES[item.severity.value])
        out.pair(Text.assemble(f" {item.id:<4}", severity, f"{item.code} {item.kind}"), Text(where, style="dim"))
        message = "" if detail <= 0 and view.adds_nothing(item) else item.message
        for label, words in (("observed", item.observed), ("expected", item.expected), ("", message)):
            if words:
                out.row(label, one_line(words), indent=4)
    if hidden and not calm:
        out.more(f"{plural(hidden, 'note')} without a problem")


def _not_checked(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    """What a reader could change; with -v also the questions that this case does not raise."""
    grouped: dict[str, list[str]] = {}
    for item in report.not_checked:
        if detail > 0 or not item.moot:
            name = f"{item.name} ({item.code})" if detail > 0 else item.name
            grouped.setdefault(one_line(item.reason, 200 if detail > 0 else 100), []).append(name)
    lines = [f"{_names(names, detail)}: {reason}" for reason, names in grouped.items()]
    if calm:
        for number, line in enumerate(lines):
            out.row("" if number else "Not checked", line)
    elif lines:
        out.title("Not checked")
        for line in lines:
            out.paragraph(line)


def _names(names: Sequence[str], detail: int) -> str:
    """A few names, or how many: a reason that stops twenty checks is one line."""
    return listed(names, len(names) if detail > 0 else _NAMES_SHOWN)


def _fingerprint(found: Signature, out: Layout, *, parts: bool) -> None:
    """The coarser signature, and which rule gave which part of both."""
    out.line(Text(f" Family    {one_line(found.family)}", style="dim"))
    for part in found.parts if parts else ():
        of = "family and exact" if part.granularity == "family" else "exact"
        source = f", {part.source}" if part.source else ""
        out.line(Text(f"   {part.rule}: {one_line(part.text)} ({of}{source})", style="dim"))


def _repro(report: Report, out: Layout) -> None:
    for name, label in (("repro", "Repro "), ("repro_inputs", "  inputs:"), ("repro_weights", "  weights:")):
        if name in report.extra:
            out.line(Text(f" {label} {one_line(report.extra[name], 300)}", style="dim"))


def _footer(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    made = Text(f" aotidoctor {report.version}, {report.started}, {seconds(report.seconds)}", style="dim")
    if calm:
        _repro(report, out)
        out.line(made)
        return
    out.blank()
    if report.signature:
        out.line(Text(f" Signature {one_line(report.signature)}", style="dim"))
    if report.fingerprint is not None and detail > 0:
        _fingerprint(report.fingerprint, out, parts=detail > 1)
    _repro(report, out)
    for label, named in view.plugin_rows(report):
        out.line(Text(f" {label}: {named}", style="dim"))
    if report.diagnoses and report.command != "env":
        out.line(Text(f" More: aotidoctor explain {report.diagnoses[0].cause}", style="dim"))
    out.code(view.command_text(report.argv), label=" Again: ")
    out.line(made)
