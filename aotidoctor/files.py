"""Write every file that a command is asked for, and open files for reading without waiting for one that is none.

A regular file is replaced whole or not at all: the new content goes to a draft beside it, which takes its place, with
its mode and owner. A character device or a pipe is written in place; so is the descriptor that ``/dev/stdout`` or
``/dev/fd/N`` names, since a file of the shell's own lies behind it. A symbolic link may lead anywhere, and what else
has a name is no place for a document: both are refused.

A folder that may come from somebody else is opened once, and everything in it by its descriptor, without following
links. `--help` loads this module, so it imports next to nothing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_DRAFT = re.compile(r"\.aotidoctor\.\d+\.[0-9a-f]{8}")
_DESCRIPTORS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|(?P<process>\d+)))/fd/(?P<number>\d{1,9})")
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, and links are not followed: give the path of the file itself",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a pipe",
}


def write_file(path: str | Path, data: str | bytes, *, mode: int | None = None) -> None:
    """Write ``data`` to ``path``: a file as a whole, a device or pipe in place; missing folders are made.

    A file has the permissions ``mode``; those that it had, or usual ones, where None is given. Raises OSError.
    """
    encoded = data.encode("utf-8", "replace") if isinstance(data, str) else data
    descriptor = _open_stream(path)
    if descriptor is not None:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encoded)
        return
    # A file in the place of a folder has its own error below.
    with suppress(FileExistsError):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, mode=mode) as stream:
        stream.write(encoded)


@contextmanager
def whole_file(path: str | Path, *, mode: int | None = None, folder: int | None = None) -> Iterator[BinaryIO]:
    """Yield a stream whose content is the file at ``path`` from the end of the block on; unchanged if the block raises.

    ``folder`` is the descriptor of the folder that ``path`` is relative to. Raises OSError, for all but files, too.
    """
    head, name = os.path.split(os.fspath(path))
    draft = f".aotidoctor.{os.getpid()}.{os.urandom(4).hex()}"
    with _errors_of(path):
        place = os.open(head or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with _errors_of(path):
            old = _file_in(place, name)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            # A file that others may not read is not readable to them for a moment, either.
            descriptor = os.open(draft, flags, 0o600 if old is not None else mode or 0o666, dir_fd=place)
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                if old is not None:
                    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                        with suppress(OSError):
                            os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777 if mode is None else mode)
                yield stream
            with _errors_of(path):
                # What has come there in the meantime is looked at once more.
                _file_in(place, name)
                os.replace(draft, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=place)
            raise
    finally:
        os.close(place)


def is_draft(name: str) -> bool:
    """Whether a file of this name is a draft of ``whole_file``."""
    return _DRAFT.fullmatch(name) is not None


def remove_drafts(folder: int) -> None:
    """Remove what killed processes have left in ``whole_file``; only for a folder without other writers.

    Raises OSError.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_draft(entry.name):
                os.unlink(entry.name, dir_fd=folder)


def open_folder(path: str | Path, *, folder: int | None = None) -> int:
    """The descriptor of a folder; of one inside ``folder``, which may be another's, no link. Raises OSError."""
    with _errors_of(path):
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (os.O_NOFOLLOW if folder is not None else 0)
        return os.open(path, flags, dir_fd=folder)


def open_regular(path: str | Path, *, folder: int | None = None) -> BinaryIO:
    """A regular file, to read; inside ``folder``, which may be another's, no link.

    A named pipe does not make it wait. Raises OSError, for everything that is no regular file, too.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (os.O_NOFOLLOW if folder is not None else 0)
    with _errors_of(path):
        descriptor = os.open(path, flags, dir_fd=folder)
        try:
            _demand_file(os.fstat(descriptor).st_mode)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


@contextmanager
def _errors_of(path: str | Path) -> Iterator[None]:
    """Errors name ``path``, not a draft, and a NUL character in it is one of them."""
    try:
        yield
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _file_in(folder: int, name: str) -> os.stat_result | None:
    """The file that would be replaced; None where there is none. Raises OSError for what is no file."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _demand_file(found.st_mode)
    return found


def _demand_file(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'no regular file')}")


def _open_stream(path: str | Path) -> int | None:
    """A descriptor of the device, pipe or open file that ``path`` names; None for another file. Raises OSError."""
    with _errors_of(path):
        if (number := _descriptor_of(path)) is not None:
            return os.dup(number)
        with suppress(FileNotFoundError, NotADirectoryError):
            if _is_stream(os.lstat(path).st_mode):
                try:
                    # Without waiting: a named pipe that nobody reads would hold the process for ever.
                    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
                except OSError as error:
                    if error.errno == errno.ENXIO:
                        raise OSError(errno.ENXIO, "nobody reads this pipe") from error
                    raise
                if _is_stream(os.fstat(descriptor).st_mode):
                    os.set_blocking(descriptor, True)
                    return descriptor
                os.close(descriptor)
    return None


def _is_stream(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _descriptor_of(path: str | Path) -> int | None:
    """The number of the descriptor of this process that ``path`` names."""
    name = os.path.abspath(path)  # noqa: PTH100 - resolve() would follow the link
    if (found := _DESCRIPTOR.fullmatch(name)) and found["process"] in (None, str(os.getpid())):
        return int(found["number"])
    return _DESCRIPTORS.get(name)
