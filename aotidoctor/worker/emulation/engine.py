"""Carry out the launches of a replay: by the quick way, and in full where that is not enough.

The wrapper has the arguments of each kernel; kernels are built once, for all of their launches.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from aotidoctor.kernels.expressions import UnreadableExpressionError
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.address_check import MOST_GUILTY, AddressCheck, LaunchAccesses
from aotidoctor.worker.emulation.index_nodes import Unsliceable
from aotidoctor.worker.emulation.interpreter import Libdevice
from aotidoctor.worker.emulation.kernel_grammar import RefusedKernel
from aotidoctor.worker.emulation.kernel_source import KernelText, build_kernel, read_kernel
from aotidoctor.worker.emulation.launch import LaneLaunch, LaunchTooLongError, launch_alarm
from aotidoctor.worker.emulation.storage import (
    EmulatedStorage,
    EmulationFindings,
    PendingStep,
    PendingSteps,
    WrapperTensor,
)
from aotidoctor.worker.emulation.wrapper import CannotReplayError, Replay, compute_size

# One launch. The programs on either side of a guilty one that are carried out again with it.
_AROUND = 1


def check_launch(launch: LaneLaunch, pending: PendingSteps) -> tuple[int, str | None]:
    """Check a launch by the quick way, and carry it out in full where that is not enough.

    Its accesses times its lanes, and why it was carried out in full (None: it was not).

    Raises ``LaunchTooLongError``, and whatever the interpreter raises.
    """
    started = time.monotonic()
    quick = AddressCheck(launch=launch, fill=lambda storage: pending.fill([storage]))
    marks = {id(one): (one, None if one.written is None else one.written.copy()) for one in _storages(launch)}
    try:
        with launch_alarm(launch.seconds):
            seen = quick.look()
        why = seen.unclear or (None if _is_so(launch, seen) else "findings must be examined in full")
    except Unsliceable as error:
        seen, why = quick.seen, str(error)
    except (LaunchTooLongError, CannotReplayError):
        raise
    except Exception as error:
        # A fault of the quick way costs no more than the time of the full way.
        seen, why = quick.seen, f"{type(error).__name__}: {error}"[:200]
    if why is None:
        pending.add(_step(launch, seen))
        for one in seen.found:
            launch.found.add(one.pop("kind"), **one)
        return seen.lanes, None
    for storage, written in marks.values():
        storage.written = written
    launch.seconds -= time.monotonic() - started
    launch_in_full(launch, pending)
    return seen.lanes, why


def launch_in_full(launch: LaneLaunch, pending: PendingSteps) -> None:
    """Carry a launch out with the values of its arguments. Raises what the interpreter raises."""
    pending.fill(_storages(launch))
    launch.run()


def _storages(launch: LaneLaunch) -> list[EmulatedStorage]:
    return [one.storage for one in launch.arguments.values() if isinstance(one, WrapperTensor)]


def _step(launch: LaneLaunch, seen: LaunchAccesses) -> PendingStep:
    """The launch as a deferred step, for its values alone."""

    def of(names: set[str]) -> tuple[EmulatedStorage, ...]:
        given = [launch.arguments.get(name) for name in sorted(names)]
        return tuple(one.storage for one in given if isinstance(one, WrapperTensor))

    later = replace(launch, found=EmulationFindings())

    def carry_out() -> None:
        # Memory that was freed since is used once more.
        storages = [(one, one.live, one.written) for one in _storages(later)]
        for storage, _, _ in storages:
            storage.live, storage.written = True, None
        try:
            later.run()
        finally:
            for storage, live, written in storages:
                storage.live, storage.written = live, written

    return PendingStep(carry_out=carry_out, reads=of(seen.reads), writes=of(seen.writes))


def _is_so(launch: LaneLaunch, seen: LaunchAccesses) -> bool:
    """Whether the interpreter finds the same in the guilty programs; the findings get the lanes that it reports."""
    if not seen.found:
        return True
    # The first of the programs that were found, and their neighbours.
    chosen = sorted(seen.programs)[:MOST_GUILTY]
    near = {at for one in chosen for at in range(one - _AROUND, one + _AROUND + 1) if 0 <= at < prod(launch.grid)}
    again = replace(launch, found=EmulationFindings(), only=sorted(near), dry=True)
    again.run()
    repeated = {(one["kind"], one.get("line"), one.get("argument")): one for one in again.found.findings}
    for one in seen.found:
        same = repeated.get((one["kind"], one.get("line"), one.get("argument")))
        if same is None:
            return False
        if same.get("program") == one.get("program"):
            one["lane"] = same.get("lane")
    return True


# All launches of a replay.
_FUNCTION = re.compile(r"^static (?:__attribute__\(\(noinline\)\)|inline)? ?void call_(\w+)\(", re.MULTILINE)
_PARAMETER = re.compile(r"^[ \t]*(?:const )?([\w:]+)(?:<[^>]*>)?&? (\w+),?$", re.MULTILINE)
_SIZE = re.compile(r"(?:uint32_t|int64_t|int32_t|int) (\w+) = ([^\n;]{1,400});")
_BLOCK = re.compile(r"\(?(\w)numel \+ \(?\(?(\d+) ?- ?1\)\)?\)? ?/ ?\(?(\d+)\)?")
_WARPS = re.compile(r"launchKernel\(\w+\.\w+, grid_0, grid_1, grid_2, (\d{1,4}),")
_OWN = ("device_idx_", "stream_", "kernels_", "cubin_dir_")


@dataclass(slots=True, kw_only=True)
class KernelFunction:
    """A ``call_<kernel>`` function: parameters in order, the comment with the source, and the statements for sizes."""

    name: str
    parameters: tuple[str, ...]
    comment: str
    line: int
    sizes: tuple[tuple[str, str], ...]
    blocks: Mapping[str, int]
    warps: int | None


@dataclass(slots=True, kw_only=True)
class EmulationEngine:
    """Launches, in order, with the kernels that were built so far; ``named`` ones are carried out in full."""

    functions: Mapping[str, KernelFunction]
    found: EmulationFindings
    channel: Channel
    seconds: float
    deadline: float
    number: int = 0
    lanes: int = 0
    named: frozenset[str] = frozenset()
    in_full: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, tuple[KernelText, Any] | RefusedKernel] = field(default_factory=dict)

    def launch(self, replay: Replay, name: str, texts: list[str], line: int) -> None:
        """Carry out one call of a kernel. Raises ``CannotReplayError``."""
        self.number += 1
        entry: dict[str, Any] = {"number": self.number, "kernel": name, "line": line, "state": "skipped"}
        entry |= {"origins": list(replay.origins[0])}
        self.found.launches.append(entry)
        function = self.functions.get(name)
        if function is None:
            raise CannotReplayError(f"the package has no function call_{name}")
        if time.monotonic() > self.deadline:
            raise CannotReplayError("the time for the emulation is spent")
        text, built = self._kernel(function)
        arguments = self._arguments(replay, function, text, texts)
        names = {key: value for key, value in arguments.items() if isinstance(value, int | float)}
        grid = self._grid(function, names)
        entry |= {"grid": list(grid), "blocks": dict(function.blocks), "numbers": names}
        if 0 in grid:
            entry["state"] = "empty"
            return
        for value in arguments.values():
            if isinstance(value, WrapperTensor) and not value.storage.known and value.name:
                entry["unknown"] = [*entry.get("unknown", []), value.name]
        if entry.get("unknown"):
            raise CannotReplayError(
                f"{', '.join(entry['unknown'])} is not known: an earlier statement was not executed"
            )
        started = time.monotonic()
        before = len(self.found.findings)
        launch = LaneLaunch(
            number=self.number,
            kernel=text,
            function=built,
            arguments=arguments,
            grid=grid,
            blocks=function.blocks,
            line=line,
            found=self.found,
            seconds=min(self.seconds, self.deadline - started),
        )
        try:
            entry["way"] = self._followed(replay, launch, name, function.parameters)
        except LaunchTooLongError as error:
            raise CannotReplayError(f"{name} did not end within {launch.seconds:.3g} s") from error
        except CannotReplayError:
            raise
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[-1]
            raise CannotReplayError(f"{name} in the interpreter: {type(error).__name__}: {reason}"[:400]) from error
        entry |= {"state": "done", "seconds": round(time.monotonic() - started, 4)}
        entry |= {"findings": len(self.found.findings) - before}

    def _followed(self, replay: Replay, launch: LaneLaunch, name: str, parameters: tuple[str, ...]) -> str:
        """Carry it out, and record what it reads and writes where ``replay`` follows that; the way that it went."""
        if replay.followed is None:
            return self._carry_out(replay, launch, name)
        given = [(one, at, launch.arguments.get(one)) for at, one in enumerate(parameters)]
        places = [(one, at, value) for one, at, value in given if isinstance(value, WrapperTensor)]
        # The pointers of a user's kernel have names that do not show whether it reads or writes them.
        updates = "tl.atomic_" in launch.kernel.text
        replay.followed.begin(name, [one for one in places if updates or not one[0].startswith("out_ptr")])
        way = self._carry_out(replay, launch, name)
        replay.followed.end([one for one in places if not one[0].startswith("in_ptr")])
        return way

    def _carry_out(self, replay: Replay, launch: LaneLaunch, name: str) -> str:
        """Carry it out by the quick way where ``replay`` defers steps and the kernel allows it, else in full."""
        if replay.pending is None:
            launch.run()
            return "full"
        if self.named & {name, launch.kernel.name}:
            launch_in_full(launch, replay.pending)
            return "full"
        lanes, why = check_launch(launch, replay.pending)
        self.lanes += lanes
        if why is None:
            return "quick"
        self.in_full.setdefault(launch.kernel.name, why)
        return "full"

    def _kernel(self, function: KernelFunction) -> tuple[KernelText, Any]:
        known = self.kernels.get(function.name)
        if known is None:
            try:
                grid = tuple(text for name, text in function.sizes if name.startswith("grid_"))
                parsed = read_kernel(function.name, function.comment, function.line, grid, function.warps)
                known = parsed, build_kernel(parsed, Libdevice())
            except RefusedKernel as refused:
                known = refused
            except Exception as error:
                known = RefusedKernel(f"its source could not be executed: {type(error).__name__}: {error}"[:300])
            self.kernels[function.name] = known
        if isinstance(known, RefusedKernel):
            raise CannotReplayError(f"{function.name}: {known}")
        return known

    def _arguments(
        self, replay: Replay, function: KernelFunction, text: KernelText, texts: list[str]
    ) -> dict[str, WrapperTensor | int | float]:
        """The arguments by the kernel's own names."""
        made: dict[str, WrapperTensor | int | float] = {}
        for name, given in zip(function.parameters, texts, strict=False):
            kind = text.signature.get(name, "")
            if kind.startswith("*"):
                made[name] = replay.tensor(given)
            elif name not in _OWN:
                made[name] = replay.number(given)
        missing = [name for name, kind in text.signature.items() if kind != "constexpr" and name not in made]
        for name in missing:
            value = text.constants.get(name)
            if not isinstance(value, int | float):
                raise CannotReplayError(f"{function.name}: the wrapper does not show what {name} is")
            made[name] = value
        return made

    def _grid(self, function: KernelFunction, names: Mapping[str, int | float]) -> tuple[int, int, int]:
        known: dict[str, Any] = dict(names)
        for name, text in function.sizes:
            with suppress(UnreadableExpressionError):
                known[name] = compute_size(text, known)
        found = [known.get(f"grid_{at}") for at in range(3)]
        if any(not isinstance(one, int) for one in found):
            raise CannotReplayError(f"{function.name}: its grid is not known")
        return tuple(found)  # type: ignore[return-value]


def kernel_functions(text: str) -> dict[str, KernelFunction]:
    """The ``call_<kernel>`` functions of the wrapper by the names of their kernels."""
    starts = list(_FUNCTION.finditer(text))
    made: dict[str, KernelFunction] = {}
    line, counted = 1, 0
    for at, start in enumerate(starts):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        end = starts[at + 1].start() if at + 1 < len(starts) else text.find("\n}", start.end()) + 2
        whole = text[start.end() : end]
        opening = whole.find("{")
        opened = whole.find("/*", opening)
        closed = whole.find("*/", opened) if opened >= 0 else -1
        code = whole[closed + 2 :] if closed >= 0 else whole[opening:]
        sizes = tuple((found[1], found[2]) for found in _SIZE.finditer(code))
        blocks = [found for _, size in sizes for found in _BLOCK.finditer(size) if found[2] == found[3]]
        made[start[1]] = KernelFunction(
            name=start[1],
            parameters=tuple(found[2] for found in _PARAMETER.finditer(whole[:opening])),
            comment=whole[opened:closed] if closed >= 0 else "",
            line=line + whole.count("\n", 0, max(opened, 0)),
            sizes=sizes,
            blocks={found[1]: int(found[3]) for found in blocks},
            warps=int(warps[1]) if (warps := _WARPS.search(code)) is not None else None,
        )
    return made
