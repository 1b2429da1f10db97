"""Rule G09: what ``torch.fx.Graph.lint`` refuses, node by node instead of up to the first."""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.verify.records import Records, first_line


def check_lint(path: str, module: Any, records: Records) -> None:
    """Order, ownership and names of the nodes of one graph, then whatever else ``lint`` itself says."""
    before = records.counts.total()
    _check_arguments(path, module.graph, records)
    try:
        module.graph.lint()
    except Exception as error:
        said = first_line(error)
        # Rules of their own: attributes and submodules that are not there.
        others = "references nonexistent attribute" in said or "does not reference an nn.Module" in said
        typed = "a str is expected" in said
        if records.counts.total() == before and not others and not typed:
            records.add("G09", "other", graph=path, observed=said, expected="a well-formed graph")


def _check_arguments(path: str, graph: Any, records: Records) -> None:
    defined: set[Any] = set()
    names: set[str] = set()
    for node in graph.nodes:
        for argument in node._input_nodes:
            if argument.graph is not graph:
                observed = f"argument {argument.name} is a node of a different graph"
                _add(records, "foreign", node, path, observed=observed, expected="nodes of this graph only")
            elif argument not in defined:
                observed = f"argument {argument.name} is used before it is computed"
                _add(records, "order", node, path, observed=observed, expected="arguments that come earlier")
        defined.add(node)
        if node.name in names:
            observed = f"two nodes are called {node.name}"
            _add(records, "name-twice", node, path, observed=observed, expected="a unique name")
        names.add(node.name)


def _add(records: Records, kind: str, node: Any, path: str, *, observed: str, expected: str) -> None:
    target = None if node.op == "output" else node.target
    records.add("G09", kind, node=node, target=target, graph=path, observed=observed, expected=expected)
