"""Rules S01 to S08: what the signature says of the inputs, against placeholders, state dict and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aotidoctor.worker.verify.records import Records

Add = Callable[..., None]


def check_inputs(program: Any, records: Records) -> None:
    """Every input spec with its placeholder, then with the tensor or object that it stands for."""
    specs = program.graph_signature.input_specs
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    same_count = len(placeholders) == len(specs)
    if not same_count:
        _count(placeholders, specs, records)
    for at, spec in enumerate(specs):
        node = placeholders[at] if same_count else None
        if node is not None:
            _check_name(spec, node, records)
        _check_spec(program, spec, node, records)


def _count(placeholders: list[Any], specs: Any, records: Records) -> None:
    graph = [node.name for node in placeholders]
    signature = [getattr(spec.arg, "name", "") for spec in specs]
    only_graph = [name for name in graph if name not in signature]
    only_signature = [name for name in signature if name and name not in graph]
    lone = next((node for node in placeholders if node.name in only_graph), None)
    records.add(
        "S01",
        "input-count",
        node=lone or next(iter(only_signature), None),
        observed=f"{len(graph)} placeholders in the graph, {len(signature)} inputs in the signature"
        + (f"; only in the graph: {', '.join(only_graph)}" if only_graph else "")
        + (f"; only in the signature: {', '.join(only_signature)}" if only_signature else ""),
        expected="an input of the signature for each placeholder, in order",
    )


def _check_name(spec: Any, node: Any, records: Records) -> None:
    from torch.export.graph_signature import SymBoolArgument, SymFloatArgument, SymIntArgument, TensorArgument

    named = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument)
    if isinstance(spec.arg, named) and spec.arg.name != node.name:
        records.add(
            "S02",
            "input-name",
            node=node,
            target=spec.target,
            observed=f"the signature has {spec.arg.name} where the graph has {node.name}",
            expected=node.name,
        )


def _check_spec(program: Any, spec: Any, node: Any, records: Records) -> None:  # noqa: C901 - one case for each kind
    from torch.export.graph_signature import InputKind

    def add(code: str, kind: str, observed: str, expected: str) -> None:
        name = node if node is not None else getattr(spec.arg, "name", None)
        records.add(code, kind, node=name, target=spec.target, observed=observed, expected=expected)

    match spec.kind:
        case InputKind.USER_INPUT:
            return
        case InputKind.PARAMETER:
            _check_parameter(program, spec, add)
        case InputKind.BUFFER:
            _check_buffer(program, spec, add)
        case InputKind.CONSTANT_TENSOR:
            if _check_form(spec, "TensorArgument", "S05", "constant", add):
                _check_constant(program, spec, "S05", "constant tensor", add)
        case InputKind.CUSTOM_OBJ:
            if _check_form(spec, "CustomObjArgument", "S06", "custom object", add):
                _check_constant(program, spec, "S06", "custom object", add)
        case InputKind.TOKEN:
            if type(spec.arg).__name__ != "TokenArgument":
                add("S07", "not-token", f"a token that is a {type(spec.arg).__name__}", "a TokenArgument")
        case _:
            add("S08", "input-kind", f"kind {spec.kind}", ", ".join(kind.name for kind in InputKind))


def _check_form(spec: Any, wanted: str, code: str, what: str, add: Add) -> bool:
    """Whether the argument has the type that its kind asks for, and names what it stands for."""
    if type(spec.arg).__name__ != wanted:
        kind = "not-object" if code == "S06" else "not-tensor"
        add(code, kind, f"a {what} that is a {type(spec.arg).__name__}", f"a {wanted}")
    if spec.target is None:
        add(code, "no-target", f"a {what} without the name of what it stands for", "its name")
        return False
    return True


def _check_constant(program: Any, spec: Any, code: str, what: str, add: Add) -> None:
    if spec.target not in program.constants:
        add(code, "absent", f"{what} {spec.target} is not among the program's constants", "its value")


def _check_parameter(program: Any, spec: Any, add: Add) -> None:
    import torch

    if not _check_form(spec, "TensorArgument", "S03", "parameter", add):
        return
    if spec.target not in program.state_dict:
        add("S03", "absent", f"parameter {spec.target} is not in the state dict", "its value")
        return
    value = program.state_dict[spec.target]
    if not isinstance(value, torch.nn.Parameter):
        add("S03", "not-parameter", f"{spec.target} is a {type(value).__name__}", "a torch.nn.Parameter")


def _check_buffer(program: Any, spec: Any, add: Add) -> None:
    formed = _check_form(spec, "TensorArgument", "S04", "buffer", add)
    if spec.persistent is None:
        add("S04", "no-persistence", f"buffer {spec.target} does not say whether it is persistent", "True or False")
    if not formed:
        return
    kept = spec.target in program.state_dict
    if spec.persistent is True and not kept and not _kept_elsewhere(program, spec.target):
        add("S04", "absent", f"persistent buffer {spec.target} is not in the state dict", "its value")
    if spec.persistent is False and kept:
        expected = "no entry: it is among the constants"
        add("S04", "unwanted", f"the state dict holds {spec.target}, which is not persistent", expected)


def _kept_elsewhere(program: Any, name: str) -> bool:
    """Among the constants or below a subgraph, where torch (2.11 and later) looks as well."""
    return name in program.constants or name in program.graph_module.state_dict()
