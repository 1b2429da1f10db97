"""Confine this process by means of the kernel, for good and with all that it starts.

``confine_files`` (Landlock): nothing is written, made or removed outside of a few folders; where the kernel knows how,
no TCP connection, no signal to and no tracing of a process outside. ``close_network`` (seccomp): no socket but local
ones. ``confine_calls`` (seccomp, an allow-list of system calls): no file is opened to be written, no program executed,
no process started but threads, no socket, no signal but to this process; for code that only computes. Files that this
user may read stay readable.

Each returns False where the kernel, the processor or a container does not allow it; the process is as it was then.

``confine_replay`` applies them before the text of a package is executed, ``confine_run`` as far as PyTorch can live
with it before a package is loaded; the part ``confined`` of the result says what was applied. Where nothing is there, a
warning of the run says so, and the size of what a replay writes is limited. Code of the user's own may need anything,
and is not confined.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from aotidoctor.model.case import user_function
from aotidoctor.model.jobs import Run, UserCode
from aotidoctor.model.run import DEFAULT_TMP, PRIVATE_PREFIX
from aotidoctor.worker.channel import MAX_RESULT_BYTES, Channel

_PR_SET_NO_NEW_PRIVS = 38
# Landlock. Everything but executing, reading files and reading directories (bits 0, 2 and 3), by version of Landlock.
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 14))
_NO_TCP = 0b11
_NO_SOCKETS_NO_SIGNALS = 0b11
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1


def confine_files(folders: Iterable[Path]) -> bool:
    """Let this thread, and those that it will start, write below these folders and to ``/dev/null`` alone."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    # The second version can rename within a folder's tree, the first refuses that everywhere.
    if version < 2:
        return False
    rights = _WRITES | (_TRUNCATE if version >= 3 else 0)
    values = [rights, *((_NO_TCP,) if version >= 4 else ()), *((_NO_SOCKETS_NO_SIGNALS,) if version >= 6 else ())]
    attributes = struct.pack(f"={len(values)}Q", *values)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        for folder in folders:
            with suppress(OSError):
                _allow_writes(libc, ruleset, folder, rights)
        _allow_writes(libc, ruleset, Path(os.devnull), rights & (_WRITE_FILE | _TRUNCATE))
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            return False
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    except OSError:
        return False
    finally:
        os.close(ruleset)


def _allow_writes(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, place), 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_add_rule")
    finally:
        os.close(place)


# System calls: those of code that only computes, and others, which depend on their arguments.
_SYSTEM_CALLS = Path(__file__).with_name("system_calls.txt")
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_SECCOMP = (317, 277)
_SET_FILTER, _ALL_THREADS = 1, 1
# Classic BPF: instructions, and what a filter answers.
_LOAD, _AND, _EQUALS, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
# Calls of a second, 32-bit wide interface have numbers from here on.
_X32 = 0x40000000
_OPENED_TO_WRITE = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_CLONE_THREAD = 0x10000
_AF_UNIX = 1
# Names of threads and of memory; the size and settings of a terminal, as isatty asks.
_PRCTL = (15, 16, 0x53564D41)
_IOCTL = (0x5401, 0x5413)
# Copies of a descriptor, and its flags: not who gets its signals.
_FCNTL = (0, 1, 2, 3, 4, 5, 1030)
Instruction = tuple[int, int, int, int]


def confine_calls() -> bool:
    """Let all threads of this process make only the system calls of code that computes."""
    numbers, others = _numbers("computing"), _numbers("others")
    program = [one for number in numbers.values() for one in _answer(number, _ALLOW)]
    for name, argument, mask, values in (
        ("openat", 2, _OPENED_TO_WRITE, (0,)),
        ("open", 1, _OPENED_TO_WRITE, (0,)),
        ("clone", 0, _CLONE_THREAD, (_CLONE_THREAD,)),
        ("kill", 0, None, (os.getpid(),)),
        ("tgkill", 0, None, (os.getpid(),)),
        ("prctl", 0, None, _PRCTL),
        ("ioctl", 1, None, _IOCTL),
        ("fcntl", 1, None, _FCNTL),
    ):
        if name in others:
            program += _by_argument(others[name], argument, mask, values)
    if "prlimit64" in others:
        # Limits are read, not set: no new ones are given, in both halves of the pointer.
        program += _by_argument(others["prlimit64"], 2, None, (0,), then=_check(2, None, (0,), high=True))
    # What would need a look at memory: the C library goes back to the plain calls.
    program += [
        one for name in ("clone3", "openat2") if name in others for one in _answer(others[name], _ERROR | _ENOSYS)
    ]
    return _install(program, otherwise=_ERROR | _EPERM)


def close_network() -> bool:
    """Let all threads of this process make no sockets but local ones."""
    others = _numbers("others")
    if not others:
        return False
    number = others["socket"]
    check = _check(0, None, (_AF_UNIX,))
    program = [(_EQUALS, 0, len(check) + 1, number), *check, (_RETURN, 0, 0, _ERROR | _EPERM)]
    return _install([*program, *_answer(others["io_uring_setup"], _ERROR | _ENOSYS)], otherwise=_ALLOW)


def _numbers(group: str) -> Mapping[str, int]:
    """A group of system calls of this processor; empty where none are known."""
    if platform.machine() not in _ARCHITECTURES:
        return {}
    text = _SYSTEM_CALLS.read_text(encoding="ascii").partition(f"\n{group}:\n")[2].partition("\n\n")[0]
    words, column = text.split(), _ARCHITECTURES[platform.machine()][1]
    return {name: int(number) for name, number in zip(words[::3], words[column + 1 :: 3], strict=True) if number != "-"}


def _answer(number: int, answer: int) -> list[Instruction]:
    return [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, answer)]


def _check(argument: int, mask: int | None, values: tuple[int, ...], *, high: bool = False) -> list[Instruction]:
    """Allow the call whose argument, masked, is one of the values."""
    made: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4 * high)]
    if mask is not None:
        made.append((_AND, 0, 0, mask))
    return made + [one for value in values for one in _answer(value, _ALLOW)]


def _by_argument(
    number: int, argument: int, mask: int | None, values: tuple[int, ...], then: list[Instruction] | None = None
) -> list[Instruction]:
    """Allow a call by an argument of it, and refuse it else; with ``then`` it is allowed only if that allows it."""
    check = _check(argument, mask, values)
    if then is not None:
        # A fitting value goes on with the second check instead of being allowed.
        check = [*check[:-2], (_EQUALS, 0, len(then), values[0]), *then]
    check.append((_RETURN, 0, 0, _ERROR | _EPERM))
    return [(_EQUALS, 0, len(check), number), *check]


def _install(program: list[Instruction], otherwise: int) -> bool:
    """Install the filter in all threads; ``otherwise`` is the answer for what it does not name."""
    if sys.platform != "linux" or sys.byteorder != "little" or platform.machine() not in _ARCHITECTURES:
        return False
    architecture, column = _ARCHITECTURES[platform.machine()]
    whole: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUALS, 1, 0, architecture),
        (_RETURN, 0, 0, _ERROR | _EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | _ENOSYS),
        *program,
        (_RETURN, 0, 0, otherwise),
    ]
    packed = b"".join(struct.pack("=HBBI", *one) for one in whole)
    kept = ctypes.create_string_buffer(packed, len(packed))
    header = struct.pack("@HP", len(whole), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.syscall(_SECCOMP[column], _SET_FILTER, _ALL_THREADS, header) == 0)


# When to confine.
def confine_replay(payload: Run, channel: Channel) -> None:
    """Confine this process before it executes text of a package, unless it executes code of the user's own as well."""
    if _has_user_code(payload):
        channel.warn("not confined: it executes code of your own")
        return
    channel.keep_open()
    if not _report(channel, files=confine_files([channel.run_dir]), calls=confine_calls()):
        with suppress(ImportError, ValueError, OSError):
            limit_file_size(MAX_RESULT_BYTES)


def limit_file_size(limit: int) -> None:
    """Limit files to ``limit`` bytes each from now on; Python ignores the signal, so that a longer write fails."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit if hard < 0 else min(limit, hard), hard))


def confine_run(payload: Run, channel: Channel) -> None:
    """Confine this process before it loads a package: it writes to the folders of runs and temporary files alone."""
    if not payload.confine or _has_user_code(payload):
        return
    temporary = Path(os.environ.get("TMPDIR") or DEFAULT_TMP)
    # A run's own folder in the user's TMPDIR: a later run that is forked from this one will have another one there.
    own = temporary.parent if temporary.name.startswith(PRIVATE_PREFIX) else temporary
    caches = (os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"))
    folders = [channel.run_dir.parent, channel.scratch, own, Path(DEFAULT_TMP), *(Path(one) for one in caches if one)]
    _report(channel, files=confine_files([*folders, Path("/dev/shm")]), network=close_network())  # noqa: S108


def _report(channel: Channel, **applied: bool) -> bool:
    """Report what was applied; whether anything was."""
    channel.put(confined=[name for name, done in applied.items() if done])
    if not any(applied.values()):
        channel.warn("not confined: this kernel or container allows neither Landlock nor seccomp")
    return any(applied.values())


def _has_user_code(payload: Run) -> bool:
    watched = payload.watch.reference if payload.watch is not None else None
    references = (payload.reference, payload.share_reference, watched)
    return payload.code != UserCode() or any(one and user_function(one) is not None for one in references)
