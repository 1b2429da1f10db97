"""Locate and hash the constants of packages and of torch.export archives, and read the stamps of packages.

In a package the compiler writes the storages one after the other, ``data_size`` bytes each: from
``_binary_constants_bin_start`` to ``_end``, or at the end of the file (then those two hold the length and a marker
that is repeated at its end), or in ``*_weights.blob``. ``weights_config.json`` names files of ``torch.save`` instead,
of which only the storage is read.

In an archive of torch.export:

=========  ==================================================  ====================================================
layout     program                                             weights and constants
=========  ==================================================  ====================================================
pt2        ``models/<name>.json`` (2.9 and later)              ``data/{weights,constants}/<name>_*_config.json``
                                                               name a member (raw storage) for each of them
pickled    ``models/<name>.json`` (2.7, 2.8)                   one ``torch.save`` file each: ``data/*/<name>.pt``
legacy     ``serialized_exported_program.json`` (to 2.6)       ``serialized_state_dict.pt``, ``serialized_constants.pt``
=========  ==================================================  ====================================================

Pickles are not opened here: the archive only tells where they lie. Hashes cover dtype, shape and bytes in row-major
order, so they are comparable between package and program.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from aotidoctor.model import record_json
from aotidoctor.model.artifact import (
    STAMP_SCHEMA,
    ArchivePayload,
    ArchivePayloads,
    Artifact,
    ArtifactKind,
    ModelEntry,
    PickledState,
    ProgramArchive,
    Stamp,
    StampSeen,
    StorageContent,
    StoredTensor,
)
from aotidoctor.model.contract import ConstantSpec, ModelContract
from aotidoctor.model.record import JsonObject, as_list, as_object
from aotidoctor.model.torch_names import ITEMSIZE, is_row_major
from aotidoctor.readers.package.blob import Blob, JsonError, as_text, parse_json
from aotidoctor.readers.package.elf import DAMAGED, read_elf
from aotidoctor.readers.package.elf_symbols import read_dynamic, read_dynamic_symbols
from aotidoctor.readers.package.exported_program import (
    MAX_JSON,
    program_document,
    program_facts_of,
    size_text,
    tensor_meta,
)
from aotidoctor.readers.package.package_layout import PackageMember, file_item, programs_of
from aotidoctor.readers.package.read_package import unchecked_items, zip_items
from aotidoctor.readers.package.shared_object import MMAP_SPAN

# Constants of an archive of torch.export.
CONFIG_LIMIT = 64 << 20
LEGACY_PROGRAM = "serialized_exported_program.json"
_LEGACY = {
    "weights": "serialized_state_dict.pt",
    "constants": "serialized_constants.pt",
    "sample_inputs": "serialized_example_inputs.pt",
}


def read_program_archive(path: str, name: str | None = None) -> ProgramArchive | str:
    """The program called ``name`` (``model``, or the only one) of the archive at ``path``; a text that says why not."""
    items = zip_items(path)
    if items is None:
        return "not a readable zip archive"
    found = list(programs_of(items))
    if not found:
        return "the archive contains no exported program (no models/<name>.json)"
    wanted = name or ("model" if any(known == "model" for known, _ in found) else found[0][0])
    item = next((item for known, item in found if known == wanted), None)
    if item is None:
        return f"no program called {wanted}; there is {', '.join(known for known, _ in found[:8])}"
    data = item.read(MAX_JSON)
    if data is None:
        return f"{item.name} has {item.member.size} bytes, or its data cannot be read"
    document = program_document(data)
    if document is None:
        return f"{item.name} is not the JSON of a program"
    archive = _archive(path, items, item, wanted, document)
    return replace(archive, others=tuple(known for known, _ in found if known != wanted))


def _archive(
    path: str, items: list[PackageMember], item: PackageMember, name: str, document: JsonObject
) -> ProgramArchive:
    members = {known.name: known for known in items}
    root, inside, _ = item.name.rpartition("models/")
    problems: list[str] = []
    listed: dict[str, ArchivePayloads | None] = {}
    pickles: dict[str, PickledState] = {}
    beside = item.name.removesuffix(LEGACY_PROGRAM)

    def saved(which: str) -> PackageMember | None:
        return members.get(f"{root}data/{which}/{name}.pt" if inside else beside + _LEGACY[which])

    for which in ("weights", "constants"):
        folder = f"{root}data/{which}/"
        listed[which] = _listed_payloads(members, folder, f"{folder}{name}_{which}_config.json", problems)
        if (state := _pickled(saved(which))) is not None:
            pickles[which] = state
    samples = saved("sample_inputs")
    return ProgramArchive(
        path=path,
        member=item.name,
        layout="legacy" if not inside else "pickled" if pickles else "pt2",
        facts=program_facts_of(name, document),
        document=document,
        weights=listed["weights"],
        constants=listed["constants"],
        weights_pickle=pickles.get("weights"),
        constants_pickle=pickles.get("constants"),
        has_samples=samples is not None,
        examples=_pickled(samples),
        problems=tuple(problems),
    )


def _pickled(file: PackageMember | None) -> PickledState | None:
    """Where a file of torch.save lies in the archive; None where it is not there, or not stored plainly."""
    if file is None or file.member.data_offset is None:
        return None
    return PickledState(member=file.name, offset=file.member.data_offset, size=file.member.size)


def _listed_payloads(
    members: Mapping[str, PackageMember], folder: str, name: str, problems: list[str]
) -> ArchivePayloads | None:
    config = members.get(name)
    if config is None:
        return None
    data = config.read(CONFIG_LIMIT)
    try:
        entries = as_object(parse_json(data or b"")).get("config")
    except JsonError as error:
        problems.append(f"{name}: {error}")
        return None
    if not isinstance(entries, dict):
        problems.append(f"{name}: there is no table of entries")
        return None
    return {fqn: _payload(fqn, as_object(entry), members, folder) for fqn, entry in entries.items()}


def _payload(fqn: str, entry: JsonObject, members: Mapping[str, PackageMember], folder: str) -> ArchivePayload:
    item = members.get(folder + as_text(entry.get("path_name")))
    meta = as_object(entry.get("tensor_meta"))
    described = tensor_meta(meta)
    content, problem = None, None
    if item is None:
        problem = "the archive has no member with its bytes"
    elif entry.get("use_pickle") is True:
        problem = "a tensor subclass or an object, stored as a pickle"
    else:
        blob = item.open()
        content = _content(blob) if blob is not None else None
        problem = None if blob is not None else "its bytes cannot be read"
    return ArchivePayload(
        stored=(
            StoredTensor(
                fqn=fqn,
                dtype=described.dtype if described is not None else None,
                shape=_numbers(described.shape) if described is not None else None,
                stride=_numbers(described.stride) if described is not None else None,
                offset=_number(size_text(meta.get("storage_offset"))) or 0,
                content=content,
                problem=problem,
            )
        ),
        member=None if item is None else item.name,
        nbytes=None if item is None else item.member.size,
        parameter=entry.get("is_param") is True,
        requires_grad=meta.get("requires_grad") is True,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None


def _numbers(texts: tuple[str, ...] | None) -> tuple[int, ...] | None:
    numbers = [number for text in texts or () if (number := _number(text)) is not None]
    return tuple(numbers) if texts is not None and len(numbers) == len(texts) else None


# Constants of a package.
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


def _items(artifact: Artifact, model: ModelEntry) -> list[PackageMember]:
    wanted = {member.name for member in model.members}
    return [item for item in _everything(artifact) if item.name in wanted]


def _whole(items: Sequence[PackageMember], location: str) -> Blob | str:
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
        marker = elf.read_vaddr(at[0], MMAP_SPAN)
        if len(marker) < MMAP_SPAN:
            return "the library does not record the size of its appended weights"
        length, _ = struct.unpack(f"{elf.order}2Q", marker)
        if not 8 <= length <= blob.size:
            return f"{length} bytes of appended weights cannot be in {blob.size} bytes"
        return blob.part(blob.size - length, length - 8)
    start = elf.file_offset(at[0])
    return "the constants are not in the file" if start is None else blob.part(start, at[1] - at[0])


def _cut(whole: Blob | str, constants: Sequence[ConstantSpec]) -> list[StoredTensor]:
    sizes = [constant.data_size for constant in constants if constant.data_size is not None]
    if isinstance(whole, str):
        why = whole
    elif len(sizes) < len(constants):
        why = "the package does not record the sizes of its constants"
    elif sum(sizes) >= whole.size + _ALIGNMENT:
        # The last one may end without its padding.
        why = f"{whole.size} bytes of constants, {sum(sizes)} expected"
    else:
        places = zip(constants, accumulate([0, *sizes[:-1]]), sizes, strict=True)
        return [_stored_tensor(one, _content(whole.part(start, size)), None) for one, start, size in places]
    return [_stored_tensor(constant, None, why) for constant in constants]


def _content(blob: Blob) -> StorageContent:
    return StorageContent(blob.size, blob.read_at)


def _stored_tensor(constant: ConstantSpec, content: StorageContent | None, problem: str | None) -> StoredTensor:
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
    items: Sequence[PackageMember], artifact: Artifact, model: ModelEntry, constants: Sequence[ConstantSpec]
) -> dict[str, StoredTensor]:
    config = next((item for item in items if item.name.endswith("weights_config.json")), None)
    try:
        table = as_object(parse_json((config.read(CONFIG_LIMIT) if config is not None else None) or b""))
    except JsonError as error:
        return {c.original_fqn: _stored_tensor(c, None, f"weights_config.json: {error}") for c in constants}
    folder = f"{model.root}/data/weights/" if model.root else "data/weights/"
    files = {item.name: item for item in _everything(artifact)}
    found = {}
    for constant in constants:
        row = as_list(table.get(constant.original_fqn))
        item = files.get(folder + as_text(row[0] if row else None))
        if len(row) != 4 or item is None:
            stored = _stored_tensor(constant, None, "weights_config.json names no member for it")
        else:
            shape, stride = (tuple(n for n in as_list(part) if isinstance(n, int)) for part in row[1:3])
            offset = row[3] if isinstance(row[3], int) else 0
            blob = item.open()
            content = saved_storage(item.name, blob) if blob is not None else None
            problem = None if content is not None else f"{item.name} is not a torch.save file with one tensor"
            stored = replace(_stored_tensor(constant, content, problem), shape=shape, stride=stride, offset=offset)
        found[constant.original_fqn] = stored
    return found


def _everything(artifact: Artifact) -> list[PackageMember]:
    if artifact.kind is ArtifactKind.AOTI_PACKAGE:
        return zip_items(artifact.path) or []
    return [file_item(member) for member in artifact.members]


def saved_storage(name: str, blob: Blob) -> StorageContent | None:
    """The only storage in a file of ``torch.save``; None when there are more, or none."""
    items = unchecked_items(name, blob)
    found = [item for item in items or () if item.name.rpartition("/")[0].endswith("data") and item.name[-1:].isdigit()]
    storage = found[0].open() if len(found) == 1 else None
    return None if storage is None else _content(storage)


# Hashes. Of fewer bytes a hash can be turned round by trying them all.
LEAST_BYTES = 64
CHUNK = 1 << 20
DIGITS = 16


def constant_digest(tensor: StoredTensor) -> str | None:
    """The hash; None where the bytes are too few, not there, or not in row-major order."""
    size = constant_size(tensor)
    if (
        size is None
        or size < LEAST_BYTES
        or tensor.content is None
        or not (tensor.stride is None or is_row_major(tensor.shape or (), tensor.stride))
    ):
        return None
    seen = hashlib.sha256(f"{tensor.dtype}{list(tensor.shape or ())}".encode())
    at = tensor.offset * ITEMSIZE[tensor.dtype or ""]
    end = at + size
    while at < end:
        data = tensor.content.read_at(at, min(CHUNK, end - at))
        if not data:
            return None
        seen.update(data)
        at += len(data)
    return seen.hexdigest()[:DIGITS]


def constant_size(tensor: StoredTensor) -> int | None:
    """Bytes of the elements; None where dtype or shape are not known."""
    if tensor.dtype is None or tensor.dtype not in ITEMSIZE or tensor.shape is None:
        return None
    return math.prod(tensor.shape) * ITEMSIZE[tensor.dtype]


# Stamps: whether the constants are the stamped ones.
# More bytes of constants are not hashed by a command that only reads.
MOST_BYTES = 64 << 20


def read_stamp(artifact: Artifact, model: ModelEntry, contract: ModelContract | None) -> StampSeen | None:
    """The stamp of ``model``; None where it carries none."""
    found = next(((one.member, one.stamp) for one in model.metadata if one.stamp is not None), None)
    if found is None:
        return None
    member, text = found
    stamp = parse_stamp(text)
    if isinstance(stamp, str):
        return StampSeen(member=member, problem=stamp)
    # `seen` with what the package's own constants are.
    seen = StampSeen(member=member, stamp=stamp)
    if not stamp.weights or contract is None:
        return seen
    stored = read_constants(artifact, model, contract.constants, contract.weights)
    known = {name: tensor for name, tensor in stored.items() if name in stamp.weights}
    size = sum(constant_size(tensor) or 0 for tensor in known.values())
    if size > MOST_BYTES:
        return replace(
            seen, unread=f"{size >> 20} MiB of constants: more than {MOST_BYTES >> 20} MiB are not hashed here"
        )
    digests = {name: constant_digest(tensor) for name, tensor in known.items()}
    silent = [name for name, found in digests.items() if found is None]
    differing = tuple(name for name, found in digests.items() if found not in (None, stamp.weights[name]))
    return replace(
        seen,
        equal=len(digests) - len(silent) - len(differing),
        differing=differing,
        unread=f"the bytes of {len(silent)} constants cannot be compared with the stamp" if silent else None,
    )


def parse_stamp(text: str) -> Stamp | str:
    """The record; a text that says why there is none."""
    try:
        document = as_object(parse_json(text.encode("utf-8", "replace")))
    except JsonError as error:
        return f"not JSON: {error}"
    if document.get("schema") != STAMP_SCHEMA:
        return f"observed schema {str(document.get('schema'))[:40]!r}, expected {STAMP_SCHEMA!r}"
    try:
        return record_json.from_json(Stamp, document)
    except record_json.RecordError as error:
        return str(error)
