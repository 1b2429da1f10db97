"""Skips with the reason where nothing can be simulated; makes the inputs once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import simulation
from scenarios import SCENARIOS


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """``sample(name)``: the file with inputs of a package, on the device."""
    reason = simulation.missing()
    if reason:
        pytest.skip(reason)
    room = tmp_path_factory.mktemp("inputs")
    machine = simulation.Simulation(room=room)
    done = machine.python(str(Path(__file__).parent / "make_inputs.py"), str(room))
    assert done.returncode == 0, done.stderr
    return lambda name: room / f"{name}.pt"


@pytest.fixture
def examine(tmp_path, sample):
    """``examine(scenario, options...)``: the report of a scenario's run on its simulated machine."""

    def run(name, *options):
        it = SCENARIOS[name]
        reason = simulation.no_toolkit() if it.toolkit else None
        if reason:
            pytest.skip(reason)
        machine = simulation.Simulation(room=tmp_path, gpu=it.gpu, knobs=it.knobs, tools=it.tools, toolkit=it.toolkit)
        return machine.report(it.file(tmp_path), sample(it.inputs), *it.words, *options)

    return run
