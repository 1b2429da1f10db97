"""The flag for an executable stack: read, and cleared in a copy that differs in nothing else."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.readers.package.patched_copy import copy_patched, stack_patches
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.zips import Part, build_zip

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


def archive_of(tmp_path, library, **changes):
    (tmp_path / "m.pt2").write_bytes(build_zip([Part("m/a.so", library, **changes)]))
    return str(tmp_path / "m.pt2")


def header(flags, *, bits=64, order="<", table=64):
    """An ELF header and one program header, GNU_STACK with these flags."""
    wide = bits == 64
    head = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    if wide:
        head += struct.pack(f"{order}HHIQQQIHHHHHH", 3, 62, 1, 0, table, 0, 0, 64, 56, 1, 0, 0, 0)
        return head + struct.pack(f"{order}IIQQQQQQ", 0x6474E551, flags, 0, 0, 0, 0, 0, 16)
    head += struct.pack(f"{order}HHIIIIIHHHHHH", 3, 3, 1, 0, table, 0, 0, 52, 32, 1, 0, 0, 0) + bytes(12)
    return head + struct.pack(f"{order}8I", 0x6474E551, 0, 0, 0, 0, 0, flags, 16)


@pytest.mark.parametrize(("bits", "place"), [(64, 68), (32, 88)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_flag_of_each_kind_of_object(tmp_path, bits, place, order):
    path = tmp_path / "a.so"
    path.write_bytes(header(7, bits=bits, order=order))
    (patch,) = stack_patches(str(path))
    assert (patch.offset, patch.data) == (place, struct.pack(f"{order}I", 6))
    path.write_bytes(header(6, bits=bits, order=order))
    assert stack_patches(str(path)) == ()


def test_a_member_that_is_no_object_is_left_alone(tmp_path):
    assert stack_patches(archive_of(tmp_path, b"text that is named so")) == ()
    assert stack_patches(archive_of(tmp_path, header(6))) == ()


def test_the_checksum_of_a_member_follows(tmp_path):
    path = archive_of(tmp_path, header(7) + b"rest")
    target = fixed(path, tmp_path)
    with zipfile.ZipFile(target) as archive:
        assert archive.read("m/a.so") == header(6) + b"rest"


@pytest.mark.parametrize(
    ("library", "changes", "words"),
    [
        (header(7, table=5000), {}, "no GNU_STACK header"),
        (header(7), {"size": 100_000, "compressed": 100_000}, "does not agree with its checksum"),
    ],
)
def test_a_member_that_leads_out_of_itself(tmp_path, library, changes, words):
    with pytest.raises(CannotExamineError, match=words):
        stack_patches(archive_of(tmp_path, library, crc=1, **changes))


def test_a_damaged_directory_is_not_changed(tmp_path):
    (tmp_path / "m.pt2").write_bytes(build_zip([Part("m/a.so", header(7))], entries=3))
    with pytest.raises(CannotExamineError, match="contains 1 readable entries, the end record states 3"):
        stack_patches(str(tmp_path / "m.pt2"))


def test_a_copy_that_fails_leaves_nothing(tmp_path):
    source, target = tmp_path / "a.so", tmp_path / "folder"
    source.write_bytes(header(7))
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        copy_patched(str(source), str(target), stack_patches(str(source)))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.so", "folder"]
