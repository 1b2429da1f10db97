"""Writes a bundle and its map: both whole or not at all, and never over something else."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from aotidoctor.commands.bundle import MANIFEST
from aotidoctor.commands.bundle.make import Bundle, make_bundle
from aotidoctor.commands.bundle.map_file import read_map, write_map
from aotidoctor.commands.bundle.pieces import Material, Wanted
from aotidoctor.commands.bundle.produce import of_report
from aotidoctor.commands.bundle.zip_file import write_whole
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.zip_directory import read_directory
from aotidoctor.reports.redact import Identity


@record
class Target:
    """Where the bundle goes, and the map (None: beside the bundle)."""

    path: Path
    map_path: Path | None = None
    dry: bool = False

    @property
    def map_file(self) -> Path:
        """Where the map goes."""
        return self.map_path or self.path.with_name(self.path.name + ".map.json")


def check_target(target: Target, protected: Sequence[str | None]) -> None:
    """Raise UsageError for a target that would destroy something."""
    taken = {os.path.realpath(path) for path in protected if path}
    for path in (target.path, target.map_file):
        if os.path.realpath(path) in taken:
            raise UsageError(f"{path} is an input of this command and is not overwritten")
    if os.path.realpath(target.path) == os.path.realpath(target.map_file):
        raise UsageError("the map and the bundle are one file; the map must stay out of the bundle")
    if os.path.lexists(target.path) and not _is_bundle(target.path):
        raise UsageError(f"{target.path} exists and is not a bundle; it was not overwritten")


def deliver(material: Material, wanted: Wanted, target: Target, environ: Mapping[str, str], host_name: str) -> Bundle:
    """Make the bundle and write it, the map first.

    Raises:
        CannotExamineError: it leaks, or it cannot be written; then nothing is left behind.
        UsageError: the map is not ours to use.
    """
    identity = Identity.of(environ, host_name, wanted.words)
    placeholders = read_map(target.map_file) if wanted.redact else None
    bundle = make_bundle(material, wanted, identity, placeholders)
    if len(bundle.data) > wanted.largest:
        raise CannotExamineError(f"the bundle has {len(bundle.data)} bytes, more than --max-size {wanted.largest}")
    if target.dry:
        return bundle
    writing, new = target.map_file, not os.path.lexists(target.map_file)
    try:
        if wanted.redact:
            write_map(target.map_file, bundle.table)
        writing = target.path
        write_whole(target.path, bundle.data)
    except OSError as error:
        if wanted.redact and new:
            # It tells what is private, of a bundle that is not there.
            target.map_file.unlink(missing_ok=True)
        raise CannotExamineError(f"could not write {writing}: {error.strerror or error}") from error
    return bundle


def deliver_report(report: Report, path: Path, environ: Mapping[str, str], *, redact: bool) -> str:
    """``--report bundle:FILE``: the report that is at hand as a bundle; one line about it."""
    target = Target(path=path)
    check_target(target, (report.case.artifact.path, report.case.inputs_path))
    bundle = deliver(of_report(report), Wanted(redact=redact), target, environ, platform.node())
    kept = f"; the placeholders' map is {target.map_file}" if redact else ", not redacted"
    return f"wrote {path}: {len(bundle.members)} members, {len(bundle.data)} bytes{kept}"


def _is_bundle(path: Path) -> bool:
    try:
        with opened_blob(path) as (blob, _):
            directory = read_directory(blob)
    except OSError:
        return False
    return directory is not None and any(entry.name == MANIFEST for entry in directory.entries)
