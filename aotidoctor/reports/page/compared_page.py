"""Write the page of `compat` and that of `diff`: packages against hosts, one document against another.

Apart from the others, because `check` does not load it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from aotidoctor.model.evidence import plural
from aotidoctor.model.fleet import (
    ComparedSide,
    Compatibility,
    DocumentComparison,
    DocumentDifference,
    HostAnswer,
    HostVerdict,
    PackageNeeds,
)
from aotidoctor.reports.page.blocks import (
    TERMINAL,
    Block,
    Cell,
    EntriesBlock,
    Entry,
    NoteBlock,
    PageSection,
    Pairs,
    Span,
    TableBlock,
    TableLine,
    text_lines,
)
from aotidoctor.reports.text import Headline, one_line

# Packages against hosts, for `compat`.
COMPAT_HEADINGS = ("Package", "Host", "Answer", "Because")
COMPAT_MATRIX = "Packages and hosts"
COMPAT_WORDS = {HostVerdict.RUNS: "runs", HostVerdict.REFUSED: "will not run", HostVerdict.UNKNOWN: "undetermined"}
COMPAT_TONES = {HostVerdict.RUNS: "good", HostVerdict.REFUSED: "bad", HostVerdict.UNKNOWN: "unsure"}
_LONGEST = 400


def compat_names(found: Compatibility) -> dict[str, str]:
    """Package to the shortest end of its path that no other one has."""
    paths = list(dict.fromkeys(item.package for item in found.needs))
    values: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        ends = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
        alone = (end for end in ends if sum(f"/{other}".endswith(f"/{end}") for other in paths) == 1)
        values[path] = one_line(next(alone, path))
    return values


def answer_rows(found: Compatibility) -> tuple[tuple[str, ...], ...]:
    """One row per package and host."""
    labels = compat_names(found)
    return tuple(
        (labels[item.package], one_line(item.host), COMPAT_WORDS[item.answer], compat_reasons(item))
        for item in found.answers
    )


def compat_reasons(item: HostAnswer) -> str:
    """Why, in one line."""
    reasons = {HostVerdict.REFUSED: item.because, HostVerdict.UNKNOWN: item.unknown, HostVerdict.RUNS: item.provided}
    return one_line("; ".join(reasons[item.answer]), _LONGEST)


def compat_matrix(found: Compatibility) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """Headings and rows with a package per row and a host per column; None where one of both is a single one."""
    labels, hosts = compat_names(found), tuple(dict.fromkeys(item.host for item in found.answers))
    if len(labels) < 2 or len(hosts) < 2:
        return None
    cells = {(item.package, item.host): COMPAT_WORDS[item.answer] for item in found.answers}
    rows = tuple((name, *(cells[path, host] for host in hosts)) for path, name in labels.items())
    return ("", *(one_line(host) for host in hosts)), rows


def needs_tables(found: Compatibility) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Per package a title, and labels with what it needs."""
    labels = compat_names(found)
    return tuple((f"What {labels[item.package]} needs", tuple(_needs(item))) for item in found.needs)


def _needs(item: PackageNeeds) -> Iterator[tuple[str, str]]:
    if item.problem is not None:
        yield "problem", one_line(item.problem, _LONGEST)
        return
    bounds = []
    if item.built_least is not None:
        bounds.append(f"torch {item.built_least} or later: {item.built_least_because}")
    if item.built_before is not None:
        bounds.append(f"before torch {item.built_before}: {item.built_before_because}")
    built = "; ".join(bounds)
    if built:
        yield "built by", built
    if item.torch_least is not None:
        yield "torch", f"{item.torch_least} or later: {item.torch_least_because}"
    if item.executorch_least is not None:
        yield "ExecuTorch", f"{item.executorch_least} or later, by the functions that it imports"
    native = " (compiled with -march=native: the build host's CPU decides)" if item.march_native else ""
    rest = (
        ("exactly", item.exactly or ""),
        ("backends", ", ".join(item.backends)),
        ("device", item.device or ("not told" if not item.backends else "")),
        ("machine", item.machine or ""),
        ("C/C++ libs", ", ".join(item.abi_versions)),
        ("CPU", (f"{', '.join(item.isa)}{native}" if item.isa else native.strip())),
        ("GPU code", ", ".join(item.gpu_targets)),
        ("CUDA driver", f"{item.oldest_driver} or later" if item.oldest_driver else ""),
        ("libraries", ", ".join(item.libraries)),
        ("operators", ", ".join(item.custom_ops)),
        ("threads", f"at most {item.threads}" if item.threads is not None else ""),
        ("stack", {True: "executable", False: "not executable", None: ""}[item.executable_stack]),
    )
    yield from ((label, one_line(text, _LONGEST)) for label, text in rest if text)


def compat_headline(found: Compatibility) -> Headline:
    """The first line: the worst answer, with its reason where it is the only one."""
    answers = found.answers
    counts = {kind: sum(item.answer is kind for item in answers) for kind in HostVerdict}
    worst = next((kind for kind in (HostVerdict.REFUSED, HostVerdict.UNKNOWN) if counts[kind]), HostVerdict.RUNS)
    word = {HostVerdict.RUNS: "RUNS", HostVerdict.REFUSED: "WILL NOT RUN", HostVerdict.UNKNOWN: "UNDETERMINED"}[worst]
    if len(answers) == 1:
        reason = compat_reasons(answers[0])
        text = f"on {answers[0].host}" + (f": {one_line(reason)}" if reason else "")
        return Headline(word, text, COMPAT_TONES[worst])
    parts = [f"{COMPAT_WORDS[kind]}: {count}" for kind, count in counts.items() if count]
    return Headline(
        word, f"{plural(len(answers), 'combination')} of package and host: {', '.join(parts)}", COMPAT_TONES[worst]
    )


def compat_blocks(found: Compatibility) -> tuple[Block, ...]:
    """Packages and hosts: the matrix, every answer with its reason, and what each package needs."""
    matrix = compat_matrix(found)
    rows = answer_rows(found)
    one = len({row[0] for row in rows}) == 1
    answers = _compat_table("Answers", COMPAT_HEADINGS[one:], [row[one:] for row in rows])
    return (
        *((_compat_table(COMPAT_MATRIX, *matrix),) if matrix is not None else ()),
        answers,
        *(Pairs(label=title, rows=pairs) for title, pairs in needs_tables(found)),
    )


def _compat_table(label: str, headings: Sequence[str], rows: Collection[Sequence[str]]) -> TableBlock:
    by_word = {COMPAT_WORDS[kind]: tone for kind, tone in COMPAT_TONES.items()}
    lines = tuple(TableLine(tuple(Cell(text, by_word.get(text, "")) for text in row)) for row in rows)
    whole = ("Answer",)
    return TableBlock(label=label, headings=tuple(headings), rows=lines, titled=True, whole=whole, room=3)


# One document against another, for `diff`.
# An outcome is told in the headline and as a row; ``minor`` needs no word.
DIFFERENCE_MARKS = {"decisive": "✗", "relevant": "!", "outcome": "=", "minor": ""}


def difference_headline(found: DocumentComparison) -> Headline:
    """State whether anything relevant differs, and the outcome of each side."""
    if {found.a.kind, found.b.kind} == {"package", "host"}:
        return _fit(found)
    if not found.differences:
        return Headline("SAME", f"nothing differs of {plural(sum(found.equal.values()), 'fact')}", "good")
    outcomes = sum(1 for item in found.matters if item.level == "outcome")
    count = len(found.matters) - outcomes
    if not found.matters:
        return Headline("SAME", f"{plural(len(found.differences), 'difference')}, none that matters", "good")
    words = f"{plural(count, 'difference')} that {'matters' if count == 1 else 'matter'}"
    words += f" ({outcomes} in the outcome)" if outcomes else ""
    if count == 0:
        words = f"only in the outcome ({plural(outcomes, 'difference')})"
    first = found.matters[0]
    # `A works, B fails (input-dtype)`.
    if found.a.verdict is None or found.b.verdict is None:
        story = ""
    else:
        story = ", ".join(f"{side.label} {_came_of(side)}" for side in (found.a, found.b))
    text = f"{words}{f'; {story}' if story else ''}; first: {one_line(first.subject)}"
    return Headline("DIFFERENT", text, "bad" if first.level == "decisive" else "unsure")


def _fit(found: DocumentComparison) -> Headline:
    """A package against a host: does it fit there?"""
    unseen = f"; {plural(len(found.unknown), 'check')} could not be run" if found.unknown else ""
    if not found.matters:
        words = plural(found.equal.get("fit", 0), "check")
        return Headline("FITS", f"{words} passed; nothing was run{unseen}", "good")
    first = found.matters[0]
    there = first.b if found.a.kind == "package" else first.a
    bad = first.level == "decisive"
    text = f"{first.playbook or first.subject}: {one_line(there)}{unseen}"
    return Headline("DOES NOT FIT" if bad else "MAY NOT FIT", text, "bad" if bad else "unsure")


def _came_of(side: ComparedSide) -> str:
    match side.verdict:
        case "healthy":
            return "works"
        case "problem" if side.causes:
            return f"fails ({side.causes[0]})"
        case "problem":
            return "fails"
        case _:
            return "is not explained"


def side_text(side: ComparedSide) -> str:
    """Name, kind, and when and with what it was made."""
    made = f", made {side.made} by aotidoctor {side.version}" if side.made else ""
    return f"{one_line(side.name)} ({side.kind}{made})"


def difference_reason(item: DocumentDifference) -> str:
    """The reason, and the evidence of the side in which its cause was diagnosed."""
    if not item.diagnosed:
        return one_line(item.why, 300)
    seen = f" [{', '.join(item.evidence[:6])}]" if item.evidence else ""
    return f"diagnosed in {item.diagnosed}{seen}: {one_line(item.why, 300)}"


def difference_counts(found: DocumentComparison) -> tuple[tuple[str, str], ...]:
    """Count what is equal, left out and unknown, as labelled lines."""
    equal = ", ".join(f"{area} {count}" for area, count in found.equal.items())
    left = ", ".join(f"{what} {count}" for what, count in found.left_out.items())
    rows = (
        ("Equal", f"{plural(sum(found.equal.values()), 'fact')} ({equal})" if equal else ""),
        ("Left out", f"{left} (differences without effect)" if left else ""),
        ("Not known", plural(len(found.unknown), "fact") + " on one side" if found.unknown else ""),
    )
    return tuple(item for item in rows if item[1])


_LISTED = 40
_TONES = {"decisive": "bad", "relevant": "unsure", "outcome": "good", "minor": "dim"}


def difference_sections(found: DocumentComparison, *, detail: int) -> Iterator[PageSection]:
    """The two sides, what differs, and how much does not; the minor differences with ``detail``."""
    sides = [(side.label, side_text(side)) for side in (found.a, found.b)]
    yield PageSection(id="sides", title="", blocks=(Pairs(rows=sides),))
    listed = found.differences if detail > 0 else found.matters[:_LISTED]
    left = len(found.differences) - len(listed)
    if listed:
        table = TableBlock(
            label="Differences",
            headings=("What", "A", "B", "Playbook", "Why it matters"),
            rows=tuple(map(_difference_line, listed)),
            marked=True,
            bare=("What", "Why it matters"),
            room=2,
            more=plural(left, "more difference") if left else "",
        )
        entries = EntriesBlock(entries=tuple(map(_difference_entry, listed)), table=table, more=table.more)
        yield PageSection(id="differences", title="Differences", blocks=(entries,))
    elif left:
        note = NoteBlock(words=f"and {plural(left, 'more difference')} (-v shows all)", tone="dim", formats=TERMINAL)
        yield PageSection(id="differences", title="", blocks=(note,))
    yield PageSection(id="counts", title="", blocks=(Pairs(rows=difference_counts(found)),))
    if detail > 0 and found.unknown:
        lines = text_lines([(line,) for line in found.unknown])
        unknown = TableBlock(label="Unknown on one side", headings=("Fact",), rows=lines, headed=False, folded=True)
        yield PageSection(id="unknown", title="Unknown on one side", blocks=(unknown,))


def _difference_line(item: DocumentDifference) -> TableLine:
    texts = (f"{item.area}: {item.subject}", item.a, item.b, item.playbook or "", difference_reason(item))
    return TableLine(tuple(Cell(one_line(text)) for text in texts), mark=DIFFERENCE_MARKS[item.level])


def _difference_entry(item: DocumentDifference) -> Entry:
    mark = Span(f"{DIFFERENCE_MARKS[item.level]:<2}", _TONES[item.level])
    what = f"{item.area}: {item.subject}"
    if item.level == "outcome":
        # What came of it needs no reason.
        return Entry((mark, Span(f"{what}: A {item.a}, B {item.b}")), "", ())
    why = ": ".join(words for words in (item.playbook, difference_reason(item)) if words)
    return Entry((mark, Span(what, "bold")), "", (("A", item.a), ("B", item.b), ("", why)))
