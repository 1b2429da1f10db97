"""What a bare library says of its inputs without being loaded: the call spec, and the messages of its input checks.

The compiled checks print what they wanted, so their messages stand in the library: ``input_handles[0]: unmatched dim
value at 1, ``, and apart from them, each once for all inputs, ``expected: 12, `` and ``(at::kFloat), ``. So each dim is
known to be fixed or not, and what a fixed one may be; a dtype is certain where only one is ever expected. A library of
torch 2.6 holds no checks: then the call is known, and nothing of its tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from aotidoctor.model.c10 import SCALAR_NAMES
from aotidoctor.model.contract import Contract
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.treespec import SpecError, count_leaves, parse_call
from aotidoctor.readers.contract.recovered import recovered_contract

MOST_INPUTS = 10_000
_SPEC = b'[1, {"type": '
_NAME = re.compile(rb"arg(\d{1,6})_1")
_OF_INPUT = re.compile(
    rb"input_handles\[(\d{1,6})\]: (?:unmatched dtype|(?P<what>unmatched (?:dim|stride) value|dim value is too \w{5})"
    rb" at (?P<dim>\d{1,3})), "
)
_EXPECTED = re.compile(rb"expected(?P<how>: | it to be >= | to be <= )(?P<value>\d{1,18}), ")
_DTYPE = re.compile(rb"\(at::k(\w{1,30})\), ")
_FIXED, _LOW, _HIGH = b": ", b" it to be >= ", b" to be <= "


@dataclass(slots=True)
class _Texts:
    """The texts that tell something, each kind in the order of the file."""

    specs: list[str] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    typed: set[int] = field(default_factory=set)
    fixed: dict[int, set[int]] = field(default_factory=dict)
    low: dict[int, set[int]] = field(default_factory=dict)
    high: dict[int, set[int]] = field(default_factory=dict)
    stepped: dict[int, set[int]] = field(default_factory=dict)
    expected: dict[bytes, set[int]] = field(default_factory=dict)


def library_contract(found: Iterable[bytes], name: str) -> Contract | None:
    """The contract as far as the texts of a library go, in their order; None where they do not fit together."""
    texts = _Texts()
    _take(found, texts)
    call = next((spec for spec in texts.specs if _leaves(spec) is not None), None)
    n_leaves = _leaves(call) if call is not None else None
    checked = {*texts.typed, *texts.fixed, *texts.low, *texts.high}
    n_inputs = max(checked) + 1 if checked else len(texts.numbers)
    if call is None or n_leaves is None or not n_inputs <= min(n_leaves, MOST_INPUTS):
        return None
    names = [f"arg{number}_1" for number in sorted(texts.numbers)]
    if len(names) != n_inputs or (not checked and n_inputs != n_leaves):
        # An input that no text mentions may be a tensor or not.
        return None
    after = texts.specs[texts.specs.index(call) + 1 :]
    inputs: list[JsonValue] = [_input(at, one, texts) for at, one in enumerate(names)]
    result: JsonObject = {
        "n_inputs": n_inputs,
        "call_spec": [call, after[0] if after else ""],
        "inputs": inputs,
        "problems": ["read from the texts of a library: its kernels, strides and outputs are not known"],
    }
    return replace(recovered_contract(name, result), source="library")


def _leaves(spec: str) -> int | None:
    try:
        args, kwargs = parse_call(spec)
    except SpecError:
        return None
    return count_leaves(args) + count_leaves(kwargs)


def _take(found: Iterable[bytes], texts: _Texts) -> None:
    for text in found:
        if text.startswith(b"arg") and (name := _NAME.fullmatch(text)) is not None:
            texts.numbers.add(int(name[1]))
        elif text.startswith(b"expected") and (expected := _EXPECTED.fullmatch(text)) is not None:
            texts.expected.setdefault(expected["how"], set()).add(int(expected["value"]))
        elif text.startswith(b"(at::k") and (dtype := _DTYPE.fullmatch(text)) is not None:
            texts.dtypes.add(dtype[1].decode())
        elif text.startswith(_SPEC):
            texts.specs.append(text.decode(errors="replace"))
        elif text.startswith(b"input_handles[") and (one := _OF_INPUT.fullmatch(text)) is not None:
            _of_input(one, texts)


def _of_input(found: re.Match[bytes], texts: _Texts) -> None:
    at = int(found[1])
    if found["dim"] is None:
        texts.typed.add(at)
    else:
        kinds = {b"unmatched dim value": texts.fixed, b"dim value is too small": texts.low}
        kinds |= {b"dim value is too large": texts.high, b"unmatched stride value": texts.stepped}
        dims = kinds.get(found["what"], {})
        dims.setdefault(at, set()).add(int(found["dim"]))


def _input(at: int, name: str, texts: _Texts) -> JsonObject:
    seen = texts.fixed.get(at, set()) | texts.low.get(at, set()) | texts.high.get(at, set())
    rank = max(seen, default=-1) + 1
    # A dim that is not fixed has a least size where any has one; a constant stride shows one that has none.
    complete = len(seen) == rank and rank > 0 and max(texts.stepped.get(at, ()), default=-1) < rank
    complete = complete and (bool(texts.low) or rank - 1 in texts.stepped.get(at, ()))
    dtype = SCALAR_NAMES.get(next(iter(texts.dtypes))) if len(texts.dtypes) == 1 and at in texts.typed else None
    return {
        "name": name,
        "dtype": dtype,
        "dims": [_dim(at, dim, texts) for dim in range(rank)],
        "strides": [None] * rank,
        "complete": complete,
    }


def _dim(at: int, dim: int, texts: _Texts) -> JsonObject:
    """A fixed one has one of the sizes and strides that are ever expected; of bounds the widest is certain."""
    if dim in texts.fixed.get(at, ()):
        sizes = sorted(texts.expected.get(_FIXED, ()))
        return {"static": sizes[0]} if len(sizes) == 1 else {"among": [*sizes]}
    low = texts.expected.get(_LOW, ()) if dim in texts.low.get(at, ()) else ()
    high = texts.expected.get(_HIGH, ()) if dim in texts.high.get(at, ()) else ()
    return {"min": min(low, default=None), "max": max(high, default=None)}
