"""Find inputs that export took for another one, because one tensor was the example of both.

``torch.export.export(model, (x, x))``: the graph reads the last of them wherever the model reads any of them, and the
others are never read. An input that does nothing in the model looks alike. Three signs together tell them apart: the
examples in the archive are one tensor, the program never reads this input, and a line of the model that it was made
from names it, for more than its shape or dtype. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from aotidoctor.model.artifact import ProgramArchive
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.record import JsonValue, as_list, as_object
from aotidoctor.readers.package.blob import as_text
from aotidoctor.readers.package.exported_program import MOST_NODES, read_names

_MOST_LINES = 20_000
_IDENTIFIER = re.compile(
    r"\b([A-Za-z_]\w{0,200})\b(?!\s?\.(?:shape|size|dtype|device|ndim|dim|layout|numel|is_\w{1,20})\b)"
)


def merged_inputs(
    archive: ProgramArchive, read_examples: Callable[[ProgramArchive], Mapping[str, TensorDesc]]
) -> dict[str, str]:
    """The path of each such input, with the path of the input that stands in its place.

    ``read_examples`` gives the archive's example inputs; it is called where the other two signs are there.
    """
    module = as_object(archive.document.get("graph_module"))
    read = read_names(module)
    tensors = [leaf for leaf in archive.facts.leaves if leaf.kind == "tensor"]
    unread = [leaf for leaf in tensors if leaf.name not in read]
    if not unread or len(unread) == len(tensors):
        return {}
    nodes = as_list(as_object(module.get("graph")).get("nodes"))[:MOST_NODES]
    named = {name for line in _model_lines(nodes) for name in _IDENTIFIER.findall(line[:2000])}
    unread = [leaf for leaf in unread if leaf.name in named]
    examples = read_examples(archive) if unread else {}
    found = {}
    for leaf in unread:
        own = examples.get(leaf.path)
        twins = [
            other.path
            for other in tensors
            if other.name in read and own is not None and _is_same(own, examples.get(other.path))
        ]
        if twins:
            found[leaf.path] = twins[-1]
    return found


def _model_lines(nodes: Sequence[JsonValue]) -> set[str]:
    """The lines of source code that the nodes come from."""
    lines: set[str] = set()
    for node in nodes:
        trace = as_text(as_object(as_object(node).get("metadata")).get("stack_trace"))
        lines.update(line for line in trace.splitlines() if not line.lstrip().startswith("File "))
        if len(lines) > _MOST_LINES:
            break
    return lines


def _is_same(one: TensorDesc, other: TensorDesc | None) -> bool:
    return (
        other is not None
        and one.storage is not None
        and one.storage == other.storage
        and (one.storage_offset, one.shape, one.stride) == (other.storage_offset, other.shape, other.stride)
    )
