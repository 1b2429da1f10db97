"""The flag for an executable stack: read, and cleared in a copy that differs in nothing else."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.readers.package import read_artifact
from aotidoctor.readers.package.stack_flag import copy_patched, stack_patches

DATA = Path(__file__).parents[3] / "data"
PACKAGES = sorted((DATA / "releases").glob("*/*/model.pt2"))
DEFLATED = DATA / "cuda" / "mlp.pt2"


def asks(path):
    return [item.executable_stack for model in read_artifact(str(path)).models for item in model.shared_objects]


def fixed(path, tmp_path):
    target = tmp_path / "fixed.pt2"
    copy_patched(str(path), str(target), stack_patches(str(path)))
    return target


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: "-".join(path.parts[-3:]))
def test_a_copy_differs_in_the_flag_and_the_checksum_alone(path, tmp_path):
    if True not in asks(path):
        pytest.skip("it does not ask for an executable stack")
    target = fixed(path, tmp_path)
    before, after = path.read_bytes(), target.read_bytes()
    places = {at for patch in stack_patches(str(path)) for at in range(patch.offset, patch.offset + 4)}
    assert len(before) == len(after)
    assert {at for at, (one, two) in enumerate(zip(before, after, strict=True)) if one != two} <= places
    assert asks(target) == [False] * len(asks(path))
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
    assert read_artifact(str(target)).header_mismatch == read_artifact(str(path)).header_mismatch
    assert stack_patches(str(target)) == ()


def object_of(path, tmp_path):
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".so"))
        (tmp_path / "model.so").write_bytes(archive.read(name))
    return tmp_path / "model.so"


def test_a_bare_object(tmp_path):
    path = object_of(PACKAGES[0], tmp_path)
    (patch,) = stack_patches(str(path))
    flags = struct.unpack("<I", path.read_bytes()[patch.offset : patch.offset + 4])[0]
    assert (flags, patch.data) == (7, struct.pack("<I", 6))


def test_what_cannot_be_changed_in_place_is_said(tmp_path):
    with pytest.raises(CannotExamineError, match="compressed"):
        stack_patches(str(DEFLATED))
    (tmp_path / "text").write_text("hello")
    for path in ("text", "absent", "."):
        with pytest.raises(CannotExamineError):
            stack_patches(str(tmp_path / path))


def test_a_damaged_object_is_not_given_a_good_checksum(tmp_path):
    data = bytearray(PACKAGES[0].read_bytes())
    data[stack_patches(str(PACKAGES[0]))[0].offset + 3000] ^= 1
    (tmp_path / "damaged.pt2").write_bytes(data)
    with pytest.raises(CannotExamineError, match="checksum"):
        stack_patches(str(tmp_path / "damaged.pt2"))


def test_an_object_without_the_header(tmp_path):
    path = object_of(PACKAGES[0], tmp_path)
    (patch,) = stack_patches(str(path))
    data = bytearray(path.read_bytes())
    data[patch.offset - 4 : patch.offset] = struct.pack("<I", 0x6FFFFFF0)
    path.write_bytes(data)
    assert asks_object(path) is True
    with pytest.raises(CannotExamineError, match="no GNU_STACK header"):
        stack_patches(str(path))


def asks_object(path):
    return asks(path)[0]
