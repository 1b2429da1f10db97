"""A member together with the means to read it, the same for an archive and for a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aotidoctor.model.artifact import Member
from aotidoctor.model.record import record
from aotidoctor.readers.package.blob import Blob, bytes_blob, path_blob
from aotidoctor.readers.package.integrity import read_entry
from aotidoctor.readers.package.zip_directory import STORED, Entry

# A deflated member has to be unpacked into memory before anything in it can be looked up.
INFLATE_LIMIT = 256 << 20


@record(kw_only=False)
class Item:
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


def archive_item(member: Member, entry: Entry, archive: Blob) -> Item:
    """An item of a zip archive."""

    def open_member() -> Blob | None:
        if entry.encrypted or entry.data_offset is None:
            return None
        if entry.method == STORED:
            return archive.part(entry.data_offset, max(min(entry.compressed, archive.size - entry.data_offset), 0))
        data = read_entry(archive, entry, INFLATE_LIMIT)
        return None if data is None else bytes_blob(data)

    return Item(member, open_member)


def file_item(member: Member) -> Item:
    """An item that is a file; it is opened for each read, so nothing has to be closed later."""
    return Item(member, lambda: path_blob(member.path, member.size) if Path(member.path).is_file() else None)
