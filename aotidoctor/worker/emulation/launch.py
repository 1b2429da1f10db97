"""Carry out one launch of a Triton kernel, lane by lane, in Triton's interpreter.

The grid is cut into blocks of lanes: as launched, or with as many programs in one as fit. A kernel whose index is
``program_id * BLOCK + arange(BLOCK)`` does the same with a block of several programs' lanes: exactly the lanes that
were launched, neither fewer nor more, each with the program and lane that it has on a GPU. The sizes of blocks are
fixed in the text, as launched, or, along a reduction, as long as that is.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.checked_memory import FirstNan, LaunchMemory, Races
from aotidoctor.worker.emulation.interpreter import CurrentLaunch, current_line
from aotidoctor.worker.emulation.kernel_source import SIZES, DtypeName, KernelText
from aotidoctor.worker.emulation.storage import EmulationFindings, LaneFindings, Pointer, WrapperTensor, first_lane

# Blocks of the grid.
LETTERS = ("z", "y", "x")
MOST_LANES = 1 << 20


@record
class ProgramBlock:
    """A run of programs that are executed as one: the first on each tiled axis, and how many."""

    start: Mapping[str, int]
    count: Mapping[str, int]


@record
class BlockTiling:
    """The tile of a kernel: ``sizes`` of the axes that are tiled over programs (z, y, x), ``reduced`` of the others.

    ``axes`` maps a letter to its axis of the grid. Empty for a kernel that is run as it was launched.
    """

    sizes: Mapping[str, int]
    axes: Mapping[str, int]
    reduced: tuple[int, ...]
    grid: tuple[int, int, int]

    @property
    def letters(self) -> tuple[str, ...]:
        """The tiled axes in the order of the dims of a block."""
        return tuple(letter for letter in LETTERS if letter in self.sizes)

    def blocks(self) -> Iterator[ProgramBlock]:
        """All blocks of the grid."""
        room = MOST_LANES
        for size in (*self.sizes.values(), *self.reduced):
            room //= max(size, 1)
        runs: dict[str, list[tuple[int, int]]] = {}
        for letter in reversed(self.letters):
            programs = self.grid[self.axes[letter]]
            most = max(min(room, programs), 1)
            runs[letter] = list(_runs(programs, most))
            room //= max(count for _, count in runs[letter])
        for several in product(*(runs[letter] for letter in self.letters)):
            pairs = dict(zip(self.letters, several, strict=True))
            yield ProgramBlock(
                start={letter: start for letter, (start, _) in pairs.items()},
                count={letter: count for letter, (_, count) in pairs.items()},
            )

    def rank(self) -> int:
        """Dims of a whole block."""
        return len(self.sizes) + len(self.reduced)

    def programs(self, block: ProgramBlock, shape: tuple[int, ...]) -> Any:
        """The number of the program of each lane of an array of this shape; None where all have the same lanes."""
        several = [letter for letter in self.letters if block.count[letter] > 1]
        if len(shape) != self.rank():
            return None if several else self.number(block.start)
        total: Any = np.zeros((1,) * len(shape), dtype=np.int64)
        for at, letter in enumerate(self.letters):
            if shape[at] != self.sizes[letter] * block.count[letter]:
                if letter in several:
                    return None
                places: Any = np.array([block.start[letter]])
            else:
                places = block.start[letter] + np.arange(shape[at]) // self.sizes[letter]
            total = total + places.reshape([-1 if dim == at else 1 for dim in range(len(shape))]) * self.weight(letter)
        return total

    def weight(self, letter: str) -> int:
        """What a step along this axis adds to the number of the program."""
        return (1, self.grid[0], self.grid[0] * self.grid[1])[self.axes[letter]]

    def number(self, start: Mapping[str, int]) -> int:
        """The number of a program by its place."""
        return sum(start[letter] * self.weight(letter) for letter in self.letters)

    def place(
        self, block: ProgramBlock, index: tuple[int, ...], shape: tuple[int, ...]
    ) -> tuple[list[int] | None, int | None]:
        """``(program, lane)`` of the lane at ``index`` of an array of this shape, as on a GPU; None where unclear."""
        program = [0, 0, 0]
        if len(shape) != self.rank():
            if any(count > 1 for count in block.count.values()):
                return None, None
            for letter in self.letters:
                program[self.axes[letter]] = block.start[letter]
            return program, 0
        lane = 0
        for at, letter in enumerate(self.letters):
            size = self.sizes[letter]
            whole = shape[at] == size * block.count[letter]
            program[self.axes[letter]] = block.start[letter] + (index[at] // size if whole else 0)
            lane = lane * size + (index[at] % size if whole else 0)
        for at, size in enumerate(self.reduced):
            lane = lane * size + index[len(self.letters) + at]
        return program, lane


def _runs(programs: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs that cover all programs, each beginning at a multiple of its length."""
    if most >= programs:
        yield 0, programs
        return
    count = 1 << (most.bit_length() - 1)
    start = 0
    while start < programs:
        while count > programs - start:
            count //= 2
        yield start, count
        start += count


# Sizes of blocks. The block along a looped reduction: it makes no difference to the result.
LONGEST_LOOP = 4096
# Programs of other kernels work together over the grid, and are run one by one.
_PLAIN = ("Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow")


@record
class BlockSizes:
    """Sizes of the blocks of one launch with ``arguments``; ``launched`` are the wrapper's (``{"x": 256}``)."""

    kernel: KernelText
    arguments: Mapping[str, Any]
    launched: Mapping[str, int]

    def of(self, name: str, longest: int) -> int:
        """A block by the name of its parameter; ``longest`` is the most along a looped reduction."""
        if not name.startswith("R"):
            return self.launched.get(name[0].lower(), 1)
        fixed = self.fixed(name, 0)
        if fixed:
            return fixed
        number = f"{name.partition('_')[0].lower()}_numel"
        length = self.arguments.get(number)
        if length is None:
            found = re.search(rf"^\s*{number} = (\d+)", self.kernel.text, re.MULTILINE)
            length = int(found[1]) if found is not None else 64
        return min(1 << max(int(length) - 1, 0).bit_length(), longest)

    def fixed(self, name: str, otherwise: int = 1) -> int:
        """A block size that the text fixes: ``R0_BLOCK: tl.constexpr = 64``."""
        found = re.search(rf"^\s*{name}: tl\.constexpr = (\d+)", self.kernel.text, re.MULTILINE)
        return int(found[1]) if found is not None else otherwise

    def tiling(self, parameters: list[str], given: dict[str, Any], grid: tuple[int, int, int]) -> BlockTiling | None:
        """How the grid may be cut; None for a kernel that is run program after program.

        ``given`` gets the blocks that the launch leaves open.
        """
        for name in parameters:
            # A block of the user's own kernel may be of any size: where the package does not state it, it stays open.
            if name.endswith("BLOCK") and name not in given and not self.kernel.custom:
                given[name] = self.of(name, LONGEST_LOOP)
        tiles = self.kernel.tiles
        if (
            not tiles
            or self.kernel.grid_type not in _PLAIN
            or self.kernel.template
            or (grid[2] > 1 and "z" not in tiles)
        ):
            return None
        reduced = [name for name in ("R0_BLOCK", "R1_BLOCK") if name in parameters or self.fixed(name, 0)]
        names = {letter: f"{letter.upper()}BLOCK" for letter in tiles}
        return BlockTiling(
            sizes={letter: int(given.get(name, self.fixed(name))) for letter, name in names.items()},
            axes=tiles,
            reduced=tuple(self.of(name, LONGEST_LOOP) for name in reduced),
            grid=grid,
        )


class LaunchTooLongError(Exception):
    """The launch takes longer than its time limit."""


@dataclass(slots=True, kw_only=True)
class LaneLaunch:
    """A kernel with the arguments of one call.

    ``grid`` and ``blocks`` (``{"x": 256}``) are the wrapper's, ``number`` counts launches from 1, ``line`` is the
    wrapper's. ``seconds`` is its time limit. ``only`` are the numbers of the programs to run, None for all; a ``dry``
    launch writes nothing.
    """

    number: int
    kernel: KernelText
    function: Any
    arguments: Mapping[str, Any]
    grid: tuple[int, int, int]
    blocks: Mapping[str, int]
    line: int
    found: EmulationFindings
    seconds: float = 60.0
    only: Sequence[int] | None = None
    dry: bool = False
    block: ProgramBlock = field(default_factory=lambda: ProgramBlock(start={}, count={}))
    program: tuple[int, int, int] = (0, 0, 0)
    tiling: BlockTiling | None = None

    @property
    def sizes(self) -> BlockSizes:
        """The sizes of its blocks."""
        return BlockSizes(kernel=self.kernel, arguments=self.arguments, launched=self.blocks)

    def run(self) -> None:
        """Run it. Raises ``LaunchTooLongError``, and whatever the interpreter raises."""
        from triton.runtime import interpreter

        pointers = self.pointers()
        given = self._arguments(pointers)
        self.tiling = self.sizes.tiling(self.function.arg_names, given, self.grid)
        written = (one.tensor for name, one in pointers.items() if not name.startswith("in_ptr"))
        findings = LaneFindings(found=self.found, place=self._place)
        shared = frozenset(id(tensor.storage) for tensor in written if tensor is not None)
        memory = LaunchMemory(
            pointers={one.number: one for one in pointers.values()},
            findings=findings,
            races=Races(findings=findings, programs=self._programs, shared=shared),
            later=self._later,
            dry=self.dry,
        )
        if self.kernel.waits:
            self.found.skip(
                f"programs of {self.kernel.name} that write to one address", "they may wait for one another by atomics"
            )
        odd = FirstNan(place=self._place)
        CurrentLaunch.memory = memory
        CurrentLaunch.on_overflow, CurrentLaunch.on_values = self._on_overflow, odd.see
        CurrentLaunch.on_assert = lambda wrong, message: self.found.add(
            "device-assert",
            message=str(message)[:300],
            count=int(wrong.sum()),
            **self._place(first_lane(wrong), wrong.shape),
        )
        interpreter.interpreter_builder.set_grid_dim(*self.grid)
        function = self.function.rewrite()
        try:
            with launch_alarm(self.seconds):
                for values in self._parts(given, interpreter.interpreter_builder):
                    function(**values)
        finally:
            CurrentLaunch.memory = None
            for kind, facts in odd.findings().items():
                self.found.add(kind, **facts)

    def prepare(self) -> None:
        """Find out how the grid may be cut, without running anything."""
        self.tiling = self.sizes.tiling(self.function.arg_names, self._arguments(self.pointers()), self.grid)

    def pointers(self) -> dict[str, Pointer]:
        """Its arguments that are pointers, by the kernel's names."""
        made: dict[str, Pointer] = {}
        for name, kind in self.kernel.signature.items():
            if kind.startswith("*"):
                tensor = self.arguments.get(name)
                made[name] = Pointer(
                    name=name,
                    number=len(made) + 1,
                    tensor=tensor if isinstance(tensor, WrapperTensor) else None,
                    itemsize=SIZES.get(kind[1:], 1),
                    whole=self.kernel.custom,
                )
        return made

    def _arguments(self, pointers: Mapping[str, Pointer]) -> dict[str, Any]:
        """The arguments as the interpreter takes them, without the block sizes."""
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle, _get_np_dtype

        made: dict[str, Any] = {}
        for name, kind in self.kernel.signature.items():
            if kind == "constexpr":
                if name in self.kernel.constants:
                    value = self.kernel.constants[name]
                    made[name] = tl.str_to_ty(value, None) if isinstance(value, DtypeName) else value
            elif kind.startswith("*"):
                dtype = tl.str_to_ty(kind, None)
                data = np.array([pointers[name].address], dtype=np.uint64)
                made[name] = tl.tensor(TensorHandle(data, dtype, {"argument": pointers[name].number}), dtype)
            else:
                dtype = tl.str_to_ty(kind, None)
                data = np.array([self.arguments[name]]).astype(_get_np_dtype(dtype))
                made[name] = tl.tensor(TensorHandle(data, dtype), dtype)
        return made

    def _parts(self, given: dict[str, Any], builder: Any) -> Iterator[dict[str, Any]]:
        """The arguments of each call of the kernel's function."""
        if self.tiling is None:
            for number in range(prod(self.grid)) if self.only is None else self.only:
                self.program = self.place_of(number)
                builder.set_grid_idx(*self.program)
                yield given
            return
        for block in self.tiling.blocks() if self.only is None else map(self.block_of, self.only):
            self.block = block
            place = [0, 0, 0]
            values = dict(given)
            for letter, size in self.tiling.sizes.items():
                count = block.count[letter]
                place[self.tiling.axes[letter]] = block.start[letter] // count
                if f"{letter.upper()}BLOCK" in values:
                    values[f"{letter.upper()}BLOCK"] = size * count
            builder.set_grid_idx(*place)
            yield values

    def place_of(self, program: int) -> tuple[int, int, int]:
        """The place of a program in the grid by its number, x fastest."""
        return (
            program % self.grid[0],
            program // self.grid[0] % self.grid[1],
            program // (self.grid[0] * self.grid[1]),
        )

    def block_of(self, program: int) -> ProgramBlock:
        """A program alone, as a block of the tiling."""
        place = self.place_of(program)
        axes = self.tiling.axes if self.tiling is not None else {}
        return ProgramBlock(start={letter: place[axis] for letter, axis in axes.items()}, count=dict.fromkeys(axes, 1))

    def placed(self, program: int, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Program and lane of the element of a block of this shape."""
        return self._lane(self.block_of(program), self.place_of(program), index, shape)

    def _programs(self, shape: tuple[int, ...]) -> Any:
        if self.kernel.waits:
            return None
        if self.tiling is None:
            return self.program[0] + self.grid[0] * (self.program[1] + self.grid[1] * self.program[2])
        return self.tiling.programs(self.block, shape)

    def _later(self, shape: tuple[int, ...]) -> Callable[[], Any]:
        """The result of ``_programs`` for the block that runs now, to be computed when it is needed."""
        if self.tiling is None:
            number = self._programs(shape)
            return lambda: number
        return partial(self.tiling.programs, self.block, shape)

    def _place(self, index: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Where a lane is: launch, kernel, line of its text, program and lane."""
        return {**self.here(), **self._lane(self.block, self.program, index, shape)}

    def _lane(
        self, block: ProgramBlock, program: tuple[int, int, int], index: tuple[int, ...], shape: tuple[int, ...]
    ) -> dict[str, Any]:
        """Program and lane in ``block`` where the grid is cut, else in the ``program`` that runs alone."""
        if self.tiling is not None:
            place, lane = self.tiling.place(block, index, shape)
            return {"program": place, "lane": lane}
        alone = 0
        for at, size in zip(index, shape, strict=True):
            alone = alone * size + at
        return {"program": list(program), "lane": alone}

    def here(self, line: int | None = None) -> dict[str, Any]:
        """Facts about the launch and a line of the text: the line that runs, where none is given."""
        line = line or current_line(self.function.fn.__code__.co_filename)
        lines = self.kernel.text.split("\n")
        return {
            "launch": self.number,
            "kernel": self.kernel.name,
            "grid": list(self.grid),
            "line": line,
            "wrapper_line": self.kernel.first_line + line - 1 if line is not None else None,
            "text": lines[line - 1].strip()[:300] if line is not None and line <= len(lines) else None,
        }

    def _on_overflow(self, operation: str, wrong: Any, wide: Any, marks: Any, argument: int | None) -> None:
        try:
            hit = np.broadcast_to(wrong, marks.shape) & marks
            value = np.broadcast_to(wide, marks.shape)
        except ValueError:
            hit, value = wrong, wide
        if not hit.any():
            return
        index = first_lane(hit)
        pointer = next((one for one in self.pointers().values() if one.number == argument), None)
        tensor = pointer.tensor if pointer is not None else None
        self.found.add(
            "int32-overflow",
            argument=pointer.name if pointer is not None else None,
            buffer=tensor.name if tensor is not None else None,
            operation=operation,
            value=int(value[index]),
            count=int(hit.sum()),
            **self._place(index, hit.shape),
        )


@contextmanager
def launch_alarm(seconds: float) -> Iterator[None]:
    """Raise ``LaunchTooLongError`` where the block takes longer."""

    def ring(*_: Any) -> None:
        raise LaunchTooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
