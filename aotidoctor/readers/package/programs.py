"""An archive of torch.export with its constants: what is listed, what is there, where the bytes are.

=========  ==================================================  ====================================================
layout     program                                             weights and constants
=========  ==================================================  ====================================================
pt2        ``models/<name>.json`` (2.9 and later)              ``data/{weights,constants}/<name>_*_config.json``
                                                               name a member (raw storage) for each of them
pickled    ``models/<name>.json`` (2.7, 2.8)                   one ``torch.save`` file each: ``data/*/<name>.pt``
legacy     ``serialized_exported_program.json`` (to 2.6)       ``serialized_state_dict.pt``, ``serialized_constants.pt``
=========  ==================================================  ====================================================

Pickles are not opened here: the archive only tells where they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aotidoctor.model.json_types import JsonObject, as_object
from aotidoctor.model.program_archive import Content, Payload, Payloads, PickledState, ProgramArchive, StoredTensor
from aotidoctor.readers.package.archive import zip_items
from aotidoctor.readers.package.exported import MAX_JSON, program_document, program_facts_of
from aotidoctor.readers.package.item import Item
from aotidoctor.readers.package.layout import programs_of
from aotidoctor.readers.package.program_facts import tensor_meta
from aotidoctor.readers.package.program_sizes import size_text
from aotidoctor.readers.package.text import JsonError, as_text, parse_json

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
    found = programs_of(items)
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


def _archive(path: str, items: list[Item], item: Item, name: str, document: JsonObject) -> ProgramArchive:
    members = {known.name: known for known in items}
    root, inside, _ = item.name.rpartition("models/")
    problems: list[str] = []
    listed: dict[str, Payloads | None] = {}
    pickles: dict[str, PickledState | None] = {}
    beside = item.name.removesuffix(LEGACY_PROGRAM)

    def saved(which: str) -> Item | None:
        return members.get(f"{root}data/{which}/{name}.pt" if inside else beside + _LEGACY[which])

    for which in ("weights", "constants"):
        folder = f"{root}data/{which}/"
        listed[which] = _listed(members, folder, f"{folder}{name}_{which}_config.json", problems)
        pickles[which] = _pickled(saved(which))
    return ProgramArchive(
        path=path,
        member=item.name,
        layout="legacy" if not inside else "pickled" if any(pickles.values()) else "pt2",
        facts=program_facts_of(name, document),
        document=document,
        weights=listed["weights"],
        constants=listed["constants"],
        weights_pickle=pickles["weights"],
        constants_pickle=pickles["constants"],
        has_samples=saved("sample_inputs") is not None,
        problems=tuple(problems),
    )


def _pickled(item: Item | None) -> PickledState | None:
    if item is None or item.member.data_offset is None:
        return None
    return PickledState(member=item.name, offset=item.member.data_offset, size=item.member.size)


def _listed(members: Mapping[str, Item], folder: str, name: str, problems: list[str]) -> Payloads | None:
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


def _payload(fqn: str, entry: JsonObject, members: Mapping[str, Item], folder: str) -> Payload:
    item = members.get(folder + as_text(entry.get("path_name")))
    meta = as_object(entry.get("tensor_meta"))
    return Payload(
        stored=_stored(fqn, meta, item, pickled=entry.get("use_pickle") is True),
        member=None if item is None else item.name,
        nbytes=None if item is None else item.member.size,
        parameter=entry.get("is_param") is True,
        requires_grad=meta.get("requires_grad") is True,
    )


def _stored(fqn: str, meta: JsonObject, item: Item | None, *, pickled: bool) -> StoredTensor:
    described = tensor_meta(meta)
    content, problem = _content(item, pickled=pickled)
    return StoredTensor(
        fqn=fqn,
        dtype=described.dtype if described is not None else None,
        shape=_numbers(described.shape) if described is not None else None,
        stride=_numbers(described.stride) if described is not None else None,
        offset=_number(size_text(meta.get("storage_offset"))) or 0,
        content=content,
        problem=problem,
    )


def _content(item: Item | None, *, pickled: bool) -> tuple[Content | None, str | None]:
    if item is None:
        return None, "the archive has no member with its bytes"
    if pickled:
        return None, "a tensor subclass or an object, stored as a pickle"
    blob = item.open()
    return (None, "its bytes cannot be read") if blob is None else (Content(blob.size, blob.read_at), None)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None


def _numbers(texts: tuple[str, ...] | None) -> tuple[int, ...] | None:
    numbers = [number for text in texts or () if (number := _number(text)) is not None]
    return tuple(numbers) if texts is not None and len(numbers) == len(texts) else None
