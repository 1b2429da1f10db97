"""The way from a report to a certified script. Nothing is written to the user's folder before the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aotidoctor import pipeline
from aotidoctor.diagnosis.subjects import normal_subject
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.errors import UsageError
from aotidoctor.model.event import Event
from aotidoctor.model.evidence import Evidence
from aotidoctor.repro.bench import Bench
from aotidoctor.repro.modes import CHECKS, Mode, modes
from aotidoctor.repro.package import KEPT, RANDOM, ZEROED, can_strip, copy_package
from aotidoctor.repro.readme import MARK, readme
from aotidoctor.repro.reduce import Reduced, reduce_inputs, whole, with_inputs
from aotidoctor.repro.result import Repro
from aotidoctor.repro.script import NAME, Recipe, script_text
from aotidoctor.repro.surroundings import bare_environment, base_recipe, further_environment
from aotidoctor.repro.tensors import UnmadeError
from aotidoctor.runner import Runner

MODULES = ("aotidoctor.worker.warm_loader",)
# Whoever loads these may be harmed: their names lead out of the folder, or they do not fit on a disk.
NEVER_LOADED = ("artifact-unsafe", "artifact-bomb", "inputs-file-unsafe")
LONGEST = 20.0
OnEvent = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of the failure: of a report just made, or of one that was read."""

    signature: str | None
    diagnoses: tuple[Diagnosis, ...]
    findings: tuple[Evidence, ...]

    @property
    def cause(self) -> str:
        """The first cause."""
        return self.diagnoses[0].cause if self.diagnoses else "unknown"


def reproduce(
    case: Case,
    known: Known,
    directory: Path,
    environ: Mapping[str, str],
    *,
    keep_weights: bool = False,
    on_event: OnEvent | None = None,
) -> Repro:
    """Make the script of ``known``, certify it, and write it to ``directory`` if it is.

    Raises:
        UsageError: the folder holds something else.
        OSError: it cannot be written.
    """
    if directory.exists() and any(directory.iterdir()) and not _is_ours(directory):
        raise UsageError(f"{directory} is not empty, and not a repro: nothing there is overwritten")
    reason = _why_not(case, known)
    if reason is not None:
        return Repro(problem=reason)
    with tempfile.TemporaryDirectory(prefix="aotidoctor-repro-") as room:
        folder = Path(room) / "repro"
        folder.mkdir()
        with Runner(environ=bare_environment(environ), preload=MODULES) as runner:
            bench = Bench(
                case=case,
                runner=runner,
                folder=folder,
                timeout=min(case.options.timeout, LONGEST),
                on_event=on_event or (lambda _event: None),
            )
            made = _made(bench, known, environ, keep_weights=keep_weights)
        if made.certified:
            _hand_over(folder, directory, made)
    return made


def _is_ours(directory: Path) -> bool:
    try:
        return MARK in (directory / "README.md").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _why_not(case: Case, known: Known) -> str | None:
    if known.signature is None or not (known.diagnoses or known.findings):
        return "there is no failure to reproduce"
    if known.cause in NEVER_LOADED:
        return f"a package or file of this kind ({known.cause}) is not loaded to show it"
    if case.artifact.kind is ArtifactKind.MISSING:
        return "there is no package to put beside the script"
    if Path(case.artifact.path).is_dir() or case.artifact.kind is ArtifactKind.BARE_SO:
        return "a script is made for a package in one file"
    return None


def _hand_over(folder: Path, directory: Path, made: Repro) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        if path.is_file():
            path.unlink()
    for name in made.files:
        shutil.copyfile(folder / name, directory / name)


def _made(bench: Bench, known: Known, environ: Mapping[str, str], *, keep_weights: bool) -> Repro:
    case = bench.case
    copy_package(case, bench.folder / "model.pt2", KEPT)
    try:
        base = base_recipe(case, bench.folder, _title(known))
        full = _with_everything(bench, base)
    except (UnmadeError, OSError) as error:
        return Repro(problem=f"the call cannot be written down: {error}", tried=tuple(bench.tried))
    chosen = _baseline(bench, full, known, environ)
    if chosen is None:
        return Repro(problem="with torch alone, and all that you gave, it does not end so", tried=tuple(bench.tried))
    reduced = _reduced(bench, chosen, known)
    for attempt, weights in _candidates(bench, reduced, chosen, keep_weights=keep_weights):
        done = _certified(bench, attempt, known, weights, environ)
        if done is not None:
            return done
    return Repro(
        problem="it ends the same way, but the diagnosis of it is another one",
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


def _candidates(bench: Bench, reduced: Reduced, mode: Mode, *, keep_weights: bool) -> Sequence[tuple[Reduced, str]]:
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


def _certified(bench: Bench, attempt: Reduced, known: Known, weights: str, environ: Mapping[str, str]) -> Repro | None:
    """The files, if the script as it is ends as it must and its package and inputs are diagnosed alike."""
    package = bench.folder / "model.pt2"
    try:
        said = copy_package(bench.case, package, weights)
    except (OSError, ValueError) as error:
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
    names = (NAME, "README.md", *sorted(p.name for p in bench.folder.iterdir() if p.name not in (NAME, "README.md")))
    made = Repro(
        certified=f"same signature, {signature}",
        ending=bench.wanted.text if bench.wanted is not None else "",
        inputs=attempt.said,
        weights=said,
        environment=", ".join(f"{name}={value}" for name, value in attempt.recipe.environment),
        files=names,
        tried=tuple(bench.tried),
    )
    (bench.folder / NAME).write_text(script_text(attempt.recipe)[0], encoding="utf-8")
    (bench.folder / "README.md").write_text(readme(made, attempt.recipe, known.cause), encoding="utf-8")
    return made


def _with_values(bench: Bench, attempt: Reduced) -> bool:
    """Leave in the folder the tensors that the script reads, and no others."""
    values = bench.folder / "values.pt"
    if attempt.recipe.values is None:
        values.unlink(missing_ok=True)
        return True
    return bench.save_values([*attempt.values])


def _diagnosed(bench: Bench, attempt: Reduced, environ: Mapping[str, str]) -> str | None:
    """The signature that the package and the call of the script get."""
    call = bench.folder.parent / "call.pt"
    given = str(call) if attempt.recipe.args is not None and bench.save_call(attempt.recipe, call) else None
    inputs = given or (bench.case.inputs_path if bench.case.inputs is not None else None)
    report = pipeline.diagnose(
        str(bench.folder / attempt.recipe.package),
        inputs,
        replace(bench.case.options, generate=False),
        environ=environ,
        on_event=bench.on_event,
        # The caller's variables are not there: where the failure needs them, another one is started.
        runner=None if set(attempt.recipe.environment) - {CHECKS} else bench.runner,
    )
    return report.signature
