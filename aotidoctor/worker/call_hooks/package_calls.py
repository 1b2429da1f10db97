"""Trace the calls that a loaded package makes: to its own kernels, to PyTorch's C shims, to the CUDA driver.

A stub writes the call down or calls a Python function first. Trace: each hooked call leaves a record in a file that
is mapped into memory. The file outlives the process whatever ends it, SIGKILL included, and writing to it is no
system call: a traced call costs some nanoseconds. What the records mean is told over the channel (``names``,
``ticks_per_s``, ``slots``).

Python functions run on the thread of the call, before it, and see all that earlier calls have written. What they
raise is printed by ctypes and goes no further: nothing may unwind through compiled frames.

On CUDA a launch only queues work. The error of a kernel comes out at some later call, so that the last one seen is
the wrong one. So the driver is made to finish before each computing call of the package; the first result that is not
zero belongs to the call before. Results are handed over at once (``launch_last`` before each call, ``launch_failure``
once), so that an abort loses nothing.

x86-64 and aarch64 Linux; elsewhere, and for packages without such slots, ``HooksUnavailableError`` says why.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aotidoctor.model.answers import Launch, LaunchFailure
from aotidoctor.model.run import TRACE_FILE, CallKind, call_kind
from aotidoctor.worker.call_hooks.slots import (
    HEADER_BYTES,
    RECORDS,
    RING_BYTES,
    STACK_AT,
    CallSlot,
    HooksUnavailableError,
    StubMachine,
    find_slots,
    install_stubs,
    restore_slots,
)
from aotidoctor.worker.channel import Channel

# A Python function before each hooked call.

# Kept for the life of the process: stubs jump to them.
_callbacks: list[Any] = []


class ShimCall:
    """One call about to be made: ``symbol``, and its integer (or pointer) arguments by index."""

    def __init__(self, symbol: str, machine: StubMachine, saved: int) -> None:
        self.symbol = symbol
        self._machine = machine
        self._saved = saved

    def word(self, index: int) -> int:
        """Integer argument number ``index`` from 0, as an unsigned 64-bit value. Not checked against the signature."""
        if index < self._machine.integers:
            return ctypes.c_uint64.from_address(self._saved + 8 * index).value
        stack = ctypes.c_uint64.from_address(self._saved + STACK_AT).value
        return ctypes.c_uint64.from_address(stack + 8 * (index - self._machine.integers)).value

    def integer(self, index: int) -> int:
        """The same as a signed 32-bit ``int``."""
        return ctypes.c_int32(self.word(index) & 0xFFFFFFFF).value


class CallHooks:
    """Installed hooks; ``stop`` takes them away."""

    def __init__(self, slots: list[CallSlot]) -> None:
        self._slots = slots

    def stop(self) -> None:
        """Calls are as they were."""
        restore_slots(self._slots)
        self._slots = []


def watch_calls(directory: Path, symbols: re.Pattern[str], before: Callable[[ShimCall], None]) -> CallHooks:
    """Call ``before`` ahead of each call to a symbol that ``symbols`` matches, in the libraries below ``directory``.

    Raises:
        HooksUnavailableError: as ``find_slots``.
    """
    machine, slots = find_slots(directory, symbols)

    def enter(number: int, saved: int) -> None:
        before(ShimCall(slots[number].symbol, machine, saved))

    function = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(enter)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    _callbacks.append(function)
    install_stubs(slots, lambda number, slot: machine.watch_stub(callback=address, number=number, target=slot.target))
    return CallHooks(slots)


# The call trace.

_CALIBRATION_S = 0.001
# Kept for the life of the process: stubs write through it.
_rings: list[Any] = []


def start_trace(directory: Path, channel: Channel) -> None:
    """Trace the libraries below ``directory`` from now on; where that cannot be, ``trace.problem`` says why."""
    try:
        machine, slots = find_slots(directory)
        # Address of a fresh ring that is kept in `path`.
        path = channel.run_dir / TRACE_FILE
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, RING_BYTES)
            memory = mmap.mmap(fd, RING_BYTES)
        finally:
            os.close(fd)
        view = (ctypes.c_char * RING_BYTES).from_buffer(memory)
        _rings.append((memory, view))
        ring = ctypes.addressof(view)
        names = sorted({slot.symbol for slot in slots})
        numbers = {name: number for number, name in enumerate(names)}
        ticks = _ticks_per_second(machine, ring)

        def stub(_: int, slot: CallSlot) -> bytes:
            return machine.trace_stub(ring=ring, number=numbers[slot.symbol], target=slot.target)

        install_stubs(slots, stub)
    except (HooksUnavailableError, OSError) as error:
        channel.put(trace={"problem": str(error)})
        return
    layout = {"header": HEADER_BYTES, "records": RECORDS}
    channel.put(trace={"names": names, "slots": len(slots), "ticks_per_s": ticks, **layout})


def traced_calls() -> int | None:
    """How many calls were traced so far; None where nothing is traced."""
    return ctypes.c_uint64.from_buffer(_rings[-1][0]).value if _rings else None


def _ticks_per_second(machine: StubMachine, ring: int) -> float:
    """Ticks of the stubs' clock in a second, measured by a stub that jumps to a function which does nothing."""
    nothing = ctypes.CFUNCTYPE(None)(lambda: None)
    target = ctypes.cast(nothing, ctypes.c_void_p).value or 0
    holder = ctypes.c_uint64(target)
    slot = CallSlot(address=ctypes.addressof(holder), symbol="", target=target)
    install_stubs([slot], lambda _, one: machine.trace_stub(ring=ring, number=0, target=one.target))
    call = ctypes.CFUNCTYPE(None)(holder.value)
    call()
    first, began = _newest(ring), time.perf_counter()
    time.sleep(_CALIBRATION_S)
    call()
    second, ended = _newest(ring), time.perf_counter()
    ctypes.c_uint64.from_address(ring).value = 0
    return (second - first) / (ended - began)


def _newest(ring: int) -> int:
    count = ctypes.c_uint64.from_address(ring).value
    return ctypes.c_uint64.from_address(ring + HEADER_BYTES + 16 * ((count - 1) % RECORDS) + 8).value


# The place where libtorch keeps the address of a C function that it calls, to put one of ours in its stead.

# Kept for the life of the process: libtorch calls through them.
_around_functions: list[Any] = []


def call_slot(function: str) -> int | None:
    """Address of the slot through which ``libtorch_cpu`` calls ``function``; None where it has none."""
    import torch

    from aotidoctor.worker.call_hooks.slots import call_tables, loaded_libraries

    for path, base in loaded_libraries(Path(torch.__file__).parent / "lib"):
        if path.name.startswith("libtorch_cpu"):
            return _libtorch_slot(f"{function}\0".encode(), *call_tables(base))
    return None


def call_around(slot: int, prototype: Any, around: Callable[..., Any]) -> None:
    """Let libtorch call ``around(function, ...)`` instead of the C function that ``slot`` leads to.

    Raises:
        HooksUnavailableError: as ``slots.point``.
    """
    from aotidoctor.worker.call_hooks.slots import point_slots

    callback = prototype(partial(around, prototype(ctypes.c_uint64.from_address(slot).value)))
    _around_functions.append(callback)
    point_slots({slot: ctypes.cast(callback, ctypes.c_void_p).value or 0})


def _libtorch_slot(wanted: bytes, table: bytes, symbols: int, strings: int, bias: int) -> int | None:
    """The relocation for the call, found by comparing names in the string table: there are some ten thousand."""
    for offset, info, _ in struct.iter_unpack("<QQq", table):
        name = ctypes.c_uint32.from_address(symbols + (info >> 32) * 24).value
        if ctypes.string_at(strings + name, len(wanted)) == wanted:
            return int(bias + offset)
    return None


# The CUDA driver that the package calls, found by the address in the package's own slots.

DRIVER_LIBRARY = "libcuda.so.1"
# The names of those that matter most, the same whatever the driver calls them.
DRIVER_NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    710: "CUDA_ERROR_ASSERT",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED",
}


class _Info(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class CudaDriver:
    """The few functions of the driver that the trace needs."""

    def __init__(self, library: Any, path: str) -> None:
        self._library = library
        self.path = path

    def synchronize(self) -> int:
        """Wait for everything that was launched; the driver's result."""
        return int(self._library.cuCtxSynchronize())

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a result."""
        name = DRIVER_NAMES.get(code) or self._text("cuGetErrorName", code) or f"CUDA error {code}"
        return name, self._text("cuGetErrorString", code) or ""

    def kernel_name(self, function: int) -> str | None:
        """The name of a function's handle; None where the driver is older than CUDA 12.3, or does not know it."""
        ask = getattr(self._library, "cuFuncGetName", None)
        name = ctypes.c_char_p()
        if ask is None or ask(ctypes.byref(name), ctypes.c_void_p(function)) != 0 or not name.value:
            return None
        return name.value.decode("utf-8", "replace")

    def _text(self, function: str, code: int) -> str | None:
        ask = getattr(self._library, function, None)
        text = ctypes.c_char_p()
        if ask is None or ask(ctypes.c_int(code), ctypes.byref(text)) != 0 or not text.value:
            return None
        return text.value.decode("utf-8", "replace")


def driver_of(slots: list[CallSlot], directory: Path) -> CudaDriver:
    """The driver that the slots lead to; the one by its usual name where they do not tell.

    A package is loaded with its symbols to itself, so the driver need not be in the global scope: looking the functions
    up by name alone may find none.

    Raises:
        HooksUnavailableError: no driver, or one that cannot wait.
    """
    path = next((found for slot in slots if (found := _library_at(slot.target))), None)
    if path is None or directory.resolve() in Path(path).resolve().parents:
        # A slot that was not bound yet leads back into the package.
        path = DRIVER_LIBRARY
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
        library.cuCtxSynchronize.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise HooksUnavailableError(f"the driver that the package calls cannot be synchronised: {error}") from error
    return CudaDriver(library, path)


def _library_at(address: int) -> str | None:
    """The file whose image holds ``address``."""
    info = _Info()
    found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return os.fsdecode(info.file) if found and info.file else None


# Launches that are waited for.

DRIVER = re.compile(r"cuModuleGetFunction|cuLaunchKernel(?:Ex)?")
HOOKED = re.compile(r"cuModuleLoad|cuModuleGetFunction|cuLaunchKernel(?:Ex)?|aoti_torch_\w+")
# Without a context there is nothing to wait for: no kernel's doing.
NO_CONTEXT = frozenset({3, 4, 201})
RECENT = 24


class LaunchTracer:
    """The trace of one process. ``run`` is the number of the model's call, from 1."""

    def __init__(self, driver: CudaDriver, channel: Channel) -> None:
        self._driver = driver
        self._channel = channel
        self._names: dict[int, str] = {}
        self._loaded: str | None = None
        self._recent: list[Launch] = []
        self._last: Launch | None = None
        self._failed = False
        self.count = 0
        self.run = 0
        self.watch: CallHooks | None = None

    def begin(self, run: int) -> None:
        """A call of the model begins: what went wrong before it is not one of its kernels' doing."""
        self.run = run
        self._last = None
        self._wait(Launch(run=run))

    def before(self, call: ShimCall) -> None:
        """Ahead of a hooked call: wait for the one before, then write this one down."""
        if call.symbol.startswith("cuModule"):
            self._load(call)
            return
        if call_kind(call.symbol) is CallKind.RUNTIME:
            return
        entry = self._entry(call)
        self._wait(entry)
        self._last = entry
        self._recent = [*self._recent[1 - RECENT :], entry]
        self._channel.put(launch_last=entry)

    def finish(self) -> None:
        """The model returned, or raised: wait for the last one."""
        self._wait(None)
        self._channel.put(launch_recent=self._recent, launch_count=self.count)

    def _load(self, call: ShimCall) -> None:
        """A kernel is being loaded: where that fails, it is not the doing of the call before."""
        address = call.word(1 if call.symbol == "cuModuleLoad" else 2)
        name = ctypes.string_at(address).decode("utf-8", "replace") if address else ""
        if call.symbol == "cuModuleGetFunction":
            self._loaded = name
        self._channel.put(launch_last=Launch(symbol=call.symbol, kernel=name, run=self.run))

    def _wait(self, following: Launch | None) -> None:
        """Nothing is waited for after the first failure: the context is dead, and answers the same for all."""
        if self._failed:
            return
        code = self._driver.synchronize()
        if code == 0:
            return
        self._failed = True
        name, text = self._driver.error(code)
        failure = LaunchFailure(code=code, name=name, text=text, call=self._last, before=following, run=self.run)
        self._channel.put(**{"launch_problem" if code in NO_CONTEXT else "launch_failure": failure})

    def _entry(self, call: ShimCall) -> Launch:
        self.count += 1
        entry = Launch(symbol=call.symbol, number=self.count, run=self.run)
        if not call.symbol.startswith("cuLaunch"):
            return replace(entry, argument=call.integer(1))
        extended = call.symbol.endswith("Ex")
        kernel = self._kernel(call.word(1 if extended else 0))
        sizes = _config(call.word(0)) if extended else [call.word(index) & 0xFFFFFFFF for index in range(1, 8)]
        return replace(entry, kernel=kernel, grid=tuple(sizes[:3]), block=tuple(sizes[3:6]), shared=sizes[6])

    def _kernel(self, function: int) -> str | None:
        """The driver's word, else the name that was looked up last: packages load a kernel right before its launch."""
        if function not in self._names:
            name = self._driver.kernel_name(function) or self._loaded
            if name is None:
                return None
            self._names[function] = name
        self._loaded = None
        return self._names[function]


def trace_launches(directory: Path, channel: Channel) -> LaunchTracer | None:
    """Trace the libraries below ``directory`` from now on; where that cannot be, None: ``launch_problem`` says why."""
    try:
        _, slots = find_slots(directory, DRIVER)
        launches = LaunchTracer(driver_of(slots, directory), channel)
        launches.watch = watch_calls(directory, HOOKED, launches.before)
    except (HooksUnavailableError, OSError) as error:
        channel.put(launch_problem={"text": str(error)})
        return None
    channel.put(launch_trace={"slots": len(slots)})
    return launches


def _config(address: int) -> list[int]:
    """Grid, block and shared memory of cuLaunchKernelEx, which gets them in a structure."""
    return list((ctypes.c_uint32 * 7).from_address(address))
