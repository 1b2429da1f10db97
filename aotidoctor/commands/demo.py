"""Build and triage packages that are broken on purpose (``aotidoctor demo``).

The demo packages are built once in a child process and stored in the user's cache folder, under a name that depends on
the recipe and the versions used, so that the second demo starts at once.

``--cuda``: an embedding of 100 rows, compiled for an H100 with a dynamic batch. It is shipped, since compiling for CUDA
takes a toolkit; only the text of its wrapper is executed, by the emulation.

``--fleet``: 60 packages, two nights, four causes. Last night eight were called with transposed features, and the upload
of three was cut off. Tonight one of those is whole again, six are called from NumPy with int32 ids, and four were
compiled with their weights beside the code. All 60 differ in their bytes. Judged by ``batch --command check``, which
executes none of them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
import os
import platform
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.commands import diagnose_package
from aotidoctor.commands.batch import BatchRequest, batch
from aotidoctor.commands.fleet import FleetSummaryRequest, render_fleet, summarize_results
from aotidoctor.files import write_file
from aotidoctor.fleet.pool import processors
from aotidoctor.model import load_toml
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import list_names
from aotidoctor.model.jobs import DemoBuild
from aotidoctor.model.record import record
from aotidoctor.model.report import Event, EventKind, OnEvent, Report
from aotidoctor.model.run import Outcome, Request
from aotidoctor.reports.page.run_page import run_ending
from aotidoctor.runner.portable import make_runner
from aotidoctor.runner.runner import Runner
from aotidoctor.triage.compile_cache import close_to_others, is_private, make_private

if TYPE_CHECKING:
    from aotidoctor.fleet.summary.summarize import FleetOverview
    from aotidoctor.reports.redact.redactor import Redactor


_RECIPE = Path(__file__).resolve().parent.parent / "worker" / "demo_build.py"
_BUILD_LIMIT = 900.0
PARTS = ("model", "separate_weights")


@record
class DemoCase:
    """One broken case: files in the demo's folder, the story of its user, and the cause that must be found."""

    title: str
    story: str
    package: str
    inputs: str
    cause: str


*DEMO_CASES, CUDA_CASE = (
    DemoCase(**table) for table in load_toml(Path(__file__).with_name("demo.toml").read_text(encoding="utf-8"))["case"]
)
"""The last one is for ``--cuda``: a package compiled for CUDA, and one id beyond its table."""


# Modules that a demo needs by the extra that installs them.
_NEEDS = {"torch": "torch", "emulate": "triton", "fleet": "pandas"}


def require(*extras: str) -> None:
    """Raise CannotExamineError where something is missing, with all of it and the command to install it."""
    missing = [extra for extra in extras if find_spec(_NEEDS[extra]) is None]
    if missing:
        names = list_names([_NEEDS[extra] for extra in missing], len(missing))
        beside = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
        pip = "pip" if beside else f"{shlex.quote(sys.executable)} -m pip"
        raise CannotExamineError(f"this demo needs {names}: {pip} install 'aotidoctor[{','.join(missing)}]'")


def demo_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the demo's files. Raises CannotExamineError without torch."""
    require("torch")
    # Imported only here: the import is slow.
    from importlib import metadata

    torch = metadata.version("torch")
    # The name depends on the recipe and on everything that its result depends on.
    recipe = (_RECIPE, *sorted(_RECIPE.with_name("demo_files").iterdir()))
    texts = (path.read_text(encoding="utf-8") for path in recipe)
    made_of = (*texts, torch, platform.python_version(), platform.machine())
    return cache_folder(environ) / hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]


def prepare_demo(environ: Mapping[str, str], on_event: OnEvent) -> Path:
    """The folder with the demo's files, which are built if needed. Raises CannotExamineError if that fails."""
    place = demo_folder(environ)
    root = cache_folder(environ).parent
    if place.is_dir() and not is_private(place, root):
        # It is executed, so it is made anew if others may have changed it.
        shutil.rmtree(place, ignore_errors=True)
    if not place.is_dir():
        compiler = environ.get("CXX", "g++")
        if shutil.which(compiler, path=environ.get("PATH")) is None:
            raise CannotExamineError(f"the demo compiles a model and needs a C++ compiler, {compiler}: apt install g++")
        make_private(place.parent, root)
        workshop = Path(tempfile.mkdtemp(prefix=".build-", dir=place.parent))
        try:
            _build(workshop, environ, on_event)
            if not place.is_dir() or not is_private(place, root):
                close_to_others(workshop / "files")
                (workshop / "files").rename(place)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
    return place


def demo_argv(case: DemoCase) -> tuple[str, ...]:
    """The command that repeats the triage of a case, inside the demo's folder."""
    return ("aotidoctor", "run", case.package, "--inputs", case.inputs, "--reference", "exported.pt2")


def warm_runner(environ: Mapping[str, str]) -> Runner:
    """Start a runner for all cases, so that torch is imported once."""
    return make_runner(environ=environ, preload=diagnose_package.REFERENCE_MODULES)


def triage_demo_case(case: DemoCase, runner: Runner, environ: Mapping[str, str], on_event: OnEvent) -> Report:
    """Examine a case as ``aotidoctor run`` does; build its files if needed."""
    place = prepare_demo(environ, on_event)
    options = Options(reference=str(place / "exported.pt2"))
    package, inputs = str(place / case.package), str(place / case.inputs)
    return diagnose_package.diagnose(
        package, inputs, options, argv=demo_argv(case), environ=environ, on_event=on_event, runner=runner
    )


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The folder for files of all demos."""
    base = environ.get("XDG_CACHE_HOME") or ""
    home = environ.get("HOME") or tempfile.gettempdir()
    return (Path(base) if base.startswith("/") else Path(home) / ".cache") / "aotidoctor" / "demo"


def _build(workshop: Path, environ: Mapping[str, str], on_event: OnEvent) -> None:
    (workshop / "files").mkdir()
    on_event(Event(kind=EventKind.PROBE_START, name="compile the model"))
    with make_runner(environ=environ) as runner:
        # In parallel: a compile keeps one core busy.
        requests = [
            Request(
                probe="demo_build",
                job="demo_build",
                payload=DemoBuild(folder=str(workshop / "files"), part=part),
                # Generated code and objects are deleted with the workshop.
                env={"TORCHINDUCTOR_CACHE_DIR": str(workshop / part)},
                fresh=True,
                timeout=_BUILD_LIMIT,
                purpose=f"compile the demo's {part}",
            )
            for part in PARTS
        ]
        started = [runner.start(request) for request in requests]
        outcomes = [item if isinstance(item, Outcome) else runner.finish(item) for item in started]
    failed = [outcome for outcome in outcomes if not outcome.succeeded]
    verdict = run_ending(failed[0]) if failed else "kept for the next demo"
    seconds = max(outcome.seconds for outcome in outcomes)
    on_event(Event(kind=EventKind.PROBE_END, name="compile the model", seconds=seconds, verdict=verdict, ok=not failed))
    if failed:
        error, last = failed[0].error, failed[0].stderr_tail.strip().splitlines()[-1:]
        reason = f"{error.type}: {error.message}" if error is not None else " ".join([run_ending(failed[0]), *last])
        raise CannotExamineError(f"the demo's model did not compile: {reason}")


# --cuda

CUDA_FILES = Path(__file__).resolve().parent / "demo_cuda.pt2.xz"
CUDA_ROWS = 100


def cuda_argv() -> tuple[str, ...]:
    """The command that repeats the triage of the CUDA case, inside the demo's folder."""
    return ("aotidoctor", "run", CUDA_CASE.package, "--inputs", CUDA_CASE.inputs, "--emulate", "always")


def cuda_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the CUDA case."""
    return cache_folder(environ) / "cuda"


def cuda_ids() -> list[list[int]]:
    """Ids that the table of the CUDA case has."""
    return [[(17 * row + 5 * column) % CUDA_ROWS for column in range(7)] for row in range(5)]


def prepare_cuda(environ: Mapping[str, str]) -> Path:
    """The folder of the CUDA case, with its package and inputs."""
    place, root = cuda_folder(environ), cache_folder(environ).parent
    if place.is_dir() and not is_private(place, root):
        shutil.rmtree(place, ignore_errors=True)
    make_private(place, root)
    _write_new(place / CUDA_CASE.package, lzma.decompress(CUDA_FILES.read_bytes()))
    ids = cuda_ids()
    ids[2][3] = CUDA_ROWS
    _write_new(place / CUDA_CASE.inputs, json.dumps({"args": [ids]}).encode())
    return place


def _write_new(path: Path, content: bytes) -> None:
    """Write a file, unless it has this content."""
    if not (path.is_file() and path.read_bytes() == content):
        write_file(path, content)


def triage_cuda(runner: Runner, environ: Mapping[str, str], on_event: OnEvent) -> Report:
    """Examine the CUDA case as ``aotidoctor run`` does. Raises CannotExamineError without Triton."""
    require("torch", "emulate")
    place = prepare_cuda(environ)
    package, inputs = str(place / CUDA_CASE.package), str(place / CUDA_CASE.inputs)
    options = Options(emulate="always")
    return diagnose_package.diagnose(
        package, inputs, options, argv=cuda_argv(), environ=environ, on_event=on_event, runner=runner
    )


# --fleet: 60 copies of the demo packages, judged on two nights.

FLEET_ITEMS = 60
LAST_NIGHT, TONIGHT, PAGE = "last-night", "tonight", "fleet.html"
# The failures of tonight: cause, number of items, change since last night.
FLEET_CAUSES = (
    ("input-stride", 8, "known"),
    ("input-dtype", 6, "new"),
    ("weights-not-loaded", 4, "new"),
    ("artifact-corrupt", 2, "changed"),
)
_STRIDES, _CUT_OFF, _INT32, _NO_WEIGHTS = range(8), range(8, 11), range(20, 26), range(40, 44)
_REPAIRED = 10


@record
class Night:
    """One night: package and inputs of each item, and the items whose packages are cut off."""

    name: str
    packages: Sequence[str]
    inputs: Sequence[str]
    cut_off: Sequence[int]


def both_nights() -> tuple[Night, Night]:
    """Last night and tonight."""
    before, after = ["good.pt"] * FLEET_ITEMS, ["good.pt"] * FLEET_ITEMS
    packages = ["model.pt2"] * FLEET_ITEMS
    for at in _STRIDES:
        before[at] = after[at] = "transposed.pt"
    for at in _INT32:
        after[at] = "int32_ids.pt"
    replaced = ["separate_weights.pt2" if at in _NO_WEIGHTS else name for at, name in enumerate(packages)]
    return (
        Night(name=LAST_NIGHT, packages=packages, inputs=before, cut_off=_CUT_OFF),
        Night(name=TONIGHT, packages=replaced, inputs=after, cut_off=[at for at in _CUT_OFF if at != _REPAIRED]),
    )


def item_labels(at: int, night: Night) -> Mapping[str, str]:
    """The labels of an item in the manifest: client, exporter and team."""
    client = "etl" if at in _STRIDES else "numpy" if night.inputs[at] == "int32_ids.pt" else "torch"
    exporter = "2.1" if night.packages[at] == "separate_weights.pt2" else "2.0"
    return {"client": client, "exporter": exporter, "team": "abc"[at % 3]}


def fleet_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the fleet. Raises CannotExamineError without torch."""
    files = demo_folder(environ)
    return files.with_name(f"{files.name}-fleet")


def make_fleet(environ: Mapping[str, str], on_event: OnEvent, redactor: Redactor) -> FleetOverview:
    """Make the fleet, judge it twice, and write the page; return the summary of tonight.

    Raises CannotExamineError if the demo's model cannot be compiled, or pandas is missing.
    """
    require("torch", "fleet")
    source = prepare_demo(environ, on_event)
    place = fleet_folder(environ)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    (place / "models").mkdir()
    for night in both_nights():
        name = f"check {FLEET_ITEMS} packages, {night.name.replace('-', ' ')}"
        on_event(Event(kind=EventKind.PROBE_START, name=name))
        manifest = _lay_out(source, place, night)
        request = BatchRequest(words=(str(manifest),), folder=str(place / night.name), jobs=processors())
        done = batch(request, argv=("aotidoctor", "batch", manifest.name), environ=environ, redact=redactor.text)
        verdicts = ", ".join(f"{verdict} {count}" for verdict, count in done.verdicts.items())
        on_event(Event(kind=EventKind.PROBE_END, name=name, seconds=done.seconds, verdict=verdicts, ok=True))
    argv = ("aotidoctor", "fleet", TONIGHT, "--baseline", LAST_NIGHT)
    summary = FleetSummaryRequest(folders=(str(place / TONIGHT),), baseline=str(place / LAST_NIGHT), argv=argv)
    found = summarize_results(summary, redactor)
    write_file(place / PAGE, "".join(render_fleet(found, "html")))
    return found


def _lay_out(source: Path, place: Path, night: Night) -> Path:
    """Write packages, inputs and manifest of a night; the path of the manifest."""
    rows = []
    for at in range(FLEET_ITEMS):
        package, inputs = place / "models" / f"ranker-{at:02}.pt2", place / "models" / f"ranker-{at:02}.inputs.pt"
        # One more entry of metadata, so that all packages differ, but compute the same.
        shutil.copyfile(source / night.packages[at], package)
        with zipfile.ZipFile(package, "a") as archive:
            root = archive.namelist()[0].partition("/")[0]
            archive.writestr(f"{root}/extra/fleet", f"ranker-{at:02}")
        if at in night.cut_off:
            os.truncate(package, package.stat().st_size * 3 // 5)
        shutil.copyfile(source / night.inputs[at], inputs)
        labels = ";".join(f"{name}={value}" for name, value in item_labels(at, night).items())
        rows.append((str(package), str(inputs), labels))
    manifest = place / f"{night.name}.csv"
    with manifest.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("package", "inputs", "labels"), *rows])
    return manifest


def is_as_expected(found: FleetOverview) -> bool:
    """Whether exactly the four causes were found, with the right numbers of items and changes."""
    clusters = [(cluster.cause or "", cluster.count, cluster.change) for cluster in found.summary.clusters]
    return sorted(clusters) == sorted(FLEET_CAUSES)
