"""The compiler's own bisect switch (``TORCH_BISECT_*``): turn off all steps of a subsystem from a number on.

The switch asks one function before each decomposition, graph pass and lowering. That function is wrapped, so that one
compile tells which steps there are, under the numbers that ``TORCH_BISECT_MAX`` counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MOST_STEPS = 20_000
_VARIABLES = ("TORCH_BISECT_BACKEND", "TORCH_BISECT_SUBSYSTEM", "TORCH_BISECT_MAX")


@contextmanager
def counted(switch: dict[str, Any] | None) -> Iterator[dict[str, list[dict[str, str]]]]:
    """Steps by subsystem, filled while the compiler works; with ``switch`` those after its ``max`` are off.

    Number 0 is the first step: ``max`` -1 turns all of them off.
    """
    steps: dict[str, list[dict[str, str]]] = {}
    try:
        from torch._inductor import compiler_bisector as module
    except ImportError:
        # Before 2.6 there is no switch.
        if switch is not None:
            raise
        yield steps
        return
    bisector = module.CompilerBisector
    original = bisector.__dict__["disable_subsystem"]
    asked = original.__func__
    _set(module, switch)

    def disable_subsystem(cls: Any, backend: str, subsystem: str, debug_info: Any = None) -> Any:
        found = steps.setdefault(subsystem, [])
        if len(found) < _MOST_STEPS:
            found.append(_step(backend, debug_info))
        return asked(cls, backend, subsystem, debug_info)

    bisector.disable_subsystem = classmethod(disable_subsystem)
    try:
        with _operators_without_decomposition(switch):
            yield steps
    finally:
        bisector.disable_subsystem = original


@contextmanager
def _operators_without_decomposition(switch: dict[str, Any] | None) -> Iterator[None]:
    """An operator whose decomposition is off is called as it is. The compiler refuses that: it has one, it says."""
    if switch is None or switch["subsystem"] != "decomposition":
        yield
        return
    from torch._inductor import graph

    original = graph.make_fallback
    graph.make_fallback = lambda *args, **options: original(*args, **{**options, "override_decomp": True})
    try:
        yield
    finally:
        graph.make_fallback = original


def _set(module: Any, switch: dict[str, Any] | None) -> None:
    """The switch's three variables, also where the module had been imported, which remembers what it saw then."""
    if switch is None:
        return
    values = (switch["backend"], switch["subsystem"], str(switch["max"]))
    for name, value in zip(_VARIABLES, values, strict=True):
        os.environ[name] = value
    if hasattr(module.get_env_val, "cache_clear"):
        module.get_env_val.cache_clear()
    module.subsystem_call_counter.clear()
    module.CompilerBisector.bisection_enabled = True


def _step(backend: str, debug_info: Any) -> dict[str, str]:
    """What one step is: ``name``; of a lowering also the operator as ``target`` and the user's line as ``where``."""
    try:
        name = str(debug_info()) if debug_info is not None else ""
    except Exception as error:
        name = f"<{type(error).__name__}>"
    return {"backend": backend, "name": name[:200], **_node()}


def _node() -> dict[str, str]:
    """The graph node that is being lowered, if any."""
    from torch._inductor.virtualized import V

    try:
        node = V.current_node
        target, trace = node.target, node.meta.get("stack_trace") or ""
    except (AttributeError, NotImplementedError):
        return {}
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    return {"target": str(target)[:200], **({"where": lines[-1][:300]} if lines else {})}
