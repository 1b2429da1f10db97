"""What a compile for CUDA needs beside a C++ compiler: the assembler that Triton calls, and the driver's header.

PyTorch looks for the toolkit in CUDA_HOME or CUDA_PATH, else two folders above the nvcc on PATH, else in
/usr/local/cuda; Triton takes the assembler of its own wheel unless a variable names another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from aotidoctor.readers.host.environment import CUDA_TOOLS, first_program

HEADER, ASSEMBLER = "cuda.h", "ptxas"
_DEFAULT_HOME = "/usr/local/cuda"
_BUNDLED = "triton/backends/nvidia/bin/ptxas"
_USUAL = ("/usr/include", "/usr/local/include")


def find_toolkit(environ: Mapping[str, str], search: Iterable[str]) -> dict[str, str | None]:
    """The paths of both by name, None where there is none. ``search`` is ``sys.path``."""
    folders = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    chosen = environ.get("TRITON_PTXAS_PATH")
    assemblers = [chosen] if chosen else []
    assemblers += [str(Path(folder, _BUNDLED)) for folder in search if folder]
    assemblers += [f"{folder}/{ASSEMBLER}" for folder in (*folders, CUDA_TOOLS)]
    given = [folder for name in ("CPATH", "CPLUS_INCLUDE_PATH") for folder in environ.get(name, "").split(os.pathsep)]
    headers = [f"{folder}/{HEADER}" for folder in (*filter(None, given), f"{_home(environ, folders)}/include", *_USUAL)]
    return {
        ASSEMBLER: first_program(assemblers),
        HEADER: next((path for path in headers if os.access(path, os.R_OK)), None),
    }


def _home(environ: Mapping[str, str], folders: list[str]) -> str:
    """The toolkit's folder, as PyTorch finds it: a link to nvcc in another folder leads it astray."""
    named = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    if named:
        return named
    nvcc = next((f"{folder}/nvcc" for folder in folders if os.access(f"{folder}/nvcc", os.X_OK)), None)
    return str(Path(nvcc).parent.parent) if nvcc is not None else _DEFAULT_HOME
