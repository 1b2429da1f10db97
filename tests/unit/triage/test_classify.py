"""A log to a report: verdicts, words, and the names of a package."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from aotidoctor.commands.classify import classify, classify_text
from aotidoctor.logs.diagnose_log import command_of, evidence_values, fill_sentence
from aotidoctor.model.case import Options
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.reports import markdown
from aotidoctor.reports.json import json_report as json_
from aotidoctor.reports.json.schema import schema
from aotidoctor.reports.terminal import terminal_report as terminal
from aotidoctor.reports.text import exit_status
from aotidoctor.triage.open_case import open_case

DATA = Path(__file__).parents[2] / "data"
GPU_CONST, MLP = (str(DATA / "cuda" / f"{name}.pt2") for name in ("gpu_const", "mlp"))
KERNEL = "triton_poi_fused_add_index_0"
SCHEMA = "RuntimeError: Could not find schema for mylib::custom_op.\n"
ASSERTION = (
    "/tmp/t/t5/ct5jt25b.py:32: unknown: block: [0,0,0], thread: [8,0,0] Assertion `index out of bounds: 0 <= tmp4 < 40` failed.\n"
    "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
)
DTYPE = "Error: input_handles[1]: unmatched dtype, expected: 4(at::kLong), but got: 3\n"


def report(text, **more):
    return classify(io.BytesIO(text.encode()), "x.log", environ={}, **more)


def shown(made):
    """In every format for people, and valid as JSON."""
    document = json.loads(json_.render_json(made))
    jsonschema.Draft202012Validator(schema()).validate(document)
    return terminal.plain_terminal_text(made, width=100), markdown.render_markdown(made), document


@pytest.mark.parametrize(
    ("text", "verdict", "status"),
    [
        (SCHEMA, "problem", 1),
        ("Segmentation fault (core dumped)\n", "unknown", 3),
        ("RuntimeError: CUDA error: an illegal memory access was encountered\n", "problem", 1),
        ("Aborted\n", "unknown", 3),
        ("ValueError: nobody knows this one\n", "unknown", 3),
        ("hello\n", "healthy", 0),
        ("run.sh: line 3:  4711 Hangup                  python serve.py\n", "unknown", 3),
        ("run.sh: line 3:  4711 User defined signal 1   python serve.py\n", "unknown", 3),
        ("zsh: floating point exception  python serve.py\n", "problem", 1),
        ("hangup of the line is user defined\n", "healthy", 0),
    ],
)
def test_verdict(text, verdict, status):
    made = report(text)
    assert (made.verdict, exit_status(made, "error")) == (verdict, status)
    shown(made)


@pytest.mark.parametrize("text", [b"", b"\n\n  \n", b"\n"])
def test_an_empty_log_is_no_log_without_a_failure(text):
    with pytest.raises(CannotExamineError, match=r"x\.log is empty: .*signal.*exit status"):
        classify(io.BufferedReader(io.BytesIO(text)), "x.log", environ={})


def test_a_log_does_not_show_every_end_of_a_process():
    assert any("SIGFPE" in item.reason for item in report("loading\nready\n").not_checked)
    assert not any("SIGFPE" in item.reason for item in report(SCHEMA).not_checked)


def test_a_cause_with_its_line():
    made = report("starting\n" + SCHEMA)
    (diagnosis,) = made.diagnoses
    assert (diagnosis.cause, diagnosis.subject, diagnosis.status.value) == (
        "custom-op-missing",
        "mylib::custom_op",
        "suspected",
    )
    assert diagnosis.looked_like == "line 2: RuntimeError: Could not find schema for mylib::custom_op."
    assert diagnosis.evidence == ("E1",)
    (finding,) = made.findings
    assert (finding.code, finding.kind, finding.source.file, finding.source.line) == (
        "AD-LOG-001",
        "custom-op-missing",
        "x.log",
        2,
    )
    assert made.signature is not None
    text, page, document = shown(made)
    assert "x.log (2 lines," in text
    assert "x.log (2 lines," in page
    assert document["log"]["matches"][0]["pattern"]["cause"] == "custom-op-missing"


def test_the_kernel_that_a_log_names():
    log = "index out of bounds: 0 <= tmp2 < 100L\nException raised from cpp_fused_embedding_mul_0 at /tmp/c.kernel.cpp:22\n"
    (diagnosis,) = report(log).diagnoses
    assert (diagnosis.cause, diagnosis.subject) == ("index-out-of-range", "cpp_fused_embedding_mul_0")
    assert "cpp_fused_embedding_mul_0" in diagnosis.title


def test_no_failure_is_said_of_the_log_not_of_the_model():
    text, page, _ = shown(report("hello\nall good\n"))
    assert "no failure found in 2 lines" in text
    assert "HEALTHY" not in text + page


def test_a_log_says_nothing_of_this_machine():
    text, page, _ = shown(report(SCHEMA))
    assert "Host" not in text
    assert "### Host" not in page


def test_an_unknown_failure_says_what_to_run_next():
    made = report("Segmentation fault (core dumped)\n")
    text, _, _ = shown(made)
    assert "Try next" in text
    assert "aotidoctor watch" in text
    assert [item.code for item in made.findings if item.severity is Severity.ERROR] == ["AD-LOG-002"]
    assert (
        "CUDA_LAUNCH_BLOCKING=1" in report("Error: CUDA error: an illegal memory access was encountered").extra["next"]
    )
    assert "2>&1" in report("Error: run_func_(a) API call failed at x.cpp, line 3").extra["next"]


def test_echoes_origins_and_versions_are_shown():
    log = f"PyTorch version: 2.5.1\n[rank1]: {SCHEMA}[rank1]: \n[rank1]: Error: create_func_(a) API call failed at x.cpp, line 3\n"
    for page in shown(report(log))[:2]:
        assert "an echo of line 2" in page
        assert "rank1" in page
        assert "torch 2.5.1" in page


def test_what_was_not_read_is_said():
    made = report(SCHEMA)
    cut = replace(made, log=replace(made.log, problems=("the gzip data end early",)))
    assert "the gzip data end early" in shown(cut)[0]


def test_classify_text_is_the_same():
    findings, diagnoses, reading = classify_text(SCHEMA.encode(), "stderr")
    assert [item.id for item in findings] == ["E1"]
    assert [item.cause for item in diagnoses] == ["custom-op-missing"]
    assert reading.name == "stderr"
    assert classify_text(b"", "stderr")[:2] == ([], ())


def test_values_in_the_sentences_are_those_of_the_log():
    (diagnosis,) = report(DTYPE).diagnoses
    assert diagnosis.title == "input_handles[1] is int32; the package was compiled for int64"
    assert diagnosis.remedy.command == "x = x.to(torch.int64)"


FACTS = (
    ("input-dtype", {"expected": "4(at::kLong)", "observed": "3"}, {"expected_dtype": "int64", "observed_dtype": "int32"}),
    ("input-dtype", {"expected": "15(at::kBFloat16)", "observed": "7"}, {"expected_dtype": "bfloat16", "observed_dtype": "float64"}),
    ("input-dtype", {"observed": "Float"}, {"observed": "float32"}),
    ("input-device", {"expected": "11(cuda)", "observed": "0"}, {"expected_device": "cuda", "observed_device": "cpu"}),
    ("input-shape", {"subject": "input_handles[0]", "dim": "1"}, {"subject": "input_handles[0].shape[1]"}),
    ("input-stride", {"expected": "16", "observed": "1", "dim": "0"}, {"observed_stride": "1 at dim 0", "expected": "16 at dim 0"}),
    ("input-rank", {"expected": "2", "observed": "1"}, {"expected_rank": "2", "observed": "1 dims"}),
    ("abi-mismatch", {"subject": "x"}, {"subject": "x"}),
)  # fmt: skip


@pytest.mark.parametrize(("cause", "facts", "expected"), FACTS)
def test_facts_in_words(cause, facts, expected):
    assert fill_sentence(cause, facts).items() >= expected.items()


@pytest.mark.parametrize(
    ("template", "facts", "command"),
    [
        ("{leaf|x} = {leaf|x}.to(torch.{expected_dtype|float32})", {}, ""),
        ("{leaf|x} = {leaf|x}.to(torch.{expected_dtype|float32})", {"expected_dtype": "int8"}, "x = x.to(torch.int8)"),
        ("ls {subject|model.pt2}", {}, ""),
        ("{command|aotidoctor localize model.pt2}", {}, "aotidoctor localize model.pt2"),
        ("f({'a': 1})", {}, "f({'a': 1})"),
    ],
)
def test_a_command_makes_up_no_value(template, facts, command):
    lead = Evidence(
        code="AD-LOG-001", kind="x", severity=Severity.ERROR, subject=None, observed="said", expected="", facts=facts
    )
    assert command_of(template, evidence_values(lead)) == command


def test_the_chain_of_a_device_assertion():
    made = report(ASSERTION, package=GPU_CONST)
    assert made.diagnoses[0].cause == "cuda-device-assert"
    assert made.diagnoses[0].subject == "args[0]"
    assert KERNEL in made.diagnoses[0].title
    assert made.localization.culprit == KERNEL
    assert made.localization.chain == (
        f"{KERNEL}: index out of 0..39 ← computed from args[0]; bound from table.shape[0]; from aten.index"
    )
    assert made.case.artifact.path == GPU_CONST
    shown(made)


def test_with_the_inputs_the_element(tmp_path):
    inputs = tmp_path / "x.json"
    ids = {"dtype": "int64", "shape": [3], "device": "cuda", "data": [3, 40, 5]}
    values = {"dtype": "float32", "shape": [3, 8], "device": "cuda"}
    inputs.write_text(json.dumps({"args": [{"tensor": ids}, {"tensor": values}]}))
    made = report(ASSERTION, package=GPU_CONST, inputs=str(inputs))
    assert made.localization.chain.startswith(f"{KERNEL}: index 40 of 40 ← args[0][1] = 40;")
    assert made.diagnoses[0].confidence == 0.95
    assert made.diagnoses[0].remedy.text.startswith("Correct args[0][1]")


def test_a_log_of_another_package():
    made = report(ASSERTION + f"RuntimeError: CUDA error in {KERNEL}\n", package=MLP)
    assert made.localization.culprit is None
    assert "not one of its kernels" in made.localization.notes[0]
    assert made.diagnoses[0].cause == "cuda-device-assert"


def test_handles_get_the_names_of_the_caller():
    made = report("Error: input_handles[0]: unmatched dim value at 1, expected: 16, but got: 17\n", package=MLP)
    assert made.diagnoses[0].subject == "args[0].shape[1]"
    assert "input_handles[0] is args[0]" in made.findings[0].message


def test_a_line_of_the_wrapper_names_the_call():
    case, _ = open_case(MLP, None, Options(), {})
    wrapper = case.model.wrapper_member.rpartition("/")[2]
    call = next(call for call in case.contract.kernels if call.kind == "extern" and call.line)
    made = report(f"Error: aoti_torch(a) API call failed at /tmp/build/{wrapper}, line {call.line}\n", package=MLP)
    assert made.localization.culprit == call.name
    (frame,) = made.localization.frames
    assert (frame.line, frame.member) == (call.line, case.model.wrapper_member)
    assert [line.number for line in frame.lines if line.marked] == [call.line]


def test_inputs_that_break_the_contract_come_first(tmp_path):
    inputs = tmp_path / "x.json"
    inputs.write_text(json.dumps({"args": [{"tensor": {"dtype": "float64", "shape": [4, 16], "device": "cuda"}}]}))
    made = report("Segmentation fault (core dumped)\n", package=MLP, inputs=str(inputs))
    assert made.verdict == "problem"
    assert made.diagnoses[0].cause == "input-dtype"
    shown(made)


@pytest.mark.parametrize("more", [{"package": "/nope.pt2"}, {"package": MLP, "inputs": "/nope.pt"}])
def test_files_that_are_not_there(more):
    with pytest.raises(CannotExamineError, match="no such file: /nope"):
        report(SCHEMA, **more)


def test_a_package_that_tells_nothing(tmp_path):
    other = tmp_path / "x.pt2"
    other.write_bytes(b"no package")
    made = report(SCHEMA, package=str(other))
    assert made.diagnoses[0].cause == "custom-op-missing"
    assert [item.name for item in made.not_checked] == ["runs", "package"]
