"""The ladder: ``PROBES`` in the order in which they are asked, cheapest question first."""

from __future__ import annotations

from aotidoctor.probes import (
    again,
    backtrace,
    blame,
    call_trace,
    check_inputs,
    compiler_bisect,
    core_dump,
    cpp_stack,
    cuda_blocking,
    cuda_no_caching,
    cuda_variants,
    custom_ops,
    growth,
    kernel_inputs,
    kernel_values,
    launch_trace,
    load_time,
    loaded_weights,
    malloc_checks,
    memory_fill,
    mutation,
    op_alone,
    op_inputs,
    plain_run,
    printed_launches,
    printed_values,
    recompiled,
    reference,
    rung_table,
    sanitizer,
    shrink,
    sub_batch,
    threads,
    values,
)
from aotidoctor.probes.probe import History, Plan, Probe, Reuse, succeeded

PROBES: tuple[Probe, ...] = (
    plain_run.PROBE,
    blame.PROBE,
    loaded_weights.PROBE,
    mutation.PROBE,
    values.PROBE,
    call_trace.PROBE,
    custom_ops.PROBE,
    check_inputs.PROBE,
    again.PROBE,
    memory_fill.PROBE,
    cuda_blocking.PROBE,
    cuda_no_caching.PROBE,
    launch_trace.PROBE,
    core_dump.PROBE,
    sanitizer.PROBE,
    cuda_variants.PROBE,
    rung_table.PROBE,
    reference.PROBE,
    sub_batch.PROBE,
    threads.PROBE,
    kernel_values.PROBE,
    growth.PROBE,
    load_time.PROBE,
    op_inputs.PROBE,
    op_alone.PROBE,
    backtrace.PROBE,
    malloc_checks.PROBE,
    cpp_stack.PROBE,
    kernel_inputs.PROBE,
)

# Asked after the ladder, each by a part of the pipeline of its own: an answer takes a chain of runs.
LATER: tuple[Probe, ...] = (
    printed_values.PROBE,
    recompiled.PROBE,
    compiler_bisect.PROBE,
    printed_launches.PROBE,
    shrink.PROBE,
)

__all__ = ["LATER", "PROBES", "History", "Plan", "Probe", "Reuse", "succeeded"]
