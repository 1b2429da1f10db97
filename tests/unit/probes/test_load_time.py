"""Where the time of a load goes: when it is asked, and what the times say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.model.evidence import NotChecked, Severity
from aotidoctor.model.run import Exited, Request, TimedOut
from aotidoctor.probes import load_time
from tests.unit.probes.outcomes import case, history, outcome, raised

ASKED = case(rungs=("load_time",))
STAGES = {
    "start": 0.1, "import": 2.0, "setup": 0.0, "inputs": 0.1, "imports": 0.5, "cpu_checks": 4.0, "load": 1.25,
    "after_load": 0.0, "run1": 0.25, "run2": 0.02, "run3": 0.01, "unload": 0.0,
}  # fmt: skip
INSIDE = {"unpack": 0.75, "link": 0.25, "create": 0.25}


def timed(stages=STAGES, **result):
    return outcome("load_time", stages=stages, result=result)


def test_it_is_asked_by_name_or_where_loading_takes_long():
    quick, slow = outcome(stages={"load": 0.2}), outcome(stages={"load": 11.0})
    assert isinstance(load_time.plan(case(), history(plain_run=quick)), NotChecked)
    assert isinstance(load_time.plan(ASKED, history(plain_run=raised("no"))), NotChecked)
    for package, plain in ((ASKED, quick), (case(), slow)):
        request = load_time.plan(package, history(plain_run=plain))
        assert isinstance(request, Request)
        assert (request.job, request.fresh) == ("load_time", True)
    sources = replace(ASKED, model=replace(ASKED.model, cpp_only=True))
    assert isinstance(load_time.plan(sources, history(plain_run=slow)), NotChecked)


def test_the_parts_add_up_and_the_slowest_has_a_setting():
    found = load_time.read(ASKED, history(), timed(load_parts=INSIDE))
    assert len(found) == 1
    assert (found[0].kind, found[0].severity, found[0].subject) == ("slow", Severity.WARN, "cpu_checks")
    parts = dict(zip(found[0].facts["parts"], found[0].facts["seconds"], strict=True))
    assert parts == {
        "import": 2.0, "imports": 0.5, "cpu_checks": 4.0, **INSIDE, "after_load": 0.0, "run1": 0.25, "later call": 0.01
    }  # fmt: skip
    assert found[0].facts["total"] == 6.0, "torch's own import is not the package's"
    assert "TORCHINDUCTOR_VEC_ISA_OK" in found[0].facts["setting"]


def test_a_setting_that_is_set_is_no_advice():
    asked = replace(ASKED, host=replace(ASKED.host, environment={"TORCHINDUCTOR_VEC_ISA_OK": "1"}))
    setting = load_time.read(asked, history(), timed(load_parts=INSIDE))[0].facts["setting"]
    assert "TORCHINDUCTOR_VEC_ISA_OK" not in setting
    assert "TORCHINDUCTOR_CACHE_DIR" in setting


def test_what_nobody_asked_about_is_no_fault():
    found = load_time.read(case(), history(), timed(load_parts=INSIDE))
    assert (found[0].kind, found[0].severity) == ("parts", Severity.INFO)


@pytest.mark.parametrize("name", ["imports", "cpu_checks", "load", "after_load", "run1"])
def test_each_part_can_be_the_slowest(name):
    found = load_time.read(ASKED, history(), timed({**STAGES, name: 60.0}))
    assert (found[0].kind, found[0].subject) == ("slow", name)
    assert found[0].facts["setting"] == load_time.SETTINGS[name]


def test_a_quick_load_is_told_as_it_is():
    found = load_time.read(ASKED, history(), timed({**STAGES, "cpu_checks": 0.0}, load_parts=INSIDE))
    assert (found[0].kind, found[0].subject) == ("parts", "unpack")


def test_an_ending_is_told():
    died = outcome("load_time", ending=Exited(code=1, done=False), stage="load")
    assert load_time.read(ASKED, history(), died)[0].severity is Severity.ERROR


def test_what_a_package_of_2_14_says_of_its_constants():
    stderr = "[AOTI_LOAD] load_constants: starting H2D copy of 3 constants\n"
    stderr += "[AOTI_LOAD] load_constants: H2D copy completed in 200 ms\n"
    told = outcome("load_time", stages=STAGES, result={"load_parts": INSIDE}, stderr_tail=stderr)
    parts = load_time.parts_of(told)
    assert (round(parts["create"], 3), parts["constants"]) == (0.05, 0.2)
    longer = outcome(
        "load_time", stages=STAGES, result={"load_parts": INSIDE}, stderr_tail=stderr.replace("200", "900")
    )
    assert "constants" not in load_time.parts_of(longer), "another model's"


def test_a_limit_that_is_broken_is_slow_and_no_failure_of_the_model():
    """On a busy machine the checks of the CPU alone broke it."""
    stages = {"import": 9.0, "setup": 0.0, "imports": 8.0}
    told = outcome("load_time", ending=TimedOut(limit=60.0), stage="cpu_checks", stages=stages, seconds=60.0)
    found = load_time.read(ASKED, history(), told)
    assert [(item.kind, item.severity, item.subject) for item in found] == [("slow", Severity.WARN, "cpu_checks")]
    assert found[0].facts["seconds"][-1] == 43.0
    assert [item.severity for item in load_time.read(case(), history(), told)] == [Severity.INFO]
