"""Describe inputs that exist as objects, and send the description to another process of this program.

torch is not imported. A module of its own, as `guard` imports it only after a failure, and the library (api) without
the rest of `watch`.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from aotidoctor.model.inputs import InputSet, TensorDesc
from aotidoctor.readers.inputs.live_and_generated import describe_live

# Values are examined to find an index that is too large; larger tensors would take too long.
MOST_BYTES = 8 * 1024 * 1024
_Values = Sequence[int] | Sequence[float] | None


def pack_inputs(inputs: object) -> str:
    """Describe inputs as text. Raises InputsError for endless nesting."""
    args, kwargs = split_arguments(inputs)
    described = describe_live(args, kwargs)
    return base64.b64encode(pickle.dumps(described.with_tensors(_with_values))).decode("ascii")


def unpack_inputs(text: str) -> InputSet:
    """Read the text of ``pack_inputs``, in a process that this program has started itself."""
    found = pickle.loads(base64.b64decode(text))  # noqa: S301 - this program has written it
    if not isinstance(found, InputSet):
        raise TypeError(f"observed {type(found).__name__}, expected a description of inputs")
    return found


def split_arguments(inputs: object) -> tuple[Sequence[object], Mapping[str, object]]:
    """Split inputs into arguments and keyword arguments, as for an inputs file."""
    if isinstance(inputs, Mapping):
        if inputs and set(inputs) <= {"args", "kwargs"}:
            return tuple(inputs.get("args", ())), dict(inputs.get("kwargs", {}))
        return (), {str(name): value for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        if len(inputs) == 2 and isinstance(inputs[0], (tuple, list)) and isinstance(inputs[1], dict):
            return tuple(inputs[0]), dict(inputs[1])
        return tuple(inputs), {}
    return (inputs,), {}


def _with_values(described: TensorDesc) -> TensorDesc:
    """Replace the function that reads values, which cannot be sent, by the values."""
    if described.elements is None:
        return described
    values = described.elements() if (described.storage_nbytes or 0) <= MOST_BYTES else None
    return replace(described, elements=partial(_same_values, values))


def _same_values(values: _Values) -> _Values:
    return values
