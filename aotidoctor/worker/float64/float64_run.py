"""Run an exported program in float64, to see which of two results is the closer one.

The graph of the program is run node by node with every floating tensor (inputs, parameters, buffers, constants) in
float64 and complex ones in complex128; dtypes that the graph asks for (``dtype=``, casts, factories) are widened alike.
Integers, booleans and float8 stay as they are: rounding to those is what the program means, not what a dtype costs.

What cannot be done in float64 is done in its own dtype, its result widened again, and named in ``kept``: operators
without a float64 kernel, bit casts, and operators that are not PyTorch's own, which may take the bytes for something
else than they are. A program with random numbers has no float64 run (``NoDoubleRunError``).

Parameters are widened where an operator takes them and dropped behind it, so that only one is there twice.

With ``noise`` every result is moved by up to half an eps of the dtype that the program has there (sums also by what
their order may cost). The spread over some such runs is what this dtype can do for this program and these inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.worker.call import Call, write_back
from aotidoctor.worker.describe import storage
from aotidoctor.worker.float64.rounding_noise import Noise

_WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_OWN_NAMESPACES = ("aten", "prims", "prim")
_BIT_CASTS = ("aten.view.dtype", "prims.view_of_dtype.default")
_CASTS = ("aten.to", "aten._to_copy", "prims.convert_element_type", "aten.type_as")
_ASSERTS = ("aten._assert_tensor_metadata",)
# They choose elements of a table, of which they may need but a few.
_CHOOSERS = ("aten.embedding.default", "aten.index_select.default", "aten.gather.default", "aten.index.Tensor")


class NoDoubleRunError(Exception):
    """There is no float64 run; the text says why."""


def run_program(program: Any, call: Call, noise: Noise | None = None) -> tuple[Any, list[str]]:
    """Outputs of an exported program in float64, and the operators that were run in their own dtype."""
    module = program.module()
    flat = [widened(leaf, copy=True) for leaf in leaves_of(program.call_spec.in_spec, call)]
    interpreter = Double(module, noise)
    with torch.no_grad(), _default_float64():
        results = interpreter.run(*flat, enable_io_processing=False)
    return module.graph.process_outputs(results), list(dict.fromkeys(interpreter.kept))


def leaves_of(in_spec: Any, call: Call) -> list[Any]:
    """The leaves in the order of the program: of a dict by its keys, as the program itself takes them."""
    from torch.export._tree_utils import reorder_kwargs

    kwargs = reorder_kwargs(call.kwargs, in_spec)
    try:
        return list(in_spec.flatten_up_to((tuple(call.args), kwargs)))
    except (TypeError, ValueError):
        # A list for a tuple flattens alike.
        return list(pytree.tree_leaves((call.args, kwargs), is_leaf=_is_none))


def widened(value: Any, *, copy: bool = False) -> Any:
    """``value`` in float64 or complex128 where it is a narrower floating tensor; a copy of any other with ``copy``."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = _WIDER.get(value.dtype)
    if wide is not None:
        return value.detach().to(wide)
    return value.detach().clone() if copy else value


def snapshot(module: Any) -> list[tuple[Any, Any]]:
    """Each buffer with a copy of its values: a run may write to it (running statistics, caches)."""
    return [(buffer, buffer.detach().clone()) for buffer in module.buffers()]


def restore(before: list[tuple[Any, Any]]) -> None:
    """Buffers as they were at the snapshot."""
    with torch.no_grad():
        for buffer, old in before:
            write_back(buffer, old)


class Double(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not seen by the type checker
    """Interprets a graph in float64. ``kept`` are the operators that were run in their own dtype."""

    def __init__(self, module: Any, noise: Noise | None = None) -> None:
        super().__init__(module)
        self.noise = noise
        self.kept: list[str] = []

    def run_node(self, n: Any) -> Any:
        """Value of one node, widened."""
        match n.op:
            case "placeholder":
                return widened(super().run_node(n))
            case "get_attr":
                value = super().run_node(n)
                # A copy: in-place operators of the graph must not change the program.
                return value if _is_narrow(value) else widened(value, copy=True)
            case "call_module":
                # Guards; they were passed by the run in the program's own dtypes.
                return None if n.target == "_guards_fn" else super().run_node(n)
            case "call_function":
                return self._call(n)
            case _:
                return super().run_node(n)

    def _call(self, n: Any) -> Any:
        if not isinstance(n.target, torch._ops.OpOverload) or n.target._schema.is_mutable:
            self._widen(n.all_input_nodes)
        if isinstance(n.target, torch._ops.HigherOrderOperator):
            return self._higher_order(n, self.fetch_args_kwargs_from_env(n)[0])
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
            return widened(n.target(*args, **kwargs))
        made = {node: widened(self.env[node]) for node in n.all_input_nodes if _is_narrow(self.env[node])}
        result = self._widely(n, *self._fetched(n, made))
        for node, wide in made.items():
            if _shares(wide, result):
                # A view of it, which later operators may write to.
                self.env[node] = wide
        return result

    def _widen(self, nodes: list[Any]) -> None:
        """Parameters that are wide from here on: what takes them may write to them, or hand them on."""
        self.env.update((node, widened(self.env[node])) for node in nodes if _is_narrow(self.env[node]))

    def _fetched(self, n: Any, made: dict[Any, Any]) -> Any:
        """The arguments of a node, with what was ``made`` for it."""
        return torch.fx.node.map_arg((n.args, n.kwargs), lambda node: made.get(node, self.env[node]))

    def _widely(self, n: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(lambda one: _WIDER.get(one, one) if _is_dtype(one) else one, (args, kwargs))
        if self.noise is not None:
            args = self.noise.on_inputs(n, args)
        try:
            result = pytree.tree_map(widened, n.target(*args, **kwargs))
        except (RuntimeError, TypeError, NotImplementedError):
            return self._in_own_dtype(n)
        if str(n.target).startswith(_CASTS) and result is args[0]:
            # A cast to a narrower dtype makes a copy, which the program may write to.
            result = result.clone()
        return result if self.noise is None else self.noise.on_result(n, result)

    def _in_own_dtype(self, n: Any) -> Any:
        """The same node as the program has it, its result widened."""
        self.kept.append(str(n.target))
        pairs: list[tuple[Any, Any]] = []
        mutable = n.target._schema.is_mutable

        def own(node: Any) -> Any:
            value, meta = widened(self.env[node]), node.meta.get("val")
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
        result = pytree.tree_map(widened, result)
        return result if self.noise is None else self.noise.on_result(n, result)

    def _higher_order(self, n: Any, args: Any) -> Any:
        """A branch or a region is interpreted like the graph around it."""
        name = n.target.name()
        if name == "cond":
            predicate, yes, no, operands = args
            return self._nested(yes if bool(predicate) else no, operands)
        at = next((index for index, one in enumerate(args) if isinstance(one, torch.fx.GraphModule)), None)
        if name.startswith("wrap_with_") and at is not None:
            return self._nested(args[at], args[at + 1 :])
        raise NoDoubleRunError(f"{name} is not interpreted")

    def _nested(self, module: Any, operands: Any) -> Any:
        inner = Double(module, self.noise)
        inner.kept = self.kept
        return inner.run(*operands)


def is_random(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the operator draws random numbers with these arguments: dropout that is off does not."""
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    given = {argument.name: argument.default_value for argument in target._schema.arguments}
    given |= dict(zip(names, args, strict=False)) | kwargs
    if given.get("train", given.get("training", True)) is False or given.get("dropout_p", 1.0) == 0.0:
        return False
    return not ("dropout" in str(target) and given.get("p") == 0.0)


def _is_narrow(value: Any) -> bool:
    """Whether it is a tensor as the program has it; all that was computed here is wide."""
    return isinstance(value, torch.Tensor) and value.dtype in _WIDER


def _shares(wide: Any, result: Any) -> bool:
    """Whether a tensor of ``result`` lies in the memory of ``wide``."""
    mine = storage(wide)
    return mine != 0 and any(
        isinstance(one, torch.Tensor) and storage(one) == mine for one in pytree.tree_leaves(result)
    )


def _is_dtype(value: Any) -> bool:
    return isinstance(value, torch.dtype)


def _is_none(value: Any) -> bool:
    return value is None


@contextmanager
def _default_float64() -> Iterator[None]:
    """Factories without a dtype make float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
