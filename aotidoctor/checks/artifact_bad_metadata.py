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

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import DEVICE_KEY, DEVICES, NO_MODEL, at_member, loader_metadata
from aotidoctor.model.artifact import Metadata
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence, FactValue

FIND = Finder("AD-ART-009", "artifact_bad_metadata")


def run(case: Case) -> Findings:
    """At most one finding per metadata file."""
    if case.model is None:
        return FIND.unchecked(NO_MODEL)
    wanted, _ = loader_metadata(case.model)
    return [
        finding
        for entry in case.model.metadata
        for finding in _examine(case, entry, read=wanted is None or entry.member == wanted)
    ]


def _examine(case: Case, entry: Metadata, *, read: bool) -> list[Evidence]:
    state = FIND.error if read else FIND.warn
    source = at_member(case, entry.member)
    facts: dict[str, FactValue] = {"member": entry.member, "read_by_loader": read}
    if entry.problem:
        # The reader's problems begin with a fixed word: not-json, not-object or not-string.
        kind = "not-string" if entry.problem.startswith("not-string") else "not-json"
        expected = "strings only" if kind == "not-string" else "a JSON object"
        return [state(kind, entry.member, observed=entry.problem, expected=expected, source=source, facts=facts)]
    device = entry.values.get(DEVICE_KEY)
    expected = f"one of {', '.join(DEVICES)}"
    if device is None:
        return [state("no-device", DEVICE_KEY, observed="no such key", expected=expected, source=source, facts=facts)]
    if device not in DEVICES:
        facts["device"] = device
        return [state("unknown-device", DEVICE_KEY, observed=device, expected=expected, source=source, facts=facts)]
    return []


CHECK = FIND.check(run, needs=("artifact_missing", "artifact_wrong_kind"))
