"""Hashes of constants: dtype, shape and bytes in row-major order. They are comparable between package and program."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

from aotidoctor.model.dtypes import ITEMSIZE, is_row_major
from aotidoctor.model.program_archive import StoredTensor

# Of fewer bytes a hash can be turned round by trying them all.
LEAST_BYTES = 64
CHUNK = 1 << 20
DIGITS = 16


def digest(tensor: StoredTensor) -> str | None:
    """The hash; None where the bytes are too few, not there, or not in row-major order."""
    size = size_of(tensor)
    if size is None or size < LEAST_BYTES or tensor.content is None or not _is_row_major(tensor):
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


def size_of(tensor: StoredTensor) -> int | None:
    """Bytes of the elements; None where dtype or shape are not known."""
    if tensor.dtype is None or tensor.dtype not in ITEMSIZE or tensor.shape is None:
        return None
    return math.prod(tensor.shape) * ITEMSIZE[tensor.dtype]


def total(tensors: Iterable[StoredTensor]) -> int:
    """Bytes of all of them together, as far as they are known."""
    return sum(size_of(tensor) or 0 for tensor in tensors)


def _is_row_major(tensor: StoredTensor) -> bool:
    return tensor.stride is None or is_row_major(tensor.shape or (), tensor.stride)
