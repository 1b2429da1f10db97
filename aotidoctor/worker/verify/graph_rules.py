"""Check the nodes of a program's graph and of its subgraphs: rules G01 to G09, G11, A03 and A07.

The installed verifier itself decides whether an operator is allowed, for one node at a time: its list differs between
versions and dialects. Rules G06 to G08 are about the attributes that the graph reads from its module; G09 covers the
refusals of ``torch.fx.Graph.lint``, for all nodes instead of only the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from aotidoctor.program.archive_graph import source_line
from aotidoctor.program.value_rules import (
    SWITCHES,
    NodeCall,
    NodeLocation,
    ViolationCollector,
    add_custom,
    add_not_functional,
    add_operator_kind,
    add_val_missing,
    check_training,
)


# Violations by live nodes, each with the user's line that the node's stack trace names.
class ProgramViolations(ViolationCollector):
    """Violations found so far, added by nodes and targets of the graph itself."""

    def add(self, code: str, kind: str, *, node: Any = None, target: Any = None, **rest: Any) -> None:
        """Add one violation. ``node`` is a node of the graph or a name, ``target`` the thing that it calls or reads."""
        place = node if node is None or isinstance(node, NodeLocation | str) else as_place(node)
        super().add(code, kind, node=place, target=None if target is None else operator_name(target), **rest)


def as_place(node: Any) -> NodeLocation:
    """Name and source line of a node, as the rules take it."""
    trace = getattr(node, "meta", {}).get("stack_trace")
    line = source_line(trace.splitlines()) if isinstance(trace, str) else None
    return NodeLocation(name=getattr(node, "name", str(node)), where=line)


def operator_name(target: Any) -> str:
    """Name of an operator as in Python (``aten.add.Tensor``, ``operator.add``), or of any other target."""
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator | torch._ops.OpOverloadPacket):
        return str(target)
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    return f"{module.removeprefix('_')}.{name}" if module and name else type(target).__name__


def first_line(error: BaseException | str) -> str:
    """The first line of a message that is not empty."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:500]


# Rules G06 to G08.
def check_attribute(node: Any, module: Any, path: str, verifiers: Sequence[Any], records: ProgramViolations) -> None:
    """Check the attribute that a ``get_attr`` node of ``module`` reads."""
    add = partial(records.add, node=node, target=node.target, graph=path)
    if not isinstance(node.target, str):
        kind = type(node.target).__name__
        add(
            "G06",
            "attribute-name",
            target=kind,
            observed=f"a target that is a {kind}",
            expected="the attribute's name, as text",
        )
        return
    try:
        attribute = module
        for name in node.target.split("."):
            attribute = getattr(attribute, name)
    except AttributeError:
        observed = f"no attribute {node.target} in {path or 'the graph module'}"
        add("G06", "attribute-absent", observed=observed, expected="an existing attribute")
        return
    kind = type(attribute).__name__
    if kind == "LoweredBackendModule":
        _check_lowered(attribute, add)
        return
    if kind in ("AOTInductorEPModule", "AOTInductorRunnerWrapper"):
        return
    for verifier in verifiers:
        is_top = not path
        inner = getattr(verifier, "allowed_getattr_types_for_subgm", verifier.allowed_getattr_types)
        allowed = tuple(verifier.allowed_getattr_types() if is_top else inner())
        if not isinstance(attribute, allowed):
            names = ", ".join(item.__name__ for item in allowed)
            add("G07", "attribute-type", observed=f"{node.target} is a {kind}", expected=f"one of {names}")
            return


def _check_lowered(module: Any, add: Callable[..., None]) -> None:
    backend = getattr(module, "backend_id", None)
    if backend == "aoti" and hasattr(module, "original_module") and hasattr(module, "module_name"):
        return
    wanted = (("backend_id", str), ("processed_bytes", bytes), ("compile_specs", list))
    fields = [(name, getattr(module, name, None), kind) for name, kind in wanted]
    wrong = [f"{name} is a {type(value).__name__}" for name, value, kind in fields if not isinstance(value, kind)]
    if not hasattr(module, "original_module"):
        wrong.append("original_module does not exist")
    if wrong:
        observed = f"a lowered module of backend {backend!r} in which {', '.join(wrong)}"
        expected = "backend_id (str), processed_bytes (bytes), compile_specs (list) and original_module"
        add("G08", "lowered-module", observed=observed, expected=expected)


def check_lint(path: str, module: Any, records: ProgramViolations) -> None:
    """Check order, ownership and names of the nodes of one graph, then run ``lint`` itself."""
    before = records.counts.total()
    defined: set[Any] = set()
    names: set[str] = set()
    for node in module.graph.nodes:
        for argument in node._input_nodes:
            if argument.graph is not module.graph:
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
    try:
        module.graph.lint()
    except Exception as error:
        message = first_line(error)
        # Missing attributes and submodules, and targets of a wrong type, have rules of their own.
        others = ("references nonexistent attribute", "does not reference an nn.Module", "a str is expected")
        if records.counts.total() == before and not any(text in message for text in others):
            records.add("G09", "other", graph=path, observed=message, expected="a well-formed graph")


def _add(records: ProgramViolations, kind: str, node: Any, path: str, *, observed: str, expected: str) -> None:
    target = None if node.op == "output" else node.target
    records.add("G09", kind, node=node, target=target, graph=path, observed=observed, expected=expected)


# Rules G01 to G05 and G11.
def program_graphs(program: Any) -> Iterator[tuple[str, Any]]:
    """Path and module of every graph of ``program``; the path of the top is empty."""
    for path, module in program.graph_module.named_modules():
        if isinstance(module, torch.fx.GraphModule):
            yield path, module


def rule_call(path: str, node: Any) -> NodeCall:
    """A node and its target, as the rules take them."""
    return NodeCall(graph=path, node=as_place(node), target=operator_name(node.target))


def check_graph(program: Any, verifiers: Sequence[Any], records: ProgramViolations) -> None:
    """Check all graphs by the rules of all ``verifiers`` (instances)."""
    judges = [_Judge(verifier) for verifier in verifiers]
    for path, module in program_graphs(program):
        check_lint(path, module, records)
        for node in module.graph.nodes:
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
    for verifier in verifiers:
        refusal = _refusal(partial(verifier.check_additional, program.graph_module))
        if refusal is not None:
            _refused_by_dialect(verifier, None, "", refusal, records)


def _check_val(node: Any, path: str, records: ProgramViolations) -> None:
    if "val" not in node.meta:
        target = node.target
        if node.op == "call_function" and isinstance(target, torch._ops.OpOverload) and not target._schema.returns:
            return
        add_val_missing(rule_call(path, node), "no val in the node's meta", records)
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
    """Parts of ``val`` that the verifier would not accept."""
    from torch._export.verifier import CustomObjArgument

    plain = (int, bool, str, float, torch.memory_format, torch.dtype, torch.device, torch.layout)
    known = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, CustomObjArgument)
    if val is None or isinstance(val, plain + known):
        return
    # Torch 2.10 and later accept opaque objects without inspecting them.
    with suppress(ImportError):
        from torch._library.opaque_object import is_opaque_type

        if is_opaque_type(type(val)):
            return
    try:
        parts = list(val)
    except TypeError:
        yield val
        return
    for part in parts:
        yield from _bad_leaves(part)


def _check_target(node: Any, path: str, judges: Sequence[_Judge], records: ProgramViolations) -> None:
    for judge in judges:
        refusal = judge.refusal(node.target)
        if refusal is None:
            continue
        if "is not functional" in refusal:
            add_not_functional(rule_call(path, node), judge.verifier.dialect, records)
        elif "not an allowed operator type" in refusal:
            kind = type(node.target).__name__
            add_operator_kind(rule_call(path, node), kind, records, dialect=judge.verifier.dialect)
        else:
            _refused_by_dialect(judge.verifier, node, path, refusal, records)
        return


def _refused_by_dialect(verifier: Any, node: Any, path: str, refusal: str, records: ProgramViolations) -> None:
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
    """One verifier, applied to single operators; answers are cached, since a graph has few different ones."""

    def __init__(self, verifier: Any) -> None:
        self.verifier = verifier
        self._single = type(verifier)()
        # The check of the whole graph is made once, elsewhere.
        self._single.check_additional = lambda _module: None
        self._answers: dict[Any, str | None] = {}

    def refusal(self, target: Any) -> str | None:
        """Why a node that calls ``target`` is refused, None when it is not."""
        try:
            if target not in self._answers:
                self._answers[target] = self._check(target)
            return self._answers[target]
        except TypeError:  # not hashable
            return self._check(target)

    def _check(self, target: Any) -> str | None:
        graph = torch.fx.Graph()
        node = graph.create_node("call_function", len, (), {}, "asked")
        # Set afterwards: torch makes no node with a target that is not callable.
        node.target = target
        node.meta["val"] = 0
        graph.output((node,))
        module = torch.fx.GraphModule({}, torch.fx.Graph())
        # The setter would generate Python code, which not every target has.
        module._graph = graph
        return _refusal(lambda: self._single._check_graph_module(module))


def _refusal(check: Callable[[], object]) -> str | None:
    try:
        check()
    except Exception as error:
        return str(error) or type(error).__name__
    return None


# Kernels of operators.
COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")


def has_fake(operator: Any) -> bool:
    """Whether shapes and dtypes of its results can be computed without running it."""
    from torch._library.simple_registry import singleton

    name = operator.name()
    if has_kernel(name, *COMPOSITE):
        return True
    entry = singleton._data.get(operator._schema.name)
    fake = getattr(entry, "fake_impl", None)
    if fake is not None and fake.kernel is not None:
        return True
    defined = torch._library.custom_ops.OPDEFS.get(operator._schema.name)
    if defined is not None:
        return getattr(defined, "_abstract_fn", None) is not None or not operator._schema.returns
    # The entry of a removed fake kernel stays in the dispatcher.
    return fake is None and has_kernel(name, "Meta")


def has_kernel(name: str, *keys: str) -> bool:
    """Whether the operator ``name`` has a kernel under one of the dispatch keys."""
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)


# Rules A03 and A07.
_KEYS = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "meta": "Meta"}


def check_operators(program: Any, missing: list[str], records: ProgramViolations) -> None:
    """Check every operator of every graph, each once; training-mode ones at each place."""
    calls = list(operator_calls(program))
    for path, node in calls:
        check_training(rule_call(path, node), trains=_trains(node), found=records)
    _check_custom(calls, missing, records)


def operator_calls(program: Any) -> Iterator[tuple[str, Any]]:
    """Each call of an operator, with the path of its graph."""
    for path, module in program_graphs(program):
        for node in module.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                yield path, node


def _trains(node: Any) -> bool:
    """Whether the switch for training is True, given by position, by name, or by default."""
    for at, argument in enumerate(node.target._schema.arguments):
        if argument.name in SWITCHES:
            return (
                node.args[at] if at < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            ) is True
    return False


def _check_custom(calls: list[tuple[str, Any]], missing: list[str], records: ProgramViolations) -> None:
    from torch._library.utils import is_builtin

    seen: set[str] = set()
    for path, node in calls:
        name = node.target.name()
        if name in seen or is_builtin(node.target):
            continue
        seen.add(name)
        add_custom(NodeCall(graph=path, node=as_place(node), target=name), records)
        if name in missing:
            continue  # Its declaration here has no kernels at all.
        add = partial(records.add, "A03", node=node, target=name, graph=path)
        if not has_fake(node.target):
            expected = "a fake kernel: compiling the program calls it for shapes and dtypes"
            add("no-fake", observed=f"{name} has no fake kernel", expected=expected)
        device = device_of_call(node)
        key = _KEYS.get(device) if device is not None else None
        if key is not None and not has_kernel(name, key, *COMPOSITE):
            expected = f"a kernel for {device}, where its arguments are"
            add("no-kernel", observed=f"{name} has no kernel for {device}", expected=expected, device=device)


def device_of_call(node: Any) -> str | None:
    """The device of the first tensor among arguments and result; None without one."""
    leaves = pytree.tree_leaves((node.args, node.kwargs, node))
    vals = (leaf.meta.get("val") for leaf in leaves if isinstance(leaf, torch.fx.Node))
    return next((val.device.type for val in vals if isinstance(val, torch.Tensor)), None)
