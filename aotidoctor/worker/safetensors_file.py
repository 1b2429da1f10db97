"""Tensors of a .safetensors file, whether or not the library of that name is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aotidoctor.model.dtypes import SAFETENSORS_DTYPES


def load_safetensors(path: Path) -> dict[str, Any]:
    """Name -> tensor, each in memory of its own."""
    with path.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
        data = bytearray(stream.read())
    return {name: _tensor(entry, data) for name, entry in header.items() if name != "__metadata__"}


def _tensor(entry: dict[str, Any], data: bytearray) -> Any:
    import torch

    begin, end = entry["data_offsets"]
    dtype = getattr(torch, SAFETENSORS_DTYPES[entry["dtype"]])
    if begin == end:
        return torch.empty(entry["shape"], dtype=dtype)
    # A copy of its own: memory that the file's bytes are in need not be aligned for it.
    values = torch.frombuffer(data, dtype=torch.uint8, offset=begin, count=end - begin).clone()
    return values.view(dtype).reshape(entry["shape"])
