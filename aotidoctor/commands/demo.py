"""The patients of ``aotidoctor demo``: one small model, broken in four instructive ways.

The packages are built once in a child and kept in the user's cache folder under a name made from the recipe and the
versions that went into it, so that the second demo starts at once.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.commands import diagnose
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.event import Event, EventKind, OnEvent
from aotidoctor.model.jobs import DemoBuild
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.run import Outcome, Request
from aotidoctor.reports.run_view import run_ending
from aotidoctor.runner import Runner
from aotidoctor.triage.private_folders import close_to_others, is_private, make_private

_RECIPE = Path(__file__).resolve().parent.parent / "worker" / "demo_build.py"
_BUILD_LIMIT = 900.0
PARTS = ("model", "separate_weights")


@record
class Patient:
    """One broken case: files in the demo's folder, what a user would see, and the cause that must be found."""

    title: str
    story: str
    package: str
    inputs: str
    cause: str


PATIENTS = (
    Patient(
        title="The silent one",
        story="The features come from a transposed array. No error is raised; the numbers are wrong.",
        package="model.pt2",
        inputs="transposed.pt",
        cause="input-stride",
    ),
    Patient(
        title="The misleading one",
        story="The ids come from NumPy as int32. PyTorch blames an index that is in range.",
        package="model.pt2",
        inputs="int32_ids.pt",
        cause="input-dtype",
    ),
    Patient(
        title="The needle",
        story="One of the ids is beyond the table. PyTorch names a temporary of generated code.",
        package="model.pt2",
        inputs="bad_id.pt",
        cause="index-out-of-range",
    ),
    Patient(
        title="The crash",
        story="The package was compiled with its weights outside the code. It loads, then crashes without a message.",
        package="separate_weights.pt2",
        inputs="good.pt",
        cause="weights-not-loaded",
    ),
)


def folder(environ: Mapping[str, str]) -> Path:
    """Where the demo's files are, or will be. Raises CannotExamineError without torch."""
    return cache(environ) / _key()


def prepare(environ: Mapping[str, str], on_event: OnEvent) -> Path:
    """The folder with the demo's files, built first where needed. Raises CannotExamineError when it cannot be."""
    place = folder(environ)
    root = cache(environ).parent
    if place.is_dir() and not is_private(place, root):
        # It is executed: what others may have written is made anew.
        shutil.rmtree(place, ignore_errors=True)
    if not place.is_dir():
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


def argv(patient: Patient) -> tuple[str, ...]:
    """The command that repeats a patient's triage, inside the demo's folder."""
    return ("aotidoctor", "run", patient.package, "--inputs", patient.inputs, "--reference", "exported.pt2")


def warm_runner(environ: Mapping[str, str]) -> Runner:
    """One runner for all patients, so that torch is imported once."""
    return Runner(environ=environ, preload=diagnose.REFERENCE_MODULES)


def triage(patient: Patient, runner: Runner, environ: Mapping[str, str], on_event: OnEvent) -> Report:
    """What ``aotidoctor run`` finds out about ``patient``; the files are built first where needed."""
    place = prepare(environ, on_event)
    options = Options(reference=str(place / "exported.pt2"))
    package, inputs = str(place / patient.package), str(place / patient.inputs)
    return diagnose.diagnose(
        package, inputs, options, argv=argv(patient), environ=environ, on_event=on_event, runner=runner
    )


def cache(environ: Mapping[str, str]) -> Path:
    """The folder of the files of all demos."""
    base = environ.get("XDG_CACHE_HOME") or ""
    home = environ.get("HOME") or tempfile.gettempdir()
    return (Path(base) if base.startswith("/") else Path(home) / ".cache") / "aotidoctor" / "demo"


def _key() -> str:
    """A name for the recipe and everything that its result depends on."""
    # Only the demo asks for a version of a distribution; the import is slow.
    from importlib import metadata  # noqa: PLC0415

    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise CannotExamineError("the demo compiles a model and needs torch: pip install 'aotidoctor[torch]'") from None
    made_of = (_RECIPE.read_text(encoding="utf-8"), torch, platform.python_version(), platform.machine())
    return hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]


def _build(workshop: Path, environ: Mapping[str, str], on_event: OnEvent) -> None:
    (workshop / "files").mkdir()
    on_event(Event(kind=EventKind.PROBE_START, name="compile the model"))
    with Runner(environ=environ) as runner:
        # Side by side: a compile keeps one core busy.
        started = [runner.start(_request(part, workshop)) for part in PARTS]
        outcomes = [item if isinstance(item, Outcome) else runner.finish(item) for item in started]
    failed = [outcome for outcome in outcomes if not outcome.succeeded]
    told = run_ending(failed[0]) if failed else "kept for the next demo"
    seconds = max(outcome.seconds for outcome in outcomes)
    on_event(Event(kind=EventKind.PROBE_END, name="compile the model", seconds=seconds, verdict=told, ok=not failed))
    if failed:
        raise CannotExamineError(f"the demo's model did not compile: {_why(failed[0])}")


def _request(part: str, workshop: Path) -> Request:
    return Request(
        probe="demo_build",
        job="demo_build",
        payload=DemoBuild(folder=str(workshop / "files"), part=part),
        # Generated code and objects go away with the workshop.
        env={"TORCHINDUCTOR_CACHE_DIR": str(workshop / part)},
        fresh=True,
        timeout=_BUILD_LIMIT,
        purpose=f"compile the demo's {part}",
    )


def _why(outcome: Outcome) -> str:
    if outcome.error is not None:
        return f"{outcome.error.type}: {outcome.error.message}"
    last = outcome.stderr_tail.strip().splitlines()[-1:]
    return " ".join([run_ending(outcome), *last])
