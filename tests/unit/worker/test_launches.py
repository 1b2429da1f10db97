"""Launches waited for, on a small library that calls a made-up driver: no GPU, no CUDA, the hooks themselves."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from aotidoctor.runner.child_ending import read_channel
from aotidoctor.worker.call_hooks.package_calls import trace_launches
from aotidoctor.worker.channel import Channel

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no hooks on this machine"),
]

# A driver whose kernels fail late: ``fail_at`` is the number of the launch whose work is bad; the first wait after it
# tells, and from then on every one.
DRIVER = """
#include <stddef.h>
#include <string.h>
int fail_at = 0, code = 700, launches = 0, waits = 0, dead = 0, refuse_at = 0;
static const char* names[16]; static int loaded = 0;
static int launch(void) {
  launches++;
  if (launches == refuse_at) return 1;
  if (launches == fail_at) dead = code;
  return 0;
}
int cuModuleLoad(void** module, const char* file) { *module = (void*)file; return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  for (int i = 0; i < loaded; i++) if (!strcmp(names[i], name)) { *function = (void*)(size_t)(0x1000 + i); return 0; }
  names[loaded] = name; *function = (void*)(size_t)(0x1000 + loaded++); return 0;
}
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** args, void** extra) { return launch(); }
int cuLaunchKernelEx(const void* config, void* f, void** args, void** extra) { return launch(); }
int aoti_torch_cuda_mm_out(void* out, void* a, void* b) { return launch(); }
int aoti_torch_get_data_ptr(void* handle, void** out) { return 0; }
int cuCtxSynchronize(void) { waits++; return dead; }
int cuGetErrorName(int c, const char** text) { *text = c == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_ASSERT"; return 0; }
int cuGetErrorString(int c, const char** text) {
  *text = c == 700 ? "an illegal memory access was encountered" : "device-side assert triggered"; return 0;
}
"""
NAMED = "int cuFuncGetName(const char** n, void* f) { size_t i = (size_t)f - 0x1000; if (i >= loaded) return 1; *n = names[i]; return 0; }"
PACKAGE = """
#include <stddef.h>
int cuModuleLoad(void**, const char*); int cuModuleGetFunction(void**, void*, const char*);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
int cuLaunchKernelEx(const void*, void*, void**, void**);
int aoti_torch_cuda_mm_out(void*, void*, void*); int aoti_torch_get_data_ptr(void*, void**);
static void* kernels[3];
static void* load(int i, const char* name) {
  if (!kernels[i]) { void* m; void* f; cuModuleLoad(&m, name); cuModuleGetFunction(&f, m, name); kernels[i] = f; }
  return kernels[i];
}
struct config { unsigned sizes[7]; void* stream; void* attributes; unsigned count; };
int run(void) {
  struct config c = {{5, 6, 1, 32, 1, 1, 16}, 0, 0, 0};
  void* p; int rc;
  aoti_torch_get_data_ptr(0, &p);
  if ((rc = cuLaunchKernel(load(0, "triton_poi_fused_add_0"), 3, 1, 1, 128, 2, 1, 64, 0, 0, 0))) return rc;
  if ((rc = aoti_torch_cuda_mm_out(0, 0, 0))) return rc;
  if ((rc = cuLaunchKernel(load(1, "triton_red_fused_sum_1"), 7, 8, 9, 256, 1, 4, 0, 0, 0, 0))) return rc;
  return cuLaunchKernelEx(&c, load(2, "triton_poi_fused_mul_2"), 0, 0);
}
"""


class Loaded:
    """The package and its driver, loaded with their symbols to themselves, as torch loads a package."""

    def __init__(self, folder: Path, *, named: bool) -> None:
        self.directory = folder / "package"
        self.directory.mkdir()
        driver, package = folder / "libfake_driver.so", self.directory / "model.wrapper.so"
        _compile(folder / "driver.c", DRIVER + (NAMED if named else ""), driver, f"-Wl,-soname,{driver}")
        _compile(folder / "package.c", PACKAGE, package, str(driver))
        self.package = ctypes.CDLL(str(package))
        self.driver = ctypes.CDLL(str(driver))
        channel = folder / "channel.jsonl"
        channel.touch()
        self.channel = Channel(channel, user_cwd=folder, run_dir=folder)
        self.launches = trace_launches(self.directory, self.channel)
        self.told = lambda: read_channel(channel).result

    def set(self, **values: int) -> None:
        for name, value in values.items():
            ctypes.c_int.in_dll(self.driver, name).value = value

    def call(self) -> dict:
        assert self.launches is not None
        self.launches.begin(1)
        self.package.run()
        self.launches.finish()
        return self.told()


def _compile(source: Path, text: str, target: Path, *more: str) -> None:
    source.write_text(text)
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", str(source), "-o", str(target), *more]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(params=[True, False], ids=["names from the driver", "names from the load"])
def loaded(tmp_path, request):
    made = Loaded(tmp_path, named=request.param)
    yield made
    if made.launches is not None:
        made.launches.stop()


def test_the_driver_is_the_one_the_package_calls(loaded):
    assert loaded.launches._driver.path.endswith("libfake_driver.so")


def test_a_fault_that_shows_late_is_put_down_to_its_own_kernel(loaded):
    loaded.set(fail_at=1)
    failure = loaded.call()["launch_failure"]
    assert (failure["code"], failure["name"]) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert failure["call"]["kernel"] == "triton_poi_fused_add_0"
    assert (failure["call"]["grid"], failure["call"]["block"], failure["call"]["shared"]) == (
        [3, 1, 1],
        [128, 2, 1],
        64,
    )
    assert failure["before"]["symbol"] == "aoti_torch_cuda_mm_out"


def test_the_last_launch_is_not_the_culprit(loaded):
    loaded.set(fail_at=3, code=710)
    told = loaded.call()
    assert told["launch_last"]["kernel"] == "triton_poi_fused_mul_2"
    assert told["launch_failure"]["call"]["kernel"] == "triton_red_fused_sum_1"
    assert told["launch_failure"]["call"]["grid"] == [7, 8, 9]
    assert told["launch_failure"]["call"]["block"] == [256, 1, 4]


def test_an_operator_of_pytorch_is_named_by_its_shim(loaded):
    loaded.set(fail_at=2)
    failure = loaded.call()["launch_failure"]
    assert failure["call"]["symbol"] == "aoti_torch_cuda_mm_out"
    assert failure["before"]["kernel"] == "triton_red_fused_sum_1"


def test_the_last_one_is_waited_for_too(loaded):
    loaded.set(fail_at=4)
    failure = loaded.call()["launch_failure"]
    assert failure["call"]["kernel"] == "triton_poi_fused_mul_2"
    assert (failure["call"]["grid"], failure["call"]["shared"]) == ([5, 6, 1], 16)
    assert failure["before"] is None


def test_nothing_is_asked_of_a_dead_context(loaded):
    loaded.set(fail_at=1)
    loaded.call()
    assert ctypes.c_int.in_dll(loaded.driver, "waits").value == 3


def test_a_device_that_was_dead_before_blames_nobody(loaded):
    loaded.set(dead=700)
    failure = loaded.call()["launch_failure"]
    assert failure["call"] is None


def test_without_a_context_nothing_is_told(loaded):
    loaded.set(dead=201)
    told = loaded.call()
    assert "launch_failure" not in told
    assert told["launch_problem"]["code"] == 201


def test_a_healthy_call_is_counted(loaded):
    told = loaded.call()
    assert told["launch_count"] == 4
    assert "launch_failure" not in told
    assert [entry["kernel"] or entry["symbol"] for entry in told["launch_recent"]] == [
        "triton_poi_fused_add_0",
        "aoti_torch_cuda_mm_out",
        "triton_red_fused_sum_1",
        "triton_poi_fused_mul_2",
    ]


def test_names_are_kept_for_kernels_that_are_loaded_once(loaded):
    loaded.call()
    loaded.set(fail_at=7)
    assert loaded.call()["launch_failure"]["call"]["kernel"] == "triton_red_fused_sum_1"


def test_a_refused_launch_is_the_last_one_entered(loaded):
    loaded.set(refuse_at=3)
    told = loaded.call()
    assert "launch_failure" not in told
    assert told["launch_last"]["kernel"] == "triton_red_fused_sum_1"


def test_a_library_that_launches_nothing_is_told(tmp_path):
    directory = tmp_path / "package"
    directory.mkdir()
    _compile(tmp_path / "p.c", "int run(void) { return 0; }", directory / "plain.wrapper.so")
    kept = ctypes.CDLL(str(directory / "plain.wrapper.so"))
    channel = tmp_path / "channel.jsonl"
    channel.touch()
    assert trace_launches(directory, Channel(channel, user_cwd=tmp_path, run_dir=tmp_path)) is None
    assert "no slots" in read_channel(channel).result["launch_problem"]["text"]
    assert kept.run() == 0
