from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from dataclasses import replace
from functools import cache, partial

import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.model.evidence import Evidence, FileSource, Severity
from aotidoctor.model.localization import (
    BufferValues,
    Frame,
    KernelValues,
    Localization,
    OutputComparison,
    SourceLine,
    TimelineEntry,
)
from aotidoctor.model.report import LogEvent, LogMatch, LogPattern, LogReading, Signature, SignaturePart
from aotidoctor.model.run import ChildError, Exited, Signalled
from aotidoctor.reports.html import html_blocks as html_text
from aotidoctor.reports.html import html_report as html_
from tests.unit.reports import builders

H = "{http://www.w3.org/1999/xhtml}"
S = "{http://www.w3.org/2000/svg}"
# What a page can load something with; `a` only goes somewhere when it is clicked.
LOADING = {
    "src", "srcset", "poster", "background", "data", "action", "formaction", "manifest", "ping", "cite", "longdesc",
}  # fmt: skip


def parsed(text):
    """The page as a browser would read it. Raises for anything that HTML does not allow."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=True).parse(text)


def page(report):
    return parsed(html_.render_html(report))


def words(element):
    return " ".join("".join(element.itertext()).split())


def every(tree, name, **attributes):
    found = (item for item in tree.iter(f"{H}{name}"))
    return [item for item in found if all(item.get(key.rstrip("_")) == value for key, value in attributes.items())]


def by_id(tree, name):
    found = [item for item in tree.iter() if item.get("id") == name]
    assert len(found) == 1, (name, found)
    return found[0]


def has(element, name):
    return name in (element.get("class") or "").split()


def value(name, role="out", **more):
    return BufferValues(name=name, role=role, dtype="float32", shape=(4,), **more)


PLACE = Localization(
    culprit="cpp_fused_log_1",
    how="the first call that wrote bad values, from good ones",
    chain="cpp_fused_log_1: 3 NaN written to buf1",
    timeline=(
        TimelineEntry(name="aoti_torch_cpu_mm_out", kind="extern", call=1, state="returned", seconds=3e-3),
        TimelineEntry(
            name="cpp_fused_log_1", kind="kernel", call=1, state="returned", seconds=1e-3, origins=("aten.log",)
        ),
        TimelineEntry(name="zoo::misbehave", kind="custom", call=1, state="entered"),
    ),
    calls_total=40,
    frames=(
        Frame(index=0, function="misbehave(at::Tensor const&)", library="/opt/libzoo.so"),
        Frame(
            index=1,
            function="AOTInductorModel::run_impl",
            member="model/abc.wrapper.cpp",
            line=12,
            lines=(
                SourceLine(number=11, text="auto buf0 = empty();"),
                SourceLine(number=12, text='call(buf0, "</pre><b>");', marked=True),
            ),
        ),
    ),
    values=(
        KernelValues(
            index=0,
            name="aoti_torch_cpu_mm_out",
            kind="extern",
            buffers=(
                value("args[0]", "in", low=-1.0, high=1.0),
                value("buf0", low=-2.0, high=2.5, mean=0.25, error=1.5e-7, agrees=True, matches="mm"),
            ),
        ),
        KernelValues(
            index=1,
            name="cpp_fused_log_1",
            kind="kernel",
            buffers=(value("buf1", low=-7.0, high=0.9, mean=-1.0, nan=3, inf=1, error=4.5, agrees=False),),
        ),
    ),
    first_bad="cpp_fused_log_1",
    comparison=(
        OutputComparison(
            path="result[0]", verdict="package-wrong", error=123456.0, reference_error=1.5, allowed=64.0, max_abs=0.25
        ),
        OutputComparison(path="result[1]", verdict="both-within", error=2.0, reference_error=1.0, allowed=64.0),
    ),
)


def located(**more):
    return replace(builders.misleading(), localization=replace(PLACE, **more))


KINDS = {**builders.GOLDEN, "hostile": builders.hostile, "located": located}


@pytest.mark.parametrize("name", KINDS)
def test_it_is_html_and_loads_nothing(name):
    tree = page(KINDS[name]())
    ids = [item.get("id") for item in tree.iter() if item.get("id")]
    assert len(ids) == len(set(ids))
    assert not every(tree, "script") + every(tree, "iframe") + every(tree, "object") + every(tree, "embed")
    assert not every(tree, "img") + every(tree, "base") + every(tree, "form") + list(tree.iter(f"{S}image"))
    for item in tree.iter():
        if not isinstance(item.tag, str):
            continue
        assert not LOADING & set(item.attrib), item.attrib
        assert not [key for key in item.attrib if isinstance(key, str) and key.startswith("on")]
        for key in ("href", "{http://www.w3.org/1999/xlink}href"):
            target = item.get(key)
            if target is None:
                continue
            if item.tag == f"{H}link":
                assert target.startswith("data:image/svg+xml,")
            else:
                assert target.startswith("#")
                assert target[1:] in ids, target
        for used in re.findall(r"url\(([^)]*)\)", item.get("style") or item.get("clip-path") or ""):
            assert used.strip("'\"").startswith("#")
            assert used[1:] in ids
    style = "".join(words(item) for item in every(tree, "style"))
    assert "url(" not in style
    assert "@import" not in style
    policy = every(tree, "meta", **{"http-equiv": "Content-Security-Policy"})[0].get("content")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")


@pytest.mark.parametrize("name", KINDS)
def test_landmarks_and_headings(name):
    tree = page(KINDS[name]())
    assert tree.get("lang") == "en"
    assert every(tree, "title")[0].text.strip()
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert len(every(tree, landmark)) == 1, landmark
    assert {item.get("scope") for item in every(tree, "th")} <= {"row", "col", "colgroup"}
    for table in every(tree, "table"):
        assert words(every(table, "caption")[0])
        heads = every(every(table, "thead")[0], "tr")[-1]
        for row in every(every(table, "tbody")[0], "tr"):
            assert sum(int(cell.get("colspan") or 1) for cell in row) == len(heads)
    sections = every(tree, "section")
    assert [item.get("href") for item in every(every(tree, "nav")[0], "a")] == [
        f"#{item.get('id')}" for item in sections
    ]


def test_the_first_screen_in_its_order():
    header = every(page(builders.misleading()), "header")[0]
    said = words(header)
    order = (
        "PROBLEM", "input-dtype", "another dtype", "Subject", "kwargs['ids']", "Looked like", "index out of bounds", "Is",
        "observed int32", "expected int64", "How sure", "confirmed 98%", "What to do", "Pass int64.",
        "kwargs['ids'] = kwargs['ids'].to(torch.int64)", "Tried", "aotidoctor explain input-dtype",
    )  # fmt: skip
    places = [said.find(word) for word in order]
    assert -1 not in places
    assert places == sorted(places)
    copied = every(header, "pre")[0]
    assert copied.text.strip() == "kwargs['ids'] = kwargs['ids'].to(torch.int64)"
    assert has(copied, "copy")


def test_what_is_said_links_to_what_shows_it():
    tree = page(builders.misleading())
    header = every(tree, "header")[0]
    assert {item.get("href") for item in every(header, "a")} == {"#E1", "#E2", "#R1", "#R3"}
    assert by_id(tree, "E1").tag == f"{H}tr"
    assert by_id(tree, "R1").tag == f"{H}details"
    # What is not there is no link, nor what is part of a name.
    known = {"E1", "R2"}
    shown = str(html_text.link_mentions("seen [E1], R2 and R9, kwargs['E1'] in E1.py and x.R2 (R2) [E1]", known))
    assert re.findall('href="#([^"]+)"', shown) == ["E1", "R2", "R2", "E1"]
    assert "kwargs[&#39;E1&#39;]" in shown


def test_the_mark_is_in_the_cell_that_differs():
    tree = page(builders.misleading())
    table = every(by_id(tree, "contract"), "table")[0]
    rows = {words(row[0]).split()[0]: row for row in every(every(table, "tbody")[0], "tr")}
    marked = [index for index, cell in enumerate(rows["kwargs['ids']"]) if every(cell, "mark")]
    assert marked == [1, 5]  # dtype of both sides
    assert "int64" in words(rows["kwargs['ids']"][1])
    assert "int32" in words(rows["kwargs['ids']"][5])
    assert every(rows["kwargs['ids']"][0], "a")[0].get("href") == "#E1"
    assert not every(rows["args[0]"], "mark")


def marks(report):
    """Leaf to the columns that are marked, with what is marked in them."""
    table = every(by_id(page(report), "contract"), "table")[0]
    rows = every(every(table, "tbody")[0], "tr")
    return {
        words(row[0]).removeprefix("differs: ").split()[0]: [
            (index, words(mark).removeprefix("differs: "))
            for index, cell in enumerate(row)
            for mark in every(cell, "mark")
        ]
        for row in rows
    }


def finding(code, subject, severity=Severity.ERROR):
    return Evidence(
        id="E1", code=code, kind="k", severity=severity, subject=subject, observed="this", expected="that",
        source=FileSource(file="abc.wrapper.cpp", line=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "subject", "expected"),
    [
        ("AD-IN-013", "args[0].shape[1]", [(2, "16"), (6, "16")]),
        ("AD-IN-012", "args[0]", [(2, "[2..64, 16]"), (6, "[4, 16]")]),
        ("AD-IN-014", "args[0].stride", [(3, "(16, 1)"), (7, "(16, 1)")]),
        ("AD-IN-008", "args[0]", [(4, "cpu"), (8, "cpu")]),
        ("AD-IN-019", "args[0]", [(9, "none")]),
        ("AD-IN-002", "args[1]", None),
    ],
)
def test_each_finding_marks_its_property(code, subject, expected):
    base = replace(builders.report(), verdict="problem", findings=(finding(code, subject),))
    found = marks(base)
    if expected is None:  # a container: its leaves are named, no property is
        assert [index for index, _ in found.pop("args[1]['scale']")] == [0]
    else:
        assert found.pop("args[0]") == expected
    assert not any(found.values())


def test_a_dim_that_is_not_there_marks_the_whole_shape():
    base = replace(builders.report(), verdict="problem", findings=(finding("AD-IN-013", "args[0].shape[7]"),))
    assert [index for index, _ in marks(base)["args[0]"]] == [2, 6]


def test_notes_mark_nothing():
    base = replace(builders.report(), findings=(finding("AD-IN-013", "args[0].shape[1]", Severity.INFO),))
    assert not any(marks(base).values())


def test_a_missing_leaf_and_one_too_many():
    base = builders.report()
    given_ = replace(base.case.inputs, kwargs=replace(base.case.inputs.kwargs, keys=("idz",)))
    found = (finding("AD-IN-003", "kwargs['ids']"), replace(finding("AD-IN-003", "kwargs['idz']"), id="E2"))
    report = replace(base, verdict="problem", findings=found, case=replace(base.case, inputs=given_))
    rows = marks(report)
    assert rows["kwargs['ids']"] == [(5, "missing")]
    assert rows["kwargs['idz']"] == [(1, "not expected")]


def test_calls_in_order_with_their_time():
    tree = page(located())
    rows = every(every(by_id(tree, "calls"), "tbody")[0], "tr")
    assert [words(row[1]).split()[0] for row in rows] == [entry.name for entry in PLACE.timeline]
    assert [words(row[3]) for row in rows] == ["3 ms", "1 ms", ""]
    assert [words(row[1]).partition(" ")[2] for row in rows] == ["", "first bad values", "never returned"]
    assert [has(row, "bad") for row in rows] == [False, True, True]
    bars = [every(row, "span", class_="bar")[0].get("style") for row in rows[:2]]
    assert bars == ["left:0.0%;width:75.0%", "left:75.0%;width:25.0%"]
    assert "40 calls of all kinds" in words(by_id(tree, "calls"))


def test_the_stack_with_its_line():
    where = by_id(page(located()), "where")
    assert words(every(where, "mark")[0]) == '12 call(buf0, "</pre><b>");'
    assert "misbehave" in words(every(where, "tbody")[0])


def drawings(tree, section):
    return list(by_id(tree, section).iter(f"{S}svg"))


def test_values_are_drawn():
    pytest.importorskip("matplotlib")
    tree = page(located())
    (svg,) = drawings(tree, "values")
    told = [words(item) for item in svg.iter(f"{S}text")]
    for word in ("aoti_torch_cpu_mm_out", "buf0", "cpp_fused_log_1", "buf1", "3 NaN, 1 Inf", "1.5e-07", "4.5"):
        assert word in told, told
    assert "buf1" in every(by_id(tree, "values"), "div", role="img")[0].get("aria-label")
    text = html_.render_html(located())
    assert "#0102" not in text  # every stand-in has become a colour of the page
    assert "var(--bad)" in text
    assert "<metadata" not in text
    assert text == html_.render_html(located())


def test_the_range_is_where_the_axis_says():
    """The line of a row from its smallest to its largest value, in the units of the axis's ticks."""
    pytest.importorskip("matplotlib")
    from aotidoctor.reports.html import plots
    from aotidoctor.reports.html.html_blocks import ValueRow

    row = partial(ValueRow, call="k", mean=None, nan=0, inf=0, error=None, agrees=None, bad=False)
    rows = (row(tensor="a", low=0.0, high=10.0), row(tensor="b", low=5.0, high=10.0))
    svg = str(plots.values(rows))
    lines = re.findall(r'd="M ([\d.]+) ([\d.]+) \nL ([\d.]+) \2 \n"[^>]*stroke: var\(--accent\)', svg)
    (left, _, right), (middle, _, same) = [tuple(map(float, line)) for line in lines]
    assert right == same
    assert middle == pytest.approx((left + right) / 2)


def test_errors_are_drawn():
    pytest.importorskip("matplotlib")
    (svg,) = drawings(page(located()), "comparison")
    told = [words(item) for item in svg.iter(f"{S}text")]
    assert {"result[0]", "1.23e+05", "result[1]", "2"} <= set(told)
    assert svg.get("viewBox")


@pytest.mark.parametrize(
    "numbers", [(0.0, 0.0), (1e-30, 1e30), (-1e-300, 1e300), (float("inf"), float("-inf")), (None, None)]
)
def test_any_number_can_be_drawn(numbers):
    pytest.importorskip("matplotlib")
    low, high = numbers
    buffer = value("b", low=low, high=high, mean=high, error=high, agrees=True)
    calls = (KernelValues(index=0, name="$k_{$", kind="kernel", buffers=(buffer, value("c", low=1.0, high=2.0))),)
    tree = page(located(values=calls, first_bad="$k_{$"))
    (svg,) = drawings(tree, "values")
    assert "$k_{$" in [words(item) for item in svg.iter(f"{S}text")]


def test_of_many_calls_those_around_the_bad_one_are_drawn():
    pytest.importorskip("matplotlib")
    calls = tuple(
        KernelValues(index=n, name=f"cpp_fused_{n}", kind="kernel", buffers=(value(f"buf{n}", low=0.0, high=float(n)),))
        for n in range(300)
    )
    tree = page(located(values=calls, first_bad="cpp_fused_200"))
    (svg,) = drawings(tree, "values")
    told = {words(item) for item in svg.iter(f"{S}text")}
    assert {"cpp_fused_199", "cpp_fused_200", "cpp_fused_201"} <= told
    assert "cpp_fused_0" not in told
    assert "260 more tensors" in words(by_id(tree, "values"))


def test_without_matplotlib_the_page_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "aotidoctor.reports.html.plots", raising=False)
    tree = page(located())
    for section in ("values", "comparison"):
        assert "matplotlib cannot be imported" in words(by_id(tree, section))
        assert not drawings(tree, section)
        assert every(by_id(tree, section), "table")


def test_nothing_is_drawn_without_numbers_and_matplotlib_stays_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "aotidoctor.reports.html.plots", raising=False)
    assert "matplotlib" not in html_.render_html(builders.misleading())


def test_probes_against_outcomes():
    tree = page(builders.misleading())
    table = every(by_id(tree, "probes"), "table")[0]
    heads = [words(item) for item in every(table, "th", scope="col")]
    assert heads == ["Probe", "raised RuntimeError", "ok", "Setting acted"]
    cells = {
        words(row[0]).split()[0]: [words(cell) for cell in row[1:]] for row in every(every(table, "tbody")[0], "tr")
    }
    assert cells == {
        "plain-run": ["R1 run1", "", ""],
        "check-inputs": ["R2 run1", "", "yes"],
        "treatment:": ["", "R3", ""],
    }


def test_runs_with_what_they_printed():
    run = by_id(page(builders.unknown()), "R1")
    assert words(every(run, "summary")[0]) == "R1 plain-run SIGSEGV, core dumped in run1, 1.25 s"
    assert "Segmentation fault" in words(every(run, "pre")[0])


def test_long_output_is_cut_with_a_count():
    text = "x" * 99 + "\n"
    flood = builders.outcome("R1", ending=Exited(code=1, done=False), stage="run1", stderr_tail=text * 100_000)
    rendered = html_.render_html(builders.report(verdict="unknown", runs=(flood,)))
    assert len(rendered) < 100_000
    tree = parsed(rendered)
    run = by_id(tree, "R1")
    shown = every(run, "pre")[0].text
    cut = int(re.search(r"… ([\d,]+) characters before this", words(every(run, "figcaption")[0]))[1].replace(",", ""))
    assert cut + len(shown.strip("\n")) == len(text) * 100_000 - 1
    assert shown.strip("\n").endswith("x" * 99)


def test_many_runs_share_the_room():
    crash = partial(builders.outcome, ending=Signalled(signal=11, name="SIGSEGV"), stage="run1")
    noise = "y" * 16_000
    runs = tuple(crash(f"R{n}", stdout_tail=noise, stderr_tail=noise) for n in range(400))
    assert len(html_.render_html(builders.report(verdict="unknown", runs=runs))) < 600_000


def test_a_huge_contract_keeps_its_marked_leaf_in_sight():
    leaves = tuple(replace(builders.X, path=f"args[{n}]") for n in range(3000))
    base = builders.report(verdict="problem", findings=(finding("AD-IN-010", "args[2500]"),))
    report = replace(base, case=replace(base.case, contract=replace(builders.CONTRACT, leaves=leaves)))
    section = by_id(page(report), "contract")
    first, rest = every(section, "table")
    shown = [words(row[0]) for row in every(every(first, "tbody")[0], "tr")]
    assert "args[2500] E1" in shown
    assert len(shown) == 40
    folded = len(every(every(rest, "tbody")[0], "tr"))
    assert f"and {3000 + 2 - 40 - folded:,} more leaves" in words(section)


def test_a_log():
    event = LogEvent(form="python", first=7, last=9, text="RuntimeError: <b>no</b>", origin="rank 1")
    echo = LogEvent(form="c10", first=12, last=12, text="again", echo_of=7, count=3)
    other = LogEvent(form="line", first=20, last=20, text="what is this")
    pattern = LogPattern(
        cause="input-dtype", regex="x", example="x", source="f.cpp", confidence=0.9, known="2.6-2.8", fixed="2.9"
    )
    log = LogReading(
        name="crash.log",
        size=2048,
        lines=30,
        events=(event, echo, other, replace(other, form="glog")),
        matches=(LogMatch(event=event, pattern=pattern, line=7, text=event.text, confidence=0.9),),
        more_events=5,
        versions={"torch": "2.8.0"},
        unknown=(other,),
        problems=("2 lines cut",),
    )
    said = replace(finding("AD-LOG-001", None), source=FileSource(file="/logs/crash.log", line=8), observed="no")
    first = replace(builders.misleading().diagnoses[0], looked_like="line 8: no", evidence=("E1",))
    tree = page(
        builders.report(
            verdict="problem", command="classify", log=log, findings=(said,), diagnoses=(first,), stage="run"
        )
    )
    assert [item.get("href") for item in every(by_id(tree, "E1"), "a")] == ["#L7"]
    assert "#L7" in [item.get("href") for item in every(every(tree, "header")[0], "a")]
    section = by_id(tree, "log")
    rows = [[words(cell) for cell in row] for row in every(every(section, "tbody")[0], "tr")]
    assert rows[0] == [
        "7-9",
        "[rank 1] RuntimeError: <b>no</b>",
        "input-dtype (90%); torch: known in 2.6-2.8, fixed in 2.9",
    ]
    assert rows[1][1:] == ["again (logged 3 times)", "an echo of line 7"]
    assert rows[2][2] == "no known cause"
    for word in ("torch 2.8.0", "2 lines cut", "5 more, not kept"):
        assert word in words(section)
    assert "crash.log" in words(every(tree, "main")[0])


def test_what_it_is_says_more_than_what_it_looked_like():
    """The symptom once more is no answer: a later finding is, and none is better than the same words."""
    base = builders.misleading()
    symptom, cause = base.findings[1], replace(base.findings[0], id="E3", observed="int32 in a kernel")
    first = replace(base.diagnoses[0], evidence=("E2", "E3"))
    header = every(page(replace(base, findings=(symptom, cause), diagnoses=(first,))), "header")[0]
    assert "Is E3" in words(header)
    alone = replace(symptom, expected="")
    header = every(page(replace(base, findings=(alone,), diagnoses=(replace(first, evidence=("E2",)),))), "header")[0]
    assert "Looked like" in words(header)
    assert "→" not in words(header)


def test_the_signature_with_its_parts():
    mark = Signature(
        family="aotidoctor2f:1111",
        exact="aotidoctor2:2222",
        parts=(SignaturePart(rule="cause", text="input-dtype", granularity="family", source="E1"),),
    )
    section = by_id(page(replace(builders.misleading(), fingerprint=mark)), "again")
    said = words(section)
    assert "aotidoctor2:2222" in said
    assert "aotidoctor2f:1111" in said
    assert every(section, "a")[0].get("href") == "#E1"


def test_what_was_not_checked_and_why():
    said = words(by_id(page(builders.misleading()), "unchecked"))
    assert "input_shape_disagree (AD-IN-016)" in said
    assert "input_dtype failed first" in said


def test_the_other_causes():
    (item,) = every(by_id(page(builders.misleading()), "also"), "li")
    assert words(item) == "index-out-of-range: suspected (20%); to confirm: ids above 99"


def test_a_failure_of_its_own_is_shown():
    report = builders.report(verdict="unknown", internal_error="Traceback:\n  File <x>\nKeyError: 'a'")
    tree = page(report)
    assert "INTERNAL ERROR" in words(every(tree, "header")[0])
    assert "File <x>" in words(by_id(tree, "traceback"))


NASTY = st.text(
    st.sampled_from("<>&\"'`{}%#;:/\\[]() \n\r\t\x00\x07\x1b\x7f\x85\u2028\u202e\u200b\u2066\ud800\ufdd0\uffff\U0001ffffER1$aé"),
    max_size=60,
) | st.sampled_from(
    ["</script><script>", "</pre>", "</style>", "<!--", "]]>", "{{ 7*7 }}", "{% raw %}", "\x1b]0;x\x07", "javascript:x", '" onload="x']
)  # fmt: skip


def hostile(text):
    base = builders.misleading()
    item = replace(
        base.findings[0], subject=f"kwargs['ids'].{text}", observed=text, expected=text, message=text * 9, kind=text, code=text,
        source=FileSource(file=text), id=text,
    )  # fmt: skip
    error = ChildError(type=text, message=text, traceback=text)
    run = replace(base.runs[0], id=text, stage=text, error=error, stderr_tail=text, stages={text: 1.0}, argv=(text,))
    run = replace(
        run, request=builders.request(text, env={text: text}, purpose=text), warnings=(text,), debugger_output=text
    )
    first = replace(
        base.diagnoses[0], cause=text, title=text, looked_like=text, subject=text, confirmation=text, evidence=("E1", text),
        remedy=replace(base.diagnoses[0].remedy, text=text, command=text), stage=text,
    )  # fmt: skip
    place = replace(
        PLACE,
        culprit=text,
        chain=text,
        timeline=tuple(replace(entry, name=text, kind=text, where=text) for entry in PLACE.timeline),
        values=tuple(replace(call, name=text, buffers=(value(text, low=0.0, high=1.0),)) for call in PLACE.values),
        comparison=tuple(replace(one, path=text, verdict=text) for one in PLACE.comparison),
    )
    return replace(
        base, findings=(base.findings[0], item), runs=(*base.runs, run), diagnoses=(first, *base.diagnoses[1:]),
        localization=place, argv=("aotidoctor", text), signature=text, version=text, extra={"origin": text},
    )  # fmt: skip


@cache
def harmless():
    """The elements of a page in which nobody's text tries anything."""
    return {item.tag for item in page(hostile("word")).iter() if isinstance(item.tag, str)}


@settings(max_examples=25)
@given(NASTY)
def test_no_text_of_others_becomes_markup(text):
    rendered = html_.render_html(hostile(text))
    tree = parsed(rendered)  # strict: raises for every code point that HTML forbids
    names = {item.tag for item in tree.iter() if isinstance(item.tag, str)}
    assert names <= harmless()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]", rendered)
    assert "49" not in words(every(tree, "h1")[0])


@given(NASTY)
def test_text_comes_out_as_it_went_in(text):
    shown = "".join(parsed(f"<!DOCTYPE html><title>t</title><p>{html_text.esc(text)}").itertext())
    assert shown.removeprefix("t").replace("\n", "") == html_text.clean(text).replace("\n", "")


def test_package_data_is_in_the_wheel(tmp_path):
    """What a wheel would hold: the template and the style sheet, by the rules of the build backend."""
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    from pathlib import Path

    root = Path(__file__).parents[3]
    (built,) = hatchling.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    assert {"aotidoctor/reports/templates/report.html.jinja", "aotidoctor/reports/templates/report.css"} <= names


def test_long_tables_are_folded_filtered_and_come_last():
    """Nothing of them needs the script; the policy allows that one by its hash and no other."""
    whole = builders.misleading()
    findings = tuple(replace(whole.findings[0], id=f"E{number}") for number in range(1, 200))
    tree = page(replace(whole, findings=findings))
    (table,) = [item for item in every(tree, "table") if "long" in item.get("class").split()]
    assert len(every(table, "tr")) == 200
    parents = [item.tag for item in tree.iter() if table in list(item.iter()) and item is not table]
    assert any(tag.endswith("details") for tag in parents)
    (script,) = every(tree, "script")
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    (policy,) = [item.get("content") for item in every(tree, "meta") if item.get("http-equiv")]
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


def test_long_tables_of_the_package_come_behind_the_host():
    whole = builders.misleading()
    leaves = tuple(
        replace(builders.X, index=number, path=f"args[{number}]", input_index=number) for number in range(200)
    )
    contract = replace(whole.case.contract, leaves=leaves, n_inputs=200)
    report = replace(whole, case=replace(whole.case, contract=contract), diagnoses=(), findings=(), verdict="healthy")
    order = [item.get("id") for item in every(page(report), "section")]
    assert order.index("contract") > order.index("host") > order.index("runs")
