"""What is read from a shared object, against pyelftools and against every kind of damage."""

from __future__ import annotations

import io
import struct

import pytest
from elftools.elf.elffile import ELFFile

from aotidoctor.model.artifact import SharedObject
from aotidoctor.readers.package.blob import bytes_blob
from aotidoctor.readers.package.shared_object import read_shared_object
from tests.artifacts.elfs import EM_AARCH64, EM_S390, ENTRY_POINTS, Undefined, build_elf
from tests.artifacts.mach_o import ARM64, X86_64, mach_o, universal
from tests.artifacts.pe import pe


def read(data: bytes) -> SharedObject:
    return read_shared_object(bytes_blob(data), "m.so")


@pytest.mark.parametrize(
    "changes",
    [{}, {"hash": "sysv"}, {"bits": 32, "machine": 3}, {"big_endian": True, "machine": EM_S390}, {"defined": ()}],
    ids=["gnu-hash", "sysv-hash", "32-bit", "big-endian", "nothing-defined"],
)
def test_undefined_symbols_are_those_of_pyelftools(changes):
    data = build_elf(**changes)
    elf = ELFFile(io.BytesIO(data))
    table, indices = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    needs = elf.get_section_by_name(".gnu.version_r")
    expected = set()
    for number, symbol in enumerate(table.iter_symbols()):
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name:
            index = indices.get_symbol(number)["ndx"]
            library, version = (
                (None, None) if isinstance(index, str) else [part.name for part in needs.get_version(index)]
            )
            expected.add((symbol.name, version, library, symbol["st_info"]["bind"] == "STB_WEAK"))
    found = read(data)
    assert {(s.name, s.version, s.library, s.weak) for s in found.undefined} == expected
    assert len(expected) == 3
    assert found.problem is None
    assert found.truncated_at is None


def test_facts_of_a_healthy_object():
    found = read(build_elf(runpath="/opt/a:/opt/b", kernels=("cpp_fused_add_0", "cpp_fused_add_0._omp_fn.0", "main")))
    assert (found.format, found.machine, found.bits, found.type) == ("elf", "x86_64", 64, "dyn")
    assert found.needed == ("libtorch_cpu.so", "libc.so.6")
    assert found.runpath == ("/opt/a", "/opt/b")
    assert found.defined_entry_points == tuple(sorted(ENTRY_POINTS))
    assert found.kernel_symbols == ("cpp_fused_add_0",)
    assert found.constants_span == 64
    assert found.has_debug_lines


@pytest.mark.parametrize(
    ("machine", "big", "expected"), [(EM_AARCH64, False, "aarch64"), (21, False, "ppc64le"), (243, False, "riscv64")]
)
def test_machine_as_platform_machine_prints_it(machine, big, expected):
    assert read(build_elf(machine=machine, big_endian=big)).machine == expected


def test_triton_kernels_are_read_from_mangled_names():
    name = "_Z34call_triton_poi_fused_addmm_relu_0IN5torch12aot_inductorEEvRKT_"
    assert read(build_elf(kernels=(name,))).kernel_symbols == ("triton_poi_fused_addmm_relu_0",)


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        ({}, "input_checks", True),
        ({"rodata": b"nothing\0"}, "input_checks", False),
        ({}, "printer_level", 0),
        ({"undefined": (Undefined("aoti_torch_save_tensor_handle"),)}, "printer_level", 1),
        ({"undefined": (Undefined("aoti_torch_print_tensor_handle"),)}, "printer_level", 2),
        ({"rodata": b"[ before_launch: %s ]\0"}, "printer_level", 3),
        ({}, "nan_asserts", False),
        ({"undefined": (Undefined("aoti_torch_check_inf_and_nan"),)}, "nan_asserts", True),
        ({}, "kernel_profile", False),
        ({"undefined": (Undefined("aoti_record_function_start"),)}, "kernel_profile", True),
        ({"sections": False}, "input_checks", True),
    ],
)
def test_debug_features(changes, field, expected):
    assert getattr(read(build_elf(**changes)).features, field) is expected


def test_cut_behind_the_loaded_part_still_loads():
    data = build_elf(padding=4096)
    found = read(data[: len(data) - 2000])
    assert found.truncated_at == len(data) - 2000
    assert found.problem is None
    assert len(found.undefined) == 3
    assert found.constants_span == 64


def test_cut_inside_the_loaded_part_does_not_load():
    data = build_elf()
    found = read(data[:600])
    assert found.truncated_at == 600
    assert "cut at 600 bytes" in found.problem


def test_stripped_section_headers_are_not_a_cut():
    found = read(build_elf(sections=False))
    assert found.truncated_at is None
    assert found.problem is None
    assert len(found.undefined) == 3


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (0, b"X", "not a shared object"),
        (4, b"\7", "identification"),
        (5, b"\0", "identification"),
        (16, b"\1\0", "type rel"),
        (16, b"\2\0", "type exec"),
        (54, b"\1\0", "program headers"),
        (32, b"\xff" * 8, "program headers"),
        (56, b"\0\0", "PT_LOAD"),
        (64, b"\6\0\0\0", "PT_LOAD"),
        (64 + 56, b"\4\0\0\0", "no dynamic section"),
        (64 + 56 + 32, b"\x10" + bytes(7), "no end"),
        (64 + 56 + 8, bytes(8), "dynamic"),
    ],
)
def test_damaged_headers_are_a_problem(offset, value, words):
    data = bytearray(build_elf())
    data[offset : offset + len(value)] = value
    assert words in read(bytes(data)).problem


def test_string_table_outside_is_a_problem():
    data = build_elf()
    strtab = struct.pack("<qQ", 5, data.index(b"\0aoti_torch_empty_strided"))
    assert strtab in data
    assert "string or symbol table" in read(data.replace(strtab, struct.pack("<qQ", 5, 1 << 40))).problem


def mmapped(weights: bytes) -> tuple[bytes, bytes]:
    magic = struct.pack("<Q", 0x1234567890ABCDEF)
    return build_elf(constants=struct.pack("<Q", len(weights) + 8) + magic), weights + magic


def test_appended_weights_with_their_marker_are_whole():
    library, weights = mmapped(b"w" * 500)
    found = read(library + weights)
    assert found.constants_span == 16
    assert found.problem is None


def test_appended_weights_that_were_cut():
    library, weights = mmapped(b"w" * 500)
    found = read(library + weights[:-100])
    assert "appended" in found.problem
    assert found.truncated_at == len(library) + 408


def test_sixteen_bytes_of_real_constants_are_no_marker():
    found = read(build_elf(constants=struct.pack("<qq", 3, 5)))
    assert found.constants_span == 16
    assert found.problem is None


def test_absent_constants():
    assert read(build_elf(constants=None)).constants_span is None


def test_other_platforms():
    windows = b"MZ" + bytes(58) + struct.pack("<I", 128) + bytes(64) + b"PE\0\0\x64\x86" + bytes(64)
    assert (read(windows).format, read(windows).machine) == ("pe", "AMD64")
    mac = struct.pack("<IIII", 0xFEEDFACF, 0x0100000C, 0, 6) + bytes(64)
    assert (read(mac).format, read(mac).machine) == ("macho", "arm64")
    universal = struct.pack(">IIII", 0xCAFEBABE, 2, 0x01000007, 3) + bytes(64)
    assert read(universal).machine == "x86_64"
    java = struct.pack(">IHH", 0xCAFEBABE, 0, 61) + bytes(64)
    assert read(java).format == "unknown"


def test_empty_and_tiny():
    assert read(b"").problem == "not a shared object: begins with nothing"
    assert "cut at 40 bytes" in read(build_elf()[:40]).problem


def test_of_a_mac_library_what_its_loader_reads():
    symbols = [("AOTInductorModelContainerRun", 0), ("aoti_torch_empty_strided", 1), ("malloc", 2)]
    found = read(mach_o(needed=("@rpath/libtorch_cpu.dylib", "/usr/lib/libSystem.B.dylib"), symbols=symbols))
    assert (found.format, found.machine, found.bits, found.problem) == ("macho", "arm64", 64, None)
    assert found.needed == ("@rpath/libtorch_cpu.dylib", "/usr/lib/libSystem.B.dylib")
    assert (found.runpath, found.least_system, found.signed) == (("@loader_path",), "12.0", True)
    assert found.defined_entry_points == ("AOTInductorModelContainerRun",)
    assert [(one.name, one.library) for one in found.undefined] == [
        ("aoti_torch_empty_strided", "@rpath/libtorch_cpu.dylib"),
        ("malloc", "/usr/lib/libSystem.B.dylib"),
    ]
    assert read(mach_o(signed=False)).signed is False


def test_a_universal_library_lists_its_machines():
    found = read(universal((X86_64, mach_o(X86_64)), (ARM64, mach_o())))
    assert (found.machine, found.machines) == ("x86_64", ("x86_64", "arm64"))


@pytest.mark.parametrize("at", range(0, 600, 7))
def test_a_damaged_mac_library_is_read_as_far_as_it_goes(at):
    whole = universal((X86_64, mach_o(X86_64)), (ARM64, mach_o(symbols=[("f", 1)])))
    data = bytearray(whole)
    for place in (at, 4096 + at):
        if place < len(data):
            data[place] ^= 0xFF
    assert read(bytes(data)).format in ("macho", "unknown")
    assert read(whole[: 4096 + at]).format == "macho"


def test_of_a_windows_library_what_its_loader_reads():
    imports = (("torch_cpu.dll", ("aoti_torch_empty_strided", "aoti_record_function_start")), ("msvcrt.dll", ("free",)))
    found = read(pe(imports=imports, exports=(*ENTRY_POINTS, "cpp_fused_add_0"), texts=("AOTI_RUNTIME_CHECK_INPUTS",)))
    assert (found.format, found.machine, found.bits, found.type, found.problem) == ("pe", "AMD64", 64, "dyn", None)
    assert found.needed == ("torch_cpu.dll", "msvcrt.dll")
    assert [(one.name, one.library) for one in found.undefined][-1] == ("free", "msvcrt.dll")
    assert (found.defined_entry_points, found.kernel_symbols) == (tuple(sorted(ENTRY_POINTS)), ("cpp_fused_add_0",))
    assert (found.features.input_checks, found.features.kernel_profile) == (True, True)


@pytest.mark.parametrize("library", [pe(), mach_o(held=4096)], ids=["windows", "macos"])
def test_a_cut_library_of_another_system(library):
    found = read(library[:-100])
    assert found.truncated_at == len(library) - 100
    assert f"ends at {len(library)}" in found.problem
    assert read(library).problem is None


@pytest.mark.parametrize("at", range(0, 1200, 11))
def test_a_damaged_windows_library_is_read_as_far_as_it_goes(at):
    data = bytearray(pe(texts=("x",)))
    data[at] ^= 0xFF
    assert read(bytes(data)).format in ("pe", "unknown")
    assert read(pe()[:at]).format in ("pe", "unknown")


def test_texts_of_a_mac_library():
    found = read(mach_o(texts=("AOTI_RUNTIME_CHECK_INPUTS", "[ before_launch: %s ]")))
    assert (found.features.input_checks, found.features.printer_level) == (True, 3)
    both = universal((X86_64, mach_o(X86_64, texts=("AOTI_RUNTIME_CHECK_INPUTS",))), (ARM64, mach_o()))
    assert read(both).features.input_checks is True
