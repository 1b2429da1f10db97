"""Open two reports, bundles, packages or hosts, compare them, and rank the differences (``aotidoctor diff``).

Nothing is executed or unpickled: reports and bundles are read with the bounds of ``analyze``, packages as ``inspect``
reads them. The playbooks say which differences matter.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.commands.analyze.analyze import read_sent_file, rebuild_case
from aotidoctor.commands.bundle.bundle_members import MANIFEST
from aotidoctor.commands.diff.document_values import DifferenceTally, DocumentNode
from aotidoctor.commands.diff.host_differences import compare_fit, compare_hosts, compare_outcomes
from aotidoctor.commands.diff.package_differences import compare_artifacts, compare_calls, compare_contracts
from aotidoctor.diagnosis.playbooks import PlaybookError, find_playbook
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.fleet import LEVELS, ComparedSide, DocumentComparison, DocumentDifference
from aotidoctor.model.record import JsonValue, as_object, objects, record, to_json
from aotidoctor.model.report import Playbook
from aotidoctor.readers.host.profiles import is_profile
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_archive import ZipEntry, read_zip_directory
from aotidoctor.triage.missing_file import no_such_file

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Report


# From an argument to a document.
HERE = "here"
"""The name of this host, unless there is a file of that name."""

PARTS = ("host", "package", "inputs", "outcome")
_JSON_LOOKED_AT = 64
# The file that `run --output` writes.
_SAVED = "report.json"
# The bundle's member that lists the members of its package with their CRCs.
_MEMBERS = "package/members.json"
_NOTHING = frozenset(("text", "other", "empty", "missing", "unreadable", "directory", "lfs-pointer"))
_EXPECTED = "expected a report, a bundle, a package, or `here`"
_WEIGHTS = re.compile(r"(?:^|/)data/(?:weights|constants)/(?P<name>(?s:.+))$|_(?P<blob>weights\.blob)$")


@record
class ComparedSource:
    """One side of a comparison.

    ``case`` is that of a package or a bundle; ``weights`` are checksums (CRC-32) of files of weights.
    """

    name: str
    kind: str
    node: DocumentNode
    parts: tuple[str, ...]
    case: Case | None = None
    weights: Mapping[str, int] = field(default_factory=dict)


def open_source(name: str, environ: Mapping[str, str]) -> ComparedSource:
    """Read the file ``name``, or this host.

    Raises:
        CannotExamineError: there is nothing readable there.
    """
    if (saved := Path(name, _SAVED)).is_file():
        return _open_sent_file(str(saved), "report")
    here = name == HERE and not Path(name).exists()
    sort, entries = ("host", ()) if here else _sniff(name)
    saved_host = sort == "report" and is_profile(name)
    if sort in ("report", "bundle") and not saved_host:
        return _open_sent_file(name, sort)
    # Imported only for hosts and packages.
    from aotidoctor.commands import diagnose_package
    from aotidoctor.model.case import Options

    if here or saved_host:
        host = diagnose_package.env(environ=environ, profile=name if saved_host else None)
        return _make_source(name, "host", host, ("host",))
    report = diagnose_package.inspect(name, Options(), environ=environ)
    kind = report.case.artifact.kind
    if kind.value in _NOTHING:
        raise CannotExamineError(f"{name}: observed a file of kind {kind.value}, {_EXPECTED}")
    weights = {item[0]: item[1] for entry in entries if (item := _weight(entry.name, entry.crc)) is not None}
    return _make_source(name, "package", report, ("package",), weights=weights)


def _sniff(name: str) -> tuple[str, tuple[ZipEntry, ...]]:
    """The kind of a file, and its entries if it is an archive."""
    if Path(name).is_dir():
        return "package", ()
    try:
        with opened_blob(name) as (blob, mode):
            if not stat.S_ISREG(mode):
                raise CannotExamineError(f"{name}: observed no regular file, {_EXPECTED}")
            directory = read_zip_directory(blob)
            if directory is None:
                head = blob.read_at(0, _JSON_LOOKED_AT).lstrip(b"\xef\xbb\xbf \t\r\n")
                return ("report" if head.startswith((b"{", b"[")) else "package"), ()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CannotExamineError(f"{no_such_file(name)} ({_EXPECTED})") from error
    except OSError as error:
        raise CannotExamineError(f"{name}: observed {error.strerror or error}, {_EXPECTED}") from error
    bundle = any(entry.name == MANIFEST for entry in directory.entries)
    return ("bundle" if bundle else "package"), tuple(directory.entries)


def _open_sent_file(name: str, kind: str) -> ComparedSource:
    sent = read_sent_file(name)
    node = DocumentNode(value=sent.report, file=name)
    # Refuse NaN and Infinity, which are no JSON; without recursion, however deep the document is.
    waiting: list[tuple[JsonValue, str]] = [(node.value, "$")]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise CannotExamineError(f"{node.file}: at {place[:200]}: observed {value}, expected strict JSON")
        if isinstance(value, dict):
            waiting += [(item, f"{place}.{key}") for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(item, f"{place}[{index}]") for index, item in enumerate(value)]
    missing = {
        "host": node.at("host").text("system") in (None, ""),
        "package": node.at("artifact").missing,
        "inputs": node.at("inputs").missing,
    }
    parts = tuple(part for part in PARTS if not missing.get(part))
    if node.text("command") == "env":
        return ComparedSource(name=name, kind="host", node=node, parts=("host",))
    if node.text("command") == "inspect":
        return ComparedSource(name=name, kind="package", node=node, parts=("package",))
    listed = sent.document(_MEMBERS) or {}
    weights = {
        item[0]: item[1]
        for line in objects(listed.get("members"))
        if (item := _weight(str(line.get("name")), _crc(line.get("crc32")))) is not None
    }
    case, whole = rebuild_case(sent) if sent.is_bundle else (None, False)
    return ComparedSource(name=name, kind=kind, node=node, parts=parts, case=case if whole else None, weights=weights)


def _weight(member: str, crc: int | None) -> tuple[str, int] | None:
    found = _WEIGHTS.search(member)
    if found is None or crc is None or member.endswith(".json"):
        return None
    return found["name"] or found["blob"], crc


def _crc(value: JsonValue) -> int | None:
    try:
        return int(value, 16) if isinstance(value, str) else None
    except ValueError:
        return None


def _make_source(
    name: str, kind: str, report: Report, parts: tuple[str, ...], *, weights: Mapping[str, int] | None = None
) -> ComparedSource:
    from aotidoctor.reports.json.json_report import report_document

    node = DocumentNode(value=as_object(to_json(report_document(report))), file=name)
    case = report.case if kind == "package" else None
    return ComparedSource(name=name, kind=kind, node=node, parts=parts, case=case, weights=weights or {})


# Part by part, then ranked. Rank of differences that no playbook names: after all causes.
_LAST = 10_000


def compare_files(a: str, b: str, environ: Mapping[str, str]) -> DocumentComparison:
    """Compare two reports, bundles, packages or hosts, in any mix that has something in common.

    Raises:
        CannotExamineError: one cannot be read, or they have nothing in common.
    """
    return compare_sources(open_source(a, environ), open_source(b, environ))


def compare_sources(a: ComparedSource, b: ComparedSource) -> DocumentComparison:
    """Compare two sides, and rank their differences."""
    tally = DifferenceTally()
    common = [part for part in a.parts if part in b.parts]
    # If one is a package and the other a host: does the package fit there?
    fits = [
        (package.case, host.node, package is a)
        for package, host in ((a, b), (b, a))
        if package.case is not None and host.kind == "host"
    ]
    for case, host, first in fits[:1]:
        compare_fit(tally, case, host, package_is_a=first)
    if not common and not fits:
        parts = " and ".join(f"{side.name} describes {', '.join(side.parts) or 'nothing'}" for side in (a, b))
        raise CannotExamineError(f"observed that {parts}, expected a part that both describe")
    if "package" in common:
        _packages(tally, a, b)
    if "host" in common:
        compare_hosts(tally, a.node.at("host"), b.node.at("host"), _needed_isa(a.node) | _needed_isa(b.node))
    if "inputs" in common:
        compare_calls(tally, a.node.at("inputs"), b.node.at("inputs"))
    if "outcome" in common:
        compare_outcomes(tally, a.node, b.node)
    sides = (_side("A", a), _side("B", b))
    return DocumentComparison(
        a=sides[0],
        b=sides[1],
        differences=_rank_differences(tally.differences, sides, (a.node, b.node)),
        equal={area: count for area, count in tally.equal.items() if count},
        left_out={what: count for what, count in tally.left_out.items() if count},
        unknown=tuple(tally.unknown),
    )


def _packages(tally: DifferenceTally, a: ComparedSource, b: ComparedSource) -> None:
    same = compare_artifacts(tally, a.node.at("artifact"), b.node.at("artifact"), (a.weights, b.weights))
    contracts = (a.node.at("contract"), b.node.at("contract"))
    if same:
        return
    if contracts[0].missing or contracts[1].missing:
        tally.compare("kind", "contract", *("there" if not one.missing else "none" for one in contracts))
    else:
        compare_contracts(tally, *contracts)


def _needed_isa(node: DocumentNode) -> frozenset[str]:
    return frozenset(node.at("contract").at("needs").texts("isa"))


def _side(label: str, source: ComparedSource) -> ComparedSide:
    node = source.node
    judged = "outcome" in source.parts
    return ComparedSide(
        label=label,
        name=source.name,
        kind=source.kind,
        parts=source.parts,
        verdict=node.text("verdict") if judged else None,
        causes=tuple(item.text("cause") or "?" for item in node.nodes("diagnoses")) if judged else (),
        version=node.at("tool").text("version") or "",
        made=node.text("started") or "",
    )


def _rank_differences(
    differences: list[DocumentDifference],
    sides: tuple[ComparedSide, ComparedSide],
    nodes: tuple[DocumentNode, DocumentNode],
) -> tuple[DocumentDifference, ...]:
    """Rank causes diagnosed on one side only first, then by level, then in the order of the playbooks."""
    books = {slug: _playbook(slug) for slug in {item.playbook for item in differences if item.playbook}}
    ranked = [_with_codes(item, books.get(item.playbook or ""), sides, nodes) for item in differences]

    def place(item: DocumentDifference) -> tuple[int, int, int]:
        book = books.get(item.playbook or "")
        causes = next((side.causes for side in sides if side.label == item.diagnosed), ())
        order = causes.index(item.playbook) if item.playbook in causes else len(causes)
        return (
            order if item.diagnosed else _LAST,
            LEVELS.index(item.level),
            book.weight if book is not None else _LAST,
        )

    return tuple(replace(item, rank=number) for number, item in enumerate(sorted(ranked, key=place), 1))


def _playbook(slug: str) -> Playbook | None:
    try:
        return find_playbook(slug)
    except PlaybookError:
        return None


def _with_codes(
    item: DocumentDifference,
    book: Playbook | None,
    sides: tuple[ComparedSide, ComparedSide],
    nodes: tuple[DocumentNode, DocumentNode],
) -> DocumentDifference:
    """Add the codes of the playbook's evidence, and the side if its cause was diagnosed on one side only."""
    if book is None:
        return item
    codes = item.codes or tuple(
        dict.fromkeys(one.code for one in (*book.any_of, *book.all_of) if not one.code.endswith("*"))
    )
    sick = [side for side in sides if book.cause in side.causes]
    if len(sick) != 1:
        return replace(item, codes=codes)
    node = nodes[sides.index(sick[0])]
    evidence = next((one.texts("evidence") for one in node.nodes("diagnoses") if one.text("cause") == book.cause), ())
    return replace(item, codes=codes, diagnosed=sick[0].label, evidence=evidence)
