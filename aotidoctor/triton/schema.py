"""The message types of config.pbtxt, as far as their text form needs them: names, types, and which exclude each other.

A table of names and types, so that a config is judged where Triton's own schema is not installed, too. A test compares
it with that schema, field by field.
"""

from __future__ import annotations

from functools import cache

from aotidoctor.model.record import record

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
    """``type`` is a scalar, an enumeration, a message, or ``{key,value}`` for an entry of a map."""

    type: str
    repeated: bool
    oneof: str | None

    @property
    def is_message(self) -> bool:
        """Whether the value stands in braces."""
        return self.type not in _SCALARS and self.type not in ENUMS


@cache
def fields_of(message: str) -> dict[str, FieldType]:
    """The fields of a message type, those of a map entry included."""
    if message.startswith("{"):
        key, _, value = message[1:-1].partition(",")
        entry = {"key": key, "value": value}
        return {name: FieldType(type=kind, repeated=False, oneof=None) for name, kind in entry.items()}
    return dict(_field(text) for text in _MESSAGES[message].split())


def _field(text: str) -> tuple[str, FieldType]:
    name, _, rest = text.partition(":")
    rest, _, oneof = rest.partition("|")
    return name, FieldType(type=rest.rstrip("*"), repeated=rest.endswith("*"), oneof=oneof or None)


def enumerators(enum: str) -> tuple[str, ...]:
    """The names of an enumeration; they are numbered from 0."""
    return tuple(ENUMS[enum].split())


# name:type, * for repeated, | for the group of fields of which one may be set, {key,value} for a map.
_MESSAGES = {
    "ModelConfig": (
        "name:string platform:string backend:string runtime:string version_policy:ModelVersionPolicy "
        "max_batch_size:int32 input:ModelInput* output:ModelOutput* batch_input:BatchInput* "
        "batch_output:BatchOutput* optimization:ModelOptimizationPolicy "
        "dynamic_batching:ModelDynamicBatching|scheduling_choice "
        "sequence_batching:ModelSequenceBatching|scheduling_choice "
        "ensemble_scheduling:ModelEnsembling|scheduling_choice instance_group:ModelInstanceGroup* "
        "default_model_filename:string cc_model_filenames:{string,string}* metric_tags:{string,string}* "
        "parameters:{string,ModelParameter}* model_warmup:ModelWarmup* model_operations:ModelOperations "
        "model_transaction_policy:ModelTransactionPolicy model_repository_agents:ModelRepositoryAgents "
        "response_cache:ModelResponseCache model_metrics:ModelMetrics"
    ),
    "ModelVersionPolicy": (
        "latest:ModelVersionPolicy.Latest|policy_choice all:ModelVersionPolicy.All|policy_choice "
        "specific:ModelVersionPolicy.Specific|policy_choice"
    ),
    "ModelVersionPolicy.Latest": "num_versions:uint32",
    "ModelVersionPolicy.All": "",
    "ModelVersionPolicy.Specific": "versions:int64*",
    "ModelInput": (
        "name:string data_type:DataType format:ModelInput.Format dims:int64* reshape:ModelTensorReshape "
        "is_shape_tensor:bool allow_ragged_batch:bool optional:bool is_non_linear_format_io:bool"
    ),
    "ModelTensorReshape": "shape:int64*",
    "ModelOutput": (
        "name:string data_type:DataType dims:int64* reshape:ModelTensorReshape label_filename:string "
        "is_shape_tensor:bool is_non_linear_format_io:bool"
    ),
    "BatchInput": "kind:BatchInput.Kind target_name:string* data_type:DataType source_input:string*",
    "BatchOutput": "target_name:string* kind:BatchOutput.Kind source_input:string*",
    "ModelOptimizationPolicy": (
        "graph:ModelOptimizationPolicy.Graph priority:ModelOptimizationPolicy.ModelPriority "
        "cuda:ModelOptimizationPolicy.Cuda "
        "execution_accelerators:ModelOptimizationPolicy.ExecutionAccelerators "
        "input_pinned_memory:ModelOptimizationPolicy.PinnedMemoryBuffer "
        "output_pinned_memory:ModelOptimizationPolicy.PinnedMemoryBuffer "
        "gather_kernel_buffer_threshold:uint32 eager_batching:bool"
    ),
    "ModelOptimizationPolicy.Graph": "level:int32",
    "ModelOptimizationPolicy.Cuda": (
        "graphs:bool busy_wait_events:bool graph_spec:ModelOptimizationPolicy.Cuda.GraphSpec* output_copy_stream:bool"
    ),
    "ModelOptimizationPolicy.Cuda.GraphSpec": (
        "batch_size:int32 input:{string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape}* "
        "graph_lower_bound:ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound"
    ),
    "ModelOptimizationPolicy.Cuda.GraphSpec.Shape": "dim:int64*",
    "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound": (
        "batch_size:int32 input:{string,ModelOptimizationPolicy.Cuda.GraphSpec.Shape}*"
    ),
    "ModelOptimizationPolicy.ExecutionAccelerators": (
        "gpu_execution_accelerator:ModelOptimizationPolicy.ExecutionAccelerators.Accelerator* "
        "cpu_execution_accelerator:ModelOptimizationPolicy.ExecutionAccelerators.Accelerator*"
    ),
    "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator": "name:string parameters:{string,string}*",
    "ModelOptimizationPolicy.PinnedMemoryBuffer": "enable:bool",
    "ModelDynamicBatching": (
        "preferred_batch_size:int32* max_queue_delay_microseconds:uint64 preserve_ordering:bool "
        "priority_levels:uint64 default_priority_level:uint64 default_queue_policy:ModelQueuePolicy "
        "priority_queue_policy:{uint64,ModelQueuePolicy}*"
    ),
    "ModelQueuePolicy": (
        "timeout_action:ModelQueuePolicy.TimeoutAction default_timeout_microseconds:uint64 "
        "allow_timeout_override:bool max_queue_size:uint32"
    ),
    "ModelSequenceBatching": (
        "direct:ModelSequenceBatching.StrategyDirect|strategy_choice "
        "oldest:ModelSequenceBatching.StrategyOldest|strategy_choice max_sequence_idle_microseconds:uint64 "
        "control_input:ModelSequenceBatching.ControlInput* state:ModelSequenceBatching.State* "
        "iterative_sequence:bool"
    ),
    "ModelSequenceBatching.StrategyDirect": "max_queue_delay_microseconds:uint64 minimum_slot_utilization:float",
    "ModelSequenceBatching.StrategyOldest": (
        "max_candidate_sequences:int32 preferred_batch_size:int32* max_queue_delay_microseconds:uint64 "
        "preserve_ordering:bool"
    ),
    "ModelSequenceBatching.ControlInput": "name:string control:ModelSequenceBatching.Control*",
    "ModelSequenceBatching.Control": (
        "kind:ModelSequenceBatching.Control.Kind int32_false_true:int32* fp32_false_true:float* "
        "bool_false_true:bool* data_type:DataType"
    ),
    "ModelSequenceBatching.State": (
        "input_name:string output_name:string data_type:DataType dims:int64* "
        "initial_state:ModelSequenceBatching.InitialState* use_same_buffer_for_input_output:bool "
        "use_growable_memory:bool"
    ),
    "ModelSequenceBatching.InitialState": (
        "data_type:DataType dims:int64* zero_data:bool|state_data data_file:string|state_data name:string"
    ),
    "ModelEnsembling": "step:ModelEnsembling.Step* max_inflight_requests:uint32",
    "ModelEnsembling.Step": (
        "model_name:string model_version:int64 input_map:{string,string}* output_map:{string,string}* "
        "model_namespace:string"
    ),
    "ModelInstanceGroup": (
        "name:string kind:ModelInstanceGroup.Kind count:int32 rate_limiter:ModelRateLimiter gpus:int32* "
        "secondary_devices:ModelInstanceGroup.SecondaryDevice* profile:string* passive:bool "
        "host_policy:string"
    ),
    "ModelRateLimiter": "resources:ModelRateLimiter.Resource* priority:uint32",
    "ModelRateLimiter.Resource": "name:string global:bool count:uint32",
    "ModelInstanceGroup.SecondaryDevice": (
        "kind:ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind device_id:int64"
    ),
    "ModelParameter": "string_value:string",
    "ModelWarmup": "name:string batch_size:uint32 inputs:{string,ModelWarmup.Input}* count:uint32",
    "ModelWarmup.Input": (
        "data_type:DataType dims:int64* zero_data:bool|input_data_type random_data:bool|input_data_type "
        "input_data_file:string|input_data_type"
    ),
    "ModelOperations": "op_library_filename:string*",
    "ModelTransactionPolicy": "decoupled:bool",
    "ModelRepositoryAgents": "agents:ModelRepositoryAgents.Agent*",
    "ModelRepositoryAgents.Agent": "name:string parameters:{string,string}*",
    "ModelResponseCache": "enable:bool",
    "ModelMetrics": "metric_control:ModelMetrics.MetricControl*",
    "ModelMetrics.MetricControl": (
        "metric_identifier:ModelMetrics.MetricControl.MetricIdentifier "
        "histogram_options:ModelMetrics.MetricControl.HistogramOptions|metric_options"
    ),
    "ModelMetrics.MetricControl.MetricIdentifier": "family:string",
    "ModelMetrics.MetricControl.HistogramOptions": "buckets:double*",
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
