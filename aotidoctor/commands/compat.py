"""Tell what packages need of a host, and on which hosts they will run; execute nothing (``aotidoctor compat``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.checks.abi_mismatch import newest_shim
from aotidoctor.checks.driver_mismatch import OLDEST_DRIVER
from aotidoctor.checks.matching.package_facts import NOT_STATED, device_of, main_object
from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case, Host, Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.fleet import Compatibility, HostAnswer, HostVerdict, PackageNeeds
from aotidoctor.model.record import record
from aotidoctor.model.report import UNSTATED, Report
from aotidoctor.model.torch_names import foreign
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.host.profiles import HERE, for_artifact
from aotidoctor.readers.releases.torch_releases import BuiltBy, Release, built_by, loads_from, release_text
from aotidoctor.triage import open_case
from aotidoctor.triage.finish import Invocation, finish
from aotidoctor.triage.missing_file import no_such_file
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import CheckResult, name_causes, run_host_checks

# A package runs only if these checks have answers; others concern the moment, not the machine.
DECISIVE = frozenset((
    "torch_missing", "device_unavailable", "driver_mismatch", "gpu_arch_mismatch", "isa_mismatch", "missing_library",
    "abi_mismatch", "executable_stack", "executorch_backend",
))  # fmt: skip
# Warnings in a report of a file, and no run without it.
_NEEDED = ("torch_missing", "device_unavailable")
_UNREAD = "AD-READ-HOST"


@record
class TargetHost:
    """One column of the table.

    ``host`` is None for this machine, which is read for each package, and for a profile that cannot be read;
    ``problem`` then is the reason.
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
    """Judge every package on every host, with the host's torch or with each of ``torches``.

    Raises:
        UsageError: there is no such profile or release.
    """
    invocation = Invocation("compat", argv)
    targets = [_target(host, torch, environ) for host in hosts or (HERE,) for torch in torches or (None,)]
    unread: list[NotChecked] = []
    cases = []
    for path in paths:
        artifact, model, contract = open_case.open_package(path, model_name, unread)
        host = targets[0].host or read_host(artifact=artifact, environ=environ)
        options = Options(model_name=model_name)
        case = Case(artifact=artifact, host=host, options=options, model=model, contract=contract)
        cases.append(open_case.with_precompiled(open_case.with_executorch(case, unread), unread))
    session = Session(case=cases[0], runner=None, not_checked=unread)
    answers = [_answer(session, case, target, environ) for case in cases for target in targets]
    found = Compatibility(needs=tuple(_needs(case) for case in cases), answers=tuple(answers))
    given = {answer.answer for answer in answers}
    gone = [
        no_such_file(one.path) if one.kind is ArtifactKind.MISSING else f"{one.path}: {one.problem}"
        for one in (case.artifact for case in cases)
        if one.kind in (ArtifactKind.MISSING, ArtifactKind.UNREADABLE)
    ]
    problems = gone or [one.problem for one in targets if one.problem]
    report = finish(
        session,
        name_causes(session),
        invocation,
        verdict="problem" if HostVerdict.REFUSED in given else "unknown" if HostVerdict.UNKNOWN in given else "healthy",
        stage="host" if HostVerdict.REFUSED in given else None,
        cannot_examine=next(iter(problems), None),
    )
    return replace(report, compat=found)


def _target(name: str, torch: str | None, environ: Mapping[str, str]) -> TargetHost:
    label = f"{name} with torch {torch}" if torch else name
    if name == HERE and torch is None:
        return TargetHost(label=label)
    try:
        host = open_case.host_of(Options(host=name, torch=torch), None, environ)
    except CannotExamineError as error:
        return TargetHost(label=label, problem=str(error))
    return TargetHost(label=label, host=replace(host, profile=label))


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
    answers = run_host_checks(replace(case, host=host))
    found = [(one, item) for one in answers if not isinstance(one.found, NotChecked) for item in one.found]
    refused = [(one, item) for one, item in found if item.severity is Severity.ERROR or one.check.name in _NEEDED]
    warned = [(one, item) for one, item in found if item.severity is Severity.WARN]
    steps = [str(item.facts["provided"]) for _, item in found if "provided" in item.facts]
    # A finding that prevents a run is an error, and each names its package and host.
    session.add(
        [
            replace(
                item,
                severity=Severity.WARN if item.severity is Severity.WARN else Severity.ERROR,
                message=f"{name} on {target.label}: {item.message}",
                facts={**item.facts, "host": target.label, "package": name},
            )
            for _, item in (*refused, *warned)
        ]
    )
    unknown = _unknown(answers) if not refused else []
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
            *(
                f"{one.check.cause} is possible: {item.observed}"
                for one, item in warned
                if not item.facts.get("harmless")
            ),
            *steps,
        ),
    )


def _unknown(answers: Sequence[CheckResult]) -> list[str]:
    """The missing facts, with one line for all that a profile does not state."""
    reasons = [
        one.found.reason
        for one in answers
        if isinstance(one.found, NotChecked) and one.blocked is None and one.check.name in DECISIVE
    ]
    facts = (fact for reason in reasons if NOT_STATED in reason for fact in reason.partition(NOT_STATED)[2].split(", "))
    unstated = [f"{UNSTATED}{', '.join(dict.fromkeys(facts))}"]
    others = [reason for reason in reasons if NOT_STATED not in reason]
    return [*(unstated if len(others) < len(reasons) else ()), *dict.fromkeys(others)]


# Kernels of these are in every runtime of ExecuTorch.
_BUILT_IN = ("aten::", "et_copy::", "executorch_prim::", "dim_order_ops::", "quantized_decomposed::")


def _operators(case: Case) -> list[str]:
    if (program := case.artifact.executorch) is not None:
        named = dict.fromkeys(name for method in program.methods for name in method.operators)
        return [name for name in named if not name.startswith(_BUILT_IN)]
    if case.model is None:
        return []
    targets = [node.target for node in case.model.extern_nodes]
    return foreign(targets or list(case.contract.custom_ops if case.contract is not None else ()))


def _needs(case: Case) -> PackageNeeds:
    compiled, model = main_object(case), case.model
    program = case.artifact.executorch
    backends = tuple(dict.fromkeys(one.backend for one in program.delegates)) if program is not None else ()
    if program is not None and program.problem is None and compiled is None:
        return PackageNeeds(package=case.artifact.path, backends=backends)
    if (found := case.artifact.precompiled) is not None:
        made = next(iter(found.functions), None)
        facts = (("torch", "torch"), ("Python", "python"), ("toolkit", "toolkit"), ("Triton", "triton"), ("GPU", "gpu"))
        stated = [f"{label} {value}" for label, name in facts if (value := getattr(made, name, None))]
        threads = [f"{made.threads} threads"] if made is not None and made.threads is not None else []
        exactly = ", ".join([*stated, *threads]) or "the torch that made it, of which it states only a hash"
        return PackageNeeds(package=case.artifact.path, device=device_of(case), exactly=exactly)
    if model is None:
        problem = case.artifact.problem or f"no model could be read from the file ({case.artifact.kind.value})"
        return PackageNeeds(package=case.artifact.path, problem=problem)
    # Code for ExecuTorch's runtime does not tell which torch generated it.
    built = built_by(model, compiled) if program is None else BuiltBy()
    least = loads_from(model, compiled) if program is None else None
    shim = newest_shim(case, compiled) if program is not None and compiled is not None else None
    needs = case.contract.needs if case.contract is not None else None
    libraries = compiled.needed if compiled is not None else ()
    # The oldest driver for the CUDA runtime that the package is linked to.
    cudart = [
        name.removeprefix("libcudart.so.").partition(".")[0] for name in libraries if name.startswith("libcudart")
    ]
    capability = case.needs.compute_capability
    own_target = (f"sm_{capability}",) if capability and device_of(case) == "cuda" else ()
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
        executorch_least=_text(shim[0]) if shim is not None else None,
        backends=backends,
        abi_versions=_newest_versions([ref.version for ref in compiled.undefined if ref.version]) if compiled else (),
        libraries=libraries,
        isa=needs.isa if needs is not None else (),
        march_native=needs.march_native if needs is not None else None,
        gpu_targets=model.gpu_targets or own_target,
        oldest_driver=next((OLDEST_DRIVER[major] for major in cudart if major in OLDEST_DRIVER), None),
        custom_ops=tuple(_operators(case)),
        threads=min(needs.baked_threads.values(), default=None) if needs is not None else None,
        executable_stack=compiled.executable_stack if compiled is not None else None,
    )


def _text(release: Release | None) -> str | None:
    return None if release is None else release_text(release)


def _newest_versions(versions: Sequence[str]) -> tuple[str, ...]:
    """The newest version of each family: ``GLIBC_2.34``, ``GLIBCXX_3.4.30``."""
    newest: dict[str, tuple[int, ...]] = {}
    for version in versions:
        family, _, number = version.rpartition("_")
        parts = number.split(".")
        if family and all(part.isdecimal() for part in parts):
            newest[family] = max(newest.get(family, ()), tuple(map(int, parts)))
    return tuple(f"{family}_{'.'.join(map(str, number))}" for family, number in sorted(newest.items()))
