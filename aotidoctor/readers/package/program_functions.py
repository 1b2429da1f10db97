"""The functions of an exported program that its outputs depend on: which node computes which, in which mode.

A node counts where a value leads from an input of the user to it and from it to an output: what does not depend on an
input is folded into a constant when the program is compiled, and what leads nowhere is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.json_types import JsonObject, as_list, as_object
from aotidoctor.readers.package.program_facts import names_in, specs_of
from aotidoctor.readers.package.text import as_text

MOST_NODES = 200_000


def functions(module: JsonObject) -> tuple[Mapping[str, str], frozenset[str]]:
    """Live nodes, by name: ``gelu_3`` to ``aten.gelu``, with its mode where there is one (``aten.gelu(tanh)``).

    And the names of all nodes and of their results.
    """
    nodes = [as_object(node) for node in as_list(as_object(module.get("graph")).get("nodes"))[:MOST_NODES]]
    # Names of parameters are among them, too, and do no harm.
    reads = [set(names_in(node.get("inputs"))) for node in nodes]
    makes = [{*names_in(node.get("outputs")), as_text(node.get("name"))} - {""} for node in nodes]
    fed = set(names_in([spec.get("user_input") for spec in specs_of(module, "input_specs")]))
    for read, made in zip(reads, makes, strict=True):
        if read & fed:
            fed |= made
    wanted = set(names_in([*specs_of(module, "output_specs")]))
    for read, made in zip(reversed(reads), reversed(makes), strict=True):
        if made & wanted:
            wanted |= read
    live = {
        name: _function(node)
        for node, made in zip(nodes, makes, strict=True)
        if made & fed & wanted and as_text(node.get("target")).startswith("torch.ops.aten.")
        for name in made
    }
    return live, frozenset().union(*makes)


def _function(node: JsonObject) -> str:
    mode = ""
    for item in map(as_object, as_list(node.get("inputs"))):
        if item.get("name") == "approximate":
            mode = f"({as_text(as_object(item.get('arg')).get('as_string'))})"
    return ".".join(as_text(node.get("target")).split(".")[2:4]) + mode
