"""The packages that a program used, examined: statically, or as ``run`` does where the inputs are given, too."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

from aotidoctor.commands.watch.facts import libtorch_of
from aotidoctor.commands.watch.packages import UsedPackage
from aotidoctor.model.artifact import Artifact, ArtifactKind
from aotidoctor.model.case import Case, Options
from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.event import OnEvent
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.host import Host
from aotidoctor.model.run import Outcome
from aotidoctor.model.watched import Watched
from aotidoctor.probes.watched_program import CODE
from aotidoctor.readers.contract import resolve_leaves
from aotidoctor.readers.host import read_host
from aotidoctor.triage import open_case
from aotidoctor.triage.session import Session, run_checks

if TYPE_CHECKING:
    from aotidoctor.model.inputs import InputSet

_MOST_PACKAGES = 4
# Of how a run failed: not the type of an exception, of which the output of a program tells another name.
_KIND = itemgetter(0, 1, 3, 4, 5, 6, 7)
# They compare the package with the libtorch of this interpreter, which another program need not have.
_OF_THIS_TORCH = ("AD-HOST-003", "AD-HOST-005", "AD-HOST-006", "AD-HOST-013")


def examine_packages(
    packages: Sequence[UsedPackage],
    watched: Watched,
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
        session = Session(case=_no_package(environ), runner=None, on_event=tell)
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
    from aotidoctor.runner import Runner  # noqa: PLC0415
    from aotidoctor.triage import examine  # noqa: PLC0415

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
    from aotidoctor.probes.plain_run import read_ending  # noqa: PLC0415
    from aotidoctor.probes.shrink import signature_of  # noqa: PLC0415

    theirs, ours = signature_of(session.case, program), signature_of(session.case, plain)
    if theirs is not None and ours is not None and _KIND(theirs) == _KIND(ours):
        return None
    how = "returned" if ours is None else str(read_ending(CODE, session.case, plain).observed)
    reason = f"outside the program the recorded call did not fail in the same way: {how}; only its inputs were compared"
    return NotChecked(code=CODE, name="recorded call", reason=reason)


def _leave_out_foreign(session: Session, watched: Watched) -> None:
    """Findings about another libtorch than the program's are none about the program."""
    theirs, ours = libtorch_of(watched), session.case.host.torch
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


def _no_package(environ: Mapping[str, str]) -> Case:
    try:
        host = read_host(artifact=None, environ=environ)
    except Exception:  # noqa: BLE001 - what is known of the failure is worth more than the host
        host = Host(system=platform.system(), machine=platform.machine(), python=platform.python_version())
    return Case(artifact=Artifact(path="", kind=ArtifactKind.OTHER, size=0), host=host)
