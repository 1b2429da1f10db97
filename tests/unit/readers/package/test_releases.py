"""What a release of torch puts into a package: layout, entry points, device code, other contents."""

from __future__ import annotations

from pathlib import Path

import pytest

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.elfs import build_cubin, build_elf
from tests.artifacts.packages import HASH, package_parts, write_zip
from tests.artifacts.zips import Part

RELEASES = Path(__file__).parents[3] / "data" / "releases"
EM_INTELGT = 205


def read(tmp_path, parts):
    return read_artifact(write_zip(tmp_path / "model.pt2", parts))


@pytest.mark.parametrize("path", sorted(RELEASES.glob("*/*/model.pt2")), ids=lambda path: path.parts[-3])
def test_a_real_package_has_the_layout_of_its_release(path):
    found = read_artifact(str(path))
    (model,) = found.models
    old = path.parts[-3].startswith(("2.6", "2.7"))
    assert (model.layout, found.prefix is None) == (("legacy", True) if old else ("pt2", False))
    assert model.wrapper_cpp is not None
    assert len(model.shared_objects) == 1
    assert "unknown_members" not in found.counts


def test_the_entry_points_that_newer_releases_added_are_kept(tmp_path):
    names = (
        "AOTInductorModelContainerCreate",
        "AOTInductorGetLastError",
        "AOTInductorSetUsePinnedAsyncConstantsCopy",
        "AOTInductorModelContainerCreateWithExternalConstants",
    )
    data = build_elf(defined=names)
    parts = [part for part in package_parts() if not part.name.endswith(".so")]
    parts.append(Part(f"model/data/aotinductor/model/{HASH}.wrapper.so", data))
    (model,) = read(tmp_path, parts).models
    assert model.shared_objects[0].defined_entry_points == tuple(sorted(names))


def test_the_twin_for_other_abis_is_not_the_object_that_is_judged(tmp_path):
    twin = Part(f"model/data/aotinductor/model/{HASH}.wrapper_abicompat.so", build_elf())
    (model,) = read(tmp_path, [twin, *package_parts()]).models
    assert [item.member for item in model.shared_objects] == [f"model/data/aotinductor/model/{HASH}.wrapper.so"]
    assert twin.name in {member.name for member in model.members}


def test_the_object_of_the_model_comes_first(tmp_path):
    launcher = Part("model/data/aotinductor/model/a_triton_launcher.so", build_elf())
    (model,) = read(tmp_path, [launcher, *package_parts()]).models
    assert model.shared_objects[0].member.endswith(".wrapper.so")
    assert len(model.shared_objects) == 2


def test_device_code_of_every_kind_is_found(tmp_path):
    folder = "model/data/aotinductor/model/"
    extra = [
        Part(f"{folder}a.zebin", build_cubin(0, machine=EM_INTELGT)),
        Part(f"{folder}b_multiarch.hsaco", bundle("host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx942")),
    ]
    found = read(tmp_path, [*package_parts(), *extra])
    (model,) = found.models
    assert model.gpu_code == tuple(part.name for part in extra)
    assert model.gpu_targets == ("intelgt", "gfx942")
    assert "unknown_members" not in found.counts


def bundle(*targets: str) -> bytes:
    """A bundle of clang as the HIP runtime loads it: a table of offset, size and name, then the code."""
    table = b"".join(
        (4096).to_bytes(8, "little") + (0).to_bytes(8, "little") + len(name).to_bytes(8, "little") + name.encode()
        for name in targets
    )
    return (b"__CLANG_OFFLOAD_BUNDLE__" + len(targets).to_bytes(8, "little") + table).ljust(4096, b"\0")


def test_other_contents_are_named(tmp_path):
    extra = [
        Part("model/data/executorch/m.pte", b"\0\0\0\0ET12"),
        Part("model/data/executorch/m.ptd", b"\0\0\0\0FT01"),
        Part("model/data/mtia/code.bin", b"x"),
        Part("model/data/constants/opaque_obj_0", b"x"),
        Part("model/xl_model_weights/model_param_config", b"{}"),
        Part("model/extra/module_info.json", b"{}"),
    ]
    found = read(tmp_path, [*package_parts(), *extra])
    assert found.kind is ArtifactKind.AOTI_PACKAGE
    assert found.other_contents == (
        "ExecuTorch programs (2)",
        "code for MTIA (1)",
        "opaque objects (1)",
        "weights in separate files (1)",
        "module information (1)",
    )


def test_an_archive_for_executorch_alone_is_named(tmp_path):
    parts = [Part("m/data/executorch/m.pte", b"\0\0\0\0ET12"), Part("m/archive_format", b"pt2")]
    found = read(tmp_path, parts)
    assert (found.kind, found.problem) == (ArtifactKind.ZIP, "a PT2 archive for ExecuTorch")
