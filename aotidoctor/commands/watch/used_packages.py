"""Find the packages that a watched program used, and examine them as `check` or `run` does.

The loader unpacks a package before its code is mapped, and names the code by a hash of its source: an archive that
holds a member of that name is the one it was unpacked from. Where no archive is known, the unpacked folder serves.
"""

from __future__ import annotations

import os
import platform
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options, TorchBuild
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, OnEvent
from aotidoctor.model.run import Outcome, ProcessFacts, WatchedProgram
from aotidoctor.probes.watched_program import CODE
from aotidoctor.readers.contract.sourceless_contract import resolve_leaves
from aotidoctor.readers.host.environment import find_torch
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.triage import open_case
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import run_checks

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet


ROOT = "/data/aotinductor/"
_MOST_ARCHIVES = 64


@record
class UsedPackage:
    """A package, the reason to examine it, and its model if known. ``loaded``: its code was mapped."""

    path: str
    how: str
    model: str | None = None
    loaded: bool = False


def used_packages(seen: ProcessFacts, *, output: str = "", package: str | None = None) -> tuple[UsedPackage, ...]:
    """The packages of a program, those with loaded code first. ``package`` is the user's choice."""
    names = (*((package,) if package else ()), *seen.opened, *seen.named)
    candidates = list(dict.fromkeys(os.path.realpath(path) for path in names))
    archives = {path: members for path in candidates if (members := _members(path)) is not None}
    found: dict[str, UsedPackage] = {}
    for folder in (*seen.unpacked, *seen.left):
        loaded = folder in seen.unpacked
        used = _of_folder(folder, archives, seen, loaded=loaded)
        if used is not None and (used.path not in found or loaded):
            found[used.path] = used
    opened = {os.path.realpath(path) for path in seen.opened}
    for path, members in archives.items():
        if path not in found and any(ROOT in f"/{name}" for name in members):
            how = "it was opened" if path in opened else "it is named in the command line"
            found[path] = UsedPackage(path=path, how=how)
    if package is not None and os.path.realpath(package) not in found:
        found[package] = UsedPackage(path=package, how="requested with --package")
    if not found:
        # Files that are no packages, or not there, and that the program complains of by name.
        blamed = [path for path in candidates if path.endswith(".pt2") and Path(path).name in output]
        found |= {path: UsedPackage(path=path, how="named by the program") for path in blamed}
    first = os.path.realpath(package) if package else None
    return tuple(sorted(found.values(), key=lambda used: (os.path.realpath(used.path) != first, not used.loaded)))


def _of_folder(
    folder: str, archives: dict[str, frozenset[str]], seen: ProcessFacts, *, loaded: bool
) -> UsedPackage | None:
    """The archive that the folder was unpacked from, or the folder itself if it still exists."""
    root, _, model = folder.partition(ROOT)
    files: list[str] = []
    near: list[Path] = []
    with suppress(OSError):
        # The names of code files hold a hash.
        files = [entry.name for entry in Path(folder).iterdir() if entry.name.endswith((".so", ".cpp"))]
    with suppress(OSError):
        # An archive in the folder that the program ran in may have been open for milliseconds only.
        near = sorted(Path(seen.cwd or "/").glob("*.pt2"))[:_MOST_ARCHIVES]
    nearby = {str(path): members for path in near if (members := _members(str(path))) is not None}
    for path, members in {**archives, **nearby}.items():
        if files and all(any(member.endswith(f"{ROOT}{model}/{name}") for member in members) for name in files):
            return UsedPackage(path=path, how="code of it was loaded" if loaded else "it was unpacked", model=model,
                               loaded=loaded)  # fmt: skip
    if files:
        return UsedPackage(path=root, how="code was loaded from here" if loaded else "it was unpacked here",
                           model=model, loaded=loaded)  # fmt: skip
    if len(archives) == 1 and loaded:
        # The folder is removed when a model is unloaded; with one archive there is no doubt which it was.
        return UsedPackage(path=next(iter(archives)), how="code of a package was loaded", model=model, loaded=True)
    return None


def _members(path: str) -> frozenset[str] | None:
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return None


# Facts that belong to no run: command, libtorch, packages, core.
def program_facts(watched: WatchedProgram, packages: Sequence[UsedPackage]) -> dict[str, str]:
    """Facts about the program for the report: texts by name."""
    torch = program_libtorch(watched)
    libraries = ", ".join(watched.seen.libraries)
    found = {
        "program": shlex.join(watched.argv),
        "packages": "; ".join(f"{used.path} ({used.how})" for used in packages) or "none seen",
        "libtorch": f"{torch.version} ({torch.path})" if torch is not None else libraries or "none seen",
        "processes": str(watched.seen.processes),
    }
    return {**found, "core": watched.core} if watched.core is not None else found


def program_libtorch(watched: WatchedProgram) -> TorchBuild | None:
    """The torch whose libraries the program had mapped; None if unknown."""
    for library in watched.seen.libraries:
        folder = Path(library).parent.parent
        # torch/lib/libtorch_cpu.so of an installed torch; a bare libtorch has no version.py.
        if folder.name == "torch" and (found := find_torch([str(folder.parent)]).build) is not None:
            return found
    return None


# Examined statically, or as `run` does where the inputs are given, too.
_MOST_PACKAGES = 4
# Parts of a failure signature to compare: not the type of an exception, which a program's output names differently.
_KIND = itemgetter(0, 1, 3, 4, 5, 6, 7)
# Checks that compare the package with the libtorch of this interpreter, which another program need not use.
_OF_THIS_TORCH = ("AD-HOST-003", "AD-HOST-005", "AD-HOST-006", "AD-HOST-013")


def examine_packages(
    packages: Sequence[UsedPackage],
    watched: WatchedProgram,
    *,
    inputs: str | None,
    live: InputSet | None,
    options: Options,
    environ: Mapping[str, str],
    may_run: bool,
    as_in: Outcome | None = None,
    on_event: OnEvent | None,
) -> tuple[Session, tuple[Diagnosis, ...], bool]:
    """Examine the packages: the session, the causes that a triage found, and whether it was interrupted.

    ``as_in`` is the outcome of the program where a triage counts only if its own run fails in the same way.
    """
    on_event = on_event or (lambda _event: None)
    if not packages:
        try:
            host = read_host(artifact=None, environ=environ)
        except Exception:  # noqa: BLE001 - the failure is worth reporting without facts of the host
            host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
        session = Session(
            case=Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host),
            runner=None,
            on_event=on_event,
        )
        reason = (
            "no package was found: none was open, named on a command line, or unpacked; name it with --package FILE"
        )
        session.not_checked.append(NotChecked(code=CODE, name="packages", reason=reason))
        return session, (), False
    first, *others = packages
    case, unread = open_case.open_case(first.path, inputs, replace(options, model_name=first.model), environ)
    if live is not None:
        contract = None if case.contract is None else resolve_leaves(case.contract, live)
        case = replace(case, contract=contract, inputs=live)
    session = Session(case=case, runner=None, on_event=on_event, not_checked=list(unread))
    found: tuple[Diagnosis, ...] = ()
    interrupted = False
    if may_run and case.inputs is not None:
        found, interrupted = _triage(session, environ)
        if as_in is not None and (why := _unlike(session, as_in)) is not None:
            session = Session(case=case, runner=None, on_event=on_event, not_checked=[*unread, why])
            found = ()
            run_checks(session)
    else:
        run_checks(session)
    _leave_out_foreign(session, watched)
    _check_others(session, others, environ)
    return session, found, interrupted


def _triage(session: Session, environ: Mapping[str, str]) -> tuple[tuple[Diagnosis, ...], bool]:
    """Examine as ``run`` does."""
    # Imported only where inputs are given.
    from aotidoctor.runner.portable import make_runner
    from aotidoctor.triage import examine

    with make_runner(environ=environ) as runner:
        session.runner = runner
        try:
            return examine.examine(session)
        finally:
            session.runner = None


def _unlike(session: Session, program: Outcome) -> NotChecked | None:
    """The reason why a triage of the recorded call does not explain the program's failure; None if it may."""
    plain = session.outcomes.get("plain_run")
    if plain is None:
        return None
    # Imported only where there was a triage.
    from aotidoctor.probes.plain_run import read_ending
    from aotidoctor.probes.shrink import signature_of

    theirs, ours = signature_of(session.case, program), signature_of(session.case, plain)
    if theirs is not None and ours is not None and _KIND(theirs) == _KIND(ours):
        return None
    how = "returned" if ours is None else str(read_ending(CODE, session.case, plain).observed)
    reason = f"outside the program the recorded call did not fail in the same way: {how}; only its inputs were compared"
    return NotChecked(code=CODE, name="recorded call", reason=reason)


def _leave_out_foreign(session: Session, watched: WatchedProgram) -> None:
    """Drop findings about a libtorch that the program does not use."""
    theirs, ours = program_libtorch(watched), session.case.host.torch
    unknown = theirs is None and bool(watched.seen.libraries)
    if not unknown and (theirs is None or (ours is not None and theirs.path == ours.path)):
        return
    dropped = [item for item in session.findings if item.code in _OF_THIS_TORCH]
    session.findings = [item for item in session.findings if item.code not in _OF_THIS_TORCH]
    where = theirs.path if theirs is not None else watched.seen.libraries[0]
    session.not_checked += [
        NotChecked(code=item.code, name=item.kind, reason=f"the program contains its own libtorch: {where}")
        for item in dropped
    ]


def _check_others(session: Session, others: Sequence[UsedPackage], environ: Mapping[str, str]) -> None:
    """Add the errors of further packages."""
    for used in others[:_MOST_PACKAGES]:
        case, _ = open_case.open_case(used.path, None, Options(model_name=used.model), environ)
        other = Session(case=case, runner=None)
        run_checks(other)
        errors = [item for item in other.findings if item.severity is Severity.ERROR]
        session.add(
            [replace(one, message=f"{used.path}: {one.message}", subject=one.subject or used.path) for one in errors]
        )
    for used in others[_MOST_PACKAGES:]:
        session.not_checked.append(NotChecked(code=CODE, name="packages", reason=f"too many: {used.path} was not read"))
