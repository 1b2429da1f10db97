"""Debug settings of AOTInductor and CUDA, and when each acts.

Most are baked in when the package is compiled: setting them for an existing package changes nothing, in silence.
"""

from __future__ import annotations

from aotidoctor.model.record import record


@record(kw_only=False)
class DebugSetting:
    """An environment variable. ``acts`` is ``run`` (on any package), ``compile`` (baked in) or ``cuda-init``."""

    name: str
    acts: str
    what: str


SETTINGS = (
    DebugSetting(
        "AOTI_RUNTIME_CHECK_INPUTS",
        "run",
        "compares inputs with the contract, rank excepted; read at the first call of each load",
    ),
    DebugSetting("TORCH_SHOW_CPP_STACKTRACES", "run", "adds the C++ stack to exceptions"),
    DebugSetting("TORCH_CPP_LOG_LEVEL", "run", "INFO shows what the loader extracts"),
    DebugSetting(
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "cuda-init",
        "one allocation per tensor, so an out-of-bounds write is detected; in old versions any value enabled it",
    ),
    DebugSetting("CUDA_LAUNCH_BLOCKING", "cuda-init", "errors appear at their launch; needs a new process"),
    DebugSetting("PYTORCH_USE_CUDA_DSA", "cuda-init", "device assertions; inert unless torch was built with them"),
    DebugSetting("TORCHINDUCTOR_NAN_ASSERTS", "compile", "asserts that inputs contain no NaN or Inf"),
    DebugSetting(
        "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER", "compile", "1 saves, 2 prints values, 3 prints kernel names"
    ),
    DebugSetting("TORCHINDUCTOR_SIZE_ASSERTS", "compile", "asserts on sizes and strides"),
    DebugSetting("AOT_INDUCTOR_DEBUG_SYMBOLS", "compile", "debug symbols in the library"),
    DebugSetting("INDUCTOR_PROVENANCE", "compile", "writes kernel_information.json into the package"),
    DebugSetting("TORCH_COMPILE_DEBUG", "compile", "keeps graphs and generated code of the compilation"),
)
