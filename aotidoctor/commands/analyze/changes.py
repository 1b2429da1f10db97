"""Compares today's verdict with the one that was sent, as findings that every format shows.

What it does:
    ``aotidoctor analyze`` compares the first cause that it names with the one that the bundle or report named when it
    was made, and reports whether they are the same. A change is a warning, no change is a note.

Why it matters:
    Newer playbooks and checks know more. A changed cause is a reason to reopen a closed case.

Example:
    the original report named input-shape; now it is input-order

When it is wrong:
    Runs are not repeated, so a cause that rests only on runs is as reliable as they were. The results of earlier
    treatments (confirmed, refuted) are accepted. A bundle written by hand can contain anything: checksums prove only
    that a file arrived as it was packed.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.commands.analyze import CODE, CODE_FILE
from aotidoctor.commands.analyze.saved import SavedCause
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.version import __version__

_CALM = ("same", "none")


def compared(before: Sequence[SavedCause], now: Sequence[Diagnosis], *, tool: str, path: str) -> Evidence:
    """One note: the same cause, another one, named now, or not named any more."""
    old, new = before[0].cause if before else None, now[0].cause if now else None
    kind, message = _change(old, new)
    playbook = f" (playbook {now[0].playbook})" if now else ""
    return Evidence(
        code=CODE,
        kind=kind,
        severity=Severity.INFO if kind in _CALM else Severity.WARN,
        subject=None,
        observed=f"{new or 'no cause'} by aotidoctor {__version__}{playbook}",
        expected=f"{old or 'no cause'}, as reported by aotidoctor {tool or 'of an unknown version'}",
        message=message,
        source=FileSource(file=path),
        facts={"before": old, "now": new, "tool": tool},
    )


def unbelieved(problems: Sequence[str], path: str) -> list[Evidence]:
    """A warning per thing of the file that was not used."""
    return [
        Evidence(
            code=CODE_FILE,
            kind="not-used",
            severity=Severity.WARN,
            subject=path,
            observed=problem,
            expected="an unchanged bundle",
            message=f"{path}: {problem}",
            source=FileSource(file=path),
        )
        for problem in problems[:50]
    ]


def _change(old: str | None, new: str | None) -> tuple[str, str]:
    """Its kind and its words."""
    if old is None and new is None:
        return "none", "no cause, as in the original report"
    if old == new:
        return "same", f"the cause is the same as in the original report: {new}"
    if old is None:
        return "named-now", f"the original report named no cause; now it is {new}"
    if new is None:
        return "not-named", f"the saved report named {old}; nothing that can be checked again confirms it"
    return "another", f"the original report named {old}; now it is {new}"
