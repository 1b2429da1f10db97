"""One model of a package: its members sorted by role, its texts, its shared objects."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

from aotidoctor.model.artifact import ExternNode, ModelEntry, SharedObject
from aotidoctor.readers.package.gpu_code import SUFFIXES as GPU_SUFFIXES
from aotidoctor.readers.package.gpu_code import gpu_targets
from aotidoctor.readers.package.item import INFLATE_LIMIT, Item
from aotidoctor.readers.package.metadata import SUFFIX as METADATA_SUFFIX
from aotidoctor.readers.package.metadata import (
    parse_build_folders,
    parse_extern_nodes,
    parse_kernel_information,
    parse_metadata,
)
from aotidoctor.readers.package.shared_object import read_shared_object
from aotidoctor.readers.package.text import decode
from aotidoctor.readers.package.weights import weights_location

TEXT_LIMIT = 32 << 20
JSON_LIMIT = 16 << 20
METADATA_LIMIT = 1 << 20
# One is right, two are a fault, more are an attack.
MAX_OBJECTS = 4
# A kernel has one; nothing but its first ones was ever of use.
MAX_METADATA = 500
# Those of the wrapper come first, and say the same as all others.
MAX_FLAGS = 8
_LIBRARIES = (".so", ".dll", ".pyd", ".dylib")
_TWIN = "_abicompat"
_FLAGS = ("_compile_flags.json", "_linker_flags.json")
_BUILD_FILES = ("CMakeLists.txt", *_FLAGS)
_NOT_EXTERN = (
    METADATA_SUFFIX,
    "_flags.json",
    "kernel_information.json",
    "weights_config.json",
    "custom_objs_config.json",
)
_KNOWN = (
    *_LIBRARIES, *GPU_SUFFIXES, ".cpp", ".json", ".blob", ".o", ".ld", ".txt", ".bin", ".h", ".cu", ".lib", ".a", ".pt",
)  # fmt: skip

Counts = MutableMapping[str, int]


def build_model(name: str, layout: str, root: str, items: Sequence[Item], counts: Counts) -> ModelEntry:
    """Read one model from its items. What is not understood is added to ``counts``."""
    sources = _read_sources(items, counts)
    wrapper = _pick_wrapper(sources)
    libraries = _libraries(items)
    objects = tuple(_read_object(item) for item in libraries[:MAX_OBJECTS])
    _count(counts, "unread_objects", len(libraries) - len(objects))
    extern_member, extern_nodes, extern_problem = _read_extern(items)
    gpu = [item for item in items if item.name.endswith(GPU_SUFFIXES)]
    metadata = [item for item in items if item.name.endswith(METADATA_SUFFIX)]
    _count(counts, "unread_metadata", max(len(metadata) - MAX_METADATA, 0))
    files = [item.name for item in items]
    cpp_only = not objects and bool(sources) and any(file.endswith(_BUILD_FILES) for file in files)
    text = sources.get(wrapper) if wrapper is not None else None
    _count(counts, "unknown_members", sum(not file.endswith(_KNOWN) and "custom_obj" not in file for file in files))
    return ModelEntry(
        name=name,
        layout=layout,
        root=root,
        members=tuple(item.member for item in items),
        shared_objects=objects,
        wrapper_member=wrapper,
        wrapper_cpp=text,
        kernel_sources={member: source for member, source in sources.items() if member != wrapper},
        metadata=tuple(parse_metadata(item.name, item.read(METADATA_LIMIT)) for item in metadata[:MAX_METADATA]),
        extern_nodes=extern_nodes,
        extern_member=extern_member,
        extern_problem=extern_problem,
        gpu_code=tuple(item.name for item in gpu),
        gpu_targets=_read_targets(gpu),
        weights_location=weights_location(files, objects[0] if objects else None, text),
        cpp_only=cpp_only,
        build_folders=_build_folders(items) if cpp_only else (),
        kernel_information=next(
            (parse_kernel_information(i.read(JSON_LIMIT)) for i in items if i.name.endswith("kernel_information.json")),
            {},
        ),
    )


def _build_folders(items: Sequence[Item]) -> tuple[str, ...]:
    """Of the wrapper and of its link: the kernels of a large model name the same ones again."""
    flags = sorted((item for item in items if item.name.endswith(_FLAGS)), key=lambda item: ".wrapper" not in item.name)
    named = [folder for item in flags[:MAX_FLAGS] for folder in parse_build_folders(item.read(METADATA_LIMIT))]
    return tuple(dict.fromkeys(named))


def _read_sources(items: Sequence[Item], counts: Counts) -> dict[str, str]:
    found: dict[str, str] = {}
    left = 2 * TEXT_LIMIT
    for item in items:
        if item.name.endswith(".cpp"):
            data = item.read(min(TEXT_LIMIT, left))
            if data is None:
                _count(counts, "unread_sources", 1)
                continue
            left -= len(data)
            found[item.name] = decode(data)
    return found


def _pick_wrapper(sources: dict[str, str]) -> str | None:
    """By name since 2.7; before, the source that constructs the model."""
    named = [member for member in sources if member.endswith(".wrapper.cpp")]
    if named:
        return named[0]
    return next((member for member, source in sources.items() if "AOTInductorModelBase(" in source), None)


def _libraries(items: Sequence[Item]) -> list[Item]:
    """Shared objects, that of the model first. Its twin for other ABIs (2.15) is not loaded where this one is."""
    found = [item for item in items if item.name.endswith(_LIBRARIES)]
    own = [item for item in found if not item.name.rpartition(".")[0].endswith(_TWIN)] or found
    return sorted(own, key=lambda item: ".wrapper." not in item.name)


def _read_object(item: Item) -> SharedObject:
    blob = item.open()
    if blob is not None:
        return read_shared_object(blob, item.name)
    why = (
        f"compressed and larger than {INFLATE_LIMIT >> 20} MiB: not unpacked"
        if item.member.size > INFLATE_LIMIT
        else "its data cannot be read"
    )
    return SharedObject(member=item.name, format="unknown", size=item.member.size, problem=why)


def _read_extern(items: Sequence[Item]) -> tuple[str | None, tuple[ExternNode, ...], str | None]:
    """The proxy-executor JSON has the name of the shared object (or of the source) with ``.json`` at its end."""
    stems = {item.name.rpartition(".")[0] for item in items if item.name.endswith((*_LIBRARIES, ".cpp"))}
    for item in items:
        if item.name.endswith(".json") and not item.name.endswith(_NOT_EXTERN):
            stem = item.name.removesuffix(".json")
            if stem.endswith(".wrapper") or stem in stems:
                return (item.name, *parse_extern_nodes(item.read(JSON_LIMIT)))
    return None, (), None


def _read_targets(items: Sequence[Item]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for item in items:
        blob = item.open()
        if blob is not None:
            found.update(dict.fromkeys(gpu_targets(blob)))
    return tuple(found)


def _count(counts: Counts, key: str, number: int) -> None:
    if number:
        counts[key] = counts.get(key, 0) + number
