"""The metadata of the model cannot be used: invalid JSON, no device, or a device that torch does not know.

What it does
    Reads each ``*_metadata.json`` of the model and looks at its device key.

Why it matters
    The loader needs the device before anything else. Its messages ("Unsupported device key found", KeyError, a JSON
    parse error) come without the name of the file.

Example:
    AOTI_DEVICE_KEY: observed npu, expected one of cpu, cuda, xpu, mps

When it is wrong
    A build of torch with a private backend knows more devices. Damage in a metadata file that the loader does not open
    is only a warning.
"""

from __future__ import annotations

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import DEVICE_KEY, DEVICES, NO_MODEL, at_member, loader_metadata
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FactValue

FIND = Finder("AD-ART-009", "artifact_bad_metadata")


def run(case: Case) -> Observations:
    """At most one finding per metadata file."""
    if case.model is None:
        yield FIND.unchecked(NO_MODEL)
        return
    wanted, _ = loader_metadata(case.model)
    for entry in case.model.metadata:
        read = wanted is None or entry.member == wanted
        facts: dict[str, FactValue] = {"member": entry.member, "read_by_loader": read}
        device, expected = entry.values.get(DEVICE_KEY), f"one of {', '.join(DEVICES)}"
        if entry.problem:
            # The reader's problems begin with a fixed word: not-json, not-object or not-string.
            kind = "not-string" if entry.problem.startswith("not-string") else "not-json"
            subject, observed = entry.member, entry.problem
            expected = "strings only" if kind == "not-string" else "a JSON object"
        elif device is None:
            kind, subject, observed = "no-device", DEVICE_KEY, "no such key"
        elif device not in DEVICES:
            kind, subject, observed = "unknown-device", DEVICE_KEY, device
            facts["device"] = device
        else:
            continue
        state, source = FIND.error if read else FIND.warn, at_member(case, entry.member)
        yield state(kind, subject, observed=observed, expected=expected, source=source, facts=facts)


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
