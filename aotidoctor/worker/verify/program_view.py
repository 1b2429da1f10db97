"""Describe the rebuilt program for the rules of ``aotidoctor.program``: signature, values, state, paths of inputs.

The signature is for rules S01 to S12; rule S13 is about the output node. The state is all that the package will change,
carry and drop. Each input has the user's path (``args[0]['a']``), beside its spec and its placeholder. A constant is
called as in the model's own line.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.model.artifact import SizeRange
from aotidoctor.model.record import record
from aotidoctor.program.signature_rules import (
    GraphOutput,
    InputWrite,
    ModuleCall,
    NonTensorLeaf,
    ProgramSignature,
    ProgramState,
    SignatureSpec,
    check_leaf,
    check_mutations,
    check_size,
)
from aotidoctor.program.value_rules import Places, Value
from aotidoctor.worker.tensors import dtype_name
from aotidoctor.worker.verify.graph_rules import ProgramViolations, as_place, operator_name, program_graphs


# Paths of the inputs.
@record
class UserInput:
    """One leaf of the call. ``keys`` are the steps after ``args`` or ``kwargs``; ``node`` None: no placeholder."""

    path: str
    keys: tuple[Any, ...]
    is_keyword: bool
    spec: Any
    node: Any

    @property
    def val(self) -> Any:
        """Value of the placeholder in the traced graph."""
        return None if self.node is None else self.node.meta.get("val")


def user_inputs(program: Any) -> list[UserInput]:
    """Leaves in the order of the signature; by their names in the graph where the call spec does not fit."""
    from torch.export.graph_signature import InputKind

    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = list(program.graph_signature.input_specs)
    same = len(nodes) == len(specs)
    found = [(spec, nodes[at] if same else None) for at, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
    paths = _paths(program)
    if len(paths) != len(found):
        paths = [(str(getattr(spec.arg, "name", "") or "a constant"), (), False) for spec, _ in found]
    return [
        UserInput(path=path, keys=keys, is_keyword=is_keyword, spec=spec, node=node)
        for (path, keys, is_keyword), (spec, node) in zip(paths, found, strict=True)
    ]


def leaf_examples(program: Any) -> list[Any]:
    """The sample inputs as leaves; empty where the program has none."""
    try:
        return list(pytree.tree_leaves(program.example_inputs)) if program.example_inputs else []
    except Exception:
        return []


def argument_names(program: Any) -> list[str]:
    """Names of the positional arguments of forward; empty where the program does not have them."""
    for entry in program.module_call_graph:
        if entry.fqn == "" and entry.signature is not None:
            return list(getattr(entry.signature, "forward_arg_names", None) or [])
    return []


def _paths(program: Any) -> list[tuple[str, tuple[Any, ...], bool]]:
    try:
        in_spec = program.call_spec.in_spec
        tree = pytree.tree_unflatten(range(in_spec.num_leaves), in_spec)
        leaves = pytree.tree_flatten_with_path(tree)[0]
        found = [(keys, pytree.keystr(keys[1:])) for keys, _ in leaves]
        # The one that a step has of these three.
        kinds = ("idx", "key", "name")
        return [
            (
                f"{('args', 'kwargs')[keys[0].idx]}{text}",
                tuple(next((getattr(one, kind) for kind in kinds if hasattr(one, kind)), str(one)) for one in keys[1:]),
                keys[0].idx == 1,
            )
            for keys, text in found
        ]
    except Exception:
        return []


# The signature.
_SYMBOLS = ("SymIntArgument", "SymFloatArgument", "SymBoolArgument")


def program_signature(program: Any) -> ProgramSignature:
    """Inputs and outputs as the program describes them, beside its graph."""
    from torch.export.graph_signature import InputKind

    nodes, last = {node: as_place(node) for node in program.graph.nodes}, _last(program)
    weights = {
        name: "Parameter" if isinstance(value, torch.nn.Parameter) else type(value).__name__
        for name, value in program.state_dict.items()
    }
    # Persistent buffers may be among the constants or below a subgraph, where torch (2.11 and later) looks as well.
    buffers = {*program.constants, *program.graph_module.state_dict()}
    return ProgramSignature(
        placeholders=[item for node, item in nodes.items() if node.op == "placeholder"],
        inputs=[input_spec(spec) for spec in program.graph_signature.input_specs],
        outputs=[output_spec(spec) for spec in program.graph_signature.output_specs],
        returned=_read_returned(last),
        calls=[
            ModuleCall(
                fqn=entry.fqn,
                inputs=[item.name for item in entry.signature.inputs],
                outputs=[item.name for item in entry.signature.outputs],
            )
            for entry in program.module_call_graph
            if entry.signature is not None
        ],
        nodes={item.name: item for item in nodes.values()},
        state=ProgramState(weights=weights, constants=program.constants, kept=buffers),
        kinds=[kind.name for kind in InputKind],
        end=nodes.get(last, "output"),
    )


def input_spec(spec: Any) -> SignatureSpec:
    """An input as in the archive, which has a kind for constants, and another word for those of the program."""
    from torch.export.graph_signature import InputKind

    kind = spec.kind.name.lower() if isinstance(spec.kind, InputKind) else str(spec.kind)
    argument = type(spec.arg).__name__
    if (kind, argument) == ("user_input", "ConstantArgument"):
        kind = "constant_input"
    return SignatureSpec(
        kind="tensor_constant" if kind == "constant_tensor" else kind,
        name=getattr(spec.arg, "name", ""),
        argument=argument,
        target=spec.target,
        persistent=spec.persistent,
        named=argument in ("TensorArgument", *_SYMBOLS),
    )


def output_spec(spec: Any) -> SignatureSpec:
    """An output; a constant is compared by its value."""
    name = getattr(spec.arg, "name", "")
    value = spec.arg.value if type(spec.arg).__name__ == "ConstantArgument" else name
    kind = str(getattr(spec.kind, "name", spec.kind)).lower()
    return SignatureSpec(kind=kind, name=name, target=spec.target, text=str(name or value), value=value)


def check_output_node(program: Any, records: ProgramViolations) -> None:
    """Check that the graph ends in an output node, which returns a tuple."""
    last = _last(program)
    if last is None or last.op != "output":
        observed = f"the last node is {last.op} {last.name}" if last is not None else "a graph without nodes"
        records.add("S13", "no-output-node", node=last, observed=observed, expected="an output node at the end")
    elif _read_returned(last) is None:
        observed = f"the graph returns a bare {type(last.args[0]).__name__}"
        records.add("S13", "not-a-tuple", node=last, observed=observed, expected="a tuple of nodes and constants")


def _last(program: Any) -> Any:
    return next(reversed(program.graph.nodes), None)


def _read_returned(last: Any) -> list[GraphOutput] | None:
    outputs = None if last is None or last.op != "output" else last.args[0] if last.args else ()
    if not isinstance(outputs, list | tuple):
        return None
    found = []
    for item in outputs:
        value: Any = getattr(item, "name", item)
        name = value if hasattr(item, "op") else ""
        found.append(GraphOutput(name=name, text=str(value), value=value, node=as_place(item if name else last)))
    return found


# The values of all graphs, and the symbols in them.
def graph_values(program: Any) -> Iterator[Value]:
    """Values of each node, part by part."""
    for path, module in program_graphs(program):
        for node in module.graph.nodes:
            for leaf in pytree.tree_leaves(node.meta.get("val")) if node.op != "output" else ():
                is_tensor = isinstance(leaf, torch.Tensor)
                sizes = leaf.shape if is_tensor else (leaf,)
                yield Value(
                    graph=path,
                    node=as_place(node),
                    name=node.name,
                    target=None if node.op == "placeholder" else operator_name(node.target),
                    rank=leaf.dim() if is_tensor else None,
                    dtype=dtype_name(leaf) if is_tensor else "",
                    device=str(leaf.device) if is_tensor else "",
                    symbols=frozenset(str(symbol) for size in sizes for symbol in free_symbols(size)),
                )


def free_symbols(size: Any) -> Any:
    """Symbols in a size or number."""
    return getattr(getattr(getattr(size, "node", None), "expr", None), "free_symbols", ())


def nameless_dtypes() -> set[str]:
    """Dtypes that the code generator has no name for."""
    try:
        from torch._inductor.codegen.cpp_utils import DTYPE_TO_ATEN
    except ImportError:
        return set()
    known = {item for item in vars(torch).values() if isinstance(item, torch.dtype)}
    return {str(item).removeprefix("torch.") for item in known - DTYPE_TO_ATEN.keys()}


def symbol_ranges(program: Any) -> dict[str, SizeRange]:
    """Bounds of each symbol."""
    constraints = program.range_constraints.items()
    return {str(name): SizeRange(low=_integer(found.lower), high=_integer(found.upper)) for name, found in constraints}


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def symbol_places(program: Any) -> Places:
    """Sizes of inputs that are a symbol, with those of the sample, by symbol."""
    examples, inputs = leaf_examples(program), user_inputs(program)
    found: dict[str, list[tuple[str, int | None]]] = {}
    for at, item in enumerate(inputs):
        sizes = getattr(examples[at], "shape", ()) if len(examples) == len(inputs) else ()
        for dim, size in enumerate(getattr(item.val, "shape", ())):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if getattr(expression, "is_symbol", False):
                sample = sizes[dim] if dim < len(sizes) else None
                found.setdefault(str(expression), []).append((f"{item.path}.shape[{dim}]", sample))
    return found


def check_state(program: Any, records: ProgramViolations) -> None:
    """Check writes, weights and inputs that are no tensors."""
    inputs = user_inputs(program)
    paths = {item.node.name: item.path for item in inputs if item.node is not None}
    check_mutations(program_signature(program), paths, _writes(program), records)
    values = {**program.state_dict, **program.constants}.items()
    tensors = {name: value for name, value in values if isinstance(value, torch.Tensor)}
    check_size({name: value.numel() * value.element_size() for name, value in tensors.items()}, records)
    for item in inputs:
        for kind, text in _non_tensor(item):
            check_leaf(
                NonTensorLeaf(kind=kind, path=item.path, node=item.node and as_place(item.node), text=text), records
            )


def _writes(program: Any) -> Iterator[InputWrite]:
    """Writes to placeholders by operators, also through views."""
    roots: dict[Any, str] = {node: node.name for node in program.graph.nodes if node.op == "placeholder"}
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        for argument, given in zip(node.target._schema.arguments, node.args, strict=False):
            alias = argument.alias_info
            if alias is None or not isinstance(given, torch.fx.Node) or given not in roots:
                continue
            # The result of a view, or of an operator in place, is the same memory.
            roots[node] = roots[given]
            if alias.is_write:
                yield InputWrite(node=as_place(node), target=operator_name(node.target), root=roots[given])


def _non_tensor(item: UserInput) -> Iterator[tuple[str, str]]:
    """Kind and text of an input; nothing for a tensor, and for a number that is a size of one."""
    from torch.export.graph_signature import ConstantArgument, CustomObjArgument

    given = item.spec.arg
    if isinstance(given, CustomObjArgument):
        yield "object", given.class_fqn
    elif isinstance(given, ConstantArgument):
        yield "constant", repr(given.value)
    elif isinstance(item.val, torch.SymInt | torch.SymFloat | torch.SymBool) and item.node.users:
        others = (node for node in item.node.graph.nodes if node.op == "placeholder" and node is not item.node)
        sizes = {
            symbol
            for node in others
            for size in getattr(node.meta.get("val"), "shape", ())
            for symbol in free_symbols(size)
        }
        if not set(free_symbols(item.val)) <= sizes:
            yield "symbol", f"{type(item.val).__name__.removeprefix('Sym').lower()} {item.val}"


# Names of the model's own source.
def name_in_source(node: Any, names: Container[str]) -> str | None:
    """What the model's own line calls the tensor that ``node`` takes by one of ``names``; None if it cannot be told.

    The line of ``F.instance_norm(x, mean, var)`` has the argument of the same name, that of ``mean.mul_(2)`` the
    object, and that of ``mean += 1`` or ``mean[0] = 1`` the target.
    """
    given = [*zip((one.name for one in node.target._schema.arguments), node.args, strict=False), *node.kwargs.items()]
    taken = next((key for key, value in given if getattr(value, "name", None) in names), None)
    code = _own_line(node)
    if taken is None or code is None:
        return None
    for part in ast.walk(code):
        if isinstance(part, ast.AugAssign | ast.Assign) and taken == "self":
            target = part.target if isinstance(part, ast.AugAssign) else part.targets[0]
            if isinstance(part, ast.AugAssign) or isinstance(target, ast.Subscript):
                return ast.unparse(target.value if isinstance(target, ast.Subscript) else target)
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Attribute):
            continue
        if part.func.attr.strip("_") != node.target._schema.name.partition("::")[2].strip("_"):
            continue
        function = getattr(torch.nn.functional, part.func.attr, None)
        parameters = list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
        places = [*zip(parameters, part.args, strict=False), *((one.arg, one.value) for one in part.keywords)]
        found = next((value for key, value in places if key == taken), part.func.value if taken == "self" else None)
        return ast.unparse(found) if found is not None else None
    return None


def _own_line(node: Any) -> ast.AST | None:
    """The innermost line of the stack of ``node`` that is not of torch, parsed; None where there is none."""
    lines = (node.meta.get("stack_trace") or "").splitlines()
    own = [at for at, line in enumerate(lines) if line.lstrip().startswith("File ") and "/torch/" not in line]
    if not own or own[-1] + 1 >= len(lines):
        return None
    text = lines[own[-1] + 1].strip()[:1000]
    for form in (text, f"{text}\n pass"):
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.parse(form)
    return None
