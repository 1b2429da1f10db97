from __future__ import annotations

import json
from dataclasses import fields, replace
from types import MappingProxyType

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotidoctor.model.run import NotStarted, OutOfMemory, Signalled, TimedOut
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from tests.unit.reports import builders

VALIDATOR = jsonschema.Draft202012Validator(schema())


def strict(text):
    """Parse as a strict reader would: NaN and Infinity are not JSON."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", [*builders.GOLDEN, "hostile"])
def test_reports_are_valid(name):
    report = builders.hostile() if name == "hostile" else builders.GOLDEN[name]()
    document = strict(json_.render_json(report))
    VALIDATOR.validate(document)
    assert document["schema"] == "aotidoctor.report/1"


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "fine"},
        {"stage": "compile-ish"},
        {"runs": [{}]},
        {"findings": [{"id": "E1"}]},
        {"tool": None},
        {"started": "yesterday"},
    ],
)
def test_the_schema_refuses(change):
    document = strict(json_.render_json(builders.misleading())) | change
    assert not VALIDATOR.is_valid(document)


def test_fields_of_the_interface():
    document = strict(json_.render_json(builders.misleading()))
    wanted = "schema tool verdict stage diagnoses findings not_checked runs artifact contract inputs host signature"
    assert set(wanted.split()) <= set(document)
    assert document["diagnoses"][0]["cause"] == "input-dtype"
    assert document["diagnoses"][0]["status"] == "confirmed"
    assert document["diagnoses"][0]["remedy"]["verified"] is True
    assert document["findings"][0]["source"] == {"file": "abc.wrapper.cpp", "line": 412}
    assert document["findings"][1]["source"] == {"run": "R1", "stream": "stderr", "line": 1}
    assert document["findings"][1]["facts"]["ratio"] == "NaN"
    assert document["runs"][1]["env"] == {"AOTI_RUNTIME_CHECK_INPUTS": "1"}


def test_took_effect_has_three_values():
    runs = tuple(builders.outcome(took_effect=value) for value in (True, False, None))
    document = strict(json_.render_json(builders.report(runs=runs)))
    assert [run["took_effect"] for run in document["runs"]] == [True, False, "unknown"]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (Signalled(signal=11, name="SIGSEGV"), ("signalled", "SIGSEGV", None)),
        (TimedOut(limit=60.0), ("timed-out", None, None)),
        (OutOfMemory(reason="cgroup"), ("out-of-memory", None, None)),
        (NotStarted(reason="no torch"), ("not-started", None, None)),
    ],
)
def test_endings(ending, expected):
    run = strict(json_.render_json(builders.report(runs=(builders.outcome(ending=ending),))))["runs"][0]
    assert (run["ending"], run["signal"], run["exit_code"]) == expected


def test_sources_and_symbols_are_counted_not_listed():
    text = json_.render_json(builders.misleading())
    assert "// a source" not in text
    assert "aoti_torch_cpu_addmm_out" not in json.dumps(strict(text)["artifact"])
    assert strict(text)["artifact"]["models"][0]["shared_objects"][0]["n_undefined"] == 1


def test_an_unreadable_inputs_file_is_in_the_report():
    inputs = strict(json_.render_json(builders.bad_inputs()))["inputs"]
    assert (inputs["cause"], inputs["path"]) == ("inputs-file-corrupt", "sample.pt")


def test_read_only_mappings_are_fine():
    report = builders.misleading()
    facts = MappingProxyType({"a": 1})
    report = replace(report, findings=(replace(report.findings[0], facts=facts),))
    assert strict(json_.render_json(report))["findings"][0]["facts"] == {"a": 1}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["\ud800", "\x00", "\udcff x"]),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_anything_becomes_strict_json_in_utf8(value):
    text = json_.dump_json({"value": value})
    text.encode("utf-8")
    first = strict(text)
    assert strict(json_.dump_json(first)) == first


def test_a_record_is_listed_whole_but_for_fields_that_it_has():
    for kind, names in json_._UNLISTED.items():
        assert set(names) <= {item.name for item in fields(kind)}, kind
    report = builders.misleading()
    [first, *_] = strict(json_.render_json(report))["diagnoses"]
    assert {*first, "stage"} == {item.name for item in fields(report.diagnoses[0])}


def test_of_a_saved_case_only_what_is_malformed_is_lost():
    host = {"system": "Linux", "machine": 3, "glibc": "2.36", "gpus": "two"}
    case = json_.saved_case({"artifact": {"path": "m.pt2", "kind": "new", "size": "big"}, "host": host})
    assert (case.artifact.path, case.artifact.kind.value, case.artifact.size) == ("m.pt2", "other", 0)
    assert (case.host.system, case.host.machine, case.host.glibc, case.host.gpus) == ("Linux", "", "2.36", ())
