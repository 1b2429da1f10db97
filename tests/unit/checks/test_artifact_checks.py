"""Checks of the file itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aotidoctor.commands import diagnose_package
from aotidoctor.diagnosis.playbooks import load_playbooks
from aotidoctor.diagnosis.rank import diagnose
from aotidoctor.model.artifact import ArtifactKind, CrcState, ExternNode, SymbolRef
from aotidoctor.model.case import Options, TorchBuild
from aotidoctor.model.evidence import NotChecked
from aotidoctor.readers.package.read_package import read_artifact
from aotidoctor.triage import open_case
from aotidoctor.triage.static_checks import overlooked_by_checks
from tests.artifacts.packages import package_parts, write_zip
from tests.artifacts.zips import Part
from tests.unit.checks.package_builders import (
    FOLDER,
    KERNEL_META,
    META,
    MODEL,
    SO,
    VALUES,
    WRAPPER,
    artifact,
    ask,
    case,
    entry,
    first,
    member,
    metadata,
    shared_object,
    with_model,
    with_object,
    with_values,
)

ERROR, WARN, INFO = "error", "warn", "info"


def of_kind(kind, **more):
    return artifact(kind=kind, models=(), members=(), **more)


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (of_kind(ArtifactKind.MISSING), [("missing", ERROR)]),
        (of_kind(ArtifactKind.MISSING, is_symlink=True, link_target="../annex"), [("dangling-link", ERROR)]),
        (artifact(is_symlink=True, link_target="real.pt2"), []),
    ],
)
def test_missing(art, expected):
    assert ask("artifact_missing", case(art)) == expected


@pytest.mark.parametrize(
    "kind",
    [
        ArtifactKind.EXPORTED_PROGRAM, ArtifactKind.TORCHSCRIPT, ArtifactKind.TORCH_SAVE, ArtifactKind.LFS_POINTER,
        ArtifactKind.SAFETENSORS, ArtifactKind.ONNX, ArtifactKind.ZIP, ArtifactKind.PICKLE, ArtifactKind.TEXT,
        ArtifactKind.DIRECTORY, ArtifactKind.OTHER, ArtifactKind.BARE_SO, ArtifactKind.EXECUTORCH_PROGRAM,
        ArtifactKind.EXECUTORCH_DATA,
    ],
)  # fmt: skip
def test_wrong_kind(kind):
    assert ask("artifact_wrong_kind", case(of_kind(kind))) == [(kind.value, ERROR)]


@pytest.mark.parametrize(
    "kind",
    [
        ArtifactKind.AOTI_PACKAGE, ArtifactKind.AOTI_DIRECTORY, ArtifactKind.MISSING, ArtifactKind.EMPTY,
        ArtifactKind.UNREADABLE, ArtifactKind.TRUNCATED_ZIP,
    ],
)  # fmt: skip
def test_kinds_that_are_not_wrong(kind):
    assert ask("artifact_wrong_kind", case(of_kind(kind))) == []


def test_bare_object_by_its_own_name_is_noted():
    assert ask("artifact_wrong_kind", case(of_kind(ArtifactKind.BARE_SO, path="m.so"))) == [("bare-so", INFO)]


def test_first_line_is_shown():
    log = first(
        "artifact_wrong_kind", case(of_kind(ArtifactKind.TEXT, first_line="Traceback (most recent call last):"))
    )
    assert log.facts["command"] == "aotidoctor classify model.pt2"
    finding = first("artifact_wrong_kind", case(of_kind(ArtifactKind.TEXT, first_line="<html>")))
    assert finding.facts["command"] == "head -n 3 model.pt2"
    assert "<html>" in finding.observed


def second(**more):
    return (shared_object(), shared_object(f"{FOLDER}libhelper.so", **more))


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (of_kind(ArtifactKind.EMPTY), [("empty", ERROR)]),
        (of_kind(ArtifactKind.TRUNCATED_ZIP), [("truncated", ERROR)]),
        (artifact(bad_crc=(SO, WRAPPER)), [("crc", ERROR), ("crc", ERROR)]),
        (with_object(format="unknown", problem="begins with 00"), [("so-garbled", ERROR)]),
        (with_object(problem="cut", truncated_at=900), [("so-garbled", ERROR)]),
        (with_object(truncated_at=900), [("so-truncated", WARN)]),
        (with_object(format="pe"), []),
        (with_model(shared_objects=second(format="unknown", problem="text")), [("so-garbled", WARN)]),
        (artifact(names_symlink=(SO,), models=(entry(shared_objects=(shared_object(problem="x"),)),)), []),
        (artifact(), []),
    ],
)
def test_corrupt(art, expected):
    assert ask("artifact_corrupt", case(art)) == expected


@pytest.mark.parametrize(
    ("problem", "severity"),
    [
        ("100 bytes before the archive", ERROR),
        ("the central directory holds 10 readable entries, the end record states 9", WARN),
    ],
)
def test_damaged_directory(problem, severity):
    """Measured: the loader refuses the first and does not mind the second."""
    assert ask("artifact_corrupt", case(artifact(problem=problem))) == [("directory", severity)]


def test_members_over_each_other():
    assert ask("artifact_bomb", case(artifact(overlapping=("a", "b")))) == [("overlap", ERROR)]


def test_large_compressed_object_is_not_called_garbled():
    art = with_object(format="unknown", problem="compressed and too large to unpack")
    packed = member(SO, data_offset=None, crc=CrcState.NOT_READ, size=1 << 33)
    art = replace(art, members=(*(m for m in art.members if m.name != SO), packed))
    assert ask("artifact_corrupt", case(art)) == [("so-unread", INFO)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("/tmp/x", "absolute"), ("C:/x", "absolute"), ("m/../../x", "parent"), ("m\\..\\..\\x", "parent")],
)
def test_unsafe(name, kind):
    assert ask("artifact_unsafe", case(artifact(names_unsafe=(name,)))) == [(kind, ERROR)]


def test_symlink_member():
    assert ask("artifact_unsafe", case(artifact(names_symlink=("m/x",)))) == [("symlink", ERROR)]


@pytest.mark.parametrize(("packed", "kind"), [(100, "ratio"), (10**9, "declared")])
def test_bomb(packed, kind):
    art = artifact(oversized=("m/pad",), members=(member("m/pad", size=10**9, compressed_size=packed),))
    assert ask("artifact_bomb", case(art)) == [(kind, ERROR)]


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (artifact(names_duplicate=(SO,)), [("duplicate", ERROR)]),
        (artifact(names_duplicate=(WRAPPER,)), [("duplicate", WARN)]),
        (with_model(shared_objects=(shared_object(), shared_object(f"{FOLDER}z.wrapper.so"))), [("two-so", ERROR)]),
        (with_model(shared_objects=second()), []),
        (with_model(shared_objects=(shared_object("d/a.so"), shared_object("d/b.so")), layout="legacy"),
         [("two-so", ERROR)]),
        (artifact(), []),
    ],
)  # fmt: skip
def test_ambiguous(art, expected):
    assert ask("artifact_ambiguous", case(art)) == expected


MARKS = ["archive_format", "archive_version"]
DATA = ["data/aotinductor/model/a.wrapper.so"]


def laid_out(*names, prefix=None, **more):
    return artifact(prefix=prefix, members=tuple(member(name) for name in names), **more)


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (artifact(), []),
        (laid_out(*DATA, "data/aotinductor/model/b.cpp", *MARKS), [("no-prefix", ERROR)]),
        # Measured: a flat archive loads when its first two names do not begin alike.
        (laid_out(*MARKS, *DATA), []),
        (laid_out(*DATA, *MARKS), []),
        (laid_out("x/y", *(f"m/{name}" for name in DATA + MARKS), prefix="m"), [("mixed-prefix", ERROR)]),
        (laid_out("x/y", "x/z", *(f"m/{name}" for name in DATA + MARKS), prefix="m"), [("mixed-prefix", ERROR)]),
        (laid_out(*(f"m/{name}" for name in DATA + MARKS), "x/y", prefix="m"), [("mixed-prefix", WARN)]),
        (artifact(names_directory=("m/", "m/data/", "m/data/aotinductor/")), []),
        (artifact(names_directory=("m/", FOLDER)), [("directory-entries", ERROR)]),
        (artifact(archive_version="9"), [("version", ERROR)]),
        (artifact(archive_version="0\n"), []),
        (artifact(archive_format="xyz"), [("format", ERROR)]),
        (artifact(archive_format=None), [("outdated", WARN)]),
        (laid_out("version", "archive_format", *DATA), [("old-layout", INFO)]),
        (artifact(kind=ArtifactKind.AOTI_DIRECTORY, prefix=None, archive_version=None), []),
        (of_kind(ArtifactKind.TRUNCATED_ZIP), NotChecked),
    ],
)
def test_layout(art, expected):
    assert ask("artifact_layout", case(art)) == expected


@pytest.mark.parametrize(("version", "expected"), [("2.6.0", []), ("2.7.1+cpu", []), ("2.8.0", [])])
def test_the_layout_of_another_release_is_no_damage(version, expected):
    torch = TorchBuild(version=version, path="/site/torch")
    assert ask("artifact_layout", case(artifact(), torch=torch)) == expected
    own = laid_out("version", "archive_format", *DATA)
    assert ask("artifact_layout", case(own, torch=torch)) == [("old-layout", INFO)]


def without(*suffixes):
    return tuple(item for item in MODEL.members if not item.name.endswith(suffixes))


CALL = "aoti_torch_proxy_executor_call_function(proxy_executor, {}, 1, ...);"
NODE = ExternNode(name="n", target="ops::scale")
PROXY = SymbolRef(name="aoti_torch_proxy_executor_call_function")


@pytest.mark.parametrize(
    ("art", "expected"),
    [
        (artifact(), []),
        (with_model(shared_objects=(), members=without(".so")), [("no-so", ERROR)]),
        (with_model(shared_objects=(), members=without(".so"), cpp_only=True), []),
        # Measured: the loader opens the metadata beside the last .cpp, and never the other.
        (with_model(metadata=(metadata(META),)), [("no-metadata", ERROR)]),
        (with_model(metadata=(metadata(KERNEL_META),)), []),
        (with_model(metadata=(metadata(META),), members=without(".cpp")), []),
        (with_model(metadata=(metadata(KERNEL_META),), members=without(".cpp")), [("no-metadata", ERROR)]),
        (with_model(wrapper_cpp=CALL.format(0)), [("no-extern-json", ERROR)]),
        (with_model(wrapper_cpp=CALL.format(0), extern_member="x.json", extern_nodes=(NODE,)), []),
        (with_model(wrapper_cpp=CALL.format(1), extern_member="x.json", extern_nodes=(NODE,)),
         [("no-extern-json", ERROR)]),
        (with_model(wrapper_cpp=CALL.format(0), extern_member="x.json", extern_problem="not-json"),
         [("no-extern-json", ERROR)]),
        (with_model(wrapper_cpp=None, shared_objects=(shared_object(undefined=(PROXY,)),)),
         [("no-extern-json", ERROR)]),
        (with_model(weights_location="blob"), []),
        (with_model(weights_location="external", shared_objects=(shared_object(constants_span=8),)),
         [("no-weights-file", ERROR)]),
        (with_model(weights_location="external", shared_objects=(shared_object(constants_span=1),)), []),
        (with_model(weights_location="disk"), [("no-weights-file", ERROR)]),
        (artifact(kind=ArtifactKind.BARE_SO), NotChecked),
    ],
)  # fmt: skip
def test_incomplete(art, expected):
    assert ask("artifact_incomplete", case(art)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"AOTI_DEVICE_KEY": None}, "no-device"),
        ({"AOTI_DEVICE_KEY": "npu"}, "unknown-device"),
        ({"AOTI_DEVICE_KEY": "xpu"}, []),
    ],
)
def test_bad_device_in_both_files(changes, expected):
    found = ask("artifact_bad_metadata", case(with_values(**changes)))
    assert found == ([(expected, WARN), (expected, ERROR)] if expected else [])


@pytest.mark.parametrize(
    ("problem", "kind"),
    [("not-json: line 1", "not-json"), ("not-object: a list", "not-json"), ("not-string: X", "not-string")],
)
@pytest.mark.parametrize(("name", "severity"), [(META, WARN), (KERNEL_META, ERROR)])
def test_damaged_metadata_counts_where_it_is_read(problem, kind, name, severity):
    good = {META: metadata(META), KERNEL_META: metadata(KERNEL_META)}
    good[name] = metadata(name, VALUES, problem=problem)
    assert ask("artifact_bad_metadata", case(with_model(metadata=tuple(good.values())))) == [(kind, severity)]


def test_cpp_only_and_its_compiler():
    art = with_model(cpp_only=True, shared_objects=())
    assert ask("artifact_cpp_only", case(art)) == [("cpp-only", WARN)]
    assert ask("toolchain_missing", case(art)) == []
    assert ask("toolchain_missing", case(art, tools={"g++": None})) == [("compiler", ERROR)]
    assert ask("toolchain_missing", case(tools={})) == []


def test_headers_of_the_host_that_compiled_it():
    there = "/opt/venv/torch/include"
    art = with_model(cpp_only=True, shared_objects=(), build_folders=("/opt/python", there, f"{there}/torch/csrc"))
    assert ask("toolchain_missing", case(art, missing_folders=())) == []
    # A compiler passes over a folder that it does not need.
    assert ask("toolchain_missing", case(art, missing_folders=("/opt/python", f"{there}/torch/csrc"))) == []
    assert ask("toolchain_missing", case(art, missing_folders=("/opt/python", there))) == [("headers", ERROR)]
    assert ask("toolchain_missing", case(with_model(build_folders=(there,)), missing_folders=(there,))) == []
    assert ask("toolchain_missing", case(art, missing_folders=None)) is NotChecked


@pytest.mark.parametrize(
    ("files", "source", "expected"),
    [
        ((), "// no loader's functions", [("cpp-only", WARN)]),
        (("aoti_model.h",), "// no loader's functions", [("standalone", ERROR)]),
        (("aoti_model.h",), "AOTIRuntimeError AOTInductorModelContainerCreate(", [("cpp-only", WARN)]),
    ],
)
def test_sources_of_a_standalone_model_cannot_be_loaded(files, source, expected):
    members = tuple(member(f"{FOLDER}{name}") for name in files)
    art = with_model(cpp_only=True, shared_objects=(), members=members, wrapper_cpp=source)
    assert ask("artifact_cpp_only", case(art)) == expected


@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        (("model",), None, []),
        (("model", "other"), None, []),
        (("encoder",), None, [("not-found", ERROR)]),
        (("encoder",), "encoder", []),
        (("encoder", "decoder"), None, [("several", ERROR)]),
        (("encoder", "decoder"), "model", [("not-found", ERROR)]),
        (("model",), "nope", [("not-found", ERROR)]),
        ((), None, []),
    ],
)
def test_model_name(names, wanted, expected):
    art = artifact(models=tuple(entry(name=name) for name in names))
    assert ask("model_name", case(art, options={"model_name": wanted})) == expected


@pytest.mark.parametrize(
    "kind", [ArtifactKind.EXPORTED_PROGRAM, ArtifactKind.TEXT, ArtifactKind.ZIP, ArtifactKind.OTHER]
)
def test_no_command_for_another_kind_writes_over_the_file(kind):
    given = case(of_kind(kind, path="exported.pt2"))
    (diagnosis,) = diagnose([replace(first("artifact_wrong_kind", given), id="E1")], load_playbooks(), case=given)
    command = diagnosis.remedy.command
    assert "exported.pt2" in command
    assert "package_path='exported.pt2'" not in command


def test_checksums_that_were_not_compared_are_said(tmp_path):
    """A member of the weights that is packed, so that looking at it takes long; what is stored is read."""
    blob = bytes(range(256)) * (300 << 10)  # 75 MiB, of which deflate leaves 300 KiB
    parts = [*package_parts(), Part("model/data/weights/packed", blob, deflate=True)]
    path = write_zip(tmp_path / "model.pt2", parts)
    seen = case(read_artifact(path))
    (missed,) = [item for item in overlooked_by_checks(seen) if item.code == "AD-ART-003"]
    assert missed.name == "artifact_corrupt"
    assert f"1 member ({len(blob):,} bytes)" in missed.reason
    assert f"aotidoctor check {path} --verify-data" in missed.reason
    remote = artifact(path="https://models.example/model.pt2", unread_crc=("model/data/weights/packed",))
    (missed,) = [item for item in overlooked_by_checks(case(remote)) if item.code == "AD-ART-003"]
    assert missed.reason.endswith("were not compared; to compare them, download the file")


def test_check_compares_the_checksums_of_large_members_where_it_is_asked_to(tmp_path):
    """Reading them takes longer than everything else; a run, which waits for torch meanwhile, compares them anyway."""
    member = "model/data/weights/weight_0"
    path = write_zip(tmp_path / "model.pt2", [*package_parts(), Part(member, b"weights" * 10_000_000, crc=1)])
    quick = diagnose_package.diagnose(path, None, Options(), environ={}, static_only=True)
    assert [item.reason for item in quick.not_checked if item.code == "AD-ART-003"] != []
    assert "AD-ART-003" not in {item.code for item in quick.findings}
    whole = diagnose_package.diagnose(path, None, Options(verify_data=True), environ={}, static_only=True)
    assert [item.facts["member"] for item in whole.findings if item.code == "AD-ART-003"] == [member]
    assert [item for item in whole.not_checked if item.code == "AD-ART-003"] == []
    opened, _ = open_case.open_case(path, None, Options(), {})
    assert opened.artifact.bad_crc == (member,)


def test_where_all_checksums_were_compared_nothing_is_said(tmp_path):
    seen = case(read_artifact(write_zip(tmp_path / "model.pt2", package_parts())))
    assert [item for item in overlooked_by_checks(seen) if item.code == "AD-ART-003"] == []
