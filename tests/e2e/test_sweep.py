"""The demo's model, swept: what the demo breaks by hand is found by nobody's help."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from foundry.place import cache_dir

from aotidoctor.commands import demo
from aotidoctor.commands.sweep import run_sweep
from aotidoctor.commands.sweep.run_sweep import sweep
from aotidoctor.model.case import Options
from aotidoctor.model.fleet import Does, Sweep, SweepVerdict
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder() -> Path:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the demo's packages with")
    return demo.prepare_demo({**os.environ, "XDG_CACHE_HOME": str(cache_dir())}, lambda _event: None)


def swept(package: Path, reference: Path | None, runner: Runner, *, rows: int) -> Sweep:
    """The first rows: then it is interrupted, as by Ctrl-C."""

    def enough(_row: object, at: int, _of: int) -> None:
        if at >= rows:
            raise KeyboardInterrupt

    options = Options(reference=None if reference is None else str(reference))
    return sweep(str(package), options, environ=os.environ, on_row=enough, runner=runner)


def test_the_faults_of_the_demo_are_found(folder: Path, runner: Runner) -> None:
    found = swept(folder / "model.pt2", folder / "exported.pt2", runner, rows=9)
    assert len(found.rows) == 9
    assert found.interrupted
    assert found.unasked == (f"{found.planned - 9} of {found.planned} calls: interrupted",)
    base = found.rows[0]
    assert (base.axis, base.package, base.program, base.judged) == ("base", Does.RIGHT, Does.RIGHT, SweepVerdict.FINE)
    by_change = {(row.axis, row.subject): row for row in found.rows}
    silent = by_change["stride", "args[0]"]
    assert (silent.cause, silent.package, silent.program) == ("input-stride", Does.WRONG, Does.RIGHT)
    assert silent.judged is SweepVerdict.UNGUARDED
    misleading = by_change["dtype", "kwargs['ids']"]
    assert (misleading.change, misleading.cause) == ("int32", "input-dtype")
    assert (misleading.package, misleading.program, misleading.judged) == (Does.ERROR, Does.RIGHT, SweepVerdict.REFUSED)
    needle = by_change["value", "kwargs['ids']"]
    assert "all values 100" in needle.change
    assert (needle.package, needle.program) == (Does.ERROR, Does.ERROR)
    # Equal shapes, exchanged: only the numbers show it, and the program takes dicts by their keys.
    swapped = by_change["keys", "args[1]"]
    assert (swapped.cause, swapped.package, swapped.program) == ("input-tree", Does.WRONG, Does.RIGHT)


def test_a_package_that_fails_as_it_is(folder: Path, runner: Runner) -> None:
    found = swept(folder / "separate_weights.pt2", folder / "exported.pt2", runner, rows=5)
    assert [(row.axis, row.package, row.program, row.judged) for row in found.rows] == [
        ("base", Does.CRASH, Does.RIGHT, SweepVerdict.FAULT)
    ]
    assert found.planned > 50
    assert any("of" in reason for reason in found.unasked)


def test_without_a_program(folder: Path, runner: Runner) -> None:
    found = swept(folder / "model.pt2", None, runner, rows=6)
    assert found.rows[0].package is Does.RETURNS
    assert {row.program for row in found.rows} == {Does.UNKNOWN}
    assert [row.judged for row in found.rows if row.cause == "input-stride"] == [SweepVerdict.UNGUARDED]


def test_a_budget_ends_it(folder: Path, runner: Runner) -> None:
    found = sweep(str(folder / "model.pt2"), Options(budget=0.001), environ=os.environ, runner=runner)
    assert len(found.rows) == 1
    assert any("no time" in reason for reason in found.unasked)


def test_an_id_that_was_made_up_is_no_fault(folder: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a program: the package refuses ids beyond the table, also where something else was changed."""
    plan_calls = run_sweep.plan_calls

    def plan_all_with_ids(*given, **named):
        plan = plan_calls(*given, **named)
        return replace(
            plan, points=tuple(one for at, one in enumerate(plan.points) if "one beyond" in one.text or at % 4 == 0)
        )

    monkeypatch.setattr(run_sweep, "plan_calls", plan_all_with_ids)
    found = sweep(str(folder / "model.pt2"), Options(), environ=os.environ, runner=runner)
    beyond = [row for row in found.rows if "one beyond" in row.change]
    assert {row.axis for row in beyond} == {"value", "pair"}
    assert {row.package for row in beyond} >= {Does.ERROR}
    assert [row.change for row in found.rows if row.judged is SweepVerdict.FAULT] == []
