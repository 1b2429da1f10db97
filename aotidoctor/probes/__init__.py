"""List ``PROBES`` in the order in which they run, cheapest question first."""

from __future__ import annotations

from importlib import import_module

from aotidoctor.probes.probe import History, Plan, Probe, Reuse, succeeded

# The modules, each of which has a PROBE.
_ORDER = """
plain_run blame loaded_weights weight_swap mutation values call_trace custom_ops check_inputs refused_operator repeat
memory_fill over_read cuda_blocking cuda_no_caching launch_trace core_dump sanitizer cuda_variants emulation
failure_rates reference sub_batch threads kernel_values growth load_time op_inputs op_alone backtrace malloc_checks
cpp_stack kernel_inputs
"""
# These run after the others, each in a part of the pipeline of its own: an answer takes a chain of runs.
_LATER = "stages printed_values recompiled compiler_bisect printed_launches shrink"
PROBES: tuple[Probe, ...] = tuple(import_module(f"{__name__}.{name}").PROBE for name in _ORDER.split())
LATER: tuple[Probe, ...] = tuple(import_module(f"{__name__}.{name}").PROBE for name in _LATER.split())

__all__ = ["LATER", "PROBES", "History", "Plan", "Probe", "Reuse", "succeeded"]
