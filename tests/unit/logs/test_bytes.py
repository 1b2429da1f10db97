"""Any bytes are a log: encodings, line ends, sizes, what a program may print by accident."""

from __future__ import annotations

import gzip
import io
import json
import random
import string
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aotidoctor.logs.log_reading import read_log
from aotidoctor.logs.prefilter import squeeze_runs
from tests.unit.logs.reading import causes, read, told

ERROR = "RuntimeError: Could not find schema for mylib::custom_op.\n"
NOISE = "2026-01-01 10:00:00 INFO step {} loss 0.{} took {} ms on worker\n"
TOLD = told(read(ERROR))
WORDS = [
    "Traceback (most recent call last):", '  File "a.py", line 3, in f', "terminate called after throwing an instance of 'x'",
    "  what():  boom", "frame #0: f + 0x1 (0x2 in /a.so)", "Exception raised from f at a.cpp:3 (most recent call first):",
    "#0  0x00007f in raise () from /lib64/libc.so.6", "a.cpp:3:4: error: boom", "CUDA error: an illegal memory access",
    "During handling of the above exception, another exception occurred:", "==1==ERROR: AddressSanitizer: SEGV", "\x1b[31m",
    "| mlp | 1 | UNAVAILABLE: Internal: x |", "========= Invalid __global__ read of size 4", '{"log":"Error: x\\n"}', "\r", "\0",
    "[rank3]: ", "E1120 12:00:00.000000 123 file.cpp:45] ", "ValueError", "KeyError: 3", "  + Exception Group ", "", "  ", "\n", "\n",
]  # fmt: skip


def test_there_is_something_to_find():
    assert causes(read(ERROR)) == ["custom-op-missing"]
    assert TOLD[0][:2] == ("python", "RuntimeError")


@settings(max_examples=300)
@given(st.binary(max_size=4000))
@example(b"")
@example(b"\xff\xfe")
@example(b"\x1f\x8b\x08")
@example(b"{" * 3000)
def test_any_bytes_are_a_log(data):
    reading = read(data)
    assert reading.size == len(data)
    assert reading.lines >= 0


@settings(max_examples=400)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["\n", "\r\n", "", " "]))
def test_any_pieces_of_failures_are_a_log(pieces, end):
    text = end.join(pieces)
    reading = read(text)
    for event in reading.events:
        assert 1 <= event.first <= event.last <= text.count("\n") + 1
        assert event.echo_of is None or event.echo_of in [other.first for other in reading.events]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
def test_encodings(encoding):
    assert told(read((ERROR * 3).encode(encoding))) == TOLD


def test_latin_1():
    assert told(read("Ger\xe4t\n".encode("latin-1") + ERROR.encode())) == TOLD


def test_gzip():
    assert told(read(gzip.compress((NOISE * 100 + ERROR).encode()))) == TOLD
    cut = read(gzip.compress((ERROR * 2 + "".join(random.Random(1).choices(string.printable, k=5000))).encode())[:-300])
    assert cut.problems == ("the gzip data end early",)


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_line_ends(end):
    assert told(read(f"hello{end}{ERROR.strip()}{end}bye now{end}")) == told(read(f"hello\n{ERROR}bye now\n"))


def test_progress_bars_before_an_error():
    bars = "".join(f"\r{at:3d}%|{'#' * (at // 10)}| {at}/100 [00:0{at % 10}]" for at in range(100))
    reading = read(f"start\n{bars}\r{ERROR}end\n")
    assert told(reading) == TOLD
    assert reading.events[0].first == 2


def test_nuls_of_a_truncated_file():
    assert told(read(b"\0" * 5000 + ERROR.encode())) == TOLD


def test_lines_are_counted_and_numbered():
    reading = read("".join(NOISE.format(at, at, at) for at in range(30_000)) + ERROR + "after\n")
    assert (reading.lines, reading.events[0].first) == (30_002, 30_001)
    assert read("no end").lines == 1
    assert read("").lines == 0


@pytest.mark.parametrize("shift", [0, 1, 60, 4000])
def test_a_failure_at_any_place_of_a_block_is_read_with_what_is_before_it(shift):
    before = "".join(f"  step {chr(97 + at % 26)} of the day {at}\n" for at in range(30_000))
    failure = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n'
    # The frames end one block, the exception begins the next one.
    place = (1 << 18) + (1 << 16) * 3 + shift
    head = before[:place].rpartition("\n")[0] + "\n" + failure
    reading = read(head + ERROR + before)
    assert [(event.first, event.frames) for event in reading.events] == [(head.count("\n") - 2, ("f (a.py:3)",))]


def test_a_line_without_end_is_searched_behind_a_run_of_one_letter():
    for letter in "xvq":
        assert causes(read(letter * 3_000_000 + f" {ERROR.strip()} " + letter * 3_000_000)) == ["custom-op-missing"]
    assert squeeze_runs(b"x" * 8000 + b"fatal") == b"x" * 1000 + b"fatal"
    assert squeeze_runs(b"fatal " * 1000) == b"fatal " * 1000


class Endless(io.RawIOBase):
    """A stream that makes what is read of it: ``size`` bytes of ``piece(n)``."""

    def __init__(self, size, piece):
        self.left, self.piece, self.number, self.rest = size, piece, 0, b""

    def readable(self):
        return True

    def read(self, size=-1):
        parts = [self.rest]
        have = len(self.rest)
        while have < size and self.left > 0:
            part = self.piece(self.number)
            self.number += 1
            self.left -= len(part)
            parts.append(part)
            have += len(part)
        data = b"".join(parts)
        self.rest = data[size:]
        return data[:size]


NOISY = "".join(NOISE.format(at, at, at) for at in range(2000)).encode()
GIBBERISH = random.Random(2).randbytes(1 << 16)
BIG = 100_000_000
STREAMS = {
    "noise": lambda at: NOISY,
    "zeros": lambda at: bytes(1 << 16),
    "one line": lambda at: b"abcdefgh" * 8192,
    "one line of errors": lambda at: b"error: failed; " * 4096,
    "binary": lambda at: GIBBERISH,
    "the same error": lambda at: ERROR.encode() * 500,
    "progress": lambda at: b"\r 50%|#####     | 5/10" * 2000,
    "other errors": lambda at: "".join(
        f"ERROR: request {chr(97 + at % 26)}{chr(97 + at // 26 % 26)}{chr(97 + n % 26)}{chr(97 + n // 26)} failed\n"
        for n in range(600)
    ).encode(),
}


# A hundredth of the others takes as long: each of its lines is read as a failure. Kept, they would be some 10 MB.
OTHER_ERRORS = BIG // 320


@pytest.mark.parametrize("kind", STREAMS)
def test_memory_is_bounded(kind):
    size = BIG if kind in ("noise", "zeros") else OTHER_ERRORS if kind == "other errors" else BIG // 4
    tail = iter((ERROR.encode(),))

    def piece(at):
        made = STREAMS[kind](at)
        return made + b"\n" + next(tail, b"") if stream.left <= len(made) else made

    stream = Endless(size, piece)
    read(ERROR)  # Patterns are loaded once for all.
    tracemalloc.start()
    try:
        reading = read_log(stream, kind)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reading.size >= size
    assert peak < (8 if kind == "other errors" else 64) << 20
    assert TOLD[0] in told(reading)


def test_a_repeated_error_is_counted_not_kept():
    reading = read((NOISE.format(1, 2, 3) + ERROR) * 20_000)
    assert len(reading.events) == 1
    assert reading.events[0].count == 20_000


def test_json_lines_of_docker():
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', ERROR.strip()]
    wrapped = "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}) for line in lines
    )
    assert told(read(wrapped)) == told(read("\n".join(lines)))
    one = json.dumps({"level": "ERROR", "message": "boom", "exc_info": "\n".join(lines)})
    assert causes(read(one)) == ["custom-op-missing"]
