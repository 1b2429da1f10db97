"""The ladder: ``PROBES`` in the order in which they are asked, cheapest question first."""

from __future__ import annotations

from aotidoctor.probes import (
    again,
    check_inputs,
    cpp_stack,
    cuda_blocking,
    cuda_no_caching,
    custom_ops,
    growth,
    loaded_weights,
    malloc_checks,
    memory_fill,
    mutation,
    plain_run,
    reference,
    sub_batch,
    threads,
    values,
)
from aotidoctor.probes.probe import History, Plan, Probe, Reuse, succeeded

PROBES: tuple[Probe, ...] = (
    plain_run.PROBE,
    loaded_weights.PROBE,
    mutation.PROBE,
    values.PROBE,
    custom_ops.PROBE,
    check_inputs.PROBE,
    again.PROBE,
    memory_fill.PROBE,
    threads.PROBE,
    cuda_blocking.PROBE,
    cuda_no_caching.PROBE,
    reference.PROBE,
    sub_batch.PROBE,
    growth.PROBE,
    malloc_checks.PROBE,
    cpp_stack.PROBE,
)

__all__ = ["PROBES", "History", "Plan", "Probe", "Reuse", "succeeded"]
