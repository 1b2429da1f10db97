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
from tests.artifacts.mach_o import ARM64, X86_64, mach_o, universal
from tests.artifacts.packages import archive_parts, model_parts
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


MACS = {
    # What the library is, and what its package answers on macos-15-arm64 with torch 2.13.
    "fits": (mach_o(), "runs", []),
    "universal": (universal((X86_64, mach_o(X86_64)), (ARM64, mach_o())), "runs", []),
    "for Intel": (mach_o(X86_64), "refused", ["platform-mismatch"]),
    "unsigned": (mach_o(signed=False), "refused", ["platform-mismatch"]),
    "for a later macOS": (mach_o(least=(16, 0)), "refused", ["platform-mismatch"]),
    "a library of the build machine": (
        mach_o(needed=("/opt/homebrew/lib/libomp.dylib", "/opt/x.dylib")),
        "unknown",
        [],
    ),
}


@pytest.mark.parametrize("name", MACS)
def test_a_package_of_a_mac_is_judged_for_macs_and_others(name, tmp_path):
    library, answer, causes = MACS[name]
    (tmp_path / "m.pt2").write_bytes(build_zip([*archive_parts(), *model_parts(so=library)]))
    hosts = ["--host", "macos-15-arm64", "--host", "windows-11-x86_64", "--host", "ubuntu-24.04", "--torch", "2.13"]
    there, *others = ask(tmp_path, "compat", "m.pt2", *hosts, "--json")[1]["compat"]["answers"]
    assert (there["answer"], there["causes"]) == (answer, causes)
    assert [(one["answer"], one["causes"]) for one in others] == [("refused", ["platform-mismatch"])] * 2


def test_libraries_of_windows_are_known():
    host = Host(
        system="Windows", machine="AMD64", python="3.13", profile="desk", torch=TorchBuild(version="2.13.0", path="")
    )
    known = {name: has_library(host, name) for name in ("KERNEL32.dll", "torch_cpu.dll", "VCRUNTIME140.dll", "vcruntime140d.dll",
                                                       "libstdc++-6.dll", "api-ms-win-crt-heap-l1-1-0.dll", "own.dll")}  # fmt: skip
    assert list(known.values()) == [True, True, True, False, False, True, None]
    assert has_library(replace(host, torch=None), "torch_cpu.dll") is None
