"""The memory behind tensors, as the file holds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.model.record import record
from aotidoctor.model.safe_globals import STORAGE_DTYPES
from aotidoctor.readers.inputs.nodes import Call, Global, Persistent, Value


class MalformedError(Exception):
    """The pickle says something no torch.save writes; ``subject`` is the record, None for the pickle itself."""

    def __init__(self, observed: str, expected: str = "what torch.save writes", subject: str | None = None) -> None:
        super().__init__(observed)
        self.observed = observed
        self.expected = expected
        self.subject = subject


class TooManyPartsError(MalformedError):
    """Sound, but of more parts than inputs have: numbers in lists where tensors belong."""


@record
class Storage:
    """One storage. ``dtype`` is None for untyped bytes, ``data`` None where the file holds none (meta)."""

    key: str
    dtype: str | None
    nbytes: int
    device: str
    data: memoryview | None = None
    big_endian: bool = False


@record
class StorageId:
    """What a persistent id says. ``dtype`` as in ``Storage``."""

    key: str
    dtype: str | None
    device: str
    nbytes: int


Resolve: TypeAlias = Callable[[StorageId], Storage]


def storage_id(value: Value) -> StorageId:
    """Read ``("storage", torch.FloatStorage, "0", "cpu", 12)``, which older files end with view metadata."""
    if not isinstance(value, Persistent) or not isinstance(value.id, tuple) or len(value.id) not in (5, 6):
        raise MalformedError("a persistent id that is not a storage")
    kind, type_, key, location, count = value.id[:5]
    if kind != "storage" or not isinstance(type_, Global) or not isinstance(location, str):
        raise MalformedError("a persistent id that is not a storage")
    if not isinstance(key, (str, int)) or not isinstance(count, int) or not 0 <= count < 1 << 60:
        raise MalformedError(f"a storage of {count if isinstance(count, (int, str)) else '?'} elements"[:80])
    dtype = storage_dtype(type_.name)
    return StorageId(
        key=str(key)[:80], dtype=dtype, device=location[:40], nbytes=count * (1 if dtype is None else ITEMSIZE[dtype])
    )


def storage_dtype(name: str) -> str | None:
    """The dtype of a storage class, None for ``UntypedStorage``. Raises ``MalformedError`` for other globals."""
    last = name.rpartition(".")[2]
    if last in STORAGE_DTYPES:
        return STORAGE_DTYPES[last]
    if last == "UntypedStorage":
        return None
    raise MalformedError(f"{name[:80]} in place of a storage class")


def nested_file(value: Value) -> bytes | str | None:
    """The torch file inside a plain pickle of a tensor, None for anything else.

    Text is what protocol 2 makes of bytes: one letter for each, as latin-1.
    """
    if not isinstance(value, Call) or value.name != "torch.storage._load_from_bytes" or len(value.args) != 1:
        return None
    data = value.args[0]
    if isinstance(data, Call) and data.name == "_codecs.encode" and data.args:
        data = data.args[0]
    return data if isinstance(data, (bytes, str)) else None
