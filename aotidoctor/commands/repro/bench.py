"""Where a script is tried: a folder, child processes, and what came of each attempt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from aotidoctor.commands.repro.failure import Ending, ending_of_script
from aotidoctor.commands.repro.script import NAME, Recipe, script_text
from aotidoctor.model.case import Case
from aotidoctor.model.event import Event, EventKind, OnEvent
from aotidoctor.model.jobs import Job, SaveInputs, Script
from aotidoctor.model.run import Outcome, Request
from aotidoctor.probes.payload import device_of, inputs_source
from aotidoctor.runner import Runner

PROBE = "repro"
# A new interpreter imports torch, and looks at the CPU, within its time.
FRESH = 3.0
VALUES = "values.pt"


@dataclass(slots=True, kw_only=True)
class Bench:
    """``folder`` holds the package and whatever else the script names. ``tried`` says what each attempt came to.

    ``wanted`` is how the script has to end, None as long as that is not settled.
    """

    case: Case
    runner: Runner
    folder: Path
    timeout: float
    on_event: OnEvent = lambda _event: None
    wanted: Ending | None = None
    tried: list[str] = field(default_factory=list)

    def ending(self, recipe: Recipe, what: str, *, fresh: bool = False) -> Ending | None:
        """How the script of ``recipe`` ends; None when it ends well. ``what`` names the attempt."""
        text, load_line = script_text(recipe)
        path = self.folder / NAME
        path.write_text(text, encoding="utf-8")
        outcome = self._run(what, "script", Script(path=str(path.absolute()), torch=not fresh), fresh=fresh)
        ended = ending_of_script(self.case, outcome, load_line)
        self.tried.append(f"{what}: {ended.text if ended is not None else 'no failure'}")
        return ended

    def fails_alike(self, recipe: Recipe, what: str, *, fresh: bool = False) -> bool:
        """Whether it ends as it has to."""
        return self.wanted is not None and self.ending(recipe, what, fresh=fresh) == self.wanted

    def save_values(self, paths: list[str] | None) -> bool:
        """Write tensors of the user's inputs beside the script; False when they cannot be."""
        target = self.folder / VALUES
        inputs = inputs_source(self.case)
        if inputs is None:
            return False
        wanted = None if paths is None else tuple(paths)
        payload = SaveInputs(inputs=inputs, target=str(target.absolute()), paths=wanted)
        outcome = self._run("save inputs", "save_inputs", payload)
        return outcome.error is None and target.exists()

    def save_call(self, recipe: Recipe, target: Path) -> bool:
        """Write the call that the script makes, as an inputs file."""
        text, load_line = script_text(recipe)
        head = "\n".join(text.splitlines()[: load_line - 1])
        path = self.folder / ".call.py"
        saved = f'torch.save({{"args": args, "kwargs": kwargs}}, {str(target.absolute())!r})'
        path.write_text(f"{head}\n{saved}\n", encoding="utf-8")
        outcome = self._run("save call", "script", Script(path=str(path.absolute()), torch=True))
        path.unlink()
        return outcome.error is None and target.exists()

    def _run(self, what: str, job: str, payload: Job, *, fresh: bool = False) -> Outcome:
        self.on_event(Event(kind=EventKind.PROBE_START, name=PROBE))
        begun = time.monotonic()
        limit = FRESH if fresh else 1.0
        # A driver must not be forked.
        fresh = fresh or device_of(self.case) != "cpu"
        request = Request(
            probe=PROBE, job=job, payload=payload, fresh=fresh, timeout=limit * self.timeout, purpose=what
        )
        outcome = self.runner.run(request)
        seconds = time.monotonic() - begun
        self.on_event(Event(kind=EventKind.PROBE_END, name=PROBE, seconds=seconds, verdict=what))
        return outcome
