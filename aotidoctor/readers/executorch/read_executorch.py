"""Read an ExecuTorch program (``.pte``) or data file (``.ptd``) in place.

Nothing is executed, nothing is read whole, and nothing is raised for content. A ``.pte`` is a flatbuffer and segments:

0   u32 root      4  "ET12"      8  "eh00", only where a segment carries data
12  u32 length    16 u64 size of the flatbuffer   24 u64 start of the segments   32 u64 their size (length 32 on)

A ``.ptd`` has "FT01" and "FH01": 16 u64 start and 24 u64 size of the flatbuffer, 32 u64 start and 40 u64 size of the
segments. A delegate of AOTInductor code has a payload of two keys, or none and names after the method before 1.4.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace

from aotidoctor.model.artifact import SharedObject, StorageContent
from aotidoctor.model.executorch import AOTI_BACKENDS, Delegate, ExecutorchFile, NamedBlob, PlanTensor, PteMethod
from aotidoctor.model.torch_names import scalar_type
from aotidoctor.readers.executorch.flatbuffer import MOST_ITEMS, FlatBuffer, FlatbufferError, Table

PROGRAM, DATA = b"ET12", b"FT01"
PROGRAM_HEADER, DATA_HEADER = b"eh00", b"FH01"
# Bytes whose sha256 is taken without being asked for, and the most of a payload that is searched for keys.
HASH_LIMIT = 64 << 20
_PAYLOAD_LIMIT, _PAYLOADS_LIMIT = 4 << 20, 64 << 20
_CHUNK = 1 << 20
# Of a file made to cost much; a program has a few of each.
_MOST_METHODS, _MOST_DELEGATES, _MOST_SPECS, _MOST_DIMS, _MOST_VALUES = 1024, 16_384, 256, 64, 4096

# The union of a value's types in program.fbs, in order.
_TYPES = (
    *("None", "Null", "Int", "Bool", "Double", "Tensor", "String"),
    *("IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList"),
)
_TENSOR = 5
_AOTI_KEY = re.compile(r"([0-9a-f]{64})(?:_(?:so|weights)_blob)?")
# A string of a flatbuffer: its length, 64 hexadecimal digits, a zero.
_XNNPACK_KEY = re.compile(rb"\x40\0\0\0([0-9a-f]{64})\0")
_MACHINES = {3: "i686", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


def read_executorch(path: str, content: StorageContent, *, verify: bool = False) -> ExecutorchFile:
    """Facts of the file. ``verify`` takes the sha256 of all data that a key promises, however large."""
    head = content.read_at(0, 64)
    program = head[4:8] == PROGRAM or head[8:12] == PROGRAM_HEADER
    identifier = head[4:8].decode("ascii", "replace")
    found = ExecutorchFile(path=path, program=program, size=content.size, identifier=identifier)
    if len(head) < 8:
        return replace(found, kind="truncated", problem=f"{content.size} bytes, too few for any such file")
    if head[4:8] not in (PROGRAM, DATA):
        marked = head[8:12] in (PROGRAM_HEADER, DATA_HEADER)
        return replace(found, kind="identifier" if marked else "foreign", problem=f"the identifier {identifier!r}")
    try:
        length, base, expected = _header(head, content.size, program=program)
        found = replace(found, expected_size=expected)
        root = Table(buffer := FlatBuffer(content.read_at, 0, min(length, content.size)), buffer.follow(0))
        found = _read_root(found, root, base, content)
    except (FlatbufferError, struct.error) as error:
        cut = found.expected_size > content.size
        return replace(found, kind="truncated" if cut else "malformed", problem=_cut(found) if cut else str(error))
    if found.expected_size > content.size:
        return replace(found, kind="truncated", problem=_cut(found))
    return _with_digests(found, content, verify=verify)


def _cut(found: ExecutorchFile) -> str:
    return f"{found.size:,} bytes, where its header states {found.expected_size:,}"


def _header(head: bytes, size: int, *, program: bool) -> tuple[int, int, int]:
    """End of the flatbuffer, start of the segments, and the least size of the file."""
    if head[8:12] not in (PROGRAM_HEADER, DATA_HEADER):
        return size, 0, 0
    if len(head) < 48:
        return size, 0, 64
    (length,) = struct.unpack_from("<I", head, 12)
    first, second, third, fourth = struct.unpack_from("<4Q", head, 16)
    if program:
        end, base, data = first, second, third if length >= 32 else 0
    else:
        end, base, data = first + second, third, fourth
    return min(end, size), base, max(end, base + data)


def _read_root(found: ExecutorchFile, root: Table, base: int, content: StorageContent) -> ExecutorchFile:
    """The tables of a program or of a data file."""
    spots = [
        (base + segment.number(0, "Q"), segment.number(1, "Q"))
        for segment in _some(root, 4 if found.program else 1, MOST_ITEMS)
    ]
    ends = [start + size for start, size in spots if size]
    named = tuple(_named(item, spots) for item in _some(root, 7 if found.program else 2, MOST_ITEMS))
    found = replace(
        found,
        version=root.number(0, "I"),
        n_segments=len(spots),
        named=named,
        expected_size=max(found.expected_size, *ends, 0),
    )
    if not found.program:
        return found
    inline = [item.vector(0, 1) for item in _some(root, 3, MOST_ITEMS)]

    left = _PAYLOADS_LIMIT

    def payload(location: int, index: int) -> bytes | None:
        nonlocal left
        places = (inline, spots)[location] if location in (0, 1) else []
        if index >= len(places):
            return None
        start, size = places[index]
        data = content.read_at(start, min(size, _PAYLOAD_LIMIT, left))
        left -= len(data)
        return data

    return replace(found, methods=tuple(_method(plan, payload) for plan in _some(root, 1, _MOST_METHODS)))


def _some(table: Table, index: int, most: int) -> Iterable[Table]:
    """The tables of a vector that is not longer than a program's."""
    _, count = table.vector(index, 4)
    if count > most:
        raise FlatbufferError(f"a vector of {count:,} tables, where at most {most:,} are read")
    return table.tables(index)


def _named(item: Table, spots: list[tuple[int, int]]) -> NamedBlob:
    index, key, layout = item.number(1, "I"), item.text(0), item.table(2)
    if index >= len(spots):
        raise FlatbufferError(f"the data {key[:100]!r} are in segment {index:,} of {len(spots):,}")
    match = _AOTI_KEY.fullmatch(key)
    tensor = None
    if layout is not None:
        tensor = PlanTensor(dtype=_dtype(layout.number(0, "b")), shape=_sizes(layout, 1), dim_order=_order(layout, 2))
    return NamedBlob(
        key=key, offset=spots[index][0], size=spots[index][1], tensor=tensor, promised=match[1] if match else None
    )


def _method(plan: Table, payload: Callable[[int, int], bytes | None]) -> PteMethod:
    name = plan.text(0)
    values = [_value(item) for item in _some(plan, 2, MOST_ITEMS)]

    def among(index: int) -> tuple[PlanTensor | str, ...]:
        listed = plan.numbers(index, "i", _MOST_VALUES)
        return tuple(values[item] if 0 <= item < len(values) else f"value {item} of {len(values)}" for item in listed)

    operators = [".".join(filter(None, (item.text(0), item.text(1)))) for item in _some(plan, 6, MOST_ITEMS)]
    return PteMethod(
        name=name,
        inputs=among(3),
        outputs=among(4),
        delegates=tuple(_delegate(item, name, payload) for item in _some(plan, 7, _MOST_DELEGATES)),
        operators=tuple(dict.fromkeys(operators)),
        external=tuple(value for value in values if isinstance(value, PlanTensor) and value.external),
    )


def _value(item: Table) -> PlanTensor | str:
    kind = item.number(0, "B")
    if kind != _TENSOR:
        return _TYPES[kind] if kind < len(_TYPES) else f"type {kind}"
    tensor = item.table(1)
    if tensor is None:
        raise FlatbufferError("a tensor without a table")
    extra = tensor.table(9)
    return PlanTensor(
        dtype=_dtype(tensor.number(0, "b")),
        shape=_sizes(tensor, 2),
        dim_order=_order(tensor, 3),
        dynamic=tensor.number(8, "b") != 0,
        fqn=(extra.text(1) or None) if extra is not None else None,
        external=extra is not None and extra.number(2, "b") == 1,
    )


def _dtype(number: int) -> str:
    return scalar_type(number) or f"scalar type {number}"


def _sizes(table: Table, index: int) -> tuple[int, ...]:
    return table.numbers(index, "i", _MOST_DIMS)


def _order(table: Table, index: int) -> tuple[int, ...]:
    return table.numbers(index, "B", _MOST_DIMS)


def _delegate(item: Table, method: str, payload: Callable[[int, int], bytes | None]) -> Delegate:
    specs = {spec.text(0): spec.text(1) for spec in _some(item, 2, _MOST_SPECS)}
    found = Delegate(backend=item.text(0), compile_specs=specs)
    place = item.table(1)
    data = payload(place.number(0, "b"), place.number(1, "I")) if place is not None else None
    if data is None:
        return replace(found, problem="a payload that is not in the file")
    # A pair of keys is one of AOTInductor's, whatever the backend is called in this file.
    if found.backend not in AOTI_BACKENDS and not data.endswith(b"_weights_blob"):
        keys = _XNNPACK_KEY.findall(data) if found.backend == "XnnpackBackend" else []
        return replace(found, other_keys=tuple(dict.fromkeys(key.decode() for key in keys)))
    if not data:
        name = specs.get("method_name") or method
        return replace(found, code_key=f"{name}_so_blob", weights_key=f"{name}_weights_blob")
    keys = data[:1024].decode("utf-8", "replace").split("\n")
    if len(keys) != 2 or not all(keys):
        return replace(found, problem="a payload that is no pair of keys")
    return replace(found, code_key=keys[0], weights_key=keys[1])


# The bytes behind the keys.
def _with_digests(found: ExecutorchFile, content: StorageContent, *, verify: bool) -> ExecutorchFile:
    """Add the sha256 of what a key promises, the smallest first, and what the code blobs are."""
    code = {delegate.code_key for delegate in found.delegates}
    # Blobs that overlap could be many times the file.
    left, unhashed = (max(HASH_LIMIT, 2 * content.size) if verify else HASH_LIMIT), 0
    done: dict[tuple[int, int], str] = {}
    for blob in sorted(found.named, key=lambda blob: blob.size):
        place = (blob.offset, blob.size)
        if blob.promised is None or place in done:
            continue
        if blob.size > left:
            unhashed += blob.size
            continue
        left -= blob.size
        done[place] = _sha256(content, *place)
    named = tuple(
        replace(
            blob,
            sha256=done.get((blob.offset, blob.size)) if blob.promised else None,
            code=_object(content, blob) if blob.key in code else None,
        )
        for blob in found.named
    )
    return replace(found, named=named, unhashed=unhashed)


def _sha256(content: StorageContent, offset: int, size: int) -> str:
    digest, at = hashlib.sha256(), 0
    while at < size and (chunk := content.read_at(offset + at, min(_CHUNK, size - at))):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest()


def _object(content: StorageContent, blob: NamedBlob) -> SharedObject:
    """What the first bytes of a library tell: its format, and for ELF the machine."""
    head = content.read_at(blob.offset, min(blob.size, 20))
    if head.startswith(b"\x7fELF") and len(head) == 20:
        number = int.from_bytes(head[18:20], "little")
        machine = _MACHINES.get(number, f"ELF machine {number}")
        return SharedObject(
            member=blob.key, format="elf", size=blob.size, machine=machine, bits=32 if head[4] == 1 else 64
        )
    pe, macho = head.startswith(b"MZ"), head.startswith((b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"))
    return SharedObject(member=blob.key, format="pe" if pe else "macho" if macho else "unknown", size=blob.size)
