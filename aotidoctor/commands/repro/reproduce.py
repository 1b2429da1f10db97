"""Turn a diagnosis into a certified script with the same failure (``aotidoctor repro``, ``--report repro:DIR``).

The script is tried in child processes with more and more of the user's own data: made-up inputs of the same metadata
first, then the elements that matter, then whole tensors; the package with zeroed weights first. The smallest script
with the same ending is certified: by a run in a fresh interpreter, and by a diagnosis of its package and its inputs,
which must give the same exact signature. Nothing is written to the user's folder before the end.
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

from aotidoctor.commands import diagnose_package
from aotidoctor.commands.repro.attempts import CHECKS, VALUES_FILE, Bench, BudgetSpentError, Mode, modes
from aotidoctor.commands.repro.reduced_inputs import (
    RANDOM,
    UNCHANGED,
    ZEROED,
    Reduced,
    can_strip,
    copy_package,
    reduce_inputs,
    whole_tensors,
    with_inputs,
)
from aotidoctor.commands.repro.repro_script import (
    MARK,
    NAME,
    PROGRAM,
    README,
    SETUP,
    KnownFailure,
    Recipe,
    Repro,
    UnmadeError,
    bare_environment,
    base_recipe,
    further_environment,
    readme,
    script_text,
)
from aotidoctor.diagnosis.failure_signature import normal_subject
from aotidoctor.files import open_regular, whole_file
from aotidoctor.interruption import held, interruptible
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.record import objects, text_of
from aotidoctor.model.record_json import RecordError, from_json
from aotidoctor.model.report import UNWRITTEN, Diagnosis, OnEvent, Report
from aotidoctor.reports.json.json_report import read_saved_report
from aotidoctor.reports.redact.redactor import Redactor
from aotidoctor.runner.portable import make_runner
from aotidoctor.runner.runner import Runner
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import Invocation, StaticResult, finish

# The certificate: the same ending and the same diagnosis.
_UNREADABLE = (OSError, ValueError, BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)


def candidates(bench: Bench, reduced: Reduced, mode: Mode, *, keep_weights: bool) -> Sequence[tuple[Reduced, str]]:
    """The attempts to certify, the smallest first: without weights, with them, with all inputs."""
    levels = [UNCHANGED]
    refused = can_strip(bench.case)
    if refused is None and not keep_weights:
        levels = [ZEROED, RANDOM, UNCHANGED]
    elif refused is not None:
        bench.tried.append(f"weights kept: {refused}")
    everything = Reduced(
        recipe=mode.recipe,
        text="all of your tensors",
        values=tuple(path for path, _ in bench.case.inputs.tensors()) if bench.case.inputs is not None else (),
    )
    found = [(reduced, level) for level in levels]
    return found if reduced.text == everything.text or mode.recipe.args is None else [*found, (everything, UNCHANGED)]


def certify(
    bench: Bench, attempt: Reduced, known: KnownFailure, weights: str, environ: Mapping[str, str]
) -> Repro | None:
    """Certify the files, if the script has the wanted ending and its package and inputs the same diagnosis."""
    package = bench.folder / "model.pt2"
    try:
        treatment = copy_package(bench.case, package, weights)
    except _UNREADABLE as error:
        bench.tried.append(f"weights {weights}: {error}")
        return None
    if not _with_values(bench, attempt) or not bench.fails_alike(attempt.recipe, f"weights {weights}"):
        return None
    signature = _diagnose_signature(bench, attempt, environ)
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
        inputs=attempt.text,
        weights=treatment + ("; kept in the exported program" if (bench.folder / PROGRAM).exists() else ""),
        environment=", ".join(f"{name}={value}" for name, value in attempt.recipe.environment),
        files=names,
        tried=tuple(bench.tried),
    )
    (bench.folder / NAME).write_text(script_text(attempt.recipe)[0], encoding="utf-8")
    return made


def _with_values(bench: Bench, attempt: Reduced) -> bool:
    """Save the tensors that the script reads, and remove files that it does not need."""
    values = bench.folder / VALUES_FILE
    if attempt.recipe.verdict != "reference":
        (bench.folder / PROGRAM).unlink(missing_ok=True)
    if attempt.recipe.values is None:
        values.unlink(missing_ok=True)
        return True
    return bench.save_values([*attempt.values])


def _diagnose_signature(bench: Bench, attempt: Reduced, environ: Mapping[str, str]) -> str | None:
    """Diagnose the package and the call of the script; the signature."""
    call = bench.folder.parent / "call.pt"
    given = str(call) if attempt.recipe.args is not None and bench.save_call(attempt.recipe, call) else None
    inputs = given or (bench.case.inputs_path if bench.case.inputs is not None else None)
    report = diagnose_package.diagnose(
        str(bench.folder / attempt.recipe.package),
        inputs,
        replace(bench.case.options, generate=False, budget=bench.left()),
        environ=environ,
        on_event=bench.on_event,
        # The runner lacks the caller's variables: a failure that needs them gets a new one.
        runner=None if set(attempt.recipe.environment) - {CHECKS} else bench.runner,
    )
    return report.signature


MODULES = ("aotidoctor.worker.warm_loader",)
# Loading these may do harm: their names lead out of the folder, or they do not fit on a disk.
NEVER_LOADED = ("artifact-unsafe", "artifact-bomb", "inputs-file-unsafe")
LONGEST = 20.0
BUDGET_SPENT = "the time budget was spent before there was a script"
FILES = (NAME, README, "model.pt2", VALUES_FILE, PROGRAM, SETUP)
_LONGEST_README = 1 << 20


def check_folder(directory: Path) -> None:
    """Raise UsageError if the folder has other contents than an earlier repro."""
    if not os.path.lexists(directory):
        return
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a folder; nothing was overwritten")
    if not any(directory.iterdir()):
        return
    earlier = False
    with suppress(OSError, ValueError), open_regular(directory / README) as stream:
        earlier = MARK.encode() in stream.read(_LONGEST_README)
    if not earlier:
        raise UsageError(f"{directory} is not empty and is not a repro; nothing was overwritten")


def reproduce(
    case: Case,
    known: KnownFailure,
    directory: Path,
    environ: Mapping[str, str],
    *,
    keep_weights: bool = False,
    redact: bool = True,
    on_event: OnEvent | None = None,
    runner: Runner | None = None,
    deadline: float | None = None,
) -> Repro:
    """Make the script of ``known``, certify it, and write it to ``directory`` if that succeeds.

    ``runner`` may be given to try several with one warm worker: ``start_runner``. ``deadline`` is that of ``Bench``.

    Raises:
        UsageError: the folder has other contents.
        OSError: it cannot be written.
    """
    check_folder(directory)
    reason = _why_not(case, known)
    if reason is not None:
        return Repro(problem=reason)
    with nullcontext(runner) if runner is not None else start_runner(environ) as started, started.room() as room:
        folder = room / "repro"
        folder.mkdir()
        bench = Bench(
            case=case,
            runner=started,
            folder=folder,
            timeout=min(case.options.timeout, LONGEST),
            on_event=on_event or (lambda _event: None),
            deadline=deadline,
        )
        try:
            made = _make_script(bench, known, environ, keep_weights=keep_weights)
        except BudgetSpentError:
            made = Repro(problem=BUDGET_SPENT, tried=tuple(bench.tried))
        if made.certified:
            note = readme(made, known.cause)
            redactor = Redactor.of(environ)
            (folder / README).write_text(redactor.text(note) if redact else note, encoding="utf-8")
            hand_over(folder, directory, made)
    return made


def start_runner(environ: Mapping[str, str]) -> Runner:
    """Start a runner for scripts, without the caller's variables; its own files are where the caller's are."""
    return make_runner(environ=bare_environment(environ), preload=MODULES, place=environ.get("TMPDIR"))


def _why_not(case: Case, known: KnownFailure) -> str | None:
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
    """Copy all files or none to ``directory``. Raises OSError with the file that could not be written."""
    new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    _empty(directory)
    target = directory
    try:
        for name in made.files:
            target = directory / name
            with (folder / name).open("rb") as made_file, whole_file(target) as stream:
                shutil.copyfileobj(made_file, stream, 1 << 20)
    except OSError as error:
        _empty(directory)
        if new:
            directory.rmdir()
        raise OSError(error.errno, error.strerror, str(target)) from error


def _empty(directory: Path) -> None:
    for name in FILES:
        (directory / name).unlink(missing_ok=True)


def _make_script(bench: Bench, known: KnownFailure, environ: Mapping[str, str], *, keep_weights: bool) -> Repro:
    case = bench.case
    copy_package(case, bench.folder / "model.pt2", UNCHANGED)
    try:
        subject = normal_subject(known.diagnoses[0].subject) if known.diagnoses else ""
        base = base_recipe(
            case,
            bench.folder,
            f"{known.cause}{' at ' + subject if subject else ''} ({known.signature})".replace('"', "'"),
        )
        # All tensors of the user; where there are no inputs, the script only loads.
        inputs = case.inputs
        if inputs is not None:
            base = with_inputs(base, inputs, whole_tensors(inputs) if bench.save_values(None) else {})
    except (UnmadeError, OSError) as error:
        return Repro(problem=f"the call cannot be written as code: {error}", tried=tuple(bench.tried))
    chosen = _baseline(bench, base, known, environ)
    if chosen is None and not bench.tried:
        return Repro(problem="the call returns and no run reported a problem: there is nothing to reproduce")
    if chosen is None:
        return Repro(
            problem="with torch alone and the given files, it does not fail in this way", tried=tuple(bench.tried)
        )
    reduced = _reduce_inputs(bench, chosen, known)
    for attempt, weights in candidates(bench, reduced, chosen, keep_weights=keep_weights):
        done = certify(bench, attempt, known, weights, environ)
        if done is not None:
            return done
    return Repro(
        problem="it ends the same way, but its diagnosis differs",
        ending=bench.wanted.text if bench.wanted is not None else "",
        tried=tuple(bench.tried),
    )


def _baseline(bench: Bench, full: Recipe, known: KnownFailure, environ: Mapping[str, str]) -> Mode | None:
    """The first way of showing the failure that works with all of the user's data, then also with the variables."""
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


def _reduce_inputs(bench: Bench, mode: Mode, known: KnownFailure) -> Reduced:
    inputs = bench.case.inputs
    loads_only = replace(mode.recipe, args=None, verdict="", values=None)
    if mode.recipe.args is None or inputs is None:
        return Reduced(recipe=loads_only, text="none: it fails before the call")
    if bench.wanted is not None and bench.wanted.phase == "load" and bench.fails_alike(loads_only, "load only"):
        return Reduced(recipe=loads_only, text="none: it fails before the call")
    found = reduce_inputs(bench, mode.recipe, inputs, known.diagnoses, known.findings)
    everything = Reduced(recipe=mode.recipe, text="all of your tensors", values=tuple(p for p, _ in inputs.tensors()))
    return found or everything


# The command: a new or saved diagnosis, and its script.
def repro(
    path: str,
    inputs_path: str | None,
    options: Options,
    directory: Path,
    *,
    saved: str | None = None,
    keep_weights: bool = False,
    redact: bool = True,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
    on_event: OnEvent | None = None,
) -> Report:
    """Diagnose the case and make its script; the report, with the outcome of the script in ``extra``.

    ``saved`` is a JSON report of the same case, which replaces the diagnosis.

    Raises:
        CannotExamineError: ``saved`` is no report.
        UsageError: the folder has other contents.
    """
    # Before the diagnosis, which takes seconds.
    check_folder(directory)
    deadline = None if options.budget is None else time.monotonic() + options.budget
    with held():
        if saved is not None:
            report = _from_saved(saved, path, inputs_path, options, argv=argv, environ=environ)
        else:
            report = diagnose_package.diagnose(
                path, inputs_path, options, command="repro", argv=argv, environ=environ, on_event=on_event
            )
        made = Repro(problem="interrupted before there was a script")
        if not report.interrupted:
            try:
                with interruptible():
                    made = repro_of_report(
                        report,
                        directory,
                        environ,
                        keep_weights=keep_weights,
                        redact=redact,
                        on_event=on_event,
                        deadline=deadline,
                    )
            except KeyboardInterrupt:
                report = replace(report, interrupted=True)
            except OSError as error:
                made = Repro(problem=f"{error.filename or directory}: {error.strerror or error}")
                report = replace(report, extra={**report.extra, UNWRITTEN: made.problem})
        late = report.out_of_time or made.problem == BUDGET_SPENT
        return replace(report, extra={**report.extra, **outcome_texts(made, directory)}, out_of_time=late)


def repro_of_report(
    report: Report,
    directory: Path,
    environ: Mapping[str, str],
    *,
    keep_weights: bool = False,
    redact: bool = True,
    on_event: OnEvent | None = None,
    deadline: float | None = None,
) -> Repro:
    """Make the script of a report, until ``deadline``. Raises OSError where its folder cannot be written."""
    known = KnownFailure(signature=report.signature, diagnoses=report.diagnoses, findings=report.findings)
    return reproduce(
        report.case,
        known,
        directory,
        environ,
        keep_weights=keep_weights,
        redact=redact,
        on_event=on_event,
        deadline=deadline,
    )


def outcome_texts(made: Repro, directory: Path) -> dict[str, str]:
    """The outcome as texts by name, for a report."""
    if not made.certified:
        return {"repro": f"not certified, not written: {made.problem}", "repro_tried": "\n".join(made.tried)}
    return {
        "repro": f"{directory / NAME}, certified: {made.certified}",
        "repro_ends": made.ending,
        "repro_inputs": made.inputs,
        "repro_weights": made.weights,
        "repro_tried": "\n".join(made.tried),
    }


def outcome_line(made: Repro, directory: Path) -> str:
    """The outcome in one line."""
    if not made.certified:
        last = f" (last tried: {made.tried[-1]})" if made.tried else ""
        return f"warning: no repro at {directory}: not certified: {made.problem}{last}"
    return f"{directory / NAME}, certified: {made.certified}; inputs {made.inputs}; weights: {made.weights}"


def _from_saved(
    saved: str,
    path: str,
    inputs_path: str | None,
    options: Options,
    *,
    argv: tuple[str, ...],
    environ: Mapping[str, str],
) -> Report:
    invocation = Invocation("repro", argv)
    document = read_saved_report(saved)
    try:
        findings = [from_json(Evidence, {**item, "source": None}) for item in objects(document.get("findings"))]
        diagnoses = tuple(from_json(Diagnosis, item) for item in objects(document.get("diagnoses")))
    except RecordError as error:
        raise CannotExamineError(f"{saved}: {error}") from error
    case, unread = open_case.open_case(path, inputs_path, options, environ)
    report = finish(
        StaticResult(case=case, findings=findings, not_checked=unread),
        diagnoses,
        invocation,
        verdict="problem" if diagnoses else "unknown",
        extra={"from": saved},
    )
    # The saved signature, as it depends on runs that are not repeated.
    return replace(report, signature=text_of(document.get("signature")))
