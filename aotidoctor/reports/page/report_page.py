"""Write the page of a report: which sections there are, in which order, and those about findings, runs and logs.

A section is a function that makes its blocks; ``SECTIONS`` says where it stands. ``detail`` is that of a terminal: 0
what decides most cases, 1 with what children printed, 2 everything, which Markdown and HTML show as far as it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from aotidoctor.model.evidence import Evidence, RunSource, list_names, plural
from aotidoctor.model.report import Report
from aotidoctor.reports.page import log_page, package_page, report_view, run_page, serving_page
from aotidoctor.reports.page.blocks import (
    HTML,
    MARKDOWN,
    TERMINAL,
    TONES,
    Block,
    Cell,
    CommandBlock,
    EntriesBlock,
    Entry,
    Folded,
    NoteBlock,
    OutputBlock,
    PageSection,
    Pairs,
    Span,
    StepsBlock,
    TableBlock,
    TableLine,
    Words,
    code_words,
    text_lines,
)
from aotidoctor.reports.text import one_line, seconds

WHOLE = 2
"""Every detail."""


def also_blocks(report: Report) -> tuple[Block, ...]:
    """The causes after the first."""
    lines = tuple(
        f"{item.cause}{f' ({one_line(item.subject)})' if item.subject else ''}: {report_view.how_sure(item)}"
        for item in report.diagnoses[1:]
    )
    return (StepsBlock(items=lines, first=2),) if lines else ()


# Findings.
def evidence_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """All findings: a table in which each has an anchor, or entries for a terminal."""
    listed = [item for item in report.findings if detail > 0 or item.severity.rank > 0]
    if not listed or serving_page.is_serving(report):
        return ()  # The tables of the models have said it.
    hidden = len(report.findings) - len(listed)
    left = f"{plural(hidden, 'note')} without a problem" if hidden and not is_calm(report, detail) else ""
    table = TableBlock(
        label="Evidence",
        headings=("", "", "Code", "Subject", "Observed", "Expected", "Source"),
        rows=tuple(_finding(report, item) for item in listed),
        bare=("",),
        look="evidence",
        noun="more findings",
        formats=MARKDOWN + HTML,
    )
    return (EntriesBlock(entries=tuple(_entry(item, detail) for item in listed), more=left, formats=TERMINAL), table)


def _entry(item: Evidence, detail: int) -> Entry:
    source = report_view.source_text(item.source) if detail > 0 else report_view.short_source(item.source)
    subject = one_line(item.subject or "")
    # Each of the two may be the other without its folders.
    names = [
        one
        for one in (subject, source)
        if one and not any(f"/{other}".endswith(f"/{one}") for other in (subject, source) if other != one)
    ]
    tone = TONES[item.severity.value]
    title = (Span(f"{item.id:<4}"), Span(f"{item.severity.value:<6}", tone), Span(f"{item.code} {item.kind}"))
    message = "" if detail <= 0 and report_view.adds_nothing(item) else item.message
    rows = (("observed", item.observed), ("expected", item.expected), ("", message))
    return Entry(title, (Span(" · ".join(dict.fromkeys(names)), "dim"),), rows)


def _finding(report: Report, item: Evidence) -> TableLine:
    tone = TONES[item.severity.value]
    used = [found.cause for found in report.diagnoses if item.id in found.evidence]
    shows = (Span(f" · shows {', '.join(used)}", "dim"),) if used else ()
    # What was seen, and the message where that says more.
    parts = (item.observed, "" if report_view.adds_nothing(item) else item.message)
    event = log_page.event_of(report.log, item)
    link = event or (item.source.run if isinstance(item.source, RunSource) else "")
    cells = (
        Cell((Span(item.id, "bold"),)),
        Cell((Span(item.severity.value, f"tag {tone}"),)),
        Cell((Span(item.code, "code"), Span(f" {item.kind}"), *shows)),
        Cell(code_words(item.subject or "")),
        Cell(" — ".join(part for part in parts if part)),
        Cell(item.expected),
        Cell((Span(report_view.source_text(item.source), link=link),), "dim"),
    )
    return TableLine(cells, tone, id=item.id)


def reasons(report: Report, detail: int) -> list[tuple[str, str]]:
    """What was not checked, and why; with ``detail`` also the questions that this case does not raise.

    Of a reason that stops twenty checks a few names, or how many.
    """
    grouped: dict[str, list[str]] = {}
    for item in report.not_checked:
        if detail > 0 or not item.moot:
            name = f"{item.name} ({item.code})" if detail > 0 else item.name
            grouped.setdefault(one_line(item.reason), []).append(name)
    return [(list_names(names, len(names) if detail > 0 else 4), reason) for reason, names in grouped.items()]


def not_checked_blocks(report: Report, detail: int) -> tuple[Block, ...]:
    """What was not checked, by reason."""
    rows = reasons(report, detail)
    if not rows:
        return ()
    notes = (NoteBlock(words=f"{names}: {reason}", formats=TERMINAL) for names, reason in rows)
    lines = text_lines([(reason, names) for names, reason in rows])
    headings = ("Because", "Not checked")
    table = TableBlock(label=headings[1], headings=headings, rows=lines, look="why", formats=MARKDOWN + HTML, room=4)
    return (*notes, table)


# The end of a page.
def again_blocks(report: Report, _detail: int) -> tuple[Block, ...]:
    """The command that made it, and the fingerprint of the failure with what went into it."""
    mark = report.fingerprint
    signature = mark.exact if mark is not None else report.signature
    rows: list[tuple[str, Words]] = [("Signature", code_words(signature))] if signature else []
    folded: list[Block] = []
    if mark is not None:
        rows.append(("Of its family", code_words(mark.family)))
        lines = tuple(
            TableLine(
                (
                    Cell(part.rule),
                    Cell(code_words(part.text)),
                    Cell(part.granularity, "dim"),
                    Cell((Span(part.source, link=part.source),)),
                )
            )
            for part in mark.parts
        )
        table = TableBlock(label="Parts of the signature", headings=("Rule", "Part", "In", "From"), rows=lines)
        count = f"{plural(len(lines), 'part')}, version {mark.version}"
        folded = [Folded(summary=count, blocks=(table,), formats=HTML)] if lines else []
    made = f"Made by aotidoctor {report.version} at {report.started} in {seconds(report.seconds)}."
    return (
        CommandBlock(text=report_view.command_text(report.argv)),
        *((Pairs(rows=rows),) if rows else ()),
        *folded,
        *((Pairs(rows=report_view.plugin_rows(report), formats=MARKDOWN),) if report_view.plugin_rows(report) else ()),
        NoteBlock(words=made, formats=MARKDOWN),
    )


# The page.
_Blocks = tuple[Block, ...]


def _place(name: str) -> Callable[[Report, int], _Blocks]:
    """A section of ``place_page``, which is imported where there is a place or a comparison to speak of."""

    def blocks(report: Report, detail: int) -> _Blocks:
        if report.localization is None:
            return ()
        from aotidoctor.reports.page.place_page import PLACE

        return PLACE[name](report, detail)

    return blocks


def _compat(report: Report, _detail: int) -> _Blocks:
    if report.compat is None:
        return ()
    from aotidoctor.reports.page.compared_page import compat_blocks

    return compat_blocks(report.compat)


SECTIONS: Mapping[str, tuple[str, Callable[[Report, int], _Blocks]]] = {
    "also": ("Also possible", lambda report, _: also_blocks(report)),
    "plan": ("Plan", lambda report, _: (StepsBlock(items=report.plan),) if report.plan else ()),
    "serving": ("Serving", serving_page.serving_blocks),
    "compat": ("Packages and hosts", _compat),
    "samples": ("Samples", run_page.sample_blocks),
    "stages": ("Whose fault", _place("stages")),
    "comparison": ("Against the reference", _place("comparison")),
    "where": ("Where", _place("where")),
    "calls": ("Calls", _place("calls")),
    "values": ("Values of kernels", _place("values")),
    "probes": ("Probes", run_page.probe_blocks),
    "log": ("Log", log_page.log_blocks),
    "evidence": ("Evidence", evidence_blocks),
    "runs": ("Runs", run_page.run_blocks),
    "contract": ("Contract", package_page.contract_blocks),
    "package": ("Package", package_page.package_blocks),
    "host": ("Host", package_page.host_blocks),
    "settings": ("Debug settings", lambda report, _: package_page.settings_blocks(report)),
    "traceback": ("Traceback of aotidoctor", lambda report, _: traceback_blocks(report)),
    "unchecked": ("Not checked", not_checked_blocks),
    "again": ("Again", again_blocks),
}
"""Title and function of each section, in the order of the page."""
_DESCRIBING = {"inspect": ("package",), "triton": ("serving",), "compat": ("compat",), "env": ("host", "settings")}
# What a terminal shows of a healthy case.
_CALM = ("also", "plan", "samples", "stages", "comparison", "probes", "log", "evidence", "traceback")


def traceback_blocks(report: Report) -> tuple[Block, ...]:
    """The traceback of aotidoctor itself."""
    return (OutputBlock(title="", text=report.internal_error, room=40_000),) if report.internal_error else ()


def is_calm(report: Report, detail: int) -> bool:
    """Whether a terminal shows a healthy case in a few lines; what describes a package or host is no shorter for it."""
    return report.verdict == "healthy" and detail == 0 and report.command not in ("inspect", "triton", "env")


def terminal_sections(report: Report, detail: int) -> Iterator[PageSection]:
    """The sections that a terminal shows at ``detail``."""
    kept: Collection[str] = [name for name in SECTIONS if name not in ("serving", "compat", "package", "again")]
    if report.command in _DESCRIBING and (report.command != "compat" or report.compat is not None):
        kept = (*_DESCRIBING[report.command], *(() if is_calm(report, detail) else ("unchecked",)))
        detail = max(detail, 1) if report.command == "env" else detail
    elif is_calm(report, detail):
        # What was not checked comes with what was, behind the sections.
        kept = (*_CALM, *(("where", "calls", "values") if report.command == "localize" else ()))
    return sections(report, detail, kept)


def sections(report: Report, detail: int = WHOLE, kept: Collection[str] = SECTIONS) -> Iterator[PageSection]:
    """The sections ``kept`` that have blocks, in the order of the page."""
    for name, (title, blocks) in SECTIONS.items():
        if name in kept and (found := blocks(report, detail)):
            verdict = run_page.probes_verdict(report) if name == "probes" else ""
            yield PageSection(id=name, title=f"{title}: {verdict}" if verdict else title, blocks=found)
