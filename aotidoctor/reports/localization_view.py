"""Describe the place of a failure and comparisons (with the reference, hosts, another document) as rows of text.

Not loaded by `check`: the place of a failure comes from a run, and the other parts belong to commands of their own. Of
a long run, the table of kernel values shows the rows around the call in question: what it read, what it wrote, and its
neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.reports.text import Headline, one_line

if TYPE_CHECKING:
    from aotidoctor.model.localization import (
        BufferValues,
        Frame,
        KernelValues,
        Localization,
        OutputComparison,
        TimelineEntry,
    )


# Culprit, timeline and stack, for the section "Where".
_MOST_LISTED = 12
_FRAMES = 10
# Below this frame are only the callers of the model: the loader, Python, the program.
_MODEL = "::run_impl"
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_MARK = "►"


@record
class Excerpt:
    """Lines of a package member around a stack frame; ``title`` names member and line."""

    title: str
    text: str


def place_rows(place: Localization) -> list[tuple[str, str]]:
    """Labelled lines: culprit, how it was found, the blame chain, the fault address."""
    address = place.fault_address
    rows = [
        ("Culprit", place.culprit or ""),
        ("Known by", place.how if place.culprit else ""),
        ("Chain", place.chain or ""),
        ("Compiler", f"the result is right without {place.bisected}" if place.bisected else ""),
        ("Address", f"{address}: {place.fault_target}" if address and place.fault_target else address or ""),
    ]
    return [(label, one_line(text, 600)) for label, text in rows if text]


def timeline_rows(place: Localization, *, whole: bool = False) -> tuple[list[tuple[str, ...]], int]:
    """Rows (mark, name, kind, took, made of) of the last call of the model, and how many calls came before them."""
    last = max((entry.call for entry in place.timeline), default=0)
    entries: Sequence[TimelineEntry] = place.timeline
    if not whole:
        entries = [entry for entry in entries if entry.call == last][-_MOST_LISTED:]
    rows: list[tuple[str, ...]] = [
        (
            _MARK if entry.state == "entered" or (entry.name == place.culprit and entry is entries[-1]) else "",
            one_line(entry.name),
            entry.kind,
            took_text(entry.seconds),
            made_of(entry),
        )
        for entry in entries
    ]
    return rows, len(place.timeline) - len(entries)


def made_of(entry: TimelineEntry) -> str:
    """Describe the origins of a kernel as far as the package records them: ``aten.add, aten.relu at model.py:7``."""
    return " ".join(part for part in (", ".join(entry.origins), f"at {entry.where}" if entry.where else "") if part)


def frame_rows(place: Localization, *, whole: bool = False) -> list[tuple[str, str, str]]:
    """Rows (number, function, place) of the native stack; in short, the telling ones: their numbers show the gaps."""
    frames = place.frames
    if not whole:
        # Down to the frame of the model, the innermost ones, but none of them in place of the package's own.
        last = next((at for at, frame in enumerate(frames) if _MODEL in (frame.function or "")), len(frames))
        own = [frame for frame in frames[: last + 1] if frame.member is not None][:_FRAMES]
        others = [frame for frame in frames[: last + 1] if frame.member is None][: _FRAMES - len(own)]
        frames = tuple(sorted((*own, *others), key=lambda frame: frame.index))
    return [(f"#{frame.index}", _function(frame.function), _place(frame)) for frame in frames]


def _function(name: str | None) -> str:
    """The name without template arguments and argument list, which take lines and tell little."""
    if name is None:
        return "?"
    short, depth = "", 0
    for letter in name.partition("(")[0] if not name.startswith("(") else name:
        depth += letter == "<"
        short += letter if depth == 0 else ""
        depth -= letter == ">" and depth > 0
    return one_line(short or name)


def took_text(seconds: float | None) -> str:
    """``1.5 ms``; kernels take microseconds."""
    if seconds is None:
        return ""
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds / size:.3g} {unit}"


def source_frame(place: Localization) -> Frame | None:
    """The innermost frame whose source is in the package; without a stack the check that failed."""
    frames = (*place.frames, place.check) if place.check is not None else place.frames
    return next((frame for frame in frames if frame.lines), None)


def excerpt(place: Localization) -> Excerpt | None:
    """The lines of ``source_frame``."""
    frame = source_frame(place)
    if frame is None:
        return None
    width = len(str(frame.lines[-1].number))
    lines = [f"{_MARK if line.marked else ' '} {line.number:>{width}}  {line.text}" for line in frame.lines]
    return Excerpt(title=_place(frame), text="\n".join(lines))


def _place(frame: Frame) -> str:
    where = frame.member or frame.file or frame.library or ""
    name = where.rpartition("/")[2]
    return f"{name}:{frame.line}" if frame.line is not None and name else name


# Values of kernels: a row per tensor that a call read or wrote.
_NEIGHBOURS = 2
_CALL_MARK = "►"
_ALWAYS = ("", "Call", "Min", "Max")


def kernel_value_rows(calls: Sequence[KernelValues], culprit: str | None, *, whole: bool = False) -> list[list[str]]:
    """Headings, then rows of text. Columns that are empty in all rows are left out."""
    # The call in question and its neighbours; the first calls where none is.
    center = next((at for at, call in enumerate(calls) if call.name == culprit), 0)
    listed = calls if whole else calls[max(0, center - _NEIGHBOURS) : center + _NEIGHBOURS + 1]
    # The tensors of each call; its name stands before the first.
    rows = [
        _value_row(call.name if at == 0 else "", buffer, marked=call.name == culprit)
        for call in listed
        for at, buffer in enumerate(buffer for buffer in call.buffers if buffer.seen)
    ]
    if not rows:
        return []
    parts = [column for column in rows[0] if column in _ALWAYS or any(row[column] for row in rows)]
    return [parts, *([_value_text(row[column]) for column in parts] for row in rows)]


def _value_row(name: str, buffer: BufferValues, *, marked: bool) -> dict[str, str | float | None]:
    # An intermediate that no node has is common; it matters in the call in question only.
    compared = buffer.role == "out" and (marked or buffer.agrees is True)
    return {
        "": _CALL_MARK if marked else "",
        "Call": one_line(name),
        "Tensor": f"{buffer.role} {buffer.name}",
        "Min": buffer.low,
        "Max": buffer.high,
        "Mean": buffer.mean,
        "NaN": buffer.nan or None,
        "Inf": buffer.inf or None,
        "Off by": buffer.error if compared else None,
        "From": _closest(buffer) if compared else "",
    }


def _closest(buffer: BufferValues) -> str:
    """The node whose values it has (``= relu``), or that is closest without having them (``not add``)."""
    if buffer.matches is None or buffer.agrees is None:
        return ""
    where = f" at {buffer.where}" if buffer.where else ""
    return f"{'=' if buffer.agrees else 'not'} {buffer.matches}{where}"


def _value_text(value: str | float | None) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case _ if math.isnan(value):
            return ""
        case _:
            return f"{value:.4g}"


# Outputs against the reference's.
COMPARISON_HEADINGS = (
    "",
    "Output",
    "Verdict",
    "max diff",
    "eps",
    "ref. eps",
    "NaN/Inf",
    "Values",
    "relative",
    "beyond",
)
"""Largest difference, largest error against float64 of package and reference, largest relative difference, elements
beyond the tolerance; the most telling first."""
_COMPARISON_MARKS = {"agrees": "", "both-within": "", "reference-imprecise": "!"}
_WRONG = "x"


def comparison_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per output, as in ``HEADINGS``; empty if nothing was compared, or all agrees and it was not requested.

    The mark is ``x`` for what is wrong and ``!`` for what is worth a look.
    """
    found = report.localization.comparison if report.localization is not None else ()
    if report.command != "compare" and all(item.verdict == "agrees" for item in found):
        return []
    return [
        (
            _COMPARISON_MARKS.get(item.verdict, _WRONG),
            one_line(item.path),
            item.verdict,
            _number(item.max_abs),
            _number(item.error),
            _number(item.reference_error),
            _nonfinite(item),
            _values(item),
            _number(item.max_rel),
            f"{item.far}/{item.numel}" if item.far else "",
        )
        for item in found
    ]


def comparison_reasons(report: Report) -> list[str]:
    """Why a verdict is unknown, once for all outputs that share it."""
    found = report.localization.comparison if report.localization is not None else ()
    return list(dict.fromkeys(one_line(item.reason, 300) for item in found if item.reason))


def _values(item: OutputComparison) -> str:
    """``float32[4, 16]``; both where they differ."""
    ours = f"{item.dtype}[{', '.join(map(str, item.shape))}]" if item.dtype else ""
    theirs = f"{item.reference_dtype}[{', '.join(map(str, item.reference_shape))}]" if item.reference_dtype else ""
    return ours if ours == theirs or not theirs else f"{ours} for {theirs}"


def _nonfinite(item: OutputComparison) -> str:
    """Counts of the package, and of the reference where those differ; nothing where there are none."""
    ours, theirs = (item.nan, item.inf), (item.reference_nan, item.reference_inf)
    if not any((*ours, *theirs)):
        return ""
    text = f"{ours[0]}/{ours[1]}"
    return text if ours == theirs else f"{text} for {theirs[0]}/{theirs[1]}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


# The stages between the model and its package.
STAGES_TITLE = "Whose fault"
STAGE_HEADINGS = ("", "Stage", "Verdict", "Against", "Observed", "Operator", "Where")


def stage_rows(report: Report) -> list[tuple[str, ...]]:
    """One row per stage, marked ``x`` at the first that breaks it; empty where none was looked at."""
    found = report.localization.stages if report.localization is not None else ()
    return [
        (
            _WRONG if row.first else "",
            row.name,
            row.verdict,
            row.against or "",
            one_line(row.observed, 300) + (f" [{row.run}]" if row.run else ""),
            one_line(row.operator or ""),
            one_line(row.where or ""),
        )
        for row in found
    ]


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


# One document against another, for `diff`.
DIFFERENCE_HEADINGS = ("", "What", "A", "B", "Playbook", "Why it matters")
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


def difference_row(item: DocumentDifference) -> tuple[str, str, str, str, str, str]:
    """One difference under ``HEADINGS``."""
    return (
        DIFFERENCE_MARKS[item.level],
        f"{item.area}: {one_line(item.subject)}",
        one_line(item.a, 300),
        one_line(item.b, 300),
        item.playbook or "",
        difference_reason(item),
    )


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
