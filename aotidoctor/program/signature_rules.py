"""Check the signature and state of an exported program: rules S01 to S12, A08, A09, A11 and L03.

The signature is compared with the graph's inputs and outputs, weights and constants. The rules about state cover
inputs that are written to, large weights, inputs that are no tensors, and lost parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

from aotidoctor.model.record import record
from aotidoctor.program.value_rules import NodeLocation, ViolationCollector

# Rules S01 to S12: signature.
_FORMS = {
    "parameter": ("S03", "parameter", "TensorArgument"),
    "buffer": ("S04", "buffer", "TensorArgument"),
    "tensor_constant": ("S05", "constant tensor", "TensorArgument"),
    "custom_obj": ("S06", "custom object", "CustomObjArgument"),
}
KINDS = ("user_input", *_FORMS, "token", "constant_input")
# Kinds of inputs that an output may be the new value of.
MUTATIONS = {"buffer_mutation": "buffer", "parameter_mutation": "parameter", "user_input_mutation": "user_input"}


@record
class SignatureSpec:
    """An input or output of the signature. ``kind`` is as the archive writes it, ``name`` that of the graph's value.

    ``argument`` is the class of the argument, ``target`` the name of the parameter, buffer or other object. ``named``:
    the placeholder must have the name. Outputs are compared by ``value`` and listed as ``text``.
    """

    kind: str
    name: str
    argument: str = ""
    target: str | None = None
    persistent: bool | None = None
    named: bool = False
    text: str = ""
    value: object = None


@record
class GraphOutput:
    """One output of the graph: a value by its ``name``, empty for a constant."""

    name: str
    text: str
    value: object
    node: NodeLocation | str


@record
class ModuleCall:
    """Names that a preserved submodule gives to its arguments and results."""

    fqn: str
    inputs: Sequence[str]
    outputs: Sequence[str]


@record
class ProgramState:
    """Weights by name, with their classes; constants; where else persistent buffers may be. None: unreadable."""

    weights: Mapping[str, str] | None
    constants: Iterable[str] | None
    kept: Iterable[str] | None


@record
class ProgramSignature:
    """A program's signature, graph and state. ``returned`` is None where the graph has no outputs to be counted.

    ``kinds`` are those of an input that exist, as the reader writes them.
    """

    placeholders: Sequence[NodeLocation]
    inputs: Sequence[SignatureSpec]
    outputs: Sequence[SignatureSpec]
    returned: Sequence[GraphOutput] | None
    calls: Sequence[ModuleCall]
    nodes: Mapping[str, NodeLocation]
    state: ProgramState
    kinds: Sequence[str] = KINDS
    end: NodeLocation | str = "output"


def check_signature(signature: ProgramSignature, found: ViolationCollector) -> None:
    """Check every input with its placeholder and its target, the outputs, and names in the module call graph."""
    placeholders, specs = signature.placeholders, signature.inputs
    same_count = len(placeholders) == len(specs)
    if not same_count:
        _input_count(placeholders, specs, found)
    for spec, place in zip(specs, placeholders if same_count else repeat(None), strict=False):
        if place is not None and place.name and spec.named and spec.name != place.name:
            observed = f"the signature has {spec.name} where the graph has {place.name}"
            found.add("S02", "input-name", node=place, target=spec.target, observed=observed, expected=place.name)
        _Input(spec, (place or spec.name) if spec.name else None, found).check(signature)
    if signature.returned is not None:
        _check_outputs(signature, signature.returned, found)
    for call in signature.calls:
        for kind, names in (("input", call.inputs), ("output", call.outputs)):
            for name in names:
                if name and name not in signature.nodes:
                    found.add(
                        "S12",
                        kind,
                        node=name,
                        target=call.fqn or "the whole module",
                        observed=f"{kind} {name} of module {call.fqn or '(root)'} is not a node of the graph",
                        expected="an existing node",
                    )


def _input_count(
    placeholders: Sequence[NodeLocation], specs: Sequence[SignatureSpec], found: ViolationCollector
) -> None:
    graph, names = [place.name for place in placeholders], [spec.name for spec in specs]
    lone = [place for place in placeholders if place.name and place.name not in names]
    absent = [name for name in names if name and name not in graph]
    found.add(
        "S01",
        "input-count",
        node=next(chain[NodeLocation | str](lone, absent), None),
        observed=f"{len(graph)} placeholders in the graph, {len(names)} inputs in the signature"
        + (f"; only in the graph: {', '.join(place.name for place in lone)}" if lone else "")
        + (f"; only in the signature: {', '.join(absent)}" if absent else ""),
        expected="an input of the signature for each placeholder, in order",
    )


class _Input:
    """One input of the signature, compared with the weights and constants."""

    def __init__(self, spec: SignatureSpec, node: NodeLocation | str | None, found: ViolationCollector) -> None:
        self.spec, self.node, self.found = spec, node, found

    def add(self, code: str, kind: str, observed: str, expected: str) -> None:
        self.found.add(code, kind, node=self.node, target=self.spec.target, observed=observed, expected=expected)

    def check(self, signature: ProgramSignature) -> None:
        """Apply the rule of its kind."""
        spec, state = self.spec, signature.state
        if spec.kind not in KINDS:
            self.add("S08", "input-kind", f"kind {spec.kind or '(none)'}", ", ".join(signature.kinds))
        elif spec.kind == "token" and spec.argument != "TokenArgument":
            form = f"that is a {spec.argument}" if spec.argument else "without a name"
            self.add("S07", "not-token", f"a token {form}", "a TokenArgument")
        elif spec.kind in _FORMS:
            code, what, form = _FORMS[spec.kind]
            if spec.argument != form:
                kind = "not-object" if spec.kind == "custom_obj" else "not-tensor"
                self.add(code, kind, f"a {what} that is a {spec.argument}", f"a {form}")
            if spec.target is None:
                self.add(code, "no-target", f"a {what} without the name of what it represents", "its name")
            if spec.kind == "buffer" and spec.persistent is None:
                observed = f"buffer {spec.target} does not declare whether it is persistent"
                self.add("S04", "no-persistence", observed, "True or False")
            if spec.target is not None:
                self._check_value(spec.target, state)

    def _check_value(self, target: str, state: ProgramState) -> None:
        code, what, _ = _FORMS[self.spec.kind]
        match self.spec.kind:
            case "parameter" if state.weights is not None:
                if target not in state.weights:
                    self.add("S03", "absent", f"parameter {target} is not in the state dict", "its value")
                elif state.weights[target] != "Parameter":
                    observed = f"{target} is a {state.weights[target]}"
                    self.add("S03", "not-parameter", observed, "a torch.nn.Parameter")
            case "buffer" if state.weights is not None:
                persistent, kept = self.spec.persistent, state.kept
                if persistent is True and target not in state.weights and kept is not None and target not in kept:
                    self.add("S04", "absent", f"persistent buffer {target} is not in the state dict", "its value")
                if persistent is False and target in state.weights:
                    observed = f"the state dict contains {target}, which is not persistent"
                    self.add("S04", "unwanted", observed, "no entry: it is among the constants")
            case "tensor_constant" | "custom_obj" if state.constants is not None and target not in state.constants:
                self.add(code, "absent", f"{what} {target} is not among the program's constants", "its value")


def _check_outputs(signature: ProgramSignature, returned: Sequence[GraphOutput], found: ViolationCollector) -> None:
    """Check outputs in the verifier's order: tokens, then mutations, then the user's results."""
    specs = signature.outputs
    if len(returned) != len(specs):
        found.add(
            "S09",
            "output-count",
            node=signature.end,
            observed=f"the graph returns {len(returned)} ({', '.join(item.text for item in returned)}), "
            f"the signature has {len(specs)} ({', '.join(spec.text for spec in specs)})",
            expected="an output of the signature for each that the graph returns, in order",
        )
        return
    of_kind = {kind: [spec for spec in specs if spec.kind == kind and spec.target is not None] for kind in MUTATIONS}
    mutated = {spec.name: spec for kind in reversed(MUTATIONS) for spec in of_kind[kind]}
    start = sum(spec.kind == "token" for spec in specs)
    end = start + sum(len({spec.name for spec in mutations}) for mutations in of_kind.values())
    for item in returned[start:end]:
        _check_mutation(item, mutated.get(item.name), signature.inputs, found)
    users = [spec for spec in specs if spec.kind in ("user_output", "loss_output")]
    for item, spec in zip(returned[end:], users, strict=False):
        if item.value != spec.value:
            observed = f"the graph returns {item.text} where the signature has {spec.text}"
            found.add("S11", "output-order", node=item.node, observed=observed, expected=spec.text)


def _check_mutation(
    item: GraphOutput, spec: SignatureSpec | None, inputs: Sequence[SignatureSpec], found: ViolationCollector
) -> None:
    if spec is None:
        observed = f"{item.text} is among the new values of inputs but is the value of none"
        expected = "new values of buffers, parameters and inputs first, then the results"
        found.add("S10", "stray", node=item.node, observed=observed, expected=expected)
        return
    kind = MUTATIONS[spec.kind]
    known = [(one.name if kind == "user_input" else one.target) or "" for one in inputs if one.kind == kind]
    target, what = spec.target or "", kind.replace("_", " ")
    if target not in known:
        observed = f"{item.text} is the new value of {what} {target}, which does not exist"
        expected = f"one of {', '.join(known) or f'the {what}s (there are none)'}"
        found.add("S10", kind.replace("_", "-"), node=item.node, target=target, observed=observed, expected=expected)


# Rules A08, A09, A11 and L03: state.
LARGE = 2_000_000_000
_EXPECTED = {
    "buffer": "a stateless model, if calls should be independent",
    "parameter": "parameters that are only read: the package gives each one that changes as one more output",
}


@record
class InputWrite:
    """A write by ``node`` to the graph's input ``root``, by calling ``target``."""

    node: NodeLocation
    target: str
    root: str


@record
class NonTensorLeaf:
    """A leaf of the call that is not a tensor: ``kind`` is ``object``, ``constant`` or ``symbol``.

    ``text`` is the class of an object, the value of a constant, and what is known of a symbol.
    """

    kind: str
    path: str
    node: NodeLocation | str | None
    text: str = ""


def check_mutations(
    signature: ProgramSignature, paths: Mapping[str, str], writes: Iterable[InputWrite], found: ViolationCollector
) -> None:
    """Check mutations by the signature, then by the operators. ``paths`` are the user's, by the names of inputs."""
    for spec in signature.outputs:
        if spec.kind in MUTATIONS:
            kind, name = MUTATIONS[spec.kind], spec.target or ""
            name = paths.get(name, name) if kind == "user_input" else name
            _add_write(kind, name, signature.nodes.get(spec.name), "the graph's signature", found)
    pairs = zip(signature.placeholders, signature.inputs, strict=False)
    roles = {place.name: (spec.kind, spec.target or "") for place, spec in pairs}
    for write in writes:
        kind, name = roles.get(write.root, ("", ""))
        if kind in MUTATIONS.values():
            name = paths.get(write.root, write.root) if kind == "user_input" else name
            _add_write(kind, name, write.node, write.target, found)


def _add_write(kind: str, name: str, node: NodeLocation | None, by: str, found: ViolationCollector) -> None:
    if kind == "user_input":
        observed = f"{name} is written to ({by})"
        expected = "inputs that are only read: the package writes into the caller's tensors"
        found.add("A08", "input-mutation", node=node, target=name, observed=observed, expected=expected)
    else:
        observed = f"each call changes {name}"
        found.add("A08", f"{kind}-mutation", node=node, target=name, observed=observed, expected=_EXPECTED[kind])


def check_size(sizes: Mapping[str, int], found: ViolationCollector) -> None:
    """Check the total of ``sizes``, bytes of weights and constants by name."""
    total = sum(sizes.values())
    if total > LARGE:
        largest = max(sizes, key=lambda name: sizes[name])
        observed = f"{total:,} bytes of weights and constants, the largest {largest} with {sizes[largest]:,}"
        expected = f"at most {LARGE:,} bytes, which go into the library itself"
        found.add("A09", "large-constants", target=largest, observed=observed, expected=expected, bytes=total)


def check_leaf(leaf: NonTensorLeaf, found: ViolationCollector) -> None:
    """Report a leaf that the package cannot be called with."""
    match leaf.kind:
        case "object":
            kind, observed = "object-input", f"{leaf.path} is a custom object ({leaf.text})"
            expected = "tensors: the package takes only tensors"
        case "constant":
            kind, observed = "constant-input", f"{leaf.path} = {leaf.text} is part of the program"
            expected = "the same value at each call: a different one is ignored"
        case _:
            more = f" ({leaf.text})" if leaf.text else ""
            kind, observed = "symbolic-input", f"{leaf.path} is a number that may change{more}"
            expected = "a tensor, or a size of a tensor: the package is called with tensors only"
    found.add("A11", kind, node=leaf.node, target=leaf.path, observed=observed, expected=expected)


def add_missing_part(what: str, observed: str, found: ViolationCollector) -> None:
    """Report ``weights``, ``constants`` or ``sample-inputs`` that the archive lacks."""
    expected = f"the {what.replace('-', ' ')} of the program"
    found.add("L03", what, target=what, observed=observed, expected=expected)
