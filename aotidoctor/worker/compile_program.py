"""Compile an exported program with the compiler of this host (job ``recompile``), and save one for a stamp.

Settings that environment variables make at the start of a compiling program are made here as options of the one
compile, which works in a forked child as well: the value printer, provenance, and the compiler's own bisect switch.
Only options of the compile change; the generated kernels are the same with and without printer or provenance.

The bisect switch (``TORCH_BISECT_*``) turns off all steps of a subsystem from a number on. It calls one function
before each decomposition, graph pass and lowering. That function is wrapped, so that one compile lists the steps
under the numbers that ``TORCH_BISECT_MAX`` counts.

To find the first operator that the compiler gives another dtype (job ``lowered_dtypes``) the program is decomposed and
lowered as for a compile, and no code is written. Each node has the dtype that the operator has, and the buffer that the
lowering makes has one of its own; nodes after the first wrong one follow it.

A stamp is made in the user's process that is about to compile: it needs the program as a file, and versions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from aotidoctor.model.jobs import Recompile
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.tensors import short_name
from aotidoctor.worker.user_code import attribute_replaced, load_setup

# The compiler's bisect switch.
_MOST_STEPS = 20_000
# All passes together; the switch itself knows one kind of them at a time.
_PASSES = ("post_grad_passes", "joint_graph_passes", "pre_grad_passes")
_VARIABLES = ("TORCH_BISECT_BACKEND", "TORCH_BISECT_SUBSYSTEM", "TORCH_BISECT_MAX")


@contextmanager
def count_steps(switch: dict[str, Any] | None) -> Iterator[dict[str, list[dict[str, str]]]]:
    """Yield the steps by subsystem, filled while the compiler works; with ``switch`` those after its ``max`` are off.

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
    no_passes = switch is not None and switch["subsystem"] == "passes"
    if switch is not None and not no_passes:
        for name, value in zip(_VARIABLES, (switch["backend"], switch["subsystem"], str(switch["max"])), strict=True):
            os.environ[name] = value
        # The module may have been imported before, and remembers the values of that time.
        if hasattr(module.get_env_val, "cache_clear"):
            module.get_env_val.cache_clear()
        module.subsystem_call_counter.clear()
        bisector.bisection_enabled = True

    def disable_subsystem(cls: Any, backend: str, subsystem: str, debug_info: Any = None) -> Any:
        found = steps.setdefault(subsystem, [])
        if len(found) < _MOST_STEPS:
            found.append(_describe_step(backend, debug_info))
        return (no_passes and subsystem in _PASSES) or original.__func__(cls, backend, subsystem, debug_info)

    with attribute_replaced(bisector, "disable_subsystem", classmethod(disable_subsystem)), ExitStack() as stack:
        if switch is not None and switch["subsystem"] == "decomposition":
            # Operators whose decomposition is off are called as they are, which the compiler refuses where one exists.
            from torch._inductor import graph

            make, always = graph.make_fallback, {"override_decomp": True}
            stack.enter_context(
                attribute_replaced(graph, "make_fallback", lambda *args, **options: make(*args, **options | always))
            )
        yield steps


def _describe_step(backend: str, debug_info: Any) -> dict[str, str]:
    """``backend`` and ``name`` of a step; of a lowering also ``target`` (operator) and ``where`` (the user's line)."""
    from torch._inductor.virtualized import V

    try:
        name = str(debug_info()) if debug_info is not None else ""
    except Exception as error:
        name = f"<{type(error).__name__}>"
    facts = {"backend": backend, "name": name[:200]}
    try:
        # The graph node that is being lowered, if any.
        node = V.current_node
        target, trace = node.target, node.meta.get("stack_trace") or ""
    except (AttributeError, NotImplementedError):
        return facts
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    return {**facts, "target": str(target)[:200], **({"where": lines[-1][:300]} if lines else {})}


def use_compiler_cache(folder: str) -> None:
    """Let Inductor keep precompiled headers, and what it learnt of this CPU, in a folder that outlives this process."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    from torch._inductor import codecache

    headers = Path(folder) / "precompiled_headers"
    for name, place in (("_HEADER_DIR", headers), ("_HEADER_LOCK_DIR", headers / "locks")):
        if hasattr(codecache, name):
            setattr(codecache, name, str(place))


def recompile(payload: Recompile, channel: Channel) -> dict[str, Any]:
    """Compile ``payload.reference`` to ``payload.target``.

    ``cache`` is the folder of the compiler's precompiled headers, ``printer`` the level of the value printer (0 to 3)
    and ``printed_kernels`` the kernels that level 2 prints (default: all), ``provenance`` whether the package records
    source lines, ``config`` are further options of Inductor, ``bisect`` is ``{"backend", "subsystem", "max"}`` of the
    compiler's switch or None. The result's ``switchable`` are the steps that the switch can turn off, in order, by
    subsystem.
    """
    load_setup(payload, channel)
    channel.enter("import_compiler")
    from torch._inductor import aoti_compile_and_package, config

    if payload.cache:
        use_compiler_cache(payload.cache)
    channel.enter("load_reference")
    program = torch.export.load(str(channel.user_cwd / payload.reference))
    channel.enter("compile")
    # Inductor's cache of graphs does not see what a setup file changed in the compiler: off.
    options: dict[str, Any] = {"fx_graph_cache": False, **(payload.config or {})}
    if payload.printer:
        options["aot_inductor.debug_intermediate_value_printer"] = str(payload.printer)
        if payload.printed_kernels:
            options["aot_inductor.filtered_kernel_names"] = payload.printed_kernels
    if payload.provenance and hasattr(config.trace, "provenance_tracking_level"):
        options["trace.provenance_tracking_level"] = 1
    began = time.monotonic()
    with count_steps(payload.bisect) as steps:
        made = Path(aoti_compile_and_package(program, package_path=payload.target, inductor_configs=options))
    if made != Path(payload.target):
        made.replace(payload.target)
    return {"seconds": time.monotonic() - began, "torch": torch.__version__, "switchable": steps}


def save_program(program: Any, path: Path) -> None:
    """Save an exported program, without torch's warnings about parts that it leaves out."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, path)


def torch_version() -> str:
    """Version of torch, with its build."""
    return str(torch.__version__)


def compiler_version() -> str | None:
    """First line of the version of the C++ compiler that AOTInductor would use; None where there is none."""
    try:
        from torch._inductor.codecache import get_cpp_compiler  # type: ignore[attr-defined,unused-ignore]
        from torch._inductor.cpp_builder import get_compiler_version_info

        return str(get_compiler_version_info(get_cpp_compiler())).strip().splitlines()[0][:200]
    except Exception:
        return None


def compiler_decompositions() -> dict[Any, Any]:
    """Inductor's decompositions, and those of composite operators, which a compile takes apart before."""
    from torch._inductor.decomposition import select_decomp_table

    composite: dict[Any, Any] = {}
    # Before 2.6 a program is decomposed into parts of composite operators anyway.
    with suppress(ImportError):
        from torch._export.utils import _collect_all_valid_cia_ops, _get_decomp_for_cia

        composite = {operator: _get_decomp_for_cia(operator) for operator in _collect_all_valid_cia_ops()}
    return {**composite, **select_decomp_table()}


# Dtypes that the compiler changes.
def lowered_dtypes(payload: Recompile, channel: Channel) -> dict[str, Any]:
    """``wrong`` of the result: stage, operator, dtype and expected dtype, the user's line; None where all are right."""
    load_setup(payload, channel)
    channel.enter("load_reference")
    program = torch.export.load(str(channel.user_cwd / payload.reference))
    channel.enter("compile")
    table = compiler_decompositions()
    decomposed = program.run_decompositions(table)
    return {"wrong": _wrong_decomposition(program, table) or _wrong_lowering(decomposed)}


def _wrong_decomposition(program: Any, table: Any) -> dict[str, Any] | None:
    """The first operator whose decomposition, on its own arguments, gives another dtype than the operator."""
    for node in program.graph.nodes:
        val = node.meta.get("val")
        if node.op != "call_function" or node.target not in table or not isinstance(val, torch.Tensor):
            continue
        result = None
        # Of an operator whose decomposition refuses them nothing is known.
        with suppress(Exception), val.fake_mode:
            args, kwargs = tree_map_only(torch.fx.Node, lambda one: one.meta["val"], (node.args, node.kwargs))
            result = table[node.target](*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype != val.dtype:
            return _describe("decomposition", node, result.dtype, val.dtype)
    return None


def _wrong_lowering(program: Any) -> dict[str, Any] | None:
    wrong: list[dict[str, Any]] = []

    def compare(node: Any, made: Any) -> None:
        val = node.meta.get("val")
        if not wrong and node.op == "call_function" and isinstance(val, torch.Tensor) and hasattr(made, "get_dtype"):
            dtype = made.get_dtype()
            if dtype != val.dtype:
                wrong.append(_describe("lowering", node, dtype, val.dtype))

    _lower(program, compare)
    return wrong[0] if wrong else None


def _lower(program: Any, look: Callable[[Any, Any], None], *, write: bool = False) -> None:
    """Lower a decomposed program; ``look`` gets each node and what it becomes. With ``write`` its code is written."""
    from torch._guards import detect_fake_mode
    from torch._inductor.debug import DebugContext
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    class Lowering(GraphLowering):  # type: ignore[misc,unused-ignore]
        def run_node(self, n: Any) -> Any:
            made = super().run_node(n)
            look(n, made)
            return made

    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    fake_mode = detect_fake_mode(inputs)
    lowering = Lowering(
        program.graph_module, example_inputs=inputs, shape_env=fake_mode.shape_env if fake_mode is not None else None
    )
    with V.set_graph_handler(lowering), V.set_fake_mode(fake_mode), V.set_debug_handler(DebugContext()):
        lowering.run(*inputs)
        if write:
            lowering.codegen()


class _Written(BaseException):
    """The compiler wrote its code, and would call the C++ compiler now."""


def compile_refusal(program: Any, decomposed: Any) -> Exception | None:
    """What the compiler raises for the program before it calls a C++ compiler; None where it writes its code.

    To lower the decomposed program and write its code costs a second. Most passes of the graph are left out, so that a
    refusal is only a sign: then PyTorch's own way is taken, and what it raises counts.
    """
    from torch._inductor import aoti_compile_and_package, codecache
    from torch._inductor.fx_passes.joint_graph import constant_fold_uniform_value

    try:
        constant_fold_uniform_value(decomposed.graph_module)
        _lower(decomposed, lambda _node, _made: None, write=True)
    except Exception:
        compiler = getattr(codecache, "AotCodeCompiler", None)
        if compiler is None:
            return None
    else:
        return None

    def stop(*_args: Any, **_kwargs: Any) -> None:
        raise _Written

    with attribute_replaced(compiler, "compile", stop), suppress(_Written):
        try:
            aoti_compile_and_package(program, inductor_configs={"fx_graph_cache": False})
        except Exception as error:
            return error
    return None


def _describe(stage: str, node: Any, dtype: Any, expected: Any) -> dict[str, Any]:
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    return {
        "stage": stage,
        "operator": str(node.target),
        "node": node.name,
        "dtype": short_name(dtype),
        "expected": short_name(expected),
        "where": lines[-1][:200] if lines else None,
    }
