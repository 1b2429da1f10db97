"""Builds the C++ server from torch's headers, once per torch, compiler and source."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("server.cpp")


def server(cache: Path) -> Path:
    """The program, compiled if need be."""
    import torch

    root = Path(torch.__file__).parent
    version = importlib.metadata.version("torch")
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
    key = hashlib.sha256("\0".join((version, str(root), compiler, SOURCE.read_text())).encode()).hexdigest()[:12]
    target = cache / f"server-{key}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            made = Path(temporary) / target.name
            subprocess.run(_command(root, made), check=True, capture_output=True, timeout=600)
            made.rename(target)
    return target


def _command(root: Path, target: Path) -> list[str]:
    import torch

    include = [f"-I{root / part}" for part in ("include", "include/torch/csrc/api/include")]
    libraries = ["-ltorch", "-ltorch_cpu", "-lc10"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    compiler = shutil.which("g++") or "g++"
    where = root / "lib"
    link = [f"-L{where}", *libraries, f"-Wl,-rpath,{where}"]
    return [compiler, "-std=c++20", "-O0", "-w", abi, *include, str(SOURCE), "-o", str(target), *link]
