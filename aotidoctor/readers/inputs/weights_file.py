"""A file of weights as names, dtypes and shapes: safetensors, or a state dict of ``torch.save``. No values are read."""

from __future__ import annotations

import os

from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.dtypes import SAFETENSORS_DTYPES, contiguous_stride
from aotidoctor.model.errors import CannotExamineError, InputsError
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.program_archive import PickledState
from aotidoctor.readers.inputs.read import opener
from aotidoctor.readers.inputs.safetensors import is_safetensors, known_sizes, read_header
from aotidoctor.readers.inputs.saved_state import read_saved_state

_HEAD = 64


def read_weights(path: str) -> tuple[ConstantSpec, ...]:
    """The tensors of the file by name; without a dtype what is no plain tensor (a tensor subclass, extra state).

    Raises:
        CannotExamineError: the file cannot be read, or it holds no weights by name.
    """
    try:
        size = os.path.getsize(path)  # noqa: PTH202 - a path as it was given
        with open(path, "rb", opener=opener) as stream:
            head = stream.read(_HEAD)
            if is_safetensors(memoryview(head)):
                length = int.from_bytes(head[:8], "little")
                header = read_header(path, (head + stream.read(length))[8 : 8 + length])
                found = [_of_safetensors(name, entry) for name, entry in header.items()]
            else:
                found = _of_state(path, size)
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    except InputsError as error:
        raise CannotExamineError(f"the weights cannot be read: {error}") from error
    if all(one.dtype is None for one in found):
        raise CannotExamineError(f"{path}: observed no tensors by name, expected safetensors or a state dict")
    return tuple(found)


def _of_safetensors(name: str, entry: JsonValue) -> ConstantSpec:
    match entry:
        case {"dtype": str(code), "shape": list(sizes)}:
            shape = known_sizes(sizes)
            return ConstantSpec(
                name=name,
                original_fqn=name,
                dtype=SAFETENSORS_DTYPES.get(code, code[:20]),
                shape=shape,
                stride=contiguous_stride(shape),
            )
    raise ValueError(f"{name[:80]}: an entry without dtype and shape")


def _of_state(path: str, size: int) -> list[ConstantSpec]:
    state = read_saved_state(path, PickledState(member=os.path.basename(path), offset=0, size=size))  # noqa: PTH119
    stored = [payload.stored for payload in state.values()]
    return [
        ConstantSpec(name=one.fqn, original_fqn=one.fqn, dtype=one.dtype, shape=one.shape, stride=one.stride)
        for one in stored
    ]
