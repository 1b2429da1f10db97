"""What machines of others read, made of real packages: places in wrapper.cpp and config.pbtxt that are true."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app

SCHEMAS = Path(__file__).parents[1] / "data/schemas"
SARIF = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


@pytest.fixture
def wrong(packages, tmp_path):
    """A package, and inputs of another dtype."""
    import torch

    (ids,), _ = packages.call("embedding")
    torch.save((ids.to(torch.int32),), tmp_path / "wrong.pt")
    return packages.package("embedding"), tmp_path / "wrong.pt"


@pytest.mark.torch
def test_sarif_points_at_the_line_that_checks_the_input(wrong):
    package, inputs = wrong
    result = call("check", package, "-i", inputs, "--format", "sarif", "--no-redact")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    jsonschema.Draft4Validator(SARIF).validate(document)
    (run,) = document["runs"]
    assert run["invocations"][0]["exitCode"] == 1
    first = run["results"][0]
    assert (first["ruleId"], first["level"]) == ("input-dtype", "error")
    place = first["locations"][0]["physicalLocation"]
    with zipfile.ZipFile(package) as archive:
        lines = archive.read(place["artifactLocation"]["uri"]).decode().splitlines()
    line = place["region"]["startLine"]
    assert "aoti_torch_get_dtype" in "\n".join(lines[line - 1 : line + 3])
    held = run["artifacts"][place["artifactLocation"]["index"]]
    assert run["artifacts"][held["parentIndex"]]["location"]["uri"] == f"file://{package}"
    help_ = {rule["id"]: rule["help"]["markdown"] for rule in run["tool"]["driver"]["rules"]}
    assert "## What happened" in help_["input-dtype"]


@pytest.mark.torch
def test_the_other_formats_have_the_same_status(wrong):
    import xmlschema

    package, inputs = wrong
    junit = call("check", package, "-i", inputs, "--format", "junit")
    xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd")).validate(junit.stdout)
    github = call("check", package, "-i", inputs, "--format", "github")
    issue = call("check", package, "-i", inputs, "--format", "md", "--for", "pytorch")
    assert [junit.exit_code, github.exit_code, issue.exit_code] == [1, 1, 1]
    assert github.stdout.startswith("::error ")
    assert "PyTorch version: " in issue.stdout
    assert "dtype=torch.int32" in issue.stdout


CONFIG = """name: "m"
platform: "torch_aoti"
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT__0"   data_type: TYPE_STRING dims: [ 4 ] } ]
"""


def test_a_rule_about_config_pbtxt_has_line_and_column(tmp_path):
    pytest.importorskip("google.protobuf")
    model = tmp_path / "m"
    (model / "1").mkdir(parents=True)
    config = model / "config.pbtxt"
    config.write_text(CONFIG)
    result = call("triton", model, "--format", "sarif", "--no-redact")
    document = json.loads(result.stdout)
    jsonschema.Draft4Validator(SARIF).validate(document)
    regions = [
        place["region"]
        for item in document["runs"][0]["results"]
        for place in [item["locations"][0]["physicalLocation"]]
        if place["artifactLocation"]["uri"] == f"file://{config}" and "startColumn" in place["region"]
    ]
    assert regions
    lines = CONFIG.splitlines()
    assert all(lines[one["startLine"] - 1][one["startColumn"] - 1 :].strip() for one in regions)
    assert call("triton", model, "--format", "github").exit_code == result.exit_code
