"""The report in the fields of a bug form: PyTorch's (``bug-report.yml``, ``pt2-bug-report.yml``) or Triton's.

The headings are those that GitHub makes of PyTorch's form, and those of the Triton server's ``bug_report.md``. What a
form asks for and the report does not know is said to be unknown.
"""

from __future__ import annotations

from functools import partial

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.report import Report
from aotidoctor.reports import place_view, run_view, view
from aotidoctor.reports.headline import headline
from aotidoctor.reports.markdown.budget import Budget, fitted
from aotidoctor.reports.markdown.place import comparison_section
from aotidoctor.reports.markdown.render import (
    contract_section,
    evidence_section,
    first_lines,
    models_sections,
    provenance,
    runs_section,
)
from aotidoctor.reports.markdown.text import code, details, fence, prose
from aotidoctor.reports.text import one_line
from aotidoctor.reports.torch_script import script
from aotidoctor.reports.versions import versions

_REPRO = "`aotidoctor repro` writes a script that was run and certified to fail with the same signature."


def render(report: Report, form: str, repro: str | None = None) -> str:
    """``report`` in ``form`` (``pytorch`` or ``triton``), shorter than GitHub's limit.

    ``repro`` is the folder that a certified reproduction was asked for in.
    """
    parts = _pytorch if form == "pytorch" else _triton
    return fitted(partial(parts, report, repro))


def _pytorch(report: Report, repro: str | None, budget: Budget) -> list[str]:
    return [
        "### 🐛 Describe the bug",
        _described(report),
        *_reproduction(report, repro, "####"),
        *_evidence(report, budget),
        "### Error logs",
        _error_log(report, budget),
        "### Versions",
        *_versions(report),
        provenance(report).replace("### ", "#### ", 1),
    ]


def _triton(report: Report, repro: str | None, budget: Budget) -> list[str]:
    release, host = report.extra.get("release"), report.case.host
    version = f"Triton {prose(release)}, as given to aotidoctor" if release else "Not recorded in this report."
    where = {True: "in a container", False: "outside a container", None: "on a machine"}[host.in_container]
    return [
        "**Description**",
        _described(report),
        *_evidence(report, budget),
        "Error log:",
        _error_log(report, budget),
        "**Triton Information**\nWhat version of Triton are you using?",
        version,
        "Are you using the Triton container or did you build it yourself?",
        f"Not recorded in this report, which was made {where}.",
        details("Versions", "\n\n".join(_versions(report))),
        "**To Reproduce**",
        *_reproduction(report, repro, ""),
        *models_sections(report, budget),
        "" if report.case.contract is not None else "The inputs and outputs of the model are unknown.",
        "**Expected behavior**",
        _expected(report),
        provenance(report).partition("\n")[2].strip(),
    ]


def _described(report: Report) -> str:
    """Verdict, package, cause and how sure."""
    head = headline(report)
    lines = [f"**{head.word}:** {prose(head.text, 300)}", ""]
    if view.has_artifact(report):
        lines += [f"Package: {code(view.artifact_text(report))}", ""]
    if note := view.partial_note(report):
        lines += [f"**{note}**", ""]
    return "\n".join([*lines, *first_lines(report)]).rstrip("\n")


def _reproduction(report: Report, repro: str | None, level: str) -> list[str]:
    made = script(report)
    command = fence(view.command_text(report.argv), language="sh", budget=4000)
    title = f"{level} Minimal reproduction".strip()
    if made is None:
        parts = [title if level else "", command, "The known facts are not enough for a script that needs only torch."]
    else:
        notes = "\n".join(f"- {prose(note)}" for note in made.notes)
        parts = [
            title if level else "",
            command,
            "The same call with torch alone (written from metadata, not run):",
            fence(made.text, language="python", budget=6000),
            notes,
        ]
    folder = f"A certified reproduction was requested in {code(repro)}; attach it." if repro else ""
    return [*parts, folder or (_REPRO if made is not None else "")]


def _evidence(report: Report, budget: Budget) -> list[str]:
    place = report.localization
    rows = place_view.place_rows(place) if place is not None else []
    where = "\n".join(f"- **{label}:** {code(text, 600)}" for label, text in rows)
    sections = [
        where,
        comparison_section(report, budget),
        evidence_section(report, budget),
        contract_section(report, budget),
        runs_section(report, budget, printed=False),
    ]
    return [part.replace("### ", "#### ", 1) if part.startswith("### ") else part for part in sections]


def _expected(report: Report) -> str:
    if not report.diagnoses:
        return "No failure." if report.verdict != "healthy" else "As observed: nothing wrong was found."
    first = report.diagnoses[0]
    told = next((item.expected for item in view.evidence_of(report, first) if item.expected), "")
    return prose(told) if told else "No failure."


def _versions(report: Report) -> list[str]:
    """The host that failed; of a log what it names itself, because it may come from elsewhere."""
    block = fence(versions(report.case.host), budget=12_000)
    if report.log is None or report.runs:
        return [block]
    named = ", ".join(f"{name} {version}" for name, version in report.log.versions.items())
    told = f"The log names {prose(named)}." if named else "The log names no versions."
    if report.case.host.torch is None and report.case.host.cpu_model is None:
        rest = "`python -m torch.utils.collect_env` lists them"
        return [told, f"This report does not describe the machine that failed; on that machine, {rest}."]
    return [told, "The machine that read the log, which may differ from the one that failed:", block]


def _error_log(report: Report, budget: Budget) -> str:
    """What the first failing run said last, or what a log said; a traceback of aotidoctor where it failed itself."""
    room_of_log = max(budget.printed, 400)
    if report.internal_error is not None:
        return fence(report.internal_error, budget=room_of_log)
    if report.log is not None:
        texts = [match.text for match in report.log.matches] or [event.text for event in report.log.events]
        return fence("\n".join(texts[: budget.rows]), budget=room_of_log) if texts else "The log contains no error."
    failed = run_view.first_failed(report.runs)
    if failed is None:
        wrong = report.case.artifact.kind in (ArtifactKind.MISSING, ArtifactKind.UNREADABLE)
        return "Nothing was run." if wrong or not report.runs else "No run failed."
    error = failed.error
    parts = [error.traceback or error.message if error is not None else "", failed.stderr_tail, failed.stdout_tail]
    text = "\n".join(part for part in parts if part.strip())
    ended = f"{failed.id} ({one_line(failed.request.probe, 60)}) ended: {run_view.run_ending(failed)} in {failed.stage}"
    return f"{prose(ended)}\n\n{fence(text, budget=room_of_log)}" if text else prose(ended)
