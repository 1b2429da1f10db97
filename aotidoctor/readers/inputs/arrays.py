"""numpy's .npy and .npz, by their headers; object arrays are pickles and stay closed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from aotidoctor.model.dtypes import ITEMSIZE, contiguous_stride
from aotidoctor.model.inputs import LeafValue
from aotidoctor.model.tree import Container, Leaf
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.members import Members
from aotidoctor.readers.inputs.ndarrays import array_value, torch_dtype
from aotidoctor.readers.inputs.problems import corrupt, unsafe, wrong_format
from aotidoctor.readers.inputs.values import View, described

NPY_MAGIC = b"\x93NUMPY"
MAX_HEADER = 64 << 10
_MAX_DIMS = 64
_SIZE = re.compile(r"[0-9]{1,18}")
_DESCR = re.compile(r"'descr':\s{0,20}'([^']{1,40})'")
_RECORD = re.compile(r"'descr':\s{0,20}\[")
_ORDER = re.compile(r"'fortran_order':\s{0,20}(True|False)")
_SHAPE = re.compile(r"'shape':\s{0,20}\(([\dL,\s]{0,2000})\)")


def read_npy(path: str, data: memoryview, *, trusted: bool) -> Content:
    """One array. Raises ``InputsError``."""
    return Content(tree=Leaf(value=_array(path, path, data, trusted=trusted)), format="npy")


def read_npz(members: Members, *, trusted: bool) -> Content:
    """Named arrays, in file order. Raises ``InputsError``."""
    names = members.names()
    arrays = tuple(Leaf(value=value) for value in _arrays(members, names, trusted=trusted))
    keys = tuple(name.removesuffix(".npy") for name in names)
    tree = Container(type="dict", children=arrays, keys=keys)
    return Content(tree=tree, format="npz", flat=True)


def _arrays(members: Members, names: tuple[str, ...], *, trusted: bool) -> Iterator[LeafValue]:
    for name in names:
        yield _array(members.path, name, members.read(name), trusted=trusted)


def _array(path: str, name: str, data: memoryview, *, trusted: bool) -> LeafValue:
    code, fortran, shape, start = _header(path, name, data)
    if "O" in code and not trusted:
        raise unsafe(path, [f"the pickled objects of {name}"])
    dtype = torch_dtype(code)
    if dtype is None:
        return array_value("object" if "O" in code else code.lstrip("<>=|"), shape)
    stride = contiguous_stride(shape) if not fortran else tuple(reversed(contiguous_stride(shape[::-1])))
    need = math.prod(shape) * ITEMSIZE[dtype]
    if len(data) - start < need:
        raise corrupt(path, name, f"{max(0, len(data) - start)} bytes of values", f"{need} for shape {shape}")
    values = data[start : start + need]
    view = View(dtype=dtype, data=values, shape=shape, stride=stride, big_endian=code.startswith(">"))
    return described(view, name)


def _header(path: str, name: str, data: memoryview) -> tuple[str, bool, tuple[int, ...], int]:
    """Dtype code, Fortran order, shape and the offset of the values."""
    head = bytes(data[:12])
    if head[:6] != NPY_MAGIC or len(head) < 10:
        raise corrupt(path, name, "no .npy header", "an array as numpy.save writes it")
    wide = head[6] > 1
    length = int.from_bytes(head[8:12] if wide else head[8:10], "little")
    start = (12 if wide else 10) + length
    if length > MAX_HEADER or start > len(data):
        raise corrupt(path, name, f"a header of {length} bytes", f"one inside {len(data)} bytes")
    text = bytes(data[12 if wide else 10 : start]).decode("latin-1")
    descr, order, shape = _DESCR.search(text), _ORDER.search(text), _sizes(text)
    if descr is None and _RECORD.search(text):
        raise wrong_format(path, f"a record array ({name})", subject=name)
    if descr is None or order is None or shape is None:
        raise corrupt(path, name, f"a header with {text[:60]!r}", "descr, fortran_order and shape")
    return descr[1], order[1] == "True", shape, start


def _sizes(text: str) -> tuple[int, ...] | None:
    """The shape in a header; None where there is none that an array can have."""
    found = _SHAPE.search(text)
    parts = found[1].split(",") if found is not None else []
    sizes = [part.strip().removesuffix("L") for part in parts if part.strip()]
    good = found is not None and len(sizes) <= _MAX_DIMS and all(_SIZE.fullmatch(size) for size in sizes)
    return tuple(map(int, sizes)) if good else None
