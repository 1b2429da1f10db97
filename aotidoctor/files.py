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
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# What Windows lacks has no effect there.
O_BINARY, O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH = (
    int(getattr(os, name, 0))
    for name in ("O_BINARY", "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH")
)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and O_DIRECTORY != 0

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


class Folder:
    """An open folder, and what is done with the names in it: no link is followed, whoever made the folder.

    By its descriptor where the system opens folders (not on Windows), so that nobody can put another in its place.
    """

    def __init__(self, path: str | Path, *, inside: Folder | None = None) -> None:
        """Open ``path``; below ``inside``, which may be another's, no link. Raises OSError."""
        self._path: str = os.fspath(path) if inside is None else inside._place(os.fspath(path))
        self._descriptor: int | None = None
        with _errors_of(path):
            if _BY_DESCRIPTOR:
                # To go through a folder one need not be allowed to list it.
                flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (O_NOFOLLOW if inside is not None else 0)
                self._descriptor = os.open(path, flags, dir_fd=None if inside is None else inside._descriptor)
            elif not stat.S_ISDIR(Path(self._path).stat(follow_symlinks=inside is None).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def close(self) -> None:
        """Close it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """The descriptor of a file in it. Raises OSError."""
        if not O_NOFOLLOW and os.path.islink(self._place(name)):  # noqa: PTH114
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return os.open(self._place(name), flags | O_CLOEXEC | O_NOFOLLOW | O_BINARY, mode, dir_fd=self._descriptor)

    def stat(self, name: str) -> os.stat_result:
        """What is called so, a link itself. Raises OSError."""
        return os.stat(self._place(name), dir_fd=self._descriptor, follow_symlinks=False)

    def make(self, name: str) -> None:
        """Make a folder in it. Raises OSError."""
        os.mkdir(self._place(name), dir_fd=self._descriptor)

    def replace(self, old: str, new: str) -> None:
        """Give ``old`` the name ``new``. Raises OSError."""
        os.replace(self._place(old), self._place(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file. Raises OSError."""
        os.unlink(self._place(name), dir_fd=self._descriptor)

    def names(self) -> list[str]:
        """The names of what is in it. Raises OSError."""
        if self._descriptor is None:
            return [entry.name for entry in Path(self._path).iterdir()]
        listed = os.open(".", os.O_RDONLY | O_DIRECTORY | O_CLOEXEC, dir_fd=self._descriptor)
        try:
            return os.listdir(listed)  # noqa: PTH208 - by its descriptor
        finally:
            os.close(listed)

    def _place(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self._path, name)  # noqa: PTH118


def is_mine(found: os.stat_result) -> bool:
    """Whether this user owns a file. On Windows files have no such number: what the user reaches is taken as his."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def append_to_file(path: str | Path, text: str) -> None:
    """Add ``text`` to the end of a file, which is made if there is none, or to a device or pipe. Raises OSError."""
    descriptor = _open_stream(path)
    if descriptor is None:
        head, name = os.path.split(os.fspath(path))
        with _errors_of(path), closing(Folder(head or ".")) as place:
            _file_in(place, name)
            descriptor = place.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | O_NONBLOCK | O_NOCTTY)
    with os.fdopen(descriptor, "ab") as stream:
        stream.write(text.encode("utf-8", "replace"))


@contextmanager
def whole_file(path: str | Path, *, mode: int | None = None, folder: Folder | None = None) -> Iterator[BinaryIO]:
    """Yield a stream whose content is the file at ``path`` from the end of the block on; unchanged if the block raises.

    Relative to ``folder``, where one is given. Raises OSError, for all but files, too.
    """
    head, name = os.path.split(os.fspath(path))
    draft = f".aotidoctor.{os.getpid()}.{os.urandom(4).hex()}"
    place = folder
    if place is None or head:
        with _errors_of(path):
            place = Folder(head or ".", inside=folder)
    try:
        with _errors_of(path):
            old = _file_in(place, name)
            # A file that others may not read is not readable to them for a moment, either.
            descriptor = place.open(
                draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if old is not None else mode or 0o666
            )
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                if old is not None and _BY_DESCRIPTOR:
                    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                        with suppress(OSError):
                            os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777 if mode is None else mode)
                yield stream
            with _errors_of(path):
                # What has come there in the meantime is looked at once more.
                _file_in(place, name)
                place.replace(draft, name)
        except BaseException:
            with suppress(OSError):
                place.remove(draft)
            raise
    finally:
        if place is not folder:
            place.close()


def is_draft(name: str) -> bool:
    """Whether a file of this name is a draft of ``whole_file``."""
    return _DRAFT.fullmatch(name) is not None


def remove_drafts(folder: Folder) -> None:
    """Remove what killed processes have left in ``whole_file``; only for a folder without other writers.

    Raises OSError.
    """
    for name in filter(is_draft, folder.names()):
        folder.remove(name)


def open_regular(path: str | Path, *, folder: Folder | None = None) -> BinaryIO:
    """A regular file, to read; inside ``folder``, which may be another's, no link.

    A named pipe does not make it wait. Raises OSError, for everything that is no regular file, too.
    """
    flags = os.O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_BINARY
    with _errors_of(path):
        descriptor = os.open(path, flags) if folder is None else folder.open(os.fspath(path), flags)
        try:
            _demand_file(os.fstat(descriptor).st_mode)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


def read_range(descriptor: int, size: int, at: int) -> bytes:
    """Up to ``size`` bytes from ``at`` on. Where the system cannot do both at once, the position moves."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, at)
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.read(descriptor, size)


def lock_file(descriptor: int) -> None:
    """Hold a file alone until it is closed. Raises OSError where another process does.

    WebAssembly knows no locks, and no second process.
    """
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    elif sys.platform != "emscripten":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _errors_of(path: str | Path) -> Iterator[None]:
    """Errors name ``path``, not a draft, and a NUL character in it is one of them."""
    try:
        yield
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _file_in(folder: Folder, name: str) -> os.stat_result | None:
    """The file that would be replaced or made longer; None where there is none. Raises OSError for what is no file."""
    try:
        found = folder.stat(name)
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
                    descriptor = os.open(path, os.O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC)
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
