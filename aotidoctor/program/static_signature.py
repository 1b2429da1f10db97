"""Rules S01 to S12 from the archive: the signature against the graph's inputs and outputs, weights and constants."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.json_types import JsonObject, JsonValue, as_list, as_object
from aotidoctor.model.program_archive import Payloads, ProgramArchive
from aotidoctor.program.document import Graph, Node, Union, argument_name, as_text, names_of, union
from aotidoctor.program.found import Found

_FIELDS = {
    "parameter": ("S03", "parameter", "parameter_name"),
    "buffer": ("S04", "buffer", "buffer_name"),
    "tensor_constant": ("S05", "constant tensor", "tensor_constant_name"),
    "custom_obj": ("S06", "custom object", "custom_obj_name"),
}
_KINDS = ("user_input", *_FIELDS, "token", "constant_input")
_MUTATIONS = {
    "buffer_mutation": ("buffer", "buffer", "buffer_name"),
    "parameter_mutation": ("parameter", "parameter", "parameter_name"),
    "user_input_mutation": ("user-input", "user input", "user_input_name"),
}
Spec = tuple[str, JsonObject]


def check_signature(archive: ProgramArchive, top: Graph, found: Found) -> None:
    """Inputs, outputs, and the names in the module call graph."""
    module = as_object(archive.document.get("graph_module"))
    signature = as_object(module.get("signature"))
    inputs = [_spec(item) for item in as_list(signature.get("input_specs"))]
    outputs = [_spec(item) for item in as_list(signature.get("output_specs"))]
    _check_inputs(top, inputs, found)
    for spec in inputs:
        _check_state(archive, spec, found)
    _check_outputs(top, inputs, outputs, found)
    _check_module_calls(top, as_list(module.get("module_call_graph")), found)


def _spec(item: JsonValue) -> Spec:
    kind, value = next(iter(as_object(item).items()), ("", None))
    return as_text(kind), as_object(value)


def _name(spec: Spec) -> str:
    """Name of the graph's value that the spec is about."""
    kind, value = spec
    if kind == "constant_input":
        return as_text(value.get("name"))
    if kind in ("user_input", "user_output"):
        return argument_name(union(value.get("arg")))
    return as_text(as_object(value.get("arg")).get("name"))


def _check_inputs(top: Graph, specs: Sequence[Spec], found: Found) -> None:
    given = [argument_name(item) for item in top.inputs]
    if len(given) != len(specs):
        wanted = [_name(spec) for spec in specs]
        lone = [name for name in given if name and name not in wanted]
        absent = [name for name in wanted if name and name not in given]
        found.add(
            "S01",
            "input-count",
            node=next(iter([*lone, *absent]), None),
            observed=f"{len(given)} placeholders in the graph, {len(wanted)} inputs in the signature"
            + (f"; only in the graph: {', '.join(lone)}" if lone else "")
            + (f"; only in the signature: {', '.join(absent)}" if absent else ""),
            expected="an input of the signature for each placeholder, in order",
        )
        return
    for name, spec in zip(given, specs, strict=True):
        said = _name(spec)
        if spec[0] != "constant_input" and name and said != name and spec[0] in _KINDS:
            observed = f"the signature has {said} where the graph has {name}"
            found.add("S02", "input-name", node=name, target=_target(spec), observed=observed, expected=name)


def _target(spec: Spec) -> str | None:
    kind, value = spec
    return (as_text(value.get(_FIELDS[kind][2])) or None) if kind in _FIELDS else None


def _check_state(archive: ProgramArchive, spec: Spec, found: Found) -> None:
    kind, value = spec
    node = _name(spec) or None
    if kind not in _KINDS:
        found.add("S08", "input-kind", node=node, observed=f"kind {kind or '(none)'}", expected=", ".join(_KINDS))
        return
    if kind == "token" and not _name(spec):
        found.add("S07", "not-token", observed="a token without a name", expected="a TokenArgument")
    if kind not in _FIELDS:
        return
    code, what, _ = _FIELDS[kind]
    target = _target(spec)
    if target is None:
        observed = f"a {what} without the name of what it stands for"
        found.add(code, "no-target", node=node, observed=observed, expected="its name")
        return
    weights, constants = _state(archive)
    match kind:
        case "parameter":
            _check_parameter(node, target, weights, found)
        case "buffer":
            _check_buffer((weights, constants), node, target, value, found)
        case _:
            if constants is not None and target not in constants:
                observed = f"{what} {target} is not among the program's constants"
                found.add(code, "absent", node=node, target=target, observed=observed, expected="its value")


def _state(archive: ProgramArchive) -> tuple[Payloads | None, Payloads | None]:
    """Weights and constants: none at all where the archive lacks them, None where they cannot be read."""
    weights, constants = archive.weights, archive.constants
    return (
        {} if weights is None and archive.weights_pickle is None else weights,
        {} if constants is None and archive.constants_pickle is None else constants,
    )


def _check_parameter(node: str | None, target: str, weights: Payloads | None, found: Found) -> None:
    if weights is None:
        return
    if target not in weights:
        observed = f"parameter {target} is not in the state dict"
        found.add("S03", "absent", node=node, target=target, observed=observed, expected="its value")
    elif not weights[target].parameter:
        observed = f"{target} is a Tensor"
        found.add("S03", "not-parameter", node=node, target=target, observed=observed, expected="a torch.nn.Parameter")


def _check_buffer(
    state: tuple[Payloads | None, Payloads | None], node: str | None, target: str, value: JsonObject, found: Found
) -> None:
    weights, constants = state
    persistent = value.get("persistent")
    if not isinstance(persistent, bool):
        observed = f"buffer {target} does not say whether it is persistent"
        found.add("S04", "no-persistence", node=node, target=target, observed=observed, expected="True or False")
        return
    if weights is None:
        return
    kept = target in weights
    if persistent and not kept and constants is not None and target not in constants:
        observed = f"persistent buffer {target} is not in the state dict"
        found.add("S04", "absent", node=node, target=target, observed=observed, expected="its value")
    if not persistent and kept:
        observed = f"the state dict holds {target}, which is not persistent"
        expected = "no entry: it is among the constants"
        found.add("S04", "unwanted", node=node, target=target, observed=observed, expected=expected)


def _check_outputs(top: Graph, inputs: Sequence[Spec], specs: Sequence[Spec], found: Found) -> None:
    given = [argument_name(item) for item in top.outputs]
    if len(given) != len(specs):
        names = ", ".join(name or item.kind for name, item in zip(given, top.outputs, strict=True))
        signature = ", ".join(_name(spec) or "a constant" for spec in specs)
        found.add(
            "S09",
            "output-count",
            node="output",
            observed=f"the graph returns {len(given)} ({names}), the signature has {len(specs)} ({signature})",
            expected="an output of the signature for each that the graph returns, in order",
        )
        return
    known = _known(inputs)
    nodes = {name: node for node in top.nodes for item in node.outputs for name in names_of(item)}
    tokens = sum(kind == "token" for kind, _ in specs)
    mutated = {_name(spec): spec for spec in specs if spec[0] in _MUTATIONS}
    end = tokens + sum(kind in _MUTATIONS for kind, _ in specs)
    for name in given[tokens:end]:
        _check_mutation(name, nodes.get(name, name), mutated.get(name), known, found)
    users = [spec for spec in specs if spec[0] == "user_output"]
    for name, item, spec in zip(given[end:], top.outputs[end:], users, strict=False):
        said = union(spec[1].get("arg"))
        if (name or said.value) and not _same(item, said):
            wanted = argument_name(said) or said.kind
            observed = f"the graph returns {name or item.kind} where the signature has {wanted}"
            found.add("S11", "output-order", node=nodes.get(name, name or "output"), observed=observed, expected=wanted)


def _same(one: Union, other: Union) -> bool:
    left, right = argument_name(one), argument_name(other)
    return left == right if left or right else one == other


def _known(inputs: Sequence[Spec]) -> dict[str, list[str]]:
    """What a mutation may go to, by kind."""
    return {
        "buffer_mutation": [as_text(value.get("buffer_name")) for kind, value in inputs if kind == "buffer"],
        "parameter_mutation": [as_text(value.get("parameter_name")) for kind, value in inputs if kind == "parameter"],
        "user_input_mutation": [_name(spec) for spec in inputs if spec[0] == "user_input"],
    }


def _check_mutation(name: str, node: Node | str, spec: Spec | None, known: dict[str, list[str]], found: Found) -> None:
    if spec is None:
        observed = f"{name} is among the new values of inputs but is the value of none"
        expected = "new values of buffers, parameters and inputs first, then the results"
        found.add("S10", "stray", node=node, observed=observed, expected=expected)
        return
    kind, what, field = _MUTATIONS[spec[0]]
    target = as_text(spec[1].get(field))
    if target not in known[spec[0]]:
        there = ", ".join(known[spec[0]]) or f"the {what}s (there are none)"
        observed = f"{name} is the new value of {what} {target}, which does not exist"
        found.add("S10", kind, node=node, target=target, observed=observed, expected=f"one of {there}")


def _check_module_calls(top: Graph, entries: Sequence[JsonValue], found: Found) -> None:
    names = {argument_name(item) for item in top.inputs}
    names |= {name for node in top.nodes for item in node.outputs for name in names_of(item)}
    names |= {node.name for node in top.nodes}
    for raw in entries:
        entry = as_object(raw)
        signature = as_object(entry.get("signature"))
        for kind in ("input", "output"):
            for item in as_list(signature.get(f"{kind}s")):
                name = argument_name(union(item))
                if not name or name in names:
                    continue
                module = as_text(entry.get("fqn"))
                found.add(
                    "S12",
                    kind,
                    node=name,
                    target=module or "the whole module",
                    observed=f"{kind} {name} of module {module or '(root)'} is not a node of the graph",
                    expected="an existing node",
                )
