"""What the JSON of a torch.export archive says: baked-in constants, custom operators, the call spec.

Only ``models/<name>.json`` is read. Nothing is deserialised as torch would: no tensors, no pickles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.json_types import JsonObject, as_list, as_object
from aotidoctor.model.operators import foreign
from aotidoctor.model.tree import walk_call
from aotidoctor.model.treespec import SpecError, parse_call
from aotidoctor.readers.package import program_facts
from aotidoctor.readers.package.program_functions import functions
from aotidoctor.readers.package.text import JsonError, as_text, parse_json

# Parsed JSON takes many times its size in memory.
MAX_JSON = 64 << 20

_MAX_DEPTH = 64


def parse_exported(name: str, data: bytes) -> ExportedFacts | None:
    """Facts of one program; None when the bytes are not the JSON of one."""
    document = program_document(data)
    return None if document is None else program_facts_of(name, document)


def program_document(data: bytes) -> JsonObject | None:
    """The JSON of a program; None when the bytes are not that."""
    try:
        program = as_object(parse_json(data))
    except JsonError:
        return None
    return program if as_object(program.get("graph_module")) else None


def program_facts_of(name: str, program: JsonObject) -> ExportedFacts:
    """Facts of the program with this JSON."""
    module = as_object(program.get("graph_module"))
    in_spec, out_spec = (_call_spec(module, which) for which in ("in_spec", "out_spec"))
    targets = Counter(_targets(as_object(module.get("graph")), 0))
    paths = leaf_paths(in_spec) if in_spec is not None else ()
    leaves = program_facts.leaves(module, paths)
    live, nodes = functions(module)
    return ExportedFacts(
        name=name,
        constant_inputs={leaf.path: leaf.value for leaf in leaves if leaf.value is not None},
        custom_ops=tuple(foreign(target for target in targets if target.startswith("torch.ops."))),
        in_spec=in_spec,
        ops={target.removeprefix("torch.ops."): count for target, count in targets.items()},
        torch_version=as_text(program.get("torch_version")) or None,
        out_spec=out_spec,
        schema=_schema(program),
        dialects=tuple(as_text(item) for item in as_list(program.get("verifiers"))),
        leaves=leaves,
        outputs=program_facts.outputs(module),
        constants=program_facts.constants(module),
        ranges=program_facts.ranges(program),
        functions=live,
        nodes=nodes,
    )


def leaf_paths(in_spec: str) -> tuple[str, ...]:
    """The user's path of every leaf of a serialised call spec, in flattening order; empty when it is not understood."""
    try:
        # Each takes more than a character: the size of the JSON bounds them.
        args, kwargs = parse_call(in_spec, MAX_JSON)
    except SpecError:
        return ()
    return tuple(path for path, _ in walk_call(args, kwargs))


def _call_spec(module: JsonObject, which: str) -> str | None:
    for entry in as_list(module.get("module_call_graph")):
        call = as_object(entry)
        if call.get("fqn") == "":
            return as_text(as_object(call.get("signature")).get(which)) or None
    return None


def _schema(program: JsonObject) -> str | None:
    version = as_object(program.get("schema_version"))
    parts = [version.get(key) for key in ("major", "minor")]
    return ".".join(map(str, parts)) if all(isinstance(part, int) for part in parts) else None


def _targets(graph: JsonObject, depth: int) -> Iterator[str]:
    """Targets of all nodes, also of the graphs that higher-order operators carry."""
    if depth > _MAX_DEPTH:
        return
    for item in as_list(graph.get("nodes")):
        node = as_object(item)
        yield as_text(node.get("target"))
        for argument in as_list(node.get("inputs")):
            inner = as_object(as_object(as_object(argument).get("arg")).get("as_graph"))
            if inner:
                yield from _targets(as_object(inner.get("graph")), depth + 1)
