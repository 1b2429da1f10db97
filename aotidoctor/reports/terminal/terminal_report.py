"""Show a report on a terminal, through rich: it reads well at 80 columns and without colour.

The first screen answers in this order: verdict, cause, subject, looked like → is, how sure, what to do. Evidence, runs,
contract, host and what was not checked come after it. Text of others is never taken for rich's markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from aotidoctor.model.artifact import Artifact, ModelEntry, SharedObject
from aotidoctor.model.case import Host
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import Severity, list_names, plural
from aotidoctor.model.report import NOT_CONFINED, Report
from aotidoctor.model.torch_names import DEBUG_SETTINGS
from aotidoctor.reports import package_view, report_view, run_view
from aotidoctor.reports.executorch_view import code_rows, executorch_rows, precompiled_rows
from aotidoctor.reports.package_view import LeafRow, finding_text, leaf_rows
from aotidoctor.reports.report_view import headline
from aotidoctor.reports.terminal.terminal_layout import (
    STYLES,
    TONES,
    Layout,
    capture_for_stream,
    capture_plain,
    show_runs,
)
from aotidoctor.reports.text import one_line, seconds, size

if TYPE_CHECKING:
    from aotidoctor.model.artifact import StampSeen


# The contract, leaf by leaf, beside the inputs.
_MARKS = {"": " ", "warn": "!", "error": "x"}

_LEAVES_LISTED = 24


def show_contract(report: Report, out: Layout, detail: int) -> None:
    """A table of the leaves, and why the inputs could not be read."""
    rows = leaf_rows(report)
    if not rows:
        return
    out.title("Contract")
    listed = rows if detail > 0 else _decisive_evidence(rows)
    observed = report.case.inputs is not None
    cells = []
    for row in listed:
        style = STYLES[row.mark]
        leaf = [Text(_MARKS[row.mark], style=style), Text(row.path, style=style), Text(row.expected)]
        cells.append([*leaf, *([Text(row.observed or "", style=style)] if observed else [])])
    out.table(("", "Leaf", "Expected", *(("Observed",) if observed else ())), cells)
    if len(listed) < len(rows):
        out.more(plural(len(rows) - len(listed), "more leaf", "more leaves"))
    inputs, problem = report.case.inputs, report.case.inputs_error
    for text in (*(inputs.notes if inputs is not None else ()), *((str(problem),) if problem is not None else ())):
        out.row("Inputs", one_line(text))


def _decisive_evidence(rows: Sequence[LeafRow]) -> Sequence[LeafRow]:
    """All of a short table; of a long one the marked leaves first, in order, then others up to the limit."""
    if len(rows) <= _LEAVES_LISTED:
        return rows
    marked = [row for row in rows if row.mark][:_LEAVES_LISTED]
    others = [row for row in rows if not row.mark][: _LEAVES_LISTED - len(marked)]
    return [row for row in rows if row in marked or row in others]


# The bodies of `inspect` and `env`.
_MOST_LISTED = 20


def show_package(report: Report, out: Layout, detail: int) -> None:
    """Print all of ``inspect``: archive, models, contract, needs."""
    artifact, contract = report.case.artifact, report.case.contract
    if report.findings:
        out.title("Findings")
        for finding in report.findings:
            text = finding.message or ", ".join(
                word for word in (finding.observed, finding.expected and f"expected {finding.expected}") if word
            )
            out.row(finding.severity.value, f"{finding.code} {finding.kind}: {one_line(text)}")
    _archive(artifact, out)
    _stamp(report.case.stamp, out)
    loaded = report.case.model.name if report.case.model is not None else None
    for model in artifact.models if artifact.executorch is None else ():
        _model(model, out, chosen=len(artifact.models) > 1 and model.name == loaded)
    if artifact.executorch is not None:
        _first("ExecuTorch", executorch_rows(artifact.executorch), out, detail)
        if contract is None:
            return
    if artifact.precompiled is not None:
        _first("Compiled code", precompiled_rows(artifact.precompiled), out, detail)
        if contract is not None:
            _inputs(contract, out)
        return
    if contract is None:
        out.title("Contract")
        out.paragraph("not readable from this file without running it")
        return
    _inputs(contract, out)
    _pairs("Outputs", [(item.path, package_view.output_text(item)) for item in contract.outputs], out)
    _constants(contract, out, detail)
    numbered = enumerate(contract.kernels, 1)
    rows = [(f"{number}. {item.name}", package_view.kernel_text(item)) for number, item in numbered]
    _first(f"Calls, in order ({len(rows)})", rows, out, detail)
    _pairs("Host requirements", package_view.needs_rows(contract), out)
    if contract.unknown_lines:
        out.line(Text(f" {plural(contract.unknown_lines, 'statement')} of the wrapper not understood", style="yellow"))
    for item in contract.unread:
        out.line(Text(f" {package_view.unread_text(item)}", style="yellow"))
    for problem in contract.problems:
        out.line(Text(f" {one_line(problem)}", style="yellow"))


def show_host(found: Host, out: Layout, *, detail: int) -> None:
    """Print the host; with ``detail`` 0 only what decides most cases."""
    _pairs("Host", package_view.host_rows(found, whole=detail > 0), out)
    if detail > 0:
        _pairs("Environment", tuple(found.environment.items()), out)


def show_settings(environment: Mapping[str, str], out: Layout) -> None:
    """Which debug settings act when, and which are set."""
    out.title("Debug settings")
    named = (
        (f"{item.name}={environment[item.name]}" if item.name in environment else item.name) for item in DEBUG_SETTINGS
    )
    rows = ((name, item.acts, item.what) for name, item in zip(named, DEBUG_SETTINGS, strict=True))
    out.table(("Setting", "Acts", "What it does"), rows)


def _pairs(title: str, rows: Sequence[tuple[str, str]], out: Layout) -> None:
    if not rows:
        return
    out.title(title)
    out.table(("", ""), ((Text(one_line(label), style="dim"), one_line(words)) for label, words in rows))


def _stamp(seen: StampSeen | None, out: Layout) -> None:
    if seen is None:
        return
    stamp = seen.stamp
    if stamp is None:
        _pairs("Stamp", (("problem", str(seen.problem)),), out)
        return
    ranges = (f"{name} in {bounds.low}..{bounds.high}" for name, bounds in stamp.facts.ranges.items())
    baked = (f"{path} = {value}" for path, value in stamp.facts.constant_inputs.items())
    rows = (
        ("built by torch", stamp.torch or ""),
        ("compiler", stamp.compiler or ""),
        ("program", stamp.program[:16]),
        ("weights", f"{len(stamp.weights)} hashed: {seen.equal} as stamped, {len(seen.differing)} different"),
        ("ranges", ", ".join(ranges)),
        ("fixed at export", ", ".join(baked)),
        ("left out", ", ".join((*stamp.left_out, *([seen.unread] if seen.unread else ())))),
    )
    _pairs("Stamp", tuple(row for row in rows if row[1]), out)


def _archive(artifact: Artifact, out: Layout) -> None:
    rows = (
        ("kind", artifact.kind.value),
        ("size", f"{artifact.size:,} bytes ({size(artifact.size)}) in {plural(len(artifact.members), 'member')}"),
        ("sha256", artifact.sha256 or ""),
        ("archive", " ".join(word for word in (artifact.archive_format, artifact.archive_version) if word)),
        ("CRC not read", plural(len(artifact.unread_crc), "large member") if artifact.unread_crc else ""),
        ("exported programs", ", ".join(facts.name for facts in artifact.exported)),
        ("other contents", ", ".join(artifact.other_contents)),
        ("not understood", ", ".join(f"{name} {count}" for name, count in artifact.counts.items())),
        ("problem", artifact.problem or ""),
    )
    _pairs("Archive", tuple(row for row in rows if row[1]), out)


def _model(model: ModelEntry, out: Layout, *, chosen: bool) -> None:
    rows = [
        ("layout", model.layout),
        ("weights", model.weights_location),
        ("sources", f"{plural(len(model.kernel_sources), 'file')}" + ("" if model.wrapper_cpp else ", no wrapper.cpp")),
    ]
    for item in model.shared_objects:
        words = (item.format, item.machine, f"{item.bits} bit" if item.bits else None, size(item.size), item.problem)
        rows.append(("library", ", ".join(word for word in words if word)))
        rows += code_rows(item)
        rows.append(("compiled in", _features(item)))
    for metadata in model.metadata:
        text = metadata.problem or ", ".join(f"{key}={value}" for key, value in metadata.values.items())
        rows.append(("metadata", text))
    if model.extern_nodes:
        rows.append(("custom or extern", ", ".join(sorted({node.target for node in model.extern_nodes}))))
    if model.gpu_code:
        rows.append(("GPU code", plural(len(model.gpu_code), "file") + f" for {', '.join(model.gpu_targets) or '?'}"))
    title = f"Model {model.name}" + (" (this one is loaded)" if chosen else "")
    # Wrapper and kernel have a metadata file each, mostly with equal values.
    _pairs(title, tuple(row for row in dict.fromkeys(rows) if row[1]), out)


def _features(item: SharedObject) -> str:
    features = item.features
    parts = (
        ("input checks", features.input_checks),
        ("NaN asserts", features.nan_asserts),
        ("kernel profiling", features.kernel_profile),
        ("value printer", None if features.printer_level is None else features.printer_level > 0),
    )
    words = [f"{name} {'yes' if on else 'no'}" for name, on in parts if on is not None]
    return ", ".join(words)


def _inputs(contract: ModelContract, out: Layout) -> None:
    out.title(f"Inputs ({contract.source})")
    used = {True: "yes", False: "no", None: ""}
    rows = (
        (one_line(leaf.path), package_view.leaf_text(leaf), leaf.generated_name or "", used[leaf.used])
        for leaf in contract.leaves
    )
    out.table(("Leaf", "Expected", "In the code", "Used"), rows)
    for symbol in contract.symbols:
        text = f"{symbol.definition}; in {', '.join(symbol.appears_in)}" if symbol.appears_in else symbol.definition
        out.row(one_line(symbol.name), one_line(text))


def _constants(contract: ModelContract, out: Layout, detail: int) -> None:
    total = sum(constant.data_size or 0 for constant in contract.constants)
    rows = [(item.fqn, package_view.constant_text(item)) for item in contract.constants]
    _first(f"Constants ({len(rows)}, {size(total)})", rows, out, detail)


def _first(title: str, rows: Sequence[tuple[str, str]], out: Layout, detail: int) -> None:
    """All rows, or the first and how many more there are."""
    listed = rows if detail > 0 else rows[:_MOST_LISTED]
    _pairs(title, listed, out)
    if len(listed) < len(rows):
        out.more(f"{len(rows) - len(listed)} more")


# The page.
_NAMES_LISTED = 4
# Their document is a description; a healthy one is no shorter.
_DESCRIBING = ("inspect", "triton", "env")


def terminal_text(report: Report, *, stream: TextIO, environ: Mapping[str, str], detail: int = 0) -> str:
    """``report`` as ``stream`` can show it: colour, width and character set are the stream's."""
    return capture_for_stream(
        lambda console: render_terminal(report, console, detail=detail), stream=stream, environ=environ
    )


def plain_terminal_text(report: Report, *, width: int = 80, detail: int = 0) -> str:
    """``report`` without colour at a fixed width."""
    return capture_plain(lambda console: render_terminal(report, console, detail=detail), width=width)


def render_terminal(report: Report, console: Console, *, detail: int = 0) -> None:
    """Print ``report``. ``detail``: -1 the first screen only, 0 normal, 1 with the output of children, 2 all."""
    out = Layout(console)
    if detail <= 0 and report_view.is_unexamined(report):
        out.headline(headline(report))
        return
    if detail <= 0 and report_view.is_other_file(report):
        out.headline(headline(report))
        remedy = report.diagnoses[0].remedy
        out.row("What to do", one_line(remedy.text))
        if remedy.command:
            out.code(remedy.command)
        return
    _first_screen(report, out)
    if detail < 0:
        # Whether there is a script is what was asked.
        _repro(report, out)
        if report.verdict == "healthy":
            # The headline counts them.
            for finding in report.findings:
                if finding.severity is Severity.WARN:
                    out.row("Warning", one_line(finding_text(finding), 400))
        return
    calm = report.verdict == "healthy" and detail == 0 and report.command not in _DESCRIBING
    match report.command:
        case "inspect":
            show_package(report, out, detail)
        case "triton":
            from aotidoctor.reports.terminal.rare_sections import show_names, show_serving

            show_names(report, out)
            show_serving(report, out, detail=detail)
        case "compat" if report.compat is not None:
            from aotidoctor.reports.terminal.rare_sections import show_compat

            show_compat(report.compat, out)
        case "env":
            show_host(report.case.host, out, detail=1)
            show_settings(report.case.host.environment, out)
        case _:
            _case(report, out, calm=calm, detail=detail)
    _not_checked(report, out, calm=calm, detail=detail)
    _footer(report, out, calm=calm, detail=detail)


def _first_screen(report: Report, out: Layout) -> None:
    out.headline(headline(report))
    if report_view.has_artifact(report):
        out.paragraph(report_view.artifact_text(report), style="dim")
    if report.log is not None and run_view.is_log(report):
        out.paragraph(run_view.log_text(report.log), style="dim")
    if note := report_view.partial_note(report):
        out.line(Text(f" {note}", style=TONES["partial"]))
    rows = report_view.first_rows(report)
    if rows:
        out.blank()
    for row in rows:
        if row.is_code:
            out.code(row.text)
        else:
            out.row(row.label, row.text)


def _case(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    if len(report.diagnoses) >= 2:
        out.title("Also possible")
        for diagnosis in report.diagnoses[1:]:
            about = f" ({one_line(diagnosis.subject)})" if diagnosis.subject else ""
            out.row(f"{diagnosis.rank}.", f"{diagnosis.cause}{about}: {report_view.how_sure(diagnosis)}")
    if report.plan:
        out.title("Plan")
        for number, step in enumerate(report.plan, 1):
            out.pair(Text(f" {number:>2}."), Text(one_line(step, 400)))
    if report.localization is not None:
        # What only a run finds: outputs beside the reference's, and the place of the failure.
        from aotidoctor.reports.terminal.rare_sections import show_comparison, show_place, show_stages

        show_stages(report, out)
        show_comparison(report, out)
        if not calm or report.command == "localize":
            show_place(report.localization, out, detail=detail)
    rows = run_view.probe_rows(report)
    if rows:
        out.title(f"{run_view.PROBES_TITLE}: {run_view.probes_verdict(report)}")
        out.table(run_view.PROBE_HEADINGS, rows)
    if report.log is not None:
        from aotidoctor.reports.terminal.terminal_layout import show_log

        show_log(report.log, out, detail=detail)
    _evidence(report, out, calm=calm, detail=detail)
    if not calm:
        show_runs(report, out, detail)
        show_contract(report, out, detail)
        if not run_view.is_log(report):
            # A log may come from another machine.
            show_host(report.case.host, out, detail=detail)
    else:
        _calm(report, out)
    if report.internal_error is not None:
        out.title("Traceback of aotidoctor")
        out.block(report.internal_error)


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
        if NOT_CONFINED in report.extra:
            out.row("Confined", f"all but {one_line(report.extra[NOT_CONFINED])}")


def _evidence(report: Report, out: Layout, *, calm: bool, detail: int) -> None:
    listed = [item for item in report.findings if detail > 0 or item.severity.rank > 0]
    hidden = len(report.findings) - len(listed)
    if not listed:
        return
    out.title("Evidence")
    for item in listed:
        source = report_view.source_text(item.source) if detail > 0 else report_view.short_source(item.source)
        subject = one_line(item.subject or "")
        # Each of the two may be the other without its folders.
        names = [
            one
            for one in (subject, source)
            if one and not any(f"/{other}".endswith(f"/{one}") for other in (subject, source) if other != one)
        ]
        where = " · ".join(dict.fromkeys(names))
        severity = (f"{item.severity.value:<6}", STYLES[item.severity.value])
        out.pair(Text.assemble(f" {item.id:<4}", severity, f"{item.code} {item.kind}"), Text(where, style="dim"))
        message = "" if detail <= 0 and report_view.adds_nothing(item) else item.message
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
            grouped.setdefault(one_line(item.reason), []).append(name)
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
    return list_names(names, len(names) if detail > 0 else _NAMES_LISTED)


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
        # The coarser signature, and which rule gave which part of both.
        parts = detail > 1
        out.line(Text(f" Family    {one_line(report.fingerprint.family)}", style="dim"))
        for part in report.fingerprint.parts if parts else ():
            of = "family and exact" if part.granularity == "family" else "exact"
            source = f", {part.source}" if part.source else ""
            out.line(Text(f"   {part.rule}: {one_line(part.text)} ({of}{source})", style="dim"))
    _repro(report, out)
    for label, named in report_view.plugin_rows(report):
        out.line(Text(f" {label}: {named}", style="dim"))
    if report.diagnoses and report.command != "env":
        out.line(Text(f" More: aotidoctor explain {report.diagnoses[0].cause}", style="dim"))
    out.code(report_view.command_text(report.argv), label=" Again: ")
    out.line(made)
