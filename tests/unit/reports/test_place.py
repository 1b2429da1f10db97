"""The sections about the place of a failure: what stands in them, in every format."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema

from aotidoctor.model.localization import BufferValues, Frame, KernelValues, Localization, SourceLine, TimelineEntry
from aotidoctor.reports import markdown
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.page import place_page
from aotidoctor.reports.page.blocks import plain_words
from aotidoctor.reports.page.place_page import kernel_value_rows
from aotidoctor.reports.terminal.terminal_report import plain_terminal_text
from tests.unit.reports.builders import unknown


def buffer(name, role="in", **more):
    return BufferValues(name=name, role=role, dtype="float32", shape=(4,), low=0.0, high=2.0, mean=1.0, **more)


VALUES = (
    KernelValues(index=0, name="cpp_fused_a_0", kind="kernel", buffers=(buffer("args[0]"), buffer("buf0", "out"))),
    KernelValues(
        index=1,
        name="cpp_fused_log_1",
        kind="kernel",
        buffers=(
            buffer("buf0"),
            buffer("w", seen=False),
            buffer("buf1", "out", nan=3, matches="log", where="m.py:7", agrees=False, error=0.25),
        ),
    ),
)
PLACE = Localization(
    culprit="cpp_fused_log_1 (aten.log)",
    how="the first call that wrote bad values",
    chain="cpp_fused_log_1: 3 NaN; from aten.log at m.py:7",
    timeline=(
        TimelineEntry(name="cpp_fused_a_0", kind="kernel", call=1, state="returned", seconds=2.5e-6),
        TimelineEntry(
            name="cpp_fused_log_1", kind="kernel", call=1, state="entered", origins=("aten.log",), where="m.py:7"
        ),
    ),
    calls_total=9,
    frames=(
        Frame(
            index=0,
            function="cpp_fused_log_1(float const*, float*)",
            file="/x/k.kernel.cpp",
            line=12,
            member="model/k.kernel.cpp",
            lines=(SourceLine(number=11, text="a"), SourceLine(number=12, text="b = c;", marked=True)),
        ),
        Frame(index=1, function="torch::aot_inductor::AOTInductorModel::run_impl(void**)", library="/x/w.so"),
        Frame(index=2, function="main", library="/usr/bin/python"),
    ),
    fault_address="0x0",
    fault_target="the null page",
    values=VALUES,
    first_bad="cpp_fused_log_1",
)


def test_each_call_is_named_once_and_the_culprit_marked():
    headings, *rows = kernel_value_rows(VALUES, "cpp_fused_log_1")
    assert headings == ["", "Call", "Tensor", "Min", "Max", "Mean", "NaN", "Off by", "From"]
    assert [row[:3] for row in rows] == [
        ["", "cpp_fused_a_0", "in args[0]"],
        ["", "", "out buf0"],
        ["►", "cpp_fused_log_1", "in buf0"],
        ["►", "", "out buf1"],
    ]
    assert rows[-1][3:] == ["0", "2", "1", "3", "0.25", "not log at m.py:7"]


def test_columns_in_which_nothing_is_told_are_left_out():
    headings = kernel_value_rows(VALUES[:1], None)[0]
    assert headings == ["", "Call", "Tensor", "Min", "Max", "Mean"]


def test_of_many_calls_the_culprit_s_neighbours_are_shown():
    many = tuple(replace(VALUES[0], index=at, name=f"k{at}") for at in range(40))
    names = [row[1] for row in kernel_value_rows(many, "k20")[1:] if row[1]]
    assert names == ["k18", "k19", "k20", "k21", "k22"]
    assert len([row for row in kernel_value_rows(many, "k20", whole=True)[1:] if row[1]]) == 40


def test_no_values_no_table():
    assert kernel_value_rows((), None) == []


def test_the_stack_ends_at_the_model():
    rows = place_page.frame_rows(PLACE)
    assert rows == [
        ("#0", "cpp_fused_log_1", "k.kernel.cpp:12"),
        ("#1", "torch::aot_inductor::AOTInductorModel::run_impl", "w.so"),
    ]
    assert len(place_page.frame_rows(PLACE, whole=True)) == 3


def test_the_line_of_the_package_is_shown():
    shown = place_page.excerpt(PLACE)
    assert shown is not None
    assert (plain_words(shown.title), shown.text) == ("k.kernel.cpp:12", "  11  a\n► 12  b = c;")


def test_without_a_stack_the_line_is_that_of_the_failed_check():
    check = next(frame for frame in PLACE.frames if frame.lines)
    report = replace(unknown(), localization=replace(PLACE, frames=(), check=check))
    for text in (plain_terminal_text(report, width=120), markdown.render_markdown(report)):
        assert "k.kernel.cpp:12" in text
        assert "b = c;" in text
    jsonschema.validate(json.loads(json_.render_json(report)), schema())


def test_times_have_units_that_kernels_need():
    (table, _traced) = place_page.call_blocks(replace(unknown(), localization=PLACE), 0)
    shown = [[row.mark, *(plain_words(cell.words) for cell in row.cells)] for row in table.of_format("t").rows]
    assert shown == [
        ["", "cpp_fused_a_0", "kernel", "2.5 µs", ""],
        ["►", "cpp_fused_log_1 never returned", "kernel", "", "aten.log at m.py:7"],
    ]


def test_of_many_calls_the_last_are_shown_and_the_others_counted():
    many = tuple(replace(PLACE.timeline[0], name=f"k{at}") for at in range(40))
    report = replace(unknown(), localization=replace(PLACE, timeline=many, calls_total=40))
    (note, table) = place_page.call_blocks(report, 0)
    assert note.words == "28 calls before these (-vv shows all)"
    assert len(table.rows) == 12
    assert len(place_page.call_blocks(report, 2)[0].rows) == 40


def test_every_format_names_culprit_chain_line_and_address():
    report = replace(unknown(), localization=PLACE)
    for text in (plain_terminal_text(report, width=120), markdown.render_markdown(report)):
        for part in ("cpp_fused_log_1 (aten.log)", "aten.log at m.py:7", "b = c;", "0x0", "the null page", "buf1"):
            assert part in text, part
    whole = json.loads(json_.render_json(report))
    jsonschema.validate(whole, schema())
    document = whole["localization"]
    assert document["culprit"] == "cpp_fused_log_1 (aten.log)"
    assert document["values"][1]["buffers"][2]["nan"] == 3
    assert document["frames"][0]["lines"][1] == {"number": 12, "text": "b = c;", "marked": True}


def test_the_packages_own_frames_are_among_those_shown():
    """An exception in a loop that threads share: the runtime's frames are above the kernel's."""
    above = [Frame(index=at, function=f"gomp_{at}", library="libgomp.so") for at in range(14)]
    own = Frame(index=14, function="cpp_fused_embedding_0", member="model/k.kernel.cpp", line=22)
    callers = [Frame(index=at, function=f"outer_{at}", library="libtorch.so") for at in range(15, 20)]
    rows = place_page.frame_rows(replace(PLACE, frames=(*above, own, *callers)))
    assert len(rows) == 10
    assert rows[-1] == ("#14", "cpp_fused_embedding_0", "k.kernel.cpp:22")
    assert [number for number, _, _ in rows[:-1]] == [f"#{at}" for at in range(9)]
