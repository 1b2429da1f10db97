"""Integrity of zip archives: everything that a header can say wrongly."""

from __future__ import annotations

import io
import zipfile

import pytest

from aotidoctor.model.artifact import ArtifactKind, CrcState
from aotidoctor.readers.package import read_package
from aotidoctor.readers.package.blob import opened_blob
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.readers.package.zip_archive import read_zip_directory
from tests.artifacts.packages import package_parts, write_zip
from tests.artifacts.zips import Part, build_zip


def read(tmp_path, parts, *, crc_limit=64 << 20, **options):
    return read_artifact(write_zip(tmp_path / "model.pt2", parts, **options), crc_limit=crc_limit)


def assert_clean(found):
    for name in (
        "names_duplicate", "names_unsafe", "names_symlink", "names_directory", "bad_crc", "unread_crc", "oversized",
        "overlapping", "counts",
    ):  # fmt: skip
        assert not getattr(found, name), name
    assert found.problem is None


@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("deflate", [False, True])
def test_healthy_package(tmp_path, zip64, deflate):
    parts = package_parts()
    for part in parts:
        part.deflate, part.zip64 = deflate, zip64
    found = read(tmp_path, parts, zip64=zip64)
    assert_clean(found)
    assert found.kind is ArtifactKind.AOTI_PACKAGE
    assert {member.crc for member in found.members} == {CrcState.GOOD}
    assert found.models[0].shared_objects[0].defined_entry_points
    assert all((member.data_offset is None) is deflate for member in found.members)


def test_same_as_zipfile(tmp_path):
    path = write_zip(tmp_path / "model.pt2", package_parts())
    found = read_artifact(path)
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        assert [member.name for member in found.members] == archive.namelist()
        for member in found.members:
            file.seek(member.data_offset)
            assert file.read(member.size) == archive.read(member.name)


def test_archives_of_zipfile_and_large_members_read(tmp_path):
    path = tmp_path / "a.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in package_parts():
            archive.writestr(part.name, part.data)
        # Incompressible and compressible data beyond one chunk.
        archive.writestr("model/extra/zeros", bytes(3 << 20))
        archive.writestr("model/extra/noise", bytes(i * i * 7 % 251 for i in range(2 << 20)))
    assert_clean(read_artifact(str(path)))


def test_data_descriptors(tmp_path):
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data) -> int:
            self.data += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        for part in package_parts():
            archive.writestr(part.name, part.data)
    (tmp_path / "m.pt2").write_bytes(pipe.data)
    assert_clean(read_artifact(str(tmp_path / "m.pt2")))


@pytest.mark.parametrize("deflate", [False, True])
def test_flipped_bit(tmp_path, deflate):
    parts = [*package_parts(), Part("model/extra/x", b"needle" * 5, deflate=deflate, crc=12345)]
    assert read(tmp_path, parts).bad_crc == ("model/extra/x",)


def test_garbled_deflate_stream(tmp_path):
    data = build_zip([Part("a/x", b"abc" * 1000, deflate=True)])
    start = 30 + 3
    (tmp_path / "m.zip").write_bytes(data[:start] + b"\xff\xff\xff" + data[start + 3 :])
    assert read_artifact(str(tmp_path / "m.zip")).bad_crc == ("a/x",)


def test_members_beyond_the_limit_are_listed(tmp_path):
    parts = [*package_parts(), Part("model/data/weights/weight_0", b"weights" * 15_000)]
    found = read(tmp_path, parts, crc_limit=50_000)
    assert found.unread_crc == ("model/data/weights/weight_0",)
    assert found.bad_crc == ()
    by_name = {member.name: member.crc for member in found.members}
    assert by_name["model/data/weights/weight_0"] is CrcState.NOT_READ
    assert by_name["model/archive_format"] is CrcState.GOOD


def test_a_flipped_bit_in_a_large_member_is_found(tmp_path):
    """Weights of 70 MB: what is stored costs next to nothing to look at."""
    data = bytearray(build_zip([*package_parts(), Part("model/data/weights/weight_0", bytes(70_000_000))]))
    data[40_000_000] ^= 1
    (tmp_path / "model.pt2").write_bytes(data)
    found = read_artifact(str(tmp_path / "model.pt2"))
    assert found.bad_crc == ("model/data/weights/weight_0",)
    assert found.unread_crc == ()


@pytest.mark.parametrize("broke_off", [0, 1, 500_000, 995_000])
def test_zeros_beyond_the_limit_make_a_member_doubtful(tmp_path, broke_off):
    """A copy that broke off leaves zeros to the end, or somewhere before it."""
    data = bytearray(b"weights" * 150_000)
    data[broke_off : broke_off + 50_000] = bytes(min(50_000, len(data) - broke_off))
    healthy = Part("model/data/weights/weight_0", bytes(data))
    damaged = Part("model/data/weights/weight_1", bytes(data), crc=1)
    found = read(tmp_path, [*package_parts(), healthy, damaged], crc_limit=50_000)
    assert found.bad_crc == ("model/data/weights/weight_1",)
    assert found.unread_crc == ()
    assert read(tmp_path, [*package_parts(), damaged], crc_limit=0).bad_crc == ()


def test_shared_object_comes_before_small_members(tmp_path):
    parts = package_parts()
    library = next(part for part in parts if part.name.endswith(".so"))
    found = read(tmp_path, parts, crc_limit=len(library.data) + 3)
    by_name = {member.name: member.crc for member in found.members}
    assert by_name[library.name] is CrcState.GOOD
    assert len(found.unread_crc) > 5


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/evil",
        "../evil",
        "model/../../evil",
        "a\\..\\evil",
        "\\evil",
        "C:\\evil",
        "c:evil",
        "//host/share",
        "a/..",
        "",
        "a\0b",
    ],
)
def test_unsafe_names(tmp_path, name):
    assert read(tmp_path, [*package_parts(), Part(name, b"x")]).names_unsafe == (name,)


@pytest.mark.parametrize("name", ["model/..x", "model/a..b/c", "model/.hidden", "model/a:b"])
def test_harmless_names(tmp_path, name):
    assert read(tmp_path, [*package_parts(), Part(name, b"x")]).names_unsafe == ()


def test_duplicate_names(tmp_path):
    parts = package_parts()
    twice = Part(parts[0].name, b"other")
    spelled = Part("model/./byteorder", b"little")
    assert read(tmp_path, [*parts, twice, spelled]).names_duplicate == (parts[0].name, "model/./byteorder")


def test_symlink_members(tmp_path):
    found = read(tmp_path, [*package_parts(), Part("model/link", b"/etc/passwd", mode=0o120777)])
    assert found.names_symlink == ("model/link",)
    assert found.members[-1].is_symlink


def test_directory_entries(tmp_path):
    found = read(tmp_path, [Part("model/", b"", mode=0o40755), *package_parts()])
    assert found.names_directory == ("model/",)
    assert found.models[0].name == "model"


def test_declared_size_beyond_the_file(tmp_path):
    found = read(tmp_path, [*package_parts(), Part("model/extra/x", b"abc", size=1 << 31, compressed=1 << 31)])
    assert found.oversized == ("model/extra/x",)
    assert found.unread_crc == ("model/extra/x",)


def test_declared_size_beyond_the_file_within_limit(tmp_path):
    found = read(tmp_path, [*package_parts(), Part("model/extra/x", b"abc", size=100_000, compressed=100_000)])
    assert found.oversized == ("model/extra/x",)
    assert found.bad_crc == ("model/extra/x",)


def test_impossible_ratio(tmp_path):
    found = read(tmp_path, [*package_parts(), Part("model/extra/x", b"abc", deflate=True, size=1 << 40)])
    assert found.oversized == ("model/extra/x",)


def test_real_bomb_is_not_unpacked(tmp_path):
    bomb = Part("model/data/aotinductor/model/x.so", bytes(300 << 20), deflate=True)
    found = read(tmp_path, [*package_parts(), bomb])
    assert found.oversized == (bomb.name,)
    assert found.unread_crc == (bomb.name,)
    assert "not unpacked" in found.models[0].shared_objects[1].problem


def test_deflated_more_than_declared(tmp_path):
    found = read(tmp_path, [Part("a/x", bytes(5 << 20), deflate=True, size=100)])
    assert found.bad_crc == ("a/x",)


def test_overlapping_members(tmp_path):
    parts = [Part("a/x", b"x" * 100), Part("a/y", b"x" * 100, offset=0, local_name="a/x")]
    found = read(tmp_path, parts)
    assert found.overlapping == ("a/y",)


def test_local_header_differs(tmp_path):
    parts = [
        Part("a/x", b"data", local_name="a/z"),
        Part("a/y", b"data", local_crc=7),
        Part("a/w", b"d", local_magic=b"JUNK"),
    ]
    found = read(tmp_path, parts)
    # The loader asks the local header for nothing but where the data begins: only one that is none is damage.
    assert found.bad_crc == ("a/w",)
    with opened_blob(found.path) as (blob, _):
        entries = read_zip_directory(blob).entries
    assert [entry.mismatch for entry in entries] == [("name",), ("crc",), ("header",)]


def test_encrypted_and_unknown_compression_are_counted(tmp_path):
    found = read(tmp_path, [*package_parts(), Part("m/x", b"abc", flags=1), Part("m/y", b"abc", method=14)])
    assert found.counts == {"encrypted_members": 1, "unknown_compression": 1}
    assert set(found.unread_crc) == {"m/x", "m/y"}
    assert found.bad_crc == ()


def test_bytes_before_and_after(tmp_path):
    before = read(tmp_path, package_parts(), prepend=b"junk" * 10)
    assert "40 bytes" in before.problem
    assert before.models[0].shared_objects[0].problem is None
    with_record = read(tmp_path, package_parts(), prepend=b"junk" * 10, zip64=True)
    assert "40 bytes" in with_record.problem
    after = read(tmp_path, package_parts(), append=b"junk" * 10)
    assert after.problem is None
    assert after.counts == {"trailing_bytes": 40}


def test_comment_with_a_false_end_record(tmp_path):
    found = read(tmp_path, package_parts(), comment=b"xxPK\5\6" + b"\xff" * 30)
    assert found.kind is ArtifactKind.AOTI_PACKAGE
    assert found.problem is None


def test_wrong_entry_count(tmp_path):
    found = read(tmp_path, package_parts(), entries=99)
    assert "99" in found.problem
    assert found.models


def test_directory_points_nowhere(tmp_path):
    data = build_zip(package_parts())
    (tmp_path / "m.pt2").write_bytes(data[:-6] + b"\1\2\3\0" + data[-2:])
    found = read_artifact(str(tmp_path / "m.pt2"))
    assert found.kind in {ArtifactKind.ZIP, ArtifactKind.AOTI_PACKAGE}
    assert found.problem is not None


def test_truncated(tmp_path):
    data = build_zip(package_parts())
    (tmp_path / "m.pt2").write_bytes(data[: len(data) * 6 // 10])
    found = read_artifact(str(tmp_path / "m.pt2"))
    assert found.kind is ArtifactKind.TRUNCATED_ZIP
    assert found.problem is not None


def test_empty_archive(tmp_path):
    found = read(tmp_path, [])
    assert found.kind is ArtifactKind.ZIP
    assert found.members == ()


def test_names_that_are_no_utf8(tmp_path):
    found = read(tmp_path, [Part(b"a/\xff\xfe", b"x")])
    assert found.members[0].name == "a/\\xff\\xfe"


def test_many_members(tmp_path):
    found = read(tmp_path, [Part(f"m/{i}", b"") for i in range(70_000)], zip64=True)
    assert len(found.members) == 70_000
    assert found.problem is None


def test_what_can_start_meanwhile_starts_before_the_data_are_read(tmp_path, monkeypatch):
    """A child that imports torch, for one, while this process compares the checksums of gigabytes."""
    order = []
    compare = read_package.crc_states
    monkeypatch.setattr(read_package, "crc_states", lambda *given: order.append("compared") or compare(*given))
    path = write_zip(tmp_path / "model.pt2", package_parts())
    found = read_artifact(path, on_contents=lambda artifact: order.append(artifact.kind))
    assert order == [ArtifactKind.AOTI_PACKAGE, "compared"]
    assert found.sha256 is not None
    assert {member.crc for member in found.members} == {CrcState.GOOD}
