"""A number that the model takes out of a tensor and makes promises about: which input element it was."""

from __future__ import annotations

import re

from aotidoctor.localize.blame.failure import Failure
from aotidoctor.localize.blame.operator_names import information_of, source_lines
from aotidoctor.localize.blame.program import Program
from aotidoctor.localize.blame.sources import tensor_sources
from aotidoctor.model.dtypes import index_at
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.localization import Chain, Element

_SYMBOL = re.compile(r"\bu\d+\b")
_ITEM, _OPERATORS = "aoti_torch_item_", ("aten.item",)


def assertion_chain(program: Program, failure: Failure) -> Chain | None:
    """The chain of ``Expected u0 <= 16 but received 40``; None when the number cannot be traced to a tensor."""
    at = _item(program, failure.condition or "")
    if at is None or failure.value is None:
        return None
    call = program.call(at)
    name = call.arguments[0]
    information = information_of(program.case.model, call)
    leaf = program.leaves.get(program.root(name))
    element = None
    if leaf is not None and program.writer(name, at) is None:
        element = _element(leaf.path, program.tensors.get(leaf.path), failure.value)
    sources = tensor_sources(program, at, name)
    return Chain(
        kernel=None,
        what=f"expected {failure.condition}, got {failure.value}",
        elements=() if element is None else (element,),
        count=0 if element is None else 1,
        sources=sources.paths,
        through=() if element is not None else sources.through,
        direct=element is not None,
        operators=_OPERATORS,
        where=source_lines(information, _OPERATORS),
    )


def _item(program: Program, condition: str) -> int | None:
    """The call that takes the one number of ``condition`` out of a tensor."""
    symbols = set(_SYMBOL.findall(condition))
    if len(symbols) != 1:
        return None
    symbol = symbols.pop()
    for at, call in enumerate(program.contract.kernels):
        if call.name.startswith(_ITEM) and {f"&{symbol}_raw", f"&{symbol}"} & set(call.arguments[1:]):
            return at
    return None


def _element(path: str, tensor: TensorDesc | None, value: int) -> Element | None:
    """The element that holds ``value``: the only one of the tensor, or the only one with that value."""
    values = tensor.elements() if tensor is not None and tensor.elements is not None else None
    if tensor is None or values is None:
        return None
    places = [at for at, one in enumerate(values) if one == value]
    if len(places) != 1:
        return None
    return Element(path=path, index=tuple(index_at(places[0], tensor.shape)), value=value)
