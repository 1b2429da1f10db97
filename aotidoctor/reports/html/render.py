"""The report as one HTML file that needs nothing else: no network, no font, no picture from elsewhere.

A policy in its head forbids to load anything, whatever a child printed. A page with long tables folds them, puts them
behind evidence, runs and host, and holds one script, which filters their rows and is allowed by its hash alone; all of
the page can be read without it. What is said first is what was found; each
statement links to the evidence and the runs that show it. Dark and light, narrow and wide, screen and paper are told
apart by the style sheet alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aotidoctor.model.report import Report
from aotidoctor.reports.html import contract as html_contract
from aotidoctor.reports.html import evidence, facts, log, text, verdict
from aotidoctor.reports.html import place as html_place
from aotidoctor.reports.html import runs as html_runs
from aotidoctor.reports.html.blocks import Section, folded, has_long
from aotidoctor.reports.html.page import environment, icon, scripted
from aotidoctor.reports.tones import COLORS

# The tab tells the verdict, too.
_LATE = ("calls", "values", "contract", "package")
_SCRIPT = """
for (const table of document.querySelectorAll("table.long")) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter rows";
  field.setAttribute("aria-label", "Filter rows of " + table.caption.textContent);
  field.oninput = () => {
    const wanted = field.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  table.parentNode.before(field);
}
"""


def render(report: Report) -> str:
    """``report`` as a page."""
    ids = (*(item.id for item in report.findings), *(outcome.id for outcome in report.runs))
    known = frozenset(name for name in ids if text.anchor(name))
    shown = verdict.verdict(report, known)
    sections = _in_order([folded(section) for section in _sections(report, known) if section.blocks])
    template = environment().get_template("report.html.jinja")
    page = template.render(
        verdict=shown,
        facts=verdict.facts(report),
        sections=sections,
        **_filter(sections),
        command=report.command,
        explain=f"aotidoctor explain {shown.cause}" if shown.cause else "",
        icon=icon(COLORS[shown.tone]),
    )
    return page + "\n"


def _in_order(sections: list[Section]) -> list[Section]:
    """Sections with long tables come behind the host, or last; one that shows what differs stays where it is."""
    late = [section for section in sections if section.id in _LATE and has_long(section.blocks)]
    rest = [section for section in sections if section not in late]
    at = next((number for number, section in enumerate(rest, 1) if section.id == "host"), len(rest))
    return [*rest[:at], *late, *rest[at:]]


def _filter(sections: list[Section]) -> Mapping[str, str]:
    """The script and the hash that allows it; both empty where no table is long."""
    if not any(has_long(section.blocks) for section in sections):
        return {"script": "", "script_hash": ""}
    return scripted(_SCRIPT)


def _sections(report: Report, known: frozenset[str]) -> Iterator[Section]:
    place = report.localization
    yield Section(id="plan", title="Plan", blocks=facts.plan_blocks(report, known))
    yield Section(id="also", title="Also possible", blocks=evidence.other_blocks(report, known))
    yield Section(id="log", title="Log", blocks=log.log_blocks(report.log))
    yield Section(id="serving", title="Serving", blocks=facts.serving_blocks(report))
    yield Section(id="compat", title="Packages and hosts", blocks=facts.compat_blocks(report))
    yield Section(id="comparison", title="Against the reference", blocks=facts.comparison_blocks(report))
    contract = Section(id="contract", title=_contract_title(report), blocks=html_contract.contract_blocks(report))
    first = html_contract.is_marked(contract.blocks) or report.command == "inspect"
    if first:
        yield contract
    yield Section(id="where", title="Where", blocks=html_place.place_blocks(place, known))
    yield Section(id="calls", title="Calls in order", blocks=html_place.call_blocks(place))
    yield Section(id="values", title="Values of kernels", blocks=html_place.value_blocks(place))
    if not first:
        yield contract
    yield from _rest(report, known)


def _rest(report: Report, known: frozenset[str]) -> Iterator[Section]:
    yield Section(id="evidence", title="Evidence", blocks=evidence.evidence_blocks(report, known))
    yield Section(id="probes", title="Probes", blocks=html_runs.matrix_blocks(report, known))
    yield Section(id="runs", title="Runs", blocks=html_runs.run_blocks(report, known))
    yield Section(id="package", title="Package", blocks=facts.package_blocks(report))
    yield Section(id="unchecked", title="Not checked", blocks=evidence.not_checked_blocks(report, known))
    yield Section(id="host", title="Host", blocks=facts.host_blocks(report))
    yield Section(id="settings", title="Debug settings", blocks=facts.settings_blocks(report))
    yield Section(id="traceback", title="Traceback of aotidoctor", blocks=facts.traceback_blocks(report))
    yield Section(id="again", title="Again", blocks=facts.again_blocks(report, known))


def _contract_title(report: Report) -> str:
    return "Contract and inputs" if report.case.inputs is not None else "Contract"
