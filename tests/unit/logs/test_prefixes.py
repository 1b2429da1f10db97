"""Colours, containers, launchers and loggers around a line change nothing of what it says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotidoctor.logs.lines import without_prefixes
from tests.every import every
from tests.unit.logs.reading import causes, read, told

LOGS = (
    "Error: CUDA driver error: file not found\n"
    "Traceback (most recent call last):\n"
    '  File "/app/run.py", line 11, in <module>\n'
    "    output = model(x)\n"
    "RuntimeError: run_func_( container_handle_) API call failed at model_container_runner.cpp, line 111",
    "Traceback (most recent call last):\n"
    '  File "<stdin>", line 1, in <module>\n'
    "RuntimeError: Could not find schema for mylib::custom_op.",
    "/tmp/t/ct5.py:32: unknown: block: [0,0,0], thread: [8,0,0] Assertion `index out of bounds: 0 <= tmp4 < 40` failed.\n"
    "torch.AcceleratorError: CUDA error: device-side assert triggered",
    "terminate called after throwing an instance of 'std::runtime_error'\n"
    "  what():  Error in dlopen: ./m.so: undefined symbol: aoti_torch_foo\n"
    "Aborted (core dumped)",
)
DRESSES = {
    "colours": lambda line: f"\x1b[31m\x1b[1m{line}\x1b[0m",
    "a link": lambda line: f"\x1b]8;;http://x\x07\x1b]8;;\x07{line}\x1b[K",
    "docker's timestamps": lambda line: f"2026-01-01T10:00:00.123456789Z {line}",
    "cri": lambda line: f"2026-01-01T10:00:00.123456789+00:00 stderr F {line}",
    "docker's json": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-01-01T10:00:00Z"}),
    "compose": lambda line: f"server-1  | {line}",
    "kubectl": lambda line: f"[pod/server-7d9/triton] {line}",
    "journald": lambda line: f"Nov 20 12:00:00 host server[4242]: {line}",
    "syslog": lambda line: f"<30>Nov  2 12:00:00 host server[4242]: {line}",
    "torchrun": lambda line: f"[rank3]: {line}",
    "torchrun's tee": lambda line: f"[default0]:{line}",
    "mpi": lambda line: f"[1,0]<stderr>:{line}",
    "ray": lambda line: f"(Worker pid=123, ip=10.0.0.1) {line}",
    "vllm": lambda line: f"(EngineCore_0 pid=123) ERROR 11-20 12:00:00 [core.py:700] {line}",
    "actions": lambda line: f"2026-01-01T10:00:00.1234567Z {line}",
    "a whole stack": lambda line: f"2026-01-01T10:00:00.123Z server-1 | \x1b[33m[rank0]: {line}\x1b[0m",
    "a quote": lambda line: f"> {line}",
}


@every("dress", DRESSES)
@every("log", LOGS)
def test_a_dressed_log_says_the_same(log, dress):
    dressed = "\n".join(DRESSES[dress](line) for line in log.split("\n"))
    assert causes(read(log)) != []
    assert causes(read(dressed)) == causes(read(log))
    assert told(read(dressed)) == told(read(log))


@settings(max_examples=60)
@given(
    st.sampled_from(LOGS),
    st.lists(st.sampled_from([one for name, one in DRESSES.items() if "json" not in name]), max_size=3),
)
def test_dresses_over_dresses(log, dresses):
    lines = log.split("\n")
    for dress in dresses:
        lines = [dress(line) for line in lines]
    assert causes(read("\n".join(lines))) == causes(read(log))


LINES = (
    ("E1120 12:00:00.000000 123 file.cpp:45] boom", ("boom", (), "123", "error")),
    ("W0325 19:20:00.685000 2065 torch/_inductor/ir.py:8256] [0/0] missing", ("missing", (), "2065", "warning")),
    ("[rank1]:W1120 12:00:00.0 9 a.py:1] x", ("x", ("rank1",), "9", "warning")),
    ("ERROR:root:boom", ("boom", (), "", "error")),
    ("2026-01-01 10:00:00,123 - a.b - WARNING - hm", ("hm", (), "", "warning")),
    ("[2026-01-01 10:00:00,123] [ERROR] boom", ("boom", (), "", "error")),
    ("[W socket.cpp:601] [c10d] hm", ("[c10d] hm", (), "", "warning")),
    ("2026-01-01T10:00:00.0Z ##[error]Process completed with exit code 1.", ("Process completed with exit code 1.", (), "", "error")),
    ("E   RuntimeError: boom", ("RuntimeError: boom", (), "", "")),
    ("[12345.678901] python[4242]: segfault at 10", ("python[4242]: segfault at 10", (), "", "")),
    ('  File "a.py", line 3, in f', ('  File "a.py", line 3, in f', (), "", "")),
    ("Error: boom", ("Error: boom", (), "", "")),
    ("a.cpp:3:4: error: boom", ("a.cpp:3:4: error: boom", (), "", "")),
    ("| mlp | 1 | UNAVAILABLE: x |", ("| mlp | 1 | UNAVAILABLE: x |", (), "", "")),
    ("  470 |     auto x = None;", ("  470 |     auto x = None;", (), "", "")),
)  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_prefix(line, expected):
    found = without_prefixes(line)
    assert (found.text, found.ranks, found.thread, found.level) == expected


def interleaved(*logs):
    """The lines of several logs in turn, as several processes on one terminal give them."""
    columns = [log.split("\n") for log in logs]
    rows = range(max(map(len, columns)))
    return "\n".join(column[row] for row in rows for column in columns if row < len(column))


def ranks(log, *names):
    return [log.replace("\n", f"\n[{name}]: ").join((f"[{name}]: ", "")) for name in names]


def test_interleaved_ranks_are_put_together():
    first, second = LOGS[1], LOGS[1].replace("custom_op", "other_op")
    mixed = interleaved(*ranks(first, "rank0"), *ranks(second, "rank1"))
    reading = read(mixed)
    assert reading.origins == ("rank0", "rank1")
    assert [(event.kind, event.origin, len(event.frames)) for event in reading.events] == [
        ("RuntimeError", "rank0", 1),
        ("RuntimeError", "rank1", 1),
    ]
    assert causes(reading) == ["custom-op-missing"] * 2


def test_interleaved_threads_of_glog():
    def logged(log, thread):
        return "\n".join(f"E1120 12:00:00.000000 {thread} a.py:7] {line}" for line in log.split("\n"))

    other = LOGS[1].replace("custom_op", "other_op").replace("<stdin>", "b.py")
    reading = read(interleaved(logged(LOGS[1], 7), logged(other, 8)))
    assert [(event.kind, len(event.frames)) for event in reading.events] == [("RuntimeError", 1)] * 2


def test_sixteen_ranks_that_say_the_same_are_one_failure():
    reading = read(interleaved(*ranks(LOGS[1], *(f"rank{at}" for at in range(16)))))
    assert [event.count for event in reading.events] == [16]
    assert len(reading.origins) == 16
