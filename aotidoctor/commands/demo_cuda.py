"""The patient of ``aotidoctor demo --cuda``: a package compiled for CUDA, and one id that is beyond its table.

The package is an embedding of 100 rows, compiled for an H100 with a dynamic batch. It is shipped, as compiling for CUDA
takes a toolkit that a laptop has not; nothing of it but the text of its wrapper is executed, by the emulation.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.commands import diagnose
from aotidoctor.commands.demo import Patient, cache
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.event import OnEvent
from aotidoctor.model.report import Report
from aotidoctor.readers.host.packages import relevant_packages
from aotidoctor.runner import Runner
from aotidoctor.triage.private_folders import is_private, make_private

_SHIPPED = Path(__file__).resolve().parent / "demo_cuda.pt2.xz"
ROWS = 100
PATIENT = Patient(
    title="The one that needs no GPU",
    story="The package is for CUDA, this machine has no GPU. One of the ids is beyond the table.",
    package="embedding_cuda.pt2",
    inputs="bad_ids.json",
    cause="cuda-device-assert",
)


def argv() -> tuple[str, ...]:
    """The command that repeats it, inside the demo's folder."""
    return ("aotidoctor", "run", PATIENT.package, "--inputs", PATIENT.inputs, "--emulate", "always")


def folder(environ: Mapping[str, str]) -> Path:
    """Where its files are, or will be."""
    return cache(environ) / "cuda"


def prepare(environ: Mapping[str, str]) -> Path:
    """The folder with package and inputs, unpacked where needed."""
    place, root = folder(environ), cache(environ).parent
    if place.is_dir() and not is_private(place, root):
        shutil.rmtree(place, ignore_errors=True)
    make_private(place, root)
    _write(place / PATIENT.package, lzma.decompress(_SHIPPED.read_bytes()))
    ids = [[(17 * row + 5 * column) % ROWS for column in range(7)] for row in range(5)]
    ids[2][3] = ROWS
    _write(place / PATIENT.inputs, json.dumps({"args": [ids]}).encode())
    return place


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    if path.is_file() and path.read_bytes() == content:
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    Path(file.name).rename(path)


def triage(runner: Runner, environ: Mapping[str, str], on_event: OnEvent) -> Report:
    """What ``aotidoctor run`` finds. Raises CannotExamineError without Triton."""
    if "triton" not in relevant_packages(sys.path):
        raise CannotExamineError("the demo emulates a GPU and needs Triton: pip install 'aotidoctor[emulate]'")
    place = prepare(environ)
    package, inputs = str(place / PATIENT.package), str(place / PATIENT.inputs)
    options = Options(emulate="always")
    return diagnose.diagnose(package, inputs, options, argv=argv(), environ=environ, on_event=on_event, runner=runner)
