"""The way from a report to a certified script. Nothing is written to the user's folder before the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands.repro.bench import VALUES, Bench
from aotidoctor.commands.repro.certification import candidates, certified
from aotidoctor.commands.repro.modes import Mode, modes
from aotidoctor.commands.repro.package import KEPT, copy_package
from aotidoctor.commands.repro.readme import MARK, README, readme
from aotidoctor.commands.repro.reduce import Reduced, reduce_inputs, whole, with_inputs
from aotidoctor.commands.repro.result import Known, Repro
from aotidoctor.commands.repro.script import NAME, Recipe
from aotidoctor.commands.repro.surroundings import PROGRAM, SETUP, bare_environment, base_recipe, further_environment
from aotidoctor.commands.repro.tensors import UnmadeError
from aotidoctor.diagnosis.subjects import normal_subject
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.errors import UsageError
from aotidoctor.model.event import OnEvent
from aotidoctor.reports.redact import Redactor
from aotidoctor.runner import Runner

MODULES = ("aotidoctor.worker.warm_loader",)
# Whoever loads these may be harmed: their names lead out of the folder, or they do not fit on a disk.
NEVER_LOADED = ("artifact-unsafe", "artifact-bomb", "inputs-file-unsafe")
LONGEST = 20.0
FILES = (NAME, README, "model.pt2", VALUES, PROGRAM, SETUP)


def check_folder(directory: Path) -> None:
    """Raise UsageError if the folder holds something else than an earlier repro."""
    if directory.exists() and any(directory.iterdir()) and not _is_ours(directory):
        raise UsageError(f"{directory} is not empty and is not a repro; nothing was overwritten")


def reproduce(
    case: Case,
    known: Known,
    directory: Path,
    environ: Mapping[str, str],
    *,
    keep_weights: bool = False,
    redact: bool = True,
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
) -> Repro:
    """Make the script of ``known``, certify it, and write it to ``directory`` if it is.

    ``runner`` may be given to try several with one warm worker; see ``start_runner``.

    Raises:
        UsageError: the folder holds something else.
        OSError: it cannot be written.
    """
    check_folder(directory)
    reason = _why_not(case, known)
    if reason is not None:
        return Repro(problem=reason)
    with tempfile.TemporaryDirectory(prefix="aotidoctor-repro-") as room:
        folder = Path(room) / "repro"
        folder.mkdir()
        with nullcontext(runner) if runner is not None else start_runner(environ) as started:
            bench = Bench(
                case=case,
                runner=started,
                folder=folder,
                timeout=min(case.options.timeout, LONGEST),
                on_event=on_event or (lambda _event: None),
            )
            made = _made(bench, known, environ, keep_weights=keep_weights)
        if made.certified:
            note = readme(made, known.cause)
            redactor = Redactor.of(environ)
            (folder / README).write_text(redactor.text(note) if redact else note, encoding="utf-8")
            hand_over(folder, directory, made)
    return made


def start_runner(environ: Mapping[str, str]) -> Runner:
    """One to try scripts with: without the caller's variables, and knowing its CPU."""
    return Runner(environ=bare_environment(environ), preload=MODULES)


def _is_ours(directory: Path) -> bool:
    try:
        return MARK in (directory / README).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _why_not(case: Case, known: Known) -> str | None:
    if known.signature is None or not (known.diagnoses or known.findings):
        return "there is no failure to reproduce"
    if known.cause in NEVER_LOADED:
        return f"a package or file of this kind ({known.cause}) is not loaded to show it"
    if case.artifact.kind is ArtifactKind.MISSING or not case.artifact.path:
        return "there is no package to put next to the script"
    if Path(case.artifact.path).is_dir() or case.artifact.kind is ArtifactKind.BARE_SO:
        return "scripts are made only for single-file packages"
    return None


def hand_over(folder: Path, directory: Path, made: Repro) -> None:
    """All of it or nothing. Raises OSError, which names the file that could not be written."""
    new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    _empty(directory)
    target = directory
    try:
        for name in made.files:
            target = directory / name
            shutil.copyfile(folder / name, target)
    except OSError as error:
        _empty(directory)
        if new:
            directory.rmdir()
        raise OSError(error.errno, error.strerror, str(target)) from error


def _empty(directory: Path) -> None:
    for name in FILES:
        (directory / name).unlink(missing_ok=True)


def _made(bench: Bench, known: Known, environ: Mapping[str, str], *, keep_weights: bool) -> Repro:
    case = bench.case
    copy_package(case, bench.folder / "model.pt2", KEPT)
    try:
        base = base_recipe(case, bench.folder, _title(known))
        full = _with_everything(bench, base)
    except (UnmadeError, OSError) as error:
        return Repro(problem=f"the call cannot be written as code: {error}", tried=tuple(bench.tried))
    chosen = _baseline(bench, full, known, environ)
    if chosen is None and not bench.tried:
        return Repro(problem="the call returns and no run reported a problem: there is nothing to reproduce")
    if chosen is None:
        return Repro(
            problem="with torch alone and the given files, it does not fail in this way", tried=tuple(bench.tried)
        )
    reduced = _reduced(bench, chosen, known)
    for attempt, weights in candidates(bench, reduced, chosen, keep_weights=keep_weights):
        done = certified(bench, attempt, known, weights, environ)
        if done is not None:
            return done
    return Repro(
        problem="it ends the same way, but its diagnosis differs",
        ending=bench.wanted.text if bench.wanted is not None else "",
        tried=tuple(bench.tried),
    )


def _title(known: Known) -> str:
    subject = normal_subject(known.diagnoses[0].subject) if known.diagnoses else ""
    return f"{known.cause}{' at ' + subject if subject else ''} ({known.signature})".replace('"', "'")


def _with_everything(bench: Bench, base: Recipe) -> Recipe:
    """The script with all tensors of the user, or one that loads only where there are none."""
    inputs = bench.case.inputs
    if inputs is None:
        return base
    given = whole(inputs) if bench.save_values(None) else {}
    return with_inputs(base, inputs, given)


def _baseline(bench: Bench, full: Recipe, known: Known, environ: Mapping[str, str]) -> Mode | None:
    """The first way of showing the failure that works with all of what the user has; then also with the variables."""
    further = further_environment(environ, bench.case)
    for variables in ((), further) if further else ((),):
        given = replace(full, environment=variables)
        for mode in modes(bench.case, known.diagnoses, known.findings, given):
            ending = bench.ending(
                mode.recipe, f"{mode.name}, with everything{' and its variables' if variables else ''}"
            )
            if mode.matches(ending):
                bench.wanted = ending
                return mode
    return None


def _reduced(bench: Bench, mode: Mode, known: Known) -> Reduced:
    inputs = bench.case.inputs
    loads_only = replace(mode.recipe, args=None, verdict="", values=None)
    if mode.recipe.args is None or inputs is None:
        return Reduced(recipe=loads_only, said="none: it fails before the call")
    if bench.wanted is not None and bench.wanted.phase == "load" and bench.fails_alike(loads_only, "load only"):
        return Reduced(recipe=loads_only, said="none: it fails before the call")
    found = reduce_inputs(bench, mode.recipe, inputs, known.diagnoses, known.findings)
    everything = Reduced(recipe=mode.recipe, said="all of your tensors", values=tuple(p for p, _ in inputs.tensors()))
    return found or everything
