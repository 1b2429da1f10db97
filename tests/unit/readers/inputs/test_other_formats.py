"""npz, npy, safetensors and JSON; and files that are none of these."""

import io
import json
import os
import struct
import zipfile

import pytest

from aotidoctor.model.errors import InputsError
from aotidoctor.readers.inputs.read_inputs import read_inputs

FOUR = struct.pack("<4f", 1, 2, 3, 4)


def npy(descr="<f4", shape=(2, 2), data=FOUR, *, fortran=False):
    header = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape!r}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def npz(**arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read(tmp_path, data, **options):
    path = tmp_path / "sample"
    path.write_bytes(data)
    return read_inputs(str(path), **options)


def refused(tmp_path, data, **options):
    with pytest.raises(InputsError) as caught:
        read(tmp_path, data, **options)
    return caught.value


def test_npy(tmp_path):
    inputs = read(tmp_path, npy(fortran=True))
    ((path, tensor),) = inputs.tensors()
    assert (inputs.format, inputs.form, path) == ("npy", "tensor", "args[0]")
    assert (tensor.dtype, tensor.shape, tensor.stride, tensor.stats.high) == ("float32", (2, 2), (1, 2), 4.0)


def test_npy_big_endian(tmp_path):
    ((_, tensor),) = read(tmp_path, npy(">i2", (2,), struct.pack(">2h", 5, 6))).tensors()
    assert (tensor.dtype, tensor.stats.low, tensor.stats.high) == ("int16", 5, 6)


def test_npz_positional_order_is_numeric(tmp_path):
    one = npy("|b1", (1,), b"\x01")
    inputs = read(tmp_path, npz(arr_0=npy(), arr_10=one, arr_2=one, mask=one))
    assert [path for path, _ in inputs.tensors()] == ["args[0]", "args[1]", "args[2]", "kwargs['mask']"]
    assert [tensor.storage for _, tensor in inputs.tensors()][:3] == ["arr_0.npy", "arr_2.npy", "arr_10.npy"]
    assert inputs.notes


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (npy(data=b"1234"), "inputs-file-corrupt"),
        (npy(shape=(1 << 40,)), "inputs-file-corrupt"),
        (npy("|O", (1,), b"x"), "inputs-file-unsafe"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "inputs-file-corrupt"),
        (b"\x93NUMPY\x01\x00\x04\x00(1,)", "inputs-file-corrupt"),
        (npy([("a", "<f4")]), "inputs-file-format"),
        (npz(a=npy())[:-30], "inputs-file-corrupt"),
        (npz(), "inputs-file-format"),
    ],
)
def test_bad_arrays(tmp_path, data, cause):
    assert refused(tmp_path, data).cause == cause


def test_text_array_is_no_tensor(tmp_path):
    inputs = read(tmp_path, npy("<U2", (1,), bytes(8)))
    ((_, value),) = inputs.leaves()
    assert (value.type, value.dtype, value.shape) == ("ndarray", "U2", (1,))


def test_safetensors(tmp_path):
    header = {
        "__metadata__": {"a": "b"},
        "args.0": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "kwargs.mask": {"dtype": "BOOL", "shape": [2], "data_offsets": [4, 6]},
    }
    inputs = read(tmp_path, safetensors(header, b"\x80\x3f\x00\x40\x00\x01"))
    found = dict(inputs.tensors())
    assert list(found) == ["args[0]", "kwargs['mask']"]
    assert (found["args[0]"].dtype, found["args[0]"].stats.high) == ("bfloat16", 2.0)
    assert found["kwargs['mask']"].stats.all_zero_or_one


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32"},
        3,
    ],
)
def test_bad_safetensors_entry(tmp_path, entry):
    assert refused(tmp_path, safetensors({"x": entry}, b"abcd")).cause == "inputs-file-corrupt"


def test_safetensors_cut_off_and_state_dict(tmp_path):
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    whole = safetensors({"x": entry}, b"abcd")
    assert refused(tmp_path, whole[:20]).cause == "inputs-file-corrupt"
    assert refused(tmp_path, whole[:-1]).cause == "inputs-file-corrupt"
    assert refused(tmp_path, safetensors({"fc.weight": entry}, b"abcd")).cause == "inputs-file-format"


def test_json_values_and_specs(tmp_path):
    document = {
        "args": [
            [[1, 2], [3, 4]],
            {"tensor": {"dtype": "float16", "shape": [2, 3], "stride": [1, 2], "seed": 7}},
            {"tuple": [1.5, None]},
        ],
        "kwargs": {"mask": [True, False], "opts": {"list": [1, 2]}},
    }
    inputs = read(tmp_path, json.dumps(document).encode())
    found = dict(inputs.leaves())
    assert list(found) == [
        "args[0]", "args[1]", "args[2][0]", "args[2][1]", "kwargs['mask']", "kwargs['opts'][0]", "kwargs['opts'][1]",
    ]  # fmt: skip
    assert (found["args[0]"].dtype, found["args[0]"].shape, found["args[0]"].stats.high) == ("int64", (2, 2), 4)
    assert (found["args[1]"].dtype, found["args[1]"].stride, found["args[1]"].stats) == ("float16", (1, 2), None)
    assert (found["kwargs['mask']"].dtype, found["kwargs['opts'][0]"].type) == ("bool", "int")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[1, 2", "inputs-file-corrupt"),
        ("[[[1, 2], [3]]]", "inputs-file-format"),
        ('[{"tensor": {"shape": [-1]}}]', "inputs-file-format"),
        ('[{"tensor": {"shape": [1], "dtype": "float33"}}]', "inputs-file-format"),
        ('[{"tensor": {"shape": [2], "data": [1]}}]', "inputs-file-format"),
        ('[{"tensor": {"shape": [2], "stride": [1, 1]}}]', "inputs-file-format"),
        ("[" * 200 + "{}" + "]" * 200, "inputs-file-format"),
        ("[" * 100_000, "inputs-file-corrupt"),
        ('[{"tensor": {"dtype": "int32", "data": [NaN]}}]', "inputs-file-format"),
    ],
)
def test_bad_json(tmp_path, text, cause):
    assert refused(tmp_path, text.encode()).cause == cause


def zipped(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\x02\x01\x01", "ELF"),
        (b"<!DOCTYPE html>\n", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git-lfs"),
        (b"just some text", "text"),
        (zipped("m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"), "TorchScript"),
        (zipped("m/models/model.json", "m/version"), "exported program"),
        (zipped("m/data/aotinductor/model/x.wrapper.so"), "AOTInductor package"),
        (zipped("word/document.xml"), "other members"),
        (b'"text"', "text"),
        (b"K\x01.", "single int"),
    ],
)
def test_files_that_hold_no_inputs(tmp_path, data, says):
    error = refused(tmp_path, data)
    assert error.cause == "inputs-file-format"
    assert says in str(error)


def test_missing_empty_directory_and_pipe(tmp_path):
    with pytest.raises(InputsError) as caught:
        read_inputs(str(tmp_path / "nothing"))
    assert caught.value.kind == "missing"
    with pytest.raises(InputsError) as caught:
        read_inputs(str(tmp_path))
    assert caught.value.cause == "inputs-file-format"
    assert refused(tmp_path, b"").cause == "inputs-file-corrupt"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputsError) as caught:
        read_inputs(str(tmp_path / "pipe"))
    assert caught.value.cause == "inputs-file-format"


def test_changed_byte_is_found_by_crc(tmp_path):
    good = npz_stored(a=npy())
    bad = good.replace(FOUR, struct.pack("<4f", 1, 2, 3, 5))
    assert read(tmp_path, good).tensors()
    error = refused(tmp_path, bad)
    assert (error.cause, error.subject) == ("inputs-file-corrupt", "a.npy")
    assert "CRC" in error.observed


def npz_stored(**arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


def test_two_members_of_one_name(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.npy", npy())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", npy())
    assert refused(tmp_path, out.getvalue()).cause == "inputs-file-corrupt"
