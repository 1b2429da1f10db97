"""A watched program as an outcome, and what its end and its words are as evidence."""

from __future__ import annotations

import pytest

from aotidoctor.commands.watch.program_outcome import Repeat, outcome_of, unread_output, with_named_packages
from aotidoctor.commands.watch.watch_report import WatchRequest, report_on_program
from aotidoctor.model.evidence import Severity
from aotidoctor.model.run import (
    ChildError,
    Exited,
    OutOfMemory,
    ProcessFacts,
    Signalled,
    Stream,
    StreamKind,
    TimedOut,
    WatchedProgram,
)
from aotidoctor.probes import watched_program
from aotidoctor.probes.probe import History
from aotidoctor.probes.watched_program import last_exception
from aotidoctor.reports.page.report_view import headline
from tests.unit.probes.outcomes import case

UNPACKED = "/tmp/aotinductor_MLjaeH/model/data/aotinductor/model"
TERMINATE = """serving
terminate called after throwing an instance of 'std::runtime_error'
  what():  index out of bounds: 0 <= tmp2 < 100L
Exception raised from cpp_fused_embedding_mul_0 at /x/k.kernel.cpp:22 (most recent call first):
frame #3: cpp_fused_embedding_mul_0 + 0x1bc (0x7f in /tmp/aotinductor_MLjaeH/model/data/aotinductor/model/ca4.wrapper.so)
"""
PYTHON = """loading
Traceback (most recent call last):
  File "serve.py", line 3, in <module>
    model(ids)
KeyError: 'ids'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "serve.py", line 5, in <module>
    raise RuntimeError("no answer\\nfor you") from error
RuntimeError: no answer
for you
"""


def watched(text="", *, ending=None, status=256, name="stderr", seen=None, **more):
    data = text.encode()
    stream = Stream(name=name, kind=StreamKind.PIPE, head=data, size=len(data), **more)
    return WatchedProgram(
        argv=("/srv/server", "x"), ending=ending or Exited(code=1, done=False), status=status, streams=(stream,),
        seen=seen or ProcessFacts(),
    )  # fmt: skip


def evidence(program):
    outcome = outcome_of(program, Repeat())
    (found,) = watched_program.read(case(), History(), outcome)
    return found


def test_what_cpp_says_when_it_terminates():
    error = last_exception(TERMINATE)
    assert error.type == "std::runtime_error"
    assert error.message.startswith("index out of bounds: 0 <= tmp2 < 100L\nException raised from")


def test_what_terminates_without_a_word():
    assert last_exception("terminate called after throwing an instance of 'int'\n") == ChildError(
        type="int", message="", traceback="terminate called after throwing an instance of 'int'"
    )


def test_the_last_traceback_counts():
    error = last_exception(PYTHON)
    assert (error.type, error.message) == ("RuntimeError", "no answer\nfor you")


def test_an_exception_without_a_message():
    assert last_exception("Traceback (most recent call last):\n  File\nKeyboardInterrupt\n").type == "KeyboardInterrupt"


def test_no_exception():
    assert last_exception("all is well\nTraceback is a word\n") is None


def test_a_program_that_ended_well_raised_nothing():
    program = watched(PYTHON, ending=Exited(code=0, done=True), status=0)
    assert outcome_of(program, Repeat()).error is None
    assert evidence(program).kind == "ok"
    assert evidence(program).severity is Severity.INFO


@pytest.mark.parametrize(
    ("text", "ending", "kind", "observed"),
    [
        ("", Exited(code=3, done=False), "exited", "exit status 3"),
        ("", Exited(code=139, done=False), "exited", "exit status 139 (a child of it was killed by signal 11)"),
        (PYTHON, Exited(code=1, done=False), "raised", "exit status 1 after RuntimeError"),
        (TERMINATE, Signalled(signal=6, name="SIGABRT"), "raised", "SIGABRT after std::runtime_error"),
        ("", Signalled(signal=11, name="SIGSEGV"), "signalled", "SIGSEGV"),
        (PYTHON, Signalled(signal=11, name="SIGSEGV"), "signalled", "SIGSEGV"),
        ("", TimedOut(limit=5.0), "timed-out", "no end within 5 s"),
        ("", OutOfMemory(reason="oom_kill rose"), "out-of-memory", "killed for memory (oom_kill rose)"),
    ],
)
def test_endings(text, ending, kind, observed):
    found = evidence(watched(text, ending=ending))
    assert (found.code, found.kind, found.observed, found.subject) == ("AD-RUN-033", kind, observed, "server")
    assert found.severity is Severity.ERROR


def test_the_symptom_is_a_fact():
    assert evidence(watched(TERMINATE)).facts["symptom"] == "index-out-of-bounds"


def test_a_stack_tells_where_the_code_was():
    assert with_named_packages(watched(TERMINATE)).seen.unpacked == (UNPACKED,)
    assert outcome_of(with_named_packages(watched(TERMINATE)), Repeat()).stage == "run1"


@pytest.mark.parametrize(
    ("seen", "stage"),
    [
        (ProcessFacts(unpacked=(UNPACKED,)), "run1"),
        (ProcessFacts(opened=("/m.pt2",)), "load"),
        (ProcessFacts(left=(UNPACKED,)), "load"),
        (ProcessFacts(named=("/m.pt2",)), "start"),
    ],
)
def test_how_far_it_came(seen, stage):
    assert outcome_of(watched(seen=seen), Repeat()).stage == stage


def test_what_was_not_kept_is_said():
    kept = Stream(name="stdout", kind=StreamKind.PIPE, head=b"a" * 10, tail=b"b" * 10, size=100)
    program = WatchedProgram(argv=("x",), ending=Exited(code=1, done=False), status=256, streams=(kept,))
    assert kept.text == b"a" * 10 + b"\n[80 bytes were not kept]\n" + b"b" * 10
    assert "80 of 100 bytes" in unread_output(program)[0]


def test_what_could_not_be_read_is_said_but_not_of_a_closed_stream():
    streams = [
        Stream(name="stdout", kind=StreamKind.DEVICE, problem="stdout is a device"),
        Stream(name="stderr", kind=StreamKind.CLOSED, problem="stderr is closed"),
    ]
    program = WatchedProgram(argv=("x",), ending=Exited(code=1, done=False), status=256, streams=tuple(streams))
    assert unread_output(program) == ("stdout is a device",)


LEAD = "LLVM ERROR: unsupported opcode found in DIExpression"


@pytest.mark.parametrize(
    ("text", "status", "verdict", "causes", "says"),
    [
        (LEAD, 1, "unknown", ["codegen-bug"], "perhaps codegen-bug: "),
        (LEAD, 0, "healthy", [], "the program succeeded"),
        (
            "RuntimeError: index out of bounds: 0 <= tmp2 < 100L",
            1,
            "problem",
            ["index-out-of-range"],
            "index-out-of-range: ",
        ),
    ],
)
def test_a_cause_that_output_alone_suggests_is_perhaps(text, status, verdict, causes, says):
    program = watched(f"{text}\n", ending=Exited(code=status, done=status == 0), status=status << 8)
    report = report_on_program(program, WatchRequest(), argv=("watch",), environ={})
    assert (report.verdict, [one.cause for one in report.diagnoses]) == (verdict, causes)
    assert headline(report).text.startswith(says)
