"""Rule L02: operators of the program that nobody has registered here.

Each is recorded; then it is declared with the arguments and results that the archive shows, and without any kernel, so
that the program can be rebuilt around it and the other rules get their turn. Nothing is ever run in this process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from aotidoctor.worker.verify.records import Records

_TYPES = {
    "as_tensor": "Tensor",
    "as_tensors": "Tensor[]",
    "as_int": "SymInt",
    "as_sym_int": "SymInt",
    "as_ints": "SymInt[]",
    "as_sym_ints": "SymInt[]",
    "as_float": "float",
    "as_sym_float": "float",
    "as_floats": "float[]",
    "as_bool": "bool",
    "as_sym_bool": "bool",
    "as_bools": "bool[]",
    "as_string": "str",
    "as_strings": "str[]",
    "as_none": "Tensor?",
    "as_optional_tensor": "Tensor?",
    "as_optional_tensors": "Tensor?[]",
    "as_scalar_type": "ScalarType",
    "as_memory_format": "MemoryFormat",
    "as_layout": "Layout",
    "as_device": "Device",
}
_libraries: list[Any] = []


def declare_missing(serialized: Any, records: Records) -> list[str]:
    """Names (``ns::op.overload``) of the operators that are missing; most of them are declared afterwards."""
    missing: dict[str, Any] = {}
    for node in _nodes(serialized.graph_module.graph):
        name = _qualified(node.target)
        if name is not None and name not in missing and not _is_registered(node.target):
            missing[name] = node
    for name, node in missing.items():
        output = next((item.value.name for item in node.outputs if hasattr(item.value, "name")), None)
        records.add(
            "L02",
            "operator-missing",
            node=output,
            target=name,
            observed=f"operator {name} is not registered in this process",
            expected="an operator that --setup or --custom-op-library registers",
        )
        # A schema that cannot be guessed shows as a program that cannot be rebuilt.
        with contextlib.suppress(Exception):
            _declare(name, node)
    return list(missing)


def _nodes(graph: Any) -> Iterator[Any]:
    """Nodes of a serialised graph and of the graphs that it passes to higher-order operators."""
    for node in graph.nodes:
        yield node
        for argument in node.inputs:
            if argument.arg.type == "as_graph":
                yield from _nodes(argument.arg.value.graph)


def _qualified(target: str) -> str | None:
    """``ns::op.overload`` of ``torch.ops.ns.op.overload``; None for functions and higher-order operators."""
    parts = target.split(".")
    if not target.startswith("torch.ops.") or len(parts) != 5 or parts[2] == "higher_order":
        return None
    return f"{parts[2]}::{parts[3]}" + ("" if parts[4] == "default" else f".{parts[4]}")


def _is_registered(target: str) -> bool:
    import torch

    found: Any = torch
    for name in target.split(".")[1:]:
        try:
            found = getattr(found, name)
        except (AttributeError, RuntimeError):  # noqa: PERF203 - an operator may be gone at any step of its name
            return False
    return isinstance(found, torch._ops.OpOverload)


def _declare(name: str, node: Any) -> None:
    import torch

    positional = [_argument(item) for item in node.inputs if not _is_keyword(item)]
    keywords = [_argument(item) for item in node.inputs if _is_keyword(item)]
    given = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
    results = [_TYPES[item.type] for item in node.outputs if item.type != "as_none"]
    namespace, _, short = name.partition("::")
    library = torch.library.Library(namespace, "FRAGMENT")  # kept: it goes with the object
    library.define(f"{short}({given}) -> ({', '.join(results)})")
    _libraries.append(library)


def _argument(item: Any) -> str:
    return f"{_TYPES[item.arg.type]} {item.name}"


def _is_keyword(item: Any) -> bool:
    """The kind of an argument is told since torch 2.7."""
    kind = getattr(item, "kind", None)
    return getattr(kind, "name", "") == "KEYWORD"
