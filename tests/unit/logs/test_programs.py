"""Whole logs of programs: what is the first failure, and what is an echo of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.logs.reading import causes, read

LOGS = Path(__file__).parents[2] / "data" / "logs"
# Name: causes, the line of the first failure, lines of its echoes, tainted lines, lines of failures that nobody knows.
EXPECTED = {
    "compile": (["dynamic-shape-codegen"], 20, [3, 10, 26], [], []),
    "cpp": (["index-out-of-range"], 4, [12], [], []),
    "torchrun": (["out-of-memory"], 4, [5, 12, 13], [], []),
    "triton": (["custom-op-missing"], 12, [13, 18, 22], [], []),
    "vllm": (["abi-mismatch"], 4, [3, 15], [], []),
    "server_mix": (["cuda-illegal-access"], 3, [4, 5, 12, 15, 17], [13], []),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_program(name):
    expected, first, echoes, tainted, unknown = EXPECTED[name]
    reading = read((LOGS / f"{name}.log").read_bytes(), name)
    errors = [event for event in reading.events if event.level == "error"]
    assert list(dict.fromkeys(causes(reading)))[:1] == expected
    assert [event.first for event in errors if event.echo_of is not None] == echoes
    assert {event.echo_of for event in errors} <= {None, first, *tainted}
    assert [event.first for event in errors if event.tainted] == tainted
    assert [event.first for event in reading.unknown] == unknown


def test_a_structured_record_in_a_container():
    reading = read((LOGS / "k8s.log").read_bytes())
    assert [(event.first, event.text.partition(":")[0]) for event in reading.events] == [
        (2, "request failed"),
        (2, "RuntimeError"),
    ]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_same_in_a_log_of_megabytes(name):
    log = (LOGS / f"{name}.log").read_bytes()
    noise = b"".join(b"2026-11-20 12:00:00 INFO step %d loss 0.%d\n" % (at, at) for at in range(20_000))
    alone, within = read(log), read(noise + log + noise)
    assert causes(within) == causes(alone)
    assert [event.first - 20_000 for event in within.events if event.level == "error"] == [
        event.first for event in alone.events if event.level == "error"
    ]


@pytest.mark.parametrize("name", EXPECTED)
def test_any_part_of_it_can_be_read(name):
    lines = (LOGS / f"{name}.log").read_text().splitlines()
    whole = set(causes(read("\n".join(lines))))
    for start in range(0, len(lines), 2):
        for end in (start + 3, start + 7, len(lines)):
            assert len(set(causes(read("\n".join(lines[start:end]))))) <= 2 + len(whole)
