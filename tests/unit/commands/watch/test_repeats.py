"""The probes of the environment: which are run, and what their outcomes say. Nothing is started here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands.watch import program_outcome
from aotidoctor.commands.watch.program_outcome import Repeat, outcome_of
from aotidoctor.model.contract import HostNeeds
from aotidoctor.model.run import Exited, ProcessFacts, Signalled, Stream, StreamKind, WatchedProgram
from tests.unit.probes.outcomes import case

UNPACKED = "/tmp/aotinductor_abcdef/m/data/aotinductor/model"
LOADED = ProcessFacts(unpacked=(UNPACKED,))
ABORT = Signalled(signal=6, name="SIGABRT")
SEGV = Signalled(signal=11, name="SIGSEGV")
WELL = Exited(code=0, done=True)
DTYPE = "input_handles[0]: unmatched dtype, expected: 4(at::kLong), but got: 3"
SMALL = "input_handles[0]: dim value is too small at 0, expected it to be >= 2, but got: 1"


def said(text="", *, ending=None, seen=LOADED, **more):
    ending = ending or Exited(code=3, done=False)
    status = {WELL: 0}.get(ending, 256) if isinstance(ending, Exited) else ending.signal
    data = text.encode()
    stream = Stream(name="stderr", kind=StreamKind.PIPE, head=data, size=len(data))
    return WatchedProgram(argv=("server",), ending=ending, status=status, streams=(stream,), seen=seen, **more)


def terminated(words):
    return said(
        f"terminate called after throwing an instance of 'std::runtime_error'\n  what():  {words}\n", ending=ABORT
    )


class Again:
    """Answers by the first variable that was changed; remembers what it was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def __call__(self, program, debugger):
        self.asked.append(("gdb" if debugger else "", dict(program.env)))
        return self.answers.get(next(iter(program.env), "nothing"), said())


def session(first, again, *, environ=None, gdb=True, cuda=False):
    known = case(inputs=False)
    if cuda:
        known = replace(known, contract=replace(known.contract, needs=HostNeeds(device_type="cuda")))
    story = program_outcome.FirstRun(
        watched=first, outcome=outcome_of(first, Repeat()), case=known, environ=environ or {}
    )
    return program_outcome.run_repeats(story, again, limit=5.0, has_gdb=gdb, on_event=lambda _event: None)


def names(climbed):
    return [outcome.request.probe for outcome in climbed.outcomes]


def test_the_complaint_ends_the_climb():
    again = Again(AOTI_RUNTIME_CHECK_INPUTS=terminated(DTYPE))
    climbed = session(terminated("no"), again)
    assert names(climbed) == ["again", "check_inputs"]
    complaint = next(item for item in climbed.findings if item.code == "AD-RUN-003")
    assert (complaint.kind, complaint.severity.value, complaint.subject) == ("raised", "error", "args[0]")
    assert complaint.facts["expected_dtype"] == "int64"
    assert climbed.outcomes[1].took_effect is True
    assert [item.name for item in climbed.not_checked] == ["rerun: cpp_stack"]


@pytest.mark.parametrize("form", [terminated, lambda words: said(f"[error] request failed: {words}\n")])
def test_a_complaint_counts_however_the_program_says_it(form):
    climbed = session(said(), Again(AOTI_RUNTIME_CHECK_INPUTS=form(DTYPE)))
    assert any(item.code == "AD-RUN-003" and item.facts["symptom"] == "check-dtype" for item in climbed.findings)


def test_a_harmless_complaint_is_a_warning():
    climbed = session(said(), Again(AOTI_RUNTIME_CHECK_INPUTS=terminated(SMALL)))
    complaint = next(item for item in climbed.findings if item.code == "AD-RUN-003")
    assert complaint.severity.value == "warn"


def test_the_same_failure_under_the_checks_is_no_complaint():
    climbed = session(said("bad"), Again(AOTI_RUNTIME_CHECK_INPUTS=said("bad")))
    assert not any(item.code == "AD-RUN-003" for item in climbed.findings)
    table = next(item for item in climbed.findings if item.code == "AD-RUN-029")
    assert (table.kind, table.facts["failed"]) == ("stable", (2, 1))


def test_checks_that_have_nothing_to_say():
    climbed = session(said(), Again(AOTI_RUNTIME_CHECK_INPUTS=said(ending=WELL)))
    assert [item.kind for item in climbed.findings if item.code == "AD-RUN-003"] == ["silent"]


def test_checks_that_never_came_to_speak_say_nothing():
    climbed = session(said(), Again(AOTI_RUNTIME_CHECK_INPUTS=said(ending=WELL, seen=ProcessFacts())))
    assert not any(item.code == "AD-RUN-003" for item in climbed.findings)


@pytest.mark.parametrize(
    ("first", "gdb", "debugger", "name"),
    [
        (said(ending=SEGV), True, "gdb", "again_under_gdb"),
        (said(ending=SEGV), False, "", "again"),
        (said(ending=SEGV, debugger_output="=== stop\n"), True, "", "again"),
        (terminated("no"), True, "", "again"),
        (said(), True, "", "again"),
    ],
)
def test_a_debugger_only_where_it_can_tell_something_new(first, gdb, debugger, name):
    again = Again()
    assert names(session(first, again, gdb=gdb))[0] == name
    assert again.asked[0] == (debugger, {})


@pytest.mark.parametrize(("value", "asked"), [("1", False), ("0", True), ("false", False), (None, True)])
def test_checks_that_are_on_already_are_not_asked(value, asked):
    environ = {} if value is None else {"AOTI_RUNTIME_CHECK_INPUTS": value}
    assert ("check_inputs" in names(session(said(), Again(), environ=environ))) is asked


def test_a_stack_is_asked_for_where_there_is_none():
    assert "cpp_stack" in names(session(terminated("no"), Again()))
    assert "cpp_stack" not in names(session(terminated("no\nframe #0: here"), Again()))
    assert "cpp_stack" not in names(session(said(), Again()))


def test_the_probes_for_cuda():
    again = Again()
    assert names(session(said(), again, cuda=True))[-2:] == ["cuda_blocking", "cuda_no_caching"]
    assert again.asked[-2:] == [
        ("", {"CUDA_LAUNCH_BLOCKING": "1"}),
        ("", {"CUDA_LAUNCH_BLOCKING": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    ]
    assert not {"cuda_blocking", "cuda_no_caching"} & set(names(session(said(), Again())))


def test_what_fails_now_and_then_is_told():
    climbed = session(said(), Again(nothing=said(ending=WELL), AOTI_RUNTIME_CHECK_INPUTS=said()))
    table = next(item for item in climbed.findings if item.code == "AD-RUN-029")
    assert (table.kind, table.facts["rungs"], table.facts["failed"]) == ("flaky", ("plain_run", "check_inputs"), (1, 1))
