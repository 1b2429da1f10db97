"""A state dict that ``torch.save`` wrote into another file, as tensors with their bytes; nothing of it is executed."""

from __future__ import annotations

import io
import mmap
import struct
import zipfile
from pathlib import Path

from aotidoctor.model.inputs import LeafValue, TensorDesc
from aotidoctor.model.program_archive import Content, Payload, PickledState, StoredTensor
from aotidoctor.model.tree import Container, Leaf, Tree
from aotidoctor.readers.inputs.describe import Describer
from aotidoctor.readers.inputs.legacy import nested_storage
from aotidoctor.readers.inputs.members import MAX_MEMBERS, Members
from aotidoctor.readers.inputs.opcodes import load
from aotidoctor.readers.inputs.problems import corrupt
from aotidoctor.readers.inputs.storage import MalformedError, Storage
from aotidoctor.readers.inputs.tensors import Reader
from aotidoctor.readers.inputs.torch_zip import find_pickle, storages_of


def read_saved_state(path: str, state: PickledState) -> dict[str, Payload]:
    """Name -> value. The file stays mapped as long as one of them is kept. Raises ``InputsError``."""
    try:
        with Path(path).open("rb") as stream:
            data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        data = data[state.offset : state.offset + state.size]
        return _tensors(path, state.member, data)
    except (OSError, ValueError, RecursionError, MemoryError, struct.error, zipfile.BadZipFile) as error:
        raise corrupt(path, state.member, f"a file that cannot be read ({error})") from error


def _tensors(path: str, member: str, data: memoryview) -> dict[str, Payload]:
    members = _members(path, member, data)
    pickle = find_pickle(members)
    if pickle is None:
        raise corrupt(path, member, "no data.pkl", "a file of torch.save")
    known: dict[str, Storage] = {}
    resolve = storages_of(members, pickle, known)
    loaded = load(bytes(members.read(pickle)))
    if loaded.problem is not None:
        raise corrupt(path, member, f"a damaged pickle ({loaded.problem})", "a complete pickle")
    try:
        tree = Describer(Reader(resolve, nested_storage(path), stats_left=0)).tree(loaded.value)
    except MalformedError as error:
        raise corrupt(path, error.subject or member, error.observed, error.expected) from error
    if not isinstance(tree, Container):
        raise corrupt(path, member, "a single value", "a dict of tensors")
    pairs = zip(tree.keys, tree.children, strict=False)
    return {str(key): _payload(str(key), child, member, known) for key, child in pairs}


def _payload(name: str, child: Tree[LeafValue], member: str, known: dict[str, Storage]) -> Payload:
    value = child.value if isinstance(child, Leaf) else None
    if not isinstance(value, TensorDesc):
        return Payload(stored=StoredTensor(fqn=name, problem="no tensor"), member=member)
    storage = None if value.storage is None else known.get(value.storage)
    data = None if storage is None else storage.data
    problem = _no_bytes(value, storage)
    stored = StoredTensor(
        fqn=name,
        dtype=value.dtype,
        shape=value.shape,
        stride=value.stride,
        offset=value.storage_offset,
        content=None if data is None or problem else _content(data),
        problem=problem,
    )
    parameter = value.subclass == "Parameter"
    return Payload(stored=stored, member=member, nbytes=value.storage_nbytes, parameter=parameter)


def _no_bytes(value: TensorDesc, storage: Storage | None) -> str | None:
    """Why the bytes of the storage are not those of a tensor here, None when they are."""
    plain = value.layout == "strided" and not value.quantized and not value.conj and not value.neg
    if storage is None or storage.data is None or not plain:
        return f"a tensor of a different kind ({value.layout})"
    return "values of a big-endian machine" if storage.big_endian else None


def _content(data: memoryview) -> Content:
    return Content(len(data), lambda at, length: bytes(data[at : at + length]) if at >= 0 else b"")


def _members(path: str, member: str, data: memoryview) -> Members:
    with zipfile.ZipFile(_Window(data)) as archive:
        infos = archive.infolist()
    if len(infos) > MAX_MEMBERS or len({info.filename for info in infos}) < len(infos):
        raise corrupt(path, member, f"{len(infos)} members, or two with one name", "a file of torch.save")
    return Members(path, data, {info.filename: info for info in infos}, has_crc=any(info.CRC for info in infos))


class _Window(io.RawIOBase):
    """A part of a mapped file as a file."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go somewhere; ``whence`` as for files."""
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Some bytes, from where it is."""
        end = len(self._data) if size < 0 else self._at + size
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found
