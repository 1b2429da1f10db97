"""What the programs around torch print: runtimes, servers, their kernels, compilers and drivers.

The labels were written before the tool was asked; a label says what an engineer would name, ``shared`` what he would
also take, and ``unknown`` where the message alone cannot tell.
"""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from tests.corpus.corpus import texts, told
from tests.every import every

AROUND = texts("around.jsonl")
# The words of CUDA beside another program's are a lead; what only that program prints is told.
SLOTS = "ggml_new_object: not enough space in the context's memory pool (needed 536870912, available 527654144)\n"
LLAMA = "llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected 292, got 291\n"


@every("text", AROUND, ids=lambda text: text.id)
def test_what_is_printed_around_torch_gets_its_cause(text):
    assert told(text.symptom) in (text.cause, *text.shared)


def test_there_are_enough_of_them_of_many_kinds():
    assert len(AROUND) > 200
    assert len({text.cause for text in AROUND}) > 30


@pytest.mark.parametrize(("text", "cause"), [(SLOTS, "out-of-memory"), (LLAMA, "weights-mismatch")])
def test_what_only_a_program_on_ggml_prints_is_told(text, cause):
    _, diagnoses, _ = classify_text(text.encode(), "log")
    assert [one.cause for one in diagnoses] == [cause]
