"""With blocking launches, where does the fault surface?

What it does
    Repeats the run in a fresh interpreter with CUDA_LAUNCH_BLOCKING=1, set before the CUDA context exists:
    later it has no effect.

Why it matters
    CUDA reports a fault at a later, innocent call; with blocking launches it surfaces at the launch itself, as an
    exception or as an abort: both give the same finding. The calls of the package are traced, so the launch is
    identified by its place in wrapper.cpp.

Example:
    run1: observed "an illegal memory access was encountered" at the launch of the first failing kernel

When it is wrong
    A fault that disappears here indicates a race or missing ordering; that is also evidence.
"""

from __future__ import annotations

from aotidoctor.model.torch_names import LAUNCH_BLOCKING
from aotidoctor.probes.cuda_probe import cuda_probe
from aotidoctor.probes.probe import RunFinder

PROBE = cuda_probe(RunFinder("AD-RUN-012", "cuda_blocking", __doc__), LAUNCH_BLOCKING)
