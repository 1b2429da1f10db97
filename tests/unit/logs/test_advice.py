"""What to do next, as commands that can be pasted."""

from __future__ import annotations

import re

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs.diagnose_log import next_steps
from tests.unit.logs.reading import read

FAILED = "loading with aoti_load_package\nRuntimeError: something that nobody knows\n"
# Of another program: nothing in it is AOTInductor's.
ELSEWHERE = FAILED.replace("aoti_load_package", "a loader of its own")
NAMES_A_PACKAGE = re.compile(r"(?i:aoti_|\.pt2\b|\bpackages?\b|compile[ds]? again|\bexport)")


def test_the_commands_name_the_files_that_were_given():
    steps = next_steps(read(FAILED), package="m.pt2", inputs="ids.pt")
    assert any(step.startswith("aotidoctor run m.pt2 --inputs ids.pt ") for step in steps)


def test_without_files_they_are_examples():
    steps = next_steps(read(FAILED), package=None)
    assert any("aotidoctor run model.pt2 --inputs sample.pt " in step for step in steps)


def test_names_that_a_shell_would_take_apart_are_quoted():
    steps = next_steps(read(FAILED, name="-x.log"), package=None)
    assert any(step.startswith("aotidoctor classify ./-x.log ") for step in steps)
    steps = next_steps(read(FAILED), package="my model.pt2", inputs="a;b.pt")
    assert any(step.startswith("aotidoctor run 'my model.pt2' --inputs 'a;b.pt' ") for step in steps)


# One message for each cause that logs of other programs have.
MESSAGES = (
    ("executable-stack", "ImportError: libfoo.so.1: cannot enable executable stack as shared object requires: Invalid argument"),
    ("toolchain-missing", "/tmp/x/main.c:2:10: fatal error: Python.h: No such file or directory"),
    ("toolchain-missing", "torch._inductor.exc.InvalidCxxCompiler: No working C++ compiler found"),
    ("abi-mismatch", "ImportError: /opt/env/lib/python3.11/site-packages/nvidia/cusparse/lib/libcusparse.so.12: "
                     "undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"),
    ("abi-mismatch", "OSError: /opt/app/plugins/model_v3.so: undefined symbol: _ZN2at4_ops10add_Tensor4callERKNS_6TensorE"),
    ("gpu-arch-mismatch", "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("cuda-illegal-access", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("artifact-corrupt", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"),
)  # fmt: skip


@pytest.mark.parametrize(("cause", "message"), MESSAGES)
def test_advice_for_a_log_of_another_program_names_no_package(cause, message):
    _, diagnoses, reading = classify_text(f"{message}\n".encode(), "log")
    assert diagnoses[0].cause == cause
    advice = (diagnoses[0].remedy.text, diagnoses[0].remedy.command, *next_steps(reading, package=None))
    assert diagnoses[0].remedy.text
    assert [text for text in advice if NAMES_A_PACKAGE.search(text)] == []


def test_the_same_message_beside_a_package_has_the_advice_for_packages():
    _, foreign, _ = classify_text(f"{MESSAGES[0][1]}\n".encode(), "log")
    _, own, reading = classify_text(f"Error in dlopen of model.pt2\n{MESSAGES[0][1]}\n".encode(), "log")
    assert "patchelf" in foreign[0].remedy.command
    assert own[0].remedy.command.startswith("aotidoctor fix execstack")
    assert any("aotidoctor run" in step for step in next_steps(reading, package=None))


def test_a_missing_header_of_python_is_no_missing_compiler():
    _, diagnoses, _ = classify_text(f"{MESSAGES[1][1]}\n".encode(), "log")
    assert "python3-dev" in diagnoses[0].remedy.command


def test_a_package_that_is_named_brings_its_steps_back():
    assert next_steps(read(ELSEWHERE), package=None) == ()
    assert any("aotidoctor run m.pt2" in step for step in next_steps(read(ELSEWHERE), package="m.pt2"))


def test_advice_for_a_failed_export_is_about_the_export():
    log = "torch._dynamo.exc.Unsupported: Attempted to call function marked as skipped\n  from user code: model.py, line 3\n"
    _, diagnoses, reading = classify_text(log.encode(), "log")
    assert (diagnoses[0].cause, reading.names_aoti) == ("export-unsupported", False)
    assert "out of the traced part" in diagnoses[0].remedy.text
    assert "draft_export" in diagnoses[0].remedy.command
