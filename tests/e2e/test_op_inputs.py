"""Arguments of custom operators, saved from real packages while they run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from foundry.cases import Kit
from foundry.ops import FINE, cpp_op

from aotidoctor.model.jobs import InputsSource, Run, UserCode
from aotidoctor.model.run import Exited, Request, Signalled
from aotidoctor.runner.runner import Runner

pytestmark = pytest.mark.torch

TWO = ["zoo::behave", "zoo::misbehave"]
# As on a machine where calls cannot be hooked: there is nothing to find out by hooks.
NO_LIST = """
def after_load(model):
    for path in model.directory.rglob("*.wrapper.json"):
        path.unlink()
"""


@pytest.fixture
def capture(runner: Runner, packages: Kit, case_dir: Path):
    """The outcome of the job ``op_inputs``, and the saved calls loaded."""

    def ask(base: str, setup: str, targets: list[str], reference: bool = False):
        import torch

        (case_dir / "setup_case.py").write_text(setup)
        payload = Run(
            package=str(packages.package(base)),
            inputs=InputsSource(path=str(packages.sample_path(base))),
            code=UserCode(setup=str(case_dir / "setup_case.py")),
            targets=tuple(targets),
            reference=str(packages.exported(base)) if reference else None,
        )
        outcome = runner.run(Request(probe="op_inputs", job="op_inputs", payload=payload, timeout=60))
        calls = outcome.result.get("captured", [])
        return outcome, [torch.load(call["file"], weights_only=True) for call in calls]

    return ask


def test_each_call_is_saved_and_the_last_is_not_made(capture, packages):
    import torch

    outcome, calls = capture("twoops", cpp_op(packages.library, ""), TWO)
    assert outcome.ending == Exited(code=0, done=True)
    assert [(call["index"], call["target"]) for call in outcome.result["captured"]] == [
        (0, "zoo::behave"), (1, "zoo::misbehave"), (2, "zoo::behave")]  # fmt: skip
    x = packages.call("twoops")[0][0]
    first, second, third = (call["tensors"][0] for call in calls)
    assert torch.equal(first, x)
    torch.testing.assert_close(second, torch.sigmoid(x) + 1)
    torch.testing.assert_close(third, (torch.sigmoid(x) + 1) * 4)


def test_what_an_operator_does_cannot_cost_its_arguments(capture, packages):
    alone, calls = capture("misbehave", cpp_op(packages.library, "segv"), ["zoo::misbehave"])
    assert (alone.ending, len(calls)) == (Exited(code=0, done=True), 1)
    both, calls = capture("twoops", cpp_op(packages.library, "segv"), TWO)
    assert isinstance(both.ending, Signalled)
    assert [call["target"] for call in calls] == TWO


def test_all_kinds_of_arguments(capture, packages):
    import torch

    targets = [f"zoofine::{name}" for name in ("mix", "halves", "rows", "add_one_", "positive", "noise", "say")]
    outcome, calls = capture("fineops", FINE, targets)
    assert outcome.result["skipped"] == []
    assert [call["target"] for call in calls] == targets
    x = packages.call("fineops")[0][0]
    mix = calls[0]
    plain = {name: given[1] for name, given in mix["arguments"].items() if given[0] == "value"}
    assert plain == {"bias": None, "rows": 4, "factor": 0.5, "mode": "sum", "sizes": [4, 4], "flag": True, "alpha": 2,
                     "device": None, "layout": None}  # fmt: skip
    assert mix["arguments"]["more"] == ["tensors", [None, 3]]
    for given, expected in zip(mix["tensors"], (x, x + 1, x * 2, x * 3), strict=True):
        torch.testing.assert_close(given, expected)


def test_the_exported_program_stands_in_where_calls_cannot_be_hooked(capture, packages):
    import torch

    setup = cpp_op(packages.library, "") + NO_LIST
    without, calls = capture("twoops", setup, TWO)
    assert calls == []
    assert "list of the package's operator calls" in without.result["unavailable"]
    with_one, calls = capture("twoops", setup, TWO, reference=True)
    assert with_one.result["by"] == "reference"
    assert [call["target"] for call in calls] == ["zoo::behave", "zoo::misbehave", "zoo::behave"]
    x = packages.call("twoops")[0][0]
    torch.testing.assert_close(calls[1]["tensors"][0], torch.sigmoid(x) + 1)


def test_nothing_saved_outlives_the_runner(packages, tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "setup_case.py").write_text(cpp_op(packages.library, ""))
    payload = Run(
        package=str(packages.package("misbehave")),
        inputs=InputsSource(path=str(packages.sample_path("misbehave"))),
        code=UserCode(setup=str(tmp_path / "setup_case.py")),
        targets=("zoo::misbehave",),
    )
    with Runner(environ={**os.environ, "TMPDIR": str(tmp_path / "tmp")}) as made:
        outcome = made.run(Request(probe="op_inputs", job="op_inputs", payload=payload, timeout=60))
        saved = Path(outcome.result["captured"][0]["file"])
        assert saved.is_file()
    assert not saved.exists()
    assert list((tmp_path / "tmp").iterdir()) == []
