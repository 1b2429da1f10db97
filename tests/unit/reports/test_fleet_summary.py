"""How a batch ended, for people."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.fleet import FleetSummary
from aotidoctor.reports.fleet.fleet_files import CAUSES_LISTED, render_batch_markdown, render_batch_text

DONE = FleetSummary(
    folder="r", command="check", items=3, kept=1, cached=0, judged=2, as_expected=0, seconds=1.25,
    verdicts={"healthy": 2, "problem": 1}, causes={"isa-mismatch": 1},
)  # fmt: skip


def test_text():
    assert render_batch_text(DONE).splitlines() == [
        "3 items: 2 healthy, 1 problem",
        "        1  isa-mismatch",
        "2 judged, 0 from the cache, 1 kept, in 1.2 s",
        "results: r",
    ]


def test_text_of_what_is_not_complete():
    causes = {f"cause-{at}": 100 - at for at in range(CAUSES_LISTED + 2)}
    partial = replace(
        DONE,
        items=1234,
        causes=causes,
        as_expected=4,
        notes=("a note",),
        problem="the disk is full\x1b[2J",
        interrupted=True,
    )
    lines = render_batch_text(partial).splitlines()
    assert lines[0].startswith("3 of 1,234 items: ")
    rest = sum(sorted(causes.values())[:2])
    assert lines[CAUSES_LISTED + 1 : CAUSES_LISTED + 3] == [f"  {rest:7,}  2 more causes", "4 as expected"]
    assert lines[-3] == "a note"
    assert lines[-2].startswith("not complete: the disk is full")
    assert "\x1b" not in lines[-2]
    whole = render_batch_text(replace(partial, interrupted=False, problem="the cache was not used"))
    assert whole.splitlines()[-2] == "the cache was not used"


@pytest.mark.parametrize(("items", "verdicts", "text"), [(1, {}, "1 item"), (1, {"healthy": 1}, "1 item: 1 healthy")])
def test_one_item(items, verdicts, text):
    one = replace(DONE, items=items, kept=0, judged=1, verdicts=verdicts)
    assert render_batch_text(one).splitlines()[0] == text


def test_markdown():
    text = render_batch_markdown(replace(DONE, folder="a`b|c\nd", problem="no room"))
    assert text.splitlines() == [
        "**3 items: 2 healthy, 1 problem**",
        "",
        "Results: `a'b¦c d`",
        "",
        "Not complete: no room",
        "",
        "| cause | items |",
        "|---|---:|",
        "| `isa-mismatch` | 1 |",
    ]
    assert "|" not in render_batch_markdown(replace(DONE, causes={}))
