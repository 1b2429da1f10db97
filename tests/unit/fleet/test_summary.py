"""What a fleet's results show together: groups, what sets them apart, what is new."""

from __future__ import annotations

import io
import math
import shutil
from collections import Counter
from dataclasses import replace
from datetime import date
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pandas", reason="pandas is not installed (pip install 'aotidoctor[fleet]')")

from aotidoctor.fleet.summary.accepted import read_accepted
from aotidoctor.fleet.summary.summarize import read_baseline, summarize
from aotidoctor.fleet.summary.table import by_chance
from aotidoctor.model.errors import CannotExamineError, UsageError
from aotidoctor.model.fleet_summary import HERE
from tests.unit.fleet.fleets import failing, healthy, mixed, signed, unexamined, write

TODAY = date(2026, 9, 10)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    return summarize([write(tmp_path_factory.mktemp("fleet") / "results", mixed())])


def test_items_are_counted_once_and_by_what_is_known(fleet):
    summary = fleet.summary
    assert (summary.items, summary.healthy, summary.failing, summary.not_examined) == (55, 40, 13, 2)
    assert [(group.ending, group.count) for group in summary.unexamined] == [("timed-out", 2)]


def test_clusters_are_of_one_signature_and_those_of_a_family_stand_together(fleet):
    found = fleet.summary.clusters
    assert [(one.cause, one.count, one.subjects) for one in found] == [
        ("input-stride", 6, ("args[0]",)),
        ("input-stride", 2, ("args[1]",)),
        ("weights-not-loaded", 5, ("weights",)),
    ]
    assert found[0].family == found[1].family != found[2].family
    assert [one.confirmed for one in found] == [0, 0, 5]
    assert found[2].examples[0].report == f"reports/{failing(found[2].examples[0].name, 'x').item}.json"


def test_what_sets_a_cluster_apart_with_its_numbers(fleet):
    """By construction: see ``fleets.mixed``."""
    strides, _, weights = fleet.summary.clusters
    host = next(one for one in strides.shared if one.feature == "host_isa")
    assert (host.value, host.inside, host.of_inside, host.healthy, host.of_healthy) == ("avx2", 6, 6, 10, 40)
    assert [(one.feature, one.value, one.inside, one.healthy) for one in strides.lacked] == [
        ("host_isa", "avx512", 0, 30)
    ]
    assert [(one.feature, one.relation, one.value, one.inside, one.healthy) for one in weights.shared] == [
        ("modified", "from", "2026-06-12", 5, 0)
    ]


def test_what_may_be_chance_is_not_said(fleet):
    """Two items share everything with some healthy one; labels are dealt out evenly."""
    assert fleet.summary.clusters[1].shared == ()
    assert not [one for cluster in fleet.summary.clusters for one in cluster.shared if one.feature == "label team"]


def uneven():
    """The mixed fleet where every third item lacks a number, every fourth a date and every fifth its labels."""
    found = []
    for at, one in enumerate(mixed()):
        facts = dict(one.facts)
        for step, name in ((3, "n"), (4, "modified")):
            if at % step == 0:
                facts.pop(name, None)
        found.append(
            replace(one, facts=facts, labels={} if at % 5 == 0 else one.labels, size=None if at % 2 else 100 + at)
        )
    return found


def summary_of(results, folder):
    """The summary and the rows of ``results``, without what says when and where it was made."""
    shutil.rmtree(folder, ignore_errors=True)
    found = summarize([write(folder, results)])
    return replace(found.summary, made=""), [replace(row, cluster=0) for row in found.rows()]


def counts_of(trait, results):
    """How many of ``results`` have a feature, and of how many it is known: from the results alone."""
    having = Counter()
    for one in results:
        known = {**one.facts, **{f"label {name}": value for name, value in one.labels.items()}, "size": one.size}
        value = {**known, "host": one.host or HERE, "command": one.command}.get(trait.feature)
        if value is None:
            continue
        having["known"] += 1
        bound = trait.value if isinstance(value, str) else float(trait.value.replace(",", ""))
        match trait.relation:
            case "is":
                having["yes"] += value == bound
            case "from":
                having["yes"] += value >= bound
            case "up to":
                having["yes"] += value <= bound
    return having["yes"], having["known"]


EVERY = uneven()


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(len(EVERY))), st.integers(0, len(EVERY) - 12))
def test_neither_the_order_of_items_nor_their_absence_changes_what_is_said_of_the_rest(
    tmp_path_factory, order, dropped
):
    folder = tmp_path_factory.getbasetemp() / "summary"
    rest = [EVERY[at] for at in order[dropped:]]
    summary, rows = summary_of(rest, folder)
    assert (summary, rows) == summary_of(sorted(rest, key=lambda one: one.name), folder)
    whole = {row.item: row for row in summary_of(EVERY, folder)[1]}
    assert {row.item: row for row in rows} == {one.item: whole[one.item] for one in rest}
    well = [one for one in rest if one.is_healthy]
    for cluster in summary.clusters:
        mine = [one for one in rest if one.signature == cluster.signature]
        assert cluster.count == len(mine)
        for trait in (*cluster.shared, *cluster.lacked):
            assert (trait.inside, trait.of_inside) == counts_of(trait, mine)
            assert (trait.healthy, trait.of_healthy) == counts_of(trait, well)


def test_a_number_that_the_first_items_lack_sets_a_cluster_apart(tmp_path):
    results = [healthy(f"g{at}", facts={"n": at} if at > 9 else {}) for at in range(30)]
    results += [failing(f"b{at}", "input-stride", facts={"n": 100 + at}) for at in range(9)]
    [cluster] = summarize([write(tmp_path / "r", results)]).summary.clusters
    [trait] = cluster.shared
    assert (trait.feature, trait.relation, trait.value) == ("n", "from", "100")
    assert (trait.inside, trait.of_inside, trait.healthy, trait.of_healthy) == (9, 9, 0, 20)


def test_chance_is_fishers_exact_test():
    """Against counting every way to deal out a feature."""
    for of_inside, of_healthy in ((3, 4), (2, 5)):
        for inside, other in product(range(of_inside + 1), range(of_healthy + 1)):
            having, total = inside + other, of_inside + of_healthy
            whole = math.comb(total, of_inside)
            ways = {k: math.comb(having, k) * math.comb(total - having, of_inside - k) for k in range(of_inside + 1)}
            upper = sum(count for k, count in ways.items() if k >= inside) / whole
            lower = sum(count for k, count in ways.items() if k <= inside) / whole
            wanted = upper if inside * of_healthy >= other * of_inside else lower
            assert by_chance(inside, of_inside, other, of_healthy) == pytest.approx(wanted)


def test_without_healthy_items_nothing_sets_a_cluster_apart(tmp_path):
    found = summarize([write(tmp_path / "a", [one for one in mixed() if not one.is_healthy])])
    assert all(one.shared == one.lacked == () for one in found.summary.clusters)


def test_of_several_folders_the_latest_run_says_what_an_item_is(tmp_path):
    first = write(
        tmp_path / "b", [failing("a", "input-stride"), failing("b", "input-stride")], started="2026-09-01T00:00:00Z"
    )
    # An answer out of the cache, older than the run before it.
    then = write(
        tmp_path / "a",
        [healthy("a", started="2026-08-01T00:00:00Z"), failing("b", "input-dtype")],
        started="2026-09-02T00:00:00Z",
    )
    summary = summarize([then, first]).summary
    assert (summary.items, summary.healthy, summary.failing) == (2, 1, 1)
    assert [one.cause for one in summary.clusters] == ["input-dtype"]
    assert [(one.cause, one.before, one.healthy) for one in summary.past] == [("input-stride", 2, 1)]


def test_seen_since_and_until(tmp_path):
    folders = [
        write(
            tmp_path / str(day),
            [failing("a", "input-stride", started=f"2026-09-0{day}T08:00:00Z")],
            started=f"2026-09-0{day}T07:00:00Z",
        )
        for day in (1, 2, 5)
    ]
    summary = summarize(folders).summary
    cluster = summary.clusters[0]
    assert (cluster.count, cluster.seen) == (1, 3)
    assert (cluster.first_seen, cluster.last_seen) == ("2026-09-01T08:00:00Z", "2026-09-05T08:00:00Z")
    assert summary.timeline.unit == "day"
    assert dict(zip(summary.timeline.starts, summary.timeline.series[0][1], strict=True)) == {
        "2026-09-01": 1, "2026-09-02": 1, "2026-09-03": 0, "2026-09-04": 0, "2026-09-05": 1,
    }  # fmt: skip


def test_hosts_and_causes(tmp_path):
    results = [
        failing(f"{n}.pt2", cause, host=host)
        for n, (cause, host) in enumerate(product(("input-stride", "isa-mismatch"), "ab"))
    ]
    found = summarize(
        [write(tmp_path / "r", [*results, healthy("x", host="b"), failing("y", "isa-mismatch", host="b")])]
    ).summary.matrix
    table = {
        host: dict(zip(found.causes, counts, strict=True))
        for host, counts in zip(found.hosts, found.counts, strict=True)
    }
    assert table == {"a": {"isa-mismatch": 1, "input-stride": 1}, "b": {"isa-mismatch": 2, "input-stride": 1}}
    assert dict(zip(found.hosts, found.totals, strict=True)) == {"a": 2, "b": 4}


def test_a_failure_of_the_examination_is_never_the_packages(tmp_path):
    results = [
        unexamined("a", "killed"), unexamined("b", "out-of-memory"), failing("c", "input-stride", status=5),
        failing("d", None, status=6, verdict="unknown", causes=()),
    ]  # fmt: skip
    summary = summarize([write(tmp_path / "r", results)]).summary
    assert summary.failing == 0
    assert summary.not_examined == 4


def test_a_failure_without_a_signature_has_a_cluster(tmp_path):
    found = summarize(
        [write(tmp_path / "r", [failing("a", "input-stride", signature=None, family=None)])]
    ).summary.clusters
    assert [(one.signature, one.key, one.count) for one in found] == [(None, "unsigned:input-stride:inputs", 1)]


def test_an_empty_fleet(tmp_path):
    summary = summarize([write(tmp_path / "r", [])]).summary
    assert (summary.items, summary.clusters, summary.timeline.starts) == (0, (), ())


def test_damaged_lines_are_counted_and_the_others_are_there(tmp_path):
    folder = write(tmp_path / "r", mixed())
    with open(f"{folder}/results.jsonl", "ab") as stream:
        stream.write(b"not JSON\n" + b'{"schema":"aotidoctor.fleet/1","item":"../../etc"}\n')
    summary = summarize([folder]).summary
    assert summary.items == 55
    assert [(one.lines, len(one.reasons)) for one in summary.damaged] == [(2, 2)]


BIG = "1" + "0" * 400
ODD = {
    "status": BIG, "size": BIG, "seconds": "NaN", "confidence": "Infinity", "attempts": "-" + BIG,
    "facts": f'{{"a": NaN, "b": Infinity, "c": {BIG}, "d": -1e308, "e": true, "f": null, "g": [1]}}',
    "labels": "{" + ", ".join(f'"{n}": "{n}"' for n in range(20_000)) + "}", "name": f'"{"x" * 500_000}"',
    "title": f'"{"y" * 500_000}"', "started": '"9999-99-99"', "host": '""', "cause": '"\\ud800"',
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_no_value_of_a_line_breaks_the_summary(tmp_path, name):
    """Written by somebody else: not by ``result_line``."""
    from aotidoctor.reports.fleet import fleet_files, fleet_text

    folder = write(tmp_path / "r", [*mixed(), failing("odd", "input-stride")])
    lines = (tmp_path / "r" / "results.jsonl").read_text().splitlines()
    odd = lines[-1][:-1] + f',"{name}":{ODD[name]}}}'  # of two keys of one name the later one counts
    (tmp_path / "r" / "results.jsonl").write_text("\n".join([*lines[:-1], odd]) + "\n")
    found = summarize([folder])
    assert found.summary.items + sum(one.lines for one in found.summary.damaged) == 56
    texts = [
        fleet_text.render_chat_line(found.summary),
        fleet_text.render_fleet_json(found.summary),
        fleet_text.render_fleet_markdown(found.summary),
        fleet_files.render_fleet_sarif(found.summary),
    ]
    texts += [
        fleet_text.fleet_terminal_text(found.summary, stream=io.StringIO(), environ={"COLUMNS": "100"}),
        fleet_files.render_fleet_page(found.summary, found.rows()),
    ]
    texts += [
        fleet_files.render_fleet_junit(found.summary, found.rows()),
        "".join(fleet_text.render_items_csv(found.rows())),
    ]
    assert all(len(text) < 1_000_000 for text in texts)


def test_a_folder_of_another_version_is_refused(tmp_path):
    folder = write(tmp_path / "r", mixed())
    (tmp_path / "r" / "fleet.json").write_text('{"schema": "aotidoctor.fleet/0"}')
    with pytest.raises(CannotExamineError, match="fleet/0"):
        summarize([folder])


def against(tmp_path, old, now, accepted=()):
    base = read_baseline(write(tmp_path / "old", old))
    return summarize([write(tmp_path / "now", now)], baseline=base, accepted=accepted).summary


def test_new_gone_changed_and_known(tmp_path):
    old = [
        failing("a", "input-stride"),
        failing("b", "input-stride"),
        failing("c", "isa-mismatch"),
        failing("d", "input-dtype"),
        healthy("e"),
    ]
    now = [
        failing("a", "input-stride"),
        healthy("b"),
        failing("c", "isa-mismatch"),
        healthy("d"),
        failing("e", "weights-not-loaded"),
        healthy("f"),
    ]
    summary = against(tmp_path, old, now)
    assert {one.cause: one.change for one in summary.clusters} == {
        "input-stride": "changed", "isa-mismatch": "known", "weights-not-loaded": "new",
    }  # fmt: skip
    assert [(one.cause, one.before, one.healthy) for one in summary.gone] == [("input-dtype", 1, 1)]
    assert (summary.fixed, summary.added, summary.removed) == (2, 1, 0)
    assert [one.cause for one in summary.news] == ["weights-not-loaded"]


def test_the_same_fault_elsewhere_is_another_cluster_of_its_family(tmp_path):
    summary = against(tmp_path, [failing("a", "input-stride", "args[0]")], [failing("a", "input-stride", "args[1]")])
    assert [one.change for one in summary.clusters] == ["new"]


def test_an_item_that_was_healthy_is_news_in_a_known_cluster_and_a_new_item_is_not(tmp_path):
    old = [failing("a", "input-stride"), healthy("b")]
    worse = against(tmp_path / "1", old, [failing("a", "input-stride"), failing("b", "input-stride")])
    assert [(one.change, one.regressed, one.is_news) for one in worse.clusters] == [("changed", 1, True)]
    grown = against(tmp_path / "2", old, [*old, failing("c", "input-stride")])
    assert [(one.change, one.regressed, one.is_news) for one in grown.clusters] == [("changed", 0, False)]


def test_what_is_new_is_shown_however_many_clusters_there_are(tmp_path, monkeypatch):
    from aotidoctor.fleet.summary import summarize as module

    monkeypatch.setattr(module, "MOST_CLUSTERS", 2)
    old = [failing(f"{cause}{n}", cause) for cause in ("input-stride", "isa-mismatch", "input-dtype") for n in range(3)]
    base = read_baseline(write(tmp_path / "old", [*old, healthy("was")]))
    found = summarize(
        [write(tmp_path / "now", [*old, failing("x", "weights-not-loaded"), failing("was", "input-dtype")])],
        baseline=base,
    )
    assert {one.cause for one in found.summary.news} == {"weights-not-loaded", "input-dtype"}
    assert found.summary.more_clusters == 2
    assert [row.cluster for row in found.rows()] == [1] * 4 + [2] + [0] * 6


def test_what_was_examined_and_is_not_any_more_is_told(tmp_path):
    assert against(tmp_path, [healthy("a"), unexamined("b")], [unexamined("a"), unexamined("b")]).blind == 1


ENTRY = '[[accept]]\n{about}\nreason = "waits"\nuntil = {until}\n'


def accepted_file(tmp_path, about, until="2026-09-10"):
    path = tmp_path / "accepted.toml"
    path.write_text(ENTRY.format(about=about, until=until))
    return str(path)


@pytest.mark.parametrize(
    ("about", "until", "covered"),
    [
        ('cause = "input-stride"', "2026-09-10", True),
        ('cause = "input-stride"', "2026-09-09", False),
        ('cause = "isa-mismatch"', "2026-09-10", False),
        (f'signature = "{signed("input-stride", "args[0]")["signature"]}"', "2026-09-10", True),
        (f'family = "{signed("input-stride")["family"]}"', "2026-09-10", True),
        ('cause = "input-stride"\nitems = "a/*"', "2026-09-10", True),
        ('cause = "input-stride"\nitems = "a/1*"', "2026-09-10", False),
    ],
)
def test_what_is_accepted_is_no_news(tmp_path, about, until, covered):
    entries = read_accepted(accepted_file(tmp_path, about, until), TODAY)
    now = [failing("a/1.pt2", "input-stride"), failing("a/2.pt2", "input-stride")]
    summary = against(tmp_path, [healthy("x")], now, entries)
    assert [one.is_accepted for one in summary.clusters] == [covered]
    assert bool(summary.news) != covered
    assert bool(summary.unused) == (not covered and until == "2026-09-10")


@pytest.mark.parametrize(
    "text",
    [
        "accept = 1", "[[accept]]\nreason = 'x'\nuntil = 2026-01-01", "[[accept]]\ncause = 'x'\nuntil = 2026-01-01",
        "[[accept]]\ncause = 'x'\nreason = 'y'", "[[accept]]\ncause = 'x'\nreason = 'y'\nuntil = 'later'",
        "[[accept]]\ncause = 'x'\nfamily = 'y'\nreason = 'y'\nuntil = 2026-01-01",
        "[[accept]]\ncause = 'x'\nreason = ' '\nuntil = 2026-01-01", "[[accept]]\ncause = 'x'\nreazon = 'y'\nuntil = 2026-01-01",
        "[[", "[other]", "\xff",
    ],
)  # fmt: skip
def test_a_list_that_says_something_else_is_a_usage_error(tmp_path, text):
    path = tmp_path / "accepted.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match=r"accepted\.toml"):
        read_accepted(str(path), TODAY)
