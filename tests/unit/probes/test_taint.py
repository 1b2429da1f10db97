"""After its first CUDA error a process tells nothing more."""

from __future__ import annotations

from aotidoctor.model.run import Signalled
from aotidoctor.probes import plain_run
from aotidoctor.probes.symptoms import first_fault, text_before_dead_context
from tests.unit.probes.outcomes import case, history, outcome, raised
from tests.unit.probes.test_probes import one

IMA = "CUDA error: an illegal memory access was encountered"
ASSERTION = (
    "/tmp/c.py:32: unknown: block: [0,0,0], thread: [8,0,0] Assertion `index out of bounds: 0 <= tmp4 < 40` failed."
)


def test_the_first_error_is_the_one_that_was_said_first():
    done = raised("CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm", stderr_tail=f"Error: {IMA}\nmore\nlines\n")
    fault = first_fault(done)
    assert (fault.line, fault.stream, fault.after) == (f"Error: {IMA}", "stderr", 2)


def test_cleaning_up_after_an_exception_came_after_it():
    done = raised(IMA, stderr_tail=f"Failed to free GPU memory in AOTInductor model: {IMA}\n")
    assert first_fault(done).stream == "result"


def test_memory_that_ran_out_leaves_the_context_alive():
    assert first_fault(raised("CUDA out of memory. Tried to allocate 2.00 GiB")) is None
    assert first_fault(raised("CUDA driver error: invalid argument")) is None


def test_assertions_belong_to_the_error_that_follows_them():
    text = f"{ASSERTION}\n{ASSERTION}\nCUDA error: device-side assert triggered\nfree(): invalid pointer\n"
    assert text_before_dead_context(text) == f"{ASSERTION}\n{ASSERTION}\nCUDA error: device-side assert triggered\n"


def test_text_without_a_fault_is_left_whole():
    assert text_before_dead_context("one\ntwo\n") == "one\ntwo\n"


def test_words_after_the_first_error_decide_nothing():
    """An abort whose last words are those of a damaged heap, said by a process whose context was dead."""
    said = f"Error: {IMA}\ndouble free or corruption (out)\n"
    done = outcome(ending=Signalled(signal=6, name="SIGABRT"), stage="run1", stderr_tail=said)
    item = one(plain_run.read(case(device="cuda"), history(), done))
    assert item.facts["symptom"] == "cuda-illegal-access"
    assert (item.facts["first_cuda_error"], item.facts["tainted_lines"]) == (f"Error: {IMA}", 1)


def test_an_exception_after_the_first_error_is_tainted():
    done = raised("std::bad_alloc", stderr_tail=f"Error: {IMA}\n")
    item = one(plain_run.read(case(device="cuda"), history(), done))
    assert (item.facts["symptom"], item.facts["tainted"]) == ("cuda-illegal-access", True)


def test_an_exception_that_is_the_first_error_is_not():
    item = one(plain_run.read(case(device="cuda"), history(), raised(IMA)))
    assert (item.facts["symptom"], item.facts["tainted"]) == ("cuda-illegal-access", False)


def test_other_failures_have_no_such_facts():
    assert "tainted" not in one(plain_run.read(case(), history(), raised("UNKNOWN"))).facts
