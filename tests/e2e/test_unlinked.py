"""A package that names no library of torch, as ``aot_inductor.link_libtorch=False`` makes it."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.artifacts.machines import needs_vector_units

RELEASE = Path(__file__).parents[1] / "data" / "releases" / "2.10.0" / "dyn"
# A tag whose value the loader of a shared object does not read.
DT_DEBUG = struct.pack("<q", 21)


def without_torch(library: bytes) -> bytes:
    """The library, with the entries that name libraries of torch made void."""
    changed = bytearray(library)
    section = ELFFile(io.BytesIO(library)).get_section_by_name(".dynamic")
    for number, tag in enumerate(section.iter_tags()):
        if tag.entry.d_tag == "DT_NEEDED" and tag.needed.startswith(("libtorch", "libc10")):
            start = section["sh_offset"] + number * section["sh_entsize"]
            changed[start : start + len(DT_DEBUG)] = DT_DEBUG
    assert changed != library
    return bytes(changed)


@pytest.fixture
def package(tmp_path):
    copy = tmp_path / "unlinked.pt2"
    with zipfile.ZipFile(RELEASE / "model.pt2") as old, zipfile.ZipFile(copy, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item.filename, without_torch(data) if item.filename.endswith(".so") else data)
    return copy


@needs_vector_units
@pytest.mark.torch
def test_it_is_named_and_proved(command_line, package):
    done = command_line("run", package, "-i", RELEASE / "samples" / "good.pt", "--format", "json")
    report = json.loads(done.stdout)
    first = report["diagnoses"][0]
    assert (first["cause"], first["status"], first["subject"]) == ("abi-mismatch", "confirmed", "libtorch.so"), report
    assert first["remedy"]["verified"] is True
