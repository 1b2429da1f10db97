"""What the compiled code takes for granted about the results of custom operators.

A shape and strides are written beside each call, for the checks that AOTI_RUNTIME_CHECK_INPUTS turns on; the element
type shows in the pointer that the next kernel takes. Nothing in a package compares them with what the operator gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.artifact import ExternNode
from aotidoctor.model.c10 import element_dtype
from aotidoctor.model.contract import CustomCall, PromisedResult
from aotidoctor.readers.contract.body_records import Assertion, Body, RawCall
from aotidoctor.readers.contract.kernels import arguments_of, node_index

_POINTER = re.compile(r"\((?:const )?([\w:<>]+)\*\)\((\w+)\.data_ptr\(\)\)")
_NAME = re.compile(r"\b[a-z]+\d[\w]*\b")


def read_custom_calls(body: Body, nodes: Sequence[ExternNode]) -> tuple[CustomCall, ...]:
    """One entry per call of the proxy executor, in call order."""
    asserted = {item.name: item for item in body.assertions}
    found: list[CustomCall] = []
    known: dict[str, PromisedResult] = {}
    for at, call in enumerate(body.calls):
        index = node_index(call)
        if index is None or index >= len(nodes):
            continue
        node = nodes[index]
        given = arguments_of(call)
        arguments = tuple(_argument(name, call, body, known) for name in given[: len(given) - len(node.output_names)])
        results = tuple(_result(name, body, at, asserted) for name in node.output_names)
        known |= {result.name: result for result in results}
        found.append(CustomCall(index=index, target=node.target, line=call.line, arguments=arguments, results=results))
    return tuple(found)


def _argument(name: str, call: RawCall, body: Body, known: Mapping[str, PromisedResult]) -> PromisedResult | None:
    """The result of an earlier custom operator that is passed on as it is; None for any other tensor."""
    if f"reinterpret_tensor_wrapper({name}," in call.arguments:
        return None
    while name not in known:
        if name in body.view_shapes or name not in body.renamed:
            return None
        name = body.renamed[name]
    return known[name]


def _result(name: str, body: Body, at: int, asserted: Mapping[str, Assertion]) -> PromisedResult:
    names = _same_tensor(name, body.renamed)
    later = body.calls[at + 1 :]
    mentioned = {word for call in later for word in _NAME.findall(call.arguments)} | set(body.outputs.values())
    promised = asserted.get(name)
    return PromisedResult(
        name=name,
        dtype=_dtype(names, later) or (promised.dtype if promised is not None else None),
        shape=None if promised is None else promised.sizes,
        stride=None if promised is None else promised.strides,
        used=bool(names & mentioned),
    )


def _same_tensor(name: str, renamed: Mapping[str, str]) -> frozenset[str]:
    """``name`` and all names that its tensor gets later."""
    known = {name}
    for new, old in renamed.items():
        if old in known:
            known.add(new)
    return frozenset(known)


def element_type(name: str, body: Body) -> str | None:
    """The element type that the kernels take ``name`` for, under whatever name; None where none of ours takes it."""
    return _dtype(_same_tensor(name, body.renamed), body.calls)


def _dtype(names: frozenset[str], calls: Sequence[RawCall]) -> str | None:
    """The element type that the first kernel to take the tensor takes it for; None where none of ours does."""
    for call in calls:
        for kind, name in _POINTER.findall(call.arguments):
            if name in names:
                return element_dtype(kind)
    return None
