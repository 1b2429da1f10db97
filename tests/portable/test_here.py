"""Commands that run nothing, on whatever system this is: the package is one for CUDA and Linux, and needs no torch."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.checks.matching.package_facts import has_library
from aotidoctor.commands.demo import CUDA_FILES
from aotidoctor.model.case import Host, TorchBuild
from tests.artifacts.elfs import ENTRY_POINTS
from tests.artifacts.mach_o import ARM64, X86_64, mach_o, universal
from tests.artifacts.packages import archive_parts, model_parts
from tests.artifacts.pe import ARM64 as PE_ARM64
from tests.artifacts.pe import pe
from tests.artifacts.zips import build_zip

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
LIMIT_S = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    room = tmp_path_factory.mktemp("files with spaces")
    (room / "model.pt2").write_bytes(lzma.decompress(CUDA_FILES.read_bytes()))
    ids = [list(range(7)) for _ in range(5)]
    good = {"args": [{"tensor": {"dtype": "int64", "device": "cuda", "data": ids}}]}
    (room / "good.json").write_text(json.dumps(good))
    (room / "int32.json").write_text(json.dumps(good).replace("int64", "int32"))
    return room


def ask(folder, *words):
    """Exit status and JSON of a command, typed in the folder."""
    command = [sys.executable, "-m", "aotidoctor", *words]
    done = subprocess.run(
        command, capture_output=True, timeout=LIMIT_S, cwd=folder, check=False, stdin=subprocess.DEVNULL
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith(b"{") else done.stdout


def first(answer):
    status, report = answer
    return status, next((one["cause"] for one in report["diagnoses"]), None)


def test_package_and_inputs_are_judged_for_another_machine(folder):
    words = ["--host", "ubuntu-24.04+torch-2.14-cuda-13.0", "--json"]
    assert first(ask(folder, "check", "model.pt2", "--inputs", "int32.json", *words)) == (1, "input-dtype")
    assert first(ask(folder, "check", str(folder / "model.pt2"), "--inputs", "good.json", *words)) == (0, None)
    assert first(ask(folder, "check", "model.pt2", "--host", "windows-11-x86_64", "--json")) == (1, "platform-mismatch")


def test_logs_reports_and_bundles_are_read(folder):
    status, report = ask(folder, "classify", str(DATA / "logs" / "cpp.log"), "--report", "html:log.html", "--json")
    assert (status, report["verdict"]) == (1, "problem")
    assert (folder / "log.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    host = ["--host", "ubuntu-24.04"]
    ask(folder, "check", "model.pt2", "--inputs", "int32.json", *host, "--report", "json:a.json", "--json")
    ask(folder, "check", "model.pt2", "--inputs", "good.json", *host, "--report", "json:b.json", "--json")
    assert ask(folder, "analyze", "a.json", "--json")[1]["diagnoses"][0]["cause"] == "input-dtype"
    assert ask(folder, "diff", "a.json", "b.json", "--json")[0] == 1


def test_many_packages_go_to_a_folder_of_results(folder):
    words = ["batch", "model.pt2", "--host", "ubuntu-24.04+torch-2.14-cuda-13.0", "-o", "night", "--no-cache"]
    assert ask(folder, *words)[0] == 0
    lines = (folder / "night" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["healthy"]


def test_this_machine_is_read(folder):
    status, _report = ask(folder, "env", "--save", "host.json", "--json")
    assert status == 0
    saved = json.loads((folder / "host.json").read_text(encoding="utf-8"))["host"]
    assert saved["system"] in ("Linux", "Darwin", "Windows")
    assert saved["cores"] >= 1


WINDOWS, WINDOWS_2_8, MACOS, MACOS_2_8, LINUX = HOSTS = (
    "windows-11-x86_64+x86-64-v3+torch-2.13-cpu", "torch-2.8-cpu+x86-64-v3+windows", "torch-2.13-cpu+macos-15-arm64",
    "macos-15-arm64+torch-2.8-cpu", "ubuntu-24.04+torch-2.13-cpu",
)  # fmt: skip
PLATFORM = "platform-mismatch"
RUNS = ("runs", [])
# torch 2.10 is the first that has it.
NEWER = "torch_new_list_reserve_size"
OTHER_SYSTEMS = {
    # What the library is, and its answers on the hosts where it is not simply one of another system.
    "mac": (mach_o(), {MACOS: RUNS, MACOS_2_8: RUNS}),
    "universal": (universal((X86_64, mach_o(X86_64)), (ARM64, mach_o())), {MACOS: RUNS, MACOS_2_8: RUNS}),
    "mac for Intel": (mach_o(X86_64), {}),
    "mac unsigned": (mach_o(signed=False), {}),
    "mac of a later system": (mach_o(least=(16, 0)), {}),
    "mac with a library of the build machine": (
        mach_o(needed=("/opt/homebrew/lib/libomp.dylib", "/opt/x.dylib")),
        dict.fromkeys((MACOS, MACOS_2_8), ("unknown", [])),
    ),
    "mac without an entry point": (
        mach_o(symbols=[(name, 0) for name in ENTRY_POINTS if not name.endswith("Run")]),
        dict.fromkeys((MACOS, MACOS_2_8), ("refused", ["abi-mismatch"])),
    ),
    "windows": (pe(), {WINDOWS: RUNS, WINDOWS_2_8: RUNS}),
    "windows for ARM": (pe(PE_ARM64), {}),
    "windows with the debug runtime": (
        pe(imports=[("vcruntime140d.dll", ["memcpy"])]),
        dict.fromkeys((WINDOWS, WINDOWS_2_8), ("refused", ["missing-library"])),
    ),
    "windows of MinGW": (
        pe(imports=[("libstdc++-6.dll", ["_Znwy"])]),
        dict.fromkeys((WINDOWS, WINDOWS_2_8), ("refused", ["missing-library"])),
    ),
    "windows with a function of a later torch": (
        pe(imports=[("torch_cpu.dll", [NEWER])]),
        {WINDOWS: RUNS, WINDOWS_2_8: ("refused", ["abi-mismatch"])},
    ),
}


@pytest.mark.parametrize("name", OTHER_SYSTEMS)
def test_a_package_of_windows_or_macos_is_judged_for_five_hosts(name, tmp_path):
    library, answers = OTHER_SYSTEMS[name]
    (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *model_parts(so=library)]))
    words = [word for host in HOSTS for word in ("--host", host)]
    found = ask(tmp_path, "compat", "m.pt2", *words, "--json")[1]["compat"]["answers"]
    given = {one["host"]: (one["answer"], one["causes"]) for one in found}
    assert given == {host: answers.get(host, ("refused", [PLATFORM])) for host in HOSTS}


def test_a_library_that_windows_lacks_comes_with_the_advice_of_windows(tmp_path):
    for library, word in (("msvcp140d.dll", "(/MD)"), ("own.dll", "add_dll_directory")):
        parts = model_parts(so=pe(imports=[(library, ["f"])]))
        (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *parts]))
        host = tmp_path / "host.json"
        known = {"system": "Windows", "machine": "AMD64", "python": "3.13", "libraries": {"own.dll": None}}
        host.write_text(json.dumps({"schema": "aotidoctor.host/1", "name": "desk", "host": known}), encoding="utf-8")
        report = ask(tmp_path, "check", "m.pt2", "--host", str(host), "--json")[1]
        diagnosis = next(one for one in report["diagnoses"] if one["cause"] == "missing-library")
        advice = json.dumps(diagnosis["remedy"])
        assert word in advice
        assert "LD_LIBRARY_PATH" not in advice


@pytest.mark.parametrize(
    ("library", "host", "found"),
    [
        (mach_o(needed=("/opt/homebrew/opt/libomp/lib/libomp.dylib",)), MACOS, True),
        (mach_o(needed=("@rpath/libomp.dylib",)), MACOS, False),
        (pe(imports=[("libomp140.x86_64.dll", ["__kmpc_fork_call"])]), WINDOWS, True),
        (pe(imports=[("libiomp5md.dll", ["__kmpc_fork_call"])]), WINDOWS, False),
    ],
)
def test_a_second_openmp_beside_that_of_torch(tmp_path, library, host, found):
    (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *model_parts(so=library)]))
    report = ask(tmp_path, "check", "m.pt2", "--host", host, "--json")[1]
    kinds = [one["kind"] for one in report["findings"] if one["code"] == "AD-HOST-009"]
    assert kinds == (["two-runtimes"] if found else [])


def test_libraries_of_windows_are_known():
    host = Host(
        system="Windows", machine="AMD64", python="3.13", profile="desk", torch=TorchBuild(version="2.13.0", path="")
    )
    known = {name: has_library(host, name) for name in ("KERNEL32.dll", "torch_cpu.dll", "VCRUNTIME140.dll", "vcruntime140d.dll",
                                                       "libstdc++-6.dll", "api-ms-win-crt-heap-l1-1-0.dll", "own.dll")}  # fmt: skip
    assert list(known.values()) == [True, True, True, False, False, True, None]
    assert has_library(replace(host, torch=None), "torch_cpu.dll") is None


def test_no_advice_for_windows_or_macos_is_one_for_linux(tmp_path):
    known = {"python": "3.13", "cpu_flags": ["sse2"], "tools": {}, "tmpdir": {
        "path": "x", "exists": False, "writable": False, "problem": "no such folder",
    }}  # fmt: skip
    sources = [part for part in model_parts() if not part.name.endswith(".so")]
    packages = {
        "instructions.pt2": model_parts(so=pe()), "elf.pt2": model_parts(),
        "sources.pt2": [*sources, replace(sources[0], name="model/data/aotinductor/model/CMakeLists.txt", data=b"project(m)")],
    }  # fmt: skip
    for name, parts in packages.items():
        (tmp_path / name).write_bytes(build_zip([*archive_parts(), *parts]))
    seen = set()
    for system, machine in (("Windows", "AMD64"), ("Darwin", "arm64")):
        host = {"system": system, "machine": machine, **known}
        linux = ("/proc", "apt-get", "LD_", "uname", *(["export "] if system == "Windows" else []))
        document = json.dumps({"schema": "aotidoctor.host/1", "name": system, "host": host})
        (tmp_path / "host.json").write_text(document, encoding="utf-8")
        for name in packages:
            for diagnosis in ask(tmp_path, "check", name, "--host", "host.json", "--json")[1]["diagnoses"]:
                seen.add(diagnosis["cause"])
                advice = json.dumps(diagnosis["remedy"])
                assert not any(word in advice for word in linux), advice
    assert seen >= {"isa-mismatch", "platform-mismatch", "tmpdir", "toolchain-missing"}
