"""The model's weights are outside its shared object, and nothing shows that they are loaded.

What it does
    Determines where the constants are: in the object, memory-mapped, in a blob (all loaded automatically), on disk
    inside the package, or not in the package.

Why it matters
    ``aoti_load_package`` loads such a package without complaint, and the first call crashes with SIGSEGV without a
    message.

Example:
    l.weight: observed 3 constants that are not loaded, expected weights in the package or a call of load_constants

When it is wrong
    Your program calls load_constants after loading, or load_pt2(path, load_weights_from_disk=True). Declare this with a
    --setup file that defines ``after_load(model)``; a file without it loads none.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import NO_MODEL, at_member
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import plural

FIND = Finder("AD-LOAD-002", "weights_not_loaded")
_KINDS = {"external": "external", "disk": "on-disk"}


def run(case: Case) -> Findings:
    """At most one finding."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    where = case.contract.weights if case.contract else case.model.weights_location
    if where == "unknown":
        return FIND.unchecked("the package does not record where its weights are")
    if where not in _KINDS or (case.contract is not None and case.contract.n_constants == 0):
        return None
    names = [constant.fqn for constant in case.contract.constants] if case.contract else []
    count = len(names) or (case.contract.n_constants if case.contract else None)
    what = plural(count, "constant") if count else "constants"
    loaded = case.options.weights is not None or (case.options.setup and case.setup_loads is not False)
    state = FIND.info if loaded else FIND.error
    remedy = (
        "torch.export.pt2_archive._package.load_pt2(path, load_weights_from_disk=True)"
        if where == "disk"
        else "model.load_constants(state_dict, check_full_update=True)"
    )
    return state(
        _KINDS[where],
        names[0] if names else "constants",
        observed=f"{what} on disk in the package" if where == "disk" else f"{what} outside the package",
        expected="weights that are loaded with the package, or a call that loads them",
        message=f"{what} not in the shared object; aoti_load_package leaves them unset and the first run "
        "crashes: "
        f"load with {remedy}",
        source=at_member(case, case.contract.member if case.contract else None),
        facts={"weights": where, "constants": tuple(names[:50]), "count": count, "remedy": remedy},
    )


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind", "artifact_incomplete"), facts=("constant",))
