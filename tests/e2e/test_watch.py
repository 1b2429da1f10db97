"""``aotidoctor watch`` on programs that load packages by themselves: in C++, in Python, below a shell."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest

from aotidoctor.reports.json.schema import schema
from tests.e2e.foundry.ops import python_op
from tests.e2e.foundry.place import compiler_answers
from tests.e2e.watched import build

pytestmark = pytest.mark.torch
ROOT = Path(__file__).parents[2]
WATCH = (sys.executable, "-m", "aotidoctor", "watch")
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
PYTHON = """
import sys, torch
model = torch._inductor.aoti_load_package(sys.argv[1])
ids = torch.arange(1, 9, dtype=getattr(torch, sys.argv[2]))
print("answer", tuple(model(ids).shape), flush=True)
"""


@pytest.fixture(scope="session")
def server(packages):
    return str(build.server(packages.cache))


class Seen:
    """What whoever started the command sees, and the report."""

    def __init__(self, done, report):
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()
        self.report = json.loads(report.read_text()) if report.exists() else None
        if self.report is not None:
            jsonschema.Draft202012Validator(schema()).validate(self.report)

    @property
    def cause(self):
        return self.report["diagnoses"][0]["cause"] if self.report["diagnoses"] else None

    def finding(self, code):
        return next((item for item in self.report["findings"] if item["code"] == code), None)

    def probes(self):
        return [run["probe"] for run in self.report["runs"]]


@pytest.fixture
def watch(tmp_path):
    """Run a command under watch, in a folder of its own."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "cwd").mkdir()
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, **compiler_answers(), "PYTHONPATH": path, "TMPDIR": str(tmp_path / "tmp")}

    def watch(*program, options=(), env=None, cores=False):
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        done = subprocess.run(
            (*WATCH, "--report", f"json:{report}", *options, "--", *map(str, program)),
            capture_output=True,
            cwd=tmp_path / "cwd",
            env={**environ, **(env or {})},
            check=False,
            timeout=300,
            stdin=subprocess.DEVNULL,
            preexec_fn=(lambda: _cores(resource.RLIM_INFINITY)) if cores else (lambda: _cores(0)),
        )
        return Seen(done, report)

    watch.cwd = tmp_path / "cwd"
    watch.tmp = tmp_path / "tmp"
    return watch


def _cores(soft):
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    soft = most if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_CORE, (soft, most))


def cores_are_files():
    return not Path("/proc/sys/kernel/core_pattern").read_text().startswith("|")


def test_a_server_that_answers_is_not_talked_about(watch, server, packages):
    seen = watch(server, packages.package("embedding"), "ids64")
    assert (seen.status, seen.out, seen.report) == (0, "answer [8, 16]\n", None)
    assert seen.err == f"serving {packages.package('embedding')}\n"


def test_the_symptom_alone_names_what_the_log_says(watch, server, packages):
    seen = watch(server, packages.package("embedding"), "ids32")
    assert seen.status == -signal.SIGABRT
    assert seen.err.startswith(f"serving {packages.package('embedding')}\nError: index out of bounds")
    assert seen.report["artifact"]["path"].endswith(packages.package("embedding").name)
    assert (seen.cause, seen.report["diagnoses"][0]["subject"]) == ("index-out-of-range", "args[0]")
    assert "args[0]" in seen.report["localization"]["chain"]
    program = seen.finding("AD-RUN-033")
    assert (program["kind"], program["facts"]["type"]) == ("raised", "std::runtime_error")
    assert seen.report["extra"]["packages"].endswith("(code of it was loaded)")
    assert seen.report["extra"]["libtorch"].split()[0] == __import__("torch").__version__


def test_run_again_the_packages_own_checks_name_the_cause(watch, server, packages):
    seen = watch(server, packages.package("embedding"), "ids32", options=["--rerun"])
    assert seen.status == -signal.SIGABRT
    first = seen.report["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("input-dtype", "args[0]")
    assert first["remedy"]["command"] == "args[0] = args[0].to(torch.int64)"
    complaint = seen.finding("AD-RUN-003")
    assert (complaint["observed"], complaint["expected"], complaint["severity"]) == ("int32", "int64", "error")
    # What the log says is evidence of the cause now, and no cause of its own.
    assert "index-out-of-range" not in [one["cause"] for one in seen.report["diagnoses"]]
    said = [item["id"] for item in seen.report["findings"] if item["code"] == "AD-LOG-001"]
    assert set(said) & set(first["evidence"])
    assert seen.report["runs"][0]["probe"] == "watched_program"
    assert "check_inputs" in seen.probes()


def test_a_wrong_answer_without_a_word_is_explained_by_running_again(watch, server, packages):
    silent = watch(server, packages.package("pointwise"), "half")
    # Its own words, "the answer is wrong", are at most a suspicion, where a path or a line beside them speaks of torch.
    assert silent.status == 4
    assert silent.cause in (None, "numeric-difference")
    assert all(one["confidence"] <= 0.4 for one in silent.report["diagnoses"])
    assert "--rerun" in silent.err
    seen = watch(server, packages.package("pointwise"), "half", options=["--rerun"])
    assert (seen.status, seen.out) == (4, "answer [16, 16]\n")
    assert seen.cause == "input-dtype"
    table = seen.finding("AD-RUN-029")["facts"]
    assert table["rungs"] == ["plain_run", "check_inputs"]
    assert table["failed"] == [2, 1]


def test_an_exception_that_is_caught_and_logged(watch, server, packages):
    seen = watch(server, "--catch", packages.package("embedding"), "ids32", options=["--rerun"])
    assert seen.status == 3
    assert seen.cause == "input-dtype"


def test_a_crash_in_the_first_call(watch, server, packages):
    seen = watch(server, packages.package("external"), "linear")
    assert seen.status == -signal.SIGSEGV
    assert seen.cause == "weights-not-loaded"
    assert any("ulimit -c" in item["reason"] for item in seen.report["not_checked"])


@needs_gdb
@pytest.mark.skipif(not cores_are_files(), reason="core files are not written as files here")
def test_a_core_file_is_read(watch, server, packages):
    seen = watch(server, packages.package("external"), "linear", cores=True)
    assert seen.status == -signal.SIGSEGV
    assert seen.report["runs"][0]["ending"] == "signalled"
    assert seen.cause == "weights-not-loaded"
    stack = seen.finding("AD-RUN-023")
    assert (stack["kind"], stack["facts"]["signal"]) == ("crash", "SIGSEGV")
    frames = [frame["function"] for frame in seen.report["localization"]["frames"]]
    assert any("AOTInductorModel" in frame for frame in frames)
    cores = list(watch.cwd.glob("core*"))
    assert len(cores) == 1, "the program's core stays where it is, and there is none of ours"
    assert Path(seen.report["extra"]["core"]) in (cores[0], cores[0].resolve())


@needs_gdb
@pytest.mark.skipif(not cores_are_files(), reason="core files are not written as files here")
def test_core_files_can_be_asked_for(watch, server, packages):
    seen = watch(server, packages.package("external"), "linear", options=["--core"])
    assert seen.finding("AD-RUN-023")["kind"] == "crash"


@needs_gdb
def test_without_a_core_the_program_is_run_again_under_a_debugger(watch, server, packages):
    seen = watch(server, packages.package("external"), "linear", options=["--rerun"])
    assert seen.status == -signal.SIGSEGV
    assert "again_under_gdb" in seen.probes()
    stack = seen.finding("AD-RUN-023")
    assert (stack["kind"], stack["facts"]["signal"]) == ("crash", "SIGSEGV")


def test_a_package_that_is_not_there(watch, server):
    seen = watch(server, "nowhere.pt2", "rows")
    assert seen.status == -signal.SIGABRT
    assert seen.cause == "artifact-missing"


def test_a_package_that_is_cut(watch, server, packages):
    cut = watch.cwd / "cut.pt2"
    cut.write_bytes(packages.package("embedding").read_bytes()[:-2000])
    seen = watch(server, cut, "ids64")
    assert seen.status == -signal.SIGABRT
    assert seen.cause == "artifact-corrupt"


def test_a_package_that_no_command_line_names(watch, server, packages, tmp_path):
    """It was open for milliseconds; what was unpacked leads to it."""
    shutil.copy(packages.package("embedding"), watch.cwd / "hidden.pt2")
    (watch.cwd / "start.sh").write_text(f"#!/bin/sh\nP=hidden\n{server} $P.pt2 ids32\n")
    (watch.cwd / "start.sh").chmod(0o755)
    seen = watch("./start.sh")
    # A shell passes on what its child died of.
    assert seen.status == 134
    assert seen.report["extra"]["packages"].startswith(("hidden.pt2", str(watch.cwd), "<"))
    assert seen.report["contract"] is not None
    assert seen.cause == "index-out-of-range"


def test_inputs_are_triaged_as_run_does(watch, server, packages, tmp_path):
    import torch

    sample = tmp_path / "sample.pt"
    torch.save((torch.arange(1, 9, dtype=torch.int32),), sample)
    seen = watch(server, packages.package("embedding"), "ids32", options=["--inputs", str(sample)])
    assert seen.status == -signal.SIGABRT
    first = seen.report["diagnoses"][0]
    assert (first["cause"], first["status"]) == ("input-dtype", "confirmed")
    assert seen.probes()[0] == "watched_program"
    assert "plain_run" in seen.probes()


def test_a_program_that_never_comes_near_a_package(watch):
    seen = watch(sys.executable, "-c", "raise SystemExit('bad arguments')")
    assert (seen.status, seen.report["verdict"], seen.cause) == (1, "unknown", None)
    assert seen.report["artifact"] is None
    assert any(item["name"] == "packages" for item in seen.report["not_checked"])


def test_a_slip_in_our_own_options_is_no_cause(watch):
    seen = watch("sh", "-c", "exit 3", options=("--inputs", "typo.pt", "--package", "typo.pt2"))
    assert seen.status == 3
    assert seen.err.count("no such file") == 2
    assert seen.report["verdict"] == "unknown"
    assert seen.cause is None


def test_nothing_of_ours_is_left(watch, server, packages):
    watch(server, packages.package("embedding"), "ids32", options=["--rerun"])
    left = [path.name for path in watch.tmp.iterdir() if not path.name.startswith("aotinductor_")]
    assert left == []
    # The loader's own folder stays, as it does without us; those of runs again do not.
    assert len(list(watch.tmp.iterdir())) == 1


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return path


def test_the_recorded_call_is_triaged_as_run_does(watch, packages):
    """Also where the program has a sitecustomize of its own, which is read as without us."""
    write(watch.cwd / "sitecustomize.py", "print('own start', flush=True)\n")
    program = (sys.executable, "-c", PYTHON, packages.package("embedding"), "int32")
    seen = watch(*program, options=["--rerun"], env={"PYTHONPATH": f"{watch.cwd}{os.pathsep}{ROOT}"})
    assert seen.status == 1
    assert seen.finding("AD-RUN-033")["facts"]["type"] == "RuntimeError"
    first = seen.report["diagnoses"][0]
    assert (first["cause"], first["subject"], first["status"]) == ("input-dtype", "args[0]", "confirmed")
    again = next(run for run in seen.report["runs"] if run["probe"] == "again")
    assert "own start" in again["stdout_tail"]
    # Nothing is asked of the program once the call itself has answered.
    assert seen.probes()[:3] == ["watched_program", "again", "plain_run"]
    assert "check_inputs" not in seen.probes()
    assert [path.name for path in watch.tmp.iterdir() if path.name.startswith("aotidoctor")] == []


def test_a_call_that_died_is_recorded(watch, packages):
    script = """
        import ctypes, sys, torch
        model = torch._inductor.aoti_load_package(sys.argv[1])
        model(torch.arange(8))
        class Dies:
            def __getattr__(self, name):
                ctypes.string_at(0)
        model.loader = Dies()
        model(torch.arange(1, 9, dtype=torch.int32))
    """
    seen = watch(
        sys.executable, write(watch.cwd / "dies.py", script), packages.package("embedding"), options=["--rerun"]
    )
    assert seen.status == -signal.SIGSEGV
    # The call by itself fails in another way than the program did: its inputs are compared, and nothing is confirmed.
    assert [item["reason"] for item in seen.report["not_checked"] if item["name"] == "recorded call"]
    assert all(one["status"] != "confirmed" for one in seen.report["diagnoses"])
    assert seen.finding("AD-IN-010")["observed"] == "int32"


def test_a_program_that_fails_after_its_calls(watch, packages):
    script = """
        import sys, torch
        model = torch._inductor.aoti_load_package(sys.argv[1])
        model(torch.arange(1, 9))
        raise SystemExit("no answer in the answer")
    """
    seen = watch(
        sys.executable, write(watch.cwd / "later.py", script), packages.package("embedding"), options=["--rerun"]
    )
    assert (seen.status, seen.cause) == (1, None)
    assert "plain_run" not in seen.probes()


def test_what_a_program_registers_is_no_fault_of_its_call(watch, packages):
    """Outside of the program there is no such operator: that is no cause of the program's failure."""
    script = python_op(body="raise ValueError('only the program knows')") + (
        "\nimport sys\nmodel = torch._inductor.aoti_load_package(sys.argv[1])\nmodel(torch.randn(16, 16))\n"
    )
    seen = watch(sys.executable, write(watch.cwd / "own.py", script), packages.package("scale"), options=["--rerun"])
    assert seen.status == 1
    assert any(item["name"] == "recorded call" for item in seen.report["not_checked"])
    assert "custom-op-missing" not in [one["cause"] for one in seen.report["diagnoses"]]


def test_what_cannot_be_recorded_is_said(watch, packages):
    program = (sys.executable, "-I", "-c", PYTHON, packages.package("embedding"), "int32")
    seen = watch(*program, options=["--rerun"])
    assert seen.cause == "input-dtype"
    assert any("no call was recorded" in item["reason"] for item in seen.report["not_checked"])


def test_a_guard_takes_the_arguments_from_the_call_that_raised(packages, tmp_path):
    script = """
        import sys, aotidoctor, torch
        model = torch._inductor.aoti_load_package(sys.argv[1])
        with aotidoctor.guard(report="json:report.json", quiet=True):
            model(torch.arange(1, 9, dtype=torch.int32))
    """
    program = (sys.executable, write(tmp_path / "guarded.py", script), packages.package("embedding"))
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, check=False, timeout=300, env=environ)
    assert done.returncode == 1
    first = json.loads((tmp_path / "report.json").read_text())["diagnoses"][0]
    assert (first["cause"], first["subject"]) == ("input-dtype", "args[0]")
