"""``triton names`` and ``triton init``: what goes to stdout, what is written, and the exit status."""

from __future__ import annotations

import json

import jsonschema
import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.reports.json.schema import schema
from aotidoctor.triton.open_models import read_config
from tests.unit.triton.harness import package
from tests.unit.triton.specs import T, call, dic, repacked, spec


@pytest.fixture
def run(tmp_path):
    """``run("init", data, *options)``: the result of a word on a package of these bytes."""

    def invoke(word, data, *options):
        path = tmp_path / "net.pt2"
        path.write_bytes(data)
        return CliRunner().invoke(build_app(), ["triton", word, str(path), *options])

    return invoke


def test_names_as_json_follow_the_schema(run):
    result = run("names", package("odd_outputs"), "--triton", "26.05", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    jsonschema.validate(document, schema())
    rows = document["names"]["outputs"]
    assert [(row["ordinal"], row["forward"], row["kind"], row["data_type"]) for row in rows[:3]] == [
        ("OUTPUT__0", "RESULT[y]", "tensor", "TYPE_FP32"),
        ("OUTPUT__1", "RESULT[none]", "none", None),
        ("OUTPUT__2", "RESULT[three]", "number", "TYPE_INT64"),
    ]


def test_names_on_the_terminal_and_in_markdown(run):
    for options in ((), ("--format", "md")):
        shown = run("names", package("joint"), "--triton", "26.05", *options).stdout
        assert "SERVABLE" in shown
        for word in ("args[1]", "INPUT__1", "ARGS[1]", "TYPE_FP32", "[s17:2..4096, 5]", "RESULT[2]"):
            assert word in shown


def test_names_say_why_no_config_can_serve_it(run):
    result = run("names", package("nested_kwargs"), "--triton", "26.05", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(item["code"], item["subject"]) for item in document["findings"]] == [("TRITON-R13", "net: kwargs['opts']")]
    assert not document["names"]["servable"]


def test_init_prints_the_config_and_nothing_else(run):
    result = run("init", package("joint"), "--max-batch-size", "8", "--triton", "26.06")
    assert result.exit_code == 0
    assert result.stdout.startswith("# For Triton 26.06.")
    assert "max_batch_size: 8\n" in result.stdout
    assert "# left out: result[2]: float32[3] (its first dim is not the batch: [3])\n" in result.stdout
    assert (
        'name: "OUTPUT__1"  # result[1]: float32[s17:2..4096]\n    data_type: TYPE_FP32\n    dims: [ 1 ]\n    reshape { shape: [ ] }'
        in result.stdout
    )


def test_init_refuses_in_comments(run):
    result = run("init", package("nested_kwargs"), "--triton", "26.05")
    assert result.exit_code == 1
    assert result.stdout.startswith("# No config serves this package with Triton 26.05:\n# R13: ")
    assert all(line.startswith("#") for line in result.stdout.splitlines())


def test_init_writes_a_file_once(run, tmp_path):
    target = tmp_path / "config.pbtxt"
    data = package("joint")
    assert run("init", data, "-o", str(tmp_path)).exit_code == 0
    first = target.read_text()
    target.write_text("mine")
    refused = run("init", data, "-o", str(target))
    assert (refused.exit_code, target.read_text()) == (2, "mine")
    assert run("init", data, "-o", str(target), "--force", "--naming", "forward").exit_code == 0
    assert target.read_text() == first.replace("INPUT__0", "ARGS[0]").replace("INPUT__1", "ARGS[1]").replace(
        "OUTPUT__0", "RESULT[0]"
    ).replace("OUTPUT__1", "RESULT[1]").replace("OUTPUT__2", "RESULT[2]")


def test_init_never_overwrites_the_package(run, tmp_path):
    data = package("joint")
    assert run("init", data, "-o", str(tmp_path / "net.pt2"), "--force").exit_code == 2
    assert (tmp_path / "net.pt2").read_bytes() == data


def test_a_refusal_writes_no_file(run, tmp_path):
    assert run("init", package("nested_kwargs"), "-o", str(tmp_path / "config.pbtxt")).exit_code == 1
    assert not (tmp_path / "config.pbtxt").exists()


def test_names_that_need_escapes_come_back(run):
    keys = ['q"uo', "back\\slash", "new\nline"]
    data = repacked("mlp", call(dic({keys[0]: T, keys[1]: T})), spec(dic({keys[2]: T})))
    config = read_config(run("init", data, "--naming", "forward").stdout).config
    names = [item.label for item in (*config.inputs, *config.outputs)]
    assert names == [f"ARGS[0][{keys[0]}]", f"ARGS[0][{keys[1]}]", f"RESULT[{keys[2]}]"]


@pytest.mark.parametrize("word", ["names", "init"])
def test_what_is_not_there_or_no_package(word, run, tmp_path):
    missing = CliRunner().invoke(build_app(), ["triton", word, str(tmp_path / "no.pt2")])
    assert missing.exit_code == 4
    assert "no such file" in missing.stdout
    assert run(word, b"not a zip").exit_code == 4
