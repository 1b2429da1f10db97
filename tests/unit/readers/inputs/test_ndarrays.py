"""Arrays and scalars of numpy in a pickle, read without numpy: what it says of them itself is expected."""

from __future__ import annotations

import pickle

import pytest

from aotidoctor.readers.inputs.read_inputs import read_inputs
from tests.optional import optional

np = optional("numpy")
PROTOCOLS = (2, 4, 5)


def leaves(tmp_path, values, protocol):
    path = tmp_path / "inputs.pkl"
    path.write_bytes(pickle.dumps(tuple(values), protocol=protocol))
    return [leaf for _, leaf in read_inputs(str(path)).leaves()]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("code", ["f4", "<f8", ">f4", "f2", "i8", "i4", "u1", "u8", "c8", "c16", "?"])
def test_arrays(tmp_path, code, protocol):
    array = np.zeros((2, 3), dtype=code)
    (leaf,) = leaves(tmp_path, [array], protocol)
    assert (leaf.type, leaf.shape, leaf.dtype) == ("ndarray", (2, 3), array.dtype.newbyteorder("=").name)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_other_orders_and_of_no_elements(tmp_path, protocol):
    found = leaves(tmp_path, [np.ones((3, 2)).T, np.zeros((0, 4), "i4"), np.float32(1) + np.zeros(())], protocol)
    assert [leaf.shape for leaf in found[:2]] == [(2, 3), (0, 4)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scalars_with_their_values(tmp_path, protocol):
    values = [np.float32(3.5), np.int64(-7), np.bool_(True), np.uint8(200)]
    found = leaves(tmp_path, values, protocol)
    assert [leaf.dtype for leaf in found] == [value.dtype.name for value in values]
    assert [leaf.text for leaf in found[:2]] == ["float32(3.5)", "int64(-7)"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_no_tensor_has_is_named(tmp_path, protocol):
    (text,) = leaves(tmp_path, [np.array(["a", "bc"])], protocol)
    assert (text.type, text.shape, text.dtype) == ("ndarray", (2,), "U2")
