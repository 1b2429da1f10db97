"""Files of ``torch.save`` since 1.6: a zip file of ``data.pkl`` and one record per storage."""

from __future__ import annotations

import dataclasses

from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.legacy import nested_storage
from aotidoctor.readers.inputs.members import Members
from aotidoctor.readers.inputs.opcodes import load
from aotidoctor.readers.inputs.pickled import pickle_content
from aotidoctor.readers.inputs.problems import corrupt
from aotidoctor.readers.inputs.storage import MalformedError, Resolve, Storage, StorageId
from aotidoctor.readers.inputs.tensors import Reader


def find_pickle(members: Members) -> str | None:
    """The name of the record that holds the object, None when this is no such file."""
    names = [name for name in members.names() if name == "data.pkl" or name.endswith("/data.pkl")]
    return min(names, key=len, default=None)


def read_torch_zip(members: Members, pickle_name: str, *, trusted: bool) -> Content:
    """The content of the file. Raises ``InputsError``."""
    reader = Reader(storages_of(members, pickle_name, {}), nested_storage(members.path))
    # The copy is for speed: single bytes of a view are slow to get.
    loaded = load(bytes(members.read(pickle_name)))
    content = pickle_content(members.path, loaded, reader, member=pickle_name, format_="pt", trusted=trusted)
    unchecked = f"{members.unchecked} records were not compared with their CRC"
    return dataclasses.replace(content, notes=(unchecked,)) if members.unchecked else content


def storages_of(members: Members, pickle_name: str, known: dict[str, Storage]) -> Resolve:
    """Finds the storages that the pickle names, in the records beside it; ``known`` are those found so far.

    Raises ``InputsError``, as what it returns does.
    """
    prefix = pickle_name.removesuffix("data.pkl")
    big_endian = _is_big_endian(members, prefix)

    def resolve(wanted: StorageId) -> Storage:
        if wanted.key not in known:
            known[wanted.key] = _storage(members, prefix, wanted, big_endian=big_endian)
        storage = known[wanted.key]
        if storage.data is not None and len(storage.data) < wanted.nbytes:
            raise MalformedError(f"{len(storage.data)} bytes", f"{wanted.nbytes}", f"{prefix}data/{wanted.key}")
        return dataclasses.replace(storage, dtype=wanted.dtype, nbytes=wanted.nbytes)

    return resolve


def _is_big_endian(members: Members, prefix: str) -> bool:
    """Whether the file says that a big-endian machine wrote its storages."""
    order = f"{prefix}byteorder"
    return order in members.infos and bytes(members.read(order)[:3]) == b"big"


def _storage(members: Members, prefix: str, wanted: StorageId, *, big_endian: bool) -> Storage:
    if wanted.device == "meta":
        return Storage(key=wanted.key, dtype=wanted.dtype, nbytes=wanted.nbytes, device="meta")
    name = f"{prefix}data/{wanted.key}"
    if name not in members.infos:
        raise corrupt(members.path, name, "no such record", f"{wanted.nbytes} bytes of tensor data")
    return Storage(
        key=wanted.key,
        dtype=wanted.dtype,
        nbytes=wanted.nbytes,
        device=wanted.device,
        data=members.read(name),
        big_endian=big_endian,
    )
