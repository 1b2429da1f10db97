"""Compile base models into the cache: ``python build.py CACHE NAME...``, all of them in this one process.

Per model the cache gets ``<name>-<key>/`` with ``model.pt2``, ``sample.pt`` and ``exported.pt2``. A folder appears by
rename, so a reader never sees half of one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import cache
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from foundry import ops
from foundry.models import BY_NAME, BaseModel
from foundry.place import torch_folder

FILES = ("model.pt2", "sample.pt", "exported.pt2")


@cache
def _machine() -> str:
    """Torch, compiler and instruction set: what decides whether a compiled package is still good here."""
    gxx = shutil.which("g++")
    compiler = (
        subprocess.run([gxx, "-dumpfullversion"], capture_output=True, text=True, check=False).stdout if gxx else "none"
    )
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    return f"{importlib.metadata.version('torch')}|{compiler.strip()}|{flags}|{os.cpu_count()}"


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((_machine(), *parts)).encode()).hexdigest()[:12]


def folder(cache_dir: Path, model: BaseModel) -> Path:
    """Where the compiled model lies, or will."""
    return cache_dir / f"{model.name}-{_digest(model.name)}"


@cache
def _digest(name: str) -> str:
    model = BY_NAME[name]
    library = {"cpp": ops.CPP, "python": ops.PYTHON, "fine": ops.FINE}.get(model.needs or "", "")
    around = inspect.getsource(model.around) if model.around is not None else ""
    return _key(inspect.getsource(model.build), repr(sorted(model.config.items())), library + around, *_place(model))


def _place(model: BaseModel) -> tuple[str, ...]:
    """Where torch is installed, for a package that is compiled when it is loaded: it names that folder of headers."""
    return (torch_folder(),) if "aot_inductor.package_cpp_only" in model.config else ()


def library(cache_dir: Path) -> Path:
    """Where the C++ operator library lies, or will."""
    return cache_dir / f"libzoo-{_key(ops.CPP)}.so"


def missing(cache_dir: Path) -> list[str]:
    """Names of what the cache lacks; ``ops`` is the C++ library."""
    lacking = [] if library(cache_dir).exists() else ["ops"]
    return lacking + [name for name, model in BY_NAME.items() if not folder(cache_dir, model).exists()]


def _build_library(cache_dir: Path) -> Path:
    target = library(cache_dir)
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache_dir) as temporary:
            built = Path(temporary) / target.name
            ops.build_cpp(built)
            built.rename(target)
    return target


def _register(model: BaseModel, cache_dir: Path, registered: set[str]) -> None:
    if model.needs in registered or model.needs is None:
        return
    import torch

    registered.add(model.needs)
    if model.needs == "cpp":
        torch.ops.load_library(str(_build_library(cache_dir)))
    else:
        source = ops.FINE if model.needs == "fine" else ops.python_op()
        exec(compile(source, model.needs, "exec"), {"__name__": model.needs})


def _build(model: BaseModel, target: Path) -> None:
    import torch

    # The wrapper is most of what is compiled, and runs for milliseconds.
    if hasattr(torch._inductor.config.aot_inductor, "compile_wrapper_opt_level"):
        torch._inductor.config.aot_inductor.compile_wrapper_opt_level = "O0"
    torch.manual_seed(0)
    module, args, kwargs, dynamic = model.build()
    # Export before saving: a model that writes to its inputs must not spoil the sample.
    program = torch.export.export(module, args, kwargs or None, dynamic_shapes=dynamic)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        room = Path(temporary) / target.name
        room.mkdir()
        torch.save({"args": args, "kwargs": kwargs} if kwargs else args, room / "sample.pt")
        torch.export.save(program, room / "exported.pt2")
        with model.around() if model.around is not None else nullcontext():
            made = torch._inductor.aoti_compile_and_package(
                program, package_path=str(room / "model.pt2"), inductor_configs=dict(model.config)
            )
        assert Path(made) == room / "model.pt2"
        room.rename(target)


def main(arguments: list[str]) -> int:
    """Build what is asked for and missing; one line per model on stderr."""
    cache_dir = Path(arguments[0])
    cache_dir.mkdir(parents=True, exist_ok=True)
    # kernel.cpp names this directory in its first line, so it has to stay the same for equal results.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache_dir / "inductor")
    registered: set[str] = set()
    failed = 0
    for name in arguments[1:]:
        if name == "ops":
            _build_library(cache_dir)
            continue
        model = BY_NAME[name]
        if folder(cache_dir, model).exists():
            continue
        started = time.monotonic()
        try:
            _register(model, cache_dir, registered)
            _build(model, folder(cache_dir, model))
            outcome = "ok"
        except Exception as error:
            failed += 1
            outcome = f"{type(error).__name__}: {error}"
        print(f"{name}: {outcome} ({time.monotonic() - started:.1f} s)", file=sys.stderr, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
