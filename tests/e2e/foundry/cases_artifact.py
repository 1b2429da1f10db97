"""Faults of the file itself, made by editing archives."""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
from pathlib import Path

from foundry import edit
from foundry.cases import EITHER, WARNS, Case, Kit, called, made, packaged
from foundry.edit import Member
from foundry.place import torch_folder

Members = list[Member]


def _bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _cut(share: float, *, tail: int = 0):
    def change(kit: Kit, where: Path) -> Path:
        data = kit.package("linear").read_bytes()
        return _bytes(where / "model.pt2", data[: int(len(data) * share) - tail])

    return change


def _wrote(data: bytes):
    return lambda kit, where: _bytes(where / "model.pt2", data)


def _dangling(kit: Kit, where: Path) -> Path:
    link = where / "model.pt2"
    link.symlink_to(where / "annex" / "SHA256E-s1531119")
    return link


def _flip(member: str, **place: int):
    def change(kit: Kit, where: Path) -> Path:
        path = _bytes(where / "model.pt2", kit.package("linear").read_bytes())
        edit.corrupt_member(path, member, **place)
        return path

    return change


def _flip_weight(kit: Kit, where: Path) -> Path:
    so = edit.find(edit.read(kit.package("linear")), ".so")[1]
    start, _ = edit.symbol_range(so, "_binary_constants_bin_start")
    return _flip(".so", offset=start + 3)(kit, where)


def _compiled_elsewhere(members: Members) -> Members:
    """The flags of a host on which torch is installed in another folder."""
    torch = torch_folder().encode()
    return edit.replace(members, "_flags.json", lambda text: text.replace(torch, b"/opt/build/venv/torch"))


def _garble_run(so: bytes) -> bytes:
    start, _ = edit.symbol_range(so, "_ZN5torch12aot_inductor16AOTInductorModel8run_impl")
    return edit.overwrite(so, start, b"\x0f\x0b" * 32)  # ud2: no such instruction


def _exported(kit: Kit, where: Path) -> Path:
    return _bytes(where / "model.pt2", kit.exported("linear").read_bytes())


def _state_dict(kit: Kit, where: Path) -> Path:
    import torch

    torch.save(torch.nn.Linear(16, 8).state_dict(), where / "model.pt2")
    return where / "model.pt2"


def _whole_module(kit: Kit, where: Path) -> Path:
    import torch

    torch.save(torch.nn.Linear(16, 8), where / "model.pt2")
    return where / "model.pt2"


def _torchscript(kit: Kit, where: Path) -> Path:
    import torch

    torch.jit.save(torch.jit.trace(torch.nn.Linear(16, 8), torch.randn(4, 16)), str(where / "model.pt2"))
    return where / "model.pt2"


def _bare_so(kit: Kit, where: Path) -> Path:
    return _bytes(where / "model.pt2", edit.find(edit.read(kit.package("linear")), ".so")[1])


def _tarball(kit: Kit, where: Path) -> Path:
    with tarfile.open(where / "model.pt2", "w:gz") as archive:
        archive.add(kit.package("linear"), "model.pt2")
    return where / "model.pt2"


def _zip_in_zip(kit: Kit, where: Path) -> Path:
    return edit.write(where / "model.pt2", [("model.pt2", kit.package("linear").read_bytes())])


def _other_zip(kit: Kit, where: Path) -> Path:
    return edit.write(where / "model.pt2", [("README.txt", b"hello"), ("data/table.csv", b"a,b\n1,2\n")])


def _empty_folder(kit: Kit, where: Path) -> Path:
    (where / "model.pt2").mkdir()
    return where / "model.pt2"


def _second_so(kit: Kit, where: Path) -> Path:
    members = edit.read(kit.package("linear"))
    name = edit.find(members, ".wrapper.so")[0]
    other = edit.find(edit.read(kit.package("pointwise")), ".wrapper.so")[1]
    second = f"{name.rpartition('/')[0]}/zzz.wrapper.so"
    return edit.write(where / "model.pt2", [*members, (second, other)])


def _same_name(kit: Kit, where: Path) -> Path:
    members = edit.read(kit.package("linear"))
    other = edit.find(edit.read(kit.package("pointwise")), ".wrapper.so")[1]
    return edit.write(where / "model.pt2", [*members, (edit.find(members, ".wrapper.so")[0], other)])


def _two_models(kit: Kit, where: Path) -> Path:
    encoder = edit.rename_model(edit.read(kit.package("linear")), "model", "encoder")
    decoder = edit.rename_model(edit.read(kit.package("pointwise")), "model", "decoder")
    return edit.write(where / "model.pt2", encoder + [member for member in decoder if "/aotinductor/" in member[0]])


def _symlink_member(kit: Kit, where: Path) -> Path:
    path = edit.write(where / "model.pt2", edit.read(kit.package("linear")))
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("model/data/aotinductor/model/link.so")
        info.create_system = 3
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return path


def _bomb(kit: Kit, where: Path) -> Path:
    path = edit.write(where / "model.pt2", edit.read(kit.package("linear")))
    name = "model/data/aotinductor/model/padding.bin"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
        for _ in range(300):
            member.write(bytes(1 << 20))
    return path


def _declared_bomb(kit: Kit, where: Path) -> Path:
    members = [*edit.read(kit.package("linear")), ("model/data/aotinductor/model/padding.bin", bytes(1 << 16))]
    data = bytearray(edit.write(where / "model.pt2", members, compression=zipfile.ZIP_DEFLATED).read_bytes())
    entry = data.rfind(b"model/data/aotinductor/model/padding.bin") - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    struct.pack_into("<I", data, entry + 24, 0xFFFFFFF0)
    return _bytes(where / "model.pt2", bytes(data))


def _with_folders(kit: Kit, where: Path) -> Path:
    members = edit.read(kit.package("linear"))
    folders = ["model/", "model/data/", "model/data/aotinductor/", "model/data/aotinductor/model/"]
    return edit.write(where / "model.pt2", [(name, b"") for name in folders] + members)


def _old_layout(members: Members) -> Members:
    """The layout of torch 2.5 and 2.6: no top folder, the version first."""
    flat = [(name.partition("/")[2], data) for name, data in members if "/aotinductor/" in name]
    return [("version", b"0"), ("archive_format", b"pt2"), *flat]


def _set(name: str, data: bytes):
    return lambda members: edit.replace(members, name, lambda _: data)


def _blank_middle(so: bytes) -> bytes:
    start, size = edit.section_range(so, ".text")
    return edit.overwrite(so, start, bytes(size))


HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>nginx</body></html>\n"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 1531119\n"
PICKLE = io.BytesIO(b"\x80\x02}q\x00.").getvalue()

CASES: tuple[Case, ...] = (
    made("artifact_no_such_file", "linear", lambda kit, where: where / "gone.pt2", "artifact-missing", exits=(1, 4)),
    made("artifact_dangling_link", "linear", _dangling, "artifact-missing", exits=(1, 4)),
    made("artifact_lfs_pointer", "linear", _wrote(LFS), "artifact-wrong-kind"),
    made("artifact_html", "linear", _wrote(HTML), "artifact-wrong-kind"),
    made("artifact_text", "linear", _wrote(b"just a note\n"), "artifact-wrong-kind"),
    made("artifact_json", "linear", _wrote(b'{"error": "quota exceeded"}'), "artifact-wrong-kind"),
    made("artifact_pickle", "linear", _wrote(PICKLE), "artifact-wrong-kind"),
    made("artifact_state_dict", "linear", _state_dict, "artifact-wrong-kind"),
    made("artifact_whole_module", "linear", _whole_module, "artifact-wrong-kind"),
    made("artifact_torchscript", "linear", _torchscript, "artifact-wrong-kind"),
    made("artifact_exported_program", "linear", _exported, "artifact-wrong-kind"),
    made("artifact_bare_so", "linear", _bare_so, "artifact-wrong-kind"),
    made("artifact_tarball", "linear", _tarball, "artifact-wrong-kind"),
    made("artifact_zip_in_zip", "linear", _zip_in_zip, "artifact-wrong-kind", also=("artifact-layout",)),
    made("artifact_other_zip", "linear", _other_zip, "artifact-wrong-kind"),
    made(
        "artifact_empty_folder",
        "linear",
        _empty_folder,
        "artifact-wrong-kind",
        also=("artifact-incomplete", "artifact-missing"),
    ),
    made("artifact_empty_file", "linear", _wrote(b""), "artifact-corrupt"),
    made("artifact_truncated", "linear", _cut(0.6), "artifact-corrupt"),
    made("artifact_truncated_early", "linear", _cut(0.02), "artifact-corrupt"),
    made("artifact_truncated_tail", "linear", _cut(1.0, tail=30), "artifact-corrupt"),
    made("artifact_crc_so", "linear", _flip_weight, "artifact-corrupt", ".so"),
    made("artifact_crc_debug", "linear", _flip(".so"), "artifact-corrupt", ".so", exits=EITHER),
    made("artifact_crc_source", "linear", _flip(".wrapper.cpp", offset=-40), "artifact-corrupt", ".cpp", exits=EITHER),
    packaged("artifact_so_garbled", "linear", lambda m: edit.replace(m, ".so", _garble_run), "artifact-corrupt",
             also=("kernel-crash",)),
    packaged("artifact_so_zeroed", "linear", lambda m: edit.replace(m, ".so", lambda so: bytes(len(so))),
             "artifact-corrupt", also=("platform-mismatch",)),
    packaged("artifact_so_empty", "linear", _set(".so", b""), "artifact-corrupt"),
    packaged("artifact_so_text_blank", "linear", lambda m: edit.replace(m, ".so", _blank_middle), "artifact-corrupt",
             also=("kernel-crash",)),
    packaged("artifact_so_cut_early", "linear", lambda m: edit.replace(m, ".so", lambda so: so[:20000]),
             "artifact-corrupt"),
    packaged("artifact_flat", "linear", lambda m: edit.rename(m, lambda name: name.partition("/")[2]),
             "artifact-layout", proof=True),
    made("artifact_folder_entries", "linear", _with_folders, "artifact-layout", proof=True),
    packaged("artifact_version_9", "linear", _set("archive_version", b"9"), "artifact-layout"),
    packaged("artifact_no_format", "linear", lambda m: edit.drop(m, "archive_format"), "artifact-layout", exits=WARNS),
    packaged("artifact_old_layout", "linear", _old_layout, "artifact-layout", exits=WARNS),
    packaged("artifact_mixed_prefix", "linear", lambda m: edit.rename(
        m, lambda name: name.replace("model/", "other/", 1) if name.endswith(".so") else name), "artifact-layout",
        also=("artifact-incomplete",)),
    packaged("artifact_no_so", "linear", lambda m: edit.drop(m, ".so"), "artifact-incomplete"),
    packaged("artifact_no_so_no_cpp", "linear", lambda m: edit.drop(m, ".so", ".cpp"), "artifact-incomplete"),
    packaged("artifact_no_metadata", "linear", lambda m: edit.drop(m, "_metadata.json"), "artifact-incomplete"),
    packaged("artifact_no_op_nodes", "misbehave", lambda m: edit.drop(m, ".wrapper.json"), "artifact-incomplete",
             setup="import torch\ntorch.ops.load_library('{library}')\n"),
    packaged("artifact_no_blob", "blob", lambda m: edit.drop(m, ".blob"), "artifact-incomplete",
             also=("weights-not-loaded",)),
    packaged("artifact_metadata_text", "linear", _set("_metadata.json", b"not json"), "artifact-bad-metadata"),
    packaged("artifact_metadata_empty", "linear", _set("_metadata.json", b""), "artifact-bad-metadata"),
    packaged("artifact_metadata_no_device", "linear", lambda m: edit.edit_metadata(m, AOTI_DEVICE_KEY=None),
             "artifact-bad-metadata"),
    packaged("artifact_metadata_npu", "linear", lambda m: edit.edit_metadata(m, AOTI_DEVICE_KEY="npu"),
             "artifact-bad-metadata"),
    packaged("artifact_metadata_number", "linear", lambda m: edit.edit_metadata(m, USER_VERSION=3),
             "artifact-bad-metadata"),
    made("artifact_two_so", "linear", _second_so, "artifact-ambiguous", ".so"),
    made("artifact_duplicate", "linear", _same_name, "artifact-ambiguous", ".so"),
    packaged("artifact_parent_path", "linear", lambda m: [
        *m, ("model/data/aotinductor/model/../../../../../aotidoctor_evil_marker.txt", b"evil")], "artifact-unsafe",
        "evil"),
    packaged("artifact_absolute_path", "linear", lambda m: [*m, ("/tmp/aotidoctor_evil_absolute.txt", b"evil")],
             "artifact-unsafe", "evil"),
    made("artifact_symlink_member", "linear", _symlink_member, "artifact-unsafe", "link.so"),
    made("artifact_bomb", "linear", _bomb, "artifact-bomb", "padding.bin"),
    made("artifact_declared_bomb", "linear", _declared_bomb, "artifact-bomb", "padding.bin",
         also=("artifact-corrupt",)),
    called("artifact_cpp_only", "cpponly", "artifact-cpp-only", exits=WARNS, slow=True),
    called("artifact_cpp_only_no_compiler", "cpponly", "toolchain-missing", also=("artifact-cpp-only",),
           env={"PATH": "/nonexistent", "CXX": ""}),
    packaged("artifact_cpp_only_elsewhere", "cpponly", _compiled_elsewhere, "toolchain-missing", "torch/include",
             also=("artifact-cpp-only",), slow=True),
    packaged("artifact_cpp_only_refused", "cpponly",
             # The rest stays for who reads it: compiled, it takes five seconds to the same end.
             lambda m: edit.replace(
                 m, ".wrapper.cpp", lambda text: b'#error "another release"\n#if 0\n' + text + b"\n#endif\n"),
             "artifact-cpp-only", slow=True),
    packaged("model_wrong_name", "linear", lambda m: edit.rename_model(m, "model", "encoder"), "model-name", "encoder"),
    made("model_two_none_named", "linear", _two_models, "model-name"),
    made("model_two_other_named", "linear", _two_models, "model-name", options=("--model-name", "model")),
    called("model_name_unknown", "linear", "model-name", "nope", options=("--model-name", "nope")),
)  # fmt: skip
