from __future__ import annotations

import io
import time

import pytest

from aotidoctor.cli.execute import make_progress
from aotidoctor.model.report import Event, EventKind


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def events():
    yield Event(kind=EventKind.STAGE, name="read")
    yield Event(kind=EventKind.PROBE_START, name="plain_run")
    yield Event(kind=EventKind.PROBE_END, name="plain_run", seconds=1.5, verdict="SIGSEGV in\nrun1\x1b[2J", ok=False)
    yield Event(kind=EventKind.TREATMENT, name="cast", seconds=0.25, verdict="heals", ok=True)


def shown(stream, environ, *, quiet=False):
    with make_progress(stream, environ, quiet=quiet) as progress:
        for event in events():
            progress.on_event(event)
    return stream.getvalue()


def test_one_line_per_probe_and_treatment():
    text = shown(Screen(), {"NO_COLOR": "1"})
    lines = [line.rpartition("\r\x1b[2K")[2] for line in text.split("\n")]
    assert [line.split() for line in lines if line] == [
        ["✗", "plain_run", "1.50", "s", "SIGSEGV", "in", "run1", "[2J"],
        ["✓", "treat:", "cast", "0.25", "s", "heals"],
    ]


@pytest.mark.parametrize("environ", [{"CI": "true"}, {"TERM": "dumb"}, {"GITHUB_ACTIONS": "1", "CI": "1"}])
@pytest.mark.parametrize("stream", [Screen, io.StringIO])
def test_a_line_at_the_start_and_one_at_the_end_where_nothing_can_be_wiped(environ, stream):
    text = shown(stream(), environ)
    assert [line.split()[1:3] for line in text.splitlines()] == [
        ["plain_run"],
        ["plain_run", "1.50"],
        ["treat:", "cast"],
    ]
    assert "\r" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("kind", [EventKind.PROBE_END, EventKind.TREATMENT])
def test_what_a_child_wrote_is_redacted_before_it_is_cut(kind):
    environ = {"HOME": "/home/zaphod", "USER": "zaphod"}
    token = "ghp_" + "a1" * 18
    verdict = f"RuntimeError: password=hunter2 {token} /home/zaphod/x tensor([1.5, 2.5])"
    for cut in range(0, 60, 3):
        stream = io.StringIO()
        with make_progress(stream, environ, quiet=False) as progress:
            progress.on_event(Event(kind=kind, name="plain_run", verdict="x" * cut + " " + verdict, ok=False))
        written = stream.getvalue()
        assert not any(word in written for word in ("hunter2", "ghp_", "zaphod", "1.5")), cut
    stream = io.StringIO()
    with make_progress(stream, environ, quiet=False, redact=False) as progress:
        progress.on_event(Event(kind=kind, name="plain_run", verdict=verdict, ok=False))
    assert "hunter2" in stream.getvalue()


def test_quiet_is_silent():
    assert shown(Screen(), {}, quiet=True) == ""
    assert shown(io.StringIO(), {}, quiet=True) == ""
    with make_progress(None, {}, quiet=False) as progress:
        progress.on_event(Event(kind=EventKind.PROBE_START, name="slow"))


def test_seconds_are_counted_while_a_probe_runs():
    screen = Screen()
    with make_progress(screen, {}, quiet=False) as progress:
        progress.on_event(Event(kind=EventKind.PROBE_START, name="slow"))
        time.sleep(0.9)
    assert "slow" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")


def test_a_terminal_that_goes_away_is_no_error():
    screen = Screen()
    with make_progress(screen, {}, quiet=False) as progress:
        screen.close()
        for event in events():
            progress.on_event(event)
