"""Rules G01 to G05 and G11: the nodes of the graph and of its subgraphs.

Whether an operator is allowed is a question to the installed verifier itself, asked for one node at a time: its list
differs between versions and dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from aotidoctor.program.operators import Call, add_not_functional, add_operator_kind, add_val_missing
from aotidoctor.worker.verify.attributes import check_attribute
from aotidoctor.worker.verify.lint import check_lint
from aotidoctor.worker.verify.records import Records, as_place, first_line, name_of


def graphs(program: Any) -> Iterator[tuple[str, Any]]:
    """Path and module of every graph of ``program``; the path of the top is empty."""
    import torch

    for path, module in program.graph_module.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            yield path, module


def call_of(path: str, node: Any) -> Call:
    """A node as the rules take it."""
    return Call(graph=path, node=as_place(node), target=name_of(node.target))


def check_graph(program: Any, verifiers: Sequence[Any], records: Records) -> None:
    """All graphs, by the rules of all ``verifiers`` (instances)."""
    judges = [_Judge(verifier) for verifier in verifiers]
    for path, module in graphs(program):
        check_lint(path, module, records)
        for node in module.graph.nodes:
            _check_node(node, module, path, judges, records)
    for verifier in verifiers:
        refusal = _refusal(partial(verifier.check_additional, program.graph_module))
        if refusal is not None:
            _refused_by_dialect(verifier, None, "", refusal, records)


def _check_node(node: Any, module: Any, path: str, judges: Sequence[_Judge], records: Records) -> None:
    match node.op:
        case "call_module" | "call_method":
            records.add(
                "G05",
                node.op.replace("_", "-"),
                node=node,
                target=node.target,
                graph=path,
                observed=f"a node that calls the {node.op.removeprefix('call_')} {node.target}",
                expected="operators only: submodules and methods are traced into",
            )
        case "call_function":
            _check_val(node, path, records)
            _check_target(node, path, judges, records)
        case "get_attr":
            check_attribute(node, module, path, [judge.verifier for judge in judges], records)
        case "placeholder":
            _check_val(node, path, records)


def _check_val(node: Any, path: str, records: Records) -> None:
    import torch

    if "val" not in node.meta:
        target = node.target
        if node.op == "call_function" and isinstance(target, torch._ops.OpOverload) and not target._schema.returns:
            return
        add_val_missing(call_of(path, node), "no val in the node's meta", records)
        return
    bad = next(_bad_leaves(node.meta["val"]), None)
    if bad is not None:
        records.add(
            "G02",
            "val-kind",
            node=node,
            target=node.target,
            graph=path,
            observed=f"a val that contains a {type(bad).__module__}.{type(bad).__qualname__}",
            expected="tensors, numbers, text, symbols, dtypes, devices, custom objects, and containers of these",
        )


def _bad_leaves(val: Any) -> Iterator[Any]:
    """Parts of ``val`` that the verifier would not take."""
    import torch
    from torch._export.verifier import CustomObjArgument

    plain = (int, bool, str, float, torch.memory_format, torch.dtype, torch.device, torch.layout)
    known = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, CustomObjArgument)
    if val is None or isinstance(val, plain + known) or _is_opaque(val):
        return
    try:
        parts = list(val)
    except TypeError:
        yield val
        return
    for part in parts:
        yield from _bad_leaves(part)


def _is_opaque(val: Any) -> bool:
    """Objects that torch (2.10 and later) lets through without looking into them."""
    try:
        from torch._library.opaque_object import is_opaque_type
    except ImportError:
        return False
    return bool(is_opaque_type(type(val)))


def _check_target(node: Any, path: str, judges: Sequence[_Judge], records: Records) -> None:
    for judge in judges:
        refusal = judge.refusal(node.target)
        if refusal is None:
            continue
        if "is not functional" in refusal:
            add_not_functional(call_of(path, node), judge.verifier.dialect, records)
        elif "not an allowed operator type" in refusal:
            kind = type(node.target).__name__
            add_operator_kind(call_of(path, node), kind, records, dialect=judge.verifier.dialect)
        else:
            _refused_by_dialect(judge.verifier, node, path, refusal, records)
        return


def _refused_by_dialect(verifier: Any, node: Any, path: str, refusal: str, records: Records) -> None:
    records.add(
        "G11",
        "dialect-refuses",
        node=node,
        target=getattr(node, "target", None),
        graph=path,
        observed=first_line(refusal),
        expected=f"what dialect {verifier.dialect} allows",
        dialect=verifier.dialect,
    )


class _Judge:
    """One verifier, asked about single operators; answers are kept, since a graph has few different ones."""

    def __init__(self, verifier: Any) -> None:
        self.verifier = verifier
        self._single = type(verifier)()
        # What it says of the whole graph is asked for once, elsewhere.
        self._single.check_additional = lambda _module: None
        self._answers: dict[Any, str | None] = {}

    def refusal(self, target: Any) -> str | None:
        """Why a node that calls ``target`` is refused, None when it is not."""
        try:
            if target not in self._answers:
                self._answers[target] = self._ask(target)
            return self._answers[target]
        except TypeError:  # not hashable
            return self._ask(target)

    def _ask(self, target: Any) -> str | None:
        import torch

        graph = torch.fx.Graph()
        node = graph.create_node("call_function", len, (), {}, "asked")
        # Not at once: torch makes no node of a target that is not callable.
        node.target = target
        node.meta["val"] = 0
        graph.output((node,))
        module = torch.fx.GraphModule({}, torch.fx.Graph())
        # The setter would generate Python code, which not every target has.
        module._graph = graph
        return _refusal(lambda: self._single._check_graph_module(module))


def _refusal(ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except Exception as error:
        return str(error) or type(error).__name__
    return None
