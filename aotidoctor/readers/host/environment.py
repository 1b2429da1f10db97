"""Tools, allow-listed environment variables and the C library: what a report says about this machine's set-up."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from aotidoctor.readers.host.proc import text_of_file

TOOLS = ("g++", "clang++", "c++", "ld", "gdb", "cuda-gdb", "py-spy", "compute-sanitizer", "valgrind", "nvcc")
# Where the toolkit's installer puts its tools without touching PATH.
CUDA_TOOLS = "/usr/local/cuda/bin"

_PREFIXES = (
    "TORCH", "PYTORCH", "AOT_", "AOTI_", "AOTINDUCTOR_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "OMP_", "GOMP_", "KMP_",
    "MKL_", "ATEN_", "TRITON_", "MALLOC_", "NVIDIA_",
)  # fmt: skip
_NAMES = frozenset({
    "CI", "CXX", "CC", "COLUMNS", "CPATH", "FORCE_COLOR", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "LIBRARY_PATH", "NO_COLOR", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED", "TERM", "TMPDIR", "VIRTUAL_ENV",
    "CONDA_PREFIX",
})  # fmt: skip
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "ACCESS_KEY", "AUTH")


def allowed(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that can change how a package runs, in order of name; never one that sounds like a secret."""
    return {
        name: environ[name]
        for name in sorted(environ)
        if (name in _NAMES or name.startswith(_PREFIXES)) and not any(word in name.upper() for word in _SECRET_WORDS)
    }


def find_tools(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Tool name → path. ``CXX`` is there when the variable is set; its first word is looked up."""
    folders = [*environ.get("PATH", os.defpath).split(os.pathsep), str(Path(sys.executable).parent), CUDA_TOOLS]
    tools = {name: _which(name, folders) for name in TOOLS}
    chosen = environ.get("CXX", "").split()
    if chosen:
        tools["CXX"] = _which(chosen[0], folders)
    return tools


def _which(name: str, folders: list[str]) -> str | None:
    # shutil.which does the same, at the price of importing every compression module.
    return first_program([name] if "/" in name else [f"{folder}/{name}" for folder in folders if folder])


def first_program(paths: Iterable[str]) -> str | None:
    """The first of ``paths`` that can be executed."""
    return next((path for path in paths if os.access(path, os.X_OK) and not Path(path).is_dir()), None)


def distribution(root: str = "/") -> str | None:
    """``Debian GNU/Linux 12 (bookworm)``, as /etc/os-release names it."""
    found = re.search(r"^PRETTY_NAME=\"?([^\"\n]+)", text_of_file(Path(root, "etc/os-release")), re.MULTILINE)
    return found[1] if found is not None else None


def glibc_version() -> str | None:
    """``2.36``; None on a C library that does not say."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError, AttributeError):
        return None
    return text.split()[-1] if text else None


def in_container(environ: Mapping[str, str]) -> bool | None:
    """True where something says so; None, not False, where nothing does: there is no proof of the contrary."""
    if "container" in environ or "KUBERNETES_SERVICE_HOST" in environ:
        return True
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return True
    return None
