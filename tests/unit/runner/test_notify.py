"""A command of the user's: what it gets, and what becomes of one that fails, hangs or does not listen."""

from __future__ import annotations

import os
import sys

import pytest

from aotidoctor.runner.helper_processes import notify


def test_it_gets_the_document(tmp_path):
    code = f"import sys; open({str(tmp_path / 'got')!r}, 'wb').write(sys.stdin.buffer.read())"
    assert notify([sys.executable, "-c", code], b"{}" * 100_000, os.environ) == ""
    assert (tmp_path / "got").read_bytes() == b"{}" * 100_000


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["/no/such/command"], "No such file"), ([sys.executable, "-c", "raise SystemExit(7)"], "exit status 7"),
        (["a\0b"], "null"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told(argv, told):
    assert told in notify(argv, b"{}", os.environ)


def test_one_that_does_not_listen_is_no_failure():
    assert notify(["true"], b"x" * 10_000_000, os.environ) == ""


def test_one_that_hangs_is_killed_with_what_it_started(tmp_path):
    """The grandchild holds the fifo: its end is seen when nobody holds it any more."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert "did not finish" in notify(
        ["sh", "-c", f"exec 3>{fifo}; sleep 600 & sleep 600"], b"{}", os.environ, limit=0.5
    )
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)
