"""An operator of ATen that refused an index: which element of which input, from its words and its arguments.

A fallback operator checks its own indices and says nothing of the kernel, the input or the element. What it was called
with is in the source of the package; the integers are in the inputs file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.localize.blame.failure import INDEX, OFFSETS, Failure
from aotidoctor.localize.blame.memory import INTEGERS, InputMemory
from aotidoctor.localize.blame.program import Program
from aotidoctor.localize.blame.sources import tensor_sources
from aotidoctor.model.localization import Chain

_NAME = re.compile(r"[A-Za-z_]\w{0,200}")
_BAG = "embedding_bag"


def operator_chain(program: Program, failure: Failure) -> tuple[str, Chain] | None:
    """The kind of the fault (``index`` or ``offsets``) and its chain; None where the call is not known."""
    at = _call(program, failure)
    if at is None:
        return None
    if _BAG in program.call(at).name:
        return _bag(program, at)
    return INDEX, _indexing(program, at, failure)


def _call(program: Program, failure: Failure) -> int | None:
    """The call on the line that the runtime named; else the only one of that name."""
    calls = program.calls(failure.kernel or "")
    exact = [at for at in calls if program.call(at).line == failure.line]
    return exact[0] if exact else calls[0] if len(calls) == 1 else None


def _bag(program: Program, at: int) -> tuple[str, Chain]:
    """``embedding_bag(weight, indices, offsets, ...)``: indices below the rows; offsets from 0, growing, in reach."""
    arguments = program.call(at).arguments
    rows, origin = _rows(program, arguments[0])
    indices, offsets = (_given(program, at, name) for name in (*arguments[1:3], "", "")[:2])
    if offsets is not None and offsets.values:
        reach = len(indices.values) if indices is not None else None
        wrong = _bad_offset(offsets, reach)
        if wrong is not None:
            place, why = wrong
            named = f"{indices.path}.shape[0]" if indices is not None else None
            return OFFSETS, _chain(program, at, offsets, [place], f"offset {why}", bound=reach, origin=named)
    bad = _outside(indices, rows) if indices is not None else []
    if indices is not None and bad:
        value = indices.values[bad[0]]
        return INDEX, _chain(
            program, at, indices, bad, f"index {value} of {rows}", bound=rows, origin=origin, index=value
        )
    return INDEX, _unfollowed(program, at, arguments[1:2], rows, origin)


def _bad_offset(offsets: InputMemory, reach: int | None) -> tuple[int, str] | None:
    """The first offset that breaks a rule, and the rule."""
    before = 0
    for place, value in enumerate(offsets.values):
        if place == 0 and value != 0:
            return 0, f"{value}, which has to be 0"
        if value < before:
            return place, f"{value} after {before}, which must not decrease"
        if reach is not None and value > reach:
            return place, f"{value} beyond the {reach} indices"
        before = value
    return None


def _indexing(program: Program, at: int, failure: Failure) -> Chain:
    """Any other operator: the one integer input with the value, or with values beyond the bound, that was named."""
    arguments = program.call(at).arguments
    size = int(failure.bound) if failure.bound is not None and failure.bound.isdigit() else None
    guilty = []
    for given in _all_given(program, at, arguments):
        places = [place for place, value in enumerate(given.values) if value == failure.value]
        if not places and (failure.value is None or size is not None):
            places = _outside(given, size)
        if places:
            guilty.append((given, places))
    if len(guilty) != 1:
        return _unfollowed(program, at, arguments, size, None)
    given, places = guilty[0]
    value = given.values[places[0]]
    return _chain(
        program, at, given, places, f"index {value}" + (f" of {size}" if size else ""), bound=size, index=value
    )


def _outside(given: InputMemory, bound: int | None) -> list[int]:
    return [place for place, value in enumerate(given.values) if value < 0 or (bound is not None and value >= bound)]


def _rows(program: Program, name: str) -> tuple[int | None, str | None]:
    """Rows of the table, and what to call them."""
    root = program.root(name)
    constant, leaf = program.constants.get(root), program.leaves.get(root)
    if constant is not None and constant.shape:
        return constant.shape[0], f"{constant.fqn}.shape[0]"
    tensor = program.tensors.get(leaf.path) if leaf is not None else None
    return (
        (tensor.shape[0], f"{leaf.path}.shape[0]")
        if leaf is not None and tensor is not None and tensor.shape
        else (None, None)
    )


def _given(program: Program, at: int, name: str) -> InputMemory | None:
    """The input that the argument is, if it is one and still holds what the caller passed."""
    leaf = program.leaves.get(program.root(name))
    tensor = program.tensors.get(leaf.path) if leaf is not None else None
    if leaf is None or tensor is None or tensor.dtype not in INTEGERS or program.writer(name, at) is not None:
        return None
    values = tensor.elements() if tensor.elements is not None else None
    if values is None:
        return None
    return InputMemory(path=leaf.path, shape=tensor.shape, values=[int(one) for one in values])


def _all_given(program: Program, at: int, arguments: Sequence[str]) -> Iterator[InputMemory]:
    for name in dict.fromkeys(_names(arguments)):
        given = _given(program, at, name)
        if given is not None:
            yield given


def _names(arguments: Sequence[str]) -> Iterator[str]:
    """Names of tensors, also those in a list of handles."""
    for text in arguments:
        yield from (name.removesuffix("_handle") for name in _NAME.findall(text[:4000]))


def _chain(
    program: Program,
    at: int,
    given: InputMemory,
    places: Sequence[int],
    what: str,
    *,
    bound: int | None = None,
    origin: str | None = None,
    index: int | None = None,
) -> Chain:
    call = program.call(at)
    return Chain(
        kernel=call.name,
        what=what,
        elements=given.origin(places[0]),
        count=len(places),
        direct=True,
        index=index,
        bound=bound,
        origin=origin,
        operators=tuple(call.origins),
    )


def _unfollowed(program: Program, at: int, arguments: Sequence[str], bound: int | None, origin: str | None) -> Chain:
    """Without an element: the inputs that the indices may have been computed from."""
    call = program.call(at)
    known = [
        name
        for name in _names(arguments)
        if program.root(name) in program.leaves or program.writer(name, at) is not None
    ]
    found = tensor_sources(program, at, known[0]) if len(known) == 1 else None
    return Chain(
        kernel=call.name,
        what=f"index out of 0..{bound - 1}" if bound else "an index that the operator refuses",
        sources=found.paths if found is not None else (),
        through=found.through if found is not None else (),
        bound=bound,
        origin=origin,
        operators=tuple(call.origins),
    )
