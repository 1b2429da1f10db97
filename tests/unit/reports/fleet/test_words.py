"""What every format says of a fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.fleet_summary import (
    Acceptance,
    Cluster,
    DamagedFile,
    Example,
    Gone,
    Matrix,
    Overview,
    Timeline,
    Trait,
    Unexamined,
)
from aotidoctor.reports.fleet import fleet_text

FAILING = Cluster(
    key="sig1:a", signature="sig1:a", family=None, cause="isa-mismatch", title="no AVX2", stage="load", count=3, seen=5,
    first_seen="2026-01-01T00:00:00Z", last_seen="2026-01-02T00:00:00Z",
)  # fmt: skip
ENTRY = Acceptance(reason="old hosts", until="2026-03-01", cause="isa-mismatch")


def overview(*clusters, **more):
    given = {
        "folders": ("r",),
        "items": 9,
        "healthy": 6,
        "failing": sum(cluster.count for cluster in clusters),
        "clusters": clusters,
        "unexamined": (),
        "timeline": Timeline(unit="day", starts=(), series=()),
        "matrix": Matrix(hosts=(), causes=(), counts=(), totals=()),
        "slowest": (),
    }
    return Overview(**(given | more))


LOST = Unexamined(ending="killed", count=2, problem="SIGKILL")


@pytest.mark.parametrize(
    ("summary", "word", "tone"),
    [
        (overview(), "HEALTHY", "good"),
        (overview(unexamined=(LOST,)), "PARTLY EXAMINED", "good"),
        (overview(items=0, healthy=0), "EMPTY", "unsure"),
        (overview(healthy=0, unexamined=(LOST,)), "NOT EXAMINED", "unsure"),
        (overview(FAILING), "FAILING", "bad"),
        (overview(replace(FAILING, change="known"), baseline="old"), "NOTHING NEW", "unsure"),
        (overview(replace(FAILING, accepted=ENTRY)), "NOTHING NEW", "unsure"),
        (overview(replace(FAILING, accepted=replace(ENTRY, expired=True))), "FAILING", "bad"),
        (overview(FAILING, unexamined=(replace(LOST, blind=1),)), "NOT EXAMINED", "unsure"),
        (overview(replace(FAILING, change="new"), baseline="old"), "NEW", "bad"),
        (overview(replace(FAILING, change="new", accepted=ENTRY), baseline="old"), "NOTHING NEW", "unsure"),
    ],
)
def test_the_verdict(summary, word, tone):
    verdict = fleet_text.fleet_verdict(summary)
    assert (verdict.word, verdict.tone) == (word, tone)


def test_what_is_new_is_counted():
    known = replace(FAILING, change="known", regressed=2)
    told = fleet_text.fleet_verdict(overview(replace(FAILING, change="new"), known, baseline="old")).text
    assert told.startswith("1 new cluster and 2 items healthy before; ")
    assert fleet_text.fleet_verdict(overview(known, baseline="old")).text.startswith("2 items healthy before; ")


def test_the_comparison_with_a_baseline():
    changed = replace(FAILING, change="changed", before=1)
    gone = Gone(key="k", cause=None, title="t", before=2, healthy=1)
    summary = overview(changed, replace(FAILING, change="new"), gone=(gone,), fixed=1, added=1200, removed=3)
    assert fleet_text.baseline_text(summary) == ""
    assert fleet_text.baseline_text(replace(summary, baseline="last")) == (
        "against last: 1 cluster new, 1 changed, 1 gone, 1 failing item fixed, 1,200 items added, 3 removed"
    )
    assert fleet_text.cluster_cause(gone) == "unknown"


def test_notes_tell_what_a_reader_must_know():
    summary = overview(
        replace(FAILING, accepted=replace(ENTRY, expired=True)),
        damaged=(DamagedFile(folder="r", lines=2, reasons=("no JSON", "cut")),),
        unfinished=("later",),
        more_clusters=1,
        expected=4,
        unexpected=1,
        unused=(replace(ENTRY, cause=None, family="fam1:x", items="*.pt2"), replace(ENTRY, cause=None, items="a")),
    )
    assert fleet_text.fleet_notes(overview()) == []
    assert fleet_text.fleet_notes(summary) == [
        "r: 2 lines could not be read: no JSON; cut",
        "later: the run has not finished; items are missing",
        "1 smaller cluster not shown; their items are in the CSV",
        "4 items failing as the manifest expects",
        "1 item not as the manifest expects",
        "accepted until 2026-03-01, which is past: old hosts",
        "accepted, but no item fails in this way: fam1:x *.pt2 (old hosts)",
        "accepted, but no item fails in this way: a (old hosts)",
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"change": "new"}, "new"),
        ({"change": "changed", "before": 7}, "changed, 7 before"),
        ({"change": "known", "regressed": 2}, "known, 2 healthy before"),
        ({"accepted": ENTRY}, "accepted until 2026-03-01"),
        ({"change": "new", "accepted": ENTRY}, "new, accepted until 2026-03-01"),
        ({"change": "new", "accepted": replace(ENTRY, expired=True)}, "new"),
    ],
)
def test_a_change(changes, text):
    assert fleet_text.cluster_change(replace(FAILING, **changes)) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [({}, "no AVX2"), ({"title": ""}, "fails in load"), ({"title": "", "stage": None}, "fails; its cause is unknown")],
)
def test_a_title(changes, text):
    assert fleet_text.cluster_title(replace(FAILING, **changes)) == text


def test_details_of_a_cluster():
    trait = Trait(
        feature="host_isa", value="avx2", relation="is", inside=6, of_inside=6, healthy=10, of_healthy=4000, chance=0.0
    )
    example = Example(name="m.pt2", host="gpu1", folder="r/", report="reports/1.json")
    whole = replace(FAILING, examples=(example,), shared=(trait,), lacked=(trait,), accepted=ENTRY)
    text = "host_isa is avx2: 6 of 6 here, 10 of 4,000 healthy"
    assert fleet_text.cluster_details(whole) == [
        ("For example", "m.pt2 on gpu1"),
        ("Report", "r/reports/1.json"),
        ("Shares", text),
        ("Lacks", text),
        ("Accepted", "until 2026-03-01: old hosts"),
        ("Signature", "sig1:a"),
    ]
    assert fleet_text.cluster_details(FAILING) == [("Signature", "sig1:a")]
    assert "Report" not in dict(fleet_text.cluster_details(replace(FAILING, examples=(replace(example, report=None),))))
