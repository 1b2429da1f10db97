"""Trace the calls that a loaded package makes: to its own kernels, to PyTorch's C shims, to the CUDA driver.

A stub records the call, or calls a Python function first. Trace: each hooked call leaves a record in a file that is
mapped into memory. The file outlives the process whatever ends it, SIGKILL included, and writing to it is no system
call: a traced call costs some nanoseconds. The channel gets the meaning of the records (``names``, ``ticks_per_s``,
``slots``).

Python functions run on the thread of the call, before it, and see all that earlier calls have written. ctypes prints
their exceptions and stops them there: nothing may unwind through compiled frames.

On CUDA a launch only queues work. The error of a kernel appears at some later call, so that the last traced call is the
wrong one. So the driver must finish before each computing call of the package; the first result that is not zero
belongs to the call before. Results are sent at once (``launch_last`` before each call, ``launch_failure`` once), so
that an abort loses nothing.

Supported are x86-64 and aarch64 Linux; elsewhere, and for packages without such slots, ``HooksUnavailableError`` gives
the reason.
"""

from __future__ import annotations

import ctypes
import itertools
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
    call_tables,
    find_slots,
    install_stubs,
    loaded_libraries,
    point_slots,
    restore_slots,
)
from aotidoctor.worker.channel import Channel

# A Python function before each hooked call. Kept for the life of the process: stubs jump to them.
_callbacks: list[Any] = []


class ShimCall:
    """One call before it is made: ``symbol``, and its integer (or pointer) arguments by index."""

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
        """Integer argument number ``index`` as a signed 32-bit ``int``."""
        return ctypes.c_int32(self.word(index) & 0xFFFFFFFF).value


def watch_calls(directory: Path, symbols: re.Pattern[str], before: Callable[[ShimCall], None]) -> Callable[[], None]:
    """Call ``before`` ahead of each call to a symbol that ``symbols`` matches, in the libraries below ``directory``.

    Returns a function that removes the hooks: calls go to their functions directly again.

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
    return partial(restore_slots, slots)


# The call trace.
_CALIBRATION_S = 0.001
_STAMPS = 16
# Kept for the life of the process: stubs write through it.
_rings: list[Any] = []


def start_trace(directory: Path, channel: Channel) -> None:
    """Trace the libraries below ``directory`` from now on; if that fails, ``trace.problem`` is the reason."""
    try:
        machine, slots = find_slots(directory)
        # Address of a fresh ring in the file.
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
        cost = _ticks_per_stamp(machine, ring)

        def stub(_: int, slot: CallSlot) -> bytes:
            return machine.trace_stub(ring=ring, number=numbers[slot.symbol], target=slot.target)

        install_stubs(slots, stub)
    except (HooksUnavailableError, OSError) as error:
        channel.put(trace={"problem": str(error)})
        return
    layout = {"header": HEADER_BYTES, "records": RECORDS}
    channel.put(trace={"names": names, "slots": len(slots), "ticks_per_s": ticks, "stamp": cost, **layout})


def traced_calls() -> int | None:
    """Number of calls traced so far; None where nothing is traced."""
    return ctypes.c_uint64.from_buffer(_rings[-1][0]).value if _rings else None


def _ticks_per_second(machine: StubMachine, ring: int) -> float:
    """Ticks of the stubs' clock per second, measured by a stub that jumps to an empty function."""
    call = _stub_before(_empty_function(), machine, ring)
    call()
    first, began = _newest(ring), time.perf_counter()
    time.sleep(_CALIBRATION_S)
    call()
    second, ended = _newest(ring), time.perf_counter()
    ctypes.c_uint64.from_address(ring).value = 0
    return (second - first) / (ended - began)


def _ticks_per_stamp(machine: StubMachine, ring: int) -> int:
    """Ticks that one stub takes, the middle one of several: stubs that jump to each other, in a row."""
    call = _empty_function()
    for _ in range(_STAMPS):
        call = _stub_before(call, machine, ring)
    costs: list[int] = []
    for _ in range(_STAMPS):
        call()
        last = ctypes.c_uint64.from_address(ring).value
        times = [
            ctypes.c_uint64.from_address(ring + HEADER_BYTES + 16 * (at % RECORDS) + 8).value
            for at in range(last - _STAMPS, last)
        ]
        costs += [after - before for before, after in itertools.pairwise(times)]
        ctypes.c_uint64.from_address(ring).value = 0
    return sorted(costs)[len(costs) // 2]


def _empty_function() -> Any:
    nothing = ctypes.CFUNCTYPE(None)(lambda: None)
    _callbacks.append(nothing)
    return nothing


def _stub_before(function: Any, machine: StubMachine, ring: int) -> Any:
    """A function that writes a record and jumps to ``function``."""
    target = ctypes.cast(function, ctypes.c_void_p).value or 0
    holder = ctypes.c_uint64(target)
    slot = CallSlot(address=ctypes.addressof(holder), symbol="", target=target)
    install_stubs([slot], lambda _, one: machine.trace_stub(ring=ring, number=0, target=one.target))
    return ctypes.CFUNCTYPE(None)(holder.value)


def _newest(ring: int) -> int:
    count = ctypes.c_uint64.from_address(ring).value
    return ctypes.c_uint64.from_address(ring + HEADER_BYTES + 16 * ((count - 1) % RECORDS) + 8).value


# The slot in which libtorch has the address of a C function, to replace that by one of ours.
# Kept for the life of the process: libtorch calls through them.
_around_functions: list[Any] = []


def call_slot(function: str) -> int | None:
    """Address of the slot through which ``libtorch_cpu`` calls ``function``; None where it has none."""
    import torch

    name = f"{function}\0".encode()
    for path, base in loaded_libraries(Path(torch.__file__).parent / "lib"):
        if not path.name.startswith("libtorch_cpu"):
            continue
        table, symbols, strings, bias = call_tables(base)
        # By name in the string table, without an object for each of some ten thousand relocations.
        for offset, info, _ in struct.iter_unpack("<QQq", table):
            at = ctypes.c_uint32.from_address(symbols + (info >> 32) * 24).value
            if ctypes.string_at(strings + at, len(name)) == name:
                return int(bias + offset)
        break
    return None


def call_around(slot: int | None, prototype: Any, around: Callable[..., Any], channel: Channel, lost: str) -> None:
    """Let libtorch call ``around(function, ...)`` instead of the C function that ``slot`` leads to, if there is a slot.

    Where that cannot be done, a warning says what is ``lost``.
    """
    if slot is None:
        return
    callback = prototype(partial(around, prototype(ctypes.c_uint64.from_address(slot).value)))
    _around_functions.append(callback)
    try:
        point_slots({slot: ctypes.cast(callback, ctypes.c_void_p).value or 0})
    except HooksUnavailableError as error:
        channel.warn(f"{lost}: {error}")


# The CUDA driver that the package calls, found by the address in the package's own slots.
DRIVER_LIBRARY = "libcuda.so.1"
# Names of the results that matter most, independent of the driver.
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
        """Wait for all launches; the driver's result."""
        return int(self._library.cuCtxSynchronize())

    def error(self, code: int) -> tuple[str, str]:
        """Name and text of a result."""
        name = DRIVER_NAMES.get(code) or self._text("cuGetErrorName", code) or f"CUDA error {code}"
        return name, self._text("cuGetErrorString", code) or ""

    def kernel_name(self, function: int) -> str | None:
        """Name of the kernel behind a handle; None where the driver is older than CUDA 12.3, or does not know it."""
        get_name = getattr(self._library, "cuFuncGetName", None)
        name = ctypes.c_char_p()
        if get_name is None or get_name(ctypes.byref(name), ctypes.c_void_p(function)) != 0 or not name.value:
            return None
        return name.value.decode("utf-8", "replace")

    def _text(self, function: str, code: int) -> str | None:
        get_text = getattr(self._library, function, None)
        text = ctypes.c_char_p()
        if get_text is None or get_text(ctypes.c_int(code), ctypes.byref(text)) != 0 or not text.value:
            return None
        return text.value.decode("utf-8", "replace")


def driver_of(slots: list[CallSlot], directory: Path) -> CudaDriver:
    """The driver that the slots lead to; else the one with the usual name.

    A package is loaded with local symbols, so the driver need not be in the global scope: a lookup of the functions by
    name alone may find none.

    Raises:
        HooksUnavailableError: no driver, or one that cannot wait.
    """
    path, info, dladdr = None, _Info(), ctypes.CDLL(None).dladdr
    for slot in slots:
        # The file whose image holds the function.
        if dladdr(ctypes.c_void_p(slot.target), ctypes.byref(info)) and info.file:
            path = os.fsdecode(info.file)
            break
    if path is None or directory.resolve() in Path(path).resolve().parents:
        # A slot that was not bound yet leads back into the package.
        path = DRIVER_LIBRARY
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
        library.cuCtxSynchronize.restype = ctypes.c_int
    except (OSError, AttributeError) as error:
        raise HooksUnavailableError(f"the driver that the package calls cannot be synchronised: {error}") from error
    return CudaDriver(library, path)


# Launches that are waited for.
DRIVER = re.compile(r"cuModuleGetFunction|cuLaunchKernel(?:Ex)?")
HOOKED = re.compile(r"cuModuleLoad|cuModuleGetFunction|cuLaunchKernel(?:Ex)?|aoti_torch_\w+")
# Without a context there is nothing to wait for: not the fault of a kernel.
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
        self.stop: Callable[[], None] = lambda: None

    def begin(self, run: int) -> None:
        """Begin a call of the model: an earlier error is not the fault of its kernels."""
        self.run = run
        self._last = None
        self._wait(Launch(run=run))

    def before(self, call: ShimCall) -> None:
        """Before a hooked call: wait for the one before, then record this one."""
        if call.symbol.startswith("cuModule"):
            # A kernel is being loaded: a failure is not the fault of the call before.
            address = call.word(1 if call.symbol == "cuModuleLoad" else 2)
            name = ctypes.string_at(address).decode("utf-8", "replace") if address else ""
            if call.symbol == "cuModuleGetFunction":
                self._loaded = name
            self._channel.put(launch_last=Launch(symbol=call.symbol, kernel=name, run=self.run))
            return
        if call_kind(call.symbol) is CallKind.RUNTIME:
            return
        entry = self._entry(call)
        self._wait(entry)
        self._last = entry
        self._recent = [*self._recent[1 - RECENT :], entry]
        self._channel.put(launch_last=entry)

    def finish(self) -> None:
        """After the model returned or raised: wait for the last call."""
        self._wait(None)
        self._channel.put(launch_recent=self._recent, launch_count=self.count)

    def _wait(self, following: Launch | None) -> None:
        """Wait for all launches, unless one has failed: then the context is dead, and gives the same error for all."""
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
        if extended:
            # Grid, block and shared memory of cuLaunchKernelEx are in a structure.
            sizes = list((ctypes.c_uint32 * 7).from_address(call.word(0)))
        else:
            sizes = [call.word(index) & 0xFFFFFFFF for index in range(1, 8)]
        return replace(entry, kernel=kernel, grid=tuple(sizes[:3]), block=tuple(sizes[3:6]), shared=sizes[6])

    def _kernel(self, function: int) -> str | None:
        """The driver's name, else the name that was looked up last: packages load a kernel right before its launch."""
        if function not in self._names:
            name = self._driver.kernel_name(function) or self._loaded
            if name is None:
                return None
            self._names[function] = name
        self._loaded = None
        return self._names[function]


def trace_launches(directory: Path, channel: Channel) -> LaunchTracer | None:
    """Trace the libraries below ``directory`` from now on; if that fails, None: ``launch_problem`` is the reason."""
    try:
        _, slots = find_slots(directory, DRIVER)
        launches = LaunchTracer(driver_of(slots, directory), channel)
        launches.stop = watch_calls(directory, HOOKED, launches.before)
    except (HooksUnavailableError, OSError) as error:
        channel.put(launch_problem={"text": str(error)})
        return None
    channel.put(launch_trace={"slots": len(slots)})
    return launches
