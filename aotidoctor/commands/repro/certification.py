"""The last word on a script: it ends as it must, and what it is made of is diagnosed as the user's case was."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from zipfile import BadZipFile

from aotidoctor.commands import diagnose
from aotidoctor.commands.repro.bench import VALUES, Bench
from aotidoctor.commands.repro.modes import CHECKS, Mode
from aotidoctor.commands.repro.package import KEPT, RANDOM, ZEROED, can_strip, copy_package
from aotidoctor.commands.repro.readme import README
from aotidoctor.commands.repro.reduce import Reduced
from aotidoctor.commands.repro.result import Known, Repro
from aotidoctor.commands.repro.script import NAME, script_text
from aotidoctor.commands.repro.surroundings import PROGRAM

_UNREADABLE = (OSError, ValueError, BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)


def candidates(bench: Bench, reduced: Reduced, mode: Mode, *, keep_weights: bool) -> Sequence[tuple[Reduced, str]]:
    """What to certify, the least first: without weights, with them, with all inputs."""
    levels = [KEPT]
    refused = can_strip(bench.case)
    if refused is None and not keep_weights:
        levels = [ZEROED, RANDOM, KEPT]
    elif refused is not None:
        bench.tried.append(f"weights kept: {refused}")
    everything = Reduced(
        recipe=mode.recipe,
        said="all of your tensors",
        values=tuple(path for path, _ in bench.case.inputs.tensors()) if bench.case.inputs is not None else (),
    )
    found = [(reduced, level) for level in levels]
    return found if reduced.said == everything.said or mode.recipe.args is None else [*found, (everything, KEPT)]


def certified(bench: Bench, attempt: Reduced, known: Known, weights: str, environ: Mapping[str, str]) -> Repro | None:
    """The files, if the script as it is ends as it must and its package and inputs are diagnosed alike."""
    package = bench.folder / "model.pt2"
    try:
        said = copy_package(bench.case, package, weights)
    except _UNREADABLE as error:
        bench.tried.append(f"weights {weights}: {error}")
        return None
    if not _with_values(bench, attempt) or not bench.fails_alike(attempt.recipe, f"weights {weights}"):
        return None
    signature = _diagnosed(bench, attempt, environ)
    bench.tried.append(f"weights {weights}, diagnosed: {signature or 'healthy'}")
    if signature != known.signature:
        return None
    if not bench.fails_alike(attempt.recipe, "a fresh interpreter", fresh=True):
        return None
    bench.tried.append(f"certified: {signature}")
    names = (NAME, README, *sorted(path.name for path in bench.folder.iterdir() if path.name != NAME))
    made = Repro(
        certified=f"same signature, {signature}",
        ending=bench.wanted.text if bench.wanted is not None else "",
        inputs=attempt.said,
        weights=said + ("; kept in the exported program" if (bench.folder / PROGRAM).exists() else ""),
        environment=", ".join(f"{name}={value}" for name, value in attempt.recipe.environment),
        files=names,
        tried=tuple(bench.tried),
    )
    (bench.folder / NAME).write_text(script_text(attempt.recipe)[0], encoding="utf-8")
    return made


def _with_values(bench: Bench, attempt: Reduced) -> bool:
    """Leave in the folder the tensors and the program that the script reads, and no others."""
    values = bench.folder / VALUES
    if attempt.recipe.verdict != "reference":
        (bench.folder / PROGRAM).unlink(missing_ok=True)
    if attempt.recipe.values is None:
        values.unlink(missing_ok=True)
        return True
    return bench.save_values([*attempt.values])


def _diagnosed(bench: Bench, attempt: Reduced, environ: Mapping[str, str]) -> str | None:
    """The signature that the package and the call of the script get."""
    call = bench.folder.parent / "call.pt"
    given = str(call) if attempt.recipe.args is not None and bench.save_call(attempt.recipe, call) else None
    inputs = given or (bench.case.inputs_path if bench.case.inputs is not None else None)
    report = diagnose.diagnose(
        str(bench.folder / attempt.recipe.package),
        inputs,
        replace(bench.case.options, generate=False),
        environ=environ,
        on_event=bench.on_event,
        # The caller's variables are not there: where the failure needs them, another one is started.
        runner=None if set(attempt.recipe.environment) - {CHECKS} else bench.runner,
    )
    return report.signature
