"""ExecuTorch files around the real ones of tests/data/executorch: other code under a right key, and bytes changed.

Those were written by executorch 1.4.1 (``to_edge_transform_and_lower`` with CudaPartitioner, XnnpackPartitioner or none);
in the files of the CUDA ones the code was cut to its first 2,050 bytes by ``with_code``, and ``content`` puts it back. It is
in tests/data/executorch_code, stripped; that for Windows has zeros for machine code.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import struct
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "executorch"
CODE = DATA.with_name("executorch_code")


@cache
def content(name):
    data = (DATA / name).read_bytes()
    return with_code(data, library("cuda_mlp.so")) if name in ("cuda_mlp.pte", "cuda_legacy.pte") else data


@cache
def library(name):
    """``cuda_mlp.so``, or ``cuda_windows.dll`` of another program."""
    return lzma.decompress((CODE / f"{name}.xz").read_bytes())


def put(data, at, new):
    """``data`` with ``new`` at ``at``."""
    return data[:at] + new + data[at + len(new) :]


def with_code(data, code):
    """The program with this code as its last segment, and with its sha256 as the key where the keys are such."""
    base, length = struct.unpack_from("<2Q", data, 24)
    start = code_at(data)
    size = struct.pack("<Q", base + length - start)
    assert data.count(size, 60, base) == 1
    changed = put(data[:start], data.index(size, 60), struct.pack("<Q", len(code)))
    changed = put(changed, 32, struct.pack("<Q", start - base + len(code)))
    for key in set(re.findall(rb"([0-9a-f]{64})_so_blob", changed)):
        changed = changed.replace(key, hashlib.sha256(code).hexdigest().encode())
    return changed + code


def code_at(data):
    """Where the code begins."""
    return data.index(b"\x7fELF")
