"""The failure to be reproduced: how it ends, in terms that do not depend on the process it ends."""

from __future__ import annotations

import re

from aotidoctor.diagnosis.frames import plain_kernel
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.record import record
from aotidoctor.model.run import Outcome
from aotidoctor.probes.plain_run import read_ending
from aotidoctor.probes.probe import succeeded

EARLY = ("start", "import", "setup", "inputs", "load", "after_load")
_LINE = re.compile(r'File "[^"]*/repro\.py", line (\d+)')
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_PATH = re.compile(r"(?:/[\w.+~-]+)+")


@record
class Ending:
    """How a call ended: equal for the same failure with other numbers, on other paths and in other processes.

    ``kind`` as in the finding of the plain run; ``detail`` is the signal, the exit code, or type and words of the
    exception; ``phase`` is ``load`` or ``run``.
    """

    kind: str
    detail: str = ""
    symptom: str = ""
    kernel: str = ""
    phase: str = "run"

    @property
    def text(self) -> str:
        """In a few words."""
        where = {"load": "while loading", "run": "in the call"}[self.phase]
        return f"{self.kind} {self.detail}".strip() + f" {where}" + (f", in {self.kernel}" if self.kernel else "")


def ending_of_finding(item: Evidence) -> Ending:
    """The ending that a finding of the plain run, or of the run with input checks, tells."""
    facts = item.facts
    kernel = facts.get("kernel")
    return Ending(
        kind=item.kind,
        detail=_detail(item),
        symptom=str(facts.get("symptom") or ""),
        kernel=plain_kernel(kernel) if isinstance(kernel, str) and "::" not in kernel else "",
        phase="load" if facts.get("stage") in EARLY else "run",
    )


def _detail(item: Evidence) -> str:
    facts = item.facts
    if item.kind == "raised":
        return _PATH.sub("PATH", _NUMBER.sub("N", str(facts.get("line") or facts.get("type") or "")))[:200]
    return str(facts.get("signal") or facts.get("exit_code") or facts.get("code") or "")


def ending_of_script(case: Case, outcome: Outcome, load_line: int) -> Ending | None:
    """How a run of the script ended; None when it ended well. ``load_line`` is the line that loads the package."""
    if succeeded(outcome):
        return None
    item = read_ending("AD-RUN-001", case, outcome)
    ended = ending_of_finding(item)
    text = outcome.error.traceback if outcome.error is not None else outcome.stderr_tail
    lines = [int(found) for found in _LINE.findall(text)]
    # A traceback names the script's frame first, a dump of a crash last; there is one frame of it in either.
    phase = "load" if lines and lines[-1] <= load_line else "run"
    return Ending(kind=ended.kind, detail=ended.detail, symptom=ended.symptom, kernel=ended.kernel, phase=phase)
