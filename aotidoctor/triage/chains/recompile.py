"""Compile the exported program again, on this host, and see whether that package is right.

A chain of up to two child runs, asked after the ladder: a compile (or a package kept from an earlier call), and one
call of what it gave, compared with the reference. What is asked when, and what the answers mean, is in
``probes.recompiled``; what the two packages' code has in common in ``localize.package_code``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from aotidoctor.localize.compiler_steps import most_questions
from aotidoctor.localize.package_code import Comparison, compare_code
from aotidoctor.model.answers import told
from aotidoctor.model.answers.made import Compiled, Step
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import Contract
from aotidoctor.model.evidence import FactValue, NotChecked
from aotidoctor.model.fault import failure
from aotidoctor.model.jobs import changed
from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.run import Exited, Outcome, Request
from aotidoctor.probes import recompiled, succeeded
from aotidoctor.probes.payload import device_of
from aotidoctor.probes.probe import Probe
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.package import read_artifact
from aotidoctor.triage.chains.compile_cache import CompileCache, Kept, compiler_of, key_of, open_cache
from aotidoctor.triage.open_case import select_model
from aotidoctor.triage.run_probes import history_of, plan_of
from aotidoctor.triage.session import Session
from aotidoctor.version import __version__

T = TypeVar("T")
CAUSE = "numeric-difference"
NO_COMPILER = "there is no C++ compiler here: apt-get install g++ (or conda install cxx-compiler)"
PATIENCE = "compiling; the first time takes half a minute longer"


@record
class Recompiled:
    """A package that the compiler of this host made of the reference.

    ``kind`` is that of the finding (``agrees``, ``differs``, ``unavailable``); ``seconds`` what the compile took when
    it was made; ``steps`` what the compiler's switch can turn off, by subsystem; ``key`` the content key.
    """

    package: str
    key: str
    kind: str
    seconds: float
    code: Comparison
    model: ModelEntry | None = None
    contract: Contract | None = None
    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)


def recompile(session: Session, cache: CompileCache | None = None) -> Recompiled | None:
    """Ask it, if its answer can change the diagnosis; None where there is no such package."""
    return asked(session, recompiled.PROBE, lambda plan: _recompile(session, cache or open_cache(), plan))


def _recompile(session: Session, cache: CompileCache, plan: Request) -> Recompiled | None:
    probe = recompiled.PROBE
    session.begins(f"{probe.name}: {PATIENCE}")
    kept = obtain(session, cache, plan)
    if kept is None:
        return None
    ran = session.run(recompiled.comparison_request(history_of(session), probe.name, str(kept.package), plan.purpose))
    if ran is None:
        session.leave_out(probe.code, probe.name, session.refusal())
        return None
    session.outcomes[probe.name] = ran
    made = _described(session, kept, key_for(session, plan) or "")
    finding = recompiled.read_with(history_of(session), ran, _facts(made, plan))
    session.add([finding])
    session.ended(probe.name, ran.seconds + kept.seconds, finding.observed, ok=finding.kind == "agrees")
    return replace(made, kind=finding.kind)


def proof(session: Session) -> dict[str, str]:
    """The cause that a package which is right when it is compiled here proves, with how."""
    item = next((item for item in session.findings if item.code == recompiled.CODE and item.kind == "agrees"), None)
    as_it_is, here = session.outcomes.get("reference"), session.outcomes.get(recompiled.NAME)
    if item is None or as_it_is is None or here is None:
        return {}
    return {CAUSE: f"differs from the reference unchanged ({as_it_is.id}), agrees when compiled again here ({here.id})"}


def obtain(session: Session, cache: CompileCache, request: Request) -> Kept | None:
    """The package that ``request`` describes, from the cache or compiled now. What prevents it is told."""
    key = key_for(session, request)
    if key is None:
        session.leave_out(recompiled.CODE, request.probe, NO_COMPILER)
        return None
    kept = cache.take(key)
    if kept is not None:
        return kept
    made = compile_now(session, cache, request, key)
    if not isinstance(made, Outcome):
        session.leave_out(recompiled.CODE, request.probe, made)
        return None
    if not succeeded(made):
        session.add([recompiled.read_compile(session.case, made)])
        session.ended(request.probe, made.seconds, session.findings[-1].observed, ok=False)
        cache.discard(target_of(made), headers=not isinstance(made.ending, Exited))
        return None
    facts: JsonObject = {name: value for name, value in made.result.items() if name in ("seconds", "switchable")}
    return cache.commit(key, target_of(made), facts)._replace(seconds=made.seconds)


def compile_now(session: Session, cache: CompileCache, request: Request, key: str) -> Outcome | str:
    """Run the compile of ``request``; why not, where it did not begin. The caller takes its folder away."""
    try:
        target = cache.begin(key)
    except OSError as error:
        return f"nothing can be kept in {cache.root}: {error.strerror or error}"
    payload = changed(request.payload, {"target": str(target), "cache": str(cache.compiler)})
    outcome = session.run(replace(request, payload=payload))
    if outcome is None:
        cache.discard(target, headers=False)
        return session.refusal()
    return outcome


def key_for(session: Session, request: Request) -> str | None:
    """The content key of what ``request`` makes; None where there is no compiler to make it with."""
    host, payload = session.case.host, compile_of(request)
    compiler = compiler_of(host.tools)
    if compiler is None or host.torch is None:
        return None
    libraries = session.case.options.custom_op_libraries
    machine = f"{host.machine} {' '.join(sorted(host.cpu_flags))} {host.threads}"
    settings: JsonObject = {"config": payload.config, "printer": payload.printer}
    settings |= {"provenance": payload.provenance, "bisect": payload.bisect}
    if device_of(session.case) == "cuda":
        gpu = next(iter(host.gpus), None)
        settings["printed_kernels"] = payload.printed_kernels
        settings["gpu"] = f"{gpu.name} {gpu.compute_capability} {host.cuda_driver}" if gpu is not None else None
    files = (session.case.options.reference, session.case.options.setup, *libraries)
    return key_of(__version__, host.torch.version, host.torch.path, compiler, machine, settings, files=files)


def asked(session: Session, probe: Probe, ask: Callable[[Request], T]) -> T | None:
    """``ask`` of what ``probe`` wants to run; None, with the reasons kept, where it wants nothing.

    The ladder's guard: an error of ours, or a cache that fails, costs this question only.
    """
    try:
        plan = plan_of(probe, session)
        if isinstance(plan, Request):
            return ask(plan)
        parts = plan if isinstance(plan, tuple) else (plan,)
        session.not_checked += [part for part in parts if isinstance(part, NotChecked)]
    except Exception:  # noqa: BLE001 - as in the ladder
        session.leave_out(probe.code, probe.name, failure())
    return None


def target_of(outcome: Outcome) -> Path:
    """Where the compile of ``outcome`` wrote to."""
    return Path(compile_of(outcome.request).target)


def model_in(package: str) -> tuple[ModelEntry | None, Contract | None]:
    """The model of a package that was compiled here, and its contract."""
    artifact = read_artifact(package, crc_limit=0)
    model = select_model(artifact, None)
    return model, read_contract(artifact, model) if model is not None else None


def _described(session: Session, kept: Kept, key: str) -> Recompiled:
    model, contract = model_in(str(kept.package))
    compiled = told(Compiled, kept.facts)
    return Recompiled(
        package=str(kept.package),
        key=key,
        kind="unavailable",
        seconds=compiled.seconds,
        code=compare_code(session.case.model, session.case.contract, model, contract),
        model=model,
        contract=contract,
        steps=compiled.switchable or {},
    )


def _facts(made: Recompiled, plan: Request) -> dict[str, FactValue]:
    code = made.code
    config = compile_of(plan).config or {}
    kernels = f"{', '.join(code.kernels[:4])} here {', '.join(code.other_kernels[:4])}"
    lines = f"{code.where}: `{code.ours}`, here `{code.theirs}`" if code.where else None
    return {
        "same_kernels": code.same_kernels,
        "same_sources": code.same_sources,
        "first_difference": kernels if code.same_kernels is False else lines,
        "where": code.where,
        "settings": tuple(f"{name}={value}" for name, value in config.items()),
        "seconds": round(made.seconds, 1),
        "bisect_seconds": round(made.seconds * most_questions(made.steps), 0),
    }
