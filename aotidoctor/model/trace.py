"""Which compiled calls a run made, in order: written down by the stubs of the call trace, whatever the run's end."""

from __future__ import annotations

import enum
import re

from aotidoctor.model.record import record

_KERNEL = re.compile(r"(?:cpp|triton)_\w+")
# Calls that compute; the other ``aoti_torch_*`` allocate, look at handles, or give memory back.
_EXTERN = re.compile(r"aoti_torch_(?:(?:cpu|cuda|mps|xpu)_\w+|addmm_out|mm_out|bmm_out|scatter\w*|index_put_out)")
_CUSTOM = frozenset({"aoti_torch_proxy_executor_call_function", "aoti_torch_call_dispatcher"})


class CallKind(enum.Enum):
    """Who does the work of a call."""

    KERNEL = "kernel"
    EXTERN = "extern"
    CUSTOM = "custom"
    LAUNCH = "launch"
    RUNTIME = "runtime"


def call_kind(symbol: str) -> CallKind:
    """What kind of call a symbol of the package's PLT is."""
    if symbol in _CUSTOM:
        return CallKind.CUSTOM
    if _KERNEL.fullmatch(symbol):
        return CallKind.KERNEL
    if symbol.startswith("cuLaunch"):
        return CallKind.LAUNCH
    return CallKind.EXTERN if _EXTERN.fullmatch(symbol) else CallKind.RUNTIME


@record
class TracedCall:
    """One call that was entered.

    ``symbol`` is the function (``cpp_fused_add_0``, ``aoti_torch_cpu_addmm_out``). ``argument`` is its second integer
    argument: of a proxy-executor call the index of the extern node. ``at`` is in seconds since the first traced call.
    """

    symbol: str
    argument: int
    at: float

    @property
    def kind(self) -> CallKind:
        """Kernel, extern, custom operator, launch or runtime bookkeeping."""
        return call_kind(self.symbol)


@record
class Trace:
    """The last calls of a run, oldest first.

    ``total`` counts all calls, more than ``calls`` holds when the ring was overwritten. ``slots`` is the number of PLT
    slots that were pointed at stubs. ``marks`` are the counts at which the first, second... call of the model began.
    ``problem`` says why there is no trace (None when there is one).
    """

    calls: tuple[TracedCall, ...] = ()
    total: int = 0
    slots: int = 0
    marks: tuple[int, ...] = ()
    problem: str | None = None

    def of_run(self, number: int) -> tuple[TracedCall, ...]:
        """The calls that call ``number`` of the model (from 1) made, as far as they are kept."""
        if not 1 <= number <= len(self.marks):
            return ()
        skipped = self.total - len(self.calls)
        begin = max(0, self.marks[number - 1] - skipped)
        end = self.marks[number] - skipped if number < len(self.marks) else len(self.calls)
        return self.calls[begin : max(begin, end)]

    @property
    def last(self) -> TracedCall | None:
        """The call entered last: where a crash, an exception or a hang is. None when nothing was traced."""
        return self.calls[-1] if self.calls else None
