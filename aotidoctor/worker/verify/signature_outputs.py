"""Rules S09 to S13: what the signature says of the outputs, and the names in the module call graph."""

from __future__ import annotations

from typing import Any

from aotidoctor.worker.verify.records import Records


def check_outputs(program: Any, records: Records) -> None:
    """Count and order of the outputs; mutations that lead to what is there."""
    nodes = list(program.graph.nodes)
    last = nodes[-1] if nodes else None
    if last is None or last.op != "output":
        observed = f"the last node is {last.op} {last.name}" if last is not None else "a graph without nodes"
        records.add("S13", "no-output-node", node=last, observed=observed, expected="an output node at the end")
        return
    outputs = last.args[0] if last.args else ()
    if not isinstance(outputs, list | tuple):
        expected = "a tuple of nodes and constants"
        records.add(
            "S13",
            "not-a-tuple",
            node=last,
            observed=f"the graph returns a bare {type(outputs).__name__}",
            expected=expected,
        )
        return
    specs = program.graph_signature.output_specs
    if len(outputs) != len(specs):
        _count(last, outputs, specs, records)
        return
    _check_order(program.graph_signature, last, outputs, records)


def check_module_calls(program: Any, records: Records) -> None:
    """Arguments and results of preserved submodules are nodes of the graph."""
    names = {node.name for node in program.graph.nodes}
    for entry in program.module_call_graph:
        if entry.signature is None:
            continue
        for kind, arguments in (("input", entry.signature.inputs), ("output", entry.signature.outputs)):
            for argument in arguments:
                name = argument.name
                if name and name not in names:
                    records.add(
                        "S12",
                        kind,
                        node=name,
                        target=entry.fqn or "the whole module",
                        observed=f"{kind} {name} of module {entry.fqn or '(root)'} is not a node of the graph",
                        expected="an existing node",
                    )


def _count(last: Any, outputs: Any, specs: Any, records: Records) -> None:
    graph = [_name(item) for item in outputs]
    signature = [_label(spec.arg) for spec in specs]
    records.add(
        "S09",
        "output-count",
        node=last,
        observed=f"the graph returns {len(graph)} ({', '.join(map(str, graph))}), "
        f"the signature has {len(signature)} ({', '.join(signature)})",
        expected="an output of the signature for each that the graph returns, in order",
    )


def _check_order(signature: Any, last: Any, outputs: Any, records: Records) -> None:
    """As the verifier counts: tokens, then mutations, then what the user gets."""
    mutated = (
        ("buffer", signature.buffers_to_mutate, signature.buffers),
        ("parameter", getattr(signature, "parameters_to_mutate", {}), getattr(signature, "parameters", ())),
        ("user-input", signature.user_inputs_to_mutate, signature.user_inputs),
    )
    start = len(signature.output_tokens)
    end = start + sum(len(found) for _, found, _ in mutated)
    for item in outputs[start:end]:
        _check_mutation(_name(item), _node(item, last), mutated, records)
    wanted = signature.user_outputs
    for item, name in zip(outputs[end : end + len(wanted)], wanted, strict=False):
        if _name(item) != name:
            records.add(
                "S11",
                "output-order",
                node=_node(item, last),
                observed=f"the graph returns {_name(item)} where the signature has {name}",
                expected=str(name),
            )


def _check_mutation(name: Any, node: Any, mutated: Any, records: Records) -> None:
    for kind, found, known in mutated:
        if name not in found:
            continue
        if found[name] not in known:
            what = kind.replace("-", " ")
            records.add(
                "S10",
                kind,
                node=node,
                target=str(found[name]),
                observed=f"{name} is the new value of {what} {found[name]}, which does not exist",
                expected=f"one of {', '.join(map(str, known)) or f'the {what}s (there are none)'}",
            )
        return
    records.add(
        "S10",
        "stray",
        node=node,
        observed=f"{name} is among the new values of inputs but is the value of none",
        expected="new values of buffers, parameters and inputs first, then the results",
    )


def _name(item: Any) -> Any:
    """A node by its name; a constant as it is, unless it cannot be looked up."""
    name = getattr(item, "name", item)
    try:
        hash(name)
    except TypeError:
        return str(name)
    return name


def _node(item: Any, last: Any) -> Any:
    return item if hasattr(item, "op") else last


def _label(argument: Any) -> str:
    return str(getattr(argument, "name", "") or getattr(argument, "value", argument))
