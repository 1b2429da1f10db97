"""Run an exported program in float64, to decide which of two results is closer; with noise of rounding or without.

The graph of the program is run node by node with every floating tensor (inputs, parameters, buffers, constants) in
float64 and complex ones in complex128; dtypes that the graph asks for (``dtype=``, casts, factories) are widened
as well. Integers, booleans and float8 stay as they are: rounding to those is intended by the program, not a loss of
its dtype.

Operators that cannot run in float64 run in their own dtype; their results are widened again, and their names are in
``kept``: operators without a float64 kernel, bit casts, and operators that are not PyTorch's own, which may misread
the bytes. A program with random numbers has no float64 run (``NoDoubleRunError``).

Parameters are widened where an operator takes them and dropped behind it, so that only one is there twice.

With ``noise`` every result is moved by up to half an eps of the dtype that the program has at that node, relative to
the element: the worst of one rounding. Operators that only move, choose or negate elements round nothing. Operators
that are not pointwise combine elements, in an order that the compiler chooses: their inputs and results are also moved
by the random error of n additions in float32 (``sqrt(n) / 4`` eps, the order of magnitude of vectorised loops). The
spread over some such runs is the precision of this dtype for this program and these inputs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.worker.call import ModelCall, write_back
from aotidoctor.worker.tensors import storage_address

# Random movements of the size of rounding errors.
_EXACT_NAMES = """
    abs amax amin arange cat ceil clamp clamp_max clamp_min clone concat constant_pad_nd contiguous copy_ cummax cummin
    detach_ embedding empty empty_like empty_strided eye fill_ flip floor full full_like gather index index_select
    lift_fresh_copy masked_fill masked_fill_ max max_pool1d max_pool2d max_pool2d_with_indices maximum min minimum neg
    new_empty new_full new_ones new_zeros one_hot ones ones_like pad relu relu_ repeat repeat_interleave roll round
    scatter select_scatter sign slice_scatter sort stack tile topk tril triu trunc where zero_ zeros zeros_like
"""
_EXACT = frozenset(_EXACT_NAMES.split())
_CAST_FUNCTIONS = frozenset(("to", "_to_copy", "type_as", "convert_element_type"))
_FLOAT32_EPS = torch.finfo(torch.float32).eps


class RoundingNoise:
    """Noise of one run; ``seed`` makes it repeatable."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generators: dict[Any, Any] = {}

    def on_inputs(self, n: Any, args: Any) -> Any:
        """Arguments of an operator that combines elements, moved by the error that its order may cause."""
        if not _combines(n):
            return args
        size = _FLOAT32_EPS * max(1.0, math.sqrt(_additions(n)) / 4)
        return pytree.tree_map(lambda one: self._moved(one, size) if _is_wide(one) else one, args)

    def on_result(self, n: Any, result: Any) -> Any:
        """The result of a node, moved by its rounding."""
        if _name(n) in _EXACT or not isinstance(n.target, torch._ops.OpOverload):
            return result
        writes = any(one.alias_info is not None and one.alias_info.is_write for one in n.target._schema.returns)
        alias = any(one.alias_info is not None for one in n.target._schema.returns)
        if alias and not writes and not _narrows(n):
            return result
        leaves, spec = pytree.tree_flatten(result)
        own = pytree.tree_leaves(n.meta.get("val"))
        if len(own) != len(leaves):
            return result
        moved = [self._rounded(n, leaf, meta, in_place=writes) for leaf, meta in zip(leaves, own, strict=True)]
        return pytree.tree_unflatten(moved, spec)

    def _rounded(self, n: Any, leaf: Any, meta: Any, *, in_place: bool) -> Any:
        if (
            not _is_wide(leaf)
            or not isinstance(meta, torch.Tensor)
            or not meta.dtype.is_floating_point | meta.is_complex()
        ):
            return leaf
        size = float(torch.finfo(meta.dtype).eps) / 2
        if _combines(n):
            size = max(size, _FLOAT32_EPS * math.sqrt(_additions(n)) / 4) if size >= _FLOAT32_EPS / 2 else size
        return leaf.mul_(self._factor(leaf, size)) if in_place else self._moved(leaf, size)

    def on_argument(self, tensor: Any, dtype: Any) -> Any:
        """An argument of an operator that is run in its own dtype, before the cast to it."""
        return self._moved(tensor, float(torch.finfo(dtype).eps) / 2)

    def _moved(self, tensor: Any, size: float) -> Any:
        factor = self._factor(tensor, size)
        return factor.mul_(tensor) if tensor.dtype == factor.dtype else tensor * factor

    def _factor(self, tensor: Any, size: float) -> Any:
        generator = self._generators.get(tensor.device)
        if generator is None:
            generator = torch.Generator(device=tensor.device)
            generator.manual_seed(self._seed)
            self._generators[tensor.device] = generator
        spread = torch.rand(tensor.shape, dtype=torch.float64, device=tensor.device, generator=generator)
        # In place: of a large weight there is one more copy, not five.
        return spread.mul_(2.0).sub_(1.0).mul_(size).add_(1.0)


def _name(n: Any) -> str:
    """``linear`` of ``aten.linear.default``."""
    parts = str(n.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _combines(n: Any) -> bool:
    """Whether one element of the result may come of several."""
    if _name(n) in _EXACT or _name(n) in _CAST_FUNCTIONS or not isinstance(n.target, torch._ops.OpOverload):
        return False
    views = any(one.alias_info is not None for one in n.target._schema.returns)
    return not views and torch.Tag.pointwise not in n.target.tags


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float64, torch.complex128)


def _additions(n: Any) -> float:
    """How many products or elements go into one element of the result, from the shapes that the program has."""
    metas = [one.meta.get("val") for one in n.all_input_nodes]
    sizes = sorted((meta.numel() for meta in metas if isinstance(meta, torch.Tensor) and meta.numel()), reverse=True)
    results = [one for one in pytree.tree_leaves(n.meta.get("val")) if isinstance(one, torch.Tensor) and one.numel()]
    try:
        numbers = [int(size) for size in sizes[:2]]
        result = int(results[0].numel()) if results else 0
    except Exception:  # Sizes of the run may have no value in the graph.
        return 1.0
    if not numbers or not result:
        return 1.0
    ratio = numbers[0] / result
    product = numbers[0] * numbers[-1] / result if len(numbers) > 1 else 0.0
    return max(1.0, ratio, math.sqrt(product))


def _narrows(n: Any) -> bool:
    """Whether a node is a cast to a coarser dtype."""
    if _name(n) not in _CAST_FUNCTIONS or not n.all_input_nodes:
        return False
    before, after = n.all_input_nodes[0].meta.get("val"), n.meta.get("val")
    tensors = isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)
    if not tensors or not (before.dtype.is_floating_point and after.dtype.is_floating_point):
        return False
    return bool(torch.finfo(after.dtype).eps > torch.finfo(before.dtype).eps)


# The run.
_WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_OWN_NAMESPACES = ("aten", "prims", "prim")
_BIT_CASTS = ("aten.view.dtype", "prims.view_of_dtype.default")
_CAST_TARGETS = ("aten.to", "aten._to_copy", "prims.convert_element_type", "aten.type_as")
_ASSERTS = ("aten._assert_tensor_metadata",)
# They choose elements of a table, of which they may need but a few.
_CHOOSERS = ("aten.embedding.default", "aten.index_select.default", "aten.gather.default", "aten.index.Tensor")


class NoDoubleRunError(Exception):
    """Raised when there is no float64 run; the text gives the reason."""


def run_program(program: Any, call: ModelCall, noise: RoundingNoise | None = None) -> tuple[Any, list[str]]:
    """Outputs of an exported program in float64, and the operators that were run in their own dtype."""
    module = program.module()
    flat = [widen(leaf, copy=True) for leaf in program_leaves(program.call_spec.in_spec, call)]
    interpreter = Float64Interpreter(module, noise)
    default = torch.get_default_dtype()
    # Factories without a dtype make float64.
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            results = interpreter.run(*flat, enable_io_processing=False)
    finally:
        torch.set_default_dtype(default)
    return module.graph.process_outputs(results), list(dict.fromkeys(interpreter.own_dtype))


def program_leaves(in_spec: Any, call: ModelCall) -> list[Any]:
    """Leaves of the call in the order of the program, which takes those of a dict by its keys."""
    from torch.export._tree_utils import reorder_kwargs

    kwargs = reorder_kwargs(call.kwargs, in_spec)
    try:
        return list(in_spec.flatten_up_to((tuple(call.args), kwargs)))
    except (TypeError, ValueError):
        # A list in place of a tuple flattens in the same way.
        return list(pytree.tree_leaves((call.args, kwargs), is_leaf=lambda value: value is None))


def widen(value: Any, *, copy: bool = False) -> Any:
    """``value`` in float64 or complex128 if it is a narrower floating tensor, else itself (a copy with ``copy``)."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = _WIDER.get(value.dtype)
    if wide is not None:
        return value.detach().to(wide)
    return value.detach().clone() if copy else value


def snapshot_buffers(module: Any) -> list[tuple[Any, Any]]:
    """Buffers with copies of their values: a run may write to them (running statistics, caches)."""
    return [(buffer, buffer.detach().clone()) for buffer in module.buffers()]


def restore_buffers(before: list[tuple[Any, Any]]) -> None:
    """Write the values of the snapshot back into the buffers."""
    with torch.no_grad():
        for buffer, old in before:
            write_back(buffer, old)


class Float64Interpreter(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not seen by the type checker
    """Interprets a graph in float64. ``own_dtype`` are the operators that were run in their own dtype."""

    def __init__(self, module: Any, noise: RoundingNoise | None = None) -> None:
        super().__init__(module)
        self.noise = noise
        self.own_dtype: list[str] = []

    def run_node(self, n: Any) -> Any:
        """Value of one node, widened."""
        match n.op:
            case "placeholder":
                return widen(super().run_node(n))
            case "get_attr":
                value = super().run_node(n)
                # A copy: in-place operators of the graph must not change the program.
                return value if _is_narrow(value) else widen(value, copy=True)
            case "call_module":
                # Guards; they were passed by the run in the program's own dtypes.
                return None if n.target == "_guards_fn" else super().run_node(n)
            case "call_function":
                return self._call(n)
            case _:
                return super().run_node(n)

    def _call(self, n: Any) -> Any:
        if not isinstance(n.target, torch._ops.OpOverload) or n.target._schema.is_mutable:
            # These parameters are wide from here on: the operator may write to them, or return them.
            self.env.update((node, widen(self.env[node])) for node in n.all_input_nodes if _is_narrow(self.env[node]))
        if isinstance(n.target, torch._ops.HigherOrderOperator):
            return self._run_higher_order(n, self.fetch_args_kwargs_from_env(n)[0])
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if not isinstance(n.target, torch._ops.OpOverload):
            return n.target(*args, **kwargs)
        name = str(n.target)
        if name.startswith(_ASSERTS):
            return None
        if is_random(n.target, args, kwargs):
            raise NoDoubleRunError(f"the program has random numbers ({name})")
        if n.target.namespace not in _OWN_NAMESPACES or name in _BIT_CASTS:
            return self._in_own_dtype(n)
        if name in _CHOOSERS:
            return widen(n.target(*args, **kwargs))
        made = {node: widen(self.env[node]) for node in n.all_input_nodes if _is_narrow(self.env[node])}
        result = self._run_wide(
            n, *torch.fx.node.map_arg((n.args, n.kwargs), lambda node: made.get(node, self.env[node]))
        )
        addresses = {storage_address(one) for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor)} - {0}
        # The result may be a view, which later operators may write to.
        self.env.update((node, wide) for node, wide in made.items() if storage_address(wide) in addresses)
        return result

    def _run_wide(self, n: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(
            lambda one: _WIDER.get(one, one) if isinstance(one, torch.dtype) else one, (args, kwargs)
        )
        if self.noise is not None:
            args = self.noise.on_inputs(n, args)
        try:
            result = pytree.tree_map(widen, n.target(*args, **kwargs))
        except (RuntimeError, TypeError, NotImplementedError):
            return self._in_own_dtype(n)
        if str(n.target).startswith(_CAST_TARGETS) and result is args[0]:
            # A cast to a narrower dtype makes a copy, which the program may write to.
            result = result.clone()
        return result if self.noise is None else self.noise.on_result(n, result)

    def _in_own_dtype(self, n: Any) -> Any:
        """Run the node in the program's own dtype, and widen its result."""
        self.own_dtype.append(str(n.target))
        pairs: list[tuple[Any, Any]] = []
        mutable = n.target._schema.is_mutable

        def own(node: Any) -> Any:
            value, meta = widen(self.env[node]), node.meta.get("val")
            if not isinstance(value, torch.Tensor) or value.dtype not in (torch.float64, torch.complex128):
                return value
            dtype = meta.dtype if isinstance(meta, torch.Tensor) else torch.float32
            moved = value if self.noise is None or mutable else self.noise.on_argument(value, dtype)
            narrow = moved.to(dtype)
            pairs.append((value, narrow))
            return narrow

        args, kwargs = torch.fx.node.map_arg((n.args, n.kwargs), own)
        result = n.target(*args, **kwargs)
        if mutable:
            for wide, narrow in pairs:
                wide.copy_(narrow)
        result = pytree.tree_map(widen, result)
        return result if self.noise is None else self.noise.on_result(n, result)

    def _run_higher_order(self, n: Any, args: Any) -> Any:
        """Interpret a branch or a region like the graph around it."""
        name = n.target.name()
        if name == "cond":
            predicate, yes, no, operands = args
            return self._nested(yes if bool(predicate) else no, operands)
        at = next((index for index, one in enumerate(args) if isinstance(one, torch.fx.GraphModule)), None)
        if name.startswith("wrap_with_") and at is not None:
            return self._nested(args[at], args[at + 1 :])
        raise NoDoubleRunError(f"{name} is not interpreted")

    def _nested(self, module: Any, operands: Any) -> Any:
        inner = Float64Interpreter(module, self.noise)
        inner.own_dtype = self.own_dtype
        return inner.run(*operands)


def is_random(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the operator draws random numbers with these arguments: dropout that is switched off does not."""
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    given = {argument.name: argument.default_value for argument in target._schema.arguments}
    given |= dict(zip(names, args, strict=False)) | kwargs
    if given.get("train", given.get("training", True)) is False or given.get("dropout_p", 1.0) == 0.0:
        return False
    return not ("dropout" in str(target) and given.get("p") == 0.0)


def _is_narrow(value: Any) -> bool:
    """Whether it is a tensor in the program's own dtype; all that was computed here is wide."""
    return isinstance(value, torch.Tensor) and value.dtype in _WIDER
