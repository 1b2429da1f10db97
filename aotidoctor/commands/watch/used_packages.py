"""Find the packages that a watched program used, and examine them as `check` or `run` does.

The loader unpacks a package before its code is mapped, and names the code by a hash of its source: an archive that
holds a member of that name is the one it was unpacked from. Where no archive is known, the unpacked folder is as
good.
"""

from __future__ import annotations

import os
import platform
import shlex
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Host, Options, TorchBuild
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.record import record
from aotidoctor.model.report import Diagnosis, OnEvent
from aotidoctor.model.run import Outcome, ProcessFacts, WatchedProgram
from aotidoctor.probes.watched_program import CODE
from aotidoctor.readers.contract.sourceless_contract import resolve_leaves
from aotidoctor.readers.host.environment import find_torch
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.triage import open_case
from aotidoctor.triage.static_checks import Session, run_checks

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet


ROOT = "/data/aotinductor/"
_MOST_ARCHIVES = 64


@record
class UsedPackage:
    """A package, how that is known, and its model where that is known. ``loaded``: code of it was mapped."""

    path: str
    how: str
    model: str | None = None
    loaded: bool = False


def used_packages(seen: ProcessFacts, *, said: str = "", asked: str | None = None) -> tuple[UsedPackage, ...]:
    """The packages, those whose code was loaded first. ``said`` is the output, ``asked`` the user's choice."""
    candidates = _distinct((*((asked,) if asked else ()), *seen.opened, *seen.named))
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
    if asked is not None and os.path.realpath(asked) not in found:
        found[asked] = UsedPackage(path=asked, how="requested with --package")
    if not found:
        found |= {path: UsedPackage(path=path, how="named by the program") for path in _blamed_files(candidates, said)}
    first = os.path.realpath(asked) if asked else None
    return tuple(sorted(found.values(), key=lambda used: (os.path.realpath(used.path) != first, not used.loaded)))


def _of_folder(
    folder: str, archives: dict[str, frozenset[str]], seen: ProcessFacts, *, loaded: bool
) -> UsedPackage | None:
    """The archive that the folder was unpacked from, or the folder itself, where it is still there."""
    root, _, model = folder.partition(ROOT)
    wanted = _files_below(folder) or frozenset()
    near = {path: members for path in _near(seen) if (members := _members(path)) is not None}
    for path, members in {**archives, **near}.items():
        if wanted and all(any(member.endswith(f"{ROOT}{model}/{name}") for member in members) for name in wanted):
            return UsedPackage(path=path, how="code of it was loaded" if loaded else "it was unpacked", model=model,
                               loaded=loaded)  # fmt: skip
    if wanted:
        return UsedPackage(path=root, how="code was loaded from here" if loaded else "it was unpacked here",
                           model=model, loaded=loaded)  # fmt: skip
    if len(archives) == 1 and loaded:
        # The folder has gone, as it does when a model is unloaded: there is no doubt which archive it was.
        return UsedPackage(path=next(iter(archives)), how="code of a package was loaded", model=model, loaded=True)
    return None


def _files_below(folder: str) -> frozenset[str]:
    """Names of the code files, which hold a hash."""
    with suppress(OSError):
        return frozenset(entry.name for entry in Path(folder).iterdir() if entry.name.endswith((".so", ".cpp")))
    return frozenset()


def _near(seen: ProcessFacts) -> list[str]:
    """Archives in the folder that the program ran in: one that was open for milliseconds may not have been seen."""
    with suppress(OSError):
        return [str(path) for path in sorted(Path(seen.cwd or "/").glob("*.pt2"))[:_MOST_ARCHIVES]]
    return []


def _blamed_files(paths: Sequence[str], said: str) -> list[str]:
    """Files that are no packages, or not there, and that the program complains of by name."""
    return [path for path in paths if path.endswith(".pt2") and os.path.basename(path) in said]  # noqa: PTH119


def _members(path: str) -> frozenset[str] | None:
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return None


def _distinct(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))


# Facts that belong to no run: command, libtorch, packages, core.


def program_facts(watched: WatchedProgram, packages: Sequence[UsedPackage]) -> dict[str, str]:
    """Names and texts for the report."""
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
    """The torch whose libraries the program had mapped, None where that does not show."""
    for library in watched.seen.libraries:
        folder = Path(library).parent.parent
        # torch/lib/libtorch_cpu.so of an installed torch; a bare libtorch has no version.py.
        if folder.name == "torch" and (found := find_torch([str(folder.parent)]).build) is not None:
            return found
    return None


# Examined statically, or as `run` does where the inputs are given, too.

_MOST_PACKAGES = 4
# Of how a run failed: not the type of an exception, of which the output of a program tells another name.
_KIND = itemgetter(0, 1, 3, 4, 5, 6, 7)
# They compare the package with the libtorch of this interpreter, which another program need not have.
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
    tell: OnEvent | None,
) -> tuple[Session, tuple[Diagnosis, ...], bool]:
    """What is known after it, the causes that a triage found, and whether that was interrupted.

    ``as_in``: how the program failed, where a triage counts only if its own run fails in the same way.
    """
    tell = tell or (lambda _event: None)
    if not packages:
        try:
            host = read_host(artifact=None, environ=environ)
        except Exception:  # noqa: BLE001 - what is known of the failure is worth more than the host
            host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
        session = Session(
            case=Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host),
            runner=None,
            on_event=tell,
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
    session = Session(case=case, runner=None, on_event=tell, not_checked=list(unread))
    found: tuple[Diagnosis, ...] = ()
    interrupted = False
    if may_run and case.inputs is not None:
        found, interrupted = _triage(session, environ)
        if as_in is not None and (why := _unlike(session, as_in)) is not None:
            session = Session(case=case, runner=None, on_event=tell, not_checked=[*unread, why])
            found = ()
            run_checks(session)
    else:
        run_checks(session)
    _leave_out_foreign(session, watched)
    _check_others(session, others, environ)
    return session, found, interrupted


def _triage(session: Session, environ: Mapping[str, str]) -> tuple[tuple[Diagnosis, ...], bool]:
    """As ``run`` does."""
    # Only where inputs are given.
    from aotidoctor.runner.runner import Runner
    from aotidoctor.triage import examine

    with Runner(environ=environ) as runner:
        session.runner = runner
        try:
            return examine.examine(session)
        finally:
            session.runner = None


def _unlike(session: Session, program: Outcome) -> NotChecked | None:
    """Why a triage of the recorded call does not explain the program's failure; None where it does, or may."""
    plain = session.outcomes.get("plain_run")
    if plain is None:
        return None
    # Only where there was a triage.
    from aotidoctor.probes.plain_run import read_ending
    from aotidoctor.probes.shrink import signature_of

    theirs, ours = signature_of(session.case, program), signature_of(session.case, plain)
    if theirs is not None and ours is not None and _KIND(theirs) == _KIND(ours):
        return None
    how = "returned" if ours is None else str(read_ending(CODE, session.case, plain).observed)
    reason = f"outside the program the recorded call did not fail in the same way: {how}; only its inputs were compared"
    return NotChecked(code=CODE, name="recorded call", reason=reason)


def _leave_out_foreign(session: Session, watched: WatchedProgram) -> None:
    """Findings about another libtorch than the program's are none about the program."""
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
    """Of further packages only what is wrong with them."""
    for used in others[:_MOST_PACKAGES]:
        case, _ = open_case.open_case(used.path, None, Options(model_name=used.model), environ)
        other = Session(case=case, runner=None)
        run_checks(other)
        session.add([_of(used.path, item) for item in other.findings if item.severity is Severity.ERROR])
    for used in others[_MOST_PACKAGES:]:
        session.not_checked.append(NotChecked(code=CODE, name="packages", reason=f"too many: {used.path} was not read"))


def _of(path: str, item: Evidence) -> Evidence:
    return replace(item, message=f"{path}: {item.message}", subject=item.subject or path)
