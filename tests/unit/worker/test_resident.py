"""What counts as memory that a process keeps: its own, not the files that the host has read for it."""

from __future__ import annotations

import mmap
import sys

import pytest

pytest.importorskip("torch")

from aotidoctor.worker.call import resident_bytes

SIZE = 32 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's numbers are those of Linux")
def test_files_that_are_mapped_are_no_growth_and_memory_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * SIZE)
    before = resident_bytes()
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[at] for at in range(0, SIZE, 4096)) == SIZE // 4096 * ord("x")
        assert resident_bytes() - before < SIZE // 2
    kept = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE)
    for at in range(0, SIZE, 4096):
        kept[at] = 1
    assert resident_bytes() - before >= SIZE
    kept.close()
