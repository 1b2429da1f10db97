"""What to say of a cause when it is an exported program that shows it, and not yet a package.

Playbooks speak of packages: their words for how a fault looks and what to do are right for most rules, and replaced
here for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.diagnosis import Diagnosis
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.record import record

_SAVE = "torch.export.save(torch.export.export(model, args), 'exported.pt2')"


@record
class Advice:
    """Texts in place of the playbook's; ``{subject}`` is the finding's. An empty one leaves the playbook's."""

    looked_like: str = ""
    remedy: str = ""
    command: str = ""


_ABSENT = Advice(
    remedy="Save the program again, with everything that belongs to it; {subject} is missing from this file.",
    command=_SAVE,
)
_LATE = (
    "compiling fails: torch._subclasses.fake_tensor.UnsupportedOperatorException, or an assertion in the fake kernel"
)
ADVICE: Mapping[tuple[str, str], Advice] = {
    ("VERIFY-L01", "json"): Advice(
        looked_like="an error in torch.export.load", remedy="Save the program again, or copy the file again."
    ),
    ("VERIFY-L02", "operator-missing"): Advice(
        looked_like="SerializeError: We failed to resolve torch.ops... to an operator",
        remedy="Register {subject} before the program is loaded: import its module, or load its library.",
        command="aotidoctor verify exported.pt2 --setup ops.py   # or --custom-op-library libops.so",
    ),
    ("VERIFY-L03", "weights"): replace(_ABSENT, looked_like="an AssertionError in torch.export.load"),
    ("VERIFY-L03", "constants"): replace(_ABSENT, looked_like="an AssertionError in torch.export.load"),
    ("VERIFY-L03", "sample-inputs"): replace(_ABSENT, looked_like="an error in torch.export.load"),
    ("VERIFY-L04", "schema-version"): Advice(
        looked_like="SerializeError: Serialized schema version ... does not match our current schema version",
        remedy="Verify and compile with the torch that saved the program, or export it again with this one.",
        command=_SAVE,
    ),
    ("VERIFY-S03", "absent"): _ABSENT,
    ("VERIFY-S04", "absent"): _ABSENT,
    ("VERIFY-S05", "absent"): _ABSENT,
    ("VERIFY-S06", "absent"): _ABSENT,
    ("VERIFY-A03", "no-fake"): Advice(
        looked_like=_LATE,
        remedy="Register a fake kernel for {subject}: shapes and dtypes of its results, without computing them.",
        command="torch.library.register_fake('{subject}')(lambda x: torch.empty_like(x))",
    ),
    ("VERIFY-A11", "symbolic-input"): Advice(
        looked_like="compiling fails (Expected a proper Tensor but got None), or each call gets the sample's number",
        remedy="Give {subject} to forward as a tensor, or take the number from the size of one, and export again.",
        command="ep = torch.export.export(model, (x, torch.tensor(5)))   # forward: n.item() where it is needed",
    ),
    ("VERIFY-A11", "object-input"): Advice(
        looked_like="a package that drops the object: it takes tensors only",
        remedy="Make {subject} an attribute of the module, and export again.",
        command=_SAVE,
    ),
}  # fmt: skip


def advised(diagnoses: Sequence[Diagnosis], findings: Sequence[Evidence]) -> tuple[Diagnosis, ...]:
    """The diagnoses with the words for a program, and with the verifier's sentence where it is about that."""
    by_id = {item.id: item for item in findings}
    return tuple(_advised(item, by_id.get(item.evidence[0]) if item.evidence else None) for item in diagnoses)


def _advised(diagnosis: Diagnosis, lead: Evidence | None) -> Diagnosis:
    if lead is None:
        return diagnosis
    advice = ADVICE.get((lead.code, lead.kind), Advice())
    said = lead.facts.get("verifier")
    subject = lead.subject or "it"
    remedy = replace(
        diagnosis.remedy,
        text=advice.remedy.replace("{subject}", subject) or diagnosis.remedy.text,
        command=advice.command.replace("{subject}", subject) or diagnosis.remedy.command,
    )
    looked_like = str(said) if isinstance(said, str) else advice.looked_like or diagnosis.looked_like
    return replace(diagnosis, looked_like=looked_like, remedy=remedy)
