"""Pickles written opcode by opcode, in protocol 0 where that is enough: what no class of Python's own would write."""

from __future__ import annotations

import io
import zipfile


def name(path: str) -> bytes:
    """A global: ``torch.Size``."""
    module, _, last = path.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def text(value: str) -> bytes:
    return f"V{value}\n".encode()


def number(value: float) -> bytes:
    return f"{'I' if isinstance(value, int) else 'F'}{value}\n".encode()


TRUE, FALSE, NONE = b"I01\n", b"I00\n", b"N"


def tuple_of(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def list_of(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"l"


def dict_of(*parts: bytes) -> bytes:
    """Keys and values in turn."""
    return b"(" + b"".join(parts) + b"d"


def call(path: str, *args: bytes) -> bytes:
    return name(path) + tuple_of(*args) + b"R"


def new(path: str, *args: bytes) -> bytes:
    """``cls.__new__(cls, *args)``, as a namedtuple is saved."""
    return name(path) + tuple_of(*args) + b"\x81"


def storage(key="0", count=6, kind="FloatStorage") -> bytes:
    """The persistent id that torch.save writes for a storage."""
    parts = text("storage"), name(f"torch.{kind}"), text(key), text("cpu"), number(count)
    return tuple_of(*parts) + b"Q"


def numbers(*values: int) -> bytes:
    return tuple_of(*map(number, values))


def plain_args(shape=(2, 3), stride=(3, 1), held=None) -> bytes:
    parts = (storage() if held is None else held, number(0), numbers(*shape), numbers(*stride), FALSE)
    return b"(" + b"".join(parts) + call("collections.OrderedDict") + b"t"


def plain(shape=(2, 3), stride=(3, 1), held=None) -> bytes:
    """A float32 tensor, as ``_rebuild_tensor_v2`` makes it."""
    return name("torch._utils._rebuild_tensor_v2") + plain_args(shape, stride, held) + b"R"


def torch_file(value: bytes, storages=None) -> bytes:
    """A file of torch.save with this pickle and these records of values; six floats where none are given."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + value + b".")
        archive.writestr("archive/version", "3\n")
        for key, data in ({"0": bytes(24)} if storages is None else storages).items():
            archive.writestr(f"archive/data/{key}", data)
    return out.getvalue()
