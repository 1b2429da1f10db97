"""The file of a stream: bounded on disk, exact in size and tail where the file system can make holes."""

from __future__ import annotations

import os

import pytest

from aotidoctor.runner import supervise
from aotidoctor.runner.supervise import TAIL, ChildOutput

MIB = 1 << 20


def flood(path, megabytes, *, looked_at):
    """Append to ``path`` as a child does, with a look after each megabyte; the most that was on disk, in bytes."""
    most = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(megabytes):
        os.write(descriptor, bytes([ord("a") + number % 26]) * MIB)
        looked_at.trim()
        most = max(most, os.fstat(descriptor).st_blocks * 512)
    os.write(descriptor, b"the last words")
    os.close(descriptor)
    return most


def test_size_and_tail_are_exact_and_the_disk_is_spared(tmp_path):
    path = tmp_path / "stdout"
    stream = ChildOutput(path, limit=2 * MIB)
    if not holes(tmp_path):
        pytest.skip("this file system makes no holes")
    assert flood(path, 20, looked_at=stream) < 4 * MIB
    text, size = stream.read()
    assert size == 20 * MIB + 14
    assert text == "t" * (TAIL - 14) + "the last words"


def test_without_holes_the_file_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "_punch", lambda _path, _end: False)
    path = tmp_path / "stdout"
    stream = ChildOutput(path, limit=2 * MIB)
    assert flood(path, 20, looked_at=stream) < 4 * MIB
    text, size = stream.read()
    assert size == 20 * MIB + 14
    assert text.endswith("the last words")
    assert len(text) == TAIL


def test_a_file_that_is_gone_is_empty(tmp_path):
    stream = ChildOutput(tmp_path / "nothing")
    stream.trim()
    assert stream.read() == ("", 0)


def holes(folder):
    path = folder / "probe"
    path.write_bytes(b"x" * MIB)
    return supervise._punch(path, MIB - 1)
