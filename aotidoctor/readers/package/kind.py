"""What a file is, from its first bytes. Never by unpickling, never by its name."""

from __future__ import annotations

import struct

from aotidoctor.model.artifact import ArtifactKind

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
# Flatbuffers name their schema in bytes 4 to 8.
_FLATBUFFERS = {
    b"ET12": "an ExecuTorch program (.pte)",
    b"FT01": "ExecuTorch data (.ptd)",
    b"PTMF": "a mobile module (.ptl)",
}
_ZERO_PAGE = b"\0" * 64


def sniff(head: bytes, size: int) -> tuple[ArtifactKind, str | None]:
    """Kind of a file that is not a zip archive, and a word about it where the kind alone does not say enough."""
    if size == 0:
        return ArtifactKind.EMPTY, None
    if object_format(head) is not None:
        return ArtifactKind.BARE_SO, None
    if head.startswith(_LFS):
        return ArtifactKind.LFS_POINTER, None
    if head.startswith(_ANNEX):
        return ArtifactKind.LFS_POINTER, "a git-annex pointer"
    if _is_legacy_torch_save(head):
        return ArtifactKind.TORCH_SAVE, None
    if _is_pickle(head):
        return ArtifactKind.PICKLE, None
    if _is_safetensors(head, size):
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
    if head[4:8] in _FLATBUFFERS:
        return ArtifactKind.OTHER, _FLATBUFFERS[head[4:8]]
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


def _is_legacy_torch_save(head: bytes) -> bool:
    return head[:1] == b"\x80" and head[2:].startswith(_LEGACY_TORCH_SAVE)


def _is_pickle(head: bytes) -> bool:
    # Protocols 2 to 5 begin with PROTO; 0 and 1 have no magic and look like text.
    return len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5


def _is_safetensors(head: bytes, size: int) -> bool:
    if len(head) < 10:
        return False
    length = int.from_bytes(head[:8], "little")
    return 2 <= length <= size - 8 and head[8:10] in {b'{"', b"{}", b"{ ", b"{\n"}


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
