"""The own reader of config.pbtxt against protobuf's, and the places that it gives."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aotidoctor.model.serving_config import ConfigMessage, Position
from aotidoctor.triton import config_schema
from aotidoctor.triton.config_schema import TextFormatError, comments
from aotidoctor.triton.open_models import read_config
from aotidoctor.triton.text_format import parse_config, read_fields

needs_schema = pytest.mark.skipif(
    config_schema.parse_with_protobuf("").accepted is None, reason="protobuf or tritonclient is not installed"
)
SAMPLE = """\
# the model
platform: "torch_aoti" max_batch_size: 8
input [
  { name: 'A' 'B' data_type: TYPE_FP32  dims: [ 4,
    -1 ] },
  { name: "C" data_type: 9 dims: 2 dims: 3 reshape { shape: [ 6 ] } optional: true }
]
instance_group < kind: KIND_GPU gpus: [ 0, 0x1 ] count: 2 >
parameters { key: "K" value { string_value: "one" } }
parameters { key: "K" value { string_value: "two" } } # the last one counts
"""
PROBES = (
    'name: "a"',
    "name: 'a'",
    'name: "a" "b"',
    'name: "a";',
    'name: "a",',
    'name: "a" name: "b"',
    'name: "" name: "b"',
    "name: a",
    'name "a"',
    'name: "a',
    'name: "\\x41\\101\\n"',
    "// x",
    "# x",
    "\ufeff",
    "[a.b]: 3",
    "1: 2",
    "nothing: 1",
    "Name: 'a'",
    "dims: 3",
    "input",
    "input {",
    "input }",
    "input { }",
    "input: { }",
    "input < >",
    "input < }",
    "input [ ]",
    "input [ { }, { } ]",
    "input [ { } { } ]",
    "input [ { }, ]",
    "input: [ < > ]",
    "input { dims: [ ] }",
    "input { dims: [ 1, 2 ] dims: 3 }",
    "input { dims: [ 1, 2, ] }",
    "input { dims [ 1 ] }",
    "input { dims: 1.5 }",
    "input { data_type: TYPE_FP32 }",
    'input { data_type: "TYPE_FP32" }',
    "input { data_type: TYPE_FLOAT }",
    "input { data_type: 11 }",
    "input { data_type: 99 }",
    "input { data_type: -1 }",
    "input { data_type: 99999999999 }",
    "input { optional: true }",
    "input { optional: t }",
    "input { optional: 1 }",
    "input { optional: TRUE }",
    "input { optional: yes }",
    "input { } , , input { }",
    "input { } ; input { }",
    "max_batch_size: 4",
    "max_batch_size: -4",
    "max_batch_size: 0x10",
    "max_batch_size: 010",
    "max_batch_size: 09",
    "max_batch_size: 3000000000",
    'max_batch_size: "4"',
    "max_batch_size: 0 max_batch_size: 4",
    "dynamic_batching { } dynamic_batching { }",
    "dynamic_batching { } sequence_batching { }",
    "sequence_batching { direct { } oldest { } }",
    "sequence_batching { direct { minimum_slot_utilization: 0.5f } }",
    "sequence_batching { direct { minimum_slot_utilization: inf } }",
    "version_policy { all { } }",
    "version_policy { all { } specific { versions: 1 } }",
    "version_policy: { latest: { num_versions: 2 } }",
    "version_policy { latest { num_versions: -2 } }",
    'parameters { key: "K" value { string_value: "v" } }',
    'parameters: { key: "K" value: { string_value: "v" } }',
    'parameters { key: "K" value: "v" }',
    'parameters { key: "K" key: "L" }',
    "parameters { value { } }",
    'parameters [ { key: "K" }, { key: "L" } ]',
    'metric_tags { key: "K" value: "v" }',
    'model_warmup { inputs { key: "a" value { zero_data: true random_data: true } } }',
    'model_warmup { inputs { key: "a" value { zero_data: false zero_data: true } } }',
    "optimization { priority: PRIORITY_MAX }",
    'name: "a"\r\nplatform: "b"\r\n',
    'name: "gr\u00fc\u00df"',
)
# Without what the server's parser and protobuf's Python parser are known to differ in: a sign apart from its number,
# letters behind one, escapes.
PIECES = (
    *("name", "platform", "input", "dims", "data_type", "optional", "parameters", "key", "value", "string_value"),
    *("version_policy", "all", "latest", "dynamic_batching", "sequence_batching", "max_batch_size", "reshape", "shape"),
    *("{", "}", "[", "]", "<", ">", ":", ":", ":", ",", ";", "#", "\n", "\r\n", "//", "."),
    *('"a"', "'b'", '"', "1", "-1", "0", "2.5", "TYPE_FP32", '"TYPE_FP32"', "true", "KIND_CPU", "99999999999"),
)
FIELDS = st.sampled_from(
    [
        'name: "a"',
        'platform: "torch_aoti"',
        "max_batch_size: 8",
        'input [ { name: "A" data_type: TYPE_FP32 dims: [ 2, -1 ] } ]',
        "dynamic_batching { }",
        'parameters { key: "K" value { string_value: "v" } }',
        "version_policy { latest { num_versions: 2 } }",
        "instance_group { kind: KIND_CPU }",
    ]
)


def accepts(text: str) -> bool:
    try:
        parse_config(text)
    except TextFormatError:
        return False
    return True


def line_of(text: str) -> int:
    with pytest.raises(TextFormatError) as caught:
        parse_config(text)
    return caught.value.at.line


@needs_schema
@pytest.mark.parametrize("text", PROBES)
def test_agrees_with_protobuf(text: str) -> None:
    assert accepts(text) == config_schema.parse_with_protobuf(text).accepted


@needs_schema
@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
@example("input { dims : [ 1 ] }")
def test_agrees_on_any_pieces(text: str) -> None:
    assert accepts(text) == config_schema.parse_with_protobuf(text).accepted


@needs_schema
@settings(max_examples=200)
@given(st.lists(FIELDS, max_size=6).map("\n".join), st.data())
def test_agrees_on_damaged_configs(text: str, data) -> None:
    at = data.draw(st.integers(0, len(text)))
    cut = text[:at] + data.draw(st.sampled_from(["", "}", "{", '"', "]", ",", "#", "x", ": "])) + text[at + 1 :]
    assert accepts(cut) == config_schema.parse_with_protobuf(cut).accepted


@settings(max_examples=200)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    reading = read_config(text)
    assert (reading.config is None) == (reading.problem is not None)


@needs_schema
def test_the_table_is_the_schema() -> None:
    """Field by field; what Triton has added since the table was made would show here."""
    from google.protobuf.descriptor import FieldDescriptor

    names = {number: name[5:].lower() for name, number in vars(FieldDescriptor).items() if name.startswith("TYPE_")}

    def type_of(field) -> str:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            return "{" + ",".join(type_of(part) for part in message.fields) + "}"
        named = message or field.enum_type
        return names[field.type] if named is None else named.full_name.removeprefix("inference.")

    seen: set[str] = set()

    def compare(message) -> None:
        name = message.full_name.removeprefix("inference.")
        if name in seen:
            return
        seen.add(name)
        found = {
            field.name: (type_of(field), field.is_repeated, field.containing_oneof and field.containing_oneof.name)
            for field in message.fields
        }
        if not message.GetOptions().map_entry:
            own = {key: (item.type, item.repeated, item.oneof) for key, item in config_schema.fields_of(name).items()}
            assert own == found
        for field in message.fields:
            if field.message_type is not None:
                compare(field.message_type)
            elif field.enum_type is not None:
                enum = field.enum_type
                assert config_schema.enumerators(enum.full_name.removeprefix("inference.")) == tuple(
                    enum.values_by_name
                )

    compare(config_schema._message_type().DESCRIPTOR)
    assert len(seen) > 40


def test_places_of_fields_and_elements() -> None:
    config = read_fields(parse_config(SAMPLE), SAMPLE)
    first, second = config.inputs
    assert (first.at.line, second.at.line) == (4, 6)
    assert first.name is not None
    assert (first.name.value, first.name.at) == ("AB", Position(line=4, column=11))
    assert [(dim.value, dim.at.line) for dim in first.dims] == [(4, 4), (-1, 5)]
    assert [dim.value for dim in second.dims] == [2, 3]
    assert [dim.value for dim in second.shape] == [6]
    assert second.data_type is not None
    assert second.data_type.value == "TYPE_INT64"
    assert second.optional is not None
    assert second.optional.value is True
    assert config.max_batch_size is not None
    assert config.max_batch_size.at == Position(line=2, column=40)


def test_groups_parameters_and_comments() -> None:
    config = read_fields(parse_config(SAMPLE), SAMPLE)
    (group,) = config.instance_groups
    assert group.kind is not None
    assert (group.kind.value, [item.value for item in group.gpus]) == ("KIND_GPU", [0, 1])
    (parameter,) = config.parameters
    assert parameter.value is not None
    assert (parameter.value.value, parameter.at.line) == ("two", 10)
    assert [(item.value, item.at.line) for item in config.comments] == [("the model", 1), ("the last one counts", 10)]


def test_before_the_value_that_counts_its_default_may_stand() -> None:
    text = """max_batch_size: 0 max_batch_size: 8 name: "" name: "m"
        input { name: "a" data_type: TYPE_INVALID data_type: TYPE_FP32 dims: 1 }
        instance_group { kind: 0 kind: KIND_CPU }"""
    config = read_fields(parse_config(text), text)
    assert (config.batch_size, config.name and config.name.value) == (8, "m")
    assert (config.inputs[0].type, config.instance_groups[0].effective_kind) == ("TYPE_FP32", "KIND_CPU")


def test_a_sign_in_a_string_begins_no_comment() -> None:
    assert [item.value for item in comments("name: 'a#b' # c#d\n")] == ["c#d"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name: "a"\n// b\n', 2),
        ('name: "a"\n\ninput [\n  { },\n]\n', 5),
        ('name: "a"\n\nname: "b"\n', 3),
        ("input {\n  dims: [ 1,\n    x ]\n}", 3),
        ('input {\n  name: "a"\n', 3),
    ],
)
def test_the_line_of_a_mistake(text: str, line: int) -> None:
    assert line_of(text) == line


def test_without_protobuf_the_own_reader_answers(monkeypatch) -> None:
    missing = config_schema.ProtobufVerdict(
        accepted=None, problem=f"No module named 'tritonclient'; {config_schema.INSTALL_PROTOBUF}"
    )
    monkeypatch.setattr(config_schema, "parse_with_protobuf", lambda _: missing)
    good, bad = read_config('name: "a"'), read_config("name: a")
    assert good.config is not None
    assert "pip install 'aotidoctor[triton]'" in (good.unchecked or "")
    assert bad.config is None
    assert bad.problem is not None
    assert bad.at == Position(line=1, column=7)


def test_a_field_that_only_the_schema_knows_is_passed_over(monkeypatch) -> None:
    monkeypatch.setattr(config_schema, "parse_with_protobuf", lambda _: config_schema.ProtobufVerdict(accepted=True))
    reading = read_config('name: "a"\nnews { x: 1 y: [ "b" ] z < > }\nplatform: "torch_aoti"\n')
    assert reading.config is not None
    assert reading.config.platform is not None
    assert reading.config.platform.at.line == 3
    assert isinstance(reading.config.tree.all("news")[0].value, ConfigMessage)


def test_a_newer_protobuf_than_the_schema_is_no_crash(monkeypatch) -> None:
    def refuse() -> None:
        raise RuntimeError("gencode")

    monkeypatch.setattr(config_schema, "_message_type", refuse)
    verdict = config_schema.parse_with_protobuf("")
    assert verdict.accepted is None
    assert "gencode" in verdict.problem
