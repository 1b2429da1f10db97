"""Debug settings of AOTInductor and CUDA, and when each acts.

Most are baked in when the package is compiled: setting them for an existing package changes nothing, in silence.
"""

from __future__ import annotations

from aotidoctor.model.record import record


@record
class DebugSetting:
    """An environment variable. ``acts`` is ``run`` (on any package), ``compile`` (baked in) or ``cuda-init``."""

    name: str
    acts: str
    what: str


SETTINGS = (
    DebugSetting(
        name="AOTI_RUNTIME_CHECK_INPUTS",
        acts="run",
        what="compares inputs with the contract, rank excepted; read at the first call of each load",
    ),
    DebugSetting(name="TORCH_SHOW_CPP_STACKTRACES", acts="run", what="adds the C++ stack to exceptions"),
    DebugSetting(name="TORCH_CPP_LOG_LEVEL", acts="run", what="INFO shows what the loader extracts"),
    DebugSetting(
        name="PYTORCH_NO_CUDA_MEMORY_CACHING",
        acts="cuda-init",
        what="one allocation per tensor, so an out-of-bounds write is detected; in old versions any value enabled it",
    ),
    DebugSetting(
        name="CUDA_LAUNCH_BLOCKING", acts="cuda-init", what="errors appear at their launch; needs a new process"
    ),
    DebugSetting(
        name="PYTORCH_USE_CUDA_DSA", acts="cuda-init", what="device assertions; inert unless torch was built with them"
    ),
    DebugSetting(name="TORCHINDUCTOR_NAN_ASSERTS", acts="compile", what="asserts that inputs hold no NaN or Inf"),
    DebugSetting(
        name="AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER",
        acts="compile",
        what="1 saves, 2 prints values, 3 prints kernel names",
    ),
    DebugSetting(name="TORCHINDUCTOR_SIZE_ASSERTS", acts="compile", what="asserts on sizes and strides"),
    DebugSetting(name="AOT_INDUCTOR_DEBUG_SYMBOLS", acts="compile", what="debug symbols in the library"),
    DebugSetting(name="INDUCTOR_PROVENANCE", acts="compile", what="writes kernel_information.json into the package"),
    DebugSetting(name="TORCH_COMPILE_DEBUG", acts="compile", what="keeps graphs and generated code of the compilation"),
)
