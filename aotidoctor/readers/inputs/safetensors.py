"""The .safetensors format: 8 bytes of header length, a JSON header, the values."""

from __future__ import annotations

import json
import math

from aotidoctor.model.dtypes import ITEMSIZE, SAFETENSORS_DTYPES, contiguous_stride
from aotidoctor.model.inputs import LeafValue, TensorDesc
from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.tree import Container, Leaf
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.not_inputs import dotted
from aotidoctor.readers.inputs.problems import corrupt, wrong_format
from aotidoctor.readers.inputs.values import View, described

MAX_HEADER = 16 << 20
MAX_TENSORS = 20_000


def is_safetensors(data: memoryview) -> bool:
    """Whether the file begins with a plausible length and the ``{`` of the header."""
    return len(data) > 8 and data[8] == 0x7B and 2 <= int.from_bytes(data[:8], "little") <= MAX_HEADER


def read_safetensors(path: str, data: memoryview) -> Content:
    """Named tensors, in header order. Raises ``InputsError``."""
    length = int.from_bytes(data[:8], "little")
    if 8 + length > len(data):
        raise corrupt(path, path, f"a file of {len(data)} bytes", f"a header of {length} bytes and values after it")
    header = read_header(path, bytes(data[8 : 8 + length]))
    names = tuple(header)
    if dotted(names):
        raise wrong_format(path, f"a state dict of {len(names)} tensors ({', '.join(names[:3])[:100]})")
    if len(names) > MAX_TENSORS:
        raise corrupt(path, path, f"{len(names)} tensors", f"at most {MAX_TENSORS}")
    values = data[8 + length :]
    children: tuple[Leaf[LeafValue], ...] = tuple(
        Leaf(value=_tensor(path, name, entry, values)) for name, entry in header.items()
    )
    return Content(tree=Container(type="dict", children=children, keys=names), format="safetensors", flat=True)


def read_header(path: str, text: bytes) -> JsonObject:
    """The tensors' entries by name. Raises ``InputsError``."""
    try:
        header: JsonValue = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise corrupt(path, "header", f"no JSON ({str(error)[:80]})", "a JSON object") from error
    if not isinstance(header, dict):
        raise corrupt(path, "header", "JSON that is not an object", "a JSON object")
    header.pop("__metadata__", None)
    return header


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def known_sizes(sizes: list[JsonValue]) -> tuple[int, ...]:
    """Those of ``sizes`` that a tensor can have."""
    return tuple(size for size in sizes if isinstance(size, int) and 0 <= size < 1 << 48)


def _tensor(path: str, name: str, entry: JsonValue, values: memoryview) -> TensorDesc:
    subject = name[:80]
    match entry:
        case {"dtype": str(code), "shape": list(sizes), "data_offsets": [int(begin), int(end)]}:
            shape = known_sizes(sizes)
        case _:
            raise corrupt(path, subject, "an entry without dtype, shape and data_offsets", "all three")
    dtype = SAFETENSORS_DTYPES.get(code)
    if dtype is None or len(shape) != len(sizes) or len(shape) > 64:
        raise corrupt(path, subject, f"dtype {code[:20]} and shape {str(sizes)[:60]}", "a known dtype and sizes")
    need = math.prod(shape) * ITEMSIZE[dtype]
    if not 0 <= begin <= end <= len(values) or end - begin != need:
        raise corrupt(path, subject, f"bytes {begin} to {end} of {len(values)}", f"{need} bytes for shape {shape}")
    return described(View(dtype=dtype, data=values[begin:end], shape=shape, stride=contiguous_stride(shape)), name)
