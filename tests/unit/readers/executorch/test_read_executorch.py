"""ExecuTorch files as its own serializer wrote them, cut, damaged, and made to cost much."""

from __future__ import annotations

import random
import struct

import pytest

from aotidoctor.readers.executorch.read_executorch import read_executorch
from aotidoctor.readers.package.blob import bytes_blob
from tests.artifacts.executorch import DATA, code_at, content, library, put, with_code

FILES = sorted(path.name for path in DATA.iterdir())


def read(data, **more):
    return read_executorch("m.pte", bytes_blob(data), **more)


@pytest.mark.parametrize("name", FILES)
def test_files_of_executorch_are_read_without_a_problem(name):
    found = read(content(name))
    assert (found.problem, found.version, found.program) == (None, 0, name.endswith(".pte"))
    assert found.expected_size in (0, found.size)
    assert all(blob.sha256 == blob.promised for blob in found.named)
    assert bool(found.methods) == found.program


def test_method_with_its_tensors_and_its_delegate():
    (method,) = read(content("cuda_mlp.pte")).methods
    (given,), (result,), (delegate,) = method.inputs, method.outputs, method.delegates
    assert (method.name, given.dtype, given.shape, given.dim_order, given.dynamic) == (
        "forward", "float32", (64, 32), (0, 1), True,
    )  # fmt: skip
    assert (result.shape, result.dynamic) == ((64, 8), True)
    assert (delegate.backend, dict(delegate.compile_specs)) == (
        "CudaBackend", {"method_name": "forward", "target_device": "cuda:0"},
    )  # fmt: skip
    assert method.operators == ("et_copy::_h2d_copy.out", "et_copy::_d2h_copy.out")


def test_several_methods_and_values_that_are_no_tensors():
    found = read(content("portable_methods.pte"))
    assert [method.name for method in found.methods] == [
        "encode", "forward", "get_max_seq_len", "get_name", "use_kv", "ids", "t",
    ]  # fmt: skip
    encode = found.methods[0]
    assert encode.inputs[2] == "Int"
    assert [value.dtype for value in encode.outputs] == ["float32", "int64", "bool"]
    assert found.needed_data == ()


def test_both_forms_of_keys_lead_to_code_and_weights():
    newer, older = read(content("cuda_mlp.pte")), read(content("cuda_legacy.pte"))
    assert older.delegates[0].code_key == "forward_so_blob"
    assert older.needed_data == ("forward_weights_blob",)
    assert set(older.needed_data) <= read(content("cuda_legacy.ptd")).keys
    assert newer.delegates[0].code_key in newer.keys
    assert set(newer.needed_data) == read(content("cuda_mlp.ptd")).keys
    (code,) = (blob.code for blob in newer.named)
    assert (code.format, code.machine, code.bits) == ("elf", "x86_64", 64)


@pytest.mark.parametrize("name", ["portable_external", "xnnpack_external"])
def test_constants_in_a_data_file_are_needed_by_name(name):
    program, data = read(content(f"{name}.pte")), read(content(f"{name}.ptd"))
    assert len(program.needed_data) == 4
    assert set(program.needed_data) == data.keys


def test_layout_of_tensors_in_a_data_file():
    found = {blob.key: blob.tensor for blob in read(content("portable_external.ptd")).named}
    assert (found["l1.weight"].dtype, found["l1.weight"].shape) == ("float32", (48, 32))


def test_sha256_of_large_data_is_taken_only_if_asked_for(monkeypatch):
    monkeypatch.setattr("aotidoctor.readers.executorch.read_executorch.HASH_LIMIT", 1000)
    data = content("cuda_mlp.pte")
    assert (read(data).unhashed, read(data).named[0].sha256) == (len(library("cuda_mlp.so")), None)
    assert read(data, verify=True).named[0].sha256 == read(data).named[0].promised


def test_code_is_read_as_the_library_that_it_is():
    (blob,) = read(content("cuda_mlp.pte")).named
    code = blob.code
    assert (code.format, code.machine, code.executable_stack, code.problem) == ("elf", "x86_64", True, None)
    assert (code.gpu_targets, len(code.kernel_symbols)) == (("sm_90a", "compute_90"), 4)
    assert "libcuda.so.1" in code.needed
    assert "AOTInductorModelContainerRun" in code.defined_entry_points
    assert {"aoti_torch_get_numel", "cudaMalloc"} <= {ref.name for ref in code.undefined}


def test_code_of_windows_has_its_imports_and_gpu_code():
    (blob,) = read(with_code(content("cuda_mlp.pte"), library("cuda_windows.dll"))).named
    code = blob.code
    assert (code.format, code.machine, code.bits, blob.sha256) == ("pe", "AMD64", 64, blob.promised)
    assert code.needed == ("aoti_cuda_shims.dll", "nvcuda.dll", "cudart64_13.dll", "KERNEL32.dll", "msvcrt.dll")
    shims = [ref.name for ref in code.undefined if ref.library == "aoti_cuda_shims.dll"]
    assert (len(shims), shims[-1]) == (25, "aoti_torch_get_numel")
    assert code.gpu_targets == ("sm_90a", "compute_90")


@pytest.mark.parametrize("step", [1, 3, 7])
def test_damaged_imports_of_windows_raise_nothing(step):
    data = library("cuda_windows.dll")
    start = struct.unpack_from("<I", data, 60)[0]
    for at in range(start, start + 600, step):
        (blob,) = read(with_code(content("cuda_mlp.pte"), put(data, at, b"\xff\xff\xff\xff"))).named
        assert blob.code.format in ("pe", "unknown")


@pytest.mark.parametrize("name", FILES)
def test_a_cut_file_is_never_whole(name):
    data = (DATA / name).read_bytes()
    for size in range(8, len(data), 61):
        found = read(data[:size])
        assert found.kind in ("truncated", "malformed"), size


def test_identifier_of_another_schema_and_of_another_file():
    assert read(put(content("cuda_mlp.pte"), 4, b"ET99")).kind == "identifier"
    assert read(b"PK\3\4" + bytes(200)).kind == "foreign"
    assert read(b"").kind == "truncated"


def test_offsets_that_lead_out_of_the_file_are_malformed():
    for value in (0, 1, 0x7FFFFFF0, 0xFFFFFFFF):
        assert read(put(content("cuda_mlp.pte"), 0, struct.pack("<I", value))).kind == "malformed"


def test_huge_sizes_in_the_header_are_a_truncation():
    found = read(put(content("cuda_mlp.pte"), 24, struct.pack("<Q", 2**64 - 1)))
    assert (found.kind, found.expected_size > 2**63) == ("truncated", True)


def test_many_references_to_the_same_table_cost_little():
    # 150,000 methods that are one table: a vector of offsets, all of which lead to the same place.
    count = 150_000
    vector = struct.pack("<I", count) + b"".join(struct.pack("<I", 4 * (count - at)) for at in range(count))
    # vtable: 12 bytes, table of 8, field 1 at 4; then the vector and the table of a method without fields.
    head = struct.pack("<I4sHHHHiI", 16, b"ET12", 8, 8, 0, 4, 8, 4)
    data = head + vector + struct.pack("<iHH", -4, 4, 4)
    found = read(data)
    assert (found.kind, "150,000 tables" in found.problem) == ("malformed", True)


@pytest.mark.parametrize("name", FILES)
def test_damaged_bytes_never_raise(name):
    data, rng = content(name), random.Random(name)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 2, 5))):
            at = rng.randrange(len(changed) - 4)
            changed[at : at + 4] = rng.choice(
                (
                    struct.pack("<I", rng.getrandbits(32)),
                    b"\xff\xff\xff\xff",
                    bytes(4),
                    struct.pack("<I", rng.randrange(200)),
                )
            )
        found = read(bytes(changed))
        assert found.kind in (None, "identifier", "foreign", "truncated", "malformed")


def test_a_changed_byte_of_code_shows_in_its_digest():
    data = content("cuda_mlp.pte")
    (blob,) = read(put(data, code_at(data) + 100, b"\xff" * 8)).named
    assert blob.sha256 != blob.promised
