"""Values of a reference program, node by node, to hold what a package wrote against.

A buffer of the compiled code corresponds to a node of the program, but the package does not say to which: fused kernels
keep few of the nodes, under other names, sometimes flattened or permuted. So a buffer is compared with the nodes of
the same number of elements, the likely ones first; it *agrees* when one of them has its values within tolerance.

The nodes are those of the exported graph, and of the graph after Inductor's decompositions (the compiled code works on
that one: amax and sum of a softmax are nodes there only). Where the decomposed graph gives other outputs than the
exported one, a decomposition is wrong: its nodes are left out, and ``decomposition_differs`` says so.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.call import Call
from aotidoctor.worker.compare import wider
from aotidoctor.worker.describe import dense, nbytes

MAX_BYTES = 4 * 1024 * 1024 * 1024
# A buffer is compared in full with this many nodes whose minimum, maximum and mean are closest to its own.
_TRIES = 6
_PLACES = 2000
# Relative to the largest value: what another order of summation may cost.
_TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@record
class Node:
    """A value of the program: node name, operator, where in the user's source, and the tensor."""

    name: str
    target: str
    where: str | None
    value: Any
    marks: tuple[float, float, float]


class Candidates:
    """All values of a program on one call."""

    def __init__(self) -> None:
        self.by_size: dict[int, list[Node]] = defaultdict(list)
        self.notes: list[str] = []
        self.decomposition_differs = False
        self._bytes = 0

    def add(self, nodes: list[Node]) -> None:
        """Take nodes in; beyond ``MAX_BYTES`` they are left out, and a note says so."""
        for node in nodes:
            self._bytes += nbytes(node.value)
            if self._bytes > MAX_BYTES:
                self.notes.append("the values of the program are too big to be kept: some were not compared")
                return
            self.by_size[int(node.value.numel())].append(node)

    def places(self) -> list[dict[str, Any]]:
        """``target`` and ``where`` of the nodes whose source line is known, each pair once."""
        known = {(node.target, node.where) for nodes in self.by_size.values() for node in nodes if node.where}
        return [{"target": target, "where": where} for target, where in sorted(known)][:_PLACES]

    def closest(self, tensor: Any) -> dict[str, Any]:
        """``matches`` (a node), ``target``, ``where``, ``error`` (how far off), ``agrees``; empty without nodes."""
        compared = self._compared(tensor)
        if not compared:
            return {}
        score, node, error = min(compared, key=lambda found: found[0])
        return {
            "matches": node.name,
            "target": node.target,
            "where": node.where,
            "error": error,
            "agrees": score <= 1.0,
        }

    def nearest(self, tensor: Any, count: int) -> list[Node]:
        """The ``count`` nodes of as many elements whose values are closest, each value once."""
        found: list[Node] = []
        for _, node, _ in sorted(self._compared(tensor), key=lambda one: one[0]):
            if not any(_score(node.value, other.value) <= 1.0 for other in found):
                found.append(node)
        return found[:count]

    def _compared(self, tensor: Any) -> list[tuple[float, Node, float | str]]:
        """``(score, node, largest difference)`` of the likely nodes."""
        import torch

        nodes = self.by_size.get(int(tensor.numel()), [])
        if not nodes or not tensor.numel() or tensor.dtype is torch.bool:
            return []
        ours = _plain(tensor)
        marks = _marks(ours)
        near = sorted(nodes, key=lambda node: _apart(node.marks, marks))[:_TRIES]
        return [_compare(ours, tensor, node) for node in near]


def gather(program: Any, call: Call) -> Candidates:
    """Run ``program`` (an ``ExportedProgram``) node by node on ``call``."""
    found = Candidates()
    eager, outputs = _interpret(program, call)
    found.add(eager)
    try:
        from torch._inductor.decomposition import select_decomp_table

        lowered, other = _interpret(program.run_decompositions(select_decomp_table()), call)
    except Exception as error:
        found.notes.append(f"without Inductor's decompositions: {type(error).__name__}: {error}")
        return found
    if all(_score(a, b) <= 1.0 for a, b in zip(outputs, other, strict=True)):
        found.add(lowered)
    else:
        found.decomposition_differs = True
        found.notes.append("the decomposed program gives different outputs from the program: a decomposition is wrong")
    return found


def _interpret(program: Any, call: Call) -> tuple[list[Node], list[Any]]:
    """All tensor values of the graph, and those of its outputs."""
    import torch
    from torch.export._tree_utils import reorder_kwargs
    from torch.utils import _pytree as pytree

    module = program.module()
    kept: list[Node] = []

    class Keeper(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not seen by the type checker
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if n.op in ("call_function", "placeholder", "get_attr"):
                kept.extend(_nodes(n, value))
            return value

    fresh = call.copy() or call
    flat = pytree.tree_flatten((fresh.args, reorder_kwargs(fresh.kwargs, program.call_spec.in_spec)))[0]
    with torch.no_grad():
        outputs = Keeper(module).run(*flat, enable_io_processing=False)
    leaves = [leaf.clone() for leaf in pytree.tree_flatten(outputs)[0] if isinstance(leaf, torch.Tensor)]
    return kept, leaves


def _nodes(node: Any, value: Any) -> list[Node]:
    """A node that gives several tensors gives several values."""
    import torch

    values = value if isinstance(value, tuple | list) else (value,)
    tensors = [one for one in values if isinstance(one, torch.Tensor) and one.device.type != "meta"]
    return [
        Node(name=node.name, target=_target(node), where=_where(node), value=kept, marks=_marks(_plain(kept)))
        for kept in (one.detach().clone() for one in tensors)
    ]


def _target(node: Any) -> str:
    """``aten.log`` of ``aten.log.default``; ``input`` and ``weight`` for what the program is given."""
    if node.op != "call_function":
        return "input" if node.op == "placeholder" else "weight"
    text = str(node.target)
    return ".".join(text.split(".")[:2]) if "." in text else getattr(node.target, "__name__", text)


def _where(node: Any) -> str | None:
    """The innermost line of the user's code (not PyTorch's): ``model.py:12``."""
    lines = [line.strip() for line in str(node.meta.get("stack_trace") or "").splitlines()]
    frames = [line for line in lines if line.startswith('File "')]
    own = [line for line in frames if "/torch/" not in line]
    if not frames:
        return None
    file, _, rest = (own or frames)[-1].removeprefix('File "').partition('", line ')
    return f"{file.rpartition('/')[2]}:{rest.partition(',')[0]}"


def _plain(tensor: Any) -> Any:
    """The numbers in a row, of complex ones both parts."""
    import torch

    tensor = dense(tensor).cpu()
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double().reshape(-1)


def _marks(values: Any) -> tuple[float, float, float]:
    """Smallest, largest and mean of the finite values: the same for any order of them."""
    finite = values[values.isfinite()]
    if not finite.numel():
        return (0.0, 0.0, 0.0)
    low, high = finite.aminmax()
    return (low.item(), high.item(), finite.mean().item())


def _apart(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    scale = max(map(abs, (*a, *b, 1e-30)))
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / scale


def _compare(ours: Any, tensor: Any, node: Node) -> tuple[float, Node, float | str]:
    """``(score, node, largest difference)``; a score of 1 is the tolerance."""
    theirs, tolerance = _plain(node.value), wider(_TOLERANCE, tensor, node.value)
    score, error = _distance(ours, theirs, tolerance)
    if score > 1.0 and list(tensor.shape) != list(node.value.shape):
        # The same values in another order: a permuted layout.
        score, error = min((score, error), _distance(ours.sort().values, theirs.sort().values, tolerance))
    return score, node, error


def _score(a: Any, b: Any) -> float:
    """How far apart two tensors are; 1 is the tolerance."""
    return _distance(_plain(a), _plain(b), wider(_TOLERANCE, a, b))[0]


def _distance(left: Any, right: Any, tolerance: float) -> tuple[float, float]:
    """``(score, largest difference)``."""
    if left.numel() != right.numel() or bool((left.isnan() != right.isnan()).any()):
        return float("inf"), float("inf")
    usable = ~left.isnan() & (left != right)
    if not bool(usable.any()):
        return 0.0, 0.0
    error = float((left[usable] - right[usable]).abs().max())
    finite = right[right.isfinite()]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    if tolerance == 0.0:
        return float("inf"), error
    return error / max(tolerance * scale, 1e-300), error
