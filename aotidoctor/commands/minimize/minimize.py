"""The way from a failing call of a package to the smallest part of its program that fails alike, and a script of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from aotidoctor.commands.diagnose import REFERENCE_MODULES
from aotidoctor.commands.minimize.attempt import Manner, OutOfTimeError, Tried, Workshop
from aotidoctor.commands.minimize.folder import Folder, key_of, open_folder
from aotidoctor.commands.minimize.search import fewest
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.record import record
from aotidoctor.runner import Runner
from aotidoctor.triage import open_case
from aotidoctor.triage.chains.compile_cache import open_cache
from aotidoctor.triage.session import Session

OnStep = Callable[[str], None]
REPRO = "repro"


@record
class Minimized:
    """What came of it.

    ``ending`` is ``smallest`` (no operator can be left out), ``unfinished`` (the budget ended the search),
    ``healthy`` (the call does not fail) or ``package-only`` (the program, compiled here, does not fail alike).
    ``operators`` are those of the part that fails, ``targets`` what they call; ``manner`` is how it fails. ``asked``
    counts the parts that were compiled in this call. ``repro`` says what became of the script.
    """

    package: str
    directory: str
    ending: str
    of: int = 0
    operators: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    manner: tuple[str, ...] = ()
    asked: int = 0
    reason: str | None = None
    repro: str | None = None
    seconds: float = 0.0


def minimize(
    package: str,
    inputs: str,
    options: Options,
    directory: Path,
    *,
    environ: Mapping[str, str],
    on_step: OnStep = lambda _text: None,
    with_repro: bool = True,
) -> Minimized:
    """Search until nothing can be left out, or ``options.budget`` (seconds) is spent; go on where it ended before.

    Raises:
        UsageError: the folder holds something else.
        CannotExamineError: package, inputs or program cannot be read or run here.
    """
    began = time.monotonic()
    case = _case(package, inputs, options, environ)
    folder = open_folder(directory, key_of(package, inputs, options.reference, options.setup))
    with Runner(environ=environ, preload=REFERENCE_MODULES) as runner:
        deadline = None if options.budget is None else began + options.budget
        session = Session(case=case, runner=runner, deadline=deadline)
        shop = Workshop(session=session, cache=open_cache(), environ=environ)
        found = _searched(shop, folder, on_step)
    found = replace(found, package=package, directory=str(directory))
    if with_repro and folder.best is not None and found.ending in ("smallest", "unfinished"):
        found = replace(found, repro=_repro(folder, options, environ, on_step))
    return replace(found, seconds=time.monotonic() - began)


def _case(package: str, inputs: str, options: Options, environ: Mapping[str, str]) -> Case:
    open_case.check_reference(options.reference)
    case, _ = open_case.open_case(package, inputs, options, environ)
    if case.artifact.kind is ArtifactKind.MISSING:
        raise CannotExamineError(f"no such file: {package}")
    if case.artifact.names_unsafe or case.artifact.bad_crc or case.model is None:
        raise CannotExamineError(f"{package}: {case.artifact.problem or 'it is not a package that is executed'}")
    if case.inputs is None:
        raise CannotExamineError(str(case.inputs_error or f"{inputs}: no inputs"))
    if case.reference is None:
        raise CannotExamineError(f"{options.reference}: not a readable torch.export archive")
    return case


def _searched(shop: Workshop, folder: Folder, on_step: OnStep) -> Minimized:
    empty = Minimized(package="", directory="", ending="unfinished")
    try:
        on_step("the unchanged package")
        wanted = shop.whole()
        if wanted is None:
            return replace(empty, ending="healthy", reason="the call does not fail, and agrees with the program")
        whole = _whole(shop, folder, wanted)
        if whole.manner != wanted:
            said = whole.problem or f"compiled here it ends differently: {_text(whole.manner)}, not {_text(wanted)}"
            return replace(empty, ending="package-only", reason=said, manner=_texts(wanted), asked=1)
    except OutOfTimeError as error:
        return replace(empty, reason=str(error))
    return _cut_down(shop, folder, whole, wanted, on_step)


def _cut_down(shop: Workshop, folder: Folder, whole: Tried, wanted: Manner, on_step: OnStep) -> Minimized:
    """The search itself: each answer is kept as soon as it is there."""
    search, ending, reason = fewest(whole.operators), "smallest", None
    asked = int(whole.package is not None)
    try:
        names = next(search)
        while True:
            failed = folder.known(names)
            if failed is None:
                on_step(f"{len(names)} of {len(whole.operators)} operators")
                failed, asked = _ask(shop, folder, names, wanted), asked + 1
            names = search.send(failed)
    except StopIteration:
        pass
    except OutOfTimeError as error:
        ending, reason = "unfinished", str(error)
    except KeyboardInterrupt:
        ending, reason = "unfinished", "interrupted"
    best = folder.best or whole.operators
    targets = dict(zip(whole.operators, whole.targets, strict=False))
    return Minimized(
        package="",
        directory="",
        ending=ending,
        of=len(whole.operators),
        operators=best,
        targets=tuple(targets.get(name, "") for name in best),
        manner=_texts(wanted),
        asked=asked,
        reason=reason,
    )


def _whole(shop: Workshop, folder: Folder, wanted: Manner) -> Tried:
    """The whole program, compiled here: the smallest part that fails as long as there is no other."""
    if folder.operators and folder.known(folder.operators):
        return Tried(manner=wanted, operators=folder.operators, targets=folder.targets)
    with _room(folder) as room:
        tried = shop.attempt(None, Path(room))
        if tried.manner == wanted:
            folder.operators, folder.targets = tried.operators, tried.targets
            folder.answer(tried.operators, failed=True, room=Path(room))
        return tried


def _ask(shop: Workshop, folder: Folder, names: tuple[str, ...], wanted: Manner) -> bool:
    with _room(folder) as room:
        failed = shop.attempt(names, Path(room)).manner == wanted
        folder.answer(names, failed=failed, room=Path(room))
        return failed


def _room(folder: Folder) -> tempfile.TemporaryDirectory[str]:
    """A folder for one attempt, on the disk of the result."""
    return tempfile.TemporaryDirectory(prefix=".attempt-", dir=folder.place, ignore_cleanup_errors=True)


def _repro(folder: Folder, options: Options, environ: Mapping[str, str], on_step: OnStep) -> str:
    """A script of the smallest part."""
    from aotidoctor.commands.repro import command  # noqa: PLC0415 - where there is a failure to show

    on_step("a script of it")
    wanted = Options(
        reference=str(folder.place / "exported.pt2"),
        setup=options.setup,
        custom_op_libraries=options.custom_op_libraries,
        timeout=options.timeout,
    )
    package, sample = str(folder.place / "model.pt2"), str(folder.place / "sample.pt")
    report = command.repro(package, sample, wanted, folder.place / REPRO, environ=environ)
    return report.extra.get("repro", "not made")


def _texts(manner: Manner) -> tuple[str, ...]:
    return tuple(str(part) for part in manner if part not in (None, ""))


def _text(manner: Manner | None) -> str:
    return " ".join(_texts(manner)) if manner is not None else "it does not fail"
