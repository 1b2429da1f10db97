"""Cases of scheduling, instances, parameters, warm-up, reshapes and ensembles: rules 29 to 53."""

from __future__ import annotations

from tests.unit.triton.cases_config import added, without
from tests.unit.triton.harness import MLP, ServingCase

KIND = "instance_group [ { kind: KIND_CPU } ]\n"
BATCHING = added("dynamic_batching { preferred_batch_size: [ 32 ] }\n")
SEQUENCE = 'sequence_batching { control_input [ { name: "%s" control [ { kind: %s %s } ] } ] }\n'
WARM = (
    'model_warmup [ { name: "w" batch_size: 4\n'
    '  inputs { key: "ARGS[0]" value { data_type: TYPE_FP32 dims: [ 1024 ] zero_data: true } }\n'
    '  inputs { key: "%s" value { data_type: %s dims: [ %s ] random_data: true } } } ]\n'
)
ENSEMBLE = """\
platform: "ensemble"
input [ { name: "A" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ -1, 1024 ] } ]
ensemble_scheduling { step [ { model_name: "mlp" model_version: -1
  input_map { key: "ARGS[0]" value: "A" }
  input_map { key: "%s" value: "A" }
  output_map { key: "RESULT" value: "B" } } ] }
"""


def group(text: str) -> str:
    """The healthy config with another instance group, at line 8."""
    return MLP.replace(KIND, f"instance_group [ {text} ]\n")


def parameter(key: str, value: str) -> str:
    """The healthy config and a parameter, at line 9."""
    return added(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n')


CASES = (
    # R29
    ServingCase(
        name="optional", config=MLP.replace("[ 1024 ] }\n]", "[ 1024 ] optional: true }\n]"), expected=("R29:5",)
    ),
    ServingCase(name="healthy-not-optional", config=MLP.replace("[ 1024 ] }\n]", "[ 1024 ] optional: false }\n]")),
    # R30
    ServingCase(
        name="batch-input",
        config=added(
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "N" data_type: TYPE_FP32 source_input: "ARGS[0]" }\n'
        ),
        expected=("R30:9",),
    ),
    ServingCase(
        name="ragged",
        config=MLP.replace("[ 1024 ] }\n]", "[ 1024 ] allow_ragged_batch: true }\n]"),
        expected=("R30:5",),
    ),
    # R34
    ServingCase(name="merged", config=BATCHING, release="26.05", expected=("R34:9",)),
    ServingCase(name="healthy-merged-later", config=BATCHING, release="26.06"),
    # R35
    ServingCase(
        name="sequence-too-old",
        release="26.05",
        config=added(SEQUENCE % ("START__2", "CONTROL_SEQUENCE_START", "fp32_false_true: [ 0, 1 ]")),
        expected=("R35:9",),
    ),
    ServingCase(
        name="sequence-of-strings",
        config=added(SEQUENCE % ("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_STRING")),
        expected=("R16:4", "R35:9", "R35:9"),
    ),
    # R36
    ServingCase(name="cpu-package-on-gpu", config=group("{ kind: KIND_GPU }"), gpus=1, expected=("R36:8",)),
    ServingCase(name="cuda-package-on-cpu", device="cuda", gpus=1, expected=("R36:8",)),
    ServingCase(name="model-kind-with-gpu", config=group("{ kind: KIND_MODEL }"), gpus=1, expected=("R36:8",)),
    ServingCase(name="healthy-model-kind", config=group("{ kind: KIND_MODEL }")),
    ServingCase(name="healthy-cuda", device="cuda", gpus=1, config=group("{ kind: KIND_GPU gpus: [ 0 ] }")),
    # R37
    ServingCase(name="kind-left-open", config=without(8), expected=("R37:1",)),
    ServingCase(name="kind-left-open-with-gpu", config=without(8), gpus=1, expected=("R37:1",)),
    ServingCase(name="cuda-left-open", config=without(8), device="cuda", gpus=1, expected=("R37:1",)),
    # R38
    ServingCase(
        name="second-gpu", device="cuda", gpus=2, config=group("{ kind: KIND_GPU gpus: [ 1 ] }"), expected=("R38:8",)
    ),
    ServingCase(
        name="two-gpus", device="cuda", gpus=2, config=group("{ kind: KIND_GPU gpus: [ 0, 1 ] }"), expected=("R38:8",)
    ),
    ServingCase(name="all-gpus", device="cuda", gpus=4, config=group("{ kind: KIND_GPU }"), expected=("R38:8",)),
    # R39
    ServingCase(name="four-instances", config=group("{ kind: KIND_CPU count: 4 }"), expected=("R39:8",)),
    ServingCase(name="healthy-one-instance", config=group("{ kind: KIND_CPU count: 1 }")),
    # R40
    ServingCase(name="cpu-with-gpus", config=group("{ kind: KIND_CPU gpus: [ 0 ] }"), expected=("R40:8",)),
    ServingCase(
        name="gpu-that-is-not-there",
        device="cuda",
        gpus=1,
        config=group("{ kind: KIND_GPU gpus: [ 0 ] }, { kind: KIND_GPU gpus: [ 7 ] }"),
        expected=("R38:8", "R39:8", "R40:8"),
    ),
    ServingCase(name="profile", config=group('{ kind: KIND_CPU profile: [ "0" ] }'), expected=("R40:8",)),
    # R41
    ServingCase(name="parameter-too-early", config=parameter("INFERENCE_MODE", "banana"), expected=("R41:9",)),
    ServingCase(name="healthy-parameter", config=parameter("INFERENCE_MODE", "True"), release="26.07"),
    # R42
    ServingCase(name="no-boolean", config=parameter("INFERENCE_MODE", "banana"), release="26.07", expected=("R42:9",)),
    ServingCase(
        name="no-number", config=parameter("INTRA_OP_THREAD_COUNT", "four"), release="26.07", expected=("R42:9",)
    ),
    ServingCase(
        name="half-a-number", config=parameter("INTRA_OP_THREAD_COUNT", "4abc"), release="26.07", expected=("R42:9",)
    ),
    ServingCase(name="healthy-threads", config=parameter("INTRA_OP_THREAD_COUNT", "4"), release="26.07"),
    # R43
    ServingCase(name="misspelt", config=parameter("INFERENCE_MOD", "true"), release="26.07", expected=("R43:9",)),
    ServingCase(name="lower-case", config=parameter("inference_mode", "true"), release="26.07", expected=("R43:9",)),
    ServingCase(name="of-torchscript", config=parameter("NUM_THREADS", "4"), release="26.07", expected=("R43:9",)),
    ServingCase(name="unknown-key", config=parameter("COLOR", "red"), release="26.07", expected=("R43:9",)),
    ServingCase(
        name="healthy-without-effect",
        config=parameter("CACHE_CLEANING_ENABLED", "true"),
        release="26.07",
        notes=("R43:9",),
    ),
    # R44
    ServingCase(name="cudnn", config=parameter("DISABLE_CUDNN", "true"), release="26.07", expected=("R44:9",)),
    ServingCase(name="cudnn-too-early", config=parameter("DISABLE_CUDNN", "true"), expected=("R41:9",)),
    # R45
    ServingCase(
        name="threads-of-another",
        config=parameter("INTRA_OP_THREAD_COUNT", "4"),
        release="26.07",
        siblings={"net": parameter("INTRA_OP_THREAD_COUNT", "2")},
        expected=("R45:9",),
    ),
    ServingCase(
        name="healthy-threads-of-another",
        config=parameter("INTRA_OP_THREAD_COUNT", "4"),
        release="26.07",
        siblings={"net": parameter("INTRA_OP_THREAD_COUNT", "4")},
    ),
    # R50
    ServingCase(name="warm-name", config=added(WARM % ("ARGS[2]", "TYPE_FP32", "1024")), expected=("R50:11",)),
    ServingCase(name="warm-type", config=added(WARM % ("ARGS[1]", "TYPE_INT32", "1024")), expected=("R50:11",)),
    ServingCase(name="warm-dims", config=added(WARM % ("ARGS[1]", "TYPE_FP32", "-1")), expected=("R50:11",)),
    ServingCase(name="healthy-warm", config=added(WARM % ("ARGS[1]", "TYPE_FP32", "1024"))),
    # R52
    ServingCase(
        name="healthy-reshape",
        config=MLP.replace("dims: [ 1024 ] }\n]", "dims: [ 32, 32 ] reshape { shape: [ 1024 ] } }\n]"),
        notes=("R52:5",),
    ),
    ServingCase(
        name="reshape-of-another-size",
        config=MLP.replace("dims: [ 1024 ] }\n]", "dims: [ 32, 3 ] reshape { shape: [ 1024 ] } }\n]"),
        expected=("R52:5",),
    ),
    # R53
    ServingCase(name="healthy-ensemble", siblings={"both": ENSEMBLE % "ARGS[1]"}, notes=("R53",)),
    ServingCase(name="ensemble-without-an-input", siblings={"both": ENSEMBLE % "INPUT__1"}, expected=("R53",)),
)
