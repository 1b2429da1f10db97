"""Record the outcomes of all scenarios, or of those named: ``python tests/cuda_sim/record.py [NAME ...]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from scenarios import PROGRAM, RECORDED, SCENARIOS
from simulation import Simulation, forget_packages, missing

HERE = Path(__file__).parent


def main(names: list[str]) -> None:
    reason = missing()
    if reason:
        raise SystemExit(reason)
    RECORDED.mkdir(exist_ok=True)
    make_inputs()
    for name in names or SCENARIOS:
        with tempfile.TemporaryDirectory() as room:
            record(name, Path(room))


def make_inputs() -> None:
    with tempfile.TemporaryDirectory() as room:
        run(Simulation(room=Path(room)), HERE / "make_inputs.py", RECORDED)
    if not PROGRAM.exists():
        with tempfile.TemporaryDirectory() as room:
            run(Simulation(room=Path(room)), HERE / "make_program.py", PROGRAM)


def record(name: str, room: Path) -> None:
    it = SCENARIOS[name]
    machine = Simulation(room=room, gpu=it.gpu, knobs=it.knobs, tools=it.tools, toolkit=it.toolkit)
    forget_packages()
    run(machine, HERE / "observe.py", it.file(room), RECORDED / f"{it.inputs}.pt", RECORDED / f"{name}.json", name)
    print(name)


def run(machine: Simulation, script: Path, *arguments: Path | str) -> None:
    done = machine.python(str(script), *map(str, arguments))
    if done.returncode != 0:
        raise SystemExit(done.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
