"""What is in a package and what a host offers, for a terminal: the bodies of ``inspect`` and ``env``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from aotidoctor.model.artifact import Artifact, ModelEntry, SharedObject
from aotidoctor.model.contract import Contract
from aotidoctor.model.host import Host
from aotidoctor.model.phrases import plural
from aotidoctor.model.report import Report
from aotidoctor.reports import contract_view, host_view
from aotidoctor.reports.debug_settings import SETTINGS
from aotidoctor.reports.terminal.layout import Layout
from aotidoctor.reports.text import one_line, size

if TYPE_CHECKING:
    from aotidoctor.model.stamp import StampSeen

_SHOWN = 20


def package(report: Report, out: Layout, detail: int) -> None:
    """All of ``inspect``: archive, models, contract, needs."""
    artifact, contract = report.case.artifact, report.case.contract
    _findings(report, out)
    _archive(artifact, out)
    _stamp(report.case.stamp, out)
    loaded = report.case.model.name if report.case.model is not None else None
    for model in artifact.models:
        _model(model, out, chosen=len(artifact.models) > 1 and model.name == loaded)
    if contract is None:
        out.title("Contract")
        out.paragraph("not readable from this file without running it")
        return
    _inputs(contract, out)
    _pairs("Outputs", [(item.path, contract_view.output_text(item)) for item in contract.outputs], out)
    _constants(contract, out, detail)
    _kernels(contract, out, detail)
    _pairs("Host requirements", contract_view.needs_rows(contract), out)
    _notes(contract, out)


def host(found: Host, out: Layout, *, detail: int) -> None:
    """What this machine offers; ``detail`` 0 keeps to what decides most cases."""
    _pairs("Host", host_view.rows(found, whole=detail > 0), out)
    if detail > 0:
        _pairs("Environment", tuple(found.environment.items()), out)


def settings(environment: Mapping[str, str], out: Layout) -> None:
    """Which debug settings act when, and which are set."""
    out.title("Debug settings")
    named = ((f"{item.name}={environment[item.name]}" if item.name in environment else item.name) for item in SETTINGS)
    rows = ((name, item.acts, item.what) for name, item in zip(named, SETTINGS, strict=True))
    out.table(("Setting", "Acts", "What it does"), rows)


def _pairs(title: str, rows: Sequence[tuple[str, str]], out: Layout) -> None:
    if not rows:
        return
    out.title(title)
    out.table(("", ""), ((Text(one_line(label, 60), style="dim"), one_line(words)) for label, words in rows))


def _findings(report: Report, out: Layout) -> None:
    if not report.findings:
        return
    out.title("Findings")
    for item in report.findings:
        told = item.message or ", ".join(
            word for word in (item.observed, item.expected and f"expected {item.expected}") if word
        )
        out.row(item.severity.value, f"{item.code} {item.kind}: {one_line(told)}")


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
        rows.append(("library", _shared_object(item)))
        rows.append(("needs", ", ".join(item.needed)))
        rows.append(("compiled in", _features(item)))
    for metadata in model.metadata:
        told = metadata.problem or ", ".join(f"{key}={value}" for key, value in metadata.values.items())
        rows.append(("metadata", told))
    if model.extern_nodes:
        rows.append(("custom or extern", ", ".join(sorted({node.target for node in model.extern_nodes}))))
    if model.gpu_code:
        rows.append(("GPU code", plural(len(model.gpu_code), "file") + f" for {', '.join(model.gpu_targets) or '?'}"))
    title = f"Model {model.name}" + (" (this one is loaded)" if chosen else "")
    # Wrapper and kernel have a metadata file each, mostly with equal values.
    _pairs(title, tuple(row for row in dict.fromkeys(rows) if row[1]), out)


def _shared_object(item: SharedObject) -> str:
    words = (item.format, item.machine, f"{item.bits} bit" if item.bits else None, size(item.size), item.problem)
    return ", ".join(word for word in words if word)


def _features(item: SharedObject) -> str:
    features = item.features
    told = (
        ("input checks", features.input_checks),
        ("NaN asserts", features.nan_asserts),
        ("kernel profiling", features.kernel_profile),
        ("value printer", None if features.printer_level is None else features.printer_level > 0),
    )
    words = [f"{name} {'yes' if on else 'no'}" for name, on in told if on is not None]
    return ", ".join(words)


def _inputs(contract: Contract, out: Layout) -> None:
    out.title(f"Inputs ({contract.source})")
    used = {True: "yes", False: "no", None: ""}
    rows = (
        (one_line(leaf.path, 80), contract_view.leaf_text(leaf), leaf.generated_name or "", used[leaf.used])
        for leaf in contract.leaves
    )
    out.table(("Leaf", "Expected", "In the code", "Used"), rows)
    for symbol in contract.symbols:
        shown = f"{symbol.definition}; in {', '.join(symbol.appears_in)}" if symbol.appears_in else symbol.definition
        out.row(one_line(symbol.name, 20), one_line(shown))


def _constants(contract: Contract, out: Layout, detail: int) -> None:
    total = sum(constant.data_size or 0 for constant in contract.constants)
    rows = [(item.fqn, contract_view.constant_text(item)) for item in contract.constants]
    _first(f"Constants ({len(rows)}, {size(total)})", rows, out, detail)


def _kernels(contract: Contract, out: Layout, detail: int) -> None:
    numbered = enumerate(contract.kernels, 1)
    rows = [(f"{number}. {item.name}", contract_view.kernel_text(item)) for number, item in numbered]
    _first(f"Calls, in order ({len(rows)})", rows, out, detail)


def _first(title: str, rows: Sequence[tuple[str, str]], out: Layout, detail: int) -> None:
    """All rows, or the first and how many more there are."""
    shown = rows if detail > 0 else rows[:_SHOWN]
    _pairs(title, shown, out)
    if len(shown) < len(rows):
        out.more(f"{len(rows) - len(shown)} more")


def _notes(contract: Contract, out: Layout) -> None:
    if contract.unknown_lines:
        out.line(Text(f" {plural(contract.unknown_lines, 'statement')} of the wrapper not understood", style="yellow"))
    for item in contract.unread:
        out.line(Text(f" {contract_view.unread_text(item)}", style="yellow"))
    for problem in contract.problems:
        out.line(Text(f" {one_line(problem)}", style="yellow"))
