"""A copy of a package in the layout that the loader takes: one top folder, no entries for directories, its marks."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path

from aotidoctor.worker.treatments.errors import TreatmentError

TOP = "model"
_MARKS = {"archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little"}
_ROOTS = ("data/", ".data/", "extra/", "models/")


def repacked(package: Path, target: Path) -> str:
    """Write the copy; its path.

    Raises:
        TreatmentError: it cannot be read, has no compiled model, or there is no room for a copy.
    """
    try:
        with zipfile.ZipFile(package) as archive:
            members = {_tail(item.filename): item for item in reversed(archive.infolist()) if not item.is_dir()}
            if not any(name.startswith("data/aotinductor/") for name in members):
                raise TreatmentError("the archive has no compiled model in any folder")
            size = sum(item.file_size for item in members.values())
            if size > shutil.disk_usage(target.parent).free // 2:
                raise TreatmentError(f"a copy takes {size >> 20} MiB, too much for {target.parent}")
            with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
                for name, data in _MARKS.items():
                    copy.writestr(f"{TOP}/{name}", data)
                for name, item in members.items():
                    if name not in _MARKS:
                        with archive.open(item) as source, copy.open(f"{TOP}/{name}", "w", force_zip64=True) as sink:
                            shutil.copyfileobj(source, sink, 1 << 20)
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise TreatmentError(f"the package cannot be copied: {error}") from error
    return str(target)


def _tail(name: str) -> str:
    """The part of a member's name that means the same in every package."""
    places = [at for root in _ROOTS if (at := f"/{name}".find(f"/{root}")) >= 0]
    return name[min(places) :] if places else name.rpartition("/")[2]
