"""The fleet of ``aotidoctor demo --fleet``: 60 packages made of the demo's own, two nights, four causes.

Last night eight were called with transposed features, and the upload of three was cut off. Tonight one of those is
whole again, six are called from NumPy with int32 ids, and four were compiled with their weights beside the code. All
60 differ in their bytes. Judged by ``batch --command check``, which executes none of them.
"""

from __future__ import annotations

import csv
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.commands import demo
from aotidoctor.commands.batch import Wish, batch
from aotidoctor.commands.fleet import Wanted, judge, rendered
from aotidoctor.fleet.pool import processors
from aotidoctor.model.event import Event, EventKind, OnEvent
from aotidoctor.model.record import record
from aotidoctor.reports.write import write_file

if TYPE_CHECKING:
    from aotidoctor.fleet.summary.summarize import Fleet
    from aotidoctor.model.fleet import FleetSummary
    from aotidoctor.reports.redact import Redactor

ITEMS = 60
LAST_NIGHT, TONIGHT, PAGE = "last-night", "tonight", "fleet.html"
# What fails tonight: cause, number of items, change since last night.
EXPECTED = (
    ("input-stride", 8, "known"),
    ("input-dtype", 6, "new"),
    ("weights-not-loaded", 4, "new"),
    ("artifact-corrupt", 2, "changed"),
)
_STRIDES, _CUT_OFF, _INT32, _NO_WEIGHTS = range(8), range(8, 11), range(20, 26), range(40, 44)
_REPAIRED = 10


@record
class Night:
    """One night: which package and inputs of the demo each item has, and which packages are cut off."""

    name: str
    packages: Sequence[str]
    inputs: Sequence[str]
    cut_off: Sequence[int]


def nights() -> tuple[Night, Night]:
    """Last night and tonight."""
    before, after = ["good.pt"] * ITEMS, ["good.pt"] * ITEMS
    packages = ["model.pt2"] * ITEMS
    for at in _STRIDES:
        before[at] = after[at] = "transposed.pt"
    for at in _INT32:
        after[at] = "int32_ids.pt"
    replaced = ["separate_weights.pt2" if at in _NO_WEIGHTS else name for at, name in enumerate(packages)]
    return (
        Night(name=LAST_NIGHT, packages=packages, inputs=before, cut_off=_CUT_OFF),
        Night(name=TONIGHT, packages=replaced, inputs=after, cut_off=[at for at in _CUT_OFF if at != _REPAIRED]),
    )


def labels(at: int, night: Night) -> Mapping[str, str]:
    """What the manifest says of an item: who calls it, and what exported it."""
    client = "etl" if at in _STRIDES else "numpy" if night.inputs[at] == "int32_ids.pt" else "torch"
    exporter = "2.1" if night.packages[at] == "separate_weights.pt2" else "2.0"
    return {"client": client, "exporter": exporter, "team": "abc"[at % 3]}


def folder(environ: Mapping[str, str]) -> Path:
    """Where the fleet is. Raises CannotExamineError without torch."""
    files = demo.folder(environ)
    return files.with_name(f"{files.name}-fleet")


def make(environ: Mapping[str, str], on_event: OnEvent, redactor: Redactor) -> Fleet:
    """Make the fleet anew, judge it twice, and write the page; the summary of tonight.

    Raises CannotExamineError where the demo's model cannot be compiled, or pandas is missing.
    """
    source = demo.prepare(environ, on_event)
    place = folder(environ)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    (place / "models").mkdir()
    for night in nights():
        name = f"check {ITEMS} packages, {night.name.replace('-', ' ')}"
        on_event(Event(kind=EventKind.PROBE_START, name=name))
        done = _judge(place, night, _lay_out(source, place, night), environ, redactor)
        told = ", ".join(f"{verdict} {count}" for verdict, count in done.verdicts.items())
        on_event(Event(kind=EventKind.PROBE_END, name=name, seconds=done.seconds, verdict=told, ok=True))
    argv = ("aotidoctor", "fleet", TONIGHT, "--baseline", LAST_NIGHT)
    wanted = Wanted(folders=(str(place / TONIGHT),), baseline=str(place / LAST_NIGHT), argv=argv)
    found = judge(wanted, redactor)
    write_file(place / PAGE, "".join(rendered(found, "html")))
    return found


def _lay_out(source: Path, place: Path, night: Night) -> Path:
    """Packages and inputs of a night in their places, and the manifest of it."""
    rows = []
    for at in range(ITEMS):
        package, inputs = place / "models" / f"ranker-{at:02}.pt2", place / "models" / f"ranker-{at:02}.inputs.pt"
        _copy(source / night.packages[at], package, at)
        if at in night.cut_off:
            os.truncate(package, package.stat().st_size * 3 // 5)
        shutil.copyfile(source / night.inputs[at], inputs)
        told = ";".join(f"{name}={value}" for name, value in labels(at, night).items())
        rows.append((str(package), str(inputs), told))
    manifest = place / f"{night.name}.csv"
    with manifest.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("package", "inputs", "labels"), *rows])
    return manifest


def _copy(source: Path, target: Path, at: int) -> None:
    """A package that differs from the others, but not in what it computes: one more entry of metadata."""
    shutil.copyfile(source, target)
    with zipfile.ZipFile(target, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        archive.writestr(f"{root}/extra/fleet", f"ranker-{at:02}")


def _judge(place: Path, night: Night, manifest: Path, environ: Mapping[str, str], redactor: Redactor) -> FleetSummary:
    wish = Wish(words=(str(manifest),), folder=str(place / night.name), jobs=processors())
    return batch(wish, argv=("aotidoctor", "batch", manifest.name), environ=environ, redact=redactor.text)


def is_as_expected(found: Fleet) -> bool:
    """Whether the four causes were found, each in as many items as were made so, and only two of them new."""
    seen = sorted((cluster.cause or "", cluster.count, cluster.change) for cluster in found.summary.clusters)
    return seen == sorted(EXPECTED)
