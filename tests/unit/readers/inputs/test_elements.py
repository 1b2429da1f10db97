"""Values of tensors, read when they are asked for: row-major, whatever the file and the strides."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from aotidoctor.readers.inputs.read_inputs import read_inputs
from aotidoctor.readers.inputs.tensor_values import MAX_SPAN, ValueView
from tests.unit.readers.inputs.test_other_formats import npy, npz, safetensors

DATA = Path(__file__).parents[3] / "data" / "inputs"
INTEGERS = struct.pack("<4q", 7, -1, 100, 3)


def elements(path) -> list[list | None]:
    tensors = [tensor for _, tensor in read_inputs(str(path)).tensors()]
    return [None if one.elements is None or (found := one.elements()) is None else list(found) for one in tensors]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("sliced", [[5, 7, 9, 11]]),
        ("expanded", [[0, 1, 2, 3] * 5]),
        ("args", [list(range(12)), [1, 0, 2]]),
        ("legacy", [list(range(12)), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]),
        ("conj_neg", [None, [-value for value in range(1, 13)]]),
        ("meta", [None]),
    ],
)
def test_torch_files(name, values):
    assert elements(DATA / f"{name}.pt") == values


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (npz(arr_0=npy("<i8", data=INTEGERS)), [7, -1, 100, 3]),
        (npz(arr_0=npy(">i2", shape=(2,), data=struct.pack(">2h", 300, -2))), [300, -2]),
        (npz(arr_0=npy("<i8", data=INTEGERS, fortran=True)), [7, 100, -1, 3]),
        (safetensors({"arr_0": {"dtype": "I64", "shape": [4], "data_offsets": [0, 32]}}, INTEGERS), [7, -1, 100, 3]),
        (
            json.dumps([{"tensor": {"dtype": "int64", "shape": [2, 2], "data": [7, -1, 100, 3]}}]).encode(),
            [7, -1, 100, 3],
        ),
        (json.dumps([{"tensor": {"dtype": "int64", "shape": [2], "seed": 1}}]).encode(), None),
    ],
    ids=["npz", "other byte order", "fortran order", "safetensors", "json", "json without values"],
)
def test_other_files(tmp_path, data, values):
    path = tmp_path / "sample"
    path.write_bytes(data)
    assert elements(path) == [values]


def test_what_is_too_large_is_not_read():
    data = memoryview(bytes(24))
    assert ValueView(dtype="int64", data=data, shape=(2,), stride=(2,)).elements() == [0, 0]
    assert ValueView(dtype="int64", data=data, shape=(2,), stride=(MAX_SPAN,)).elements() is None
    assert ValueView(dtype="int64", data=data, shape=(MAX_SPAN, 2), stride=(0, 0)).elements() is None
    assert ValueView(dtype="int64", data=data, shape=(0, 5), stride=(5, 1)).elements() == ()
    assert ValueView(dtype="float8_e4m3fn", data=data, shape=(2,), stride=(1,)).elements() is None
