"""Processor, memory, torch build, GPUs, temporary folder, environment."""

from __future__ import annotations

import os

import pytest

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, Member, ModelEntry
from aotidoctor.readers.host.environment import allowed_variables, find_toolkit, find_tools, find_torch, read_tmpdir
from aotidoctor.readers.host.hardware import (
    Cpu,
    capability_of,
    default_threads,
    read_cpu,
    read_driver,
    read_gpus,
    read_memory,
)
from aotidoctor.readers.host.host_facts import read_host
from aotidoctor.readers.host.linkage import executable_stack
from tests.unit.readers.host.elf_builder import shared_object


def write(root, path, text):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return target


CPUINFO = "processor\t: 0\nmodel name\t: Test CPU\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t: other\n"


def test_cpu(tmp_path):
    write(tmp_path, "proc/cpuinfo", CPUINFO)
    for number in os.sched_getaffinity(0):
        write(tmp_path, f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list", "0-1\n")
    cpu = read_cpu(str(tmp_path))
    assert (cpu.model, cpu.flags) == ("Test CPU", frozenset({"fpu", "avx2", "fma"}))
    assert cpu.cores == len(os.sched_getaffinity(0))
    assert cpu.physical == 1


def test_cpu_without_proc(tmp_path):
    cpu = read_cpu(str(tmp_path))
    assert (cpu.model, cpu.flags, cpu.physical) == (None, frozenset(), cpu.cores)


@pytest.mark.parametrize(
    ("machine", "environ", "threads"),
    [
        ("x86_64", {}, 8),
        ("x86_64", {"OMP_NUM_THREADS": "3"}, 3),
        ("x86_64", {"OMP_NUM_THREADS": "3,2"}, 3),
        ("x86_64", {"OMP_NUM_THREADS": "64"}, 8),
        ("x86_64", {"OMP_NUM_THREADS": "64", "MKL_DYNAMIC": "FALSE"}, 64),
        ("x86_64", {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "4"}, 4),
        ("x86_64", {"OMP_NUM_THREADS": "many"}, 8),
        ("x86_64", {"OMP_NUM_THREADS": "0"}, 8),
        ("x86_64", {"OMP_THREAD_LIMIT": "1"}, 8),
        ("aarch64", {}, 16),
        ("aarch64", {"OMP_NUM_THREADS": "64"}, 64),
    ],
)
def test_default_threads(machine, environ, threads):
    cpu = Cpu(model=None, flags=frozenset(), cores=16, physical=8)
    assert default_threads(cpu, machine, environ) == threads


MEMINFO = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    600 kB\nHugePages_Total:  0\n"


def test_memory_without_group(tmp_path):
    write(tmp_path, "proc/meminfo", MEMINFO)
    memory = read_memory(str(tmp_path))
    assert (memory.total, memory.available) == (1024000, 614400)


@pytest.mark.parametrize(
    ("cgroup", "files"),
    [
        ("0::/a/b\n", {"sys/fs/cgroup/a/memory.max": "5000", "sys/fs/cgroup/a/memory.current": "4000",
                       "sys/fs/cgroup/a/b/memory.max": "max"}),
        ("3:cpu:/x\n4:memory:/a\n", {"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "5000",
                                     "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "4000",
                                     "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}),
    ],
)  # fmt: skip
def test_memory_in_a_group(tmp_path, cgroup, files):
    write(tmp_path, "proc/meminfo", MEMINFO)
    write(tmp_path, "proc/self/cgroup", cgroup)
    for path, text in files.items():
        write(tmp_path, path, text)
    memory = read_memory(str(tmp_path))
    assert (memory.total, memory.available) == (5000, 1000)


VERSION = """from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '2.13.0+cu130'
debug = False
cuda: Optional[str] = '13.0'
hip: Optional[str] = None
"""


@pytest.mark.parametrize(
    ("string", "abi"), [("NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", True), ("Ss", False)]
)
def test_torch_build(tmp_path, string, abi):
    write(tmp_path, "b/torch/__init__.py", "raise SystemExit('imported')")
    write(tmp_path, "b/torch/version.py", VERSION)
    (tmp_path / "b/torch/lib").mkdir()
    name = f"_ZN3c105ErrorC1ENS_14SourceLocationE{string}"
    (tmp_path / "b/torch/lib/libc10.so").write_bytes(shared_object([name]))
    write(tmp_path, "a/torch/notes.txt", "a folder called torch, and no package")
    found = find_torch([str(tmp_path / "gone"), str(tmp_path / "a"), str(tmp_path / "b")])
    assert found.build is not None
    assert (found.build.version, found.build.cuda, found.build.hip) == ("2.13.0+cu130", "13.0", None)
    assert found.build.cxx11_abi is abi
    assert found.folder == tmp_path / "b/torch"


def test_no_torch(tmp_path):
    found = find_torch([str(tmp_path)])
    assert found.build is None
    assert found.problem


def test_torch_without_a_version(tmp_path):
    write(tmp_path, "torch/__init__.py", "")
    write(tmp_path, "torch/version.py", "debug = False\n")
    found = find_torch([str(tmp_path)])
    assert found.build is None
    assert "version" in (found.problem or "")


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA H200", "90"), ("NVIDIA H100 80GB HBM3", "90"), ("NVIDIA A100-SXM4-40GB", "80"), ("NVIDIA L40S", "89"),
        ("NVIDIA L4", "89"), ("NVIDIA A10G", "86"), ("Tesla T4", "75"), ("Tesla V100-SXM2-16GB", "70"),
        ("NVIDIA GeForce RTX 4090", "89"), ("NVIDIA GeForce RTX 3080 Ti", "86"), ("NVIDIA B200", "100"),
        ("NVIDIA RTX A6000", "86"), ("NVIDIA RTX 6000 Ada Generation", "89"), ("NVIDIA GeForce RTX 5090", "120"),
        ("NVIDIA A30", "80"), ("Something new", None),
    ],
)  # fmt: skip
def test_capability_by_name(name, capability):
    assert capability_of(name) == capability


def test_gpus_and_driver(tmp_path):
    write(tmp_path, "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n")
    write(tmp_path, "proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t Tesla T4\n")
    write(
        tmp_path,
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version:  12\n",
    )
    assert [(gpu.index, gpu.name, gpu.compute_capability) for gpu in read_gpus(str(tmp_path))] == [
        (0, "NVIDIA H200", "90"),
        (1, "Tesla T4", "75"),
    ]
    assert read_driver(None, str(tmp_path)) == "570.86.15"


def test_driver_library_decides(tmp_path):
    write(tmp_path, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Fri\n")
    real = write(tmp_path, "compat/libcuda.so.550.54.15", "")
    link = tmp_path / "compat/libcuda.so.1"
    link.symlink_to(real)
    assert read_driver(str(link), str(tmp_path)) == "550.54.15"
    assert read_driver(None, str(tmp_path)) == "470.57.02"


def test_no_gpu(tmp_path):
    assert read_gpus(str(tmp_path)) == ()
    assert read_driver(None, str(tmp_path)) is None


def test_tmpdir_states(tmp_path):
    good = read_tmpdir({"TMPDIR": str(tmp_path)}, needed_bytes=1)
    assert good.problem is None
    assert good.free_bytes
    assert not read_tmpdir({"TMPDIR": str(tmp_path / "gone")}).exists
    assert "directory" in (read_tmpdir({"TMPDIR": str(write(tmp_path, "file", ""))}).problem or "")
    assert not read_tmpdir({"TMPDIR": "/proc/self"}).writable
    full = read_tmpdir({"TMPDIR": str(tmp_path)}, needed_bytes=1 << 60)
    assert (full.exists, full.writable) == (True, True)
    assert "free" in (full.problem or "")
    assert read_tmpdir({}).path == "/tmp"
    # Before 2.13 the loader asks nobody where to unpack.
    old, new = (read_tmpdir({"TMPDIR": str(tmp_path)}, torch=version) for version in ("2.12.1+cu130", "2.13.0"))
    assert (old.path, old.fixed) == ("/tmp", True)
    assert (new.path, new.fixed) == (str(tmp_path), False)


def test_environment_is_allow_listed():
    environ = {
        "OMP_NUM_THREADS": "2",
        "TORCH_LOGS": "all",
        "LD_PRELOAD": "x.so",
        "HOME": "/home/me",
        "AWS_SECRET_ACCESS_KEY": "no",
        "TORCH_HUB_TOKEN": "no",
        "MY_PASSWORD": "no",
    }
    assert allowed_variables(environ) == {"LD_PRELOAD": "x.so", "OMP_NUM_THREADS": "2", "TORCH_LOGS": "all"}


def test_tools(tmp_path):
    for name, mode in (("g++", 0o755), ("gdb", 0o644)):
        write(tmp_path, name, "").chmod(mode)
    (tmp_path / "clang++").mkdir()
    tools = find_tools({"PATH": str(tmp_path), "CXX": "ccache g++"})
    assert tools["g++"] == str(tmp_path / "g++")
    assert tools["clang++"] is None
    assert tools["CXX"] is None


def test_read_host_here(tmp_path):
    member = Member(
        name="x", size=1 << 60, compressed_size=1, crc=CrcState.GOOD, data_offset=0, path=str(tmp_path / "m.pt2")
    )
    artifact = Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, members=(member,))
    host = read_host(artifact=artifact, environ={"TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"})
    assert host.machine == os.uname().machine
    assert host.threads == 1
    assert host.tmpdir is not None
    assert host.tmpdir.problem is not None
    assert host.environment == {"OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    assert host.torch is not None or host.torch_problem is not None


def test_what_a_compile_for_cuda_needs(tmp_path):
    nothing = {"PATH": str(tmp_path / "empty"), "CUDA_HOME": str(tmp_path / "toolkit")}
    assert find_toolkit(nothing, [])["cuda.h"] in (None, "/usr/include/cuda.h", "/usr/local/include/cuda.h")
    header = write(tmp_path, "toolkit/include/cuda.h", "")
    assert find_toolkit(nothing, [])["cuda.h"] == str(header)
    bundled = write(tmp_path, "site/triton/backends/nvidia/bin/ptxas", "")
    bundled.chmod(0o755)
    assert find_toolkit(nothing, ["", str(tmp_path / "site")])["ptxas"] == str(bundled)
    chosen = write(tmp_path, "bin/ptxas", "")
    chosen.chmod(0o755)
    assert find_toolkit({**nothing, "TRITON_PTXAS_PATH": str(chosen)}, [str(tmp_path / "site")])["ptxas"] == str(chosen)


def test_a_link_to_nvcc_leads_to_the_folder_above_the_link_as_it_does_pytorch(tmp_path):
    header, nvcc = write(tmp_path, "toolkit/include/cuda.h", ""), write(tmp_path, "toolkit/bin/nvcc", "")
    nvcc.chmod(0o755)
    assert find_toolkit({"PATH": str(nvcc.parent)}, [])["cuda.h"] == str(header)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").symlink_to(nvcc)
    assert find_toolkit({"PATH": str(tmp_path / "bin")}, [])["cuda.h"] != str(header)


@pytest.mark.parametrize(
    ("glibc", "tunables", "enforce", "permitted"),
    [
        ("2.36", "", None, True),
        ("2.40", "", "0", True),
        ("2.41", "", None, False),
        ("2.42", "glibc.malloc.check=3", None, False),
        ("2.41", "glibc.malloc.check=3:glibc.rtld.execstack=2", None, True),
        ("2.41", "glibc.rtld.execstack=1", None, False),
        ("2.36", "", "1", None),
        (None, "", None, None),
    ],
)
def test_executable_stack(tmp_path, glibc, tunables, enforce, permitted):
    if enforce is not None:
        (tmp_path / "sys/fs/selinux").mkdir(parents=True)
        (tmp_path / "sys/fs/selinux/enforce").write_text(enforce)
    found = executable_stack(glibc, {"GLIBC_TUNABLES": tunables} if tunables else {}, str(tmp_path))
    assert found[0] is permitted
    assert (found[1] is None) == (permitted is True)


def test_folders_that_a_compiler_would_look_for_in_vain(tmp_path):
    here, lost = str(tmp_path), str(tmp_path / "lost")
    model = ModelEntry(name="model", layout="pt2", members=(), build_folders=(lost, here, f"{lost}\0strange"))
    artifact = Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(model,))
    assert read_host(artifact=artifact, environ={}).missing_folders == (lost, f"{lost}\0strange")
    assert read_host(artifact=None, environ={}).missing_folders is None


def test_a_compiler_that_is_led_elsewhere_misses_nothing(tmp_path):
    write(tmp_path, "torch/include/torch/csrc/inductor/x.h", "")
    write(tmp_path, "torch/lib/libtorch.so", "")
    lost = ("/absent/torch/include", "/absent/torch/lib")
    model = ModelEntry(name="model", layout="pt2", members=(), build_folders=lost)
    artifact = Artifact(path="m.pt2", kind=ArtifactKind.AOTI_PACKAGE, size=1, models=(model,))
    led = {"CPATH": f"/nowhere:{tmp_path}/torch/include"}
    assert read_host(artifact=artifact, environ=led).missing_folders == lost[1:]
    led["LIBRARY_PATH"] = f"{tmp_path}/torch/lib"
    assert read_host(artifact=artifact, environ=led).missing_folders == ()
