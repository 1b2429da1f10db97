"""Judge an exported program from its JSON alone, without torch, by the same codes as the child.

It sees names where the child sees operators: whether one changes its arguments is known only of PyTorch's own, and
whether one is registered, has a fake kernel or a C shim is unknown. ``StaticReading`` names the rules that cannot be
checked in this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from aotidoctor.model.artifact import ProgramArchive, ProgramLeaf
from aotidoctor.model.evidence import NotChecked, Violation, list_names
from aotidoctor.model.record import JsonValue, as_list, as_object, record
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.program.archive_graph import (
    NAMELESS,
    SerialisedGraph,
    Union,
    argument_name,
    as_text,
    check_graph,
    check_operators,
    graph_values,
    may_return_view,
    parse_graphs,
    parse_union,
    symbol_places,
    symbol_ranges,
    value_names,
    written_arguments,
)
from aotidoctor.program.signature_rules import (
    KINDS,
    GraphOutput,
    InputWrite,
    ModuleCall,
    NonTensorLeaf,
    ProgramSignature,
    ProgramState,
    SignatureSpec,
    add_missing_part,
    check_leaf,
    check_mutations,
    check_signature,
    check_size,
)
from aotidoctor.program.value_rules import (
    NodeLocation,
    ViolationCollector,
    add_merged,
    check_devices,
    check_dtypes,
    check_symbols,
)
from aotidoctor.readers.inputs.read_inputs import read_examples
from aotidoctor.readers.package.exported_program import merged_inputs

# Signature.
_ARGUMENTS = {"custom_obj": "CustomObjArgument", "token": "TokenArgument"}


def parse_signature(archive: ProgramArchive, top: SerialisedGraph) -> ProgramSignature:
    """Read the signature. An archive shows an object's class only by its kind, and inputs have no source line."""
    module = as_object(archive.document.get("graph_module"))
    raw = as_object(module.get("signature"))
    placeholders = [NodeLocation(name=argument_name(item)) for item in top.inputs]
    nodes = {item.name: item for item in (*placeholders, *top.nodes)}
    nodes.update({name: node for node in top.nodes for item in node.outputs for name in value_names(item)})
    returned = [(item, argument_name(item)) for item in top.outputs]
    entries = [as_object(item) for item in as_list(module.get("module_call_graph"))]
    # None at all where the archive lacks them, None where they cannot be read.
    weights = {} if archive.weights is None and archive.weights_pickle is None else archive.weights
    constants = {} if archive.constants is None and archive.constants_pickle is None else archive.constants
    classes = {name: "Parameter" if item.parameter else "Tensor" for name, item in (weights or {}).items()}
    return ProgramSignature(
        placeholders=placeholders,
        inputs=[_spec(item) for item in as_list(raw.get("input_specs"))],
        outputs=[_spec(item) for item in as_list(raw.get("output_specs"))],
        returned=[
            GraphOutput(name=name, text=name or item.kind, value=name or item, node=nodes.get(name, name or "output"))
            for item, name in returned
        ],
        calls=[
            ModuleCall(
                fqn=as_text(entry.get("fqn")),
                inputs=_argument_names(as_object(entry.get("signature")).get("inputs")),
                outputs=_argument_names(as_object(entry.get("signature")).get("outputs")),
            )
            for entry in entries
        ],
        nodes=nodes,
        state=ProgramState(weights=None if weights is None else classes, constants=constants, kept=constants),
    )


def _argument_names(values: JsonValue) -> list[str]:
    return [argument_name(parse_union(item)) for item in as_list(values)]


def _spec(item: JsonValue) -> SignatureSpec:
    kind, inner = next(iter(as_object(item).items()), ("", None))
    kind, value = as_text(kind), as_object(inner)
    given = (
        parse_union(value.get("arg"))
        if kind in ("user_input", "user_output")
        else Union(kind="", value=value.get("arg"))
    )
    name = as_text(value.get("name")) if kind == "constant_input" else argument_name(given)
    persistent = value.get("persistent")
    return SignatureSpec(
        kind=kind,
        name=name,
        argument="" if kind == "token" and not name else _ARGUMENTS.get(kind, "TensorArgument"),
        target=as_text(value.get(f"{kind.removesuffix('_mutation')}_name")) or None,
        persistent=persistent if isinstance(persistent, bool) else None,
        named=kind in KINDS and kind != "constant_input",
        text=name or given.kind or "a constant",
        value=name or given,
    )


# State that the package changes, carries and drops, and parts that the archive has lost.
_SYMBOL = re.compile(r"\b(?:zuf|zf|[suz])\d+\b")


def check_state(
    archive: ProgramArchive, signature: ProgramSignature, top: SerialisedGraph, found: ViolationCollector
) -> None:
    """Check mutations, sizes, lost parts of the archive, and inputs that are no tensors."""
    paths = {leaf.name: leaf.path for leaf in archive.facts.leaves if leaf.name}
    check_mutations(signature, paths, _writes(top), found)
    lists = (archive.weights or {}, archive.constants or {})
    stored = {name: payload.stored for listed in lists for name, payload in listed.items()}
    sizes = {name: ITEMSIZE.get(item.dtype or "", 0) * prod(item.shape or ()) for name, item in stored.items()}
    check_size(sizes, found)
    for what, payloads, pickle in (
        ("weights", archive.weights, archive.weights_pickle),
        ("constants", archive.constants, archive.constants_pickle),
    ):
        if payloads is None and pickle is None:
            add_missing_part(what, f"the archive has no list of its {what}, or an unreadable one", found)
        lost = [name for name, payload in (payloads or {}).items() if payload.member is None]
        if lost:
            add_missing_part(what, f"the archive has no member with the bytes of {list_names(lost, 3)}", found)
    if not archive.has_samples:
        add_missing_part("sample-inputs", "the archive has no sample inputs", found)
    for leaf in archive.facts.leaves:
        if leaf.kind == "constant" and leaf.value is not None:
            check_leaf(NonTensorLeaf(kind="constant", path=leaf.path, node=leaf.name, text=leaf.value), found)
        elif leaf.kind == "symbol" and _is_lost(archive, leaf, top):
            check_leaf(NonTensorLeaf(kind="symbol", path=leaf.path, node=leaf.name), found)


def _writes(top: SerialisedGraph) -> Iterator[InputWrite]:
    """Writes of PyTorch's operators to an input, also through views of it."""
    roots = {name: name for item in top.inputs if (name := argument_name(item))}
    for node in top.nodes:
        places = written_arguments(node)
        for at in (*places, 0) if may_return_view(node) else places:
            root = roots.get(argument_name(node.inputs[at][1])) if at < len(node.inputs) else None
            if root is None:
                continue
            if at in places:
                yield InputWrite(node=node, target=node.target, root=root)
            for item in node.outputs:
                roots.setdefault(argument_name(item), root)


def _is_lost(archive: ProgramArchive, leaf: ProgramLeaf, top: SerialisedGraph) -> bool:
    """Whether a number is used and cannot be derived from the size of an input."""
    used = any(argument_name(given) == leaf.name for node in top.nodes for _, given in node.inputs)
    sizes = {
        symbol
        for other in archive.facts.leaves
        if other.tensor is not None
        for size in other.tensor.shape or ()
        for symbol in _SYMBOL.findall(size)
    }
    return used and not set(_SYMBOL.findall(str(top.numbers.get(leaf.name)))) <= sizes


# All rules.
NAME = "verify_static"
NEWEST_SCHEMA = (8, 20)
"""Newest known format: that of torch 2.13."""

_PARTLY = {
    "G04": "for operators other than PyTorch's own, the name does not show whether they change their arguments",
    "A08": "for operators other than PyTorch's own, the name does not show whether they change their arguments",
    "A03": "custom operators are listed; whether they are registered and have fake kernels takes torch",
}
_NEVER = {
    "G02": "the archive does not contain the vals themselves",
    "G05": "an archive cannot contain such nodes",
    "G06": "an archive cannot contain such nodes",
    "G07": "an archive cannot contain such nodes",
    "G08": "an archive cannot contain such nodes",
    "G09": "the order of nodes is checked by torch as it rebuilds the graph",
    "G10": "dialects are registered with the installed torch",
    "G11": "dialects are registered with the installed torch",
    "G12": "only the installed verifier can show what else it refuses",
    "S13": "an archive cannot contain such a graph",
    "A02": "the list of C shims is the installed torch's",
    "A05": "the sample inputs are a pickle",
    "A12": "only torch can show whether it would decompose the program",
    "L01": "only torch can show whether it would rebuild the program",
    "L02": "operators are registered with the installed torch",
    "L04": "no torch to compare with",
}


@record
class StaticReading:
    """Result of reading the archive alone. ``not_checked`` names the rules that it covers in part or not at all."""

    violations: tuple[Violation, ...]
    not_checked: tuple[NotChecked, ...]


def judge_static(archive: ProgramArchive) -> StaticReading:
    """Apply all rules to the archive of one program."""
    found = ViolationCollector()
    everything = parse_graphs(archive.document)
    top: SerialisedGraph = everything[0]
    for graph in everything:
        check_graph(graph, archive.facts.dialects, found)
    signature = parse_signature(archive, top)
    check_signature(signature, found)
    given = [value for graph in everything for value in graph_values(graph)]
    check_devices(given, found)
    check_dtypes(given, {leaf.name for leaf in archive.facts.leaves}, NAMELESS, found)
    check_symbols(symbol_ranges(archive, everything), symbol_places(archive, top), given, found)
    check_operators(everything, found)
    check_state(archive, signature, top, found)
    found.items.extend(merged_violations(archive))
    notes = {**_NEVER, **_PARTLY, **_unreadable_lists(archive)}
    return StaticReading(
        violations=tuple(found.items),
        not_checked=(*(_note(code, why) for code, why in notes.items()), *_schema(archive)),
    )


def merged_violations(archive: ProgramArchive) -> list[Violation]:
    """Inputs that export took for another one."""
    found = ViolationCollector()
    for path, other in merged_inputs(archive, read_examples).items():
        add_merged(path, other, found)
    return found.items


def _note(code: str, why: str) -> NotChecked:
    return NotChecked(code=f"VERIFY-{code}", name=NAME, reason=why)


def _unreadable_lists(archive: ProgramArchive) -> dict[str, str]:
    """Rules that take a list of weights or constants, where there is one that cannot be read."""
    found = {}
    for codes, listed, pickle, what in (
        (("S03", "S04"), archive.weights, archive.weights_pickle, "weights"),
        (("S05", "S06"), archive.constants, archive.constants_pickle, "constants"),
    ):
        if listed is None and pickle is not None:
            found.update(dict.fromkeys(codes, f"the {what} of the archive cannot be read"))
    if found:
        found["A09"] = "the sizes of weights and constants are unknown"
    return found


def _schema(archive: ProgramArchive) -> list[NotChecked]:
    text = archive.facts.schema
    numbers = tuple(int(part) for part in re.findall(r"\d{1,6}", text or ""))[:2]
    if len(numbers) < 2:
        return [_note("L04", "the archive does not record the version of its format")]
    if numbers > NEWEST_SCHEMA:
        newest = ".".join(map(str, NEWEST_SCHEMA))
        reason = f"format {text} is newer than {newest}, the newest known format: new fields were not read"
        return [_note("L04", reason)]
    return []
