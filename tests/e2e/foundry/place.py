"""Where compiled packages are kept, and where torch is."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path


def cache_dir() -> Path:
    """``AOTIDOCTOR_TEST_CACHE`` if it is set, else a folder in the user's cache."""
    named = os.environ.get("AOTIDOCTOR_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "aotidoctor-tests"


def compiler_answers() -> dict[str, str]:
    """Variables for a program with a TMPDIR of its own: what PyTorch asks of the CPU at a load is compiled once for all."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache_dir() / "compiler-answers")}


def torch_folder() -> str:
    """Where torch is installed, told without importing it: packages without a shared object name its headers."""
    return str(importlib.metadata.distribution("torch").locate_file("torch"))
