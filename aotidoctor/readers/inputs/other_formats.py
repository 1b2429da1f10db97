"""Inputs files that are no zip files: which format by their first bytes, and the reader of each."""

from __future__ import annotations

from aotidoctor.readers.inputs.arrays import NPY_MAGIC, read_npy
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.json_values import read_json
from aotidoctor.readers.inputs.legacy import read_legacy
from aotidoctor.readers.inputs.not_inputs import other_file
from aotidoctor.readers.inputs.opcodes import load
from aotidoctor.readers.inputs.problems import corrupt, wrong_format
from aotidoctor.readers.inputs.safetensors import is_safetensors, read_safetensors


def read_other(path: str, data: memoryview, head: bytes, *, trusted: bool) -> Content:
    """The content of ``data``, which begins with ``head`` (512 bytes or all). Raises ``InputsError``."""
    if head[:6] == NPY_MAGIC:
        return read_npy(path, data, trusted=trusted)
    if is_safetensors(data):
        return read_safetensors(path, data)
    if head[0] == 0x80 and len(head) > 1 and head[1] <= 5:
        return read_legacy(path, data, trusted=trusted)
    if head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"["):
        return read_json(path, data)
    if data[-1] == ord(".") and load(data).problem is None:
        return read_legacy(path, data, trusted=trusted)
    if not any(head):
        raise corrupt(path, path, "a file that begins with zeros", "an inputs file")
    raise wrong_format(path, other_file(head))
