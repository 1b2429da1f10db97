"""Take from this Python on Linux what Windows does not have: modules, calls, signals and the files of the kernel."""

from __future__ import annotations

import builtins
import contextlib
import importlib.abc
import io
import os
import platform
import signal
import sys
from types import SimpleNamespace
from typing import NamedTuple

MODULES = frozenset(("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"))
CALLS = (
    "chown", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups", "getloadavg", "getpgid", "getuid",
    "killpg", "mkfifo", "mknod", "nice", "openpty", "posix_spawn", "pread", "preadv", "pwrite", "register_at_fork",
    "sched_getaffinity", "sched_setaffinity", "setpgid", "setsid", "statvfs", "sysconf", "uname", "wait4", "waitid",
    "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC", "WNOHANG", "confstr",
)  # fmt: skip
SIGNALS = ("SIGHUP", "SIGKILL", "SIGALRM", "SIGPROF", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGBUS", "SIGSTOP", "SIGRTMAX", "SIGRTMIN", "SIGCONT", "SIGTSTP", "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGTRAP", "SIGSYS")  # fmt: skip
SIGNAL_CALLS = ("setitimer", "getitimer", "alarm", "pthread_sigmask", "pthread_kill", "sigwait", "siginterrupt")
KERNEL = ("/proc", "/sys", "/etc", "/dev/null", "/run")


class _Names(NamedTuple):
    system: str
    node: str
    release: str
    version: str
    machine: str
    processor: str


class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away() -> None:
    """From now on they are not there; what the standard library took for itself stays its own."""
    # They choose by the system when they are imported.
    import asyncio  # noqa: F401
    import ctypes  # noqa: F401
    import multiprocessing  # noqa: F401
    import shutil
    import subprocess  # noqa: F401
    import tempfile  # noqa: F401

    import jinja2  # noqa: F401
    import rich.console
    import rich.progress  # noqa: F401
    import typer.main
    import typer.testing  # noqa: F401

    with contextlib.suppress(ImportError):
        import mcp.server.fastmcp  # noqa: F401
    with contextlib.suppress(ImportError):
        import pandas as pd  # noqa: F401
    usage = shutil.disk_usage("/")
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Absent())
    for name in CALLS:
        if hasattr(os, name):
            delattr(os, name)
    for name in (*SIGNALS, *SIGNAL_CALLS):
        if hasattr(signal, name):
            delattr(signal, name)
    for known in (os.supports_dir_fd, os.supports_follow_symlinks, os.supports_fd):
        known.clear()
    shutil._USE_CP_SENDFILE = False
    shutil._use_fd_functions = False
    shutil.disk_usage = lambda _path: usage
    for module, name in (
        (builtins, "open"),
        (io, "open"),
        (os, "open"),
        (os, "stat"),
        (os, "lstat"),
        (os, "listdir"),
        (os, "scandir"),
    ):
        setattr(module, name, _without_kernel(getattr(module, name)))
    # What Windows has and Linux does not.
    sys.modules["msvcrt"] = SimpleNamespace(LK_NBLCK=2, locking=lambda descriptor, mode, size: None)
    sys.platform = "win32"
    names = _Names("Windows", "desk", "11", "10.0.26100", "AMD64", "Intel64 Family 6")
    platform.uname = lambda: names
    platform.system, platform.machine, platform.processor = (lambda: "Windows"), (lambda: "AMD64"), (lambda: names[5])
    platform.release, platform.version = (lambda: "11"), (lambda: "10.0.26100")


def _without_kernel(call):
    def refused(path, *args, **kwargs):
        for name in ("dir_fd", "src_dir_fd", "dst_dir_fd"):
            if kwargs.get(name) is not None:
                raise NotImplementedError(f"{name} unavailable on this platform")
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(KERNEL):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        return call(path, *args, **kwargs)

    return refused
