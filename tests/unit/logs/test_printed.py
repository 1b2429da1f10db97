"""Whose words a message has: a sample of what torch and Triton print, with values in it, and what others print."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.logs import origins

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "printed.py"
# Looked up in torch 2.13 and Triton: the files that print them.
KNOWN = {
    "AssertionError: inductor can only compile FX graphs which return a tuple/list, but got None": "torch/_inductor/",
    "AssertionError: while_loop has fewer non-mutated outputs than carried inputs": "torch/_inductor/codegen/",
    "RuntimeError: Unable to generate code for associative_scan op": "torch/_inductor/lowering.py",
    "AssertionError: Cannot specify both code and code_hash": "torch/_inductor/runtime/",
    "AssertionError: parent_call_module must not be None when uplifting custom metadata": "torch/export/unflatten.py",
    "NotImplementedError: autograd_cache_key does not support nested container inputs": "torch/_inductor/compile_fx.py",
    "RuntimeError: batch_norm_cpu_collect_stats_kernel: expecting input to be contiguous.": "libtorch_cpu",
}  # fmt: skip
OTHERS = (
    "FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'",
    "ValueError: not enough values to unpack (expected 2, got 1)",
    "java.lang.IllegalStateException: cannot be called after the stream was closed",
    "ERROR: Could not find a version that satisfies the requirement foo (from versions: none)",
    "x.c:3:5: error: expected expression before 'int'",
    "/usr/bin/ld: cannot find -lfoo: No such file or directory",
    "npm ERR! Missing script: \"build\"",
    "fatal: not a git repository (or any of the parent directories): .git",
    "psycopg2.OperationalError: could not connect to server: Connection refused",
    "panic: runtime error: index out of range [3] with length 3",
)  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_a_message_of_torch_names_its_file(text):
    assert origins.message_origin(text).startswith(KNOWN[text])


@pytest.mark.parametrize("text", OTHERS)
def test_a_message_of_others_names_none(text):
    assert origins.message_origin(text) == ""


def test_the_place_is_a_low_suspicion_with_its_evidence():
    findings, diagnoses, _ = classify_text(b"RuntimeError: Unable to generate code for associative_scan op\n", "log")
    assert [item.cause for item in diagnoses] == ["lowering-failure"]
    assert diagnoses[0].confidence < 0.45
    assert findings[0].facts["printed_by"] == "torch/_inductor/lowering.py"
    assert "frame" not in findings[0].facts


def test_a_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    keys = origins.word_runs("one two three four five six")
    path = tmp_path / "table.bin"
    path.write_bytes(origins.packed_runs({keys[0]: "b/x.py", keys[1]: "a"}))
    monkeypatch.setattr(origins, "MESSAGE_TABLE", path)
    origins._message_table.cache_clear()
    try:
        assert origins.message_origin("one two three four five") == "b/x.py"
        assert origins.message_origin("Error: Two three, four five six!") == "a"
        assert origins.message_origin("six five four three two one") == ""
    finally:
        origins._message_table.cache_clear()


def test_messages_are_found_in_sources():
    script = runpy.run_path(str(SCRIPT))
    source = """
def f(x, dim):
    if not x:
        raise ValueError(f"the size of {x.shape} must be a multiple of {dim} here" + "; so be it")
    torch._check(x, lambda: "first %s then %d" % (x, dim))
    assert x, "it is " "so"
    unimplemented(gb_type="Odd thing", explanation=f"It saw {x!r}.")
    raise err
"""
    found = {(kind, script["filled"](text)) for _, kind, text in script["templates"](source)}
    assert found == {
        ("ValueError", "the size of torch.Size([2, 3]) must be a multiple of 3 here; so be it"),
        ("RuntimeError", "first foo then 3"),
        ("AssertionError", "it is so"),
        ("Unsupported", "Odd thing\n  Explanation: It saw foo."),
    }
    keys = script["keys_of"]("the size of \0x\0 must be a multiple of \0dim\0 here")
    assert keys == {origins.word_runs("must be a multiple of")[0]}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: addmv: Expected vec to be 1-D", "input-rank"),
        ("RuntimeError: quantile() input tensor must be either float or double dtype", "input-dtype"),
        ("RuntimeError: Output channel size of weight and bias must match.", "input-shape"),
        ("RuntimeError: mkldnn_linear: input needs to be mkldnn layout", "input-layout"),
    ],
)
def test_what_an_operator_says_of_its_arguments(text, cause):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [(item.cause, item.confidence < 0.45) for item in diagnoses] == [(cause, True)]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("RuntimeError: Triton Error [ZE]: 0x70000003", "out-of-memory"),
        ("RuntimeError: Triton Error [ZE]: 0x78000013", "cuda-launch"),
        ("RuntimeError: Native API failed. Native API returns: -2 (PI_ERROR_DEVICE_NOT_AVAILABLE)", "device-unavailable"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "abi-mismatch"),
        ("RuntimeError: CUDA error: capture sequence contains a merge of separate capture sequences", "cuda-graph-capture"),
    ],
)  # fmt: skip
def test_codes_of_drivers_as_their_headers_have_them(text, cause):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [(item.cause, item.confidence < 0.5) for item in diagnoses] == [(cause, True)]
