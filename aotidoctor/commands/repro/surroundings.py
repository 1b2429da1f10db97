"""What a script needs around the call: operator libraries, a setup file, threads, variables."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from aotidoctor.commands.repro.script import Recipe
from aotidoctor.model.case import Case
from aotidoctor.probes.payload import device_index_of, model_name_of
from aotidoctor.triage.chains.compile_cache import open_cache

PROGRAM, SETUP = "exported.pt2", "setup_ops.py"
# Without these a process does not start, or not as the user's own.
_BARE = re.compile(
    r"PATH$|HOME$|USER$|LOGNAME$|LANG$|LC_|LD_LIBRARY_PATH$|PYTHONPATH$|VIRTUAL_ENV$|CUDA_VISIBLE_DEVICES$"
)
_FURTHER = re.compile(
    r"(?:AOTI|AOT|TORCH|TORCHINDUCTOR|PYTORCH|OMP|MKL|KMP|GOMP|CUDA|NVIDIA|MALLOC|ATEN|TRITON)_|TMPDIR$"
)
# Of the caller's own making, on no other machine alike.
_CACHES = re.compile(r"CACHE|_DIR$|_HOME$|_PATH$")


def bare_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that a script is tried in: what it needs beyond this, it has to set itself.

    PyTorch asks the compiler about the CPU when it loads a package, and keeps the answer in the folder of caches.
    """
    bare = {name: value for name, value in environ.items() if _BARE.match(name)}
    return {**bare, "TORCHINDUCTOR_CACHE_DIR": str(open_cache(environ).compiler)}


def further_environment(environ: Mapping[str, str], case: Case) -> tuple[tuple[str, str], ...]:
    """Variables that PyTorch or its libraries read, as far as the report may show them."""
    shown = case.host.environment
    return tuple(
        (name, environ[name])
        for name in sorted(environ)
        if _FURTHER.match(name) and (name in shown or name == "TMPDIR") and not _CACHES.search(name)
    )


def base_recipe(case: Case, folder: Path, title: str) -> Recipe:
    """The recipe without inputs; files that it names are copied to ``folder``.

    Raises:
        OSError: one cannot be read.
    """
    options = case.options
    name = model_name_of(case)
    setup, has_after_load = _setup(options.setup, folder)
    libraries = tuple(Path(shutil.copy(one, folder)).name for one in options.custom_op_libraries)
    if options.reference is not None and case.reference is not None:
        shutil.copyfile(options.reference, folder / PROGRAM)
    return Recipe(
        title=title,
        model_name=options.model_name if name != "model" else None,
        device_index=device_index_of(case) or -1,
        threads=options.threads,
        setup=setup,
        has_after_load=has_after_load,
        libraries=libraries,
    )


def _setup(setup: str | None, folder: Path) -> tuple[str | None, bool]:
    if setup is None:
        return None, False
    target = folder / SETUP
    shutil.copyfile(setup, target)
    return target.name, re.search(r"^def after_load\b", target.read_text(encoding="utf-8"), re.MULTILINE) is not None
