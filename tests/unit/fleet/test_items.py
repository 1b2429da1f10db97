"""What the arguments of a batch mean: items of files, folders, patterns and manifests."""

from __future__ import annotations

import json
import os
import zipfile

import pytest

from aotidoctor.fleet.items import FleetItem, ItemSearch, find_items, item_json, read_item
from aotidoctor.model.errors import UsageError


def touch(folder, *names, data=b"x"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def find(*words, command="check", **more):
    return find_items([str(word) for word in words], ItemSearch(command=command, **more))


def said(items, folder):
    return [
        (one.command, one.path.replace(f"{folder}/", ""), one.inputs and one.inputs.replace(f"{folder}/", ""))
        for one in items
    ]


def test_a_folder_gives_the_files_of_its_command(tmp_path):
    touch(tmp_path, "b/m.pt2", "a.pt2", "a.pt2.txt", "x.log", ".hidden/m.pt2")
    assert said(find(tmp_path), tmp_path) == [("check", "a.pt2", None), ("check", "b/m.pt2", None)]
    assert said(find(tmp_path, command="classify"), tmp_path) == [
        ("classify", "a.pt2.txt", None),
        ("classify", "x.log", None),
    ]


def test_inputs_beside_a_package_its_own_first(tmp_path):
    touch(tmp_path, "a.pt2", "b.pt2", "b.inputs.npz", "sample.pt", "c/c.pt2")
    assert said(find(tmp_path), tmp_path) == [
        ("check", "a.pt2", "sample.pt"), ("check", "b.pt2", "b.inputs.npz"), ("check", "c/c.pt2", None),
    ]  # fmt: skip
    assert said(find(tmp_path / "a.pt2"), tmp_path) == [("check", "a.pt2", "sample.pt")]


@pytest.mark.parametrize("name", ["m.pt2", "{dir}.pt2", "{stem}{name}.pt2", "{0.__class__}.pt2"])
def test_a_pattern_says_where_inputs_are(tmp_path, name):
    stem = name.removesuffix(".pt2")
    touch(tmp_path, name, f"in/{stem}.npz", "sample.pt")
    [item] = find(tmp_path / name, inputs_pattern="{dir}/in/{stem}.npz")
    assert item.inputs == str(tmp_path / "in" / f"{stem}.npz")
    assert find(tmp_path / name, inputs_pattern="{dir}/none/{stem}")[0].inputs is None


def test_a_file_is_taken_by_what_it_is(tmp_path):
    touch(tmp_path, "crash.log", "notes", data=b"Traceback\n")
    touch(tmp_path, "report.json", data=b'{\n  "schema": "aotidoctor.report/1"')
    touch(tmp_path, "lib.bin", data=b"\x7fELF")
    with zipfile.ZipFile(tmp_path / "case.zip", "w") as archive:
        archive.writestr("bundle.json", "{}")
        archive.writestr("report.json", "{}")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data/x.so", "")
    words = [tmp_path / name for name in ("crash.log", "notes", "report.json", "lib.bin", "case.zip", "model.zip")]
    assert [one.command for one in find(*words, command="run")] == [
        "classify",
        "classify",
        "analyze",
        "run",
        "analyze",
        "run",
    ]


def test_patterns_are_sorted_and_nothing_is_there_twice(tmp_path):
    touch(tmp_path, "b.pt2", "a.pt2", "deep/er/c.pt2")
    assert [one.path[-5:] for one in find(f"{tmp_path}/**/*.pt2", tmp_path, tmp_path / "a.pt2")] == [
        "a.pt2",
        "b.pt2",
        "c.pt2",
    ]


def test_a_file_that_is_called_like_a_pattern_is_that_file(tmp_path):
    touch(tmp_path, "[a]*.pt2", "axx.pt2")
    assert [one.path for one in find(tmp_path / "[a]*.pt2")] == [str(tmp_path / "[a]*.pt2")]


def test_one_word_that_names_nothing_is_told(tmp_path):
    with pytest.raises(UsageError, match="none"):
        find(f"{tmp_path}/none*.pt2")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty"):
        find(tmp_path / "empty")
    # A file that is not there is an item, which says so.
    assert said(find(tmp_path / "gone.pt2"), tmp_path) == [("check", "gone.pt2", None)]


def test_a_model_repository(tmp_path):
    touch(tmp_path, "mlp/config.pbtxt", "mlp/1/model.pt2", "mlp/2/model.pt2", "bert/config.pbtxt", "bert/1/model.pt2")
    assert [(one.path.rpartition("/")[2], one.labels) for one in find(tmp_path, command="triton")] == [
        ("bert", {"model": "bert"}), ("mlp", {"model": "mlp"}),
    ]  # fmt: skip
    assert [one.labels for one in find(tmp_path)] == [
        {"model": "bert", "version": "1"}, {"model": "mlp", "version": "1"}, {"model": "mlp", "version": "2"},
    ]  # fmt: skip


def test_packages_times_hosts(tmp_path):
    touch(tmp_path, "a.pt2", "b.pt2", "x.log")
    found = find(tmp_path / "a.pt2", tmp_path / "b.pt2", tmp_path / "x.log", hosts=("h1", "h2"))
    assert [(one.command, one.host) for one in found] == [
        ("check", "h1"), ("check", "h2"), ("check", "h1"), ("check", "h2"), ("classify", None),
    ]  # fmt: skip
    assert len({one.id for one in found}) == 5


def test_labels_and_expectations_do_not_make_another_item():
    item = FleetItem(command="check", path="a", inputs="b")
    assert item.id == FleetItem(command="check", path="a", inputs="b", labels={"x": "y"}, expected="healthy").id
    assert (
        len({item.id, FleetItem(command="check", path="a").id, FleetItem(command="run", path="a", inputs="b").id}) == 3
    )
    assert read_item(item_json(item)) == item
    strange = FleetItem(command="check", path="\udcff\n../x")
    assert len(strange.id) == 16
    assert read_item(json.loads(json.dumps(item_json(strange)))) == strange


def manifest(tmp_path, text, name="fleet.csv", command="check"):
    (tmp_path / name).write_text(text)
    return find(tmp_path / name, command=command)


CSV = """\
package,inputs,labels,expected,host,log,command
m/a.pt2,a.pt,team=vision;stage=prod,healthy,,,
/abs/b.pt2,,,input-dtype,debian-13,,compat

m/a.pt2,a.pt,,,,crash.log,
"""
ROWS = [
    {"package": "m/a.pt2", "inputs": "a.pt", "labels": {"team": "vision", "stage": "prod"}, "expected": "healthy"},
    {"package": "/abs/b.pt2", "expected": "input-dtype", "host": "debian-13", "command": "compat"},
    {"package": "m/a.pt2", "inputs": "a.pt", "log": "crash.log"},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fleet.csv", CSV),
        ("fleet.csv", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("fleet.jsonl", "\n\n".join(json.dumps(row) for row in ROWS)),
    ],
)
def test_a_manifest(tmp_path, name, text):
    folder = str(tmp_path)
    assert manifest(tmp_path, text, name) == [
        FleetItem(
            command="check", path=f"{folder}/m/a.pt2", inputs=f"{folder}/a.pt",
            labels={"team": "vision", "stage": "prod"}, expected="healthy",
        ),
        FleetItem(command="compat", path="/abs/b.pt2", host="debian-13", expected="input-dtype"),
        FleetItem(command="classify", path=f"{folder}/crash.log", package=f"{folder}/m/a.pt2", inputs=f"{folder}/a.pt"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("f.csv", "pakage\nx\n", "'package'"),
        ("f.csv", "package,zzzzzz\nx,y\n", "zzzzzz"),
        ("f.csv", "inputs\nx\n", "package"),
        ("f.csv", "package,package\nx,y\n", "twice"),
        ("f.csv", "package\nx,y\n", "f.csv:2"),
        ("f.csv", 'package\n"x\n', "f.csv"),
        ("f.csv", "package,labels\nx,novalue\n", "novalue"),
        ("f.csv", "package,command\nx,rm\n", "'rm'"),
        ("f.csv", "package,log,command\nx,y,check\n", "classify"),
        ("f.csv", "package,log,labels\n,,a=b\n", "f.csv:2"),
        ("f.jsonl", "{}", "package"),
        ("f.jsonl", '{"package": 1}', "int"),
        ("f.jsonl", '{"package": "a\\u0000b"}', "NUL"),
        ("f.jsonl", '{"package": "a"}\n[1]', "f.jsonl:2"),
        ("f.jsonl", '{"package": "a"}\n{', "f.jsonl:2"),
        ("f.jsonl", '{"package": "a", "labels": {"x": 1}}', "labels.x"),
        ("f.jsonl", "[" * 100_000, "f.jsonl:1"),
    ],
)
def test_a_manifest_that_cannot_be_meant_is_told_with_its_line(tmp_path, name, text, said):
    with pytest.raises(UsageError) as raised:
        manifest(tmp_path, text, name)
    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["f.csv", "f.jsonl"])
def test_a_row_without_an_end_is_refused_at_once(tmp_path, name):
    path = tmp_path / name
    path.touch()
    os.truncate(path, 8 << 30)
    with pytest.raises(UsageError, match=r"f.*:1: the row has more than 65,536 characters"):
        find(path)


def test_a_row_of_any_number_of_lines_is_bounded_too(tmp_path):
    cell = '"x\n' + "y" * 1000 + '",'
    with pytest.raises(UsageError, match="the row has more than 65,536 characters"):
        manifest(tmp_path, "package\n" + cell * 100)
    assert (
        len(manifest(tmp_path, "package,labels\n" + "".join(f'{n}.pt2,"a={"y" * 1000}\n"\n' for n in range(200))))
        == 200
    )


@pytest.mark.parametrize("name", ["f.csv", "f.jsonl"])
def test_a_manifest_that_is_no_file_is_refused_at_once(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(UsageError, match="it is a pipe"):
        find(tmp_path / name)


def test_a_manifest_makes_nothing_run_that_was_not_asked_for(tmp_path):
    text = "package,command,setup\nx.pt2,run,evil.py\n"
    with pytest.raises(UsageError, match="--command run"):
        manifest(tmp_path, text)
    assert [one.command for one in manifest(tmp_path, text, command="run")] == ["run"]
