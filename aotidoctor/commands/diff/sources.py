"""From an argument of ``aotidoctor diff`` to a document: report, bundle, package, host, or this host.

Nothing is executed or unpickled: reports and bundles are read with the bounds of ``analyze``, packages as ``inspect``
reads them.
"""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.commands.analyze.reading import Sent, read_sent
from aotidoctor.commands.bundle import MANIFEST
from aotidoctor.commands.diff.node import Node
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.json_types import JsonValue, as_object, objects
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_directory import Entry, read_directory

if TYPE_CHECKING:
    from aotidoctor.model.case import Case
    from aotidoctor.model.report import Report

HERE = "here"
"""What stands for this host where no file is called so."""

PARTS = ("host", "package", "inputs", "outcome")
_JSON_LOOKED_AT = 64
# What --output-dir writes.
_SAVED = "report.json"
# Where a bundle lists the members of its package with their CRCs.
_MEMBERS = "package/members.json"
_NOTHING = frozenset(("text", "other", "empty", "missing", "unreadable", "directory", "lfs-pointer"))
_EXPECTED = "expected a report, a bundle, a package, or `here`"
_WEIGHTS = re.compile(r"(?:^|/)data/(?:weights|constants)/(?P<name>(?s:.+))$|_(?P<blob>weights\.blob)$")


@record
class Source:
    """One side as it was read.

    ``case`` is that of a package or a bundle; ``weights`` are checksums of files of weights.
    """

    name: str
    kind: str
    node: Node
    parts: tuple[str, ...]
    case: Case | None = None
    weights: Mapping[str, int] = field(default_factory=dict)


def open_source(name: str, environ: Mapping[str, str]) -> Source:
    """Read what ``name`` stands for.

    Raises:
        CannotExamineError: there is nothing readable there.
    """
    if name == HERE and not Path(name).exists():
        from aotidoctor.commands import diagnose  # noqa: PLC0415 - two reports need no stages

        return _made(name, "host", diagnose.env(environ=environ), ("host",))
    if (saved := Path(name, _SAVED)).is_file():
        return _sent(str(saved), "report")
    sort, entries = _sniff(name)
    if sort in ("report", "bundle"):
        return _sent(name, sort)
    from aotidoctor.commands import diagnose  # noqa: PLC0415 - likewise
    from aotidoctor.model.case import Options  # noqa: PLC0415 - likewise

    report = diagnose.inspect(name, Options(), environ=environ)
    kind = report.case.artifact.kind
    if kind.value in _NOTHING:
        raise CannotExamineError(f"{name}: observed a file of kind {kind.value}, {_EXPECTED}")
    weights = {item[0]: item[1] for entry in entries if (item := _weight(entry.name, entry.crc)) is not None}
    return _made(name, "package", report, ("package",), weights=weights)


def _sniff(name: str) -> tuple[str, tuple[Entry, ...]]:
    """What a file is, and its entries if it is an archive."""
    if Path(name).is_dir():
        return "package", ()
    try:
        with opened_blob(name) as (blob, mode):
            if not stat.S_ISREG(mode):
                raise CannotExamineError(f"{name}: observed no regular file, {_EXPECTED}")
            directory = read_directory(blob)
            if directory is None:
                head = blob.read_at(0, _JSON_LOOKED_AT).lstrip(b"\xef\xbb\xbf \t\r\n")
                return ("report" if head.startswith((b"{", b"[")) else "package"), ()
    except OSError as error:
        raise CannotExamineError(f"{name}: observed {error.strerror or error}, {_EXPECTED}") from error
    bundle = any(entry.name == MANIFEST for entry in directory.entries)
    return ("bundle" if bundle else "package"), tuple(directory.entries)


def _sent(name: str, kind: str) -> Source:
    sent = read_sent(name)
    node = Node(value=sent.report, file=name)
    _finite(node)
    held = [part for part in PARTS if _tells(node, part)]
    if node.text("command") == "env":
        return Source(name=name, kind="host", node=node, parts=("host",))
    if node.text("command") == "inspect":
        return Source(name=name, kind="package", node=node, parts=("package",))
    listed = sent.document(_MEMBERS) or {}
    weights = {
        item[0]: item[1]
        for line in objects(listed.get("members"))
        if (item := _weight(str(line.get("name")), _crc(line.get("crc32")))) is not None
    }
    case = _rebuilt(sent) if sent.is_bundle else None
    return Source(name=name, kind=kind, node=node, parts=tuple(held), case=case, weights=weights)


def _rebuilt(sent: Sent) -> Case | None:
    """The case of a bundle; None where it does not hold all of it."""
    from aotidoctor.commands.analyze.rebuild import rebuild  # noqa: PLC0415 - two reports need none

    case, whole = rebuild(sent)
    return case if whole else None


def _tells(node: Node, part: str) -> bool:
    match part:
        case "package":
            return not node.at("artifact").missing
        case "inputs":
            return not node.at("inputs").missing
        case "host":
            return node.at("host").text("system") not in (None, "")
        case _:
            return True


def _finite(node: Node) -> None:
    """Refuse NaN and Infinity, which are no JSON; without recursion, however deep the document is."""
    waiting: list[tuple[JsonValue, str]] = [(node.value, "$")]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise CannotExamineError(f"{node.file}: at {place[:200]}: observed {value}, expected strict JSON")
        if isinstance(value, dict):
            waiting += [(item, f"{place}.{key}") for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(item, f"{place}[{index}]") for index, item in enumerate(value)]


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


def _made(
    name: str, kind: str, report: Report, parts: tuple[str, ...], *, weights: Mapping[str, int] | None = None
) -> Source:
    from aotidoctor.reports.json.render import clean, document  # noqa: PLC0415 - a stage that reports alone need

    node = Node(value=as_object(clean(document(report))), file=name)
    case = report.case if kind == "package" else None
    return Source(name=name, kind=kind, node=node, parts=parts, case=case, weights=weights or {})
