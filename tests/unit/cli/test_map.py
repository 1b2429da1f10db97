"""The command that draws maps: what cannot be meant, what it writes, and what a stranger's text may do in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.model.package_map import CallTime, MapBuffer, MapCall, MapLine, MapRun, MemoryPeak, PackageMap
from aotidoctor.reports import package_map_files
from aotidoctor.reports.html.map_page import memory_bands, render_map_page

DYN = Path(__file__).parents[2] / "data" / "releases" / "2.8.0" / "dyn"
PACKAGE = Path(__file__).parents[2] / "data" / "releases" / "2.12.1" / "custop" / "model.pt2"
LOUD = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def call(*words):
    return CliRunner().invoke(build_app(), ["map", *map(str, words)], env={"COLUMNS": "160"})


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "--format", "html"),
        ("--report", "page.html"),
        ("--report", "html:"),
        ("--report", "rich:page"),
        ("--report", "json:m.pt2"),
        ("-o", "m.pt2"),
        ("--report", "trace:t.json"),
        ("--format", "model-explorer"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pt2").write_text("no package")
    assert call("m.pt2", *words).exit_code == 2
    assert (tmp_path / "m.pt2").read_text() == "no package"


@pytest.mark.parametrize("content", [None, "no package"])
def test_what_cannot_be_mapped_is_status_4(content, tmp_path):
    path = tmp_path / "m.pt2"
    if content is not None:
        path.write_text(content)
    done = call(path, "--json")
    assert done.exit_code == 4
    document = json.loads(done.stdout)
    assert document["schema"] == "aotidoctor.map/1"
    assert document["cannot_examine"]


def test_a_static_map_of_a_package_needs_no_torch():
    document = json.loads(call(PACKAGE, "--json").stdout)
    assert [one["kind"] for one in document["calls"]] == ["cpp", "custom", "cpp"]
    assert document["run"] is None
    assert document["peak"]["bytes"] > 0 or document["peak"]["unknown"]
    assert {one["role"] for one in document["buffers"]} >= {"input", "output"}


def made(count=3, name="cpp_fused_relu_0"):
    """So many calls, each as long as its number, with one buffer each that lives for two calls."""
    calls = tuple(
        MapCall(
            index=at, name=name, kind="cpp", operators=("aten.relu",), nodes=(f"relu_{at}",), where=(f"model.py:{at % 40}",),
            reads=(f"buf{at - 1}",) if at else (), writes=(f"buf{at}",), moved=1024 * at, alive=2048, state="returned",
            time=CallTime(seconds=(at + 1) * 1e-6, low=at * 1e-6, high=(at + 2) * 1e-6, runs=9, share=1 / count),
        )
        for at in range(count)
    )  # fmt: skip
    buffers = tuple(
        MapBuffer(
            name=f"buf{at}", label=f"buf{at}", role="temporary", dtype="float32", shape=("16", "16"), size="1024",
            bytes=1024, first=at, last=min(at + 1, count - 1), written=(at,),
        )
        for at in range(count)
    )  # fmt: skip
    lines = tuple(
        MapLine(where=f"model.py:{line}", text="x = x.relu()", calls=tuple(range(line, count, 40)))
        for line in range(40)
    )
    return PackageMap(
        package=LOUD, model_name="model", device="cpu", calls=calls, buffers=buffers, lines=lines,
        peak=MemoryPeak(call=1, bytes=2048, alive=("buf0", "buf1")), run=MapRun(runs=9, seconds=1e-3),
    )  # fmt: skip


def test_the_trace_has_the_calls_end_to_end_and_the_memory():
    events = json.loads(package_map_files.trace_document(made()))["traceEvents"]
    calls = [one for one in events if one["ph"] == "X"]
    assert [(one["ts"], one["dur"]) for one in calls] == [
        (pytest.approx(0), pytest.approx(1)), (pytest.approx(1), pytest.approx(2)), (pytest.approx(3), pytest.approx(3))
    ]  # fmt: skip
    assert [one["args"]["temporary"] for one in events if one["ph"] == "C"] == [1024, 2048, 2048]


def test_node_data_has_the_time_of_each_node():
    results = json.loads(package_map_files.explorer_document(made()))["main"]["results"]
    assert {name: round(one["value"]) for name, one in results.items()} == {"relu_0": 1, "relu_1": 2, "relu_2": 3}


def test_no_text_of_a_stranger_becomes_markup():
    page = render_map_page(made(name=LOUD))
    assert LOUD not in page
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "owned" in page


def test_a_page_of_1500_calls_is_small_and_has_each_of_them():
    page = render_map_page(made(1500))
    assert len(page) < 5 << 20
    assert page.count("<rect ") == 1500
    assert page.count('<th scope="row" class="num">') == 1500


def test_bands_are_stacked_and_reach_the_highest_sum():
    found = memory_bands(made())
    assert [band.label for band in found] == ["buf0", "buf1", "buf2"]
    heights = [float(point.split(",")[1]) for band in found for point in band.path[1:-2].split(" L")]
    assert min(heights) == 0.0
    assert max(heights) == 160.0


def test_a_slip_in_its_files_is_answered_as_by_run(tmp_path):
    package, inputs = tmp_path / "model.pt2", tmp_path / "sample.pt"
    shutil.copy(DYN / "model.pt2", package)
    shutil.copy(DYN / "samples" / "good.pt", inputs)
    for words, said in {
        (
            package,
            "--inputs",
            tmp_path / "sampel.pt",
        ): f"no such file: {tmp_path / 'sampel.pt'} (--inputs); did you mean {inputs}?",
        (inputs, "--inputs", package): f"did you mean {package} --inputs {inputs}?",
        (tmp_path / "modell.pt2",): f"did you mean {package}?",
    }.items():
        done = CliRunner().invoke(build_app(), ["map", *map(str, words)])
        assert done.exit_code == 4
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("more", [(), ("--no-redact",)])
@pytest.mark.parametrize("command", ["map", "sweep", "minimize"])
def test_an_error_document_hides_what_a_report_hides(tmp_path, monkeypatch, command, more):
    home = tmp_path / "alexandra.smith"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "alexandra.smith")
    words = [command, str(home / "gone.pt2"), "--json", *more]
    words += ["--inputs", str(home / "x.pt"), "--reference", str(home / "y.pt2")] if command == "minimize" else []
    done = CliRunner().invoke(build_app(), words)
    assert done.exit_code == 4
    assert "no such file" in json.loads(done.stdout)["cannot_examine"]
    assert ("alexandra" in done.stdout + done.stderr) == bool(more)
