"""``aotidoctor triton``: one report, its exit status, and what may stand after the word."""

from __future__ import annotations

import json
import types

import jsonschema
import pytest
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands import explain
from aotidoctor.reports.json.schema import schema
from aotidoctor.triton.rules import RULES
from tests.every import every
from tests.unit.triton.cases_config import added
from tests.unit.triton.harness import MLP, ServingCase, lay_out

SLASHES = added("// a remark\n")
MERGED = added("dynamic_batching { }\n")
WARNING = added('parameters { key: "COLOR" value { string_value: "red" } }\n')


def call(*words):
    return CliRunner().invoke(build_app(), [str(word) for word in words])


def report_of(result):
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    return document


@pytest.fixture
def repository(tmp_path):
    """A repository with the model ``mlp`` of a given config."""

    def make(config=MLP, **changes):
        lay_out(ServingCase(name="cli", config=config, **changes), tmp_path)
        return tmp_path

    return make


@pytest.mark.parametrize(("config", "status", "verdict"), [(MLP, 0, "healthy"), (SLASHES, 1, "problem")])
def test_the_status_of_a_model(repository, config, status, verdict):
    result = call("triton", repository(config) / "mlp", "--json", "--triton", "26.06")
    assert result.exit_code == status
    assert report_of(result)["verdict"] == verdict


def test_the_finding_has_rule_line_and_remedy(repository):
    document = report_of(call("triton", repository(MERGED) / "mlp", "--json", "--triton", "26.05"))
    (finding,) = [item for item in document["findings"] if item["severity"] == "error"]
    assert (finding["code"], finding["source"]["line"]) == ("TRITON-R34", 9)
    assert finding["source"]["file"].endswith("mlp/config.pbtxt")
    assert finding["facts"]["consequence"] == "S"
    assert finding["facts"]["remedy"]
    (diagnosis,) = document["diagnoses"]
    assert (diagnosis["cause"], diagnosis["subject"]) == ("serving-config", "mlp")
    assert "HTTP status 200" in diagnosis["looked_like"]


def test_a_warning_is_no_failure_unless_asked_for(repository):
    place = repository(WARNING)
    assert call("triton", place).exit_code == 0
    assert call("triton", place, "--fail-on", "warn").exit_code == 1


def test_all_models_of_a_repository(repository):
    place = repository(siblings={"net": MERGED, "both": 'platform: "ensemble"\n'})
    document = report_of(call("triton", place, "--json", "--triton", "26.05"))
    assert {item["subject"].partition(":")[0] for item in document["findings"] if item["severity"] == "error"} == {
        "net"
    }
    assert document["extra"]["models"] == "mlp, net"
    assert [item["name"] for item in document["not_checked"] if item["code"] == "TRITON"] == ["both"]


def test_a_model_without_a_config(repository):
    document = report_of(call("triton", repository(None) / "mlp", "--json", "--triton", "26.03"))
    assert [item["code"] for item in document["findings"] if item["severity"] == "error"][:1] == ["TRITON-R3"]


@pytest.mark.parametrize("form", ["rich", "md"])
def test_a_table_per_model(repository, form):
    result = call("triton", repository(MERGED), "--triton", "26.05", "--format", form)
    assert "mlp on Triton 26.05 (server 2.69)" in result.stdout
    assert "R34" in result.stdout
    assert "different requests" in " ".join(result.stdout.split())


def test_a_release_beyond_the_newest_is_judged_as_that_one(repository):
    document = report_of(call("triton", repository(MERGED), "--json", "--triton", "29.01"))
    assert any("judged as that one" in item["reason"] for item in document["not_checked"])
    assert document["verdict"] == "healthy"


def test_beyond_what_was_seen_the_finding_says_so(repository):
    optional = MLP.replace("[ 1024 ] }\n]", "[ 1024 ] optional: true }\n]")
    place = repository(optional)
    (seen,) = report_of(call("triton", place, "--json", "--triton", "26.05"))["findings"][:1]
    (later,) = report_of(call("triton", place, "--json", "--triton", "26.09"))["findings"][:1]
    assert seen["code"] == later["code"] == "TRITON-R29"
    assert "nothing is known" not in seen["message"]
    assert "Seen up to 26.05; nothing is known of a change up to 26.09" in later["message"]


@pytest.mark.parametrize("release", ["banana", "2.69", "26.13", "26", "26.05.1", "12.01"])
def test_no_release_is_a_usage_error(repository, release):
    result = call("triton", repository(), "--triton", release)
    assert result.exit_code == 2
    assert "year and month" in result.stderr


def test_a_container_tag_is_a_release(repository):
    assert report_of(call("triton", repository(), "--json", "--triton", "26.05-py3"))["extra"]["release"] == "26.05"


def test_nothing_to_examine(tmp_path):
    for place in (tmp_path / "nowhere", tmp_path):
        result = call("triton", place, "--json")
        assert result.exit_code == 4
        assert report_of(result)["cannot_examine"]


def test_only_models_of_others(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text('platform: "onnxruntime_onnx"\n')
    result = call("triton", tmp_path, "--json")
    assert result.exit_code == 4
    assert "no model for torch_aoti" in report_of(result)["cannot_examine"]


def test_a_config_is_not_overwritten(repository):
    place = repository() / "mlp"
    result = call("triton", place, "--report", f"md:{place}/config.pbtxt")
    assert result.exit_code == 2
    assert (place / "config.pbtxt").read_text() == MLP


def test_a_word_or_a_path(repository, monkeypatch):
    """The first argument is the word; ``./names`` is the folder of that name."""
    said = types.SimpleNamespace(package=None)

    def triton_names(package: str) -> None:
        """The word's own help."""
        said.package = package

    monkeypatch.setattr("aotidoctor.cli.triton_commands.triton_names", triton_names)
    assert call("triton", "names", "model.pt2").exit_code == 0
    assert said.package == "model.pt2"
    assert "The word's own help" in call("triton", "names", "--help").stdout
    place = repository()
    (place / "mlp").rename(place / "names")
    monkeypatch.chdir(place)
    assert call("triton", "./names").exit_code == 0
    assert "REPOSITORY" in call("triton", "--help").stdout


@every("rule", RULES, ids=lambda rule: rule.id)
def test_every_rule_has_a_page(rule):
    page = explain.find(rule.code.lower())
    assert page is not None
    assert (page.kind, page.code) == ("rule", rule.code)
    shown = explain.markdown(page)
    for heading in ("Versions", "Consequence", "How it was seen", "Remedy"):
        assert f"\n## {heading}\n" in shown
