"""Bytes of two constants: equal or not, where, in how many elements, whatever their layout and size."""

from __future__ import annotations

import struct
from array import array

import pytest

from aotidoctor.model.artifact import StorageContent, StoredTensor
from aotidoctor.program import compiled_from
from aotidoctor.program.compiled_from import compare_contents


def stored(data: bytes, shape, *, dtype="float32", stride=None, offset=0, reads=None):
    def read_at(at, length):
        if reads is not None:
            reads.append(length)
        return data[at : at + length]

    return StoredTensor(
        fqn="w", dtype=dtype, shape=shape, stride=stride, offset=offset, content=StorageContent(len(data), read_at)
    )


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def test_equal():
    one = stored(floats(1, 2, 3, 4), (2, 2))
    assert compare_contents(one, stored(floats(1, 2, 3, 4), (2, 2)))["equal"] is True


def test_padding_does_not_count():
    assert compare_contents(stored(floats(1, 2) + bytes(56), (2,)), stored(floats(1, 2), (2,)))["equal"] is True


def test_one_bit():
    other = bytearray(floats(*range(6)))
    other[4 * 4 + 3] ^= 1 << 6
    facts = compare_contents(stored(bytes(other), (2, 3)), stored(floats(*range(6)), (2, 3)))
    assert (facts["equal"], facts["what"], facts["differing"], facts["numel"]) == (False, "flipped-bit", 1, 6)
    (element,) = facts["elements"]
    assert (element["index"], element["bits"], element["expected"]) == ([1, 1], [30], 4.0)


def test_few_and_values():
    base = list(range(100))
    few = compare_contents(stored(floats(*base[:-3], 7, 8, 9), (100,)), stored(floats(*base), (100,)))
    assert (few["what"], few["differing"]) == ("few", 3)
    many = compare_contents(stored(floats(*(value + 0.5 for value in base)), (100,)), stored(floats(*base), (100,)))
    assert (many["what"], many["share"], len(many["elements"])) == ("values", 1.0, 8)


def test_the_same_values_in_another_layout():
    rows = stored(floats(1, 2, 3, 4, 5, 6), (2, 3), stride=(3, 1))
    columns = stored(floats(0, 1, 4, 2, 5, 3, 6), (2, 3), stride=(1, 2), offset=1)
    assert compare_contents(rows, columns)["equal"] is True
    other = compare_contents(rows, stored(floats(0, 1, 4, 2, 9, 3, 6), (2, 3), stride=(1, 2), offset=1))
    assert [element["index"] for element in other["elements"]] == [[1, 1]]


def test_strides_of_dims_of_one_do_not_matter():
    one = stored(floats(1, 2), (1, 2), stride=(99, 1))
    assert compare_contents(one, stored(floats(1, 2), (1, 2), stride=(2, 1)))["equal"] is True


@pytest.mark.parametrize(
    ("dtype", "data", "value"),
    [
        ("bfloat16", b"\x80\x3f", 1.0),
        ("float16", struct.pack("<e", 1.5), 1.5),
        ("int64", struct.pack("<q", -3), -3),
        ("bool", b"\1", True),
        ("float8_e4m3fn", b"\x38", "0x38"),
        ("complex64", floats(1, 2), "0x400000003f800000"),
    ],
)
def test_values_of_dtypes(dtype, data, value):
    facts = compare_contents(stored(data, (), dtype=dtype), stored(bytes(len(data)), (), dtype=dtype))
    assert facts["elements"][0]["observed"] == value


def test_empty_and_missing():
    assert compare_contents(stored(b"", (0, 3)), stored(b"", (0, 3)))["equal"] is True
    lost = StoredTensor(fqn="w", dtype="float32", shape=(1,), problem="nobody ships it")
    assert compare_contents(lost, stored(floats(1), (1,))) == "nobody ships it"
    assert "unknown size" in compare_contents(stored(b"", (1,), dtype="other"), stored(b"", (1,)))


def test_a_storage_that_is_too_short():
    assert compare_contents(stored(floats(1), (2,)), stored(floats(1, 2), (2,))) == "the storage ends after 4 bytes"


def test_large_tensors_are_read_in_pieces():
    data = array("f", [1.0]) * 700_000
    reads: list[int] = []
    facts = compare_contents(stored(data.tobytes(), (700_000,), reads=reads), stored(data.tobytes(), (700_000,)))
    assert facts["equal"] is True
    assert max(reads) <= compiled_from.CHUNK
    assert len(reads) == 3


def test_counting_ends_where_enough_is_known(monkeypatch):
    monkeypatch.setattr(compiled_from, "MAX_SINGLE", 1000)
    monkeypatch.setattr(compiled_from, "CHUNK", 4096)
    one, other = array("f", [1.0]) * 100_000, array("f", [2.0]) * 100_000
    reads: list[int] = []
    facts = compare_contents(stored(one.tobytes(), (100_000,), reads=reads), stored(other.tobytes(), (100_000,)))
    assert (facts["what"], facts["share"]) == ("values", 1.0)
    assert len(reads) == 1
    assert "too many" in compare_contents(
        stored(one.tobytes(), (1000, 100), stride=(1, 1000)), stored(other.tobytes(), (1000, 100))
    )
