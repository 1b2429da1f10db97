"""The library of MODEL_INIT_LIBRARY as a ``HookLibrary``: read in place, nothing executed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from aotidoctor.model.serving_config import ModelConfig, written
from aotidoctor.model.serving_hook import PARAMETER, SYMBOL_PART, HookLibrary
from aotidoctor.readers.host.dependencies import dependencies
from aotidoctor.readers.package.named_symbols import read_named_symbols


def read_hook(config: ModelConfig, environ: Mapping[str, str]) -> HookLibrary | None:
    """The library that the config names by an absolute path; None where it names none."""
    given = config.parameter(PARAMETER)
    path = "" if given is None else written(given.value)
    return read_library(path, environ) if path.startswith("/") else None


def read_library(path: str, environ: Mapping[str, str]) -> HookLibrary:
    """Facts of the library at ``path``, an absolute one. Raises nothing for a file that is none."""
    try:
        target = os.path.realpath(path)
        if not Path(target).exists():
            return HookLibrary(path=path, exists=False, target=_other(path, target))
        if not Path(target).is_file():
            return HookLibrary(path=path, exists=True, target=_other(path, target), problem="not a file")
        found = read_named_symbols(target, SYMBOL_PART)
    except (OSError, ValueError) as error:
        return HookLibrary(path=path, exists=True, problem=getattr(error, "strerror", None) or str(error))
    compiled = found.compiled
    return HookLibrary(
        path=path,
        exists=True,
        target=_other(path, target),
        format=compiled.format,
        machine=compiled.machine,
        bits=compiled.bits,
        type=compiled.type,
        symbols=found.exported,
        hidden=found.hidden,
        libraries=dependencies(target, environ),
        writable=tuple(_writable(dict.fromkeys((target, os.path.dirname(target), os.path.dirname(path))))),  # noqa: PTH120
        problem=compiled.problem,
    )


def _other(path: str, target: str) -> str | None:
    return None if target == os.path.normpath(path) else target


def _writable(paths: Iterable[str]) -> Iterable[str]:
    """Those that group or others may write to; in a sticky folder they cannot replace a file that is not theirs."""
    for path in paths:
        mode = Path(path).stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
            yield path
