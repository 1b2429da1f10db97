"""Read one model of a package: members sorted by role, texts, JSON files, shared objects, GPU targets, weights.

JSON files: device metadata, proxy-executor nodes, kernel provenance. Their ``problem`` texts begin with a fixed word,
so that checks need not read prose: ``not-json``, ``not-object``, ``not-string``, ``no-nodes``.

Device code is for ``sm_90``, ``compute_90`` (PTX), ``gfx942``, ``spirv`` or ``intelgt``. ``sm_90a`` (arch-specific, as
Triton compiles for Hopper) is reported as ``sm_90a``: such code runs on that capability only, and has no successors.

Weights are ``so`` inside the shared object, ``mmap`` appended to it, ``blob`` in a ``.blob`` member, ``disk`` as
tensors that the caller must load, ``none`` no constants at all, ``external`` constants that nothing here holds,
``unknown``.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace

from aotidoctor.model.artifact import ExternNode, Metadata, ModelEntry, SharedObject
from aotidoctor.model.record import JsonObject, JsonValue, as_list, as_object
from aotidoctor.readers.package.blob import Blob, JsonError, as_text, clean_surrogates, decode, parse_json
from aotidoctor.readers.package.elf import ElfError, read_header
from aotidoctor.readers.package.package_layout import INFLATE_LIMIT, PackageMember
from aotidoctor.readers.package.shared_object import MMAP_SPAN, read_shared_object

# GPUs that a piece of device code is for.
SUFFIXES = (".cubin", ".fatbin", ".hsaco", ".spv", ".zebin")

_EM_CUDA, _EM_AMDGPU, _EM_INTELGT = 190, 224, 205
_FATBIN = b"\x50\xed\x55\xba"
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_PTX, _CUBIN = 1, 2
_ACCELERATED = 0x800
_MAX_FAT_ENTRIES = 256
# Of a library that is looked through for GPU code, and the most pieces of it.
EMBEDDED_LIMIT = 64 << 20
_MAX_EMBEDDED = 65_536

# EF_AMDGPU_MACH of LLVM's AMDGPU usage page, GPUs that PyTorch supports.
_GFX = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x40: "gfx940", 0x4B: "gfx941", 0x4C: "gfx942",
    0x4F: "gfx950", 0x33: "gfx1010", 0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032",
    0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150", 0x4A: "gfx1151",
    0x48: "gfx1200", 0x4E: "gfx1201",
}  # fmt: skip


def gpu_targets(blob: Blob) -> tuple[str, ...]:
    """Targets of one file of device code, in file order; empty when the format is not known."""
    head = blob.read_at(0, 64)
    if head.startswith(b"\x7fELF"):
        target = _elf_target(head)
        return () if target is None else (target,)
    if head.startswith(_FATBIN):
        # A 16-byte header, then entries: kind, header size, payload size, and the capability at offset 28.
        header = blob.read_at(0, 16)
        position = int(struct.unpack_from("<H", header.ljust(16, b"\0"), 6)[0])
        found: list[str] = []
        for _ in range(_MAX_FAT_ENTRIES):
            entry = blob.read_at(position, 64)
            if len(entry) < 64:
                break
            kind, _, length, size = struct.unpack_from("<HHIQ", entry)
            capability = int(struct.unpack_from("<I", entry, 28)[0])
            if length < 32 or kind not in (_PTX, _CUBIN):
                break
            if kind == _PTX:
                found.append(f"compute_{capability}")
            else:
                # The payload may be compressed; when it is not, its own header knows the "a".
                inner = blob.read_at(position + length, 64)
                found.append((inner.startswith(b"\x7fELF") and _elf_target(inner)) or f"sm_{capability}")
            position += length + size
        return tuple(dict.fromkeys(found))
    if head.startswith(_SPIRV):
        return ("spirv",)
    if head.startswith(_BUNDLE):
        return _bundle_targets(blob.read_at(0, 1 << 16))
    return ()


def embedded_targets(blob: Blob) -> tuple[str, ...]:
    """Targets of the fat binaries that are linked into a library, in the order of the file."""
    data = blob.read_at(0, min(blob.size, EMBEDDED_LIMIT))
    found: list[str] = []
    at = data.find(_FATBIN)
    for _ in range(_MAX_EMBEDDED):
        if at < 0:
            break
        # Version 1, a header of 16 bytes, and what follows is in the file: not just four bytes of something else.
        version, header, size = struct.unpack_from("<HHQ", data[at + 4 : at + 16].ljust(12, b"\0"))
        real = version == 1 and header == 16 and size <= blob.size - at - 16
        found += gpu_targets(blob.part(at, size + 16)) if real else ()
        at = data.find(_FATBIN, at + (16 + size if real else 4))
    return tuple(dict.fromkeys(found))


def _elf_target(head: bytes) -> str | None:
    try:
        header = read_header(head)
    except ElfError:
        return None
    if header.machine == _EM_CUDA:
        abi = head[8]
        if abi >= 8:
            # CUDA 13 moved the capability one byte up; "a" and "f" variants have their own bits there.
            return f"sm_{header.flags >> 8 & 0xFF}{'a' if header.flags & 0x8 else ''}"
        return f"sm_{header.flags & 0xFF}{'a' if header.flags & _ACCELERATED else ''}"
    if header.machine == _EM_AMDGPU:
        return _GFX.get(header.flags & 0xFF, f"gfx-mach-{header.flags & 0xFF:#x}")
    # The device of a zebin stands in its notes, for Intel's driver to judge.
    return "intelgt" if header.machine == _EM_INTELGT else None


def _bundle_targets(data: bytes) -> tuple[str, ...]:
    """Clang's offload bundle: a count, then offset, size, and a name like ``hipv4-amdgcn-amd-amdhsa--gfx942``."""
    found = []
    position = len(_BUNDLE) + 8
    count = int.from_bytes(data[len(_BUNDLE) : position], "little")
    for _ in range(min(count, 64)):
        length = int.from_bytes(data[position + 16 : position + 24], "little")
        name = data[position + 24 : position + 24 + length].decode("ascii", "replace")
        position += 24 + length
        target = name.rpartition("--")[2]
        if target.startswith("gfx"):
            found.append(target.partition(":")[0])
    return tuple(dict.fromkeys(found))


# JSON files of a model.
SUFFIX = "_metadata.json"
# PyTorch writes four or five; each is looked up here.
MAX_FOLDERS = 64
LONGEST_PATH = 4096
# That of ``model.stamp``, whose import few packages need.
STAMP_KEY = "AOTIDOCTOR_STAMP"


def parse_metadata(member: str, data: bytes | None) -> Metadata:
    """One ``*_metadata.json``. Values that are no strings appear as JSON text, with a problem."""
    parsed = _object(data)
    if isinstance(parsed, str):
        return Metadata(member=member, problem=parsed)
    values = {
        clean_surrogates(key): clean_surrogates(value) if isinstance(value, str) else json.dumps(value)
        for key, value in parsed.items()
    }
    wrong = [clean_surrogates(key) for key, value in parsed.items() if not isinstance(value, str)]
    problem = f"not-string: {', '.join(wrong)}" if wrong else None
    return Metadata(member=member, values=values, problem=problem, stamp=values.pop(STAMP_KEY, None))


def _object(data: bytes | None) -> JsonObject | str:
    """The JSON object of a file; a text that says why there is none."""
    if data is None:
        return "not-json: it could not be read"
    try:
        parsed = parse_json(data)
    except JsonError as error:
        return f"not-json: {error}"
    return parsed if isinstance(parsed, dict) else f"not-object: a JSON {type(parsed).__name__}"


def parse_extern_nodes(data: bytes | None) -> tuple[tuple[ExternNode, ...], str | None]:
    """Nodes of the proxy-executor JSON, in call order, and a problem."""
    parsed = _object(data)
    if isinstance(parsed, str):
        return (), parsed
    if not isinstance(parsed.get("nodes"), list):
        return (), "no-nodes: there is no list of nodes"
    return tuple(_extern_node(node) for node in as_list(parsed["nodes"])), None


def parse_kernel_information(data: bytes | None) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """``kernel:handle`` to ``stack_traces``, ``post_grad_nodes``, ``pre_grad_nodes``...; empty when unreadable."""
    parsed = _object(data)
    return {
        clean_surrogates(kernel): {
            # Since 2.14 an operator has sizes and a key as well, which are numbers, lists and a text.
            clean_surrogates(key): tuple(
                as_text(item) if isinstance(item, str) else json.dumps(item)
                for item in ([] if value is None else value if isinstance(value, list) else [value])
            )
            for key, value in facts.items()
        }
        for kernel, facts in (parsed.items() if isinstance(parsed, dict) else ())
        if isinstance(facts, dict)
    }


def argument_kind(argument: JsonValue) -> str:
    """``tensor`` of ``{"as_tensor": {...}}``; ``unknown`` for anything that is not such a union."""
    keys = list(as_object(argument))
    return clean_surrogates(keys[0]).removeprefix("as_") if len(keys) == 1 else "unknown"


def _extern_node(value: JsonValue) -> ExternNode:
    outer = as_object(value)
    node = as_object(outer.get("node"))
    tensors: list[JsonValue] = []
    for output in as_list(node.get("outputs")):
        union = as_object(output)
        inner = as_object(union.get("as_optional_tensor")) or union
        tensors += [inner.get("as_tensor"), *as_list(inner.get("as_tensors"))]
    return ExternNode(
        name=as_text(outer.get("name")),
        target=as_text(node.get("target")),
        argument_names=tuple(as_text(as_object(item).get("name")) for item in as_list(node.get("inputs"))),
        output_kinds=tuple(argument_kind(item) for item in as_list(node.get("outputs"))),
        output_names=tuple(as_text(as_object(item).get("name")) for item in tensors if item is not None),
    )


# Location of the weights.
_BASE_CALL = re.compile(r"AOTInductorModelBase\(([^;{]{1,2000}?)\)\s*\{")
_BLOB_SPAN = 8


def weights_location(names: Iterable[str], shared: SharedObject | None, wrapper: str | None) -> str:
    """Location from the names in the model's directory, the (first) shared object and the text of the wrapper."""
    listed = tuple(names)
    if any(name.endswith("weights_config.json") for name in listed):
        return "disk"
    if any(name.endswith(".blob") for name in listed):
        return "blob"
    # The constructor call tells the number of constants and ``include_weights``.
    match = _BASE_CALL.search(wrapper) if wrapper is not None else None
    arguments = match.group(1).split(",") if match is not None else [""]
    count = int(arguments[2]) if len(arguments) > 2 and arguments[2].strip().isdecimal() else None
    included = {"true": True, "false": False}.get(arguments[-1].strip())
    span = shared.constants_span if shared is not None else None
    if span is not None and span > 1:
        if span == MMAP_SPAN:
            return "mmap"
        # The span of a package whose weights are in a separate blob is their size, 8 bytes. Without the blob: nobody
        # has them. (8 bytes of real constants exist on CUDA only, where they are not padded.)
        if span == _BLOB_SPAN and shared is not None and "libtorch_cuda.so" not in shared.needed:
            return "external"
        return "so"
    if count == 0:
        return "none"
    if span is None:
        built_in = any(name.endswith((".weights.o", "_serialized_weights.bin")) for name in listed)
        return "so" if built_in and count and included is not False else "unknown"
    if count is None:
        return "unknown"
    return "so" if included else "external"


# The model.
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
_NOT_EXTERN = (SUFFIX, "_flags.json", "kernel_information.json", "weights_config.json", "custom_objs_config.json")
_KNOWN = (
    *_LIBRARIES, *SUFFIXES, ".cpp", ".json", ".blob", ".o", ".ld", ".txt", ".bin", ".h", ".cu", ".lib", ".a", ".pt",
)  # fmt: skip

Counts = MutableMapping[str, int]


def build_model(name: str, layout: str, root: str, items: Sequence[PackageMember], counts: Counts) -> ModelEntry:
    """Read one model from its items. What is not understood is added to ``counts``."""
    sources = _read_sources(items, counts)
    wrapper = _pick_wrapper(sources)
    libraries = _libraries(items)
    objects = tuple(_read_object(item) for item in libraries[:MAX_OBJECTS])
    _count(counts, "unread_objects", len(libraries) - len(objects))
    extern_member, extern_nodes, extern_problem = _read_extern(items)
    gpu = [item for item in items if item.name.endswith(SUFFIXES)]
    targets = [target for item in gpu if (blob := item.open()) is not None for target in gpu_targets(blob)]
    targets += [target for shared in objects for target in shared.gpu_targets]
    metadata = [item for item in items if item.name.endswith(SUFFIX)]
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
        gpu_targets=tuple(dict.fromkeys(targets)),
        weights_location=weights_location(files, objects[0] if objects else None, text),
        cpp_only=cpp_only,
        build_folders=_build_folders(items) if cpp_only else (),
        compiler=_compiler(items) if cpp_only else None,
        kernel_information=next(
            (parse_kernel_information(i.read(JSON_LIMIT)) for i in items if i.name.endswith("kernel_information.json")),
            {},
        ),
    )


def _build_folders(items: Sequence[PackageMember]) -> tuple[str, ...]:
    """The absolute folders of the wrapper and of its link: the kernels of a large model name the same ones again."""
    flags = sorted((item for item in items if item.name.endswith(_FLAGS)), key=lambda item: ".wrapper" not in item.name)
    named: dict[str, None] = {}
    for item in flags[:MAX_FLAGS]:
        parsed = as_object(_object(item.read(METADATA_LIMIT)))
        folders = [as_text(one) for key in ("include_dirs", "libraries_dirs") for one in as_list(parsed.get(key))]
        named |= dict.fromkeys(one for one in folders[:MAX_FOLDERS] if one.startswith("/") and len(one) <= LONGEST_PATH)
    return tuple(named)


def _compiler(items: Sequence[PackageMember]) -> str | None:
    """The compiler that the flags of the first source name."""
    flags = _object(next((item.read(METADATA_LIMIT) for item in items if item.name.endswith(_FLAGS[0])), None))
    return as_text(flags.get("compiler"))[:300] or None if isinstance(flags, dict) else None


def _read_sources(items: Sequence[PackageMember], counts: Counts) -> dict[str, str]:
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
    """The wrapper: by name since 2.7; before, the source that constructs the model."""
    named = (member for member in sources if member.endswith(".wrapper.cpp"))
    old = (member for member, source in sources.items() if "AOTInductorModelBase(" in source)
    return next(named, None) or next(old, None)


def _libraries(items: Sequence[PackageMember]) -> list[PackageMember]:
    """Shared objects, that of the model first. Its twin for other ABIs (2.15) is not loaded where this one is."""
    found = [item for item in items if item.name.endswith(_LIBRARIES)]
    own = [item for item in found if not item.name.rpartition(".")[0].endswith(_TWIN)] or found
    return sorted(own, key=lambda item: ".wrapper." not in item.name)


def read_library(blob: Blob, member: str) -> SharedObject:
    """One shared object, with the GPUs that code inside it is for."""
    found = read_shared_object(blob, member)
    # Kernels in files of their own leave no code of theirs in a library that launches them.
    launches = any(ref.name == "cuModuleLoadData" for ref in found.undefined)
    return replace(found, gpu_targets=embedded_targets(blob)) if launches else found


def _read_object(item: PackageMember) -> SharedObject:
    blob = item.open()
    if blob is not None:
        return read_library(blob, item.name)
    why = (
        f"compressed and larger than {INFLATE_LIMIT >> 20} MiB: not unpacked"
        if item.member.size > INFLATE_LIMIT
        else "its data cannot be read"
    )
    return SharedObject(member=item.name, format="unknown", size=item.member.size, problem=why)


def _read_extern(items: Sequence[PackageMember]) -> tuple[str | None, tuple[ExternNode, ...], str | None]:
    """The proxy-executor JSON has the name of the shared object (or of the source) with ``.json`` at its end."""
    stems = {item.name.rpartition(".")[0] for item in items if item.name.endswith((*_LIBRARIES, ".cpp"))}
    for item in items:
        if item.name.endswith(".json") and not item.name.endswith(_NOT_EXTERN):
            stem = item.name.removesuffix(".json")
            if stem.endswith(".wrapper") or stem in stems:
                return (item.name, *parse_extern_nodes(item.read(JSON_LIMIT)))
    return None, (), None


def _count(counts: Counts, key: str, number: int) -> None:
    if number:
        counts[key] = counts.get(key, 0) + number
