"""Recover the inputs that a package without sources expects, from its own input checks; job ``recover``.

When AOTI_RUNTIME_CHECK_INPUTS is set, the compiled code compares each input with the one that it was compiled for, and
reports what it expects. So each input is first a stand-in on the meta device, which has no memory to read; each call
gives one complaint, and the stand-in is corrected until nothing but its device is wrong. Inputs before it are real
tensors as recovered; the device complaint about the last one keeps the kernels from ever running.

Without the checks (before 2.7, or switched off at build time) only the number of inputs and the call spec are known.
Without the device check (before 2.8, and for devices other than cpu and cuda) nothing would stop the kernels once the
last input is right, so of that one only the dtype is recovered.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

import torch

from aotidoctor.model.jobs import Run
from aotidoctor.model.torch_names import CHECK_INPUTS, SCALAR_NAMES
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.load_package import describe_library, library_contains, load_model, mapped_library
from aotidoctor.worker.sandbox import confine_run
from aotidoctor.worker.user_code import load_setup

# One input, recovered from the complaints of the compiled checks.
_RANK = 8
_SMALL_ENOUGH = 2**62
_COMPLAINT = re.compile(
    r"input_handles\[(?P<input>\d+)\]: (?:"
    r"unmatched dtype, expected: \d+\(at::k(?P<dtype>\w+)\)"
    r"|unmatched dim value at (?P<dim>\d+), expected: (?P<static>-?\d+)"
    r"|dim value is too small at (?P<low_dim>\d+), expected it to be >= (?P<low>-?\d+)"
    r"|dim value is too large at (?P<high_dim>\d+), expected to be <= (?P<high>-?\d+)"
    r"|unmatched stride value at (?P<stride_dim>\d+), expected: (?P<stride>-?\d+)"
    r"|unmatched device type, expected: \d+\((?P<device>\w+)\))"
)


class ComplaintCaller:
    """Calls the model and returns its complaint as text; ``scratch`` receives stderr. Counts the calls."""

    def __init__(self, run: Callable[[list[Any]], Any], scratch: IO[bytes]) -> None:
        self.calls = 0
        self._run = run
        self._scratch = scratch

    def nothing(self) -> Any:
        """A stand-in without memory, of a dtype that no model computes with."""
        return torch.empty(0, dtype=torch.bits8, device="meta")

    def complaint(self, inputs: list[Any]) -> str:
        """The complaint about ``inputs``: the exception's text, and the output of the library on stderr.

        Before 2.13 the real text is on stderr only; it is caught there, so that it does not flood the child's log.
        """
        self.calls += 1
        message, stderr = "", os.dup(2)
        self._scratch.truncate(0)
        os.dup2(self._scratch.fileno(), 2)
        try:
            self._run(list(inputs))
        except RuntimeError as error:
            message = str(error)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        self._scratch.seek(0)
        return message + "\n" + self._scratch.read().decode(errors="replace")


class InputProbe:
    """Input ``index`` of ``count``; ``ready`` are real tensors for those before it."""

    def __init__(self, caller: ComplaintCaller, ready: list[Any], count: int, index: int) -> None:
        self.name: str | None = None
        self.complete = False
        self.stopped: str | None = None
        self._caller = caller
        self._ready = ready
        self._rest = [caller.nothing() for _ in range(count - index - 1)]
        self._index = index
        self._dtype = "float32"
        self._device: str | None = None
        self._sizes = [0] * _RANK
        self._strides = [0] * _RANK
        self._static: dict[int, int] = {}
        self._low: dict[int, int] = {}
        self._high: dict[int, int] = {}
        self._stride: dict[int, int] = {}

    def learn(self, *, only_dtype: bool) -> None:
        """Call the model until nothing but the device is wrong."""
        if only_dtype:
            self._take(self._complaint())
            self.stopped = "no device check"
            return
        self._settle("static", "low")
        for dim in range(_RANK):
            if dim not in self._static and self.stopped is None:
                self._find_upper_bound(dim)
        self._settle("stride")
        # A stride without a complaint is free, or the 0 of the stand-in: a call with another one shows which.
        silent = [dim for dim in range(self._rank()) if dim not in self._stride]
        if silent and self.stopped is None:
            for dim in silent:
                self._strides[dim] = 1
            self._settle("stride")
            for dim in silent:
                self._strides[dim] = self._stride.get(dim, 0)
        self.complete = self.stopped is None

    def _complaint(self) -> re.Match[str] | None:
        """The complaint about this input as it is now; None when it passed (the complaint is about the next one)."""
        dtype = getattr(torch, self._dtype)
        try:
            stand_in = torch.empty_strided(self._sizes, self._strides, dtype=dtype, device="meta")
        except RuntimeError as error:
            self.stopped = str(error).partition("\n")[0]
            return None
        text = self._caller.complaint([*self._ready, stand_in, *self._rest])
        found = _COMPLAINT.search(text)
        if found is None:
            self.stopped = "no known message: " + text.strip().partition("\n")[0][:200]
            return None
        return found if int(found["input"]) == self._index else None

    def _settle(self, *kinds: str) -> None:
        """Correct the input by complaints of these kinds (and about the dtype) until another one comes."""
        for _ in range(4 * _RANK):
            found = self._complaint()
            if found is None or not (found["dtype"] or any(found[kind] is not None for kind in kinds)):
                self._take_device(found)
                return
            self._take(found)

    def _take(self, found: re.Match[str] | None) -> None:
        if found is None:
            return
        if found["dtype"] is not None:
            self._dtype = SCALAR_NAMES.get(found["dtype"], found["dtype"].lower())
        elif found["static"] is not None:
            self._sizes[int(found["dim"])] = self._static[int(found["dim"])] = int(found["static"])
        elif found["low"] is not None:
            self._sizes[int(found["low_dim"])] = self._low[int(found["low_dim"])] = int(found["low"])
        elif found["stride"] is not None:
            self._strides[int(found["stride_dim"])] = self._stride[int(found["stride_dim"])] = int(found["stride"])
        self._take_device(found)

    def _take_device(self, found: re.Match[str] | None) -> None:
        if found is not None and found["device"] is not None:
            self._device = found["device"]

    def _find_upper_bound(self, dim: int) -> None:
        """Find the upper bound of ``dim`` with a size that no dim has; later dims are checked after it."""
        sizes, product = list(self._sizes), 1
        for size in sizes[:dim]:
            product *= max(size, 1)
        self._sizes[dim] = max(_SMALL_ENOUGH // product, sizes[dim] + 1)
        self._sizes[dim + 1 :] = [0] * (_RANK - dim - 1)
        found = self._complaint()
        self._sizes = sizes
        if found is None:
            return
        if found["high"] is not None and int(found["high_dim"]) == dim:
            self._high[dim] = int(found["high"])
        elif found["static"] is not None and int(found["dim"]) == dim:
            self._static[dim] = self._sizes[dim] = int(found["static"])

    def _rank(self) -> int:
        tables = (self._static, self._low, self._high, self._stride)
        return 1 + max((dim for table in tables for dim in table), default=-1)

    def describe(self) -> dict[str, Any]:
        """The result's entry; incomplete when a dim in the middle has no comparison: the last ones may be missing."""
        rank = self._rank()
        known = self._static.keys() | self._low.keys() | self._high.keys()
        dims = [
            {"static": self._static.get(dim), "min": self._low.get(dim), "max": self._high.get(dim)}
            for dim in range(rank)
        ]
        return {
            "name": self.name,
            "dtype": self._dtype,
            "dims": dims,
            "strides": [self._stride.get(dim) for dim in range(rank)],
            "device_type": self._device,
            "complete": self.complete and all(dim in known for dim in range(rank)),
        }

    def real(self, device: str) -> Any:
        """A tensor that passes: as small as the bounds allow; its memory is never touched."""
        rank = self._rank()
        sizes = [
            self._sizes[dim] if dim in self._static or dim in self._low else min(1, self._high.get(dim, 1))
            for dim in range(rank)
        ]
        where = self._device or device
        return torch.empty_strided(sizes, self._strides[:rank], dtype=getattr(torch, self._dtype), device=where)


_COUNT = re.compile(r"expected inputs vector size to be (\d+)")
_TOO_MANY = 4099
_MAX_CALLS = 20_000


def recover(payload: Run, channel: Channel) -> dict[str, Any]:
    """Probe the inputs of a package.

    Result: ``n_inputs``, ``n_outputs``, ``n_constants`` (null when unknown), ``call_spec`` (two texts or null),
    ``metadata``, ``inputs`` (``name``, ``dtype``, ``dims`` of ``static``/``min``/``max``, ``strides``, ``device_type``,
    ``complete``), ``constants`` (``name``, ``original_fqn``, ``dtype``, ``kind``, ``from_folded``, ``data_size``),
    ``calls`` and ``problems``. The result so far is sent before each input, so that it survives a crash.
    """
    os.environ[CHECK_INPUTS] = "1"
    confine_run(payload, channel)
    load_setup(payload, channel)
    channel.enter("load")
    path = channel.user_cwd / payload.package
    model = load_model(payload, path)
    library = path if payload.kind == "bare-so" else mapped_library()
    spec: list[Any] = []
    with suppress(RuntimeError):
        spec = list(model.loader.get_call_spec())
    known = len(spec) == 2 and all(isinstance(part, str) and part for part in spec)
    result: dict[str, Any] = {"problems": [], "inputs": [], "calls": 0}
    result.update(call_spec=spec if known else None, metadata=model.get_metadata())
    result.update(describe_library(library, payload.device, result["problems"]))
    channel.put(**result)
    channel.enter("probe")
    with tempfile.TemporaryFile() as scratch:
        caller = ComplaintCaller(model.loader.run, scratch)
        if result.get("n_inputs") is None:
            # The number of inputs from the complaint about far too many.
            found = _COUNT.search(caller.complaint([caller.nothing()] * _TOO_MANY))
            if found is None:
                result["problems"].append("the number of inputs could not be determined")
            result["n_inputs"] = int(found[1]) if found is not None else None
        if library_contains(library, CHECK_INPUTS.encode()):
            guarded = library_contains(library, b"unmatched device type")
            _probe_inputs(caller, result, channel, payload, guarded=guarded)
        else:
            result["problems"].append("the package was built without input checks, so its inputs could not be probed")
            # Nothing is known of them but their names.
            result["inputs"] = [{"name": name, "dims": [], "strides": []} for name in result.get("names") or ()]
        result["calls"] = caller.calls
    result.pop("names", None)
    return result


def _probe_inputs(
    caller: ComplaintCaller, result: dict[str, Any], channel: Channel, payload: Run, *, guarded: bool
) -> None:
    count = result["n_inputs"] or 0
    names = result.get("names") or []
    ready: list[Any] = []
    for index in range(count):
        channel.put(**{**result, "n_inputs": count})
        probe = InputProbe(caller, ready, count, index)
        last_unguarded = not guarded and index == count - 1
        probe.learn(only_dtype=last_unguarded)
        if index < len(names):
            probe.name = names[index]
        result["inputs"].append(probe.describe())
        if last_unguarded:
            result["problems"].append(f"input {index} has no device check: only its dtype was probed")
        if not probe.complete or caller.calls > _MAX_CALLS:
            result["problems"].append(f"probing stopped at input {index}: {probe.stopped or 'too many calls'}")
            result["inputs"] += [{"name": name, "dims": [], "strides": []} for name in names[index + 1 :]]
            return
        if index < count - 1:
            ready.append(probe.real(payload.device))
