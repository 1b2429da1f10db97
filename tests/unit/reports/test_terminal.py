from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from aotidoctor.model.evidence import FAILED_HERE, NotChecked, Severity, shorten
from aotidoctor.reports.terminal import terminal_report as terminal
from aotidoctor.reports.terminal.terminal_layout import capture_for_stream
from tests.unit.reports import builders


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, encoding="utf-8"):
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self):
        return self._encoding

    def isatty(self):
        return True


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
@pytest.mark.parametrize("detail", [-1, 0, 1, 2])
def test_80_columns_hold_every_line_but_those_to_copy(name, detail):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    text = terminal.plain_terminal_text(report, width=80, detail=detail)
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


@pytest.mark.parametrize(
    ("columns", "widest"), [("0", 200), ("", 200), ("-3", 200), ("1e3", 200), ("1", 20), ("72", 72), ("99999999", 1000)]
)
def test_the_width_that_the_environment_names(columns, widest):
    """Some programs say 0 for a width that nobody knows: rich would print nothing at all."""

    def show(console):
        console.print("word " * 1000)

    lines = capture_for_stream(show, stream=io.StringIO(), environ={"COLUMNS": columns}).splitlines()
    assert widest - len("word ") < max(map(len, lines)) <= widest


def test_a_failure_of_aotidoctor_is_on_the_first_screen():
    broken = tuple(
        NotChecked(code="AD-IN-014", name=f"check_{number}", reason=f"{FAILED_HERE}: Traceback") for number in range(6)
    )
    text = terminal.plain_terminal_text(replace(builders.healthy(), not_checked=broken), detail=-1)
    assert "Failed here check_0, check_1, check_2, check_3 and 2 more" in text
    assert "Failed here" not in terminal.plain_terminal_text(builders.healthy(), detail=-1)


def test_moot_questions_are_shown_with_v_only():
    moot = NotChecked(code="AD-RUN-022", name="blame", reason="nothing failed", moot=True)
    report = replace(builders.healthy(), not_checked=(*builders.healthy().not_checked, moot))
    assert "blame" not in terminal.plain_terminal_text(report)
    assert "blame (AD-RUN-022): nothing failed" in terminal.plain_terminal_text(report, detail=1)


def test_the_first_screen_is_in_order():
    text = terminal.plain_terminal_text(builders.misleading(), detail=-1)
    parts = [
        "PROBLEM",
        "input-dtype",
        "kwargs['ids']",
        "index out of bounds",
        "observed int32, expected int64",
        "confirmed",
        "Pass int64",
        "torch.int64",
        "Tried",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert len(text.splitlines()) < 24


def test_quiet_is_the_first_screen_only():
    report = builders.misleading()
    assert terminal.plain_terminal_text(report, detail=0).startswith(terminal.plain_terminal_text(report, detail=-1))
    assert "Evidence" not in terminal.plain_terminal_text(report, detail=-1)


def test_the_marked_leaf_is_the_one_that_differs():
    lines = terminal.plain_terminal_text(builders.misleading()).splitlines()
    marked = [line for line in lines if line.strip().startswith("x ")]
    assert len(marked) == 1
    assert "kwargs['ids']" in marked[0]
    assert "int64" in marked[0]
    assert "int32" in marked[0]


def test_healthy_is_one_calm_screen():
    text = terminal.plain_terminal_text(builders.healthy())
    assert len(text.splitlines()) < 24
    assert "HEALTHY" in text
    assert "Evidence" not in text


def test_unknown_says_what_is_known_and_what_to_try():
    text = terminal.plain_terminal_text(builders.unknown(), detail=-1)
    assert "SIGSEGV" in text
    assert "Segmentation fault" in text
    assert "--reference" in text


def test_not_checked_is_always_shown():
    assert "input_shape_disagree" in terminal.plain_terminal_text(builders.misleading())


def test_one_of_many_leaves_is_not_hidden_when_marked():
    report = builders.misleading()
    leaves = tuple(replace(builders.X, path=f"args[{n}]") for n in range(99))
    contract = replace(builders.CONTRACT, leaves=(*leaves, builders.IDS))
    text = terminal.plain_terminal_text(replace(report, case=replace(report.case, contract=contract)))
    assert re.search(r"x +kwargs\['ids'\]", text)
    assert "more leaves" in text


@pytest.mark.parametrize(
    ("environ", "colour"),
    [({"TERM": "xterm-256color"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_follows_the_environment(environ, colour):
    text = terminal.terminal_text(builders.misleading(), stream=Terminal(), environ=environ)
    assert (re.search("\x1b\\[[0-9;]*3[1-7]m|\x1b\\[[0-9;]*7;3", text) is not None) == colour


def test_force_colour_without_a_terminal():
    assert "\x1b[" in terminal.terminal_text(builders.misleading(), stream=io.StringIO(), environ={"FORCE_COLOR": "1"})
    assert "\x1b[" not in terminal.terminal_text(builders.misleading(), stream=io.StringIO(), environ={})


def test_an_ascii_terminal_gets_ascii():
    assert terminal.terminal_text(builders.misleading(), stream=Terminal("ascii"), environ={"TERM": "dumb"}).isascii()


def test_verbose_shows_what_children_printed():
    assert "Traceback:" not in terminal.plain_terminal_text(builders.misleading(), detail=0)
    assert "Traceback:" in terminal.plain_terminal_text(builders.misleading(), detail=1)


@pytest.mark.parametrize("why", ["interrupted", "out_of_time"])
def test_a_partial_report_is_not_called_healthy(why):
    text = terminal.plain_terminal_text(replace(builders.healthy(), **{why: True}), detail=-1)
    assert "HEALTHY" not in text
    assert "Partial" in text


def first_line(report):
    return terminal.plain_terminal_text(report).split("\n")[0]


def test_what_was_only_loaded_was_not_called():
    report = builders.healthy()
    assert "nothing was called" in first_line(replace(report, case=replace(report.case, inputs=None)))


def test_healthy_tells_of_warnings():
    report = builders.healthy()
    found = replace(builders.misleading().findings[0], severity=Severity.WARN)
    assert first_line(report).endswith("runs")
    assert first_line(replace(report, findings=(found, found))).endswith("runs; 2 warnings")


def test_a_long_message_does_not_make_a_long_headline():
    report = builders.misleading()
    title = replace(report.diagnoses[0], title="a" * 5000)
    screen = terminal.plain_terminal_text(replace(report, diagnoses=(title, *report.diagnoses[1:])), detail=-1)
    assert screen.count("a" * 20) <= 24
    assert "…" in screen


def page(report, stream, columns):
    text = terminal.terminal_text(report, stream=stream, environ={"COLUMNS": str(columns), "TERM": "xterm"})
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_headline_is_cut_only_in_a_terminal_and_only_to_two_lines():
    report = builders.misleading()
    words = " ".join(f"word{number}" for number in range(40))
    long = replace(report, diagnoses=(replace(report.diagnoses[0], title=words), *report.diagnoses[1:]))
    for stream, columns in ((io.StringIO(), 200), (Terminal(), 300)):
        assert words in " ".join(page(long, stream, columns).split("\n\n")[0].split())
    first = page(long, Terminal(), 80).split("\n\n")[0]
    assert "more characters)" in first
    assert len(first.splitlines()) <= 5


@pytest.mark.parametrize("length", [1, 80, 120, 250])
def test_names_and_reasons_are_whole(length):
    report = builders.misleading()
    name, reason = "n" * length, "r" * length
    unseen = NotChecked(code="AD-RUN-010", name="plain_run", reason=reason)
    first = replace(report.diagnoses[0], subject=name)
    other = replace(report.findings[0], subject=name, severity=Severity.ERROR)
    changed = replace(report, diagnoses=(first,), findings=(other,), not_checked=(unseen,))
    for made in (changed, replace(changed, diagnoses=(), verdict="healthy")):
        screen = "".join(page(made, io.StringIO(), 400).split())
        assert name in screen
        assert reason in screen


@pytest.mark.parametrize("limit", [20, 200, 300])
def test_a_text_is_cut_only_when_it_gets_shorter(limit):
    for length in range(limit, limit + 60):
        made = shorten("x" * length, limit)
        assert made == "x" * length or (len(made) < length and made.startswith("x" * limit))
    assert "(40 more characters)" in shorten("x" * (limit + 40), limit)


def test_what_cannot_be_examined_is_one_line():
    report = replace(builders.misleading(), cannot_examine="no such file: nope.pt")
    assert "How sure" not in terminal.plain_terminal_text(report, detail=-1)
