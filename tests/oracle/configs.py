"""Texts of config.pbtxt that a server's core takes or refuses; what a real one said of them is in
``tests/data/triton/verdicts.json``.

The oracle's core is older than ``torch_aoti``, so it gets every text with
``pytorch_libtorch`` in its place: both belong to the same backend, and everything around the platform is judged alike.
"""

from __future__ import annotations

from dataclasses import dataclass

PLATFORM = 'platform: "torch_aoti"\n'
INPUT = 'input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4, 16 ] } ]\n'
OUTPUT = 'output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4, 16 ] } ]\n'
IO = INPUT + OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One model directory: its name, the text, the names of its version directories."""

    name: str
    text: str
    versions: tuple[str, ...] = ("1",)

    @property
    def for_the_oracle(self) -> str:
        return self.text.replace("torch_aoti", "pytorch_libtorch")


def plain(name: str, extra: str, *, versions: tuple[str, ...] = ("1",)) -> Config:
    """A good config with ``extra`` behind it."""
    return Config(name=name, text=PLATFORM + IO + extra, versions=versions)


def whole(name: str, text: str) -> Config:
    return Config(name=name, text=text)


def with_input(name: str, fields: str, batch: str = "") -> Config:
    return Config(name=name, text=f"{PLATFORM}{batch}input [ {{ {fields} }} ]\n{OUTPUT}")


def with_output(name: str, fields: str, batch: str = "") -> Config:
    return Config(name=name, text=f"{PLATFORM}{batch}{INPUT}output [ {{ {fields} }} ]\n")


NAMED = 'name: "INPUT__0" '
SEQUENCE = (
    'sequence_batching { control_input [ { name: "START" control [ '
    "{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] }\n"
)

# The text format itself.
SYNTAX = (
    plain("plain", ""),
    plain("comment_hash", "# a remark\n"),
    plain("comment_slashes", "// a remark\n"),
    plain("comment_block", "/* a remark */\n"),
    whole(
        "trailing_comma", PLATFORM + 'input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4, 16, ] } ]\n' + OUTPUT
    ),
    whole("trailing_comma_messages", PLATFORM + INPUT.replace("} ]", "}, ]") + OUTPUT),
    whole("field_commas", PLATFORM.replace("\n", ",\n") + IO),
    whole("field_semicolons", PLATFORM.replace("\n", ";\n") + IO),
    whole("two_commas", PLATFORM.replace("\n", ",,\n") + IO),
    whole("single_quotes", "platform: 'torch_aoti'\n" + IO),
    whole("angle_brackets", PLATFORM + 'input < name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4 ] >\n' + OUTPUT),
    whole("colon_before_message", PLATFORM + IO.replace("input [", "input: [")),
    whole("no_colon_before_scalar", 'platform "torch_aoti"\n' + IO),
    whole("crlf", (PLATFORM + IO).replace("\n", "\r\n")),
    whole("bom", "\ufeff" + PLATFORM + IO),
    whole("joined_strings", PLATFORM + IO.replace('"INPUT__0"', '"INPUT" "__0"')),
    whole("joined_strings_two_quotes", PLATFORM + IO.replace('"INPUT__0"', "\"INPUT\"\n  '__0'")),
    whole("escaped_string", PLATFORM + IO.replace('"INPUT__0"', '"INPUT\\x5f_0"')),
    whole("bad_escape", PLATFORM + IO.replace('"INPUT__0"', '"INPUT\\q0"')),
    whole("newline_in_string", PLATFORM + IO.replace('"INPUT__0"', '"INPUT\n__0"')),
    whole("unclosed_string", PLATFORM + IO.replace('"INPUT__0"', '"INPUT__0')),
    whole("unclosed_bracket", PLATFORM + IO + "instance_group [ { kind: KIND_CPU }\n"),
    whole("extra_brace", PLATFORM + IO + "}\n"),
    whole("quoted_enum", PLATFORM + IO.replace("TYPE_FP32", '"TYPE_FP32"')),
    whole("number_for_enum", PLATFORM + IO.replace("TYPE_FP32", "11")),
    whole("unknown_number_for_enum", PLATFORM + IO.replace("TYPE_FP32", "999")),
    whole("bad_enum", PLATFORM + IO.replace("TYPE_FP32", "TYPE_FLOAT32")),
    whole("lower_case_enum", PLATFORM + IO.replace("TYPE_FP32", "type_fp32")),
    plain("unknown_field", 'default_model_name: "model.pt2"\n'),
    plain("misspelt_field", "max_batchsize: 4\n"),
    plain("upper_case_field", "Max_Batch_Size: 4\n"),
    plain("unknown_nested_field", "dynamic_batching { max_delay: 3 }\n"),
    plain("twice_scalar", PLATFORM),
    plain("twice_message", "optimization { priority: PRIORITY_MAX }\noptimization { priority: PRIORITY_MIN }\n"),
    plain("repeated_apart", 'input { name: "INPUT__1" data_type: TYPE_FP32 dims: 4 dims: 16 }\n'),
    plain("two_schedulers", "dynamic_batching { }\n" + SEQUENCE),
    plain("number_string", 'max_batch_size: "4"\n'),
    plain("number_float", "max_batch_size: 4.0\n"),
    plain("number_hex", "max_batch_size: 0x4\n"),
    plain("number_octal", "max_batch_size: 010\n"),
    plain("number_bad_octal", "max_batch_size: 09\n"),
    plain("number_plus", "max_batch_size: +4\n"),
    plain("number_minus_space", "max_batch_size: - 4\n"),
    plain("number_too_large", "max_batch_size: 4294967296\n"),
    plain("number_then_letters", "max_batch_size: 4x\n"),
    plain("bool_words", "model_transaction_policy { decoupled: false }\nresponse_cache { enable: False }\n"),
    plain("bool_letters", "model_transaction_policy { decoupled: f }\nresponse_cache { enable: 0 }\n"),
    plain("bool_upper", "response_cache { enable: FALSE }\n"),
    plain("bool_two", "response_cache { enable: 2 }\n"),
    plain("bool_string", 'response_cache { enable: "false" }\n'),
    plain("parameter", 'parameters { key: "INFERENCE_MODE" value: { string_value: "true" } }\n'),
    plain("parameter_no_colon", 'parameters { key: "INFERENCE_MODE" value { string_value: "true" } }\n'),
    plain("parameter_bare", 'parameters { key: "INFERENCE_MODE" value: "true" }\n'),
    plain("parameter_number", 'parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: 4 } }\n'),
    plain("parameter_map", 'parameters { INFERENCE_MODE: "true" }\n'),
    plain("parameter_list", 'parameters [ { key: "A" value { string_value: "1" } }, { key: "B" value { } } ]\n'),
    plain("parameter_twice", 'parameters { key: "A" value { string_value: "1" } }\n' * 2),
    plain("parameter_key_twice_inside", 'parameters { key: "A" key: "B" value { string_value: "1" } }\n'),
    plain("extension_name", "[inference.extra]: 3\n"),
    whole("empty", ""),
    whole("list_of_one_value", PLATFORM + IO.replace("dims: [ 4, 16 ]", "dims: 4")),
    whole("nested_list", PLATFORM + IO.replace("[ 4, 16 ]", "[ [ 4 ], 16 ]")),
    whole("list_for_singular", 'platform: [ "torch_aoti" ]\n' + IO),
    whole("empty_list_for_singular", "platform: []\n" + PLATFORM + IO),
    whole("list_without_commas", PLATFORM + IO.replace("[ 4, 16 ]", "[ 4 16 ]")),
    whole("not_utf8", PLATFORM + IO.replace("INPUT__0", "INPUT\\377")),
    whole("tab_and_formfeed", PLATFORM.replace(" ", "\t") + "\f" + IO),
    whole("nul_byte", PLATFORM + "\0" + IO),
)

# What the core judges once it has been read.
CORE = (
    plain("name_equal", 'name: "name_equal"\n'),
    plain("name_other", 'name: "another"\n'),
    plain("name_empty", 'name: ""\n'),
    plain("backend_pytorch", 'backend: "pytorch"\n'),
    plain("backend_other", 'backend: "python"\n'),
    plain("batch_zero", "max_batch_size: 0\n"),
    plain("batch_negative", "max_batch_size: -1\n"),
    plain("batch_eight", "max_batch_size: 8\n"),
    plain("preferred_within", "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 4, 8 ] }\n"),
    plain("preferred_beyond", "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 16 ] }\n"),
    plain("preferred_zero", "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 0 ] }\n"),
    plain("dynamic_without_batch", "dynamic_batching { }\n"),
    plain("priority_without_levels", "max_batch_size: 8\ndynamic_batching { default_priority_level: 1 }\n"),
    plain("priority_levels", "max_batch_size: 8\ndynamic_batching { priority_levels: 2 default_priority_level: 1 }\n"),
    plain("priority_beyond", "max_batch_size: 8\ndynamic_batching { priority_levels: 2 default_priority_level: 3 }\n"),
    plain("sequence", SEQUENCE),
    plain("sequence_no_control", "sequence_batching { }\n"),
    plain("sequence_same_control", SEQUENCE.replace("} ] } ] }", "} ] }, { name: \"B\" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] }")),
    plain("sequence_control_no_value", 'sequence_batching { control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START } ] } ] }\n'),
    plain("sequence_state", 'sequence_batching { state [ { input_name: "INPUT__1" output_name: "OUTPUT__1" data_type: TYPE_FP32 dims: [ 4 ] } ] }\n'),
    plain("group_cpu", "instance_group [ { kind: KIND_CPU } ]\n"),
    plain("group_cpu_gpus", "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]\n"),
    plain("group_model_gpus", "instance_group [ { kind: KIND_MODEL gpus: [ 0 ] } ]\n"),
    plain("group_model", "instance_group [ { kind: KIND_MODEL } ]\n"),
    plain("group_gpu", "instance_group [ { kind: KIND_GPU } ]\n"),
    plain("group_gpu_absent", "instance_group [ { kind: KIND_GPU gpus: [ 17 ] } ]\n"),
    plain("group_auto", "instance_group [ { kind: KIND_AUTO } ]\n"),
    plain("group_count_zero", "instance_group [ { count: 0 kind: KIND_CPU } ]\n"),
    plain("group_count_negative", "instance_group [ { count: -1 kind: KIND_CPU } ]\n"),
    plain("group_count_two", "instance_group [ { count: 2 kind: KIND_CPU } ]\n"),
    plain("group_profile", 'instance_group [ { kind: KIND_CPU profile: "0" } ]\n'),
    plain("group_passive", "instance_group [ { kind: KIND_CPU passive: true } ]\n"),
    plain("group_same_names", 'instance_group [ { name: "a" kind: KIND_CPU }, { name: "a" kind: KIND_CPU } ]\n'),
    plain("group_rate_limiter", 'instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 1 } ] priority: 2 } } ]\n'),
    plain("group_secondary", "instance_group [ { kind: KIND_CPU secondary_devices [ { kind: KIND_NVDLA device_id: 0 } ] } ]\n"),
    plain("group_policy", 'instance_group [ { kind: KIND_CPU host_policy: "cpu" } ]\n'),
    with_input("no_dims", NAMED + "data_type: TYPE_FP32"),
    with_input("no_dims_batch", NAMED + "data_type: TYPE_FP32", "max_batch_size: 4\n"),
    with_input("dims_empty", NAMED + "data_type: TYPE_FP32 dims: [ ]"),
    with_input("dims_zero", NAMED + "data_type: TYPE_FP32 dims: [ 0 ]"),
    with_input("dims_variable", NAMED + "data_type: TYPE_FP32 dims: [ -1, 16 ]"),
    with_input("dims_minus_two", NAMED + "data_type: TYPE_FP32 dims: [ -2 ]"),
    with_input("no_type", NAMED + "dims: [ 4 ]"),
    with_input("invalid_type", NAMED + "data_type: TYPE_INVALID dims: [ 4 ]"),
    with_input("no_name", "data_type: TYPE_FP32 dims: [ 4 ]"),
    with_input("bf16", NAMED + "data_type: TYPE_BF16 dims: [ 4 ]"),
    with_input("string", NAMED + "data_type: TYPE_STRING dims: [ 4 ]"),
    with_input("format_nchw", NAMED + "data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 4, 4 ]"),
    with_input("format_rank", NAMED + "data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 4 ]"),
    with_input("reshape", NAMED + "data_type: TYPE_FP32 dims: [ 8, 8 ] reshape { shape: [ 4, 16 ] }"),
    with_input("reshape_other_size", NAMED + "data_type: TYPE_FP32 dims: [ 8, 8 ] reshape { shape: [ 4, 4 ] }"),
    with_input("reshape_empty", NAMED + "data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }", "max_batch_size: 4\n"),
    with_input("reshape_empty_no_batch", NAMED + "data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }"),
    with_input("reshape_variable", NAMED + "data_type: TYPE_FP32 dims: [ -1, 8 ] reshape { shape: [ -1, 4, 2 ] }"),
    with_input("reshape_more_variables", NAMED + "data_type: TYPE_FP32 dims: [ -1, 8 ] reshape { shape: [ -1, -1 ] }"),
    with_input("reshape_no_shape_tensor", NAMED + "data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true"),
    with_input("ragged", NAMED + "data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true", "max_batch_size: 4\n"),
    with_input("ragged_no_batch", NAMED + "data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true"),
    with_input("optional", NAMED + "data_type: TYPE_FP32 dims: [ 4 ] optional: true"),
    with_input("brackets_in_name", 'name: "ARGS[0]" data_type: TYPE_FP32 dims: [ 4 ]'),
    with_output("output_no_dims", 'name: "OUTPUT__0" data_type: TYPE_FP32'),
    with_output("output_zero", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 0 ]'),
    with_output("output_no_type", 'name: "OUTPUT__0" dims: [ 4 ]'),
    with_output("output_no_name", "data_type: TYPE_FP32 dims: [ 4 ]"),
    with_output("output_reshape", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 64 ] reshape { shape: [ 4, 16 ] }'),
    with_output("output_label_file", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt"'),
    whole("no_input", PLATFORM + OUTPUT),
    whole("no_output", PLATFORM + INPUT),
    whole("no_io", PLATFORM),
    whole("inputs_same_name", PLATFORM + INPUT + INPUT + OUTPUT),
    whole("outputs_same_name", PLATFORM + INPUT + OUTPUT + OUTPUT),
    whole("input_and_output_same_name", PLATFORM + INPUT + OUTPUT.replace("OUTPUT__0", "INPUT__0")),
    plain("batch_input", 'max_batch_size: 4\nbatch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "INPUT__1" data_type: TYPE_INT32 source_input: "INPUT__0" } ]\n'),
    plain("batch_input_no_batch", 'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "INPUT__1" data_type: TYPE_INT32 source_input: "INPUT__0" } ]\n'),
    plain("batch_input_unknown_source", 'max_batch_size: 4\nbatch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "INPUT__1" data_type: TYPE_INT32 source_input: "NONE" } ]\n'),
    plain("batch_input_type", 'max_batch_size: 4\nbatch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "INPUT__1" data_type: TYPE_UINT8 source_input: "INPUT__0" } ]\n'),
    plain("batch_output", 'max_batch_size: 4\nbatch_output [ { kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: "OUTPUT__0" source_input: "INPUT__0" } ]\n'),
    plain("decoupled", "model_transaction_policy { decoupled: true }\n"),
    plain("cache_decoupled", "response_cache { enable: true }\nmodel_transaction_policy { decoupled: true }\n"),
    plain("cache_enabled", "response_cache { enable: true }\n"),
    plain("ensemble_steps", 'ensemble_scheduling { step [ { model_name: "a" model_version: -1 } ] }\n'),
    plain("policy_specific", "version_policy { specific { versions: [ 1 ] } }\n"),
    plain("policy_specific_absent", "version_policy { specific { versions: [ 2 ] } }\n"),
    plain("policy_all", "version_policy { all { } }\n"),
    plain("policy_latest_zero", "version_policy { latest { num_versions: 0 } }\n"),
    plain("policy_two", "version_policy { all { } latest { num_versions: 1 } }\n"),
    plain("versions_none", "", versions=()),
    plain("version_word", "", versions=("v1",)),
    plain("version_zero", "", versions=("0",)),
    plain("version_leading_zero", "", versions=("001",)),
    plain("version_word_and_number", "", versions=("v1", "2")),
    plain("version_number_and_letters", "", versions=("1a",)),
    plain("version_negative", "", versions=("-1",)),
    whole("only_backend", 'backend: "pytorch"\n' + IO),
    whole("no_platform", IO),
    whole("platform_case", 'platform: "Torch_AOTI"\n' + IO),
    whole("platform_misspelt", 'platform: "torch_aot"\n' + IO),
    whole("platform_misspelt_backend", 'platform: "torch_aot"\nbackend: "pytorch"\n' + IO),
    whole("platform_other", 'platform: "onnxruntime_onnx"\n' + IO),
)  # fmt: skip

_INTEGERS = (
    *(
        '4name: "other"',
        "-4",
        "- 4",
        "-\n4",
        "--4",
        "+4",
        "4.",
        "4f",
        "4e0",
        "0x",
        "0x4g",
        "00",
        "-0",
        "0X4",
        "4_",
        "4 #c",
    ),
    *("-0x4", "4;", "08", "1E1", "9999999999999999999999"),
)
_FLOATS = (
    *("1.5", "1.5f", "1.5F", "5.", ".5", "-.5", "- .5", "1e3", "1e", "1e+3", "+1", "inf", "-inf", "INF", "infinity"),
    *(
        "-Infinity",
        "nan",
        "-nan",
        "NaN",
        "- inf",
        "07",
        "07.5",
        "0x10",
        "1f",
        "1.f",
        "1.5ff",
        "1_0",
        "infx",
        "-nanf",
        "inff",
    ),
)
_ENUMS = ("-1", "- 1", "+1", "0x1", "01", "1.0", "99999999999", "TYPE_FP32x", "TYPE_FP32-", "TYPE_FP32dims")
_BOOLS = (
    "true",
    "True",
    "TRUE",
    "t",
    "T",
    "1",
    "0",
    "01",
    "0x1",
    "2",
    "-0",
    "+1",
    "f",
    "F",
    "False",
    "00",
    "1.0",
    '"true"',
)
_FORMS = (
    *(
        "dynamic_batching{}",
        "dynamic_batching:{}",
        "dynamic_batching <>",
        "dynamic_batching { >",
        "dynamic_batching {};",
    ),
    *("dynamic_batching {},;", "dynamic_batching", "[ dynamic_batching ] {}", "parameters [ ]", "parameters: [ ];"),
    *(
        "input []  ,",
        "version_policy: { all {} }",
        "version_policy { latest }",
        "version_policy { specific { versions: [ ] } }",
    ),
    *("default_model_filename: 'x'y'", "runtime: 'f\\x'", 'runtime: "a\\u0041"', "runtime: 'a\\U00000041'"),
    *("runtime: 'a\\8'", "runtime: 'a\tb'", "max_batch_size 4", "max_batch_size: [4]", "max_batch_size:4"),
    *("metric_tags { key: 'a' value: 'b' }", "metric_tags { key: 'a' }", "metric_tags { }", "1: 3", "1 { }"),
    *(
        "metric_tags [ { key: 'a' value: 'b' } ]",
        "max_batch_size : 4",
        "max_batch_size\n:\n4",
        "default_model_filename:'x'max_batch_size:4",
    ),
)
VALUES = (
    *(plain(f"integer_{at}", f"max_batch_size: {text}\n") for at, text in enumerate(_INTEGERS)),
    *(plain(f"float_{at}", SEQUENCE.replace("[ 0, 1 ]", f"[ {text}, 1 ]")) for at, text in enumerate(_FLOATS)),
    *(whole(f"enum_{at}", PLATFORM + IO.replace("TYPE_FP32", text)) for at, text in enumerate(_ENUMS)),
    *(plain(f"bool_{at}", f"model_transaction_policy {{ decoupled: {text} }}\n") for at, text in enumerate(_BOOLS)),
    *(plain(f"form_{at}", f"{text}\n") for at, text in enumerate(_FORMS)),
)  # fmt: skip

_BATCH = "max_batch_size: 8\n"


def _sequence(fields: str) -> str:
    return f"sequence_batching {{ {fields} }}\n"


def _control(kind: str, values: str, name: str = "C") -> str:
    return f'control_input [ {{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {values} }} ] }} ]'


_START_VALUES = "fp32_false_true: [ 0, 1 ]"
_STATE = 'state [ { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: [ -1 ] } ]'
# More of what the core judges: schedulers, policies, reshapes.
MORE = (
    plain("preferred_without_batch", "dynamic_batching { preferred_batch_size: [ 4 ] }\n"),
    plain("preferred_largest", _BATCH + "dynamic_batching { preferred_batch_size: 8 }\n"),
    plain("latest_empty", "version_policy { latest { } }\n"),
    plain("specific_empty", "version_policy { specific { } }\n"),
    plain("policy_empty", "version_policy { }\n"),
    plain("specific_some", "version_policy { specific { versions: [ 1, 7 ] } }\n"),
    plain("runtime_own", 'runtime: "libtriton_pytorch.so"\n'),
    plain("runtime_empty", 'runtime: ""\n'),
    plain("runtime_word", 'runtime: "pytorch"\n'),
    plain("priority_default_zero", _BATCH + "dynamic_batching { priority_levels: 2 }\n"),
    plain(
        "priority_policy_beyond",
        _BATCH
        + "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value { } } }\n",
    ),
    plain("preserve_ordering", _BATCH + "dynamic_batching { preserve_ordering: true }\n"),
    plain(
        "preserve_with_priorities",
        _BATCH + "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }\n",
    ),
    plain("sequence_oldest", _sequence("oldest { max_candidate_sequences: 4 }")),
    plain(
        "sequence_oldest_preferred", _sequence("oldest { max_candidate_sequences: 4 preferred_batch_size: [ 8 ] }")
    ),
    plain("sequence_direct", _sequence("direct { }")),
    plain("sequence_direct_slots", _sequence("direct { minimum_slot_utilization: 2.0 }")),
    plain("control_two_values", _sequence(_control("START", "int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]"))),
    plain("control_three_entries", _sequence(_control("START", "int32_false_true: [ 0, 1, 2 ]"))),
    plain("control_one_entry", _sequence(_control("START", "int32_false_true: [ 1 ]"))),
    plain("control_no_name", _sequence(f"control_input [ {{ control [ {{ kind: CONTROL_SEQUENCE_START {_START_VALUES} }} ] }} ]")),
    plain("control_none", _sequence('control_input [ { name: "C" } ]')),
    plain("control_id", _sequence(_control("CORRID", "data_type: TYPE_UINT64"))),
    plain("control_id_no_type", _sequence(_control("CORRID", ""))),
    plain("control_id_float", _sequence(_control("CORRID", "data_type: TYPE_FP32"))),
    plain("control_id_text", _sequence(_control("CORRID", "data_type: TYPE_STRING"))),
    plain("control_id_values", _sequence(_control("CORRID", f"data_type: TYPE_UINT64 {_START_VALUES}"))),
    plain("control_two_kinds", _sequence(_control("START", _START_VALUES) + _control("END", _START_VALUES))),
    plain("state", _sequence(_STATE)),
    plain("state_without_dims", _sequence(_STATE.replace("dims: [ -1 ]", ""))),
    plain("groups_none", "instance_group [ ]\n"),
    plain("file_elsewhere", 'default_model_filename: "../x.pt2"\n'),
    plain("file_empty", 'default_model_filename: ""\n'),
    plain("ensemble_empty", "ensemble_scheduling { }\n"),
    with_input("format_rank_batch", NAMED + "data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 4, 4 ]", "max_batch_size: 4\n"),
    with_input("reshape_zero", NAMED + "data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 0 ] }"),
    with_input("reshape_minus_two", NAMED + "data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ -2, -2 ] }"),
    with_input("reshape_moves_variable", NAMED + "data_type: TYPE_FP32 dims: [ -1, -1, 4 ] reshape { shape: [ -1, 4, -1 ] }"),
    with_input("reshape_around_variable", NAMED + "data_type: TYPE_FP32 dims: [ 2, -1, 2 ] reshape { shape: [ 4, -1 ] }"),
    with_input("reshape_to_nothing", NAMED + "data_type: TYPE_FP32 dims: [ 2 ] reshape { shape: [ ] }", "max_batch_size: 4\n"),
    with_input("optional_batch", NAMED + "data_type: TYPE_FP32 dims: [ 4 ] optional: true", "max_batch_size: 2\n"),
    with_input("odd_name", 'name: "a/b c" data_type: TYPE_FP32 dims: [ 4 ]'),
    with_output("output_reshape_size", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 64 ] reshape { shape: [ 4, 4 ] }'),
    with_output("output_reshape_empty", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] }'),
    with_output(
        "output_reshape_empty_batch", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] reshape { }', "max_batch_size: 4\n"
    ),
    with_output("output_shape_tensor", 'name: "OUTPUT__0" data_type: TYPE_INT32 dims: [ 1 ] is_shape_tensor: true'),
    with_output("output_variable", 'name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ -1 ]'),
)  # fmt: skip

CONFIGS: tuple[Config, ...] = SYNTAX + CORE + VALUES + MORE
