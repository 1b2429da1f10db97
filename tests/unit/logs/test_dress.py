"""What web pages, editors, mails and translated tools do to a text is undone, and nothing else."""

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


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("a.cpp:3:4: erreur: « buf7 » n'a pas été déclaré dans cette portée", "error: 'buf7' was not declared in"),
        ("a.cpp:3:4: Fehler: »buf7« wurde in diesem Gültigkeitsbereich nicht definiert", "error: 'buf7' was not decl"),
        ("a.cpp:3:4: 错误：‘buf7’在此作用域中尚未声明", "error: 'buf7' was not declared in this scope"),  # noqa: RUF001
        (
            "a.cpp:1:10: schwerwiegender Fehler: cuda.h: Datei oder Verzeichnis nicht gefunden",
            "fatal error: cuda.h: No",
        ),
        (
            "a.cpp:1:10: erreur fatale: cuda.h : Aucun fichier ou dossier de ce type",
            "fatal error: cuda.h: No such file",
        ),
        ("main.cpp:(.text+0x1): 对‘foo()’未定义的引用", "undefined reference to `foo()'"),  # noqa: RUF001
        ("/usr/bin/ld: ne peut pas trouver -lcuda", "cannot find -lcuda"),
        ("段错误 (核心已转储)", "Segmentation fault (core dumped)"),
        ("expected &lt;&#39;a&#39;&gt; &amp; more", "expected <'a'> & more"),
    ],
)
def test_a_tools_phrase_is_read_in_english(said, meant):
    assert meant in plain_spelling(said)


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
