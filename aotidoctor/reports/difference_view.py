"""What every format for people says of a comparison: headline, rows and counts."""

from __future__ import annotations

from aotidoctor.model.difference import Comparison, Difference, Side
from aotidoctor.model.phrases import plural
from aotidoctor.reports.text import one_line
from aotidoctor.reports.tones import Headline

HEADINGS = ("", "What", "A", "B", "Playbook", "Why it matters")
# An outcome is told in the headline and as a row; ``minor`` needs no word.
MARKS = {"decisive": "✗", "relevant": "!", "outcome": "=", "minor": ""}


def headline(found: Comparison) -> Headline:
    """Whether anything that matters differs, and what came of each side."""
    if {found.a.kind, found.b.kind} == {"package", "host"}:
        return _fit(found)
    if not found.differences:
        return Headline("SAME", f"nothing differs of {plural(sum(found.equal.values()), 'fact')}", "good")
    outcomes = sum(1 for item in found.matters if item.level == "outcome")
    count = len(found.matters) - outcomes
    if not found.matters:
        return Headline("SAME", f"{plural(len(found.differences), 'difference')}, none that matters", "good")
    told = f"{plural(count, 'difference')} that {'matters' if count == 1 else 'matter'}"
    told += f" ({outcomes} in the outcome)" if outcomes else ""
    if count == 0:
        told = f"only in the outcome ({plural(outcomes, 'difference')})"
    first = found.matters[0]
    story = _story(found)
    text = f"{told}{f'; {story}' if story else ''}; first: {one_line(first.subject, 80)}"
    return Headline("DIFFERENT", text, "bad" if first.level == "decisive" else "unsure")


def _fit(found: Comparison) -> Headline:
    """A package against a host: does it fit there?"""
    unseen = f"; {plural(len(found.unknown), 'check')} could not be run" if found.unknown else ""
    if not found.matters:
        asked = plural(found.equal.get("fit", 0), "check")
        return Headline("FITS", f"{asked} passed; nothing was run{unseen}", "good")
    first = found.matters[0]
    there = first.b if found.a.kind == "package" else first.a
    bad = first.level == "decisive"
    text = f"{first.playbook or first.subject}: {one_line(there, 200)}{unseen}"
    return Headline("DOES NOT FIT" if bad else "MAY NOT FIT", text, "bad" if bad else "unsure")


def _story(found: Comparison) -> str:
    """``A works, B fails (input-dtype)``."""
    if found.a.verdict is None or found.b.verdict is None:
        return ""
    return ", ".join(f"{side.label} {_came_of(side)}" for side in (found.a, found.b))


def _came_of(side: Side) -> str:
    match side.verdict:
        case "healthy":
            return "works"
        case "problem" if side.causes:
            return f"fails ({side.causes[0]})"
        case "problem":
            return "fails"
        case _:
            return "is not explained"


def side_text(side: Side) -> str:
    """Name, kind, and when and with what it was made."""
    made = f", made {side.made} by aotidoctor {side.version}" if side.made else ""
    return f"{one_line(side.name, 200)} ({side.kind}{made})"


def row(item: Difference) -> tuple[str, str, str, str, str, str]:
    """One difference under ``HEADINGS``."""
    return (
        MARKS[item.level],
        f"{item.area}: {one_line(item.subject, 160)}",
        one_line(item.a, 300),
        one_line(item.b, 300),
        item.playbook or "",
        why(item),
    )


def why(item: Difference) -> str:
    """The reason, and the evidence of the side in which its cause was diagnosed."""
    if not item.diagnosed:
        return one_line(item.why, 300)
    seen = f" [{', '.join(item.evidence[:6])}]" if item.evidence else ""
    return f"diagnosed in {item.diagnosed}{seen}: {one_line(item.why, 300)}"


def counts(found: Comparison) -> tuple[tuple[str, str], ...]:
    """What is equal, left out and not known, as labelled lines."""
    equal = ", ".join(f"{area} {count}" for area, count in found.equal.items())
    left = ", ".join(f"{what} {count}" for what, count in found.left_out.items())
    rows = (
        ("Equal", f"{plural(sum(found.equal.values()), 'fact')} ({equal})" if equal else ""),
        ("Left out", f"{left} (differences without effect)" if left else ""),
        ("Not known", plural(len(found.unknown), "fact") + " on one side" if found.unknown else ""),
    )
    return tuple(item for item in rows if item[1])
