"""Recognise files by their first bytes, and packages and their models by the names of their members.

Never by unpickling, never by the name of the file. Layouts of archives and directories:

2.8+      <prefix>/data/aotinductor/<model>/<hash>.wrapper.so ..., <prefix>/archive_format, archive_version
2.7       data/aotinductor/<model>/<hash>.wrapper.so ...,  version, archive_format
2.5/2.6   data/aotinductor/<model>/<hash>.so ...,  version, archive_format
export    <prefix>/models/<name>.json;  before 2.7: serialized_exported_program.json
TorchScript  <prefix>/constants.pkl and <prefix>/code/;   torch.save  <prefix>/data.pkl
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aotidoctor.model.artifact import ArtifactKind, Member
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, bytes_blob, decode, path_blob
from aotidoctor.readers.package.zip_archive import STORED, ZipEntry, read_entry

# Kinds of files.
HEAD_SIZE = 4096
FIRST_LINE_LIMIT = 200

_LFS = b"version https://git-lfs.github.com/spec/"
_ANNEX = (b"/annex/objects/", b"../.git/annex/objects/", b".git/annex/objects/")
# torch.save before 1.6 (and with _use_new_zipfile_serialization=False) begins with this pickled number.
_LEGACY_TORCH_SAVE = bytes.fromhex("8a0a6cfc9c46f9206aa850192e")
_MACHO = (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
_MACHO_FAT = b"\xca\xfe\xba\xbe"
_OTHER_MAGIC = (
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"!<arch>\n", "a static library (ar archive)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"GGUF", "a GGUF model"),
    (b"%PDF", "a PDF document"),
)
# Flatbuffers name their schema in bytes 4 to 8; ExecuTorch's have a second mark where segments follow.
_EXECUTORCH = {
    b"ET12": ArtifactKind.EXECUTORCH_PROGRAM,
    b"eh00": ArtifactKind.EXECUTORCH_PROGRAM,
    b"FT01": ArtifactKind.EXECUTORCH_DATA,
    b"FH01": ArtifactKind.EXECUTORCH_DATA,
}
_ZERO_PAGE = b"\0" * 64


def sniff(head: bytes, size: int) -> tuple[ArtifactKind, str | None]:
    """Kind of a file that is not a zip archive, and a description where the kind alone is not enough."""
    if size == 0:
        return ArtifactKind.EMPTY, None
    if object_format(head) is not None:
        return ArtifactKind.BARE_SO, None
    if head.startswith(_LFS):
        return ArtifactKind.LFS_POINTER, None
    if head.startswith(_ANNEX):
        return ArtifactKind.LFS_POINTER, "a git-annex pointer"
    if head[:1] == b"\x80" and head[2:].startswith(_LEGACY_TORCH_SAVE):
        return ArtifactKind.TORCH_SAVE, None
    if len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return ArtifactKind.PICKLE, None
    # The length of a JSON header, then the header.
    if head[8:10] in {b'{"', b"{}", b"{ ", b"{\n"} and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return ArtifactKind.SAFETENSORS, None
    if _is_onnx(head):
        return ArtifactKind.ONNX, None
    return _sniff_rest(head)


def object_format(head: bytes) -> str | None:
    """``elf``, ``pe`` or ``macho``; None for anything else."""
    if head.startswith(b"\x7fELF"):
        return "elf"
    if head.startswith(_MACHO):
        return "macho"
    # A Java class begins with the same four bytes; a fat binary has few architectures, a class a version above 40.
    if head.startswith(_MACHO_FAT) and len(head) >= 8 and head[4:7] == b"\0\0\0" and 0 < head[7] < 20:
        return "macho"
    if head.startswith(b"MZ") and len(head) >= 64:
        offset = int(struct.unpack_from("<I", head, 60)[0])
        if offset + 4 > len(head) or head[offset : offset + 4] == b"PE\0\0":
            return "pe"
    return None


def first_line(head: bytes) -> str | None:
    """First line of a text, without control characters, cut to 200 characters. None when ``head`` is not text."""
    text = _decode_text(head)
    if text is None:
        return None
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return "".join(letter for letter in first[:FIRST_LINE_LIMIT] if letter.isprintable() or letter == "\t")


def _sniff_rest(head: bytes) -> tuple[ArtifactKind, str | None]:
    for magic, words in _OTHER_MAGIC:
        if head.startswith(magic):
            return ArtifactKind.OTHER, words
    if (kind := _EXECUTORCH.get(head[4:8]) or _EXECUTORCH.get(head[8:12])) is not None:
        return kind, None
    if head[4:8] == b"PTMF":
        return ArtifactKind.OTHER, "a mobile module (.ptl)"
    if head[257:262] == b"ustar":
        return ArtifactKind.OTHER, "a tar archive"
    if _decode_text(head) is not None:
        return ArtifactKind.TEXT, None
    if head.startswith(_ZERO_PAGE):
        return ArtifactKind.OTHER, "begins with zeros: a download or copy that was only allocated, not written"
    return ArtifactKind.OTHER, None


def _decode_text(head: bytes) -> str | None:
    if not head or b"\0" in head:
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end inside a character.
        if error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8")
    text = text.removeprefix("\ufeff")
    return text if text and all(char.isprintable() or char.isspace() for char in text) else None


def _is_onnx(head: bytes) -> bool:
    """ModelProto: field 1 (ir_version, varint), then producer_name, producer_version, domain, graph... in order."""
    if len(head) < 8 or head[0] != 0x08 or not 1 <= head[1] <= 30:
        return False
    match head[2]:
        case 0x12 | 0x1A | 0x22:
            text = head[4 : 4 + head[3]]
            return len(text) > 0 and text.isascii() and text.decode("ascii").isprintable()
        case 0x3A | 0x42:
            return True
    return False


# Members with the means to read them, the same for archives and directories.
# A deflated member has to be unpacked into memory before anything in it can be looked up.
INFLATE_LIMIT = 256 << 20


@record(kw_only=False)
class PackageMember:
    """``open`` gives the payload: in place when stored, unpacked when deflated, None when neither is possible."""

    member: Member
    open: Callable[[], Blob | None]

    @property
    def name(self) -> str:
        """Full name of the member."""
        return self.member.name

    def read(self, limit: int) -> bytes | None:
        """The payload, None when it is larger than ``limit`` bytes or cannot be read."""
        if self.member.size > limit:
            return None
        blob = self.open()
        return None if blob is None else blob.read_all(limit)


def archive_item(member: Member, entry: ZipEntry, archive: Blob) -> PackageMember:
    """An item of a zip archive."""

    def open_member() -> Blob | None:
        if entry.encrypted or entry.data_offset is None:
            return None
        if entry.method == STORED:
            return archive.part(entry.data_offset, max(min(entry.compressed, archive.size - entry.data_offset), 0))
        data = read_entry(archive, entry, INFLATE_LIMIT)
        return None if data is None else bytes_blob(data)

    return PackageMember(member, open_member)


def file_item(member: Member) -> PackageMember:
    """An item that is a file; it is opened for each read, so nothing has to be closed later."""
    return PackageMember(member, lambda: path_blob(member.path, member.size) if Path(member.path).is_file() else None)


# Kinds of archives and directories, and the models in them.
_MODEL_FILE = re.compile(r"^(?P<root>(?:[^/]*/)*?)data/aotinductor/(?P<model>[^/]+)/(?P<file>[^/].*)$", re.DOTALL)
_PROGRAM = re.compile(r"^(?:[^/]+/)?models/(?P<name>[^/]+)\.json$")
_OLD_PROGRAM = re.compile(r"^(?:[^/]+/)?serialized_exported_program\.json$")
# Folders and prefixes of torch.export.pt2_archive.constants that are neither a compiled model nor a program.
_OTHER_CONTENTS = {
    "data/executorch/": "ExecuTorch programs",
    "data/mtia": "code for MTIA",
    "data/constants/opaque_obj_": "opaque objects",
    "data/constants/custom_obj_": "custom objects",
    "xl_model_weights/": "weights in separate files",
    "extra/module_info.json": "module information",
}
_TEXT_LIMIT = 256


def models_of(items: Iterable[PackageMember]) -> dict[tuple[str, str], list[PackageMember]]:
    """Items of each model, by ``(root, model name)``, in archive order; roots have no trailing slash."""
    found: dict[tuple[str, str], list[PackageMember]] = {}
    for item in items:
        match = _MODEL_FILE.match(item.name)
        if match is not None and not item.name.endswith("/"):
            found.setdefault((match["root"].rstrip("/"), match["model"]), []).append(item)
    return found


def programs_of(items: Iterable[PackageMember]) -> list[tuple[str, PackageMember]]:
    """``(name, item)`` of each exported program."""
    found = []
    for item in items:
        match = _PROGRAM.match(item.name)
        if match is not None:
            found.append((match["name"], item))
        elif _OLD_PROGRAM.match(item.name):
            found.append(("model", item))
    return found


def other_contents(names: Iterable[str]) -> tuple[str, ...]:
    """Contents of an archive besides compiled models and exported programs, in words, with the number of members."""
    found: dict[str, int] = {}
    for name in names:
        for mark, words in _OTHER_CONTENTS.items():
            if mark in name and not name.endswith("/"):
                found[words] = found.get(words, 0) + 1
    return tuple(f"{words} ({count})" for words, count in found.items())


def zip_kind(names: Sequence[str]) -> ArtifactKind:
    """Kind of a zip archive."""
    # Our own: it holds sources of a package under their own names.
    if "bundle.json" in names and "report.json" in names:
        return ArtifactKind.BUNDLE
    if any(_MODEL_FILE.match(name) for name in names):
        return ArtifactKind.AOTI_PACKAGE
    if any(_PROGRAM.match(name) or _OLD_PROGRAM.match(name) for name in names):
        return ArtifactKind.EXPORTED_PROGRAM
    below = {name.partition("/")[2] for name in names} | set(names)
    if "constants.pkl" in below and any(name.startswith("code/") for name in below):
        return ArtifactKind.TORCHSCRIPT
    if "data.pkl" in below:
        return ArtifactKind.TORCH_SAVE
    return ArtifactKind.ZIP


def common_prefix(names: Sequence[str]) -> str | None:
    """The top folder that all members share, None when there is none or when it is ``data`` itself."""
    tops = {name.partition("/")[0] for name in names if "/" in name}
    if len(tops) != 1 or any("/" not in name for name in names):
        return None
    top = tops.pop()
    return None if top == "data" else top or None


def marker(items: Iterable[PackageMember], prefix: str | None, name: str) -> str | None:
    """Text of a small marker member such as ``archive_version``, under the prefix or at the top; None when absent."""
    wanted = {name} if prefix is None else {name, f"{prefix}/{name}"}
    for item in items:
        if item.name in wanted:
            data = item.read(_TEXT_LIMIT)
            return None if data is None else decode(data).strip()
    return None


def model_layout(root: str, names: Iterable[str], files: Iterable[str]) -> str:
    """``legacy`` for the layout of 2.5 to 2.7, else ``pt2``. ``names`` are all members, ``files`` the model's."""
    known = frozenset(names)
    if root or "archive_version" in known:
        return "pt2"
    if "version" in known:
        return "legacy"
    return "pt2" if any(".wrapper" in file for file in files) else "legacy"
