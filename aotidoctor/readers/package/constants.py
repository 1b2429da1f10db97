"""The bytes of a package's constants, without loading it: in the library, behind it, beside it, or one file each.

The compiler writes the storages one after the other, ``data_size`` bytes each: from ``_binary_constants_bin_start``
to ``_end``, or at the end of the file (then those two hold the length and a marker that is repeated at its end), or in
``*_weights.blob``. ``weights_config.json`` names files of ``torch.save`` instead, of which only the storage is read.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from aotidoctor.model.artifact import Artifact, ArtifactKind, ModelEntry
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.model.json_types import JsonValue, as_list, as_object
from aotidoctor.model.program_archive import Content, StoredTensor
from aotidoctor.readers.package.archive import unchecked_items, zip_items
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.elf import DAMAGED, read_elf
from aotidoctor.readers.package.elf_dynamic import read_dynamic
from aotidoctor.readers.package.elf_symbols import read_dynamic_symbols
from aotidoctor.readers.package.item import Item, file_item
from aotidoctor.readers.package.programs import CONFIG_LIMIT
from aotidoctor.readers.package.shared_object import MMAP_SPAN
from aotidoctor.readers.package.text import JsonError, as_text, parse_json

_ALIGNMENT = 64


def read_constants(
    artifact: Artifact, model: ModelEntry, constants: Sequence[ConstantSpec], location: str
) -> dict[str, StoredTensor]:
    """Constants by their names in the model; ``problem`` says why there are no bytes. Folded ones are left out."""
    own = [constant for constant in constants if not constant.from_folded]
    items = _items(artifact, model)
    try:
        if location == "disk":
            return _on_disk(items, artifact, model, own)
        whole = _whole(items, location)
    except (*DAMAGED, ValueError) as error:
        whole = f"the constants were not found: {error}"
    return {constant.original_fqn: stored for constant, stored in zip(own, _cut(whole, own), strict=True)}


def constants_bytes(artifact: Artifact, model: ModelEntry, location: str, limit: int) -> bytes:
    """The run of bytes that holds all constants, as it stands in its member; empty where it is not found."""
    try:
        whole = _whole(_items(artifact, model), location)
    except (*DAMAGED, ValueError):
        return b""
    return b"" if isinstance(whole, str) else whole.read_all(limit) or b""


def _items(artifact: Artifact, model: ModelEntry) -> list[Item]:
    wanted = {member.name for member in model.members}
    return [item for item in _everything(artifact) if item.name in wanted]


def _whole(items: Sequence[Item], location: str) -> Blob | str:
    """The run of bytes that holds all constants, or why there is none."""
    if location not in ("so", "mmap", "blob"):
        return {"external": "the package ships no weights"}.get(location, f"their location is unknown ({location})")
    suffix = "_weights.blob" if location == "blob" else ".so"
    found = [item for item in items if item.name.endswith(suffix)]
    blob = found[0].open() if found else None
    if blob is None:
        return f"there is no readable {suffix} member"
    if location == "blob":
        return blob
    elf = read_elf(blob)
    at = read_dynamic_symbols(elf, read_dynamic(elf)).constants_at
    if at is None:
        return "the library does not record where its constants are"
    if location == "mmap":
        return _appended(blob, elf.read_vaddr(at[0], MMAP_SPAN), elf.order)
    start = elf.file_offset(at[0])
    return "the constants are not in the file" if start is None else blob.part(start, at[1] - at[0])


def _appended(blob: Blob, marker: bytes, order: str) -> Blob | str:
    if len(marker) < MMAP_SPAN:
        return "the library does not record the size of its appended weights"
    length, _ = struct.unpack(f"{order}2Q", marker)
    if not 8 <= length <= blob.size:
        return f"{length} bytes of appended weights cannot be in {blob.size} bytes"
    return blob.part(blob.size - length, length - 8)


def _cut(whole: Blob | str, constants: Sequence[ConstantSpec]) -> list[StoredTensor]:
    sizes = [constant.data_size for constant in constants]
    if isinstance(whole, str):
        return [_stored(constant, None, whole) for constant in constants]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        why = "the package does not record the sizes of its constants"
        return [_stored(constant, None, why) for constant in constants]
    # The last one may end without its padding.
    if sum(known) >= whole.size + _ALIGNMENT:
        why = f"{whole.size} bytes of constants, {sum(known)} expected"
        return [_stored(constant, None, why) for constant in constants]
    starts = accumulate([0, *known[:-1]])
    return [
        _stored(constant, _content(whole.part(start, size)), None)
        for constant, start, size in zip(constants, starts, known, strict=True)
    ]


def _content(blob: Blob) -> Content:
    return Content(blob.size, blob.read_at)


def _stored(constant: ConstantSpec, content: Content | None, problem: str | None) -> StoredTensor:
    return StoredTensor(
        fqn=constant.original_fqn,
        dtype=constant.dtype,
        shape=constant.shape,
        stride=constant.stride,
        offset=constant.offset or 0,
        content=content,
        problem=problem,
    )


def _on_disk(
    items: Sequence[Item], artifact: Artifact, model: ModelEntry, constants: Sequence[ConstantSpec]
) -> dict[str, StoredTensor]:
    config = next((item for item in items if item.name.endswith("weights_config.json")), None)
    try:
        table = as_object(parse_json((config.read(CONFIG_LIMIT) if config is not None else None) or b""))
    except JsonError as error:
        return {c.original_fqn: _stored(c, None, f"weights_config.json: {error}") for c in constants}
    folder = f"{model.root}/data/weights/" if model.root else "data/weights/"
    files = {item.name: item for item in _everything(artifact)}
    return {c.original_fqn: _from_file(c, table.get(c.original_fqn), folder, files) for c in constants}


def _everything(artifact: Artifact) -> list[Item]:
    if artifact.kind is ArtifactKind.AOTI_PACKAGE:
        return zip_items(artifact.path) or []
    return [file_item(member) for member in artifact.members]


def _from_file(constant: ConstantSpec, entry: JsonValue, folder: str, files: Mapping[str, Item]) -> StoredTensor:
    row = as_list(entry)
    item = files.get(folder + as_text(row[0] if row else None))
    if len(row) != 4 or item is None:
        return _stored(constant, None, "weights_config.json names no member for it")
    shape, stride = (tuple(n for n in as_list(part) if isinstance(n, int)) for part in row[1:3])
    offset = row[3] if isinstance(row[3], int) else 0
    blob = item.open()
    content = saved_storage(item.name, blob) if blob is not None else None
    problem = None if content is not None else f"{item.name} is not a torch.save file with one tensor"
    return replace(_stored(constant, content, problem), shape=shape, stride=stride, offset=offset)


def saved_storage(name: str, blob: Blob) -> Content | None:
    """The only storage in a file of ``torch.save``; None when there are more, or none."""
    items = unchecked_items(name, blob)
    found = [item for item in items or () if item.name.rpartition("/")[0].endswith("data") and item.name[-1:].isdigit()]
    storage = found[0].open() if len(found) == 1 else None
    return None if storage is None else _content(storage)
