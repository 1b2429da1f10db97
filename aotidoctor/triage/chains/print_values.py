"""Values of kernels from a recompiled package that prints them: for hosts where they cannot be followed otherwise.

Two child runs after the ladder: a compile with the value printer (or a package kept from an earlier call), and one
call. What is asked when, and what was printed, is in ``probes.printed_values`` and ``localize.printed``.
"""

from __future__ import annotations

from aotidoctor.localize.package_code import compare_code
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes import printed_values
from aotidoctor.probes.probe import Probe
from aotidoctor.probes.recompiled import compile_of
from aotidoctor.triage.chains.compile_cache import CompileCache, Kept, open_cache
from aotidoctor.triage.chains.recompile import PATIENCE, asked, model_in, obtain
from aotidoctor.triage.run_probes import history_of
from aotidoctor.triage.session import Session

PROBE = printed_values.PROBE


def print_values(session: Session, cache: CompileCache | None = None) -> None:
    """Ask it, if nothing else told; adds its findings."""
    asked(session, PROBE, lambda plan: _print_values(session, cache or open_cache(), plan))


def _print_values(session: Session, cache: CompileCache, plan: Request) -> None:
    kept = compiled(session, cache, PROBE, plan)
    if kept is None:
        return
    outcome = session.run(printed_values.call_request(session.case, str(kept.package), compile_of(plan).printer))
    if outcome is None:
        session.leave_out(PROBE.code, PROBE.name, session.refusal())
        return
    read(session, PROBE, outcome, kept.seconds + outcome.seconds)


def compiled(session: Session, cache: CompileCache, probe: Probe, request: Request) -> Kept | None:
    """The package that ``request`` describes, where what it prints speaks of this one."""
    session.begins(f"{probe.name}: {PATIENCE}")
    kept = obtain(session, cache, request)
    reason = unfit(session, str(kept.package), compile_of(request).printer) if kept is not None else None
    if reason is None:
        return kept
    session.leave_out(probe.code, probe.name, reason)
    return None


def read(session: Session, probe: Probe, outcome: Outcome, seconds: float) -> Evidence:
    """Keep what was printed; the first finding."""
    found = list(probe.read(session.case, history_of(session), outcome))
    session.add(found)
    session.ended(probe.name, seconds, found[0].observed)
    return found[0]


def unfit(session: Session, package: str, level: int) -> str | None:
    """Why what that package prints would not speak of this one; None where it does."""
    model, contract = model_in(package)
    features = model.shared_objects[0].features if model is not None and model.shared_objects else None
    if features is None or features.printer_level != level:
        return f"the value printer of level {level} was not compiled in"
    code = compare_code(session.case.model, session.case.contract, model, contract)
    if code.same_kernels is not True:
        return "the recompiled program has different kernels, so its values cannot be attributed to this package"
    return None
