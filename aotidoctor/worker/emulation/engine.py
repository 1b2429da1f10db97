"""The launches of a replay: what the wrapper says of each kernel, and the kernels that were built so far."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.arithmetic import Unknown, compute
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.lanes.kernel_build import build
from aotidoctor.worker.emulation.lanes.kernel_text import KernelText, Refused, read_kernel
from aotidoctor.worker.emulation.lanes.launch import Launch, TooLong
from aotidoctor.worker.emulation.lanes.libdevice import Libdevice
from aotidoctor.worker.emulation.look import in_full, look
from aotidoctor.worker.emulation.storage import Tensor
from aotidoctor.worker.emulation.variables import CannotError
from aotidoctor.worker.emulation.wrapper import Replay

_FUNCTION = re.compile(r"^static (?:__attribute__\(\(noinline\)\)|inline)? ?void call_(\w+)\(", re.MULTILINE)
_PARAMETER = re.compile(r"^[ \t]*(?:const )?([\w:]+)(?:<[^>]*>)?&? (\w+),?$", re.MULTILINE)
_SIZE = re.compile(r"(?:uint32_t|int64_t|int32_t|int) (\w+) = ([^\n;]{1,400});")
_BLOCK = re.compile(r"\(?(\w)numel \+ \(?\(?(\d+) ?- ?1\)\)?\)? ?/ ?\(?(\d+)\)?")
_WARPS = re.compile(r"launchKernel\(\w+\.\w+, grid_0, grid_1, grid_2, (\d{1,4}),")
_OWN = ("device_idx_", "stream_", "kernels_", "cubin_dir_")


@dataclass(slots=True, kw_only=True)
class Function:
    """A ``call_<kernel>`` function: parameters in order, the comment with the source, and the statements for sizes."""

    name: str
    parameters: tuple[str, ...]
    comment: str
    line: int
    sizes: tuple[tuple[str, str], ...]
    blocks: Mapping[str, int]
    warps: int | None


@dataclass(slots=True, kw_only=True)
class Engine:
    """Launches, in order, with the kernels that were built so far; ``named`` ones are carried out in full."""

    functions: Mapping[str, Function]
    found: Found
    channel: Channel
    seconds: float
    deadline: float
    number: int = 0
    lanes: int = 0
    named: frozenset[str] = frozenset()
    in_full: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, tuple[KernelText, Any] | Refused] = field(default_factory=dict)

    def launch(self, replay: Replay, name: str, texts: list[str], line: int) -> None:
        """Carry out one call of a kernel. Raises ``CannotError``."""
        self.number += 1
        entry: dict[str, Any] = {"number": self.number, "kernel": name, "line": line, "state": "skipped"}
        entry |= {"origins": list(replay.origins[0])}
        self.found.launches.append(entry)
        function = self.functions.get(name)
        if function is None:
            raise CannotError(f"the package has no function call_{name}")
        if time.monotonic() > self.deadline:
            raise CannotError("the time for the emulation is spent")
        text, built = self._kernel(function)
        arguments = self._arguments(replay, function, text, texts)
        names = {key: value for key, value in arguments.items() if isinstance(value, int | float)}
        grid = self._grid(function, names)
        entry |= {"grid": list(grid), "blocks": dict(function.blocks), "numbers": names}
        if 0 in grid:
            entry["state"] = "empty"
            return
        for value in arguments.values():
            if isinstance(value, Tensor) and not value.storage.known and value.name:
                entry["unknown"] = [*entry.get("unknown", []), value.name]
        if entry.get("unknown"):
            raise CannotError(f"{', '.join(entry['unknown'])} is not known: an earlier statement was not executed")
        started = time.monotonic()
        before = len(self.found.findings)
        launch = Launch(
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
        except TooLong as error:
            raise CannotError(f"{name} did not end within {launch.seconds:.3g} s") from error
        except CannotError:
            raise
        except Exception as error:
            said = (str(error).strip().splitlines() or [""])[-1]
            raise CannotError(f"{name} in the interpreter: {type(error).__name__}: {said}"[:400]) from error
        entry |= {"state": "done", "seconds": round(time.monotonic() - started, 4)}
        entry |= {"findings": len(self.found.findings) - before}

    def _followed(self, replay: Replay, launch: Launch, name: str, parameters: tuple[str, ...]) -> str:
        """Carry it out, and keep what it reads and writes where that is asked for; the way that it went."""
        if replay.followed is None:
            return self._carry_out(replay, launch, name)
        given = [(one, at, launch.arguments.get(one)) for at, one in enumerate(parameters)]
        places = [(one, at, value) for one, at, value in given if isinstance(value, Tensor)]
        # The pointers of a user's kernel do not tell by their names what they are for.
        updates = "tl.atomic_" in launch.kernel.text
        replay.followed.begin(name, [one for one in places if updates or not one[0].startswith("out_ptr")])
        way = self._carry_out(replay, launch, name)
        replay.followed.end([one for one in places if not one[0].startswith("in_ptr")])
        return way

    def _carry_out(self, replay: Replay, launch: Launch, name: str) -> str:
        """By the quick way where that is asked for and the kernel lets it, else in full; which it was."""
        if replay.pending is None:
            launch.run()
            return "full"
        if self.named & {name, launch.kernel.name}:
            in_full(launch, replay.pending)
            return "full"
        looked = look(launch, replay.pending)
        self.lanes += looked.lanes
        if looked.why is not None:
            self.in_full.setdefault(launch.kernel.name, looked.why)
        return "quick" if looked.why is None else "full"

    def _kernel(self, function: Function) -> tuple[KernelText, Any]:
        known = self.kernels.get(function.name)
        if known is None:
            try:
                grid = tuple(text for name, text in function.sizes if name.startswith("grid_"))
                parsed = read_kernel(function.name, function.comment, function.line, grid, function.warps)
                known = parsed, build(parsed, self._folder(), Libdevice())
            except Refused as refused:
                known = refused
            except Exception as error:
                known = Refused(f"its source could not be executed: {type(error).__name__}: {error}"[:300])
            self.kernels[function.name] = known
        if isinstance(known, Refused):
            raise CannotError(f"{function.name}: {known}")
        return known

    def _folder(self) -> Path:
        folder = self.channel.run_dir / "kernels"
        folder.mkdir(exist_ok=True)
        return folder

    def _arguments(
        self, replay: Replay, function: Function, text: KernelText, texts: list[str]
    ) -> dict[str, Tensor | int | float]:
        """By the kernel's own names."""
        made: dict[str, Tensor | int | float] = {}
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
                raise CannotError(f"{function.name}: the wrapper does not show what {name} is")
            made[name] = value
        return made

    def _grid(self, function: Function, names: Mapping[str, int | float]) -> tuple[int, int, int]:
        known: dict[str, Any] = dict(names)
        for name, text in function.sizes:
            with suppress(Unknown):
                known[name] = compute(text, known)
        found = [known.get(f"grid_{at}") for at in range(3)]
        if any(not isinstance(one, int) for one in found):
            raise CannotError(f"{function.name}: its grid is not known")
        return tuple(found)  # type: ignore[return-value]


def functions(text: str) -> dict[str, Function]:
    """The ``call_<kernel>`` functions of the wrapper by the names of their kernels."""
    starts = list(_FUNCTION.finditer(text))
    made: dict[str, Function] = {}
    line, counted = 1, 0
    for at, start in enumerate(starts):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        end = starts[at + 1].start() if at + 1 < len(starts) else text.find("\n}", start.end()) + 2
        made[start[1]] = _function(start[1], text[start.end() : end], line)
    return made


def _function(name: str, text: str, line: int) -> Function:
    opening = text.find("{")
    opened = text.find("/*", opening)
    closed = text.find("*/", opened) if opened >= 0 else -1
    code = text[closed + 2 :] if closed >= 0 else text[opening:]
    sizes = tuple((found[1], found[2]) for found in _SIZE.finditer(code))
    blocks = {found[1]: int(found[3]) for _, size in sizes for found in _BLOCK.finditer(size) if found[2] == found[3]}
    parameters = tuple(found[2] for found in _PARAMETER.finditer(text[:opening]))
    return Function(
        name=name,
        parameters=parameters,
        comment=text[opened:closed] if closed >= 0 else "",
        line=line + text.count("\n", 0, max(opened, 0)),
        sizes=sizes,
        blocks=blocks,
        warps=int(warps[1]) if (warps := _WARPS.search(code)) is not None else None,
    )
