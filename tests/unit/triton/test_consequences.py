"""What a finding says depends on the release, and so does how bad it is."""

from __future__ import annotations

import pytest

from aotidoctor.model.evidence import Severity
from tests.unit.triton.cases_tensors import JOINT, ODD, STATIC, odd
from tests.unit.triton.harness import MLP, ServingCase, findings_of


def the(rule: str, case: ServingCase, folder, monkeypatch):
    (item,) = [item for item in findings_of(case, folder, monkeypatch) if item.code == f"TRITON-{rule}"]
    return item


def both(rule: str, config: str, wrapper: str, folder, monkeypatch, releases=("26.05", "26.06")):
    cases = [ServingCase(name=release, config=config, wrapper=wrapper, release=release) for release in releases]
    return [the(rule, case, folder / case.name, monkeypatch) for case in cases]


def test_a_wrong_output_type_ended_the_server_up_to_26_05(tmp_path, monkeypatch):
    config = STATIC.replace('"OUTPUT__0" data_type: TYPE_FP32', '"OUTPUT__0" data_type: TYPE_FP64')
    old, new = both("R20", config, "odd_outputs", tmp_path, monkeypatch)
    assert (old.facts["consequence"], new.facts["consequence"]) == ("F", "E")
    assert "ends the server process" in old.message
    assert "has datatype TYPE_FP32 but model configuration expects TYPE_FP64" in new.message
    assert "Seen up to 26.05" in new.message


def test_an_output_without_the_batch_is_cut_from_26_06_on(tmp_path, monkeypatch):
    config = JOINT.replace('"OUTPUT__0"', '"OUTPUT__2"')
    old, new = both("R32", config, "joint", tmp_path, monkeypatch)
    assert (old.severity, new.severity) == (Severity.WARN, Severity.ERROR)
    assert "is returned whole" in old.message
    assert "cuts the output by it" in new.message


def test_a_none_is_no_type_at_all(tmp_path, monkeypatch):
    case = ServingCase(name="none", config=odd("OUTPUT__1"), **ODD)
    item = the("R24", case, tmp_path, monkeypatch)
    assert item.subject == "mlp: OUTPUT__1"
    assert item.facts["remedy"] == "Leave the output out of the config."


def test_a_wrong_name_suggests_the_nearest(tmp_path, monkeypatch):
    case = ServingCase(name="name", config=MLP.replace("ARGS[1]", "args[1]"))
    item = the("R17", case, tmp_path, monkeypatch)
    assert item.facts["nearest"] == "ARGS[1]"
    assert 'Input "args[1]" for model instance "mlp_0_0" is not found in model input map.' in item.message
    assert item.facts["remedy"] == "Write ARGS[1]."


def test_a_missing_input_names_the_rows_to_add(tmp_path, monkeypatch):
    config = MLP.replace('  { name: "ARGS[0]" data_type: TYPE_FP32 dims: [ 1024 ] },\n', "")
    item = the("R16", ServingCase(name="one", config=config), tmp_path, monkeypatch)
    assert item.facts["remedy"] == "Add INPUT__0 = ARGS[0] = args[0]."
    assert "configuration expects 1 inputs, but model expects 2 inputs." in item.message


def test_versions_that_differ_are_told_apart(tmp_path, monkeypatch):
    from tests.unit.triton.specs import T, call, dic, repacked

    config = MLP.replace("ARGS[0]", "ARGS[0][a]").replace("ARGS[1]", "ARGS[0][b]")
    case = ServingCase(
        name="two",
        config=config + "version_policy { all { } }\n",
        files={"2/model.pt2": repacked("mlp", call(dic({"a": T, "b": T})))},
    )
    found = [item for item in findings_of(case, tmp_path, monkeypatch) if item.code == "TRITON-R17"]
    assert [item.message[:10] for item in found] == ["version 1:", "version 1:"]


@pytest.mark.parametrize(
    ("written", "wrong", "remedy"),
    [
        ('platform: "torch_aoti"', "platform: torch_aoti", "Put it in quotes."),
        ("max_batch_size: 64", 'max_batch_size: "64"', "Remove the quotes."),
        ("kind: KIND_CPU", 'kind: "KIND_CPU"', "Remove the quotes."),
        ("] }\n]", "] },\n]", "Remove the comma after the last element of the list."),
        ("] } ]", "] }, ]", "Remove the comma after the last element of the list."),
        (
            "max_batch_size: 64",
            'max_batch_size: 64 parameters { key: "INFERENCE_MODE" value: "on" }',
            'Write a parameter as { key: "K" value { string_value: "V" } }.',
        ),
    ],
)
def test_what_does_not_parse_is_mended_by_the_remedy(written, wrong, remedy, tmp_path, monkeypatch):
    item = the("R1", ServingCase(name="text", config=MLP.replace(written, wrong)), tmp_path, monkeypatch)
    assert item.facts["remedy"] == remedy
