"""The signature of the rebuilt program for rules S01 to S12, and rule S13: the output node."""

from __future__ import annotations

from typing import Any

from aotidoctor.program.signature import ModuleCall, Returned, Signature, Spec, State
from aotidoctor.worker.verify.records import Records, as_place

_SYMBOLS = ("SymIntArgument", "SymFloatArgument", "SymBoolArgument")


def signature(program: Any) -> Signature:
    """What the program says of its inputs and outputs, beside its graph."""
    from torch.export.graph_signature import InputKind

    nodes, last = {node: as_place(node) for node in program.graph.nodes}, _last(program)
    return Signature(
        placeholders=[item for node, item in nodes.items() if node.op == "placeholder"],
        inputs=[input_spec(spec) for spec in program.graph_signature.input_specs],
        outputs=[output_spec(spec) for spec in program.graph_signature.output_specs],
        returned=_returned(last),
        calls=[_call(entry) for entry in program.module_call_graph if entry.signature is not None],
        nodes={item.name: item for item in nodes.values()},
        state=_state(program),
        kinds=[kind.name for kind in InputKind],
        end=nodes.get(last, "output"),
    )


def input_spec(spec: Any) -> Spec:
    """The kinds are the archive's: it has one of its own for constants, and another word for those of the program."""
    from torch.export.graph_signature import InputKind

    kind = spec.kind.name.lower() if isinstance(spec.kind, InputKind) else str(spec.kind)
    argument = type(spec.arg).__name__
    if (kind, argument) == ("user_input", "ConstantArgument"):
        kind = "constant_input"
    return Spec(
        kind="tensor_constant" if kind == "constant_tensor" else kind,
        name=getattr(spec.arg, "name", ""),
        argument=argument,
        target=spec.target,
        persistent=spec.persistent,
        named=argument in ("TensorArgument", *_SYMBOLS),
    )


def output_spec(spec: Any) -> Spec:
    """A constant is compared by its value."""
    name = getattr(spec.arg, "name", "")
    value = spec.arg.value if type(spec.arg).__name__ == "ConstantArgument" else name
    kind = str(getattr(spec.kind, "name", spec.kind)).lower()
    return Spec(kind=kind, name=name, target=spec.target, text=str(name or value), value=value)


def check_output_node(program: Any, records: Records) -> None:
    """The graph ends in an output node, which returns a tuple."""
    last = _last(program)
    if last is None or last.op != "output":
        observed = f"the last node is {last.op} {last.name}" if last is not None else "a graph without nodes"
        records.add("S13", "no-output-node", node=last, observed=observed, expected="an output node at the end")
    elif _returned(last) is None:
        observed = f"the graph returns a bare {type(last.args[0]).__name__}"
        records.add("S13", "not-a-tuple", node=last, observed=observed, expected="a tuple of nodes and constants")


def _last(program: Any) -> Any:
    return next(reversed(program.graph.nodes), None)


def _returned(last: Any) -> list[Returned] | None:
    outputs = None if last is None or last.op != "output" else last.args[0] if last.args else ()
    return [_one(item, last) for item in outputs] if isinstance(outputs, list | tuple) else None


def _one(item: Any, last: Any) -> Returned:
    value = getattr(item, "name", item)
    name = value if hasattr(item, "op") else ""
    return Returned(name=name, text=str(value), value=value, node=as_place(item if name else last))


def _call(entry: Any) -> ModuleCall:
    inputs, outputs = ([item.name for item in items] for items in (entry.signature.inputs, entry.signature.outputs))
    return ModuleCall(fqn=entry.fqn, inputs=inputs, outputs=outputs)


def _state(program: Any) -> State:
    """Persistent buffers may be among the constants or below a subgraph, where torch (2.11 and later) looks as well."""
    import torch

    classes = {
        name: "Parameter" if isinstance(value, torch.nn.Parameter) else type(value).__name__
        for name, value in program.state_dict.items()
    }
    kept = {*program.constants, *program.graph_module.state_dict()}
    return State(weights=classes, constants=program.constants, kept=kept)
