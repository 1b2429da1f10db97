"""Examine the library of MODEL_INIT_LIBRARY, weights beside the package, and the result of calling the library.

The library is read in place; nothing is executed here.
"""

from __future__ import annotations

import os
import posixpath
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.evidence import Evidence, FileSource, list_names
from aotidoctor.model.serving_config import (
    INIT_FUNCTION,
    PARAMETER,
    SYMBOL_PART,
    HookLibrary,
    ModelConfig,
    ParameterConfig,
    written_text,
)
from aotidoctor.readers.host.dynamic_loader import library_dependencies
from aotidoctor.readers.package.shared_object import read_named_symbols
from aotidoctor.triton.serving import Consequence, Remark, RuleResult, ServedModel, ServedVersion

if TYPE_CHECKING:
    from aotidoctor.model.run import Outcome

# The parameter.
INIT_LIBRARY_SINCE = "26.07"


def init_library(model: ServedModel) -> ParameterConfig | None:
    """Parameter MODEL_INIT_LIBRARY, None where the config has none."""
    return None if model.config is None else model.config.parameter(PARAMETER)


def init_remark(
    kind: str,
    given: ParameterConfig,
    message: str,
    remedy: str,
    *,
    seen: str,
    wanted: str,
    consequence: Consequence = Consequence.FAILS_TO_LOAD,
) -> Remark:
    """Make a remark about the parameter."""
    return Remark(
        kind=kind,
        consequence=consequence,
        message=f"the model does not load: {message}." if consequence is Consequence.FAILS_TO_LOAD else message,
        remedy=remedy,
        observed=seen,
        expected=wanted,
        subject=PARAMETER,
        at=given.value_at,
    )


def read_hook(config: ModelConfig, environ: Mapping[str, str]) -> HookLibrary | None:
    """Read the library that the config names by an absolute path; None where it names none that may be read."""
    given = config.parameter(PARAMETER)
    path = "" if given is None else written_text(given.value)
    if not path.startswith("/"):
        return None
    try:
        # A folder that an agent may read does not give it the library that a config in it names.
        sys.audit("aotidoctor.named", path)
    except PermissionError:
        return None
    return read_library(path, environ)


def read_library(path: str, environ: Mapping[str, str]) -> HookLibrary:
    """Read the library at ``path``, an absolute one; a file that is no library has a ``problem``."""
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
    places = (target, posixpath.dirname(target), posixpath.dirname(path))
    modes = {place: Path(place).stat().st_mode for place in places}
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
        libraries=library_dependencies(target, environ),
        # By group or others; in a sticky folder they cannot replace a file that is not theirs.
        writable=tuple(
            place
            for place, mode in modes.items()
            if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX)
        ),
        problem=compiled.problem,
    )


def _other(path: str, target: str) -> str | None:
    return None if target == os.path.normpath(path) else target


# Weights beside the package, and who loads them.
def check_sidecars(model: ServedModel) -> RuleResult:
    """Weights next to the package must be where an init library looks for them, and a library must load them.

    Versions: 26.07 and later have init libraries, which receive the version's folder; earlier releases have none.
    Consequence: the model loads, and the first inference fails because embedding tables (``*.nve``) are missing, or
    crashes because weights are not in the shared object.
    How it was seen: the pull request that brought init libraries; weights outside the shared object were run with
    torch's loader.
    Remedy: name the init library of such files in MODEL_INIT_LIBRARY, and keep them in the version's folder.
    """
    given = init_library(model)
    acts = given is not None and model.release.since(INIT_LIBRARY_SINCE)
    for version in model.served:
        for remark in _beside(model, version, acts=acts):
            yield remark
    tables = _tables(model.loose)
    if given is not None and tables and not any(_tables(version.files) for version in model.served):
        message = (
            f"{list_names(tables, 2)} are outside the folder of a version, and {INIT_FUNCTION} receives only that "
        )
        yield init_remark(
            "misplaced",
            given,
            f"{message}that folder: the first inference fails.",
            "move them into the version's folder",
            seen=f"{model.name}/{tables[0]}",
            wanted=f"{model.name}/<version>/{tables[0]}",
            consequence=Consequence.REQUESTS_FAIL,
        )
    for version in model.served:
        for remark in _unshipped_remarks(version):
            yield remark


def _beside(model: ServedModel, version: ServedVersion, *, acts: bool) -> RuleResult:
    """Sidecar files without, and an init library with nothing, in the version's folder."""
    tables = _tables(version.files)
    if tables and not acts:
        since = "" if model.release.since(INIT_LIBRARY_SINCE) else f", which Triton {model.release.name} does not know"
        yield Remark(
            kind="not-loaded",
            consequence=Consequence.REQUESTS_FAIL,
            message=f"the model loads, and the first inference fails: nothing loads {list_names(tables, 2)}; that "
            f"takes an init library ({PARAMETER}){since}.",
            remedy=f"serve with {INIT_LIBRARY_SINCE} or later, and name the init library of these files in {PARAMETER}",
            observed=list_names(tables, 2),
            expected="a library that loads them",
            subject=f"version {version.number}",
            file=posixpath.join(version.directory, tables[0]),
        )
    if acts and version.artifact is not None and len(version.files) == 1:
        yield Remark(
            kind="nothing-to-load",
            consequence=Consequence.NOTE,
            message=f"{INIT_FUNCTION} gets {version.directory}, which contains only the package: weights in any other "
            "place are not found.",
            remedy="copy what the library loads into the version's folder",
            observed="the package alone",
            expected="what the library loads",
            subject=f"version {version.number}",
            file=version.directory,
        )


def _unshipped_remarks(version: ServedVersion) -> RuleResult:
    contract = version.contract
    if contract is None or contract.weights not in ("external", "disk") or contract.n_constants == 0:
        return
    where = "on disk in the package" if contract.weights == "disk" else "not in the package"
    yield Remark(
        kind="unset-weights",
        consequence=Consequence.REQUESTS_FAIL,
        message=f"the model loads, and the first inference crashes: its weights are {where}, and the server loads none "
        "but those of the shared object.",
        remedy="compile again with the weights in the package (aot_inductor.package_constants_in_so=True)",
        observed=f"weights {where}",
        expected="weights in the shared object",
        subject=f"version {version.number}",
        file=version.package,
    )


def _tables(files: Sequence[str]) -> list[str]:
    return [name for name in files if name.endswith(".nve")]


# The call.
HOOK_CODE = "TRITON-R46"
_STAGES = {
    "dlopen": ("load", "the model does not load: the library cannot be loaded"),
    "symbols": ("load", "the model does not load: the library cannot be loaded"),
    "init": ("init", f"the server crashes or hangs while the model loads, in {INIT_FUNCTION}"),
    "release": ("release", "the server crashes or hangs while the model is unloaded, in the library's release"),
    "dlclose": ("unload", "the server crashes or hangs while the model is unloaded, in the library's destructors"),
}


def read_hook_run(model: ServedModel, outcome: Outcome) -> Evidence:
    """Finding about the call. NULL is no failure; the rule reports a library without the function that cleans up."""
    # Not at the top: the rules alone have no runs.
    from aotidoctor.model.answers import HookCalled, parse_answer
    from aotidoctor.triton.rehearsal import ending_words

    called = parse_answer(HookCalled, outcome.result)
    if outcome.succeeded and INIT_FUNCTION in called.found:
        gave = "NULL, which may mean that there was nothing to load" if called.handle == 0 else "a handle"
        released = " and the handle was released" if called.released else ""
        words = f"{INIT_FUNCTION} ran here and gave {gave}{released}."
        return _finding(model, outcome, "hook-ran", Consequence.NOTE, words, observed="ran")
    if outcome.succeeded:
        words = f"the model does not load: the library has no {INIT_FUNCTION}."
        return _finding(model, outcome, "hook-no-init", Consequence.FAILS_TO_LOAD, words, observed="no function")
    how = ending_words(outcome)
    kind, words = _STAGES.get(outcome.stage, ("not-run", "the library was not tried"))
    consequence = Consequence.NOTE if kind == "not-run" else Consequence.FAILS_TO_LOAD
    return _finding(model, outcome, f"hook-{kind}", consequence, f"{words} ({how}).", observed=how)


def _finding(
    model: ServedModel, outcome: Outcome, kind: str, consequence: Consequence, message: str, *, observed: str
) -> Evidence:
    given = init_library(model)
    at = None if given is None else (given.value or given.key).at
    quiet = consequence is Consequence.NOTE
    return Evidence(
        code=HOOK_CODE,
        kind=kind,
        severity=consequence.severity,
        subject=f"{model.name}: {PARAMETER}",
        observed=observed,
        expected="both functions to return",
        message=message,
        source=FileSource(file=model.config_path, line=at.line if at else None) if model.config_path else None,
        facts={
            "consequence": consequence.value,
            "release": model.release.name,
            "remedy": "" if quiet else "run the library's functions under a debugger, in this folder",
            "model": model.name,
            "run": outcome.id,
        },
    )
