"""Read weights by name, dtype and shape from state dicts of torch.save and .safetensors files.

Nothing of a state dict is executed. One that ``torch.save`` wrote into another file gives tensors with their bytes;
of a file of weights no values are read.
"""

from __future__ import annotations

import mmap
from math import prod
from pathlib import Path
from typing import BinaryIO

from aotidoctor.files import open_regular
from aotidoctor.model.artifact import ArchivePayload, PickledState, StorageContent, StoredTensor
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.errors import CannotExamineError, InputsError
from aotidoctor.model.inputs import Container, Leaf, LeafValue, TensorDesc, Tree
from aotidoctor.model.record import JsonValue
from aotidoctor.model.torch_names import ITEMSIZE, SAFETENSORS_DTYPES, contiguous_stride
from aotidoctor.readers.inputs.describe_pickle import Describer, TensorReader
from aotidoctor.readers.inputs.other_formats import is_safetensors, known_sizes, read_header
from aotidoctor.readers.inputs.pickle_machine import load_pickle
from aotidoctor.readers.inputs.tensor_values import FileStorage, decode
from aotidoctor.readers.inputs.torch_files import (
    corrupt_error,
    find_pickle,
    nested_storage,
    open_members,
    pickle_errors,
    storages_of,
)


# State dicts in another file.
def read_saved_state(path: str, state: PickledState) -> dict[str, ArchivePayload]:
    """Values by name. The file stays mapped as long as one of them lives. Raises ``InputsError``."""
    try:
        with Path(path).open("rb") as stream:
            data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        data = data[state.offset : state.offset + state.size]
        return _tensors(path, state.member, data)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise corrupt_error(path, state.member, f"a file that cannot be read ({error})") from error


def _tensors(path: str, member: str, data: memoryview) -> dict[str, ArchivePayload]:
    members = open_members(path, data)
    pickle = find_pickle(members)
    if pickle is None:
        raise corrupt_error(path, member, "no data.pkl", "a file of torch.save")
    known: dict[str, FileStorage] = {}
    resolve = storages_of(members, pickle, known)
    loaded = load_pickle(bytes(members.read(pickle)))
    if loaded.problem is not None:
        raise corrupt_error(path, member, f"a damaged pickle ({loaded.problem})", "a complete pickle")
    with pickle_errors(path, member):
        tree = Describer(TensorReader(resolve, nested_storage(path), stats_left=0)).tree(loaded.value)
    if not isinstance(tree, Container):
        raise corrupt_error(path, member, "a single value", "a dict of tensors")
    pairs = zip(tree.keys, tree.children, strict=False)
    return {str(key): _payload(str(key), child, member, known) for key, child in pairs}


def _payload(name: str, child: Tree[LeafValue], member: str, known: dict[str, FileStorage]) -> ArchivePayload:
    value = child.value if isinstance(child, Leaf) else None
    if not isinstance(value, TensorDesc):
        return ArchivePayload(stored=StoredTensor(fqn=name, problem="no tensor"), member=member)
    storage = None if value.storage is None else known.get(value.storage)
    data = None if storage is None else storage.data
    # Why the bytes of the storage are not those of the tensor.
    problem = None
    if data is None or value.layout != "strided" or value.quantized or value.conj or value.neg:
        problem = f"a tensor of a different kind ({value.layout})"
    elif storage is not None and storage.big_endian:
        problem = "values of a big-endian machine"
    stored = StoredTensor(
        fqn=name,
        dtype=value.dtype,
        shape=value.shape,
        stride=value.stride,
        offset=value.storage_offset,
        content=None
        if data is None or problem
        else StorageContent(len(data), lambda at, length: bytes(data[at : at + length]) if at >= 0 else b""),
        problem=problem,
    )
    parameter = value.subclass == "Parameter"
    return ArchivePayload(stored=stored, member=member, nbytes=value.storage_nbytes, parameter=parameter)


# Files of weights.
_HEAD = 64
# The compiler writes vectors of so many elements into the code.
_MOST_VALUES, _MOST_BYTES = 8, 64


def read_weights(path: str) -> tuple[ConstantSpec, ...]:
    """The tensors of the file by name; without a dtype what is no plain tensor (a tensor subclass, extra state).

    Raises:
        CannotExamineError: the file cannot be read, or it holds no weights by name.
    """
    try:
        size = Path(path).stat().st_size
        with open_regular(path) as stream:
            head = stream.read(_HEAD)
            if is_safetensors(memoryview(head)):
                length = int.from_bytes(head[:8], "little")
                header = read_header(path, (head + stream.read(length))[8 : 8 + length])
                found = [_of_safetensors(name, entry, stream, 8 + length) for name, entry in header.items()]
            else:
                state = read_saved_state(path, PickledState(member=Path(path).name, offset=0, size=size))
                stored = [payload.stored for payload in state.values()]
                found = [
                    ConstantSpec(
                        name=one.fqn,
                        original_fqn=one.fqn,
                        dtype=one.dtype,
                        shape=one.shape,
                        stride=one.stride,
                        values=_stored_values(one),
                    )
                    for one in stored
                ]
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    except InputsError as error:
        raise CannotExamineError(f"the weights cannot be read: {error}") from error
    if all(one.dtype is None for one in found):
        raise CannotExamineError(f"{path}: observed no tensors by name, expected safetensors or a state dict")
    return tuple(found)


def _stored_values(one: StoredTensor) -> tuple[float, ...]:
    """The numbers of a small contiguous vector; empty for anything else."""
    size = ITEMSIZE.get(one.dtype or "")
    if size is None or one.content is None or not _is_small(one.shape) or one.stride not in ((), (1,)):
        return ()
    return _numbers(one.dtype, one.content.read_at(one.offset * size, size * prod(one.shape or ())))


def _is_small(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and len(shape) <= 1 and 0 < prod(shape) <= _MOST_VALUES


def _numbers(dtype: str | None, data: bytes) -> tuple[float, ...]:
    found = decode(dtype or "", data) if not dtype or not dtype.startswith("complex") else None
    return tuple(map(float, found)) if found is not None else ()


def _of_safetensors(name: str, entry: JsonValue, stream: BinaryIO, start: int) -> ConstantSpec:
    """The tensor of an entry; the values of a small one are in ``stream``, where those of all begin at ``start``."""
    match entry:
        case {"dtype": str(code), "shape": list(sizes), **rest}:
            dtype, shape = SAFETENSORS_DTYPES.get(code, code[:20]), known_sizes(sizes)
        case _:
            raise ValueError(f"{name[:80]}: an entry without dtype and shape")
    values: tuple[float, ...] = ()
    match rest.get("data_offsets"):
        case [int(first), int(last)] if _is_small(shape) and 0 <= first <= last:
            stream.seek(start + first)
            values = _numbers(dtype, stream.read(min(last - first, _MOST_BYTES)))
    stride = contiguous_stride(shape)
    return ConstantSpec(name=name, original_fqn=name, dtype=dtype, shape=shape, stride=stride, values=values)
