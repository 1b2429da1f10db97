"""Models of packages: layouts, members by role, weights."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.package_models import parse_extern_nodes
from aotidoctor.readers.package.read_package import read_artifact
from tests.artifacts.elfs import EM_AMDGPU, build_cubin, build_fatbin
from tests.artifacts.packages import (
    DEVICE,
    EXTERN,
    HASH,
    archive_parts,
    edit_part,
    model_parts,
    package_parts,
    wrapper_cpp,
    write_zip,
)
from tests.artifacts.zips import Part


def read(tmp_path, parts):
    return read_artifact(write_zip(tmp_path / "model.pt2", parts))


def only(tmp_path, parts):
    (model,) = read(tmp_path, parts).models
    return model


def test_current_layout(tmp_path):
    found = read(tmp_path, package_parts(extern=EXTERN))
    assert (found.prefix, found.archive_version, found.archive_format) == ("model", "0", "pt2")
    (model,) = found.models
    assert (model.name, model.layout, model.root, model.cpp_only) == ("model", "pt2", "model", False)
    assert model.wrapper_member == f"model/data/aotinductor/model/{HASH}.wrapper.cpp"
    assert model.wrapper_cpp == wrapper_cpp()
    assert list(model.kernel_sources) == ["model/data/aotinductor/model/cdef.kernel.cpp"]
    assert [dict(item.values) for item in model.metadata] == [DEVICE, DEVICE]
    assert len(model.members) == 6


def test_extern_nodes(tmp_path):
    model = only(tmp_path, package_parts(extern=EXTERN))
    (node,) = model.extern_nodes
    assert (node.name, node.target) == ("buf1", "lab::scale")
    assert node.argument_names == ("x", "factor")
    assert node.output_kinds == ("tensor",)
    assert node.output_names == ("buf2",)
    assert model.extern_member.endswith(f"{HASH}.wrapper.json")


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ([], ()),
        ([{"as_tensors": [{"name": "a"}, {"name": "b"}]}, {"as_tensor": {"name": "c"}}], ("a", "b", "c")),
        ([{"as_optional_tensor": {"as_tensor": {"name": "a"}}}], ("a",)),
        ([{"as_optional_tensor": {"as_none": True}}, {"as_int": 3}, {"as_tensor": {"name": "a"}}, 7], ("a",)),
    ],
)
def test_names_of_the_tensors_that_come_back(outputs, names):
    data = json.dumps({"nodes": [{"name": "n", "node": {"target": "a::b", "outputs": outputs}}]}).encode()
    ((node,), _) = parse_extern_nodes(data)
    assert node.output_names == names


@pytest.mark.parametrize(
    ("data", "word"),
    [(b"{", "not-json"), (b"[]", "not-object"), (b'{"a": 1}', "no-nodes"), (b"[" * 100_000, "not-json")],
)
def test_damaged_extern_json(tmp_path, data, word):
    parts = package_parts(extra=[(f"{HASH}.wrapper.json", data)])
    model = only(tmp_path, parts)
    assert model.extern_nodes == ()
    assert model.extern_problem.startswith(word)


@pytest.mark.parametrize("data", [b'{"nodes": [5, null, {"node": 7}, {"node": {"inputs": [1], "outputs": {}}}]}'])
def test_strange_extern_nodes_do_not_raise(tmp_path, data):
    model = only(tmp_path, package_parts(extra=[(f"{HASH}.wrapper.json", data)]))
    assert [node.target for node in model.extern_nodes] == ["", "", "", ""]


def legacy_parts():
    parts = [
        replace(part, name=part.name.removeprefix("model/").replace(".wrapper", "").replace(".kernel", ""))
        for part in model_parts()
    ]
    return [Part("archive_format", b"pt2"), *parts, Part("version", b"0")]


def test_legacy_layout(tmp_path):
    found = read(tmp_path, legacy_parts())
    assert (found.prefix, found.archive_version, found.archive_format) == (None, "0", "pt2")
    (model,) = found.models
    assert (model.layout, model.root) == ("legacy", "")
    assert model.wrapper_member == f"data/aotinductor/model/{HASH}.cpp"
    assert model.metadata
    assert model.shared_objects[0].problem is None


def test_rezipped_without_the_top_folder_is_not_legacy(tmp_path):
    parts = [replace(part, name=part.name.removeprefix("model/")) for part in package_parts()]
    found = read(tmp_path, parts)
    assert found.prefix is None
    assert found.models[0].layout == "pt2"
    assert found.archive_version == "0"


def test_several_models(tmp_path):
    parts = [
        *model_parts("p/data/aotinductor/encoder"),
        *model_parts("p/data/aotinductor/decoder"),
        *archive_parts("p"),
    ]
    found = read(tmp_path, parts)
    assert [model.name for model in found.models] == ["encoder", "decoder"]
    assert found.model("decoder").shared_objects[0].member == f"p/data/aotinductor/decoder/{HASH}.wrapper.so"
    assert found.model("nope") is None


def test_similar_model_names_do_not_mix(tmp_path):
    parts = [*model_parts("p/data/aotinductor/model"), *model_parts("p/data/aotinductor/model2")]
    assert [len(model.members) for model in read(tmp_path, parts).models] == [5, 5]


def test_two_roots(tmp_path):
    found = read(tmp_path, [*model_parts("a/data/aotinductor/m"), *model_parts("b/data/aotinductor/m")])
    assert [model.root for model in found.models] == ["a", "b"]


def test_two_shared_objects(tmp_path):
    model = only(tmp_path, package_parts(extra=[("zzz.wrapper.so", b"\x7fELF")]))
    first, second = sorted(one.member.rpartition("/")[2] for one in model.shared_objects)
    assert (first, second) == (f"{HASH}.wrapper.so", "zzz.wrapper.so")


def test_cpp_only(tmp_path):
    parts = edit_part(package_parts(), ".so", lambda _: None)
    folder = "model/data/aotinductor/model"
    assert not only(tmp_path, parts).cpp_only
    parts += [Part(f"{folder}/CMakeLists.txt", b"x"), Part(f"{folder}/{HASH}.wrapper_compile_flags.json", b"{}")]
    assert only(tmp_path, parts).cpp_only


def test_folders_that_are_handed_to_the_compiler(tmp_path):
    folder = f"model/data/aotinductor/model/{HASH}.wrapper"
    flags = {"include_dirs": ["/a/torch/include", "relative", 7, "/python"], "libraries_dirs": []}
    link = {"include_dirs": ["/python", "/" + "x" * 9000], "libraries_dirs": ["/a/torch/lib"], "ldflags": ["/no"]}
    parts = [
        *edit_part(package_parts(), ".so", lambda _: None),
        Part(f"{folder}_compile_flags.json", json.dumps(flags).encode()),
        Part(f"{folder}_linker_flags.json", json.dumps(link).encode()),
    ]
    assert only(tmp_path, parts).build_folders == ("/a/torch/include", "/python", "/a/torch/lib")
    damaged = [*parts[:-2], Part(f"{folder}_compile_flags.json", b"{"), Part(f"{folder}_linker_flags.json", b"[]")]
    assert only(tmp_path, damaged).build_folders == ()
    # Nothing is compiled where there is a shared object.
    assert only(tmp_path, [*package_parts(), *parts[-2:]]).build_folders == ()


def test_sources_missing(tmp_path):
    model = only(tmp_path, edit_part(package_parts(), ".cpp", lambda _: None))
    assert (model.wrapper_member, model.wrapper_cpp, dict(model.kernel_sources)) == (None, None, {})
    assert model.shared_objects[0].problem is None


@pytest.mark.parametrize(
    ("constants", "wrapper", "extra", "expected"),
    [
        (b"\1" * 64, wrapper_cpp(2), (), "so"),
        (b"\0", wrapper_cpp(0), (), "none"),
        (b"\0", wrapper_cpp(2, included=False), (), "external"),
        (b"\0", wrapper_cpp(2, included=True), (), "so"),
        (b"\0", "", (), "unknown"),
        (None, wrapper_cpp(0), (), "none"),
        (None, wrapper_cpp(1), (), "unknown"),
        (b"\1" * 16, wrapper_cpp(2), (), "mmap"),
        (b"\1" * 8, wrapper_cpp(2, included=False), ((f"{HASH}.wrapper_weights.blob", b"w"),), "blob"),
        (b"\1" * 8, wrapper_cpp(2, included=False), (), "external"),
        (b"\0", wrapper_cpp(2, included=False), (("weights_config.json", b"{}"),), "disk"),
    ],
)
def test_weights_location(tmp_path, constants, wrapper, extra, expected):
    model = only(tmp_path, package_parts(constants=constants, wrapper=wrapper, extra=extra))
    assert model.weights_location == expected


def test_weights_of_cpp_only(tmp_path):
    parts = edit_part(package_parts(extra=[("CMakeLists.txt", b""), ("c.weights.o", b"o")]), ".so", lambda _: None)
    assert only(tmp_path, parts).weights_location == "so"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "not-json"),
        (b"\xff\xfe", "not-json"),
        (b"[1]", "not-object"),
        (b'{"AOTI_DEVICE_KEY": 5}', "not-string: AOTI_DEVICE_KEY"),
    ],
)
def test_damaged_metadata(tmp_path, data, problem):
    parts = edit_part(package_parts(), ".wrapper_metadata.json", lambda part: replace(part, data=data))
    first, second = only(tmp_path, parts).metadata
    assert first.problem.startswith(problem)
    assert second.problem is None


def test_metadata_with_lone_surrogates_can_be_printed(tmp_path):
    parts = edit_part(package_parts(), ".wrapper_metadata.json", lambda part: replace(part, data=b'{"a": "\\ud800"}'))
    first, _ = only(tmp_path, parts).metadata
    assert first.values["a"].encode() == b"?"


def test_kernel_information(tmp_path):
    text = {"cpp_fused_add_0:1": {"stack_traces": ["File x"], "post_grad_nodes": ["add"], "pre_grad_nodes": []}}
    model = only(tmp_path, package_parts(extra=[("kernel_information.json", json.dumps(text).encode())]))
    assert model.kernel_information["cpp_fused_add_0:1"]["post_grad_nodes"] == ("add",)


def test_what_kernel_information_says_of_operators_since_2_14(tmp_path):
    facts = {"extern_semantic_key": "aten.mm", "input_shapes": [[4, 8], [8, 2]], "output_shape": [4, 2], "other": None}
    text = {"extern_kernels.mm:2": {**facts, "input_dtypes": ["torch.float32"]}}
    model = only(tmp_path, package_parts(extra=[("kernel_information.json", json.dumps(text).encode())]))
    assert model.kernel_information["extern_kernels.mm:2"] == {
        "extern_semantic_key": ("aten.mm",), "input_shapes": ("[4, 8]", "[8, 2]"), "output_shape": ("4", "2"),
        "other": (), "input_dtypes": ("torch.float32",),
    }  # fmt: skip
    assert model.extern_member is None


def test_gpu_code(tmp_path):
    extra = [
        ("a.cubin", build_cubin(90, accelerated=True)),
        ("b.cubin", build_cubin(80)),
        ("c.cubin", build_cubin(100, accelerated=True, abi=8)),
        ("d.fatbin", build_fatbin(("elf", 86, b"zzzz"), ("elf", 90, build_cubin(90)), ("ptx", 90, b".version 8.0"))),
        ("e.hsaco", build_cubin(0x4C, machine=EM_AMDGPU)),
        ("f.spv", b"\x03\x02\x23\x07" + bytes(16)),
        ("g.cubin", b"garbage"),
        ("h.fatbin", b"\x50\xed\x55\xba" + bytes(3)),
    ]
    model = only(tmp_path, package_parts(extra=extra))
    assert len(model.gpu_code) == 8
    assert model.gpu_targets == ("sm_90a", "sm_80", "sm_100a", "sm_86", "sm_90", "compute_90", "gfx942", "spirv")


def test_unknown_members_are_counted(tmp_path):
    found = read(tmp_path, package_parts(extra=[("what.is.this", b"?"), ("custom_obj_0", b"")]))
    assert found.counts == {"unknown_members": 1}


def test_directory_package(tmp_path):
    for part in package_parts(extern=EXTERN):
        path = tmp_path / "pkg" / part.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(part.data)
    (tmp_path / "pkg" / "model" / "link").symlink_to("/etc/passwd")
    for folder in (tmp_path / "pkg", tmp_path / "pkg" / "model"):
        found = read_artifact(str(folder))
        assert found.kind is ArtifactKind.AOTI_DIRECTORY
        assert found.archive_version == "0"
        assert len(found.names_symlink) == 1
        (model,) = found.models
        assert model.shared_objects[0].problem is None
        assert model.extern_nodes
        assert all(member.path.startswith(str(folder)) for member in model.members)


def test_other_directory(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    found = read_artifact(str(tmp_path))
    assert (found.kind, found.models, len(found.members)) == (ArtifactKind.DIRECTORY, (), 1)


def test_link_cycle_in_a_directory(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "up").symlink_to("..")
    assert read_artifact(str(tmp_path)).names_symlink == ("d/up",)
