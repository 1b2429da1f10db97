"""Members of a zip file, read in place. Names are only looked up, never used as paths."""

from __future__ import annotations

import struct
import zipfile
import zlib

from aotidoctor.model.record import record
from aotidoctor.readers.inputs.problems import corrupt

CRC_TOTAL = 64 << 20
MAX_INFLATED = 64 << 20
MAX_MEMBERS = 20_000
_LOCAL_HEADER = 30


@record(kw_only=False, frozen=False)
class Members:
    """The members of the zip file at ``path``, whose bytes are ``data``. ``crc_left`` bytes may still be checked.

    ``unchecked`` counts members whose CRC was not compared.
    """

    path: str
    data: memoryview
    infos: dict[str, zipfile.ZipInfo]
    has_crc: bool
    crc_left: int = CRC_TOTAL
    unchecked: int = 0

    def names(self) -> tuple[str, ...]:
        """All names, in the order of the directory."""
        return tuple(self.infos)

    def read(self, name: str) -> memoryview:
        """The bytes of a member: a view of the file when it is stored. Raises ``InputsError`` when it is damaged."""
        info = self.infos[name]
        start = self._start(info)
        raw = self.data[start : start + info.compress_size]
        if len(raw) < info.compress_size:
            raise corrupt(self.path, name, f"{len(raw)} bytes", f"{info.compress_size} as in the directory")
        view = raw if info.compress_type == zipfile.ZIP_STORED else self._inflate(info, raw)
        if len(view) != info.file_size:
            raise corrupt(self.path, name, f"{len(view)} bytes", f"{info.file_size} as in the directory")
        self._check_crc(info, view)
        return view

    def _start(self, info: zipfile.ZipInfo) -> int:
        header = bytes(self.data[info.header_offset : info.header_offset + _LOCAL_HEADER])
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise corrupt(
                self.path, info.filename, "no local header", "a local header at the position in the directory"
            )
        name_size, extra_size = struct.unpack("<HH", header[26:30])
        return int(info.header_offset + _LOCAL_HEADER + name_size + extra_size)

    def _inflate(self, info: zipfile.ZipInfo, raw: memoryview) -> memoryview:
        if info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & 1:
            raise corrupt(self.path, info.filename, "an unusual compression or encryption", "stored or deflated data")
        if info.file_size > MAX_INFLATED:
            raise corrupt(self.path, info.filename, f"{info.file_size} bytes deflated", f"at most {MAX_INFLATED}")
        try:
            return memoryview(zlib.decompressobj(-15).decompress(raw, info.file_size + 1))
        except zlib.error as error:
            raise corrupt(self.path, info.filename, f"deflated data that does not inflate ({error})") from error

    def _check_crc(self, info: zipfile.ZipInfo, view: memoryview) -> None:
        if not self.has_crc or len(view) > self.crc_left:
            self.unchecked += 1
            return
        self.crc_left -= len(view)
        crc = zlib.crc32(view)
        if crc != info.CRC:
            raise corrupt(self.path, info.filename, f"CRC {crc:08x}", f"{info.CRC:08x}: the data was changed")


def open_members(path: str, data: memoryview) -> Members:
    """The directory of the zip file. Raises ``InputsError`` when there is none, or it contradicts itself."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError, struct.error) as error:
        if b"PK\x05\x06" not in bytes(data[-66_000:]):
            raise corrupt(path, path, "a zip file without its central directory (truncated?)") from error
        raise corrupt(path, path, f"a damaged zip directory ({error})") from error
    if len(infos) > MAX_MEMBERS:
        raise corrupt(path, path, f"a zip file of {len(infos)} members", f"at most {MAX_MEMBERS}")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        if info.filename in found:
            raise corrupt(path, info.filename[:200], "two members with one name", "one")
        found[info.filename] = info
    # torch can be told to write no CRCs; then all of them are 0.
    return Members(path, data, found, has_crc=any(info.CRC for info in infos))
