"""Every launch of the package waited for: the first kernel whose work fails is known, however late the error shows.

A launch only queues work. The error of a kernel comes out at some later call, so that the last one seen is the wrong
one. Here the driver is made to finish before each computing call of the package; the first result that is not zero
belongs to the call before.

Results are handed over at once (``launch_last`` before each call, ``launch_failure`` once), so that an abort loses
nothing.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.answers.launches import Launch, LaunchFailure
from aotidoctor.model.trace import CallKind, call_kind
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.hooks.callbacks import Call, Watch, watch
from aotidoctor.worker.hooks.cuda_driver import Driver, driver_of
from aotidoctor.worker.hooks.slots import HooksUnavailableError, find_slots

DRIVER = re.compile(r"cuModuleGetFunction|cuLaunchKernel(?:Ex)?")
HOOKED = re.compile(r"cuModuleLoad|cuModuleGetFunction|cuLaunchKernel(?:Ex)?|aoti_torch_\w+")
# Without a context there is nothing to wait for: no kernel's doing.
NO_CONTEXT = frozenset({3, 4, 201})
RECENT = 24


class Launches:
    """The trace of one process. ``run`` is the number of the model's call, from 1."""

    def __init__(self, driver: Driver, channel: Channel) -> None:
        self._driver = driver
        self._channel = channel
        self._names: dict[int, str] = {}
        self._loaded: str | None = None
        self._recent: list[Launch] = []
        self._last: Launch | None = None
        self._failed = False
        self.count = 0
        self.run = 0
        self.watch: Watch | None = None

    def begin(self, run: int) -> None:
        """A call of the model begins: what went wrong before it is not one of its kernels' doing."""
        self.run = run
        self._last = None
        self._wait(Launch(run=run))

    def before(self, call: Call) -> None:
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

    def _load(self, call: Call) -> None:
        """A kernel is being loaded: where that fails, it is not the doing of the call before."""
        name = _text_at(call.word(1 if call.symbol == "cuModuleLoad" else 2))
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

    def _entry(self, call: Call) -> Launch:
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


def trace_launches(directory: Path, channel: Channel) -> Launches | None:
    """Trace the libraries below ``directory`` from now on; where that cannot be, None: ``launch_problem`` says why."""
    try:
        _, slots = find_slots(directory, DRIVER)
        launches = Launches(driver_of(slots, directory), channel)
        launches.watch = watch(directory, HOOKED, launches.before)
    except (HooksUnavailableError, OSError) as error:
        channel.put(launch_problem={"text": str(error)})
        return None
    channel.put(launch_trace={"slots": len(slots)})
    return launches


def _config(address: int) -> list[int]:
    """Grid, block and shared memory of cuLaunchKernelEx, which gets them in a structure."""
    return list((ctypes.c_uint32 * 7).from_address(address))


def _text_at(address: int) -> str:
    return ctypes.string_at(address).decode("utf-8", "replace") if address else ""
