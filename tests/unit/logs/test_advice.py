"""What to do next, as commands that can be pasted."""

from __future__ import annotations

from aotidoctor.logs.diagnose_log import next_steps
from tests.unit.logs.reading import read

FAILED = "RuntimeError: something that nobody knows\n"


def test_the_commands_name_the_files_that_were_given():
    steps = next_steps(read(FAILED), package="m.pt2", inputs="ids.pt")
    assert any(step.startswith("aotidoctor run m.pt2 --inputs ids.pt ") for step in steps)


def test_without_files_they_are_examples():
    steps = next_steps(read(FAILED), package=None)
    assert any("aotidoctor run model.pt2 --inputs sample.pt " in step for step in steps)


def test_names_that_a_shell_would_take_apart_are_quoted():
    steps = next_steps(read(FAILED, name="-x.log"), package=None)
    assert any(step.startswith("aotidoctor classify ./-x.log ") for step in steps)
    steps = next_steps(read(FAILED), package="my model.pt2", inputs="a;b.pt")
    assert any(step.startswith("aotidoctor run 'my model.pt2' --inputs 'a;b.pt' ") for step in steps)
