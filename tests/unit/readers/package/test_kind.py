"""What a file is."""

from __future__ import annotations

import json
import os
import pickle
import struct

import pytest

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.package_layout import sniff
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.elfs import build_elf
from tests.artifacts.packages import package_parts, program_parts, write_zip
from tests.artifacts.zips import Part

SAFETENSORS = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1599\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", ArtifactKind.EMPTY),
        (LFS, ArtifactKind.LFS_POINTER),
        (b"/annex/objects/SHA256E-s1--ab.pt2\n", ArtifactKind.LFS_POINTER),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", ArtifactKind.TEXT),
        ("Größe: 5\n".encode(), ArtifactKind.TEXT),
        (b'{"error": "not found"}', ArtifactKind.TEXT),
        (pickle.dumps({"a": 1}, 2), ArtifactKind.PICKLE),
        (pickle.dumps({"a": 1}, 5), ArtifactKind.PICKLE),
        (bytes.fromhex("80028a0a6cfc9c46f9206aa850192e8002"), ArtifactKind.TORCH_SAVE),
        (struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(4), ArtifactKind.SAFETENSORS),
        (b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:\x10" + bytes(20), ArtifactKind.ONNX),
        (b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + bytes(60), ArtifactKind.BARE_SO),
        (b"\x1f\x8b\x08" + bytes(30), ArtifactKind.OTHER),
        (bytes(5000), ArtifactKind.OTHER),
        (b"PK\3\4" + bytes(200), ArtifactKind.TRUNCATED_ZIP),
        (b"\x81\xfe\x01garbage\xff\xfe", ArtifactKind.OTHER),
    ],
)
def test_kind_by_first_bytes(tmp_path, data, kind):
    path = tmp_path / "model.pt2"
    path.write_bytes(data)
    found = read_artifact(str(path))
    assert found.kind is kind
    assert found.size == len(data)
    assert found.sha256 is not None


def test_first_line(tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(LFS)
    assert read_artifact(str(path)).first_line == "version https://git-lfs.github.com/spec/v1"
    path.write_bytes(b"\n  <html>" + b"x" * 500)
    assert len(read_artifact(str(path)).first_line) == 200


def test_text_cut_inside_a_character():
    head = ("ä" * 3000).encode()[:4095]
    assert sniff(head, 6000)[0] is ArtifactKind.TEXT


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["m/data/aotinductor/model/x.so"], ArtifactKind.AOTI_PACKAGE),
        (["data/aotinductor/model/x.so"], ArtifactKind.AOTI_PACKAGE),
        (["m/models/model.json", "m/archive_format"], ArtifactKind.EXPORTED_PROGRAM),
        (["serialized_exported_program.json", "version"], ArtifactKind.EXPORTED_PROGRAM),
        (["ts/constants.pkl", "ts/code/__torch__.py", "ts/data.pkl"], ArtifactKind.TORCHSCRIPT),
        (["sd/data.pkl", "sd/data/0", "sd/version"], ArtifactKind.TORCH_SAVE),
        (["x.npy", "y.npy"], ArtifactKind.ZIP),
        (["m/archive_format", "m/archive_version"], ArtifactKind.ZIP),
        (["m/data/aotinductor/model"], ArtifactKind.ZIP),
        (["bundle.json", "report.json", "package/m/data/aotinductor/model/x.wrapper.cpp"], ArtifactKind.BUNDLE),
        (["bundle.json", "m/data/aotinductor/model/x.so"], ArtifactKind.AOTI_PACKAGE),
    ],
)
def test_kind_by_member_names(tmp_path, names, kind):
    path = write_zip(tmp_path / "x.pt2", [Part(name, b"") for name in names])
    assert read_artifact(path).kind is kind


def test_missing_and_dangling(tmp_path):
    missing = read_artifact(str(tmp_path / "no.pt2"))
    assert (missing.kind, missing.is_symlink) == (ArtifactKind.MISSING, False)
    link = tmp_path / "link.pt2"
    link.symlink_to("../gone/model.pt2")
    dangling = read_artifact(str(link))
    assert (dangling.kind, dangling.is_symlink, dangling.link_target) == (
        ArtifactKind.MISSING,
        True,
        "../gone/model.pt2",
    )
    assert read_artifact(str(tmp_path / "no" / "such" / "dir")).kind is ArtifactKind.MISSING
    assert read_artifact("a\0b").kind is ArtifactKind.MISSING


def test_a_file_used_as_a_folder_is_missing(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    assert read_artifact(str(tmp_path / "f" / "model.pt2")).kind is ArtifactKind.MISSING


def test_symlink_to_a_package(tmp_path):
    write_zip(tmp_path / "real.pt2", package_parts())
    (tmp_path / "link.pt2").symlink_to("real.pt2")
    found = read_artifact(str(tmp_path / "link.pt2"))
    assert (found.kind, found.is_symlink) == (ArtifactKind.AOTI_PACKAGE, True)


def test_link_loop(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert read_artifact(str(tmp_path / "a")).kind is ArtifactKind.UNREADABLE


def test_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = read_artifact(str(tmp_path / "pipe"))
    assert (found.kind, found.problem) == (ArtifactKind.OTHER, "not a regular file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable(tmp_path):
    path = tmp_path / "m.pt2"
    path.write_bytes(b"x")
    path.chmod(0)
    assert read_artifact(str(path)).kind is ArtifactKind.UNREADABLE


def test_no_extension_matters(tmp_path):
    assert read_artifact(write_zip(tmp_path / "model.bin", package_parts())).kind is ArtifactKind.AOTI_PACKAGE


def test_hybrid_is_a_package_with_programs(tmp_path):
    path = write_zip(tmp_path / "h.pt2", package_parts() + program_parts(prefix="model")[:1])
    found = read_artifact(path)
    assert found.kind is ArtifactKind.AOTI_PACKAGE
    assert len(found.models) == 1
    assert len(found.exported) == 1


def test_bare_object_with_its_neighbours(tmp_path):
    (tmp_path / "x.so").write_bytes(build_elf())
    (tmp_path / "x.json").write_text('{"nodes": []}')
    (tmp_path / "y.json").write_text("{}")
    found = read_artifact(str(tmp_path / "x.so"))
    assert found.kind is ArtifactKind.BARE_SO
    (model,) = found.models
    assert (model.layout, model.extern_member, model.extern_problem) == ("bare", "x.json", None)
    assert model.shared_objects[0].machine == "x86_64"
    assert [member.name for member in found.members] == ["x.so", "x.json"]


def test_bare_object_under_another_name(tmp_path):
    (tmp_path / "model.pt2").write_bytes(build_elf())
    found = read_artifact(str(tmp_path / "model.pt2"))
    assert found.kind is ArtifactKind.BARE_SO
    assert found.models[0].shared_objects[0].problem is None


@pytest.mark.parametrize(
    ("head", "kind", "word"),
    [
        (b"MZ" + bytes(58) + struct.pack("<I", 64) + b"NE\0\0" + bytes(60), ArtifactKind.OTHER, None),
        (b"MZ" + bytes(58) + struct.pack("<I", 1 << 20) + bytes(60), ArtifactKind.BARE_SO, None),
        (b"\xca\xfe\xba\xbe\0\0\0\x02" + bytes(8), ArtifactKind.BARE_SO, None),
        (b"\xca\xfe\xba\xbe\0\0\0\x37" + bytes(8), ArtifactKind.OTHER, None),
        (b"/annex/objects/SHA256E-s1--ab.pt2\n", ArtifactKind.LFS_POINTER, "a git-annex pointer"),
        (b"\x10\0\0\0ET12" + bytes(60), ArtifactKind.EXECUTORCH_PROGRAM, None),
        (b"\x3c\0\0\0ET99eh00" + bytes(60), ArtifactKind.EXECUTORCH_PROGRAM, None),
        (b"\x3c\0\0\0FT01FH01" + bytes(60), ArtifactKind.EXECUTORCH_DATA, None),
        (b"\x10\0\0\0PTMF" + bytes(60), ArtifactKind.OTHER, "a mobile module (.ptl)"),
        (b"name\0" + bytes(252) + b"ustar\0" + bytes(250), ArtifactKind.OTHER, "a tar archive"),
        (b"\x08\x07\x12\x07pytorch", ArtifactKind.ONNX, None),
        (b"\x08\x07\x3a\x90\x01\0\0\0", ArtifactKind.ONNX, None),
        (b"\x08\x07\x12\x03\xff\xfe\xfd\0", ArtifactKind.OTHER, None),
        (b"\x08\x07\x50\x03abc\0", ArtifactKind.OTHER, None),
        (b"\x08\x7f\x12\x03abc\0", ArtifactKind.OTHER, None),
    ],
)
def test_what_first_bytes_alone_tell(head, kind, word):
    assert sniff(head, len(head)) == (kind, word)
