"""The words of a failed call: where the exception has none, those that stderr has. As ``run`` reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands.sweep.run_sweep import package_does
from aotidoctor.model.fleet import Does
from aotidoctor.probes import plain_run
from tests.unit.probes.outcomes import case, history, outcome, raised

HANDED_ON = "run_func_( container_handle_) API call failed at model_container_runner.cpp, line 145"
# As packages of 2.8 print it.
OF_OPERATOR = (
    "[E1122 10:25:16.143983711 shim_common.cpp:1258] Exception in aoti_torch: ValueError: vers: bad state\n\nAt:\n"
)
OF_CHECK = "Error: input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7\n"


@pytest.mark.parametrize(
    ("printed", "words"), [(OF_OPERATOR, "ValueError: vers: bad state"), (OF_CHECK, OF_CHECK.strip())]
)
def test_the_reason_is_taken_from_stderr(printed, words):
    failed = raised(HANDED_ON, stderr_tail=printed)
    assert package_does(case(), failed) == (Does.ERROR, words)
    (said,) = plain_run.read(case(), history(), failed)
    assert said.facts["line"] == words


def test_a_call_that_returned_after_an_operator_raised_is_an_error():
    returned = outcome(outputs=([{}],), stderr_tail=OF_OPERATOR)
    assert package_does(case(), returned) == (Does.ERROR, "ValueError: vers: bad state")
    assert package_does(case(), replace(returned, stderr_tail="a warning\n")) == (Does.RETURNS, "")


def test_the_words_of_the_exception_stay_where_they_say_it():
    failed = raised("input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7", stderr_tail="Error: x\n")
    assert package_does(case(), failed)[1] == "input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7"
    assert package_does(case(), raised(HANDED_ON))[1] == HANDED_ON
