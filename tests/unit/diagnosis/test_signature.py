from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.diagnosis.failure_signature import fingerprint
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.jobs import Job
from aotidoctor.model.localization import Frame, Localization
from aotidoctor.model.report import Diagnosis, LogEvent, LogReading, Remedy, Status
from aotidoctor.model.run import ChildError, Exited, NotStarted, Outcome, OutOfMemory, Request, Signalled, TimedOut

PLAYBOOKS = load_playbooks()
FAILED = Evidence(
    code="AD-RUN-001",
    kind="raised",
    severity=Severity.ERROR,
    subject="cpp_fused_embedding_mul_0",
    observed="index out of bounds: 0 <= tmp2 < 100L",
    expected="",
    facts={"stage": "run1", "symptom": "index-out-of-bounds", "kernel": "cpp_fused_embedding_mul_0"},
    id="E1",
)
CRASHED = replace(FAILED, kind="signalled", facts={"stage": "run1", "symptom": "other", "signal": "SIGSEGV"})
DTYPE = Evidence(
    code="AD-IN-010",
    kind="dtype",
    severity=Severity.ERROR,
    subject="args[0]",
    observed="int32",
    expected="int64",
    facts={"observed_dtype": "int32", "expected_dtype": "int64"},
    id="E2",
)


def made(*findings, runs=(), place=None, log=None):
    return fingerprint(diagnose(findings, PLAYBOOKS), findings, runs, place, log)


def said(signature, rule):
    return next((part.text for part in signature.parts if part.rule == rule), None)


def of_cause(cause, stage, subject, *findings, place=None, runs=()):
    """The signature of a diagnosis that is given, not found."""
    first = Diagnosis(
        cause=cause,
        rank=1,
        status=Status.SUSPECTED,
        confidence=0.9,
        title="",
        looked_like="",
        subject=subject,
        evidence=tuple(item.id for item in findings),
        remedy=Remedy(text=""),
        playbook="",
        stage=stage,
    )
    return fingerprint((first,), findings, runs, place)


def outcome(**changes):
    request = Request(probe="plain_run", job="run", payload=Job())
    return Outcome(**{"id": "R1", "request": request, "ending": Exited(code=0, done=True), "stage": "run1", **changes})


def frames(*functions):
    return Localization(frames=tuple(Frame(index=at, function=name) for at, name in enumerate(functions)))


def test_form():
    found = made(FAILED)
    assert found.version == 2
    assert found.exact.startswith("aotidoctor2:")
    assert found.family.startswith("aotidoctor2f:")
    assert len(found.exact.partition(":")[2]) == len(found.family.partition(":")[2]) == 16
    assert found == made(FAILED)


def test_numbers_of_kernels_and_messages_do_not_count():
    other = replace(
        FAILED,
        subject="cpp_fused_embedding_mul_7",
        observed="index out of bounds: 0 <= tmp9 < 50L",
        facts={**FAILED.facts, "kernel": "cpp_fused_embedding_mul_7"},
    )
    assert made(other) == made(FAILED)


def test_another_kernel_or_symptom_is_another_failure_of_the_family():
    kernel = made(replace(FAILED, subject="cpp_fused_gather_0", facts={**FAILED.facts, "kernel": "cpp_fused_gather_0"}))
    assert kernel.exact != made(FAILED).exact
    assert kernel.family == made(FAILED).family
    division = made(replace(FAILED, facts={**FAILED.facts, "symptom": "integer-division"}))
    assert len({division.family, made(FAILED).family, made().family}) == 3


def test_parts_say_which_rule_gave_them_and_of_what():
    parts = {part.rule: part for part in made(FAILED).parts}
    assert [parts[name].granularity for name in ("cause", "failure", "kind-of-subject")] == ["family"] * 3
    assert parts["kernel"].granularity == "exact"
    assert (parts["kernel"].text, parts["kernel"].source) == ("cpp_fused_embedding_mul", "E1")


@pytest.mark.parametrize("came_of_it", [(), (FAILED,), (CRASHED,)], ids=["not-run", "raised", "crashed"])
def test_of_what_the_files_show_it_does_not_count_what_came_of_it(came_of_it):
    found = of_cause("input-dtype", "inputs", "args[0]", DTYPE, *came_of_it, place=frames("misbehave"))
    assert found == of_cause("input-dtype", "inputs", "args[0]", DTYPE)
    assert said(found, "variant") == "dtype observed_dtype int32 expected_dtype int64"


def test_an_exception_and_an_abort_of_the_same_check_are_one_failure():
    """Thrown out of a loop that is given to several threads, an exception ends the process."""
    aborted = replace(FAILED, kind="signalled", facts={**FAILED.facts, "signal": "SIGABRT"})
    runs = (outcome(ending=Signalled(signal=6, name="SIGABRT")),)
    assert made(aborted, runs=runs, place=frames("cpp_fused_embedding_mul_0")) == made(FAILED)


def test_how_a_failure_of_unknown_cause_ended_counts():
    crash, raised = (made(replace(FAILED, kind=kind, facts={"symptom": "other"})) for kind in ("signalled", "raised"))
    assert crash.family != raised.family


def test_variants_and_leaves_of_a_cause_differ_in_the_exact_signature_only():
    ids = of_cause("input-dtype", "inputs", "args[0]", DTYPE)
    wide = replace(DTYPE, observed="float64", facts={**DTYPE.facts, "observed_dtype": "float64"})
    other = of_cause("input-dtype", "inputs", "args[0]", wide)
    leaf = of_cause("input-dtype", "inputs", "args[1]", replace(DTYPE, subject="args[1]"))
    assert len({ids.exact, other.exact, leaf.exact}) == 3
    assert {ids.family, other.family, leaf.family} == {ids.family}


def test_a_setup_that_failed_is_known_by_how_it_failed():
    key = replace(FAILED, facts={"symptom": "other", "line": "KeyError: 'ZOO_HOME'"})
    found = of_cause("setup-failed", "load", "/home/me/setup.py", key, runs=(outcome(error=error("KeyError")),))
    other = of_cause("setup-failed", "load", "/srv/setup.py", key, runs=(outcome(error=error("ImportError")),))
    assert found.family == other.family
    assert found.exact != other.exact


def error(kind, traceback="", message=""):
    return ChildError(type=kind, message=message, traceback=traceback)


@pytest.mark.parametrize(
    ("line", "alike"),
    [
        (
            "RuntimeError: cannot open '/home/ann/vocab.txt' at 0x7f33 of 512 bytes",
            "RuntimeError: cannot open '/srv/bob/v2.txt' at 0x11ab of 7 bytes",
        ),
        ("RuntimeError: no reply from gpu-node-7.example.com", "RuntimeError: no reply from host12.local"),
        ("RuntimeError: /data/x/y.bin is broken", "RuntimeError: ./a/b.bin is broken"),
    ],
)
def test_words_of_a_message_count_without_its_names_and_numbers(line, alike):
    one, two, other = (
        made(
            replace(FAILED, subject=None, facts={"symptom": "other", "line": text}),
            runs=(outcome(error=error("RuntimeError")),),
        )
        for text in (line, alike, "RuntimeError: the vocabulary is empty")
    )
    assert one.exact == two.exact != other.exact


def test_an_unknown_crash_is_known_by_its_frames():
    runs = (outcome(ending=Signalled(signal=11, name="SIGSEGV")),)
    here = made(CRASHED, runs=runs, place=frames("acme::step(int)", "acme::loop<float>()", "PyObject_Call", "main"))
    there = made(CRASHED, runs=runs, place=frames("acme::step(long)", "at::native::x", "acme::loop<double>()"))
    other = made(CRASHED, runs=runs, place=frames("acme::other(int)"))
    assert said(here, "frames") == "acme::step | acme::loop"
    assert here == there
    assert here.exact != other.exact
    assert here.family == other.family


def test_an_exception_in_python_is_known_by_the_frames_of_its_traceback():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/site-packages/torch/_ops.py", line 1, in __call__\n    x\n'
        '  File "/home/ann/ops.py", line {}, in scale\n    y\n'
        "KeyError: 'vocab'\n"
    )
    made_by = [
        made(replace(FAILED, facts={"symptom": "other"}), runs=(outcome(error=error("KeyError", text.format(line))),))
        for line in (3, 77)
    ]
    assert made_by[0] == made_by[1]
    assert said(made_by[0], "frames") == "scale"


@pytest.mark.parametrize(
    "facts", [{"symptom": "other", "line": "double free or corruption (out)"}, {"symptom": "heap-corruption"}]
)
def test_the_stack_of_a_damaged_heap_is_where_it_was_noticed(facts):
    aborted = replace(CRASHED, facts={**facts, "signal": "SIGABRT"})
    assert said(made(aborted, place=frames("innocent")), "frames") is None


def test_a_hang_stands_somewhere_else_each_time():
    hung = replace(
        FAILED, kind="timed-out", facts={"symptom": "other", "line": "Current thread 0x7f (most recent call"}
    )
    found = made(hung, place=frames("spin"))
    assert said(found, "frames") is None
    assert not said(found, "symptom")


def test_an_operator_needs_no_kernel_beside_it():
    named = replace(CRASHED, facts={**CRASHED.facts, "kernel": "cpp_fused_add_3", "op": "zoo::misbehave"})
    with_kernel = of_cause("custom-op-crash", "run", "zoo::misbehave", named)
    without = of_cause("custom-op-crash", "run", "zoo::misbehave", CRASHED)
    assert with_kernel == without


def test_a_failure_that_only_a_log_tells():
    event = LogEvent(form="python", first=3, last=9, text="it broke at 17", kind="ValueError", frames=("a.py:3", "go"))
    log = LogReading(name="crash.log", size=9, lines=9, unknown=(event,))
    found = made(log=log)
    assert said(found, "cause") == "unknown"
    assert said(found, "symptom") == "ValueError it broke at"
    again = replace(event, first=88, last=99, text="it broke at 4096", frames=("a.py:17", "go"))
    assert made(log=replace(log, name="other.log", unknown=(again,))) == found
    assert made(log=replace(log, unknown=(replace(event, kind="KeyError"),))).exact != found.exact


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ending": Signalled(signal=11, name="SIGSEGV")}, "signalled"),
        ({"ending": TimedOut(limit=5.0)}, "timed-out"),
        ({"ending": OutOfMemory(reason="cgroup")}, "out-of-memory"),
        ({"ending": NotStarted(reason="no torch")}, "not-started"),
        ({}, "returned"),
        ({"error": ChildError(type="RuntimeError", message="no")}, "raised"),
    ],
)
def test_without_a_finding_the_end_of_the_first_run_counts(changes, expected):
    parts = made(runs=(outcome(**changes),)).parts
    assert expected in {part.text for part in parts if part.source == "R1"}
