"""The progress of a batch: numbers, what is left, the causes so far; nothing of a stranger's that a terminal obeys."""

from __future__ import annotations

import io
import time

from aotidoctor.cli.batch_progress import BatchProgress, progress_line
from aotidoctor.fleet.flow import FleetTally
from aotidoctor.model.fleet import FleetResult


def tally(**causes):
    made = FleetTally(total=10_000, since=time.monotonic() - 10)
    for cause, count in causes.items():
        for _ in range(count):
            made.judged += 1
            verdict = "healthy" if cause == "healthy" else "problem"
            made.add(FleetResult(item="a" * 16, name="m", command="check", verdict=verdict, cause=cause))
    return made


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_line_says_how_many_how_fast_how_long_and_what():
    line = progress_line(tally(healthy=60, a=20, b=10, c=5, d=4, e=1))
    assert "100/10,000" in line
    assert "10.0/s" in line
    assert "16m" in line
    assert "20 a, 10 b, 5 c, 5 others" in line
    assert "healthy" not in line


def test_nothing_is_known_before_the_first_answer():
    assert "left" not in progress_line(FleetTally(total=5))


def test_a_cause_of_a_stranger_cannot_steer_a_terminal():
    strange = tally()
    strange.judged = 1
    strange.add(FleetResult(item="a" * 16, name="m", command="check", verdict="problem", cause="\x1b[31m\nx"))
    assert "\x1b" not in progress_line(strange)
    assert "\n" not in progress_line(strange)


def test_a_terminal_has_one_line_that_is_cleared_and_a_file_few_of_them():
    live, lines = Terminal(), io.StringIO()
    for stream in (live, lines):
        progress = BatchProgress(stream, {}, quiet=False)
        for _ in range(50):
            progress.show(tally(a=1))
        progress.close()
    assert "1/10,000" in live.getvalue()
    assert "\n" not in live.getvalue()
    assert live.getvalue().endswith("\x1b[2K")
    assert lines.getvalue() == ""
    silent = Terminal()
    BatchProgress(silent, {}, quiet=True).show(tally(a=1))
    assert silent.getvalue() == ""
    ci = Terminal()
    BatchProgress(ci, {"CI": "1"}, quiet=False).show(tally(a=1))
    assert ci.getvalue() == ""
