"""The call that failed, as the program made it: a second run of a Python program that keeps the arguments of its calls.

With them the failure can be examined outside of the program, as ``run`` does. The second run is the "again, unchanged"
of the probes, too. A program that is no Python program, or calls the package in another way than what
``aoti_load_package`` returns, leaves nothing, which is said.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aotidoctor.commands.watch.outcome import Repeat, outcome_of, with_said
from aotidoctor.commands.watch.repeats import Again, first_repeat
from aotidoctor.model.run import Outcome
from aotidoctor.model.watched import Program, Watched
from aotidoctor.worker.recorder import sitecustomize

# The call that did not return says most; of several threads the last.
_STATES = ("raised", "entered", "returned")
_NOTHING = (
    "no call was recorded: the program is not a Python program, or never called the result of aoti_load_package; "
    "pass the inputs with --inputs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The second run; ``inputs`` is a file of ``torch.save``, or ``problem`` says why there is none.

    ``state``: the call ``raised``, was ``entered`` and never left, or ``returned``. ``package`` is what was called.
    """

    watched: Watched
    outcome: Outcome
    state: str = ""
    inputs: str | None = None
    package: str | None = None
    problem: str = ""

    @property
    def is_failing(self) -> bool:
        """Whether the call did not return."""
        return self.state in ("raised", "entered")


def record(
    watched: Watched,
    outcome: Outcome,
    again: Again,
    room: str,
    environ: Mapping[str, str],
    *,
    limit: float,
    has_gdb: bool,
) -> Recorded:
    """Run it again with the recorder in its path; what is written goes to the folder ``room``."""
    repeat = first_repeat(watched, outcome, has_gdb=has_gdb)
    folder = os.path.dirname(os.path.abspath(sitecustomize.__file__))  # noqa: PTH100, PTH120 - a search path
    path = os.pathsep.join(filter(None, (folder, environ.get("PYTHONPATH"))))
    program = Program(argv=watched.argv, env={"PYTHONPATH": path, sitecustomize.ROOM: room}, limit=limit)
    seen = with_said(again(program, repeat.name == "again_under_gdb"))
    ended = outcome_of(seen, Repeat(name=repeat.name, purpose=repeat.purpose, id="W2"), timeout=limit)
    return _found(seen, ended, Path(room))


def _found(watched: Watched, outcome: Outcome, room: Path) -> Recorded:
    for state in _STATES:
        files = sorted(room.glob(f"*.{state}.pt"), key=lambda path: path.stat().st_mtime_ns)
        if files:
            stem = files[-1].name.partition(".")[0]
            package = _text(room / f"{stem}.package")
            is_there = package is not None and Path(package).exists()
            return Recorded(
                watched=watched,
                outcome=outcome,
                state=state,
                inputs=str(files[-1]),
                package=package if is_there else None,
            )
    problems = [_text(path) for path in sorted(room.glob("*.problem"))]
    return Recorded(watched=watched, outcome=outcome, problem=next(filter(None, problems), _NOTHING))


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(4096)
    except OSError:
        return None
