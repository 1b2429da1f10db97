"""Seed faults on this machine's GPU, examine them, write down what was seen: ``python -m tests.gpu.run --out DIR``.

Needs a checkout, a torch with CUDA and a C++ compiler, and no network. Dependencies that the machine lacks may lie as
wheels of pure Python in ``tests/gpu/wheels``. Without a GPU it says so and ends well: nothing was tested.

``DIR/<fault>/`` gets the report and one recorded outcome per probe; ``DIR/outcomes.zip`` holds all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.gpu.faults import Fault, chosen, right_causes
from tests.gpu.machine import ROOT, WHEELS, describe, environment

for wheel in sorted(WHEELS.glob("*-none-any.whl")):
    sys.path.append(str(wheel))

COMPILE_SECONDS = 1500
SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One fault: what was diagnosed, and whether that is right (None: it could not be tried)."""

    fault: str
    found: tuple[str, ...]
    right: bool | None
    probes: int = 0
    reason: str = ""


def compile_all(folder: Path, device: str, faults: Sequence[Fault]) -> str:
    """Compile and seed in a child. Returns what it printed on stderr."""
    words = [sys.executable, "-m", "tests.gpu.build", str(folder), device, *(fault.name for fault in faults)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=COMPILE_SECONDS, env=environment(), cwd=ROOT, check=False
    )
    return done.stderr


def prepare(folder: Path, fault: Fault) -> tuple[Path, Path] | None:
    """Package and inputs of the fault, the package changed where the fault is in it; None when it was not compiled."""
    source, inputs = folder / "models" / f"{fault.model}.pt2", folder / fault.name / "inputs.pt"
    if not source.exists() or not inputs.exists():
        return None
    package = folder / fault.name / "model.pt2"
    if fault.edit is not None:
        fault.edit(source, package)
    else:
        shutil.copyfile(source, package)
    return package, inputs


def examine(folder: Path, fault: Fault, device: str, machine: dict[str, object]) -> Result:
    """Run the ladder on one fault and write down every probe."""
    from aotidoctor import Options, diagnose
    from aotidoctor.reports.json.json_report import render_json
    from tests.gpu.recording import files_of

    prepared = prepare(folder, fault)
    if prepared is None:
        return Result(fault=fault.name, found=(), right=None, reason="its model was not compiled")
    package, inputs = prepared
    reference = str(folder / "models" / f"{fault.model}.exported.pt2") if fault.reference else None
    report = diagnose(str(package), str(inputs), Options(reference=reference, timeout=120.0), environ=environment())
    found = tuple(item.cause for item in report.diagnoses) or (report.verdict,)
    about = {"fault": fault.name, "device": device, "machine": machine, "diagnoses": list(found)}
    for name, content in files_of(report, about).items():
        _write(folder / fault.name / name, content)
    (folder / fault.name / "report.json").write_text(render_json(report), encoding="utf-8")
    return Result(fault=fault.name, found=found, right=found[0] in right_causes(fault, device), probes=len(report.runs))


def guarded(folder: Path, fault: Fault, device: str, machine: dict[str, object]) -> Result:
    """The same; an error of ours costs this fault only, and is written down."""
    try:
        return examine(folder, fault, device, machine)
    except Exception:
        (folder / f"{fault.name}.error.log").write_text(traceback.format_exc(), encoding="utf-8")
        return Result(fault=fault.name, found=(), right=False, reason=traceback.format_exc(limit=-1).strip())


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True, default=list), encoding="utf-8")


def pack(folder: Path) -> Path:
    """All recorded outcomes and reports in one file."""
    target = folder / "outcomes.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((*folder.glob("*/*.json"), *folder.glob("*.json"))):
            archive.write(path, path.relative_to(folder))
    return target


def table(results: Sequence[Result], device: str, faults: Sequence[Fault]) -> str:
    """One line per fault."""
    wanted = {fault.name: " or ".join(right_causes(fault, device)) for fault in faults}
    words = {True: "right", False: "WRONG", None: SKIPPED}
    return "\n".join(
        f"{words[item.right]:8} {item.fault:28} {', '.join(item.found) or item.reason}"
        + (f" (expected {wanted[item.fault]})" if item.right is False else f" [{item.probes} runs]")
        for item in results
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every fault got a right cause, or there is no GPU; 1 otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("gpu-outcomes"), help="where to write to")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu tries out the suite itself")
    parser.add_argument("faults", nargs="*", help="names of faults; all without any")
    given = parser.parse_args(arguments)
    machine = describe()
    if given.device == "cuda" and machine.get("problem"):
        print(f"{SKIPPED}: {machine['problem']}; nothing was tested on a GPU")
        return 0
    faults = chosen(tuple(given.faults), given.device)
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "machine.json", machine)
    said = compile_all(folder, given.device, faults)
    (folder / "compile.log").write_text(said, encoding="utf-8")
    results = [guarded(folder, fault, given.device, machine) for fault in faults]
    _write(folder / "results.json", [{"fault": one.fault, "found": one.found, "right": one.right} for one in results])
    print(table(results, given.device, faults))
    print(f"outcomes: {pack(folder)}")
    return 0 if all(item.right is True for item in results) else 1


if __name__ == "__main__":
    os.environ.update(environment())
    sys.exit(main())
