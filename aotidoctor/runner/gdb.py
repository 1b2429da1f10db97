"""Read native stacks with gdb and cuda-gdb: sessions, stacks in sections of text, the debugger of a run.

The commands are typed, not given as arguments, because which libraries need their symbols is only known at the stop:
with all of them read up front a stop costs many times as much. No script inside gdb: it may be built without Python.

What a stop gives is text in sections (``=== name`` on a line of its own): ``stop`` (gdb's own words), ``signal``
(number, code, address), ``registers``, ``instruction``, ``stack`` (of the thread that was stopped) or ``stacks`` (of
all threads), ``read`` (libraries whose tables were read: beyond an unknown function in another one the frames are
guesses), ``maps`` (lines of /proc/PID/maps: those that the stack lies in, and the neighbourhood of the address of a
fault).

gdb cannot unwind through a library whose tables it has not read, and reading libtorch's takes seconds: so the stack is
printed again and again, each time with the one library more that the last attempt stopped at, until it reaches the
compiled model's own frame or needs nothing more.

A thread of ours talks with gdb, so that the time limit, the sizes of the output and an interrupt are looked after all
the while. The child waits for the debugger before its work begins (``worker.serve``): it writes the file ``attach``
and goes on when it is being traced, or when the file ``no_debugger`` says that it will not be. A child that dies is
held at its signal while the stack is read, then let go: it ends as it would have. gdb carries the run's marker and is
killed with whatever else the run left; what it held is then free to end.

The GPU's core dump of an ended child is read by cuda-gdb and goes with the directory of the run.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import IO

from aotidoctor.model.run import RUN_VARIABLE
from aotidoctor.runner.child_ending import send_signal
from aotidoctor.runner.run_dir import RunDir, ask_tool

# One session over gdb's standard streams: a command in, its text out, each within a time limit.
INSTALL_GDB = "gdb is not installed; apt-get install gdb"
ATTACH_S = 15.0
LAST_WORDS_S = 1.0
MAX_ANSWER = 512 * 1024
# No start-up files, no symbols before they are asked for, nothing fetched from a network, frames in one form.
SETTINGS = (
    "set pagination off",
    "set width 0",
    "set confirm off",
    "set auto-solib-add off",
    "set debuginfod enabled off",
    "set print frame-arguments presence",
    "set print frame-info location-and-address",
    "set print thread-events off",
    "set print inferior-events off",
    "handle all nostop noprint pass",
    "handle SIGSEGV SIGBUS SIGILL SIGFPE SIGABRT SIGSYS stop print pass",
    "handle SIGINT stop print nopass",
)
_DENIED = re.compile(r"ptrace: (?:Operation not permitted|Permission denied)")
_THREAD = re.compile(r"^\*? *1 +\S", re.MULTILINE)
_LOOK_EVERY_S = 0.05
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


class GdbError(Exception):
    """There is no (more) answer from gdb; the text says why."""


class Gdb:
    """A running gdb. ``token`` marks it, so that it is found with all else that a run leaves.

    Raises:
        GdbError: it could not be started.
    """

    def __init__(self, program: str, *, token: str, directory: Path) -> None:
        self._count = 0
        self._buffer = b""
        # What the user's environment preloads into programs, or asks of debuggers, is not for this one.
        environ = {"PATH": str(Path(program).parent), "LC_ALL": "C", RUN_VARIABLE: token}
        try:
            self._process = subprocess.Popen(
                (program, "-nx", "-q", "-iex", "set prompt", "-iex", "set auto-load no"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environ,
                cwd=directory,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise GdbError(f"gdb could not be started: {error}") from error

    def settle(self, deadline: float) -> None:
        """Make the settings, by ``deadline``.

        Raises:
            GdbError: it ended, or took too long.
        """
        for setting in SETTINGS:
            self.ask(setting, deadline - time.monotonic())

    def attach(self, pid: int) -> None:
        """Take hold of process ``pid``, which stops.

        Raises:
            GdbError: it may not, or cannot.
        """
        deadline = time.monotonic() + ATTACH_S
        self.settle(deadline)
        answer = self.ask(f"attach {pid}", deadline - time.monotonic())
        if _THREAD.search(self.ask("info threads", deadline - time.monotonic())) is None:
            raise GdbError(_denial_reason(answer) or f"gdb could not attach: {last_line(answer)}")

    def ask(self, command: str, seconds: float | None, *, meanwhile: Callable[[], None] | None = None) -> str:
        """The output of gdb for ``command``. ``meanwhile`` is called some times a second while it works.

        Raises:
            GdbError: gdb has ended, or took longer than ``seconds`` (None: as long as it takes).
        """
        self._count += 1
        end = f"@@{self._count}@@"
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            _pipe(self._process.stdin).write(f"{command}\necho \\n{end}\\n\n".encode())
        except (OSError, ValueError):
            # It has ended; its last output tells why.
            deadline = time.monotonic() + LAST_WORDS_S
        mark = f"\n{end}\n".encode()
        while mark not in self._buffer:
            if deadline is not None and time.monotonic() >= deadline:
                raise GdbError(f"gdb did not answer in time ({command})")
            if meanwhile is not None:
                meanwhile()
            self._read()
        answer, _, self._buffer = self._buffer.partition(mark)
        return answer.decode("utf-8", "replace")

    def close(self) -> None:
        """End it. A process that it still holds goes on."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.3)
        self.kill()

    def kill(self) -> None:
        """Kill it; another thread that waits for an answer then gets its error."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)

    def _read(self) -> None:
        out = _pipe(self._process.stdout)
        try:
            if not select.select([out], [], [], _LOOK_EVERY_S)[0]:
                return
            data = os.read(out.fileno(), 1 << 16)
        except (OSError, ValueError) as error:
            raise GdbError("gdb was ended") from error
        if not data:
            raise GdbError(f"gdb ended: {last_line(self._buffer.decode('utf-8', 'replace'))}")
        self._buffer += data
        if len(self._buffer) > 2 * MAX_ANSWER:
            # The end of an answer is what is waited for; the middle of a huge one is what can be spared.
            self._buffer = self._buffer[:MAX_ANSWER] + self._buffer[-MAX_ANSWER // 2 :]


def start_gdb(path: str, *, token: str, directory: Path) -> Gdb:
    """A session with the gdb of a user's PATH.

    Raises:
        GdbError: there is none, or it could not be started.
    """
    program = shutil.which("gdb", path=path)
    if program is None:
        raise GdbError(INSTALL_GDB)
    return Gdb(str(Path(program).absolute()), token=token, directory=directory)


def last_line(text: str) -> str:
    """The last line with something on it, cut to a readable length."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it printed nothing"


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise GdbError("gdb has no such stream")
    return stream


def _denial_reason(answer: str) -> str | None:
    """The reason why the kernel does not let gdb attach; None when ``answer`` is about something else."""
    if _DENIED.search(answer) is None:
        return None
    try:
        scope = _YAMA.read_text(encoding="ascii").strip()
    except OSError:
        scope = "0"
    if scope not in ("0", "1"):
        remedy = "sysctl -w kernel.yama.ptrace_scope=1"
        return f"ptrace is forbidden on this host (kernel.yama.ptrace_scope = {scope}; {remedy})"
    return "ptrace is forbidden here, mostly by a container (docker run --cap-add=SYS_PTRACE)"


# The sections of a stop.
COLLECT_S = 40.0
ROUNDS = 12
DEPTH, DEPTH_OF_MANY = 64, 32
_UNKNOWN = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?\?\? \(.*?\)(?: from (?P<library>.+))?$", re.MULTILINE)
_MODEL = re.compile(r"AOTInductorModel::run_impl|AOTInductorModelContainerRun")
_THREAD_HEADER = re.compile(r"^Thread \d+ ", re.MULTILINE)
_PC = re.compile(r"^#\d+ +(0x[0-9a-f]+) ", re.MULTILINE)
_VALUE = re.compile(r"\b(addr|pc|sp)=0x([0-9a-f]+)")
_SPECIAL = re.compile(r"([.\[\]*^$\\])")
_MANGLED = re.compile(r"(?<= in )_Z\w+(?:\.\w+)*")
# libtorch has half a million names: to demangle them all takes most of the time of reading it.
BIG = 16 * 1024 * 1024


def stop_sections(gdb: Gdb, pid: int | None, stop: str, *, maps: Sequence[str] = ()) -> str:
    """The sections of the stop that gdb described with ``stop``; ``maps`` is the memory map where there is no process.

    Raises:
        GdbError: it ended, or took too long.
    """
    deadline = time.monotonic() + COLLECT_S
    fault = "$_siginfo._sifields._sigfault.si_addr"
    commands = {
        "signal": f'printf "signo=%d code=%d addr=0x%lx\\n", $_siginfo.si_signo, $_siginfo.si_code, (long){fault}',
        "registers": 'printf "pc=0x%lx sp=0x%lx\\n", (long)$pc, (long)$sp',
        "instruction": "x/i $pc",
    }
    texts = {name: gdb.ask(command, deadline - time.monotonic()) for name, command in commands.items()}
    stack, read = _with_libraries(gdb, f"bt {DEPTH}", deadline)
    near = [int(value, 16) for _, value in _VALUE.findall(texts["signal"] + texts["registers"])]
    lines = maps if pid is None else _map_lines(pid)
    return sections({"stop": stop, **texts, "stack": stack, "read": read, "maps": _maps(lines, stack, near)})


def thread_sections(gdb: Gdb, pid: int) -> str:
    """The stacks of all threads of a stopped process.

    Raises:
        GdbError: it ended, or took too long.
    """
    deadline = time.monotonic() + COLLECT_S
    stacks, read = _with_libraries(gdb, f"thread apply all bt {DEPTH_OF_MANY}", deadline)
    return sections({"stacks": stacks, "read": read, "maps": _maps(_map_lines(pid), stacks, ())})


def sections(texts: dict[str, str]) -> str:
    """One text of several named ones."""
    return "".join(f"=== {name}\n{text.strip()}\n" for name, text in texts.items())


def _with_libraries(gdb: Gdb, command: str, deadline: float) -> tuple[str, str]:
    """The last output of the command, and the libraries that were read for it."""
    read: set[str] = set()
    for _ in range(ROUNDS):
        stack = gdb.ask(command, deadline - time.monotonic())
        missing = {library for part in _THREAD_HEADER.split(stack) if (library := _missing(part, read))}
        if not missing:
            break
        for library in sorted(missing):
            _read(gdb, library, deadline)
        read |= missing
    return _demangle_stack(gdb, stack, deadline), "\n".join(sorted(read))


def _read(gdb: Gdb, library: str, deadline: float) -> None:
    """Read the tables of a library; those of a big one without the names in C++, of which few will be shown."""
    path = Path(library)
    big = path.is_file() and path.stat().st_size > BIG
    if big:
        gdb.ask("set demangle-style none", deadline - time.monotonic())
    gdb.ask("sharedlibrary " + _SPECIAL.sub(r"\\\1", library), deadline - time.monotonic())
    if big:
        gdb.ask("set demangle-style auto", deadline - time.monotonic())


def _demangle_stack(gdb: Gdb, stack: str, deadline: float) -> str:
    """The stack with the names that ``_read`` left as they are in the tables."""
    for name in sorted(set(_MANGLED.findall(stack)), key=len, reverse=True):
        plain = gdb.ask(f"demangle -l c++ -- {name}", deadline - time.monotonic()).strip()
        if plain and "\n" not in plain and not plain.startswith(("Can't demangle", "Undefined")):
            stack = re.sub(re.escape(name) + r"(?![\w.])", plain.replace("\\", r"\\"), stack)
    return stack


def _missing(stack: str, read: Collection[str]) -> str | None:
    """The library without which the stack cannot be read on; None when the rest is not needed."""
    # A library without names is no obstacle once its tables are read.
    unknown = next((found for found in _UNKNOWN.finditer(stack) if found["library"] not in read), None)
    if unknown is None or _MODEL.search(stack, 0, unknown.start()):
        return None
    return unknown["library"]


def _map_lines(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _maps(lines: Sequence[str], stack: str, near: Iterable[int]) -> str:
    """Lines of the memory map that hold the addresses of the stack; for ``near`` also those before and after."""
    inside = [int(address, 16) for address in _PC.findall(stack)]
    spans = [tuple(int(part, 16) for part in line.split(maxsplit=1)[0].split("-")) for line in lines]
    chosen = {index for index, (low, high) in enumerate(spans) if any(low <= address < high for address in inside)}
    for address in near:
        after = sum(1 for low, _ in spans if low <= address)
        chosen.update(range(max(0, after - 2), min(len(spans), after + 1)))
    return "\n".join(lines[index] for index in sorted(chosen))


# The debugger of a run: it watches the child until it dies, or looks at one that hangs.
_STOPPED = re.compile(r"received signal (SIG\w+)")
_LOOK_EVERY = 0.01
_PY_SPY_S = 20.0


class Debugger:
    """A thread that watches the child of ``run_dir``; ``output`` and ``problem`` are the result after ``finish``."""

    def __init__(self, run_dir: RunDir, path: str) -> None:
        self.output = ""
        self.problem: str | None = None
        self.holds = threading.Event()
        self._run_dir = run_dir
        self._path = path
        self._gdb: Gdb | None = None
        self._stacks_wanted = threading.Event()
        self._interrupted = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="debugger")
        self._thread.start()

    def stacks(self) -> None:
        """Stop the child and take the stacks of all its threads."""
        self._stacks_wanted.set()
        self._thread.join(COLLECT_S)

    def finish(self) -> None:
        """After the child's end, or its time limit: wait for the last words, a moment, then end gdb."""
        self._thread.join(2.0)
        self.close()

    def close(self) -> None:
        """End gdb at once, wherever it is."""
        self._closed.set()
        if self._gdb is not None:
            self._gdb.kill()
        self._thread.join(3.0)

    def _watch(self) -> None:
        try:
            pid = None
            while pid is None and not self._closed.wait(_LOOK_EVERY):
                with suppress(OSError, ValueError):
                    pid = int(self._run_dir.file("attach").read_text(encoding="ascii"))
            if pid is not None:
                self._gdb = start_gdb(self._path, token=self._run_dir.token, directory=self._run_dir.path)
                self._gdb.attach(pid)
                self._follow(self._gdb, pid)
        except GdbError as error:
            self.problem = None if self._closed.is_set() else str(error)
        finally:
            with suppress(OSError):
                self._run_dir.file("no_debugger").touch()
            if self._gdb is not None:
                self._gdb.close()

    def _follow(self, gdb: Gdb, pid: int) -> None:
        answer = gdb.ask("continue", None, meanwhile=lambda: self._interrupt(pid))
        stopped = _STOPPED.search(answer)
        if stopped is None:
            self.output = sections({"end": answer})
            return
        self.holds.set()
        by_us = stopped[1] == "SIGINT" and self._interrupted
        self.output = thread_sections(gdb, pid) if by_us else stop_sections(gdb, pid, answer)
        gdb.ask("detach", 5.0)

    def _interrupt(self, pid: int) -> None:
        if self._stacks_wanted.is_set() and not self._interrupted:
            self._interrupted = True
            send_signal(pid, signal.SIGINT)


def hang_stacks(run_dir: RunDir, pid: int, path: str) -> tuple[str, str | None]:
    """Stacks of a process that does not end, by gdb, or by py-spy where there is no gdb; and a problem."""
    if shutil.which("gdb", path=path) is None and (py_spy := shutil.which("py-spy", path=path)):
        done = ask_tool((py_spy, "dump", "--native", "--pid", str(pid)), run_dir, _PY_SPY_S)
        if isinstance(done, str):
            return "", done
        text = done.stdout[:MAX_ANSWER].decode("utf-8", "replace")
        if done.returncode != 0:
            return "", f"py-spy: {done.stderr.decode('utf-8', 'replace').strip()[-200:]}; {INSTALL_GDB}"
        return sections({"py-spy": text}), None
    try:
        with closing(start_gdb(path, token=run_dir.token, directory=run_dir.path)) as gdb:
            gdb.attach(pid)
            stacks = thread_sections(gdb, pid)
            gdb.ask("detach", 5.0)
            return stacks, None
    except GdbError as error:
        return "", str(error)


# Core dumps of the GPU.
GPU_CORE_FILE = "gpu.core"
INSTALL_CUDA_GDB = "cuda-gdb is not installed; it is part of the CUDA toolkit: conda install -c nvidia cuda-gdb"
CUDA_TOOLKIT = "/usr/local/cuda/bin"
MAX_BYTES = 1 << 30
_CUDA_GDB_S = 60.0
_MOST_TEXT = 64 * 1024
_CUDA_GDB_COMMANDS = ("info cuda kernels", "backtrace 8", "x/i $errorpc")


def read_gpu_core(run_dir: RunDir, path: str) -> tuple[str, str | None]:
    """The output of cuda-gdb on the dump, as the section ``gpu-core``; or why there is nothing to read."""
    core = run_dir.file(GPU_CORE_FILE)
    try:
        size = core.stat().st_size
    except OSError:
        return "", "the driver wrote no GPU core dump"
    if size > MAX_BYTES:
        return "", f"the GPU core dump is too big to be read: {size} bytes"
    program = shutil.which("cuda-gdb", path=os.pathsep.join((path, CUDA_TOOLKIT)))
    if program is None:
        return "", INSTALL_CUDA_GDB
    words = [word for text in (f"target cudacore {core}", *_CUDA_GDB_COMMANDS) for word in ("-ex", text)]
    done = ask_tool((str(Path(program).absolute()), "-nx", "-batch", *words), run_dir, _CUDA_GDB_S)
    if isinstance(done, str):
        return "", done
    text = (done.stdout + done.stderr)[:_MOST_TEXT].decode("utf-8", "replace")
    return sections({"gpu-core": text}), None
