"""Export the model of the user's function again with a remedy; job ``try_remedy``.

The noted call of torch.export is all that an attempt needs: export again with something changed, compile, call, and
compare with what the model itself computes; where dims are dynamic, or inputs were one tensor, on a second call as
well. Of an archive the program takes the place of the model, which allows less: another export cannot change what the
first fixed.

A remedy is a list of steps, each ``{"op": ...}`` of ``_STEPS``. The result has ``agrees``, ``differs`` (the outputs
that do), ``compiled`` and ``second``: the second call in words (``what``), with ``agrees``, ``differs`` or ``error``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only, tree_unflatten

from aotidoctor.model.case import user_function
from aotidoctor.model.jobs import TryRemedy
from aotidoctor.worker.call import ModelCall, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.compile_program import use_compiler_cache
from aotidoctor.worker.stages import copy_of
from aotidoctor.worker.user_code import attribute_replaced, load_setup
from aotidoctor.worker.verify.cut_program import load_program
from aotidoctor.worker.verify.export_again import (
    ExportCall,
    call_model,
    call_once,
    compare_calls,
    distinct_inputs,
    run_function,
)
from aotidoctor.worker.verify.graph_rules import has_fake

# Dims longer than this are no example to copy.
_LONGEST_DIMS = 400


def try_remedy(payload: TryRemedy, channel: Channel) -> dict[str, Any]:
    """Export, compile, call and compare with the steps of ``payload`` carried out; what raises ends the job."""
    load_setup(payload, channel)
    channel.enter("reference")
    export = _open_export(payload, channel)
    # A step that does not apply raises.
    channel.enter("remedy")
    for step in payload.steps:
        export = _STEPS[str(step["op"])](export, step)
    channel.enter("eager")
    theirs = call_model(export.model, export.call)
    channel.enter("export")
    program = _export(export)
    channel.put(dims=_dims_source(export.dynamic_shapes))
    second = _second_call(export)
    if second is not None and (early := _second_result(program.module(), *second)).get("agrees") is not True:
        # Cheaper than to compile: the package will be no better.
        return {"agrees": True, "compiled": False, "second": early}
    channel.enter("compile")
    compiled = _compile(program, payload, export.settings) if payload.compiles else program.module()
    channel.enter("run1")
    result = compare_calls(call_once(compiled, export.call), theirs) | {"compiled": payload.compiles}
    channel.put(**result)
    if second is None or not result["agrees"]:
        return result
    channel.enter("run2")
    return {**result, "second": _second_result(compiled, *second)}


def _second_result(function: Callable[..., Any], what: str, call: ModelCall, theirs: Any) -> dict[str, Any]:
    try:
        return {"what": what, **compare_calls(call_once(function, call), theirs)}
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"what": what, "error": f"{type(error).__name__}: {lines[0]}"[:300]}


def _open_export(payload: TryRemedy, channel: Channel) -> ExportCall:
    given = read_call(payload.inputs, channel) if payload.inputs is not None else None
    if user_function(payload.program) is not None:
        run = run_function(payload.program, channel, given)
        if run.exported is not None:
            return run.exported if given is None else replace(run.exported, call=given)
        if run.error is not None:
            raise run.error
        program = run.returned
    else:
        program = load_program(channel.user_cwd / payload.program)
    examples = program.example_inputs
    if given is None and examples is None:
        raise ValueError("the program holds no example inputs")
    call = given or ModelCall(args=tuple(examples[0]), kwargs=dict(examples[1]))
    return ExportCall(model=program.module(), call=call, dynamic_shapes=_dims_of(program))


def _dims_of(program: Any) -> Any:
    """The dims of the program's inputs as ``dynamic_shapes``: what has a symbol is left to torch.export."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    leaves = [values.get(name) for name in program.graph_signature.user_inputs]
    args, kwargs = tree_unflatten(leaves, program.call_spec.in_spec)

    def marks(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return None
        auto, static = torch.export.Dim.AUTO, torch.export.Dim.STATIC
        return {dim: static if isinstance(size, int) else auto for dim, size in enumerate(value.shape)}

    if not any(isinstance(size, torch.SymInt) for leaf in leaves for size in getattr(leaf, "shape", ())):
        return None
    # By position, keywords after the rest.
    return tree_map(marks, (*args, *kwargs.values()))


def _export(export: ExportCall) -> Any:
    own = export.call.copy() or export.call
    with ExitStack() as stack:
        for context in export.around:
            stack.enter_context(context())
        return torch.export.export(
            export.model, own.args, own.kwargs or None, dynamic_shapes=export.dynamic_shapes, strict=export.strict
        )


def _compile(program: Any, payload: TryRemedy, settings: dict[str, Any]) -> Callable[..., Any]:
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    if payload.cache:
        use_compiler_cache(payload.cache)
    target = str(Path.cwd() / "remedy.pt2")
    # Inductor's cache of graphs does not see what a setup file changed in the compiler: off.
    made = aoti_compile_and_package(
        program, package_path=target, inductor_configs={"fx_graph_cache": False, **settings}
    )
    loaded: Callable[..., Any] = aoti_load_package(made)
    return loaded


# Another call, on which an export that fixed too much shows.
def _second_call(export: ExportCall) -> tuple[str, ModelCall, Any] | None:
    """A second call in words, its inputs, and what the model computes of them; None where none is meaningful."""
    places = list(_dynamic_places(export))
    groups: dict[str, list[tuple[str, int]]] = {}
    for path, dim, mark, size in places:
        groups.setdefault(_group(mark, size), []).append((path, dim))
    if not groups and (distinct := distinct_inputs(export.call)) is not None:
        with suppress(Exception):
            return "with other values in each input", distinct, call_model(export.model, distinct)
        return None
    for group, members in groups.items():
        mark, size = next((mark, size) for _, _, mark, size in places if _group(mark, size) == group)
        low, high = getattr(mark, "min", 0) or 0, getattr(mark, "max", None) or math.inf
        for other in (size + 1, size * 2, size - 1):
            if other < max(low, 1) or other > high:
                continue
            call = export.call.rebuilt(partial(_resize, members=members, size=other))
            with suppress(Exception):
                path, dim = members[0]
                return f"with {other} in dim {dim} of {path}", call, call_model(export.model, call)
    return None


def _group(mark: Any, size: int) -> str:
    name = getattr(mark, "__name__", None)
    return name if isinstance(name, str) and not name.startswith("_") else f"of {size}"


def _dynamic_places(export: ExportCall) -> Iterator[tuple[str, int, Any, int]]:
    """Path, dim, mark and size of each dim that the call of torch.export makes dynamic."""
    shapes = export.dynamic_shapes
    if not shapes:
        return
    if isinstance(shapes, dict):
        with suppress(TypeError, ValueError):
            function = getattr(export.model, "forward", export.model)
            names = list(inspect.signature(function).parameters)
            for at, name in enumerate(names[: len(export.call.args)]):
                yield from _dynamic_marks(export.call.args[at], shapes.get(name), f"args[{at}]")
        for name, value in export.call.kwargs.items():
            yield from _dynamic_marks(value, shapes.get(name), f"kwargs[{name!r}]")
    else:
        for at, (value, mark) in enumerate(zip(export.call.args, shapes, strict=False)):
            yield from _dynamic_marks(value, mark, f"args[{at}]")


def _dynamic_marks(value: Any, mark: Any, path: str) -> Iterator[tuple[str, int, Any, int]]:
    if isinstance(value, torch.Tensor):
        entries = mark.items() if isinstance(mark, dict) else enumerate(mark) if isinstance(mark, list | tuple) else ()
        for dim, one in entries:
            if _is_dynamic(one) and dim < value.dim():
                yield path, dim, one, int(value.shape[dim])
    elif isinstance(value, dict) and isinstance(mark, dict):
        for key, one in value.items():
            yield from _dynamic_marks(one, mark.get(key), f"{path}[{key!r}]")
    elif isinstance(value, list | tuple) and isinstance(mark, list | tuple):
        for at, (one, its) in enumerate(zip(value, mark, strict=False)):
            yield from _dynamic_marks(one, its, f"{path}[{at}]")


def _is_dynamic(mark: Any) -> bool:
    return mark is not None and not isinstance(mark, int | dict | list | tuple) and mark != torch.export.Dim.STATIC


def _resize(path: str, leaf: Any, *, members: list[tuple[str, int]], size: int) -> Any:
    for name, dim in members:
        if name == path and isinstance(leaf, torch.Tensor):
            leaf = leaf.index_select(dim, torch.arange(size, device=leaf.device) % leaf.shape[dim])
    return leaf


# The steps of remedies.
def _set_strict(export: ExportCall, step: Any) -> ExportCall:
    if export.strict is bool(step["value"]):
        raise ValueError("it was exported so")
    return replace(export, strict=bool(step["value"]))


def _change_dims(export: ExportCall, step: Any) -> ExportCall:
    """Leave dims to torch.export (``auto``), insist (``dynamic``), fix them, or take those that its error suggests."""
    how = step["to"]
    if how == "suggested":
        from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes as refine

        _, found, after = str(export.error or "").partition("Suggested fixes:\n")
        lines = [line for line in after.splitlines() if line.startswith(" ") and " = " in line]
        if not found or not lines:
            raise ValueError("the error suggests none")
        return replace(export, dynamic_shapes=refine("\n".join(["Suggested fixes:", *lines]), export.dynamic_shapes))
    mark = {"auto": torch.export.Dim.AUTO, "dynamic": torch.export.Dim.DYNAMIC, "static": None}[how]
    shapes = tree_map(lambda one: mark if _is_dynamic(one) else one, export.dynamic_shapes)
    return replace(export, dynamic_shapes=shapes)


def _dims_source(shapes: Any) -> str:
    """``dynamic_shapes`` as Python, at most ``_LONGEST_DIMS`` characters; empty where it holds a named Dim."""
    hints = {str(getattr(torch.export.Dim, name)): f"torch.export.Dim.{name}" for name in ("AUTO", "DYNAMIC", "STATIC")}

    def write(one: Any) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{key!r}: {write(value)}" for key, value in one.items()) + "}"
        if isinstance(one, list | tuple):
            inner = ", ".join(map(write, one))
            return f"[{inner}]" if isinstance(one, list) else f"({inner},)" if len(one) == 1 else f"({inner})"
        return repr(one) if one is None or isinstance(one, int) else hints[str(one)]

    try:
        text = write(shapes)
    except KeyError:
        return ""
    return text if len(text) <= _LONGEST_DIMS else ""


def _larger_example(export: ExportCall, _step: Any) -> ExportCall:
    """Repeat what is of size 1 in a dynamic dim: an example of 2."""
    members = [(path, dim) for path, dim, _, size in _dynamic_places(export) if size == 1]
    if not members:
        raise ValueError("no dynamic dim is of size 1")
    return replace(export, call=export.call.rebuilt(partial(_resize, members=members, size=2)))


def _check_sizes(export: ExportCall, _step: Any) -> ExportCall:
    """``torch._check`` on each number that forward takes from a tensor: not negative, no larger than the inputs."""
    sizes = [size for _, tensor in export.call.tensors() for size in tensor.shape]
    return replace(export, around=(*export.around, partial(_check_items, max(sizes, default=1))))


def _check_items(most: int) -> AbstractContextManager[None]:
    original = torch.Tensor.item

    def item(tensor: Any) -> Any:
        value = original(tensor)
        if isinstance(value, torch.SymInt):
            torch._check(value >= 0)
            torch._check(value <= most)
        return value

    return attribute_replaced(torch.Tensor, "item", item)


def _plain_sizes(export: ExportCall, _step: Any) -> ExportCall:
    """Return tuples in the place of torch.Size."""
    inner = export.model

    class Plain(torch.nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            made = self.inner(*args, **kwargs)
            return tree_map(lambda one: tuple(one) if _is_size(one) else one, made, is_leaf=_is_size)

    shapes = export.dynamic_shapes
    return replace(
        export, model=Plain(), dynamic_shapes=(tuple(shapes.values()),) if isinstance(shapes, dict) else shapes
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.Size)


def _register_buffers(export: ExportCall, _step: Any) -> ExportCall:
    """Make buffers of the tensors that a program holds as constants."""
    module = export.model
    if not isinstance(module, torch.fx.GraphModule):
        # The program of the model: tensors from outside are attributes there.
        module = (export.program or _export(export)).module()
    named = {node.target for node in module.graph.nodes if node.op == "get_attr" and "." not in node.target}
    known = {name for name, _ in (*module.named_buffers(recurse=False), *module.named_parameters(recurse=False))}
    constants = sorted(name for name in named - known if isinstance(getattr(module, name, None), torch.Tensor))
    if not constants:
        raise ValueError("the program holds no constant")
    # A copy of a graph module has them as buffers already.
    module = copy_of(module)
    for name in constants:
        if name not in dict(module.named_buffers(recurse=False)):
            tensor = getattr(module, name)
            delattr(module, name)
            module.register_buffer(name, tensor.detach().clone())
    return replace(export, model=module)


def _register_fakes(export: ExportCall, _step: Any) -> ExportCall:
    """Give custom operators without a fake kernel one that returns the sizes of this example."""
    from torch._library.utils import is_builtin

    results: dict[str, Any] = {}

    class Recorder(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if isinstance(func, torch._ops.OpOverload) and not is_builtin(func) and not has_fake(func):
                results.setdefault(func._schema.name, made)
            return made

    with Recorder():
        call_model(export.model, export.call)
    if not results:
        raise ValueError("each operator has a fake kernel")
    for name, made in results.items():
        empty = partial(
            tree_map_only,
            torch.Tensor,
            lambda one: torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device),
        )
        torch.library.register_fake(name, lambda *_args, _made=made, _empty=empty, **_kwargs: _empty(_made))
    return export


def _cast(export: ExportCall, step: Any) -> ExportCall:
    """Give an operator another dtype, and cast its result to the one that it should have."""
    module = copy_of(export.model)
    if not isinstance(module, torch.fx.GraphModule):
        module = _export(export).module()
    graph, to = module.graph, getattr(torch, str(step["to"]))
    nodes = [node for node in graph.nodes if node.op == "call_function" and str(node.target) == step["operator"]]
    for node in nodes:
        with graph.inserting_before(node):
            first = graph.call_function(torch.ops.aten.ne.Scalar, (node.args[0], 0))
        node.update_arg(0, first)
        with graph.inserting_after(node):
            cast = graph.call_function(torch.ops.aten.to.dtype, (node, to))
        node.replace_all_uses_with(cast, delete_user_cb=lambda user, cast=cast: user is not cast)
    if not nodes:
        raise ValueError(f"the program does not call {step['operator']}")
    graph.lint()
    module.recompile()
    return replace(export, model=module)


_STEPS: dict[str, Callable[[ExportCall, Any], ExportCall]] = {
    "strict": _set_strict,
    "eval": lambda export, _: replace(export, model=copy_of(export.model).eval()),
    # The copy of the noted call has a tensor of its own for each input already.
    "own_inputs": lambda export, _: export,
    "dims": _change_dims,
    "larger_example": _larger_example,
    "settings": lambda export, step: replace(export, settings={**export.settings, str(step["setting"]): step["value"]}),
    "check_sizes": _check_sizes,
    "plain_sizes": _plain_sizes,
    "buffers": _register_buffers,
    "fakes": _register_fakes,
    "cast": _cast,
}
