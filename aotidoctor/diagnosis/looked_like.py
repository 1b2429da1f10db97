"""What the user saw, as opposed to what it is.

From the plain run where there was one; otherwise the playbook says what PyTorch itself would have shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.diagnosis.explain import PLAIN_RUN
from aotidoctor.diagnosis.wording import fill
from aotidoctor.model.diagnosis import Playbook
from aotidoctor.model.evidence import Evidence, Severity

RETURNED = "returned without an error"
LIMIT = 200
INPUTS_FILE = "AD-IN-001"
_STAGES = {
    "start": "before anything ran",
    "import": "while importing torch",
    "setup": "in the setup file",
    "inputs": "while reading the inputs",
    "load": "at load",
    "after_load": "after the load",
    "scan": "after the call",
}


def looked_like(playbook: Playbook, lead: Evidence, evidence: Sequence[Evidence], findings: Sequence[Evidence]) -> str:
    """One line: the failure that the evidence accounts for, else the silent return, else the playbook's words."""
    failed = next((item for item in evidence if item.code == PLAIN_RUN and item.severity is Severity.ERROR), None)
    if failed is not None:
        return seen(failed)
    returned = any(item.code == PLAIN_RUN and item.kind == "ok" for item in findings)
    # Inputs that cannot be read were not given to the call that returned.
    if returned and playbook.stage != "output" and lead.code != INPUTS_FILE:
        return RETURNED
    return fill(playbook.looked_like, lead)


def seen(item: Evidence) -> str:
    """What a failed plain run showed, in one line."""
    match item.kind:
        case "signalled":
            showed = f"killed by {item.facts.get('signal') or 'a signal'}"
        case "timed-out":
            showed = "no return"
        case "exited":
            showed = "the process ended without an error"
        case "out-of-memory":
            showed = "killed for memory"
        case "raised":
            showed = _message(item)
        case _:
            return _first_line(item.observed)
    return f"{showed} {stage_text(item.facts.get('stage'))}".strip()


def stage_text(stage: object) -> str:
    """``at the first call`` for ``run1``; empty for what is unknown."""
    if not isinstance(stage, str):
        return ""
    if stage.startswith("run"):
        return "in the first call" if stage in ("run", "run1") else f"in call {stage[3:]}"
    return _STAGES.get(stage, "")


def _message(item: Evidence) -> str:
    kind, said = item.facts.get("type"), item.facts.get("line")
    line = _first_line(said if isinstance(said, str) and said else item.observed)
    return line if not isinstance(kind, str) or line.startswith(kind) else f"{kind}: {line}"


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LIMIT else f"{line[: LIMIT - 1]}…"
