"""Read an ExecuTorch program (``.pte``) or data file (``.ptd``) in place.

Nothing is executed, nothing is read whole, and nothing is raised for content. A ``.pte`` is a flatbuffer and segments:

0   u32 root      4  "ET12"      8  "eh00", only where a segment carries data
12  u32 length    16 u64 size of the flatbuffer   24 u64 start of the segments   32 u64 their size (length 32 on)

A ``.ptd`` has "FT01" and "FH01": 16 u64 start and 24 u64 size of the flatbuffer, 32 u64 start and 40 u64 size of the
segments. A delegate of AOTInductor code has a payload of two keys, or none and names after the method before 1.4.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.other_artifacts import AOTI_BACKENDS, Delegate, ExecutorchFile, NamedBlob, PlanTensor, PteMethod
from aotidoctor.model.torch_names import scalar_type
from aotidoctor.readers.inputs.tensor_values import decode
from aotidoctor.readers.package.blob import Blob
from aotidoctor.readers.package.package_models import read_library

# A flatbuffer of a stranger: every offset, vector and depth is checked before it is followed. Offsets go forward only,
# so no walk comes back to where it was; a budget of reads bounds what many references to the same table cost. Nothing
# is read that is not asked for: pages of 64 KiB, of which only so many are kept.
_PAGE = 1 << 16
_MOST_PAGES = 512
_MOST_READS = 1_500_000
MOST_ITEMS = 200_000
_MOST_TEXT = 1024


class FlatbufferError(ValueError):
    """The bytes are not the flatbuffer that was expected; the text says where."""


class FlatBuffer:
    """``size`` bytes of a file from ``start`` on. Every read raises FlatbufferError outside of them."""

    def __init__(self, read_at: Callable[[int, int], bytes], start: int, size: int) -> None:
        self._read_at, self._start, self.size = read_at, start, size
        self._pages: dict[int, bytes] = {}
        self._reads = 0

    def data(self, at: int, length: int) -> bytes:
        """``length`` bytes at ``at``."""
        self._reads += 1 + length // 64
        if self._reads > _MOST_READS:
            raise FlatbufferError("more references than a program has")
        if at < 0 or length < 0 or at + length > self.size:
            raise FlatbufferError(f"offset {at:,} + {length:,} leads beyond the {self.size:,} bytes of the flatbuffer")
        number, inside = divmod(at, _PAGE)
        if inside + length <= _PAGE:
            found = self._page(number)[inside : inside + length]
        else:
            found = self._read_at(self._start + at, length)
        if len(found) < length:
            raise FlatbufferError(f"the file ends before offset {at + length:,} of the flatbuffer")
        return found

    def number(self, at: int, code: str) -> int:
        """The integer at ``at``; ``code`` as in ``struct``."""
        return int(struct.unpack("<" + code, self.data(at, struct.calcsize("<" + code)))[0])

    def follow(self, at: int) -> int:
        """Target of the offset at ``at``, which is forward."""
        step = self.number(at, "I")
        if step < 4:
            raise FlatbufferError(f"the offset at {at:,} leads nowhere")
        return at + step

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        if page is None:
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            at = number * _PAGE
            page = self._pages[number] = self._read_at(self._start + at, min(_PAGE, self.size - at))
        return page


class Table:
    """A table at ``at``: fields by their number in the schema."""

    def __init__(self, buffer: FlatBuffer, at: int) -> None:
        self.buffer, self.at = buffer, at
        vtable = at - buffer.number(at, "i")
        length = buffer.number(vtable, "H")
        if length < 4 or length % 2:
            raise FlatbufferError(f"the table at {at:,} has a vtable of {length} bytes")
        self._fields = struct.unpack(f"<{length // 2 - 2}H", buffer.data(vtable, length)[4:])

    def field(self, index: int) -> int | None:
        """Place of the field, None where the table has none."""
        inside = self._fields[index] if index < len(self._fields) else 0
        return self.at + inside if inside else None

    def number(self, index: int, code: str) -> int:
        """An integer."""
        at = self.field(index)
        return 0 if at is None else self.buffer.number(at, code)

    def table(self, index: int) -> Table | None:
        """A table, None where there is none."""
        at = self.field(index)
        return None if at is None else Table(self.buffer, self.buffer.follow(at))

    def tables(self, index: int) -> Iterator[Table]:
        """The tables of a vector."""
        start, count = self.vector(index, 4)
        for item in range(count):
            yield Table(self.buffer, self.buffer.follow(start + 4 * item))

    def vector(self, index: int, item_size: int) -> tuple[int, int]:
        """Place and number of the items; none where there is no vector."""
        at = self.field(index)
        if at is None:
            return 0, 0
        place = self.buffer.follow(at)
        count = self.buffer.number(place, "I")
        if count * item_size > self.buffer.size - place - 4:
            raise FlatbufferError(f"the vector of {count:,} items at {place:,} leads beyond the flatbuffer")
        return place + 4, count

    def numbers(self, index: int, code: str, most: int) -> tuple[int, ...]:
        """The integers of a vector of at most ``most``."""
        size = struct.calcsize("<" + code)
        start, count = self.vector(index, size)
        if count > most:
            raise FlatbufferError(f"a vector of {count:,} integers, where at most {most:,} are read")
        return struct.unpack(f"<{count}{code}", self.buffer.data(start, count * size)) if count else ()

    def text(self, index: int) -> str:
        """A string or a vector of bytes as text, cut to 1,024 bytes."""
        start, count = self.vector(index, 1)
        return self.buffer.data(start, min(count, _MOST_TEXT)).decode("utf-8", "replace") if count else ""


# The files.
PROGRAM, DATA = b"ET12", b"FT01"
PROGRAM_HEADER, DATA_HEADER = b"eh00", b"FH01"
# Bytes whose sha256 is taken without being asked for, and the most of a payload that is searched for keys.
HASH_LIMIT = 64 << 20
# Likewise, bytes of tensors that are looked through for NaN.
VALUES_LIMIT = 16 << 20
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PAYLOAD_LIMIT, _PAYLOADS_LIMIT = 4 << 20, 64 << 20
# Of a file made to cost much; a program has a few of each.
_MOST_METHODS, _MOST_DELEGATES, _MOST_SPECS, _MOST_DIMS, _MOST_VALUES = 1024, 16_384, 256, 64, 4096
# Pieces of code that are read; each may cost a look through 64 MiB.
_MOST_LIBRARIES = 16

# The union of a value's types in program.fbs, in order.
_TYPES = (
    *("None", "Null", "Int", "Bool", "Double", "Tensor", "String"),
    *("IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList"),
)
_TENSOR, _UNBOUNDED = 5, 2
_AOTI_KEY = re.compile(r"([0-9a-f]{64})(?:_(?:so|weights)_blob)?")
# A string of a flatbuffer: its length, 64 hexadecimal digits, a zero.
_XNNPACK_KEY = re.compile(rb"\x40\0\0\0([0-9a-f]{64})\0")
_DEVICES = ("cpu", "cuda")


def read_executorch(path: str, content: Blob, *, verify: bool = False) -> ExecutorchFile:
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
        found = replace(found, kind="malformed", problem=str(error))
    if found.expected_size > content.size:
        words = f"{found.size:,} bytes, where its header states {found.expected_size:,}"
        return replace(found, kind="truncated", problem=words)
    return found if found.problem is not None else _with_digests(found, content, verify=verify)


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


def _read_root(found: ExecutorchFile, root: Table, base: int, content: Blob) -> ExecutorchFile:
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
        sizes, order = layout.numbers(1, "i", _MOST_DIMS), layout.numbers(2, "B", _MOST_DIMS)
        tensor = PlanTensor(dtype=_dtype(layout.number(0, "b")), shape=sizes, dim_order=order)
    return NamedBlob(
        key=key, offset=spots[index][0], size=spots[index][1], tensor=tensor, promised=match[1] if match else None
    )


def _method(plan: Table, payload: Callable[[int, int], bytes | None]) -> PteMethod:
    name = plan.text(0)
    values = [_value(item) for item in _some(plan, 2, MOST_ITEMS)]
    tensors = [value for value in values if isinstance(value, PlanTensor)]

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
        external=tuple(value for value in tensors if value.external),
        devices=tuple(dict.fromkeys(value.device for value in tensors if value.device != "cpu")),
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
        shape=tensor.numbers(2, "i", _MOST_DIMS),
        dim_order=tensor.numbers(3, "B", _MOST_DIMS),
        dynamic=tensor.number(8, "b") != 0,
        unbounded=tensor.number(8, "b") == _UNBOUNDED,
        fqn=(extra.text(1) or None) if extra is not None else None,
        external=extra is not None and extra.number(2, "b") == 1,
        device=_device(extra.number(3, "b"), extra.number(4, "b")) if extra is not None else "cpu",
    )


def _dtype(number: int) -> str:
    return scalar_type(number) or f"scalar type {number}"


def _device(number: int, index: int) -> str:
    name = _DEVICES[number] if 0 <= number < len(_DEVICES) else f"device type {number}"
    return name if number == 0 else f"{name}:{index}"


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
def blob_of(content: Blob, blob: NamedBlob) -> Blob:
    """The bytes of ``blob``, of which nothing is read before it is asked for."""
    return content.part(blob.offset, max(min(blob.size, content.size - blob.offset), 0))


def _with_digests(found: ExecutorchFile, content: Blob, *, verify: bool) -> ExecutorchFile:
    """Add the sha256 of what a key promises, the smallest first, and what the code blobs are."""
    code = {delegate.code_key for delegate in found.delegates}
    # Blobs that overlap could be many times the file.
    left, unhashed = (max(HASH_LIMIT, 2 * content.size) if verify else HASH_LIMIT), 0
    of_values = content.size if verify else VALUES_LIMIT
    done: dict[tuple[int, int], str] = {}
    nans: dict[str, int] = {}
    libraries: dict[tuple[int, int], SharedObject] = {}
    for blob in sorted(found.named, key=lambda blob: blob.size):
        place = (blob.offset, blob.size)
        if blob.key in code and place not in libraries and len(libraries) < _MOST_LIBRARIES:
            libraries[place] = read_library(blob_of(content, blob), blob.key)
        if blob.tensor is not None and blob.tensor.dtype in _FLOATS and blob.size <= of_values:
            of_values -= blob.size
            nans[blob.key] = _count_nans(blob_of(content, blob), blob.tensor.dtype)
        if blob.promised is None or place in done:
            continue
        if blob.size > left:
            unhashed += blob.size
            continue
        left -= blob.size
        done[place] = blob_of(content, blob).sha256()
    named = tuple(
        replace(
            blob,
            sha256=done.get((blob.offset, blob.size)) if blob.promised else None,
            code=libraries.get((blob.offset, blob.size)) if blob.key in code else None,
            nan=nans.get(blob.key),
        )
        for blob in found.named
    )
    return replace(found, named=named, unhashed=unhashed)


def _count_nans(blob: Blob, dtype: str) -> int:
    found = 0
    for chunk in blob.chunks():
        values = decode(dtype, chunk[: len(chunk) // 8 * 8]) or ()
        # One that is not finite makes the sum so.
        found += sum(map(math.isnan, values)) if not math.isfinite(sum(values)) else 0
    return found
