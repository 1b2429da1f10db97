"""Files without a zip directory: ``torch.save`` before 1.6, and plain pickles (whose tensors embed such files)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from aotidoctor.model.dtypes import ITEMSIZE
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.machine import MAX_STEPS
from aotidoctor.readers.inputs.nodes import Items
from aotidoctor.readers.inputs.opcodes import Loaded, load
from aotidoctor.readers.inputs.pickled import pickle_content
from aotidoctor.readers.inputs.problems import corrupt, unsafe, wrong_format
from aotidoctor.readers.inputs.storage import MalformedError, Storage, StorageId, TooManyPartsError, storage_id
from aotidoctor.readers.inputs.tensors import Reader

MAGIC = 0x1950A86A20F9469CFC6C
EMBEDDED_STEPS = 1000  # the pickles of one storage, and the headers, have a few dozen


def read_legacy(path: str, data: memoryview, *, trusted: bool) -> Content:
    """The content of a legacy file or a plain pickle. Raises ``InputsError``."""
    first = load(data)
    if first.problem is None and first.value == MAGIC:
        loaded, storages = _legacy(path, data, first.end, trusted=trusted)
        reader = Reader(_resolver(storages), nested_storage(path))
        return pickle_content(path, loaded, reader, member="object", format_="pt-legacy", trusted=trusted)
    reader = Reader(_resolver({}), nested_storage(path))
    return pickle_content(path, first, reader, member="pickle", format_="pickle", trusted=trusted)


def _legacy(
    path: str, data: memoryview, start: int, *, trusted: bool = False, max_steps: int = MAX_STEPS
) -> tuple[Loaded, dict[str, Storage]]:
    """The object and the storages: version, system, object, storage keys, then count and bytes of each storage."""
    version = load(data, start, max_steps=EMBEDDED_STEPS)
    system = load(data, version.end, max_steps=EMBEDDED_STEPS)
    loaded = load(data, system.end, max_steps=max_steps)
    for part in (version, system):
        if part.problem is not None:
            raise corrupt(path, "header", f"a damaged pickle ({part.problem})")
    if loaded.problem is not None or (loaded.foreign and not trusted):
        return loaded, {}
    keys = load(data, loaded.end, max_steps=max_steps)
    if keys.problem is not None or not isinstance(keys.value, Items):
        raise corrupt(path, "storage keys", f"a damaged pickle ({keys.problem or 'no list'})")
    names = [str(key)[:80] for key in keys.value.items if isinstance(key, (str, int))]
    return loaded, _storages(path, data, keys.end, names, _ids(path, loaded))


def _ids(path: str, loaded: Loaded) -> dict[str, StorageId]:
    try:
        return {wanted.key: wanted for wanted in map(storage_id, loaded.persistents)}
    except TooManyPartsError as error:
        raise wrong_format(path, error.observed) from error
    except MalformedError as error:
        raise corrupt(path, "object", error.observed, error.expected) from error


def _storages(
    path: str, data: memoryview, position: int, names: list[str], ids: dict[str, StorageId]
) -> dict[str, Storage]:
    """Count and bytes of each. They are little-endian on every machine; torch does not read what ``system`` says."""
    found: dict[str, Storage] = {}
    for name in names:
        wanted = ids.get(name)
        count = int.from_bytes(data[position : position + 8], "little")
        if wanted is None:
            raise corrupt(path, f"storage {name}", "a storage that no tensor uses", "storages of the object")
        size = count * (1 if wanted.dtype is None else ITEMSIZE[wanted.dtype])
        view = data[position + 8 : position + 8 + size]
        need = max(size, wanted.nbytes)
        if len(view) < need:
            raise corrupt(path, f"storage {name}", f"{len(view)} bytes", f"{need}")
        found[name] = Storage(key=name, dtype=wanted.dtype, nbytes=size, device=wanted.device, data=view)
        position += 8 + size
    return found


def _resolver(storages: dict[str, Storage]) -> Callable[[StorageId], Storage]:
    def resolve(wanted: StorageId) -> Storage:
        if wanted.key not in storages:
            raise MalformedError("no such storage", f"{wanted.nbytes} bytes of tensor data", f"storage {wanted.key}")
        return storages[wanted.key]

    return resolve


def nested_storage(path: str) -> Callable[[bytes | str], Storage]:
    """Resolve the torch files that ``pickle.dump`` embeds for storages; each holds one storage and nothing else.

    Every embedded file is a storage of its own, even with equal bytes: pickle does not keep tensors shared.
    """
    known: dict[int, tuple[bytes | str, Storage]] = {}

    def resolve(data: bytes | str) -> Storage:
        if id(data) not in known:
            raw = data if isinstance(data, bytes) else data.encode("latin-1", "replace")
            known[id(data)] = data, _embedded(path, memoryview(raw), len(known))
        return known[id(data)][1]

    return resolve


def _embedded(path: str, data: memoryview, index: int) -> Storage:
    first = load(data, max_steps=EMBEDDED_STEPS)
    if first.problem is not None or first.value != MAGIC:
        raise MalformedError("an embedded storage that is not a torch file")
    loaded, storages = _legacy(path, data, first.end, max_steps=EMBEDDED_STEPS)
    if loaded.foreign:
        raise unsafe(path, loaded.foreign)
    storage = _resolver(storages)(storage_id(loaded.value))
    return dataclasses.replace(storage, key=f"embedded-{index}")
