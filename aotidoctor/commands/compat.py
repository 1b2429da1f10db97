"""``aotidoctor compat``: what packages need of a host, and on which hosts they will run. Nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.checks.driver_mismatch import OLDEST_DRIVER
from aotidoctor.checks.matching.package_facts import NOT_STATED, device_of, main_object
from aotidoctor.model.artifact import ArtifactKind, ModelEntry
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import Evidence, NotChecked, Severity
from aotidoctor.model.fleet import Compatibility, HostAnswer, HostVerdict, PackageNeeds
from aotidoctor.model.record import record
from aotidoctor.model.report import Report
from aotidoctor.model.torch_names import foreign
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.host.profiles import HERE, for_artifact
from aotidoctor.readers.releases.torch_releases import Release, built_by, loads_from, release_text
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.static_checks import CheckAnswer, Session, ask_host, name_causes

# Without an answer of these nobody can say that it runs; the others are about the moment, not about the machine.
DECISIVE = frozenset((
    "torch_missing", "device_unavailable", "driver_mismatch", "gpu_arch_mismatch", "isa_mismatch", "missing_library",
    "abi_mismatch", "executable_stack",
))  # fmt: skip
_NO_TORCH = "torch_missing"
_UNREAD = "AD-READ-HOST"


@record
class TargetHost:
    """One column.

    ``host`` is None for this machine, which is read anew for each package, and for a profile that cannot be read:
    ``problem`` then says why.
    """

    label: str
    host: Host | None = None
    problem: str | None = None


def compat(
    paths: Sequence[str],
    hosts: Sequence[str],
    torches: Sequence[str],
    *,
    model_name: str | None = None,
    argv: tuple[str, ...] = (),
    environ: Mapping[str, str],
) -> Report:
    """Every package on every host, with the host's torch or with each of ``torches``.

    Raises:
        UsageError: there is no such profile or release.
    """
    watch = Invocation("compat", argv)
    targets = [_target(host, torch, environ) for host in hosts or (HERE,) for torch in torches or (None,)]
    unread: list[NotChecked] = []
    cases = [_case(path, model_name, targets[0], unread, environ) for path in paths]
    session = Session(case=cases[0], runner=None, not_checked=unread)
    answers = [_answer(session, case, target, environ) for case in cases for target in targets]
    found = Compatibility(needs=tuple(_needs(case) for case in cases), answers=tuple(answers))
    given = {answer.answer for answer in answers}
    report = finish(
        session,
        name_causes(session),
        watch,
        verdict="problem" if HostVerdict.REFUSED in given else "unknown" if HostVerdict.UNKNOWN in given else "healthy",
        stage="host" if HostVerdict.REFUSED in given else None,
        cannot_examine=_cannot_examine(cases, targets),
    )
    return replace(report, compat=found)


def _cannot_examine(cases: Sequence[Case], targets: Sequence[TargetHost]) -> str | None:
    missing = next((case.artifact.path for case in cases if case.artifact.kind is ArtifactKind.MISSING), None)
    if missing is not None:
        return f"no such file: {missing}"
    return next((target.problem for target in targets if target.problem), None)


def _target(name: str, torch: str | None, environ: Mapping[str, str]) -> TargetHost:
    label = f"{name} with torch {torch}" if torch else name
    if name == HERE and torch is None:
        return TargetHost(label=label)
    try:
        host = open_case.host_of(Options(host=name, torch=torch), None, environ)
    except CannotExamineError as error:
        return TargetHost(label=label, problem=str(error))
    return TargetHost(label=label, host=replace(host, profile=label))


def _case(
    path: str, model_name: str | None, first: TargetHost, unread: list[NotChecked], environ: Mapping[str, str]
) -> Case:
    artifact, model, contract = open_case.open_package(path, model_name, unread)
    host = first.host if first.host is not None else read_host(artifact=artifact, environ=environ)
    return Case(artifact=artifact, host=host, options=Options(model_name=model_name), model=model, contract=contract)


def _answer(session: Session, case: Case, target: TargetHost, environ: Mapping[str, str]) -> HostAnswer:
    name = case.artifact.path
    if target.problem is not None:
        session.not_checked.append(NotChecked(code=_UNREAD, name=target.label, reason=target.problem))
        return HostAnswer(package=name, host=target.label, answer=HostVerdict.UNKNOWN, unknown=(target.problem,))
    host = case.host
    if target.host is not None:
        host = for_artifact(target.host, case.artifact)
    elif host.profile is not None:
        host = read_host(artifact=case.artifact, environ=environ)
    asked = ask_host(replace(case, host=host))
    refused = [
        (one, item)
        for one in asked
        for item in _host_findings(one)
        if (item.severity is Severity.ERROR or one.check.name == _NO_TORCH)
    ]
    warned = [(one, item) for one in asked for item in _host_findings(one) if item.severity is Severity.WARN]
    steps = [str(item.facts["provided"]) for one in asked for item in _host_findings(one) if "provided" in item.facts]
    session.add([_place_evidence(item, name, target.label) for _, item in (*refused, *warned)])
    unknown = _unknown(asked) if not refused else []
    operators = _operators(case)
    return HostAnswer(
        package=name,
        host=target.label,
        answer=HostVerdict.REFUSED if refused else HostVerdict.UNKNOWN if unknown else HostVerdict.RUNS,
        because=tuple(f"{one.check.cause}: {item.observed}, expected {item.expected}" for one, item in refused),
        causes=tuple(dict.fromkeys(one.check.cause for one, _ in refused)),
        unknown=tuple(unknown),
        provided=(
            *(f"{', '.join(operators[:5])} must be registered there" for _ in operators[:1]),
            *(f"{one.check.cause} is possible: {item.observed}" for one, item in warned),
            *steps,
        ),
    )


def _host_findings(one: CheckAnswer) -> tuple[Evidence, ...]:
    return () if isinstance(one.found, NotChecked) else one.found


def _place_evidence(item: Evidence, package: str, host: str) -> Evidence:
    """The finding with where it was found; what kept it from running is an error."""
    severity = Severity.WARN if item.severity is Severity.WARN else Severity.ERROR
    message = f"{package} on {host}: {item.message}"
    return replace(item, severity=severity, message=message, facts={**item.facts, "host": host, "package": package})


def _unknown(asked: Sequence[CheckAnswer]) -> list[str]:
    """What would have to be known; what a profile does not state, in one line."""
    reasons = [
        one.found.reason
        for one in asked
        if isinstance(one.found, NotChecked) and one.blocked is None and one.check.name in DECISIVE
    ]
    facts = (fact for reason in reasons if NOT_STATED in reason for fact in reason.partition(NOT_STATED)[2].split(", "))
    unstated = [f"it is not stated: {', '.join(dict.fromkeys(facts))}"]
    others = [reason for reason in reasons if NOT_STATED not in reason]
    return [*(unstated if len(others) < len(reasons) else ()), *dict.fromkeys(others)]


def _operators(case: Case) -> list[str]:
    if case.model is None:
        return []
    targets = [node.target for node in case.model.extern_nodes]
    return foreign(targets or list(case.contract.custom_ops if case.contract is not None else ()))


def _needs(case: Case) -> PackageNeeds:
    compiled, model = main_object(case), case.model
    if model is None:
        problem = case.artifact.problem or f"no model could be read from the file ({case.artifact.kind.value})"
        return PackageNeeds(package=case.artifact.path, problem=problem)
    built, least = built_by(model, compiled), loads_from(model, compiled)
    needs = case.contract.needs if case.contract is not None else None
    return PackageNeeds(
        package=case.artifact.path,
        device=device_of(case),
        machine=compiled.machine if compiled is not None else None,
        built_least=_text(built.least),
        built_least_because=built.because,
        built_before=_text(built.before),
        built_before_because=built.before_because,
        torch_least=_text(least[0]) if least else None,
        torch_least_because=least[1] if least else "",
        abi_versions=_newest_versions([ref.version for ref in compiled.undefined if ref.version]) if compiled else (),
        libraries=compiled.needed if compiled is not None else (),
        isa=needs.isa if needs is not None else (),
        march_native=needs.march_native if needs is not None else None,
        gpu_targets=_gpu_targets(case, model),
        oldest_driver=_oldest_driver(compiled.needed if compiled is not None else ()),
        custom_ops=tuple(_operators(case)),
        threads=min(needs.baked_threads.values(), default=None) if needs is not None else None,
        executable_stack=compiled.executable_stack if compiled is not None else None,
    )


def _gpu_targets(case: Case, model: ModelEntry) -> tuple[str, ...]:
    capability = case.needs.compute_capability
    return model.gpu_targets or ((f"sm_{capability}",) if capability and device_of(case) == "cuda" else ())


def _text(release: Release | None) -> str | None:
    return None if release is None else release_text(release)


def _newest_versions(versions: Sequence[str]) -> tuple[str, ...]:
    """Of each family the newest: ``GLIBC_2.34``, ``GLIBCXX_3.4.30``."""
    newest: dict[str, tuple[int, ...]] = {}
    for version in versions:
        family, _, number = version.rpartition("_")
        parts = number.split(".")
        if family and all(part.isdecimal() for part in parts):
            newest[family] = max(newest.get(family, ()), tuple(map(int, parts)))
    return tuple(f"{family}_{'.'.join(map(str, number))}" for family, number in sorted(newest.items()))


def _oldest_driver(needed: Sequence[str]) -> str | None:
    """By the CUDA runtime that it is linked to, where it is linked to one."""
    majors = [name.removeprefix("libcudart.so.").partition(".")[0] for name in needed if name.startswith("libcudart")]
    return next((OLDEST_DRIVER[major] for major in majors if major in OLDEST_DRIVER), None)
