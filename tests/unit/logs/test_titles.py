"""What people say of a failure, and what they paste without a word."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text

CUT = """{title}
  File "/opt/torch/_dynamo/eval_frame.py", line 465, in _fn
    return fn(*args, **kwargs)
  File "/opt/torch/_functorch/aot_autograd.py", line 1145, in aot_module_simplified
    compiled_fn = AOTAutogradCache.load(
  File "/opt/torch/_functorch/aot_autograd.py", line 681, in _create_aot_dispatcher_function
    fw_metadata = run_functionalized_fw_and_collect_metadata(
"""


def cause(text):
    _, diagnoses, reading = classify_text(text.encode(), "log")
    return diagnoses[0].cause if diagnoses else "unknown" if reading.unknown else None


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("torch.take could not guard on a data-dependent expression", "unbacked-symint"),
        ("OOM in a pass of inductor", "out-of-memory"),
        ("torch.compile: wrong results on the second call", "numeric-difference"),
        ("compiled model is slower than eager", "performance"),
    ],
)
def test_a_title_says_more_than_the_place_of_a_cut_traceback(title, expected):
    assert cause(CUT.format(title=title)) == expected
    assert cause(CUT.format(title="")) != expected


def test_an_exception_says_more_than_the_title():
    message = "RuntimeError: mat1 and mat2 must have the same dtype, but got Float and Half"
    assert cause(f"torch.compile gives wrong results\n{message}") == "input-dtype"


def test_a_title_without_a_sign_of_torch_is_not_heard():
    assert cause("my cat gives wrong results\nOddError: strange") == "unknown"


@pytest.mark.parametrize(
    "values",
    [(1000, 1300), (1000, 1001, 1002), (1000, 2000, 1500), (3000, 2000, 1000)],
    ids=["two", "flat", "up", "down"],
)
def test_a_measure_that_does_not_is_none(values):
    assert cause("\n".join(f"torch step {at} | Tensors: {value}" for at, value in enumerate(values))) is None


def test_a_peak_is_no_leak():
    assert cause("\n".join(f"torch step {at} | max mem: {1000 + 300 * at}" for at in range(5))) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'Traceback (most recent call last):\n  File "/x/torch/library.py", line 10, in define\n    lib.define(x)\nRuntimeError: odd\n',
            "raised where an operator schema is read or checked",
        ),
        ("RuntimeError: index out of bounds: 0 <= tmp7 < 100L", "printed by torch/_inductor/codegen/cpp.py"),
    ],
)
def test_a_reason_is_not_a_file_that_prints_something(text, message):
    found, _, _ = classify_text(text.encode(), "log")
    assert found[0].message.startswith(message)
