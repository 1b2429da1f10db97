"""Pass on the output of a watched program, and keep its beginning and end in bounded memory.

What each stream leads to decides how it is looked at. A regular file is the program's own, handed on as it is and
read afterwards from where it stood. A terminal becomes a pseudo terminal of the same size, so that programs that ask
still find one. Pipes and sockets become a pipe; what comes out of it goes on at once, and a reader that has gone away
is gone for the program, too. Where both streams lead to the same place, they share one way, which keeps the order.
Devices such as ``/dev/null`` are handed on and not read; what is closed stays closed.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import termios
import threading
from collections import deque
from collections.abc import Collection
from contextlib import suppress

from aotidoctor.model.run import Stream, StreamKind

# First errors stand at the beginning of the trouble, last words at the end; between them lies what a server logs.
HEAD_BYTES = TAIL_BYTES = 4 * 1024 * 1024


class OutputBuffer:
    """A buffer that holds the first ``head`` and the last ``tail`` bytes of what is added."""

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self.size = 0
        self._room = head
        self._limit = tail
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._held = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self.size += len(data)
        if self._room:
            part = data[: self._room]
            self._head.append(part)
            self._room -= len(part)
            data = data[len(part) :]
        if data:
            self._tail.append(data)
            self._held += len(data)
            while self._held - len(self._tail[0]) >= self._limit:
                self._held -= len(self._tail.popleft())

    @property
    def head(self) -> bytes:
        """The first bytes."""
        return b"".join(self._head)

    @property
    def tail(self) -> bytes:
        """The last bytes, as far as they are not in the head."""
        return b"".join(self._tail)[-self._limit :] if self._tail else b""


_BLOCK = 1 << 16
_NAMES = {1: "stdout", 2: "stderr"}
COPIED = (StreamKind.TERMINAL, StreamKind.PIPE, StreamKind.SOCKET)


def stream_kind(fd: int) -> StreamKind:
    """The kind of file behind the descriptor."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return StreamKind.CLOSED
    if os.isatty(fd):
        return StreamKind.TERMINAL
    if stat.S_ISREG(mode):
        return StreamKind.FILE
    if stat.S_ISFIFO(mode):
        return StreamKind.PIPE
    # A server started by inetd talks with its client over the socket: that is not output to be read.
    if stat.S_ISSOCK(mode) and not _same(0, fd):
        return StreamKind.SOCKET
    return StreamKind.DEVICE


class PassedStream:
    """One way for one stream, or for both where they lead to the same place.

    ``theirs`` is the descriptor for the program, None where it gets ours. What is not ``visible`` is only stored.
    """

    def __init__(self, fds: tuple[int, ...], kind: StreamKind, *, visible: bool = True) -> None:
        self.fds = fds
        self.kind = kind
        self._visible = visible
        self.theirs: int | None = None
        self.kept = OutputBuffer()
        self.left_open = False
        # Nobody reads any more what it writes: what happens to the program then happens without us, too.
        self.reader_gone = False
        # Where the program's first byte will go.
        self._offset = 0
        if kind is StreamKind.FILE:
            appends = fcntl.fcntl(fds[0], fcntl.F_GETFL) & os.O_APPEND
            self._offset = os.fstat(fds[0]).st_size if appends else os.lseek(fds[0], 0, os.SEEK_CUR)
        self._source = -1
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        if kind is StreamKind.TERMINAL:
            self._source, self.theirs = os.openpty()
            self.resize()
            real = fds[0]
            with suppress(termios.error):
                settings = termios.tcgetattr(real)
                settings[1] &= ~termios.OPOST
                termios.tcsetattr(self.theirs, termios.TCSANOW, settings)
        elif kind in COPIED:
            self._source, self.theirs = os.pipe()
            # Room for a burst, where Python has the constant and the kernel grants it.
            with suppress(OSError, AttributeError):
                fcntl.fcntl(self.theirs, fcntl.F_SETPIPE_SZ, 1 << 20)

    def resize(self) -> None:
        """Give the pseudo terminal the size of the real one."""
        if self.kind is StreamKind.TERMINAL and self._source >= 0:
            with suppress(OSError):
                size = fcntl.ioctl(self.fds[0], termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(self._source, termios.TIOCSWINSZ, size)

    def start(self) -> None:
        """Begin to copy; the program has its end of the way by now."""
        if self.theirs is None:
            return
        os.close(self.theirs)
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(self._wake[0],), daemon=True, name="copy")
        self._thread.start()

    def finish(self) -> None:
        """Copy the rest after the end of the program. ``left_open`` tells whether somebody may still write."""
        if self._thread is None or self._wake is None:
            return
        os.write(self._wake[1], b".")
        self._thread.join()

    def pump(self) -> None:
        """Go on copying until nobody can write any more, keeping nothing."""
        while self._source >= 0 and self._pass_on(keep=False):
            pass

    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that ``pump`` needs."""
        return (self._source, self.fds[0]) if self.left_open else ()

    def stream(self) -> Stream:
        """The stored output, or that which can be read back now."""
        name = _NAMES[self.fds[0]] if len(self.fds) == 1 else "output"
        if self.kind is StreamKind.FILE:
            return _read_back(name, self.fds[0], self._offset)
        problem = None if self.kind in COPIED else f"{name} is {self.kind.value}: there is nothing to read"
        return Stream(
            name=name, kind=self.kind, head=self.kept.head, tail=self.kept.tail, size=self.kept.size, problem=problem
        )

    def _run(self, wake: int) -> None:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        poll.register(wake, select.POLLIN)
        ending = False
        while self._source >= 0:
            ready = {fd for fd, _ in poll.poll(0 if ending else None)}
            ending = ending or wake in ready
            if self._source in ready:
                self._pass_on(keep=True)
            elif ending:
                self.left_open = True
                return
            if ending:
                # One that is always readable would hide that nothing else is.
                with suppress(KeyError):
                    poll.unregister(wake)

    def _pass_on(self, *, keep: bool) -> bool:
        try:
            data = os.read(self._source, _BLOCK)
        except OSError:
            # A pseudo terminal whose last user has gone.
            data = b""
        if data and keep:
            self.kept.add(data)
        if data and (not self._visible or _write_all(self.fds[0], data)):
            return True
        self.reader_gone = bool(data)
        os.close(self._source)
        self._source = -1
        return False


def make_passed_streams(closed: Collection[int]) -> tuple[PassedStream, ...]:
    """The ways of stdout and stderr; ``closed`` are the standard streams that were, before we put something there."""
    kinds = {fd: StreamKind.CLOSED if fd in closed else stream_kind(fd) for fd in _NAMES}
    if kinds[1] is kinds[2] and kinds[1] is not StreamKind.CLOSED and _same(1, 2):
        return (PassedStream((1, 2), kinds[1]),)
    return tuple(PassedStream((fd,), kind) for fd, kind in kinds.items())


def make_captures() -> tuple[PassedStream, ...]:
    """Ways that only store the output."""
    return tuple(PassedStream((fd,), StreamKind.PIPE, visible=False) for fd in _NAMES)


def occupy_closed() -> tuple[int, ...]:
    """Open ``/dev/null`` on closed standard streams, lest a file of ours takes their number; those streams.

    It is closed again when the program is executed.
    """
    closed = tuple(fd for fd in (0, 1, 2) if stream_kind(fd) is StreamKind.CLOSED)
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    return closed


def _write_all(fd: int, data: bytes) -> bool:
    """Whether somebody still reads."""
    view = memoryview(data)
    try:
        while view:
            # Somebody else may have made it non-blocking.
            select.select([], [fd], [])
            with suppress(BlockingIOError):
                view = view[os.write(fd, view) :]
    except OSError:
        return False
    return True


def _same(one: int, other: int) -> bool:
    try:
        a, b = os.fstat(one), os.fstat(other)
    except OSError:
        return False
    return (a.st_dev, a.st_ino, a.st_rdev) == (b.st_dev, b.st_ino, b.st_rdev)


def _read_back(name: str, fd: int, offset: int) -> Stream:
    try:
        copy = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    except OSError as error:
        return Stream(name=name, kind=StreamKind.FILE, problem=f"{name} cannot be read back: {error.strerror}")
    try:
        end = os.fstat(copy).st_size
        problem = None if offset <= end else f"{name} was truncated while the program ran: read from its beginning"
        begin = offset if offset <= end else 0
        head = os.pread(copy, min(HEAD_BYTES, end - begin), begin)
        rest = max(begin + len(head), end - TAIL_BYTES)
        tail = os.pread(copy, max(0, end - rest), rest)
    finally:
        os.close(copy)
    return Stream(name=name, kind=StreamKind.FILE, head=head, tail=tail, size=end - begin, problem=problem)
