"""Read inputs files that torch.save did not write: .npy, .npz, .safetensors and JSON, by their first bytes.

Only headers of .npy and .npz are read; object arrays are pickles and stay closed. A .safetensors file is 8 bytes of
header length, a JSON header, and the values. ``saved_calls`` describes the JSON document.
"""

from __future__ import annotations

import json
import math
import re

from aotidoctor.model.artifact import OTHER_MAGIC
from aotidoctor.model.errors import too_many
from aotidoctor.model.inputs import Container, Leaf, LeafValue, TensorDesc, Tree, ValueStats
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.torch_names import ITEMSIZE, SAFETENSORS_DTYPES, contiguous_stride
from aotidoctor.readers.inputs.describe_pickle import plain_value
from aotidoctor.readers.inputs.pickle_machine import load_pickle
from aotidoctor.readers.inputs.saved_calls import DocumentError, TensorSpec, decode
from aotidoctor.readers.inputs.tensor_values import (
    MAX_BYTES,
    ValueView,
    array_value,
    describe_view,
    summarise,
    torch_dtype,
)
from aotidoctor.readers.inputs.torch_files import (
    FileContent,
    Members,
    corrupt_error,
    has_dotted_names,
    read_legacy,
    unsafe_error,
    wrong_format_error,
)

# .npy and .npz.

NPY_MAGIC = b"\x93NUMPY"
MAX_NPY_HEADER = 64 << 10
_MAX_DIMS = 64
_SIZE = re.compile(r"[0-9]{1,18}")
_DESCR = re.compile(r"'descr':\s{0,20}'([^']{1,40})'")
_RECORD = re.compile(r"'descr':\s{0,20}\[")
_ORDER = re.compile(r"'fortran_order':\s{0,20}(True|False)")
_SHAPE = re.compile(r"'shape':\s{0,20}\(([\dL,\s]{0,2000})\)")


def read_npz(members: Members, *, trusted: bool) -> FileContent:
    """Named arrays, in file order. Raises ``InputsError``."""
    names = tuple(members.infos)
    arrays = tuple(Leaf(value=_array(members.path, name, members.read(name), trusted=trusted)) for name in names)
    keys = tuple(name.removesuffix(".npy") for name in names)
    tree = Container(type="dict", children=arrays, keys=keys)
    return FileContent(tree=tree, format="npz", flat=True)


def _array(path: str, name: str, data: memoryview, *, trusted: bool) -> LeafValue:
    code, fortran, shape, start = _header(path, name, data)
    if "O" in code and not trusted:
        raise unsafe_error(path, [f"the pickled objects of {name}"])
    dtype = torch_dtype(code)
    if dtype is None:
        return array_value("object" if "O" in code else code.lstrip("<>=|"), shape)
    stride = contiguous_stride(shape) if not fortran else tuple(reversed(contiguous_stride(shape[::-1])))
    need = math.prod(shape) * ITEMSIZE[dtype]
    if len(data) - start < need:
        raise corrupt_error(path, name, f"{max(0, len(data) - start)} bytes of values", f"{need} for shape {shape}")
    values = data[start : start + need]
    view = ValueView(dtype=dtype, data=values, shape=shape, stride=stride, big_endian=code.startswith(">"))
    return describe_view(view, name)


def _header(path: str, name: str, data: memoryview) -> tuple[str, bool, tuple[int, ...], int]:
    """Dtype code, Fortran order, shape and the offset of the values."""
    head = bytes(data[:12])
    if head[:6] != NPY_MAGIC or len(head) < 10:
        raise corrupt_error(path, name, "no .npy header", "an array as numpy.save writes it")
    wide = head[6] > 1
    length = int.from_bytes(head[8:12] if wide else head[8:10], "little")
    start = (12 if wide else 10) + length
    if length > MAX_NPY_HEADER or start > len(data):
        raise corrupt_error(path, name, f"a header of {length} bytes", f"one inside {len(data)} bytes")
    text = bytes(data[12 if wide else 10 : start]).decode("latin-1")
    descr, order, shape = _DESCR.search(text), _ORDER.search(text), _SHAPE.search(text)
    parts = shape[1].split(",") if shape is not None else []
    sizes = [part.strip().removesuffix("L") for part in parts if part.strip()]
    if descr is None and _RECORD.search(text):
        raise wrong_format_error(path, f"a record array ({name})", subject=name)
    good = shape is not None and len(sizes) <= _MAX_DIMS and all(map(_SIZE.fullmatch, sizes))
    if descr is None or order is None or not good:
        raise corrupt_error(path, name, f"a header with {text[:60]!r}", "descr, fortran_order and shape")
    return descr[1], order[1] == "True", tuple(map(int, sizes)), start


# JSON.
MAX_FILE = 64 << 20
MOST_BRACKETS = 500_000
FLOATING = ("float", "bfloat")


def read_json(path: str, data: memoryview) -> FileContent:
    """The content of the document. Raises ``InputsError``."""
    if len(data) > MAX_FILE:
        raise wrong_format_error(
            path, f"JSON of {len(data)} bytes", expected=f"at most {MAX_FILE}; use .npz for large values"
        )
    text = bytes(data)
    # Each costs far more memory than its two characters in the file.
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise too_many("lists and objects in the JSON inputs", MOST_BRACKETS)
    try:
        document: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise corrupt_error(path, path, f"no JSON ({str(error)[:80]})", "a JSON document") from error
    if not isinstance(document, (dict, list)):
        raise wrong_format_error(path, f"JSON that contains a single {type(document).__name__}")
    try:
        tree = describe_document(document)
    except (DocumentError, RecursionError) as error:
        observed = str(error)[:200]
        raise wrong_format_error(path, observed, subject=observed.partition(":")[0][:80]) from error
    return FileContent(tree=tree, format="json")


def describe_document(document: JsonValue) -> Tree[LeafValue]:
    """The descriptions of the tensors that the worker will make of ``document``. Raises ``DocumentError``."""
    made: list[TensorDesc] = []

    def tensor(spec: TensorSpec) -> LeafValue:
        made.append(_json_tensor(spec, f"json-{len(made)}"))
        return made[-1]

    return decode(document, tensor, plain_value)


def _json_tensor(spec: TensorSpec, name: str) -> TensorDesc:
    stride = contiguous_stride(spec.shape) if spec.stride is None else spec.stride
    span = 1 + sum((size - 1) * step for size, step in zip(spec.shape, stride, strict=True))
    # Other numbers than integers are of no use to anyone who asks for elements.
    integers = spec.data is not None and not spec.dtype.startswith((*FLOATING, "complex"))
    return TensorDesc(
        dtype=spec.dtype,
        shape=spec.shape,
        stride=stride,
        storage=name,
        storage_nbytes=0 if 0 in spec.shape else span * ITEMSIZE[spec.dtype],
        device=spec.device,
        stats=_stats(spec),
        elements=(lambda: [int(value) for value in spec.data or ()]) if integers else None,
    )


def _stats(spec: TensorSpec) -> ValueStats | None:
    data = spec.data
    if data is None or len(data) * ITEMSIZE[spec.dtype] > MAX_BYTES or spec.dtype.startswith("complex"):
        return None
    try:
        if spec.dtype.startswith(FLOATING):
            return summarise([float(value) for value in data])
        if spec.dtype == "bool":
            return summarise([int(bool(value)) for value in data])
        return summarise([int(value) for value in data])
    except (ValueError, OverflowError) as error:
        raise DocumentError(f"data: observed {error}, expected values of {spec.dtype}") from error


# .safetensors.

MAX_SAFETENSORS_HEADER = 16 << 20
MAX_TENSORS = 20_000


def is_safetensors(data: memoryview) -> bool:
    """Whether the file begins with a plausible length and the ``{`` of the header."""
    return len(data) > 8 and data[8] == 0x7B and 2 <= int.from_bytes(data[:8], "little") <= MAX_SAFETENSORS_HEADER


def read_safetensors(path: str, data: memoryview) -> FileContent:
    """Named tensors, in header order. Raises ``InputsError``."""
    length = int.from_bytes(data[:8], "little")
    if 8 + length > len(data):
        raise corrupt_error(
            path, path, f"a file of {len(data)} bytes", f"a header of {length} bytes and values after it"
        )
    header = read_header(path, bytes(data[8 : 8 + length]))
    names = tuple(header)
    if has_dotted_names(names):
        raise wrong_format_error(path, f"a state dict of {len(names)} tensors ({', '.join(names[:3])[:100]})")
    if len(names) > MAX_TENSORS:
        raise corrupt_error(path, path, f"{len(names)} tensors", f"at most {MAX_TENSORS}")
    values = data[8 + length :]
    children: tuple[Leaf[LeafValue], ...] = tuple(
        Leaf(value=_safetensors_tensor(path, name, entry, values)) for name, entry in header.items()
    )
    return FileContent(tree=Container(type="dict", children=children, keys=names), format="safetensors", flat=True)


def read_header(path: str, text: bytes) -> JsonObject:
    """The tensors' entries by name. Raises ``InputsError``."""
    try:
        header: JsonValue = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise corrupt_error(path, "header", f"no JSON ({str(error)[:80]})", "a JSON object") from error
    if not isinstance(header, dict):
        raise corrupt_error(path, "header", "JSON that is not an object", "a JSON object")
    header.pop("__metadata__", None)
    return header


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def known_sizes(sizes: list[JsonValue]) -> tuple[int, ...]:
    """The members of ``sizes`` that a tensor can have."""
    return tuple(size for size in sizes if isinstance(size, int) and 0 <= size < 1 << 48)


def _safetensors_tensor(path: str, name: str, entry: JsonValue, values: memoryview) -> TensorDesc:
    subject = name[:80]
    match entry:
        case {"dtype": str(code), "shape": list(sizes), "data_offsets": [int(begin), int(end)]}:
            shape = known_sizes(sizes)
        case _:
            raise corrupt_error(path, subject, "an entry without dtype, shape and data_offsets", "all three")
    dtype = SAFETENSORS_DTYPES.get(code)
    if dtype is None or len(shape) != len(sizes) or len(shape) > 64:
        raise corrupt_error(path, subject, f"dtype {code[:20]} and shape {str(sizes)[:60]}", "a known dtype and sizes")
    need = math.prod(shape) * ITEMSIZE[dtype]
    if not 0 <= begin <= end <= len(values) or end - begin != need:
        raise corrupt_error(
            path, subject, f"bytes {begin} to {end} of {len(values)}", f"{need} bytes for shape {shape}"
        )
    return describe_view(
        ValueView(dtype=dtype, data=values[begin:end], shape=shape, stride=contiguous_stride(shape)), name
    )


# The format by the first bytes.
_MAGIC = (
    (b"\x7fELF", "a shared library or program (ELF)"),
    (b"MZ", "a Windows program"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    *OTHER_MAGIC,
    (b"PAR1", "a Parquet file"),
    (b"version https://git-lfs", "a git-lfs pointer, not the file itself"),
    (b"<", "an HTML or XML page"),
)


def other_file(head: bytes) -> str:
    """The nature of a file by its first bytes, when no reader takes it."""
    stripped = head.lstrip()
    for magic, name in _MAGIC:
        if stripped.startswith(magic):
            return name
    if len(head) > 262 and head[257:262] == b"ustar":
        return "a tar file (torch.save before 0.1.10 wrote such)"
    text = head[:200].decode("utf-8", "replace")
    if text.isprintable() or all(letter.isprintable() or letter.isspace() for letter in text):
        return f"text ({text.strip().splitlines()[0][:60]!r})" if text.strip() else "blank text"
    return f"an unknown format (first bytes {head[:4].hex(' ')})"


def read_other_format(path: str, data: memoryview, head: bytes, *, trusted: bool) -> FileContent:
    """The content of ``data``, which begins with ``head`` (512 bytes or all). Raises ``InputsError``."""
    if head[:6] == NPY_MAGIC:
        return FileContent(tree=Leaf(value=_array(path, path, data, trusted=trusted)), format="npy")
    if is_safetensors(data):
        return read_safetensors(path, data)
    if head[0] == 0x80 and len(head) > 1 and head[1] <= 5:
        return read_legacy(path, data, trusted=trusted)
    if head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"["):
        return read_json(path, data)
    if data[-1] == ord(".") and load_pickle(data).problem is None:
        return read_legacy(path, data, trusted=trusted)
    if not any(head):
        raise corrupt_error(path, path, "a file that begins with zeros", "an inputs file")
    raise wrong_format_error(path, other_file(head))
