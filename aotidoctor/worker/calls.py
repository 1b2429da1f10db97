"""Call the model once or more and look at outputs, inputs and memory after each call.

Every call gets the same values: inputs that a call wrote to are restored for the next (if ``mutation`` is observed and
the copies were not too big). So calls that differ differ by themselves.

Parts of the result: ``outputs`` (per call a list of leaves; from the third call on only path and digest), ``inputs``
again with ``changed``, ``rss`` (bytes after each call).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.call import KEEP_BYTES, Call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.describe import describe, digest, nbytes, storage
from aotidoctor.worker.leaves import copied, rebuild_result, result_tensors

_FULL_CALLS = 2
# In kB: Linux 4.5 and later.
_TAKEN = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap):\s*(\d{1,15}) kB$", re.MULTILINE)


class Observer:
    """Gathers what is seen over the calls of one run.

    ``saved`` are the inputs as they were before, ``kept`` is the first result where it is to be compared.
    """

    def __init__(self, call: Call, payload: Run, channel: Channel) -> None:
        self.wanted = frozenset(payload.observe)
        self.channel = channel
        self.call = call
        self.calls = max(1, payload.calls)
        self.before = call.digests() if "mutation" in self.wanted else []
        self.compared = bool(payload.reference)
        self.saved = call.copy() if self.calls > 1 or "mutation" in self.wanted or self.compared else None
        self.kept: Any = None
        self.outputs: list[list[dict[str, Any]]] = []
        self.rss: list[int] = []
        self.changed = False

    def look(self, number: int, result: Any) -> None:
        """After call ``number``: note everything that was asked for."""
        leaves = result_tensors(result)
        self.outputs.append([self._output(path, leaf, leaves, full=number <= _FULL_CALLS) for path, leaf in leaves])
        if number == 1:
            self._first(result, leaves)
        if number <= _FULL_CALLS:
            self.channel.put(outputs=self.outputs)

    def after(self, number: int) -> None:
        """After call ``number``, its outputs dropped: memory, and inputs as they were for the next call."""
        if "rss" in self.wanted:
            self.rss.append(resident_bytes())
        if number < self.calls and self.saved is not None and self.changed:
            self.call.restore(self.saved)

    def finish(self) -> None:
        """Hand over what only the end shows."""
        if self.calls > 1:
            self.channel.put(outputs=self.outputs)
        if self.rss:
            self.channel.put(rss=self.rss)

    def _first(self, result: Any, leaves: list[tuple[str, Any]]) -> None:
        if self.before:
            self._note_changes()
        if self.compared:
            # A copy: another call may use its memory.
            again = self.calls > 1 and sum(nbytes(leaf) for _, leaf in leaves) <= KEEP_BYTES
            self.kept = rebuild_result(result, copied) if again else result

    def _note_changes(self) -> None:
        pairs = zip(self.before, self.call.digests(), strict=True)
        changed = [None if old is None or new is None else old != new for old, new in pairs]
        inputs = [{**facts, "changed": it} for facts, it in zip(self.call.described, changed, strict=True)]
        self.changed = any(changed)
        self.channel.put(inputs=inputs)

    def _output(self, path: str, leaf: Any, leaves: list[tuple[str, Any]], *, full: bool) -> dict[str, Any]:
        if not full:
            return {"path": path, "sha256": digest(leaf)}
        facts = describe(path, leaf, values="values" in self.wanted)
        facts["sha256"] = digest(leaf)
        if "alias" in self.wanted:
            mine = storage(leaf)
            facts["aliases_inputs"] = _sharing(mine, self.call.tensors())
            others = [(name, None if name == path else other) for name, other in leaves]
            facts["aliases_outputs"] = _sharing(mine, others)
        return facts


def make_calls(model: Callable[..., Any], call: Call, payload: Run, channel: Channel) -> tuple[Call | None, Any]:
    """Make the calls; the inputs as they were before, and the first call's result (for a comparison)."""
    observer = Observer(call, payload, channel)
    marks: list[int] = []
    for number in range(1, observer.calls + 1):
        channel.enter(f"run{number}")
        _mark_trace(marks, channel)
        result = model(*call.args, **call.kwargs)
        synchronize(payload.device)
        channel.enter("scan")
        observer.look(number, result)
        del result
        observer.after(number)
    observer.finish()
    return observer.saved, observer.kept


def _mark_trace(marks: list[int], channel: Channel) -> None:
    """Tell how many calls were traced before this call of the model: where its own begin."""
    from aotidoctor.worker.hooks.trace import traced_calls

    count = traced_calls()
    if count is not None:
        marks.append(count)
        channel.put(trace_marks=marks)


def resident_bytes() -> int:
    """Memory that this process has taken and not given back, also where the host has swapped it out.

    Pages of files come and go as the host likes: on a busy one they made a healthy call look like a leak.
    """
    taken = _TAKEN.findall(Path("/proc/self/status").read_bytes())
    if taken:
        return sum(map(int, taken)) * 1024
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def set_threads(count: int | None, channel: Channel) -> None:
    """Let PyTorch use ``count`` threads, where a number is given, and tell how many it uses."""
    import torch

    if count is not None:
        torch.set_num_threads(count)
    channel.put(threads=torch.get_num_threads())


def synchronize(device: str) -> None:
    """A fault on the device shows here at the latest, in the stage that it belongs to."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def _sharing(address: int, others: list[tuple[str, Any]]) -> list[int]:
    """Indices of the tensors whose memory is at ``address``."""
    if address == 0:
        return []
    return [index for index, (_, other) in enumerate(others) if other is not None and storage(other) == address]
