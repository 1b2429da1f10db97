"""Reading beyond inputs: when it is asked, and what the answer of the worker says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.run import Exited, Request, Signalled
from aotidoctor.probes import over_read
from tests.unit.probes.outcomes import case, history, outcome, raised

OPEN = case()
FINE = outcome(stages={"run1": 0.01})
NO_RESULT = "the plain run did not return, and was not killed by a signal"
SHORT = {"path": "args[1]", "elements": 18, "needed": 30, "before": False, "rows": 5, "follows": [["args[0]", 0]]}


def described(made):
    """Its inputs are known."""
    leaves = tuple(replace(leaf, dtype="float32", rank=1, dims=()) for leaf in made.contract.leaves)
    return replace(made, contract=replace(made.contract, leaves=leaves))


@pytest.mark.parametrize(
    ("asked", "plain", "expected"),
    [
        pytest.param(OPEN, FINE, Request, id="open"),
        pytest.param(replace(OPEN, contract=None), FINE, Request, id="no-contract"),
        pytest.param(OPEN, outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="run1"), Request, id="crash"),
        pytest.param(OPEN, outcome(ending=Signalled(signal=11, name="SIGSEGV"), stage="load"), NO_RESULT, id="load"),
        pytest.param(OPEN, raised("no"), NO_RESULT, id="exception"),
        pytest.param(OPEN, outcome(stages={"run1": 9.0}), "a call takes too long to repeat it", id="slow"),
        pytest.param(described(OPEN), FINE, "the package records the properties of its inputs", id="described"),
        pytest.param(described(case(rungs=("read_beyond",))), FINE, Request, id="by-name"),
        pytest.param(case(inputs=False), FINE, NO_RESULT, id="no-inputs"),
    ],
)
def test_when_it_is_asked(asked, plain, expected):
    answer = over_read.plan(asked, history(plain_run=plain))
    if expected is Request:
        assert isinstance(answer, Request)
    else:
        assert isinstance(answer, NotChecked)
        assert answer.reason.startswith(expected)


def told(*leaves, decided=True, **more):
    answer = {"decided": decided, "looked": ["args[0]", "args[1]"], "leaves": list(leaves)}
    made = outcome("read_beyond", result={"read_beyond": answer}, **more)
    return [(one.kind, one.severity, one.subject) for one in over_read.read(OPEN, history(plain_run=FINE), made)]


def test_what_the_answer_says():
    assert told() == [("within", Severity.INFO, None)]
    assert told(SHORT) == [("follows", Severity.ERROR, "args[1].shape[0]")]
    assert told(SHORT | {"follows": []}) == [("beyond", Severity.ERROR, "args[1]")]
    assert told(SHORT | {"rows": None, "follows": []}) == [("beyond", Severity.ERROR, "args[1]")]
    assert told(SHORT | {"needed": 18, "follows": [], "before": True}) == [("before", Severity.ERROR, "args[1]")]
    assert told(decided=False) == [("undecided", Severity.INFO, None)]
    assert told(ending=Exited(code=1, done=False), stage="run1") == [("undecided", Severity.INFO, None)]


def test_the_sizes_of_the_finding():
    made = outcome("read_beyond", result={"read_beyond": {"decided": True, "looked": [], "leaves": [SHORT]}})
    facts = over_read.read(OPEN, history(plain_run=FINE), made)[0].facts
    assert (facts["dim"], facts["size"], facts["expected_size"], facts["partner"]) == (0, 3, 5, "args[0]")
