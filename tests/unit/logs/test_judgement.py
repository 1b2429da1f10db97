"""The first failure, its echoes, and what is not to be trusted."""

from __future__ import annotations

import pytest

from aotidoctor.logs.patterns import read_patterns
from tests.unit.logs.reading import causes, read

BLOCK = """
```toml log
[[pattern]]
regex = 'the bridge is out'
confidence = 0.9
fixed = '2.6'

[[pattern]]
regex = 'no (?P<subject>\\w+) left'
confidence = 0.7
near = ['while packing']
not_near = ['on holiday']

[[pattern]]
regex = 'illegal memory access'
confidence = 0.3
```
"""
PATTERNS = read_patterns("some-cause", BLOCK) + read_patterns(
    "other-cause", "```toml log\n[[pattern]]\nregex = 'the (?:river|road) is closed'\nconfidence = 0.9\n```\n"
)
FIRST = "RuntimeError: the bridge is out\n"
OTHER = "ValueError: the road is closed\n"
UNKNOWN = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: something else\n'


def judged(text):
    reading = read(text, patterns=PATTERNS)
    return reading, [(event.first, event.echo_of, event.tainted) for event in reading.events]


def test_the_first_failure_comes_first():
    reading, _ = judged(OTHER + "\n" + FIRST)
    assert causes(reading) == ["other-cause", "some-cause"]
    reading, _ = judged(FIRST + "\n" + OTHER)
    assert causes(reading) == ["some-cause", "other-cause"]


@pytest.mark.parametrize(
    "echo",
    [
        "Error: run_func_(a, b) API call failed at model_container_runner.cpp, line 111",
        "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.",
        "Aborted (core dumped)",
        "Process completed with exit code 134",
        "MyError: wrapped: RuntimeError: the bridge is out",
        "terminate called recursively",
        "Error: validation failed",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: x",
    ],
)
def test_an_echo(echo):
    _, events = judged(f"{FIRST}\n{echo}\n")
    assert events == [(1, None, False), (3, 1, False)]


def test_what_only_notices_a_failure_that_is_told_later():
    reading, events = judged("Error: run_func_(a) API call failed at runner.cpp, line 111\n\n" + FIRST)
    assert events == [(1, 3, False), (3, None, False)]
    assert causes(reading) == ["some-cause"]


def test_an_exception_that_others_were_raised_from():
    text = (
        UNKNOWN
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + UNKNOWN.replace("ValueError: something else", "RuntimeError: the bridge is out")
    )
    reading, events = judged(text)
    assert events[1][1] == 1
    assert reading.matches[0].confidence == 0.9
    assert reading.unknown == ()


def test_a_known_failure_after_an_unknown_one_is_less_sure():
    reading, _ = judged(UNKNOWN + "\n" + FIRST)
    assert reading.matches[0].confidence == pytest.approx(0.68, abs=0.01)
    assert [event.first for event in reading.unknown] == [1]


def test_cuda_errors_after_the_first_are_tainted_in_their_process_only():
    ima = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    later = "RuntimeError: CUDA error: the bridge is out\n"
    reading, events = judged(f"[rank0]: {ima}\n[rank0]: {later}")
    assert [event[2] for event in events] == [False, True]
    assert causes(reading) == []
    reading, events = judged(f"[rank0]: {ima}\n[rank1]: {later}")
    assert [event[2] for event in events] == [False, False]
    reading, events = judged(f"{ima}\n{OTHER}")
    assert [event[2] for event in events] == [False, False]


def test_a_generic_symptom_is_no_cause_and_does_not_beat_one():
    ima = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    reading, _ = judged(ima)
    assert causes(reading) == []
    assert [event.first for event in reading.unknown] == [1]
    assert causes(judged(FIRST + "\n" + ima)[0]) == ["some-cause"]


def test_what_stands_around_decides():
    assert causes(judged("Error: no string left\n")[0]) == []
    reading, _ = judged("while packing the box\nError: no string left\n")
    assert causes(reading) == ["some-cause"]
    assert reading.matches[0].facts["subject"] == "string"
    assert causes(judged("while packing, on holiday\nError: no string left\n")[0]) == []


def test_a_warning_does_not_win():
    warning = "W1120 12:00:00.000000 1 a.py:1] the road is closed\n"
    assert causes(judged(warning)[0]) == ["other-cause"]
    assert causes(judged(warning + FIRST)[0]) == ["some-cause", "other-cause"]
    assert causes(judged(warning + UNKNOWN)[0]) == []


def test_a_line_that_only_a_pattern_knows():
    reading, _ = judged("hello\nthe road is closed today\nbye\n")
    assert (causes(reading), reading.events[0].level, reading.matches[0].line) == (["other-cause"], "notice", 2)
    assert causes(judged("the road is closed today\n" + FIRST)[0]) == ["some-cause", "other-cause"]


@pytest.mark.parametrize(("version", "sure"), [("2.5.1", 0.9), ("2.6.0+cu124", 0.54), ("2.10.0", 0.54)])
def test_the_release_that_the_log_names(version, sure):
    reading, _ = judged(f"PyTorch version: {version}\n\n{FIRST}")
    assert reading.versions["torch"] == version
    assert reading.matches[0].confidence == pytest.approx(sure)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PyTorch version: 2.6.0+cu124\nPython version: 3.11.7\n", {"torch": "2.6.0+cu124", "python": "3.11.7"}),
        ("Collecting torch==2.5.1\nSuccessfully installed triton-3.1.0 torch-2.5.1+cpu\n", {"torch": "2.5.1+cpu", "triton": "3.1.0"}),
        ("| NVIDIA-SMI 550.54   Driver Version: 550.54.15   CUDA Version: 12.4 |\n", {"driver": "550.54.15", "cuda": "12.4"}),
        ('  File "/opt/conda/lib/python3.10/site-packages/torch/x.py", line 3, in f\n', {"python": "3.10"}),
        ("NVIDIA Release 24.05 (build 94179303)\n", {"server": "24.05"}),
    ],
)  # fmt: skip
def test_versions(text, expected):
    reading = read(text)
    assert dict(reading.versions) == expected


def test_the_line_that_says_so():
    text = "Traceback (most recent call last):\n  File 'a.py'\nRuntimeError: two lines:\n  the bridge is out\n"
    (match,) = read(text, patterns=PATTERNS).matches
    assert (match.line, match.text.strip()) == (4, "the bridge is out")
