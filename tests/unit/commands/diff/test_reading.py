"""Whatever is given: a comparison, or exit status 4 with where, observed and expected."""

from __future__ import annotations

import json
import zipfile

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from aotidoctor.cli import build_app
from aotidoctor.commands.diff.document_values import DocumentNode
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.reports.json.schema import difference_schema
from tests.unit.commands.diff.documents import compared, document, source
from tests.unit.reports import builders


def diff(*words):
    return CliRunner().invoke(build_app(), ["diff", *map(str, words)])


@pytest.fixture
def works(tmp_path):
    path = tmp_path / "works.json"
    path.write_text(json.dumps(document(builders.healthy())))
    return path


@pytest.fixture
def fails(tmp_path):
    path = tmp_path / "fails.json"
    path.write_text(json.dumps(document(builders.misleading())))
    return path


def test_exit_status_and_formats(works, fails):
    for form in ("rich", "md", "json"):
        assert diff(works, works, "--format", form).exit_code == 0
        result = diff(works, fails, "--format", form)
        assert result.exit_code == 1
        assert "input-dtype" in result.stdout
        assert result.stderr == ""
    assert diff(works, fails, "--format", "sarif").exit_code == 2
    assert diff(works).exit_code == 2


def test_the_json_document(works, fails):
    found = json.loads(diff(works, fails, "--json").stdout)
    assert found["schema"] == "aotidoctor.diff/1"
    assert found["same"] is False
    assert (found["a"]["verdict"], found["b"]["verdict"]) == ("healthy", "problem")
    first = found["differences"][0]
    assert (first["rank"], first["playbook"], first["diagnosed"], first["level"]) == (1, "input-dtype", "B", "decisive")
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    same = json.loads(diff(works, works, "--json").stdout)
    assert same["same"] is True
    assert same["differences"] == []


SCHEMA = difference_schema()


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", "empty"),
        ("hello", "text"),
        ("[1, 2]", "bundle of aotidoctor"),
        ("{", "no JSON object"),
        ("[" * 100_000, ""),
        ('{"a": ' * 100_000, "no JSON object"),
        ('{"schema": "aotidoctor.report/2"}', "aotidoctor.report/2"),
        ('{"schema": "aotidoctor.report/1", "duration_s": NaN}', "$.duration_s: observed nan, expected strict JSON"),
        ('{"schema": "aotidoctor.report/1", "host": [1]}', "$.host: observed a list, expected an object"),
        (
            '{"schema": "aotidoctor.report/1", "host": {"system": 5}}',
            "$.host.system: observed a number 5, expected a text",
        ),
        (
            '{"schema": "aotidoctor.report/1", "diagnoses": {"0": 1}}',
            "$.diagnoses: observed an object, expected a list",
        ),
        (
            '{"schema": "aotidoctor.report/1", "diagnoses": [7]}',
            "$.diagnoses[0]: observed a number 7, expected an object",
        ),
    ],
)
def test_what_is_no_report_ends_in_4_and_tells(works, tmp_path, text, observed):
    path = tmp_path / "bad.json"
    path.write_text(text)
    for words in ((works, path), (path, works), (path, path)):
        result = diff(*words, "--json")
        assert result.exit_code == 4, result.output
        told = json.loads(result.stdout)
        assert observed in told["cannot_examine"]
        assert "expected" in told["cannot_examine"]
        assert "observed" in told["cannot_examine"]
        assert told["same"] is None
        jsonschema.Draft202012Validator(SCHEMA).validate(told)
        assert observed in " ".join(result.stderr.split())


def test_schema_prints_the_schema():
    assert json.loads(CliRunner().invoke(build_app(), ["schema", "diff"]).stdout) == SCHEMA


def test_no_such_file(works, tmp_path):
    result = diff(works, tmp_path / "no.json")
    assert result.exit_code == 4
    assert "NOT COMPARED" in result.stdout
    assert "no such file" in result.stdout
    assert "no such file" in result.stderr


def test_an_output_folder_is_the_report_in_it(works, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    works.rename(folder / "report.json")
    result = diff(folder, folder, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["a"]["kind"] == "report"


def test_a_pipe_is_not_waited_for(works, tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    result = diff(works, tmp_path / "pipe", "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["same"]) == (4, None)
    assert said["cannot_examine"].startswith(f"{tmp_path / 'pipe'}: ")


def test_an_archive_that_is_no_package(works, tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a.txt", "hello")
    result = diff(works, path, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["differences"][0]["playbook"] == "artifact-wrong-kind"


def test_nothing_in_common(tmp_path):
    env, inspected = tmp_path / "env.json", tmp_path / "package.json"
    env.write_text(json.dumps(document(builders.environment())))
    inspected.write_text(json.dumps(document(builders.inspected())))
    result = diff(env, inspected)
    assert result.exit_code == 4
    assert "expected a part that both describe" in result.stderr


def test_this_host_and_its_report_agree(tmp_path):
    path = tmp_path / "env.json"
    path.write_text(CliRunner().invoke(build_app(), ["env", "--json"]).stdout)
    result = diff(path, "here", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["equal"]["host"] > 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:2]):
            yield from places(item, (*path, index))


def error_of(function, *arguments):
    """What it says where it refuses."""
    try:
        function(*arguments)
    except CannotExamineError as error:
        return str(error)
    return None


WHOLE = document(builders.misleading())
PLACES = [path for path in places(WHOLE) if path]


@settings(max_examples=100)
@given(st.sampled_from(PLACES), JSON)
def test_property_any_value_at_any_place(path, value):
    """Either the two are compared, or the error tells the place; nothing else is raised."""
    hostile = json.loads(json.dumps(WHOLE))
    inner = hostile
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    for pair in ((WHOLE, hostile), (hostile, WHOLE)):
        error = error_of(compared, *(source(one) for one in pair))
        assert error is None or ("observed" in error and "expected" in error)


@given(JSON)
def test_a_node_never_raises_anything_else(value):
    node = DocumentNode(value=value, file="f")
    for ask in (node.text, node.number, node.flag, node.nodes, node.texts, node.numbers, node.mapping):
        error = error_of(ask, "a")
        assert error is None or error.startswith("f: at $")
