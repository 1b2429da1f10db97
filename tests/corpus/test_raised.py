"""What torch, Triton and a loaded package raise themselves: one message of each place, below the function that raises it.

The labels are what an engineer would say of the message in that place. The places are classes: other messages of the
same function get the same cause.
"""

from __future__ import annotations

from aotidoctor.commands.classify import classify_text
from tests.corpus.corpus import texts, told
from tests.every import every

RAISED = texts("raised.jsonl")
# A remark that the compiler prints while it goes on speaks of recovering too.
RECOVERED = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/torch/fx/graph.py", line 12, in lint
RuntimeError: the symbol cannot be recovered from this node
"""
# Words that are near those of a cause, and none of them its own.
NEAR = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/torch/ao/quantization/quantization_mappings.py", line 264, in get_static_module
AssertionError: Floating point module class x does not have a corresponding quantized module class
"""
# A package is called: what is raised below it is no failure of an export. The lines are as wide as a terminal's.
CALLED = """\
Traceback (most recent call last):
  File "/srv/app/serve.py", line 21, in <module>
    out = model(x)
  File "/usr/lib/python3.11/site-packages/torch/export/pt2_archive/_package.py", line 739, in __call__
    flat_outputs = self.loader.boxed_run(flat_inputs)
RuntimeError: CPU runtime error
"""


@every("text", RAISED, ids=lambda text: text.id)
def test_what_is_raised_gets_the_cause_of_its_place(text):
    assert told(text.symptom) in (text.cause, *text.shared)


def test_there_are_enough_of_them_of_many_kinds():
    assert len(RAISED) > 200
    assert len({text.cause for text in RAISED}) > 30


def test_what_cannot_be_recovered_is_a_failure():
    _, diagnoses, reading = classify_text(RECOVERED.encode(), "log")
    assert [one.cause for one in diagnoses] == ["export-unsupported"]
    assert [event.kind for event in reading.unknown] == ["RuntimeError"]


def test_a_cause_needs_a_word_of_its_own():
    _, diagnoses, _ = classify_text(NEAR.encode(), "log")
    assert "integer-division" not in [one.cause for one in diagnoses]


def test_where_a_package_is_called_says_nothing():
    _, diagnoses, reading = classify_text(CALLED.encode(), "log")
    assert diagnoses == ()
    assert reading.unknown
