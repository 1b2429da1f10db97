"""Files of torch.save before 1.6, put together by hand: five pickles, then count and bytes of each storage."""

from __future__ import annotations

import pickle
import struct

import pytest

from aotidoctor.model.errors import InputsError
from aotidoctor.readers.inputs.read_inputs import read_inputs
from tests.unit.readers.inputs.opcodes import NONE, call, name, number, plain, text, tuple_of

MAGIC = 0x1950A86A20F9469CFC6C
VALUES = (1.0, -2.5, 3.0, 0.0, 5.0, 6.0)


def dumped(value):
    return pickle.dumps(value, protocol=2)


def held(key="0", count=6, kind="FloatStorage"):
    """The id of a storage, which these files end with metadata of a view."""
    parts = text("storage"), name(f"torch.{kind}"), text(key), text("cpu"), number(count), NONE
    return tuple_of(*parts) + b"Q"


def legacy(value=None, names=("0",), counts=(6,), little=True, tail=b"", **parts):
    """The file; ``parts`` are pickles to write in place of the sound ones."""
    shown = b"\x80\x02" + (tuple_of(plain(held=held())) if value is None else value) + b"."
    sound = {
        "magic": dumped(MAGIC),
        "version": dumped(1001),
        "system": dumped({"protocol_version": 1001, "little_endian": little, "type_sizes": {"int": 4}}),
        "object": shown,
        "keys": dumped(list(names)),
    }
    data = struct.pack("<6f", *VALUES)
    storages = b"".join(struct.pack("<q", count) + data for count in counts)
    return b"".join({**sound, **parts}.values()) + storages + tail


def read(tmp_path, data, **options):
    path = tmp_path / "inputs.pt"
    path.write_bytes(data)
    return read_inputs(str(path), **options)


@pytest.mark.parametrize("little", [True, False])
def test_values_are_little_endian_on_every_machine(tmp_path, little):
    """As ``torch.load`` reads them: what the file says of the machine that wrote it is not asked."""
    inputs = read(tmp_path, legacy(little=little))
    ((path, tensor),) = inputs.tensors()
    assert (inputs.format, path, tensor.dtype, tensor.shape) == ("pt-legacy", "args[0]", "float32", (2, 3))
    assert tuple(tensor.elements()) == VALUES
    assert (tensor.stats.low, tensor.stats.high, tensor.stats.zeros) == (-2.5, 6.0, 1)


@pytest.mark.parametrize(
    ("parts", "subject", "observed"),
    [
        ({"version": b"\x80\x02X"}, "header", "a damaged pickle"),
        ({"system": b"\x80\x02."}, "header", "a damaged pickle"),
        ({"keys": dumped({"0": 1})}, "storage keys", "a damaged pickle (no list)"),
        ({"keys": b"\x80\x02]"}, "storage keys", "a damaged pickle"),
        ({"names": ("0", "7"), "counts": (6, 6)}, "storage 7", "a storage that no tensor uses"),
        ({"names": ()}, "storage 0", "no such storage"),
        ({"counts": ()}, "storage 0", "0 bytes"),
        ({"counts": (7,)}, "storage 0", "24 bytes"),
        ({"counts": (5,)}, "storage 0", "20 bytes"),
        ({"value": tuple_of(plain(held=held(kind="Tensor")))}, "object", "torch.Tensor in place of a storage class"),
        ({"value": tuple_of(text("storage")) + b"Q"}, "object", "a persistent id that is not a storage"),
    ],
)
def test_a_damaged_file(tmp_path, parts, subject, observed):
    with pytest.raises(InputsError) as caught:
        read(tmp_path, legacy(**parts))
    assert (caught.value.cause, caught.value.subject) == ("inputs-file-corrupt", subject)
    assert caught.value.observed.startswith(observed)


def embedding(data):
    """A plain pickle of a tensor: its storage is a file of its own."""
    return b"\x80\x03" + tuple_of(plain(held=name("torch.storage._load_from_bytes") + dumped_inside(data))) + b"."


def dumped_inside(data):
    return b"(B" + struct.pack("<I", len(data)) + data + b"tR"


def test_a_storage_inside_of_a_plain_pickle(tmp_path):
    inputs = read(tmp_path, embedding(legacy(held())))
    ((_, tensor),) = inputs.tensors()
    assert (inputs.format, tensor.storage, tuple(tensor.elements())) == ("pickle", "embedded-0", VALUES)


@pytest.mark.parametrize(
    ("data", "cause", "observed"),
    [
        (b"no pickle", "inputs-file-corrupt", "an embedded storage that is not a torch file"),
        (dumped(3), "inputs-file-corrupt", "an embedded storage that is not a torch file"),
        (legacy(number(3), names=()), "inputs-file-corrupt", "a persistent id that is not a storage"),
        (legacy(call("os.system", text("true"))), "inputs-file-unsafe", "a pickle that calls os.system"),
    ],
)
def test_an_embedded_file_that_is_no_storage(tmp_path, data, cause, observed):
    with pytest.raises(InputsError) as caught:
        read(tmp_path, embedding(data))
    assert (caught.value.cause, caught.value.observed) == (cause, observed)
