"""What web pages, editors and mails do to a text is undone, and nothing else."""

from __future__ import annotations

import pytest

from aotidoctor.logs.assembly import without_margins
from aotidoctor.logs.lines import LogLine, plain_spelling
from aotidoctor.logs.log_reading import other_readings
from tests.unit.logs.reading import causes, read

TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/app/run.py", line 11, in <module>',
    "    output = model(x)",
    "RuntimeError: Could not find schema for mylib::custom_op.",
)


def test_entities_and_quotes_are_those_of_a_terminal():
    assert plain_spelling("expected &lt;&#39;a&#39;&gt; &amp; more") == "expected <'a'> & more"
    assert (
        plain_spelling("a.cpp:3:4: error: \u2018buf7\u2019 was not declared")
        == "a.cpp:3:4: error: 'buf7' was not declared"
    )


@pytest.mark.parametrize("said", ["the loss fell to 0.3", "naïve café: 3 < 4 && 5 > 2", "training on 8 GPUs, Ende"])
def test_other_text_stays(said):
    assert plain_spelling(said) == said


@pytest.mark.parametrize("margin", ["# ", "// ", "    ", "* ", "│ ", "; "])
def test_a_block_loses_its_margin(margin):
    lines = [LogLine(number, (margin + text).rstrip()) for number, text in enumerate(TRACEBACK, 1)]
    assert tuple(line.text for line in without_margins(lines)) == TRACEBACK


def test_an_indent_of_a_stack_stays():
    lines = [LogLine(number, text) for number, text in enumerate(TRACEBACK, 1)]
    assert [line.text for line in without_margins(lines)] == list(TRACEBACK)


def test_lines_cut_at_the_edge_are_one_again():
    whole = "\n".join(TRACEBACK)
    cut = "\n".join(line[at : at + 40] for line in TRACEBACK for at in range(0, len(line), 40))
    assert causes(read(cut)) == causes(read(whole)) == ["custom-op-missing"]
    assert read(cut).matches[0].line == 5


def test_lines_that_loggers_began_are_not_joined():
    lines = [f"[rank{rank}]: RuntimeError: mylib::custom_op is unknown to this version" for rank in range(10, 16)]
    assert list(other_readings([(at, line.encode()) for at, line in enumerate(lines, 1)])) == []
