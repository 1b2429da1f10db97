"""Native stacks of real packages through the command line: a crash and a hang, in an operator and in a kernel."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import warm
from elftools.elf.elffile import ELFFile
from foundry import edit
from foundry.cases import Kit
from foundry.ops import cpp_op, python_op

KERNEL = "cpp_fused_add_mul_1"
# x86-64: write to address 0, and jump to itself.
DIE, SPIN = b"\x31\xc0\x89\x00", b"\xeb\xfe"

pytestmark = pytest.mark.torch
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
needs_x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the kernel is broken by x86-64 machine code")


def ask(model: Path, inputs: Path, setup: Path, *options: str, environ: Mapping[str, str] | None = None) -> dict:
    """The report with the plain run and the backtrace only."""
    words = ["run", model, "--inputs", inputs, "--setup", setup, "--probes", "backtrace", "--format", "json", *options]
    done = warm.command(*words, env=environ)
    assert done.returncode == 1, done.stderr[-2000:]
    report = json.loads(done.stdout)
    reasons = [item["reason"] for item in report["not_checked"] if item["name"] == "backtrace"]
    if reasons and "ptrace is forbidden" in reasons[0]:
        pytest.skip(reasons[0])
    return report


def backtrace_of(report: dict) -> dict:
    (found,) = (item for item in report["findings"] if item["code"] == "AD-RUN-023")
    return found


def with_operator(packages: Kit, where: Path, mode: str) -> tuple[Path, Path, Path]:
    setup = where / "setup_case.py"
    setup.write_text(cpp_op(packages.library, mode))
    return packages.package("misbehave"), packages.sample_path("misbehave"), setup


def with_kernel(packages: Kit, where: Path, code: bytes) -> tuple[Path, Path, Path]:
    """The same package with a well-behaved operator, and machine code at the start of its second kernel."""
    package, inputs, setup = with_operator(packages, where, "")
    members = edit.replace(edit.read(package), ".so", lambda data: edit.overwrite(data, _offset(data, KERNEL), code))
    return edit.write(where / "model.pt2", members), inputs, setup


def _offset(data: bytes, name: str) -> int:
    elf = ELFFile(io.BytesIO(data))
    symbol = next(one for one in elf.get_section_by_name(".symtab").iter_symbols() if one.name == name)
    section = elf.get_section(symbol["st_shndx"])
    return symbol["st_value"] - section["sh_addr"] + section["sh_offset"]


@needs_gdb
@pytest.mark.parametrize(("mode", "signal"), [("segv", "SIGSEGV"), ("double_free", "SIGABRT")])
def test_a_crash_in_an_operator(packages: Kit, case_dir: Path, mode: str, signal: str) -> None:
    report = ask(*with_operator(packages, case_dir, mode))
    facts = backtrace_of(report)["facts"]
    assert (facts["where"], facts["op"], facts["signal"]) == ("operator", "zoo::misbehave", signal)
    assert facts["proved"] is True
    assert "misbehave" in facts["function"]
    assert facts["library"] == packages.library.name
    assert facts["member"].endswith(".wrapper.cpp")
    assert "call_function" in facts["source"]
    first = report["diagnoses"][0]
    assert (first["cause"], first["subject"], first["confidence"]) == ("custom-op-crash", "zoo::misbehave", 0.9)


@needs_gdb
@needs_x86
def test_a_crash_in_a_kernel_is_not_laid_on_the_operator(packages: Kit, case_dir: Path) -> None:
    report = ask(*with_kernel(packages, case_dir, DIE))
    facts = backtrace_of(report)["facts"]
    assert (facts["where"], facts["kernel"], facts["op"]) == ("kernel", KERNEL, None)
    assert facts["fault_target"] == "the null page: a null pointer"
    assert facts["member"].endswith(".kernel.cpp")
    causes = [(one["cause"], one["subject"]) for one in report["diagnoses"]]
    assert causes[0] == ("kernel-crash", KERNEL)
    assert "custom-op-crash" not in [cause for cause, _ in causes]


@needs_gdb
@pytest.mark.parametrize(("mode", "state"), [("spin", "runs"), ("sleep", "sleeps")])
def test_a_hang_in_an_operator(packages: Kit, case_dir: Path, mode: str, state: str) -> None:
    report = ask(*with_operator(packages, case_dir, mode), "--timeout", "3")
    facts = backtrace_of(report)["facts"]
    assert (facts["where"], facts["op"], facts["state"]) == ("operator", "zoo::misbehave", state)
    assert len(report["runs"]) == 1
    first = report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("custom-op-hang", "zoo::misbehave")


@needs_gdb
@needs_x86
def test_a_hang_in_a_kernel_is_not_laid_on_the_operator(packages: Kit, case_dir: Path) -> None:
    report = ask(*with_kernel(packages, case_dir, SPIN), "--timeout", "3")
    facts = backtrace_of(report)["facts"]
    assert (facts["where"], facts["kernel"], facts["state"]) == ("kernel", KERNEL, "runs")
    causes = [(one["cause"], one["subject"]) for one in report["diagnoses"]]
    assert causes[0] == ("model-hang", KERNEL)
    assert "custom-op-hang" not in [cause for cause, _ in causes]


def test_without_gdb_the_install_line_is_shown(packages: Kit, case_dir: Path) -> None:
    empty = case_dir / "bin"
    empty.mkdir()
    report = ask(*with_operator(packages, case_dir, "segv"), environ={"PATH": str(empty)})
    (reason,) = (item["reason"] for item in report["not_checked"] if item["name"] == "backtrace")
    assert "apt-get install gdb" in reason
    assert report["diagnoses"][0]["cause"] == "custom-op-crash"


def test_an_operator_in_python_that_hangs_is_named_without_gdb(packages: Kit, case_dir: Path) -> None:
    empty, setup = case_dir / "bin", case_dir / "setup_case.py"
    empty.mkdir()
    setup.write_text(python_op(body="import time; time.sleep(10000)"))
    inputs = packages.sample_path("scale")
    report = ask(packages.package("scale"), inputs, setup, "--timeout", "3", environ={"PATH": str(empty)})
    facts = backtrace_of(report)["facts"]
    assert (facts["where"], facts["function"], facts["op"]) == ("operator", "real", "zoopy::scale")
    assert any("apt-get install gdb" in item["reason"] for item in report["not_checked"])
