"""A virtual environment with one release of PyTorch, and with what aotidoctor itself needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tomllib

from tests.trial_releases.stubs import make_stubs

REPOSITORY = Path(__file__).parents[2]
# What torch itself imports; its CUDA wheels are left out.
TORCH_NEEDS = ("typing-extensions", "filelock", "networkx", "jinja2", "fsspec", "numpy", "safetensors", "setuptools<82")
COMPILER = """#!/bin/sh
exec {python} {script} "$@"
"""


def make(release: str, root: Path) -> Path:
    """The Python of an environment with ``torch==release`` below ``root``; made unless it is there.

    TORCH_FLAGS is for pip, as in the Makefile: the CPU build of an index that has it needs no stand-ins.
    """
    folder = root / f"venv-{release}"
    python = folder / "bin" / "python"
    if (folder / "made").exists():
        return python
    subprocess.run([os.environ.get("TRIAL_PYTHON", sys.executable), "-m", "venv", str(folder)], check=True)
    sympy = "sympy==1.13.1" if release.startswith("2.6.") else "sympy>=1.13.3"
    own = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    # First, so that pip does not complain of what torch lacks.
    _pip(python, sympy, *TORCH_NEEDS, *own)
    _pip(python, *os.environ.get("TORCH_FLAGS", "").split(), "--no-deps", f"torch=={release}")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    make_stubs(Path(site.stdout.strip()) / "torch" / "lib")
    subprocess.run([python, "-W", "ignore", "-c", "import torch; torch.randn(3).sum()"], check=True)
    (folder / "made").touch()
    return python


def environ(root: Path) -> dict[str, str]:
    """The environment of what runs in such an environment: this checkout, and a compiler that does less."""
    compiler = root / "quick-g++"
    compiler.write_text(COMPILER.format(python=sys.executable, script=Path(__file__).with_name("quick_compiler.py")))
    compiler.chmod(0o755)
    return {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "CXX": str(compiler),
        "TRIAL_HEADERS": str(root / "headers"),
        # Loading asks for what the CPU can do by compiling, in each process; build.py says it to older releases.
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def _pip(python: Path, *words: str) -> None:
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *words], check=True)
