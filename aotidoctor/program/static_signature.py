"""The signature as the archive has it."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, as_object
from aotidoctor.model.program_archive import ProgramArchive
from aotidoctor.program.document import Graph, Union, argument_name, as_text, names_of, union
from aotidoctor.program.found import Place
from aotidoctor.program.signature import KINDS, ModuleCall, Returned, Signature, Spec, State

_ARGUMENTS = {"custom_obj": "CustomObjArgument", "token": "TokenArgument"}


def signature(archive: ProgramArchive, top: Graph) -> Signature:
    """Of an object's class the archive shows only what its kind says. Inputs have no line of the source."""
    module = as_object(archive.document.get("graph_module"))
    raw = as_object(module.get("signature"))
    placeholders = [Place(name=argument_name(item)) for item in top.inputs]
    nodes = {item.name: item for item in (*placeholders, *top.nodes)}
    nodes.update({name: node for node in top.nodes for item in node.outputs for name in names_of(item)})
    return Signature(
        placeholders=placeholders,
        inputs=[_spec(item) for item in as_list(raw.get("input_specs"))],
        outputs=[_spec(item) for item in as_list(raw.get("output_specs"))],
        returned=[_returned(item, nodes) for item in top.outputs],
        calls=[_call(as_object(item)) for item in as_list(module.get("module_call_graph"))],
        nodes=nodes,
        state=_state(archive),
    )


def _spec(item: JsonValue) -> Spec:
    kind, inner = next(iter(as_object(item).items()), ("", None))
    kind, value = as_text(kind), as_object(inner)
    given = union(value.get("arg")) if kind in ("user_input", "user_output") else Union(kind="", value=value.get("arg"))
    name = as_text(value.get("name")) if kind == "constant_input" else argument_name(given)
    persistent = value.get("persistent")
    return Spec(
        kind=kind,
        name=name,
        argument="" if kind == "token" and not name else _ARGUMENTS.get(kind, "TensorArgument"),
        target=as_text(value.get(f"{kind.removesuffix('_mutation')}_name")) or None,
        persistent=persistent if isinstance(persistent, bool) else None,
        named=kind in KINDS and kind != "constant_input",
        text=name or given.kind or "a constant",
        value=name or given,
    )


def _returned(item: Union, nodes: Mapping[str, Place]) -> Returned:
    name = argument_name(item)
    return Returned(name=name, text=name or item.kind, value=name or item, node=nodes.get(name, name or "output"))


def _call(entry: JsonObject) -> ModuleCall:
    call = as_object(entry.get("signature"))
    inputs, outputs = ([argument_name(union(item)) for item in as_list(call.get(key))] for key in ("inputs", "outputs"))
    return ModuleCall(fqn=as_text(entry.get("fqn")), inputs=inputs, outputs=outputs)


def _state(archive: ProgramArchive) -> State:
    """Weights and constants: none at all where the archive lacks them, None where they cannot be read."""
    weights = {} if archive.weights is None and archive.weights_pickle is None else archive.weights
    constants = {} if archive.constants is None and archive.constants_pickle is None else archive.constants
    classes = (
        None
        if weights is None
        else {name: "Parameter" if item.parameter else "Tensor" for name, item in weights.items()}
    )
    return State(weights=classes, constants=constants, kept=constants)
