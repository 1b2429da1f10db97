"""Values of kernels from a recompiled package that prints them: for hosts where they cannot be followed otherwise.

Two child runs after the ladder: a compile with the value printer (or a package kept from an earlier call), and one
call. What is asked when, and what was printed, is in ``probes.printed_values`` and ``localize.printed``.
"""

from __future__ import annotations

from aotidoctor.artifact import read_artifact
from aotidoctor.casebook import select_model
from aotidoctor.climb import Climb
from aotidoctor.compile_cache import CompileCache, open_cache
from aotidoctor.contract import read_contract
from aotidoctor.ladder import history_of, plan_of
from aotidoctor.localize.package_code import compare_code
from aotidoctor.model.event import Event, EventKind
from aotidoctor.model.evidence import NotChecked
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.run import Request
from aotidoctor.probes import printed_values
from aotidoctor.recompilation import PATIENCE, guarded, obtain, say_why, tell

PROBE = printed_values.PROBE


def print_values(climb: Climb, cache: CompileCache | None = None) -> None:
    """Ask it, if nothing else told; adds its findings."""
    guarded(climb, PROBE, lambda: _print_values(climb, cache or open_cache()))


def _print_values(climb: Climb, cache: CompileCache) -> None:
    plan = plan_of(PROBE, climb)
    if not isinstance(plan, Request):
        say_why(climb, plan)
        return
    climb.on_event(Event(kind=EventKind.PROBE_START, name=f"{PROBE.name}: {PATIENCE}"))
    kept = obtain(climb, cache, plan)
    if kept is None:
        return
    level = plan.payload["printer"]
    reason = unfit(climb, str(kept.package), level)
    outcome = climb.run(printed_values.call_request(climb.case, str(kept.package), level)) if reason is None else None
    if outcome is None:
        climb.not_checked.append(NotChecked(code=PROBE.code, name=PROBE.name, reason=reason or climb.refusal()))
        return
    found = list(PROBE.read(climb.case, history_of(climb), outcome))
    climb.add(found)
    tell(climb, PROBE.name, kept.seconds + outcome.seconds, found[0].observed, ok=None)


def unfit(climb: Climb, package: str, level: JsonValue) -> str | None:
    """Why what that package prints would not speak of this one; None where it does."""
    artifact = read_artifact(package)
    model = select_model(artifact, None)
    contract = read_contract(artifact, model) if model is not None else None
    features = model.shared_objects[0].features if model is not None and model.shared_objects else None
    if features is None or features.printer_level != level:
        return f"the value printer of level {level} was not compiled in"
    code = compare_code(climb.case.model, climb.case.contract, model, contract)
    if code.same_kernels is not True:
        return "compiled here, the program has other kernels: what they print says nothing of this package"
    return None
