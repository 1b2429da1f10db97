"""What a search for the smallest part came to, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.cli.prevent_commands import _minimize_text
from aotidoctor.commands.minimize import Minimized

FOUND = Minimized(
    package="m.pt2", directory="out", ending="smallest", of=9, operators=("mul_1",), targets=("aten.mul.Tensor",),
    manner=("wrong", "nan"), asked=3, repro="certified\nscript",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"ending": "healthy", "reason": "the call\nreturns"}, " HEALTHY  the call returns"),
        ({"ending": "package-only", "reason": "it returns"}, " NOT REPRODUCED  the program does not fail in the same way"),
        ({"ending": "unfinished", "operators": (), "reason": "no time"}, " UNFINISHED  no time"),
    ],
)  # fmt: skip
def test_what_has_no_part_is_one_line(changes, line):
    text = _minimize_text(replace(FOUND, **changes))
    assert text.startswith(line)
    assert text.count("\n") == 1


def test_the_smallest_part():
    assert _minimize_text(FOUND).splitlines() == [
        " SMALLEST  1 operator of 9 still fail in the same way: wrong nan",
        "   mul_1: aten.mul.Tensor",
        " Files   out: exported.pt2, sample.pt, model.pt2",
        " Tried   3 parts compiled now",
        " Script  certified script",
    ]


def test_a_search_that_goes_on():
    text = _minimize_text(replace(FOUND, ending="unfinished", reason="no time", repro=None))
    assert text.startswith(" UNFINISHED  1 operator of 9")
    assert "(no time; the same command continues)" in text.splitlines()[0]
    assert "Script" not in text
