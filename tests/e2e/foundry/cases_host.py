"""Faults between the package and this machine: ELF and metadata edits, and a changed environment."""

from __future__ import annotations

from foundry import edit
from foundry.cases import WARNS, Case, called, packaged

THREADS = "import torch\ntorch.set_num_threads({})\n"


def _so(change):
    return lambda members: edit.replace(members, ".wrapper.so", change)


def _newer_libc(so: bytes) -> bytes:
    old = min(name for name in edit.versions_needed(so) if name.startswith("GLIBC_2."))
    return edit.rename_version(so, old, "GLIBC_9." + "9" * (len(old) - 8))


def _newer_libstdcxx(so: bytes) -> bytes:
    old = min(name for name in edit.versions_needed(so) if name.startswith("GLIBCXX_3.4."))
    return edit.rename_version(so, old, "GLIBCXX_9.9." + "9" * (len(old) - 12))


def _metadata(**changes):
    return lambda members: edit.edit_metadata(members, **changes)


PE = b"MZ\x90\x00" + bytes(56) + b"\x80\x00\x00\x00" + bytes(64) + b"PE\x00\x00\x64\x86" + bytes(4000)
MACHO = b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01" + bytes(4000)
BITS_32 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00" + bytes(4000)

CASES: tuple[Case, ...] = (
    packaged("host_elf_aarch64", "linear", _so(lambda so: edit.set_machine(so, 183)), "platform-mismatch"),
    packaged("host_elf_riscv", "linear", _so(lambda so: edit.set_machine(so, 243)), "platform-mismatch"),
    packaged("host_windows", "linear", lambda m: edit.edit_metadata(_so(lambda _: PE)(m), AOTI_PLATFORM="win32"),
             "platform-mismatch"),
    packaged("host_macos", "linear", lambda m: edit.edit_metadata(_so(lambda _: MACHO)(m), AOTI_PLATFORM="darwin"),
             "platform-mismatch"),
    packaged("host_elf_32_bit", "linear", _so(lambda _: BITS_32), "platform-mismatch", also=("artifact-corrupt",)),
    packaged("host_metadata_aarch64", "linear", _metadata(AOTI_MACHINE="aarch64", AOTI_CPU_ISA="asimd"),
             "platform-mismatch", exits=WARNS),
    packaged("host_metadata_windows", "linear", _metadata(AOTI_PLATFORM="win32"), "platform-mismatch", exits=WARNS),
    packaged("host_device_cuda", "linear", _metadata(AOTI_DEVICE_KEY="cuda", AOTI_COMPUTE_CAPABILITY="90"),
             "device-unavailable", "cuda"),
    packaged("host_device_xpu", "linear", _metadata(AOTI_DEVICE_KEY="xpu"), "device-unavailable", "xpu"),
    packaged("host_device_mps", "linear", _metadata(AOTI_DEVICE_KEY="mps"), "device-unavailable", "mps"),
    packaged("host_needs_cuda_torch", "linear",
             _so(lambda so: edit.rename_dynamic_string(so, "libtorch_cpu.so", "libtorch_gpu.so")), "missing-library",
             "libtorch_gpu.so"),
    packaged("host_needs_other_libstdcxx", "linear",
             _so(lambda so: edit.rename_dynamic_string(so, "libstdc++.so.6", "libstdc++.so.9")), "missing-library",
             "libstdc++.so.9"),
    packaged("host_needs_intel_openmp", "total",
             _so(lambda so: edit.rename_dynamic_string(so, "libgomp.so.1", "libiomp5.so.")), "missing-library",
             "libiomp5.so."),
    packaged("host_undefined_symbol", "linear", _so(lambda so: edit.rename_dynamic_string(
        so, "aoti_torch_cpu_addmm_out", "aoti_torch_cpu_addmm_new")), "abi-mismatch", "aoti_torch_cpu_addmm_new"),
    packaged("host_undefined_delete", "linear", _so(lambda so: edit.rename_dynamic_string(
        so, "aoti_torch_delete_tensor_object", "aoti_torch_delete_tensor_xbject")), "abi-mismatch",
        "aoti_torch_delete_tensor_xbject"),
    packaged("host_newer_libc", "linear", _so(_newer_libc), "abi-mismatch", "GLIBC_9."),
    packaged("host_newer_libstdcxx", "linear", _so(_newer_libstdcxx), "abi-mismatch", "GLIBCXX_9.9."),
    packaged("host_no_entry_point", "linear", _so(lambda so: edit.rename_dynamic_string(
        so, "AOTInductorModelContainerRun", "AOTInductorModelContainerRxx")), "abi-mismatch",
        "AOTInductorModelContainerRun", also=("artifact-corrupt", "artifact-incomplete")),
    packaged("host_no_constructor", "linear", _so(lambda so: edit.rename_dynamic_string(
        so, "AOTInductorModelContainerCreateWithDevice", "AOTInductorModelContainerCreateWithDevixx")), "abi-mismatch",
        "AOTInductorModelContainerCreateWithDevice", also=("artifact-corrupt", "artifact-incomplete")),
    called("host_threads_8", "total", "threads-exceed-build", "cpp_fused_mul_sum_0", setup=THREADS.format(8)),
    called("host_threads_32", "total", "threads-exceed-build", "cpp_fused_mul_sum_0", options=("--threads", "32")),
    called("host_tmpdir_missing", "linear", "tmpdir", "gone", env={"TMPDIR": "{where}/gone"}),
    called("host_tmpdir_is_file", "linear", "tmpdir", "sample.pt", env={"TMPDIR": "{where}/sample.pt"}),
    called("host_tmpdir_readonly", "linear", "tmpdir", "/proc/self", env={"TMPDIR": "/proc/self"}),
)  # fmt: skip
