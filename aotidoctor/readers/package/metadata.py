"""The JSON files of a model: device metadata, proxy-executor nodes, kernel provenance.

``problem`` texts begin with a fixed word, so that checks need not read prose: ``not-json``, ``not-object``,
``not-string``, ``no-nodes``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from aotidoctor.model.artifact import ExternNode, Metadata
from aotidoctor.model.json_types import JsonValue, as_list, as_object
from aotidoctor.readers.package.text import JsonError, as_text, clean, parse_json

SUFFIX = "_metadata.json"
# PyTorch writes four or five; each is looked up here.
MAX_FOLDERS = 64
LONGEST_PATH = 4096
# That of ``model.stamp``, whose import few packages need.
STAMP_KEY = "AOTIDOCTOR_STAMP"


def parse_metadata(member: str, data: bytes | None) -> Metadata:
    """One ``*_metadata.json``. Values that are no strings appear as JSON text, with a problem."""
    if data is None:
        return Metadata(member=member, problem="not-json: it could not be read")
    try:
        parsed = parse_json(data)
    except JsonError as error:
        return Metadata(member=member, problem=f"not-json: {error}")
    if not isinstance(parsed, dict):
        return Metadata(member=member, problem=f"not-object: a JSON {type(parsed).__name__}")
    values = {
        clean(key): clean(value) if isinstance(value, str) else json.dumps(value) for key, value in parsed.items()
    }
    wrong = [clean(key) for key, value in parsed.items() if not isinstance(value, str)]
    problem = f"not-string: {', '.join(wrong)}" if wrong else None
    return Metadata(member=member, values=values, problem=problem, stamp=values.pop(STAMP_KEY, None))


def parse_extern_nodes(data: bytes | None) -> tuple[tuple[ExternNode, ...], str | None]:
    """Nodes of the proxy-executor JSON, in call order, and a problem."""
    if data is None:
        return (), "not-json: it could not be read"
    try:
        parsed = parse_json(data)
    except JsonError as error:
        return (), f"not-json: {error}"
    if not isinstance(parsed, dict):
        return (), f"not-object: a JSON {type(parsed).__name__}"
    if not isinstance(parsed.get("nodes"), list):
        return (), "no-nodes: there is no list of nodes"
    return tuple(_extern_node(node) for node in as_list(parsed["nodes"])), None


def parse_kernel_information(data: bytes | None) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """``kernel:handle`` to ``stack_traces``, ``post_grad_nodes`` and ``pre_grad_nodes``; empty when unreadable."""
    try:
        parsed = as_object(parse_json(data or b""))
    except JsonError:
        return {}
    return {
        clean(kernel): {clean(key): tuple(as_text(item) for item in as_list(value)) for key, value in facts.items()}
        for kernel, facts in parsed.items()
        if isinstance(facts, dict)
    }


def parse_build_folders(data: bytes | None) -> tuple[str, ...]:
    """The absolute folders of headers and libraries in one ``*_flags.json``; empty when unreadable."""
    try:
        parsed = as_object(parse_json(data or b""))
    except JsonError:
        return ()
    named = [as_text(folder) for key in ("include_dirs", "libraries_dirs") for folder in as_list(parsed.get(key))]
    return tuple(folder for folder in named[:MAX_FOLDERS] if folder.startswith("/") and len(folder) <= LONGEST_PATH)


def argument_kind(argument: JsonValue) -> str:
    """``tensor`` of ``{"as_tensor": {...}}``; ``unknown`` for anything that is not such a union."""
    keys = list(as_object(argument))
    return clean(keys[0]).removeprefix("as_") if len(keys) == 1 else "unknown"


def _extern_node(value: JsonValue) -> ExternNode:
    outer = as_object(value)
    node = as_object(outer.get("node"))
    return ExternNode(
        name=as_text(outer.get("name")),
        target=as_text(node.get("target")),
        argument_names=tuple(as_text(as_object(item).get("name")) for item in as_list(node.get("inputs"))),
        output_kinds=tuple(argument_kind(item) for item in as_list(node.get("outputs"))),
        output_names=tuple(name for item in as_list(node.get("outputs")) for name in _tensor_names(item)),
    )


def _tensor_names(output: JsonValue) -> list[str]:
    """Names of the tensors in one output: of ``as_tensor``, ``as_tensors`` or ``as_optional_tensor``."""
    union = as_object(output)
    inner = as_object(union.get("as_optional_tensor")) or union
    found = [inner.get("as_tensor"), *as_list(inner.get("as_tensors"))]
    return [as_text(as_object(item).get("name")) for item in found if item is not None]
