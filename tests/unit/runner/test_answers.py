"""What a child answers is taken over part by part; a part that is not what it should be is left out and said."""

from __future__ import annotations

import json

import pytest

from aotidoctor.model.answers import (
    ANSWERS,
    Acted,
    Called,
    SavedCall,
    SavedCalls,
    SideBySide,
    drop_malformed,
    parse_answer,
)
from aotidoctor.model.jobs import Run
from aotidoctor.model.record import to_json
from aotidoctor.model.run import Exited, Outcome, Request
from aotidoctor.triage.state import Session
from aotidoctor.worker import JOBS
from tests.unit.probes.outcomes import case

GOOD = {
    "threads": 4,
    "outputs": [[{"path": "result", "dtype": "float32", "shape": [2], "nan": 0, "max": "inf"}]],
    "torch": "2.13.0",
}


def test_what_is_as_it_should_be_stays() -> None:
    assert drop_malformed("run", GOOD) == (GOOD, ())
    (output,) = parse_answer(Called, GOOD).outputs[0]
    assert (output.sizes, output.max, output.min) == ((2,), float("inf"), None)
    assert parse_answer(Acted, GOOD).threads == 4


@pytest.mark.parametrize(
    ("job", "part", "value", "place"),
    [
        ("run", "threads", "4", "Acted.threads: 4, expected int"),
        ("run", "outputs", [{"path": "result"}], "Called.outputs[0]: dict, expected a list"),
        ("run", "outputs", [[{"path": "result", "nan": "many"}]], "Called.outputs[0][0].nan: many, expected int"),
        ("run", "sub_batch", {"rows": 2}, "SideBySide.sub_batch.of: missing"),
        ("run", "watch", {"calls": 3, "outputs": "x"}, "Watching.watch.calls: 3, expected a list"),
        ("emulate", "emulation", ["odd"], "Emulated.emulation: list, expected an object"),
        ("op_inputs", "captured", {}, "SavedCalls.captured: dict, expected a list"),
    ],
)
def test_what_is_not_is_left_out_with_its_place(job: str, part: str, value: object, place: str) -> None:
    left, said = drop_malformed(job, {**GOOD, part: value})
    assert said == (place,)
    assert left == {name: one for name, one in GOOD.items() if name != part}
    assert parse_answer(SideBySide, left).sub_batch is None
    assert parse_answer(SavedCalls, left).captured == ()


def test_what_the_worker_hands_over_is_what_is_read() -> None:
    saved = SavedCalls(by="hooks", captured=(SavedCall(index=1, target="a::b", file="f.pt"),))
    written = json.loads(json.dumps(to_json({"by": saved.by, "captured": saved.captured})))
    assert parse_answer(SavedCalls, written) == saved
    assert drop_malformed("op_inputs", written) == (written, ())


def test_answers_are_of_jobs() -> None:
    assert ANSWERS.keys() <= JOBS.keys()


def test_it_is_our_failure() -> None:
    class Damaged:
        def run(self, request: Request) -> Outcome:
            left, said = drop_malformed(request.job, {"threads": "4"})
            return Outcome(
                id="R1", request=request, ending=Exited(code=0, done=True), stage="done", result=left, malformed=said
            )

    session = Session(case=case(), runner=Damaged())
    session.run(Request(probe="plain_run", job="run", payload=Run()))
    (note,) = session.not_checked
    assert (note.is_fault, note.name) == (True, "plain_run")
    assert "Acted.threads: 4, expected int" in note.reason
