"""Simulated CUDA: runs aotidoctor with a CUDA build of torch on a machine that needs no GPU.

A driver of our own (``driver/``, C) is preloaded into the program and its children. What it shows: which calls are
made, in which order, with which sizes, and how torch, the package and aotidoctor behave when one of them fails. What it
cannot show:

* values: no kernel is executed but single-precision matrix products, so memory that a kernel should fill holds zeros;
* whether an index is out of bounds, and whether GPU code runs correctly: faults are planned, not found. Only a pointer
  of the package's kernels that is no device memory is noticed;
* when a real fault surfaces, and whether torch then raises or aborts: knobs, and the tests read every setting;
* which part of a fatbin a driver would choose, and profilers;
* races and overruns: they are planned, too, by what makes them show (an earlier launch that nobody has waited for, the
  end of a block of memory). Of NVIDIA's tools only what they would write of a planned fault (``tools/``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from scenarios import ROOT, Gpu

DRIVER_SOURCES = Path(__file__).parent / "driver"
TOOLS = Path(__file__).parent / "tools"
TORCH = os.environ.get("AOTIDOCTOR_CUDA_TORCH", "2.13.0")
SECONDS = 300
# Torch's own wheels lack a part of the headers (nv/target).
TOOLKIT = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def cache_dir() -> Path:
    """Where the CUDA torch and the compiled driver are kept: ~5 GB."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("AOTIDOCTOR_CUDA_CACHE") or Path(base, "aotidoctor-cuda"))


def python() -> Path:
    """The interpreter that has the CUDA torch."""
    return cache_dir() / "venv" / TORCH / "bin" / "python"


def missing() -> str | None:
    """Why nothing can be simulated here, or None."""
    if not python().with_name("python").exists():
        return f"no CUDA build of torch in {python().parent.parent}: make test-cuda-sim installs it"
    if shutil.which("gcc") is None:
        return "there is no gcc to compile the simulated driver with"
    return None


def forget_packages() -> None:
    """What was compiled here before: the next run compiles again, with the headers that were made ready."""
    shutil.rmtree(cache_dir() / "xdg" / "aotidoctor" / "recompiled", ignore_errors=True)


def no_toolkit() -> str | None:
    """Why nothing can be compiled for the simulated GPU, or None."""
    return None if (TOOLKIT / "include" / "nv" / "target").exists() else f"no CUDA toolkit's headers in {TOOLKIT}"


def build_driver(version: str) -> Path:
    """The folder with the simulated ``libcuda.so.1`` whose file name tells ``version``, compiled when it is new."""
    digest = hashlib.sha256(TORCH.encode())
    for source in sorted(DRIVER_SOURCES.iterdir()):
        if source.is_file():
            digest.update(source.read_bytes())
    place = cache_dir() / "driver" / digest.hexdigest()[:16] / version
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "libcuda.so.1").exists():
            library = place / f"libcuda.so.{version}"
            command = [str(python()), str(DRIVER_SOURCES / "build.py"), str(library)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            # One library answers for both names; the first name tells that everything is there.
            (place / "libnvidia-ml.so.1").symlink_to(library.name)
            (place / "libcuda.so.1").symlink_to(library.name)
    return place


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """One simulated machine with ``gpu``; ``room`` is an empty folder, ``knobs`` are settings of the driver.

    ``tools`` are those of NVIDIA's that are installed on it; with ``toolkit`` programs can be compiled for its GPU.
    """

    room: Path
    gpu: Gpu = field(default_factory=Gpu)
    knobs: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    toolkit: bool = False

    @property
    def log(self) -> Path:
        """What the driver wrote of launches, modules and faults."""
        return self.room / "driver.log"

    def environ(self) -> dict[str, str]:
        folder = build_driver(self.gpu.driver)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SIMCUDA_", "CUDA_", "AOTI"))}
        return {
            **kept,
            "PYTHONPATH": str(ROOT),
            "LD_PRELOAD": str(folder / "libcuda.so.1"),
            "LD_LIBRARY_PATH": str(folder),
            "SIMCUDA_PROC": str(self._proc()),
            "SIMCUDA_LOG": str(self.log),
            "SIMCUDA_CC": self.gpu.capability,
            "SIMCUDA_DEVICES": str(self.gpu.devices),
            "SIMCUDA_DRIVER": str(self.gpu.cuda),
            "SIMCUDA_MEMORY": str(self.gpu.memory),
            **{f"SIMCUDA_{name}": value for name, value in self.knobs.items()},
            **(self._toolkit(folder) if self.toolkit else {}),
            "PATH": os.pathsep.join((str(self._bin()), kept.get("PATH", os.defpath))),
        }

    def _toolkit(self, driver: Path) -> dict[str, str]:
        """Headers of the real toolkit, the simulated driver to link with, and what compiles leave for the next one."""
        place = driver / "link"
        place.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (place / "libcuda.so").symlink_to(driver / "libcuda.so.1")
        return {
            "CUDA_HOME": str(TOOLKIT),
            "LIBRARY_PATH": str(place),
            "TRITON_LIBCUDA_PATH": str(place),
            "XDG_CACHE_HOME": str(cache_dir() / "xdg"),
        }

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the CUDA torch's interpreter on the simulated machine."""
        return subprocess.run(
            [str(python()), *arguments],
            env=self.environ(), cwd=self.room, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip

    def report(self, package: Path, inputs: Path, *options: str) -> dict:
        """The JSON report of ``aotidoctor run`` there."""
        done = self.python(
            "-m", "aotidoctor", "run", str(package), "--inputs", str(inputs), "--format", "json", *options
        )
        assert done.stdout.startswith("{"), f"exit status {done.returncode}\n{done.stderr}"
        return {**json.loads(done.stdout), "exit_status": done.returncode}

    def _bin(self) -> Path:
        folder = self.room / "bin"
        folder.mkdir(exist_ok=True)
        for name in self.tools:
            if not (folder / name).exists():
                (folder / name).symlink_to(TOOLS / name)
        return folder

    def _proc(self) -> Path:
        folder = self.room / "proc"
        for number in range(self.gpu.devices):
            place = folder / "gpus" / f"0000:{number:02x}:00.0"
            place.mkdir(parents=True, exist_ok=True)
            (place / "information").write_text(f"Model: \t\t {self.gpu.name}\n")
        folder.mkdir(exist_ok=True)
        (folder / "version").write_text(f"NVRM version: NVIDIA UNIX Kernel Module  {self.gpu.driver}  simulated CUDA\n")
        return folder
