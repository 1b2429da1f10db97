"""``compare``: its options, and saved reports judged anew. Nothing is run."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.model.case import GRID, Tolerance
from aotidoctor.model.localization import Localization, OutputComparison
from aotidoctor.reports.json.json_report import render_json
from aotidoctor.reports.json.schema import schema
from tests.unit.cli.test_cli import pipeline  # noqa: F401 - a fixture
from tests.unit.reports import builders

WRONG = OutputComparison(
    path="result[0]",
    verdict="package-wrong",
    judged="package-wrong",
    dtype="float32",
    reference_dtype="float32",
    shape=(4, 8),
    reference_shape=(4, 8),
    max_abs=0.5,
    max_rel=float("inf"),
    error=4000.0,
    reference_error=0.5,
    noise=1.0,
    allowed=64.0,
    numel=32,
    far=3,
    rtol=1.3e-6,
    atol=1e-6,
    needed=tuple((rtol, 0.5) for rtol in GRID),
)


def call(*words):
    return CliRunner().invoke(build_app(), ["compare", *words])


@pytest.fixture
def saved(tmp_path):
    """A saved report with that one output."""
    path = tmp_path / "report.json"
    made = builders.report(command="compare", localization=Localization(comparison=(WRONG,)))
    path.write_text(render_json(made))
    return path


def judged(saved, *words):
    done = call("--from", str(saved), "--json", *words)
    document = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    return done.exit_code, document


def test_options_reach_the_pipeline(pipeline):  # noqa: F811
    words = "m.pt2 -i s.pt --reference e.pt2 --rtol 1e-3 --rtol result[0]:0.1 --atol 1:0 --json"
    assert call(*words.split()).exit_code == 0
    ((path, inputs, options), kwargs) = pipeline.calls[0]
    assert (path, inputs, kwargs["command"], options.reference) == ("m.pt2", "s.pt", "compare", "e.pt2")
    assert options.tolerances.rtol == (Tolerance(output=None, value=1e-3), Tolerance(output="result[0]", value=0.1))
    assert options.tolerances.atol == (Tolerance(output="1", value=0.0),)
    assert options.measure


@pytest.mark.parametrize(
    "words",
    [
        "",
        "m.pt2",
        "m.pt2 -i s.pt",
        "m.pt2 --reference e.pt2",
        "m.pt2 -i s.pt --reference e.pt2 --rtol much",
        "m.pt2 -i s.pt --reference e.pt2 --atol=-1",
        "m.pt2 -i s.pt --from r.json",
        "--from r.json --reference e.pt2",
        "--from r.json --generate",
    ],
)
def test_usage_errors(pipeline, words):  # noqa: F811
    assert call(*words.split()).exit_code == 2
    assert pipeline.calls == []


def test_a_saved_report_keeps_its_verdict(saved):
    status, document = judged(saved)
    assert (status, document["verdict"]) == (1, "problem")
    assert document["diagnoses"][0]["cause"] == "numeric-difference"
    assert document["localization"]["comparison"][0]["verdict"] == "package-wrong"
    assert document["runs"] == []


def test_with_a_wider_tolerance_it_agrees(saved):
    status, document = judged(saved, "--atol", "result[0]:0.6")
    assert (status, document["verdict"], document["diagnoses"]) == (0, "healthy", [])
    assert [item["kind"] for item in document["findings"]] == ["agrees"]


def test_and_a_report_of_that_can_be_judged_again(saved, tmp_path):
    judged(saved, "--atol", "0.6", "--report", f"json:{tmp_path}/second.json")
    assert judged(tmp_path / "second.json", "--atol", "0.1")[0] == 1


def test_for_people(saved):
    done = call("--from", str(saved), "--rtol", "0:1", "--atol", "1")
    assert "agrees with the reference" in done.stdout
    assert "Against the reference" in done.stdout


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "aotidoctor.report/1"}', '{"schema": "other", "localization": {}}']
)
def test_what_is_no_saved_comparison(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    assert call("--from", str(path)).exit_code == 4
    assert call("--from", str(tmp_path / "nowhere.json")).exit_code == 4


def test_a_tolerance_for_no_output(saved):
    done = call("--from", str(saved), "--rtol", "result[9]:1")
    assert done.exit_code == 2
    assert "result[0]" in done.stderr


def test_a_pipe_is_no_saved_report_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "report.json")
    result = CliRunner().invoke(build_app(), ["compare", "--from", str(tmp_path / "report.json"), "--json"])
    assert result.exit_code == 4
    assert "no regular file" in json.loads(result.stdout)["cannot_examine"]
