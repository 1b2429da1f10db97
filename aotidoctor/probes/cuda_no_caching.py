"""Does an out-of-bounds access fault without the caching allocator?

What it does
    Repeats the run in a fresh interpreter with PYTORCH_NO_CUDA_MEMORY_CACHING=1 and blocking launches, both set before
    the CUDA context exists: later they have no effect.

Why it matters
    The caching allocator leaves slack around each buffer, where a small overrun is not noticed; without it the overrun
    faults.

Example:
    run1: observed "an illegal memory access was encountered" at the launch of the first failing kernel

When it is wrong
    A fault that disappears here indicates a race or missing ordering; that is also evidence.
"""

from __future__ import annotations

from aotidoctor.model.torch_names import LAUNCH_BLOCKING, NO_CACHING
from aotidoctor.probes.cuda_probe import ACCESS, cuda_probe
from aotidoctor.probes.probe import RunFinder

PROBE = cuda_probe(RunFinder("AD-RUN-013", "cuda_no_caching", __doc__), NO_CACHING, LAUNCH_BLOCKING, only=ACCESS)
