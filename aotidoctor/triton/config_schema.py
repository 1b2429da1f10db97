"""Define the message types of config.pbtxt, its tokens, and the check against protobuf's own parser.

The table of names and types lets a config be judged where Triton's own schema is not installed, too. A test compares
it with that schema, field by field. Where it is installed, the last word on whether a config parses is protobuf's
text format. The schema is a module of ``tritonclient``, loaded from its file: to import its package would need
grpcio. In the text format, ``#`` begins a comment; ``//`` does not.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aotidoctor.model.errors import too_many
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import Given, Position

if TYPE_CHECKING:
    from google.protobuf.message import Message


# Message types.
ROOT = "ModelConfig"
INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_SCALARS = frozenset({*INTEGERS, "string", "bool", "float", "double"})


@record
class FieldType:
    """Type of a field. ``type`` is a scalar, an enumeration, a message, or ``{key,value}`` for an entry of a map."""

    type: str
    repeated: bool
    oneof: str | None

    @property
    def is_message(self) -> bool:
        """Whether the value is written in braces."""
        return self.type not in _SCALARS and self.type not in ENUMS


@cache
def fields_of(message: str) -> dict[str, FieldType]:
    """Fields of a message type, or of a map entry."""
    if message.startswith("{"):
        key, _, value = message[1:-1].partition(",")
        entry = {"key": key, "value": value}
        return {name: FieldType(type=kind, repeated=False, oneof=None) for name, kind in entry.items()}
    found = {}
    for text in _MESSAGES[message].split():
        name, _, rest = text.partition(":")
        kind, _, oneof = rest.partition("|")
        found[name] = FieldType(type=kind.rstrip("*"), repeated=kind.endswith("*"), oneof=oneof or None)
    return found


def enumerators(enum: str) -> tuple[str, ...]:
    """Names of an enumeration, which are numbered from 0."""
    return tuple(ENUMS[enum].split())


# A message and its fields, name:type; * for repeated, | for a group of which one may be set, {key,value} for a map.
_TABLE = """
ModelConfig name:string platform:string backend:string runtime:string version_policy:ModelVersionPolicy
    max_batch_size:int32 input:ModelInput* output:ModelOutput* batch_input:BatchInput* batch_output:BatchOutput*
    optimization:ModelOptimizationPolicy dynamic_batching:ModelDynamicBatching|scheduling_choice
    sequence_batching:ModelSequenceBatching|scheduling_choice ensemble_scheduling:ModelEnsembling|scheduling_choice
    instance_group:ModelInstanceGroup* default_model_filename:string cc_model_filenames:{string,string}*
    metric_tags:{string,string}* parameters:{string,ModelParameter}* model_warmup:ModelWarmup*
    model_operations:ModelOperations model_transaction_policy:ModelTransactionPolicy
    model_repository_agents:ModelRepositoryAgents response_cache:ModelResponseCache model_metrics:ModelMetrics
ModelVersionPolicy latest:ModelVersionPolicy.Latest|policy_choice all:ModelVersionPolicy.All|policy_choice
    specific:ModelVersionPolicy.Specific|policy_choice
ModelVersionPolicy.Latest num_versions:uint32
ModelVersionPolicy.All
ModelVersionPolicy.Specific versions:int64*
ModelInput name:string data_type:DataType format:ModelInput.Format dims:int64* reshape:ModelTensorReshape
    is_shape_tensor:bool allow_ragged_batch:bool optional:bool is_non_linear_format_io:bool
ModelTensorReshape shape:int64*
ModelOutput name:string data_type:DataType dims:int64* reshape:ModelTensorReshape label_filename:string
    is_shape_tensor:bool is_non_linear_format_io:bool
BatchInput kind:BatchInput.Kind target_name:string* data_type:DataType source_input:string*
BatchOutput target_name:string* kind:BatchOutput.Kind source_input:string*
ModelOptimizationPolicy graph:ModelOptimizationPolicy.Graph priority:ModelOptimizationPolicy.ModelPriority
    cuda:ModelOptimizationPolicy.Cuda execution_accelerators:ModelOptimizationPolicy.ExecutionAccelerators
    input_pinned_memory:ModelOptimizationPolicy.PinnedMemoryBuffer
    output_pinned_memory:ModelOptimizationPolicy.PinnedMemoryBuffer gather_kernel_buffer_threshold:uint32
    eager_batching:bool
ModelOptimizationPolicy.Graph level:int32
ModelOptimizationPolicy.Cuda graphs:bool busy_wait_events:bool graph_spec:ModelOptimizationPolicy.Cuda.GraphSpec*
    output_copy_stream:bool
ModelOptimizationPolicy.Cuda.GraphSpec batch_size:int32 input:{string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape}*
    graph_lower_bound:ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound
ModelOptimizationPolicy.Cuda.GraphSpec.Shape dim:int64*
ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound batch_size:int32
    input:{string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape}*
ModelOptimizationPolicy.ExecutionAccelerators
    gpu_execution_accelerator:ModelOptimizationPolicy.ExecutionAccelerators.Accelerator*
    cpu_execution_accelerator:ModelOptimizationPolicy.ExecutionAccelerators.Accelerator*
ModelOptimizationPolicy.ExecutionAccelerators.Accelerator name:string parameters:{string,string}*
ModelOptimizationPolicy.PinnedMemoryBuffer enable:bool
ModelDynamicBatching preferred_batch_size:int32* max_queue_delay_microseconds:uint64 preserve_ordering:bool
    priority_levels:uint64 default_priority_level:uint64 default_queue_policy:ModelQueuePolicy
    priority_queue_policy:{uint64,ModelQueuePolicy}*
ModelQueuePolicy timeout_action:ModelQueuePolicy.TimeoutAction default_timeout_microseconds:uint64
    allow_timeout_override:bool max_queue_size:uint32
ModelSequenceBatching direct:ModelSequenceBatching.StrategyDirect|strategy_choice
    oldest:ModelSequenceBatching.StrategyOldest|strategy_choice max_sequence_idle_microseconds:uint64
    control_input:ModelSequenceBatching.ControlInput* state:ModelSequenceBatching.State* iterative_sequence:bool
ModelSequenceBatching.StrategyDirect max_queue_delay_microseconds:uint64 minimum_slot_utilization:float
ModelSequenceBatching.StrategyOldest max_candidate_sequences:int32 preferred_batch_size:int32*
    max_queue_delay_microseconds:uint64 preserve_ordering:bool
ModelSequenceBatching.ControlInput name:string control:ModelSequenceBatching.Control*
ModelSequenceBatching.Control kind:ModelSequenceBatching.Control.Kind int32_false_true:int32* fp32_false_true:float*
    bool_false_true:bool* data_type:DataType
ModelSequenceBatching.State input_name:string output_name:string data_type:DataType dims:int64*
    initial_state:ModelSequenceBatching.InitialState* use_same_buffer_for_input_output:bool use_growable_memory:bool
ModelSequenceBatching.InitialState data_type:DataType dims:int64* zero_data:bool|state_data
    data_file:string|state_data name:string
ModelEnsembling step:ModelEnsembling.Step* max_inflight_requests:uint32
ModelEnsembling.Step model_name:string model_version:int64 input_map:{string,string}* output_map:{string,string}*
    model_namespace:string
ModelInstanceGroup name:string kind:ModelInstanceGroup.Kind count:int32 rate_limiter:ModelRateLimiter gpus:int32*
    secondary_devices:ModelInstanceGroup.SecondaryDevice* profile:string* passive:bool host_policy:string
ModelRateLimiter resources:ModelRateLimiter.Resource* priority:uint32
ModelRateLimiter.Resource name:string global:bool count:uint32
ModelInstanceGroup.SecondaryDevice kind:ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind device_id:int64
ModelParameter string_value:string
ModelWarmup name:string batch_size:uint32 inputs:{string,ModelWarmup.Input}* count:uint32
ModelWarmup.Input data_type:DataType dims:int64* zero_data:bool|input_data_type random_data:bool|input_data_type
    input_data_file:string|input_data_type
ModelOperations op_library_filename:string*
ModelTransactionPolicy decoupled:bool
ModelRepositoryAgents agents:ModelRepositoryAgents.Agent*
ModelRepositoryAgents.Agent name:string parameters:{string,string}*
ModelResponseCache enable:bool
ModelMetrics metric_control:ModelMetrics.MetricControl*
ModelMetrics.MetricControl metric_identifier:ModelMetrics.MetricControl.MetricIdentifier
    histogram_options:ModelMetrics.MetricControl.HistogramOptions|metric_options
ModelMetrics.MetricControl.MetricIdentifier family:string
ModelMetrics.MetricControl.HistogramOptions buckets:double*
"""
_MESSAGES = {
    name: fields for name, _, fields in (row.partition(" ") for row in re.sub(r"\n +", " ", _TABLE.strip()).split("\n"))
}

ENUMS = {
    "DataType": (
        "TYPE_INVALID TYPE_BOOL TYPE_UINT8 TYPE_UINT16 TYPE_UINT32 TYPE_UINT64 TYPE_INT8 TYPE_INT16 "
        "TYPE_INT32 TYPE_INT64 TYPE_FP16 TYPE_FP32 TYPE_FP64 TYPE_STRING TYPE_BF16"
    ),
    "ModelInput.Format": "FORMAT_NONE FORMAT_NHWC FORMAT_NCHW",
    "BatchInput.Kind": (
        "BATCH_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO "
        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE BATCH_ITEM_SHAPE BATCH_ITEM_SHAPE_FLATTEN"
    ),
    "BatchOutput.Kind": "BATCH_SCATTER_WITH_INPUT_SHAPE",
    "ModelOptimizationPolicy.ModelPriority": "PRIORITY_DEFAULT PRIORITY_MAX PRIORITY_MIN",
    "ModelQueuePolicy.TimeoutAction": "REJECT DELAY",
    "ModelSequenceBatching.Control.Kind": (
        "CONTROL_SEQUENCE_START CONTROL_SEQUENCE_READY CONTROL_SEQUENCE_END CONTROL_SEQUENCE_CORRID"
    ),
    "ModelInstanceGroup.Kind": "KIND_AUTO KIND_GPU KIND_CPU KIND_MODEL",
    "ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind": "KIND_NVDLA",
}


# Tokens of protobuf's text format, each with its place.
_SPACE = re.compile(r"[ \t\r\f\v]+")
_TOKEN = re.compile(
    r"""[a-zA-Z_][0-9a-zA-Z_]*                        # an identifier
    |0[xX][0-9a-fA-F]+                                # a number; its sign is a token of its own
    |(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?
    |"[^"\n\\]*(?:\\.[^"\n\\]*)*(?:"|\\?$)       # a string
    |'[^'\n\\]*(?:\\.[^'\n\\]*)*(?:'|\\?$)""",
    re.VERBOSE,
)
_NUMBER, _WORD = re.compile(r"\.?[0-9]"), re.compile(r"[a-zA-Z_]")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\?'\"])|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)")
_PLAIN = dict(zip("abfnrtv\\?'\"", "\a\b\f\n\r\t\v\\?'\"", strict=True))
MOST_TOKENS = 100_000
QUOTES = ('"', "'")


class TextFormatError(ValueError):
    """A fault of the text; ``at`` is its position."""

    def __init__(self, message: str, at: Position) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class ConfigToken:
    """One token; ``text`` is empty at the end of the file."""

    text: str
    at: Position


def tokens(text: str) -> Iterator[ConfigToken]:
    """Yield all tokens, and an empty one at the end. Raises TextFormatError, and LimitReachedError for too many."""
    lines = text.split("\n")
    left = iter(range(MOST_TOKENS))
    for number, line in enumerate(lines, start=1):
        column = 0
        while column < len(line):
            if space := _SPACE.match(line, column):
                column = space.end()
                continue
            if line[column] == "#":
                break
            if next(left, None) is None:
                raise too_many("words in config.pbtxt", MOST_TOKENS)
            found = _TOKEN.match(line, column)
            token = found[0] if found else line[column]
            if _NUMBER.match(token) and _WORD.match(line, column + len(token)):
                at = Position(line=number, column=column + len(token) + 1)
                raise TextFormatError("a number and a word need a space between them", at)
            yield ConfigToken(token, Position(line=number, column=column + 1))
            column += len(token)
    yield ConfigToken("", Position(line=len(lines), column=len(lines[-1]) + 1))


def comments(text: str) -> tuple[Given[str], ...]:
    """Comments: the text after ``#``."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        column = 0
        while column < len(line) and line[column] != "#":
            token = _TOKEN.match(line, column)
            column = token.end() if token else column + 1
        if column < len(line):
            found.append(Given(value=line[column + 1 :].strip(), at=Position(line=number, column=column + 1)))
    return tuple(found)


def string_value(token: ConfigToken) -> str:
    """Value of a string token. Raises TextFormatError."""
    text = token.text
    if len(text) < 2 or text[-1] != text[0]:
        raise TextFormatError(f"the string {text} has no closing quote", token.at)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise TextFormatError(f"the string {text} is not UTF-8", token.at)

    def decode(found: re.Match[str]) -> str:
        plain, hexadecimal, octal, *unicode = found.groups()
        if plain is not None:
            return _PLAIN[plain]
        number = int(hexadecimal or unicode[0] or unicode[1] or "-1", 16) if octal is None else int(octal, 8)
        if not 0 <= number < 0x110000:
            raise TextFormatError(f"{found[0]} is not an escape sequence", token.at)
        return chr(number)

    return _ESCAPE.sub(decode, text[1:-1])


# protobuf's own parser.

INSTALL_PROTOBUF = "pip install 'aotidoctor[triton]'"
_SCHEMA = Path("grpc", "model_config_pb2.py")


@record
class ProtobufVerdict:
    """Verdict of protobuf: ``accepted`` is None where it or the schema is missing, ``problem`` why it is not True."""

    accepted: bool | None
    problem: str = ""
    at: Position | None = None


def parse_with_protobuf(text: str) -> ProtobufVerdict:
    """Parse the text as a config with protobuf, as the server does."""
    try:
        from google.protobuf import text_format

        empty = _message_type()()
    except ImportError as error:
        return ProtobufVerdict(accepted=None, problem=f"{error}; {INSTALL_PROTOBUF}")
    except Exception as error:  # noqa: BLE001 - a schema made for another protobuf raises its own error
        return ProtobufVerdict(accepted=None, problem=f"{type(error).__name__}: {error}; {INSTALL_PROTOBUF}")
    try:
        # Bytes that are not UTF-8 matter in strings only, and there they have been refused before.
        text_format.Parse(text.encode("utf-8", "replace").decode("utf-8"), empty)
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        at = None if line is None or column is None else Position(line=line, column=column)
        return ProtobufVerdict(accepted=False, problem=str(error), at=at)
    except ValueError as error:
        return ProtobufVerdict(accepted=False, problem=str(error))
    return ProtobufVerdict(accepted=True)


@lru_cache(maxsize=1)
def _message_type() -> type[Message]:
    package = importlib.util.find_spec("tritonclient")
    if package is None or not package.submodule_search_locations:
        raise ImportError("No module named 'tritonclient'")
    path = Path(package.submodule_search_locations[0]) / _SCHEMA
    spec = importlib.util.spec_from_file_location("aotidoctor_model_config_pb2", str(path))
    if spec is None or spec.loader is None:
        raise ImportError(f"no module at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kind: type[Message] = module.ModelConfig
    return kind
