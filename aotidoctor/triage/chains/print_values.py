"""Values of kernels from a recompiled package that prints them: for hosts where they cannot be followed otherwise.

Two child runs after the ladder: a compile with the value printer (or a package kept from an earlier call), and one
call. What is asked when, and what was printed, is in ``probes.printed_values`` and ``localize.printed``.
"""

from __future__ import annotations

from aotidoctor.localize.package_code import compare_code
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.run import Request
from aotidoctor.probes import printed_values
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.package import read_artifact
from aotidoctor.triage.chains.compile_cache import CompileCache, open_cache
from aotidoctor.triage.chains.recompile import PATIENCE, guarded, obtain, say_why, tell
from aotidoctor.triage.open_case import select_model
from aotidoctor.triage.run_probes import history_of, plan_of
from aotidoctor.triage.session import Session

PROBE = printed_values.PROBE


def print_values(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if nothing else told; adds its findings."""
    guarded(session, PROBE, lambda: _print_values(session, cache or open_cache()))


def _print_values(session: Session, cache: CompileCache) -> None:
    plan = plan_of(PROBE, session)
    if not isinstance(plan, Request):
        say_why(session, plan)
        return
    session.on_event(Event(kind=EventKind.PROBE_START, name=f"{PROBE.name}: {PATIENCE}"))
    kept = obtain(session, cache, plan)
    if kept is None:
        return
    level = compile_of(plan).printer
    reason = unfit(session, str(kept.package), level)
    outcome = (
        session.run(printed_values.call_request(session.case, str(kept.package), level)) if reason is None else None
    )
    if outcome is None:
        session.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=reason or session.refusal()))
        return
    found = list(PROBE.read(session.case, history_of(session), outcome))
    session.add(found)
    tell(session, PROBE.name, kept.seconds + outcome.seconds, found[0].observed, ok=None)


def unfit(session: Session, package: str, level: int) -> str | None:
    """Why what that package prints would not speak of this one; None where it does."""
    artifact = read_artifact(package, crc_limit=0)
    model = select_model(artifact, None)
    contract = read_contract(artifact, model) if model is not None else None
    features = model.shared_objects[0].features if model is not None and model.shared_objects else None
    if features is None or features.printer_level != level:
        return f"the value printer of level {level} was not compiled in"
    code = compare_code(session.case.model, session.case.contract, model, contract)
    if code.same_kernels is not True:
        return "the recompiled program has different kernels, so its values cannot be attributed to this package"
    return None
